"""Iterators that capture steps through itself; each can be rebuilt half-consumed."""

from __future__ import annotations

import operator
from typing import Any

from ...symbolic.integers import Dim, SymInt, depends_on_data, hint
from ..breaks import Break
from .base import Codegen, OpaqueValue, Tracer, Value
from .number import ConstValue


class IteratorValue(Value):
    """Base class: ``remaining`` is how many items are left where that is known."""

    def iterate(self, tracer: Tracer) -> Value:
        return self

    def remaining(self, tracer: Tracer) -> int | None:
        return None

    def pin(self) -> None:
        """Have the number of items be what it is now, where it is symbolic."""
        for child in self.children():
            if isinstance(child, IteratorValue):
                child.pin()

    def expected(self, tracer: Tracer) -> int | None:
        """How many items are left in this call, where :meth:`pin` can have it so in all."""
        return self.remaining(tracer)

    def bound(self, tracer: Tracer) -> int | None:
        """At most how many items are left, where that is known."""
        return self.remaining(tracer)

    def truth(self, tracer: Tracer) -> bool:
        return True

    def items(self, tracer: Tracer) -> list[Value]:
        limit = tracer.config.options.unroll_ops
        count = self.bound(tracer)
        if (count is not None and count > limit) or (count is None and not self.open_ended(tracer)):
            raise Break("unsupported-operation", f"expansion of {self.describe()}")
        found: list[Value] = []
        while (item := self.next(tracer)) is not None:
            found.append(item)
            if len(found) > limit:
                raise Break("unsupported-operation", f"{self.describe()} gives more than {limit} items")
        return found

    def contains(self, tracer: Tracer, item: Value) -> Value:
        if not can_step(tracer, self):
            raise Break("unsupported-operation", f"membership test in {self.describe()}")
        for _ in range(tracer.config.options.unroll_ops):
            candidate = self.next(tracer)
            if candidate is None:
                return ConstValue(False)
            if tracer.same_or_equal(candidate, item):
                return ConstValue(True)
        raise Break("unsupported-operation", f"a long membership test in {self.describe()}")


def can_step(tracer: Tracer, iterator: Value) -> bool:
    """Whether the iterator may be stepped to its end without assuming more than what was seen."""
    known = isinstance(iterator, IteratorValue) and iterator.bound(tracer) is not None
    return known or iterator.open_ended(tracer)


class OpaqueIterator(OpaqueValue):
    """An iterator from outside that capture cannot step; it is its own iterator."""

    def iterate(self, tracer: Tracer) -> Value:
        return self

    def truth(self, tracer: Tracer) -> bool:
        return True


class SequenceIterator(IteratorValue):
    """Iterator over a list, tuple, string or dict view whose items are known. ``live``: the very list of
    items of a traced list, so that appending while iterating is seen."""

    def __init__(self, items: list[Value], origin: Value) -> None:
        self.sequence = items
        self.origin = origin
        self.position = 0
        self.done = False

    @property
    def pytype(self) -> type:
        return type(iter(_example(self.origin)))

    def describe(self) -> str:
        return f"an iterator over {self.origin.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.origin,)

    def remaining(self, tracer: Tracer) -> int | None:
        return 0 if self.done else max(0, len(self.sequence) - self.position)

    def next(self, tracer: Tracer) -> Value | None:
        if self.done or self.position >= len(self.sequence):
            self.done = True  # for good, even if the list grows
            return None
        self.position += 1
        tracer.steps += 1
        return tracer.realize(self.sequence[self.position - 1])

    def reconstruct(self, cg: Codegen) -> str:
        if self.done:
            return f"{cg.constant(iter)}({cg.constant(type(_example(self.origin)))}())"
        text = f"{cg.constant(iter)}({cg.value(self.origin)})"
        if self.position:
            return f"{cg.constant(advance)}({text}, {self.position})"
        return text


def _example(origin: Value) -> Any:
    """An object of the builtin type whose iterators those of ``origin`` are."""
    if origin.is_const and isinstance(origin.const, str):
        return origin.const
    return next(base() for base in (list, tuple, str, bytes, bytearray) if issubclass(origin.pytype, base))


def advance(iterator: Any, count: int) -> Any:
    """Drop ``count`` items of an iterator and return it."""
    for _ in range(count):
        next(iterator)
    return iterator


class ReverseIterator(IteratorValue):
    """``reversed`` of a list, tuple or string; sees the list's later changes, as Python's does."""

    def __init__(self, items: list[Value], origin: Value) -> None:
        self.sequence = items
        self.origin = origin
        self.index = len(items) - 1

    @property
    def pytype(self) -> type:
        return type(reversed(_example(self.origin)))

    def describe(self) -> str:
        return f"a reverse iterator over {self.origin.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.origin,)

    def remaining(self, tracer: Tracer) -> int | None:
        return self.index + 1 if self.index < len(self.sequence) else 0

    def next(self, tracer: Tracer) -> Value | None:
        if not 0 <= self.index < len(self.sequence):
            self.index = -1
            return None
        self.index -= 1
        tracer.steps += 1
        return tracer.realize(self.sequence[self.index + 1])

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.constant(reversed_from)}({cg.value(self.origin)}, {self.index})"


def reversed_from(sequence: Any, index: int) -> Any:
    """``reversed(sequence)`` that goes on at ``index``."""
    iterator = reversed(sequence)
    if index < 0:
        for _ in iterator:
            pass
        return iterator
    iterator.__setstate__(index)  # type: ignore[attr-defined]
    return iterator


class RangeIterator(IteratorValue):
    """Iterator over a range whose bounds may be symbolic."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.current = start
        self.stop = stop
        self.step = step

    @property
    def pytype(self) -> type:
        return type(iter(range(0)))

    def describe(self) -> str:
        return "a range iterator"

    def is_static(self) -> bool:
        return not any(isinstance(v, SymInt) for v in (self.current, self.stop, self.step))

    def pin(self) -> None:
        self.current, self.stop, self.step = map(operator.index, (self.current, self.stop, self.step))

    def remaining(self, tracer: Tracer) -> int | None:
        if not self.is_static():
            return None
        return len(range(self.current, self.stop, self.step))

    def expected(self, tracer: Tracer) -> int | None:
        bounds = (self.current, self.stop, self.step)
        if not hint(self.step) or any(depends_on_data(v) for v in bounds):
            return None
        return len(range(*map(hint, bounds)))

    def next(self, tracer: Tracer) -> Value | None:
        if self.step == 0:
            raise Break("would-raise", "range() arg 3 must not be zero")
        more = self.current < self.stop if self.step > 0 else self.current > self.stop
        if not more:
            return None
        value = self.current
        self.current = value + self.step
        tracer.steps += 1
        return tracer.wrap_result(value)

    def reconstruct(self, cg: Codegen) -> str:
        parts = ", ".join(cg.symbolic(v) for v in (self.current, self.stop, self.step))
        return f"{cg.constant(iter)}({cg.constant(range)}({parts}))"


class ArrayIterator(IteratorValue):
    """Iterator over the first dimension of an array."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.rows: Dim = array.ref.shape[0]
        self.position = 0

    @property
    def pytype(self) -> type:
        return type(iter([]))

    def describe(self) -> str:
        return f"an iterator over {self.array.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.array,)

    def pin(self) -> None:
        self.rows = operator.index(self.array.ref.shape[0])

    def remaining(self, tracer: Tracer) -> int | None:
        return None if isinstance(self.rows, SymInt) else self.rows - self.position

    def expected(self, tracer: Tracer) -> int | None:
        return None if depends_on_data(self.rows) else hint(self.rows) - self.position

    def next(self, tracer: Tracer) -> Value | None:
        if self.position >= self.array.ref.shape[0]:
            return None
        self.position += 1
        tracer.steps += 1
        return self.array.getitem(tracer, ConstValue(self.position - 1))

    def reconstruct(self, cg: Codegen) -> str:
        text = f"{cg.constant(iter)}({cg.value(self.array)})"
        if self.position:
            return f"{cg.constant(advance)}({text}, {self.position})"
        return text


class CombiningIterator(IteratorValue):
    """An iterator over other iterators (``sources``)."""

    sources: list[Value]

    def children(self) -> tuple[Value, ...]:
        return tuple(self.sources)

    def open_ended(self, tracer: Tracer) -> bool:
        return all(can_step(tracer, s) for s in self.sources)

    def bounds(self, tracer: Tracer) -> list[int | None]:
        return [s.bound(tracer) if isinstance(s, IteratorValue) else None for s in self.sources]

    def bound(self, tracer: Tracer) -> int | None:
        """As many as the shortest source has, unless a subclass knows better."""
        known = [c for c in self.bounds(tracer) if c is not None]
        return min(known) if known else None


def _fewest(counts: list[int | None]) -> int | None:
    """The smallest, where all are known; 0 of none."""
    known = [count for count in counts if count is not None]
    return min(known, default=0) if len(known) == len(counts) else None


class ZipIterator(CombiningIterator):
    """``zip``, ``enumerate`` and ``map`` over traced iterators."""

    def __init__(
        self,
        kind: str,
        sources: list[Value],
        start: Any = 0,
        function: Value | None = None,
        strict: bool = False,
    ) -> None:
        self.kind = kind
        self.sources = sources
        self.count = start
        self.function = function
        self.strict = strict

    @property
    def pytype(self) -> type:
        return {"zip": zip, "enumerate": enumerate, "map": map}[self.kind]

    def describe(self) -> str:
        return f"a {self.kind} iterator"

    def children(self) -> tuple[Value, ...]:
        return tuple(self.sources) + ((self.function,) if self.function else ())

    def remaining(self, tracer: Tracer) -> int | None:
        return _fewest([s.remaining(tracer) if isinstance(s, IteratorValue) else None for s in self.sources])

    def expected(self, tracer: Tracer) -> int | None:
        return _fewest([s.expected(tracer) if isinstance(s, IteratorValue) else None for s in self.sources])

    def bound(self, tracer: Tracer) -> int | None:
        return super().bound(tracer) if self.sources else 0

    def next(self, tracer: Tracer) -> Value | None:
        row: list[Value] = []
        for source in self.sources:
            item = source.next(tracer)
            if item is None:
                if self.strict:
                    self._check_lengths(tracer, len(row))
                return None
            row.append(item)
        if not row:
            return None
        if self.kind == "map":
            assert self.function is not None
            return tracer.realize(tracer.call_value(self.function, row, {}))
        if self.kind == "enumerate":
            row.insert(0, tracer.wrap_result(self.count))
            self.count = self.count + 1
        return tracer.new_tuple(row)

    def _check_lengths(self, tracer: Tracer, exhausted: int) -> None:
        """``strict=True``: source number ``exhausted`` has ended, so all others must end with it."""
        if exhausted:
            plural = " " if exhausted == 1 else "s 1-"
            text = f"zip() argument {exhausted + 1} is shorter than argument{plural}{exhausted}"
            tracer.raise_exception(ValueError, f"{text}")
        for position, source in enumerate(self.sources[1:], 1):
            if source.next(tracer) is not None:
                plural = " " if position == 1 else "s 1-"
                text = f"zip() argument {position + 1} is longer than argument{plural}{position}"
                tracer.raise_exception(ValueError, f"{text}")

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(cg.value(s) for s in self.sources)
        if self.kind == "enumerate":
            return f"{cg.constant(enumerate)}({inner}, {cg.symbolic(self.count)})"
        if self.kind == "map":
            assert self.function is not None
            return f"{cg.constant(map)}({cg.value(self.function)}, {inner})"
        return f"{cg.constant(zip)}({inner}{', strict=True' if self.strict else ''})"


class FilterIterator(CombiningIterator):
    """``filter`` and ``itertools.filterfalse``; ``function`` is ``None`` for the truth of the item itself."""

    def __init__(self, cls: type, function: Value | None, source: Value, wanted: bool) -> None:
        self.cls = cls
        self.function = function
        self.sources = [source]
        self.wanted = wanted

    @property
    def pytype(self) -> type:
        found: type = self.cls
        return found

    def children(self) -> tuple[Value, ...]:
        return (*self.sources, *([self.function] if self.function is not None else []))

    def next(self, tracer: Tracer) -> Value | None:
        while (item := self.sources[0].next(tracer)) is not None:
            tested = item if self.function is None else tracer.call_value(self.function, [item], {})
            if tracer.realize(tested).truth(tracer) == self.wanted:
                return item
        return None

    def reconstruct(self, cg: Codegen) -> str:
        function = "None" if self.function is None else cg.value(self.function)
        return f"{cg.constant(self.cls)}({function}, {cg.value(self.sources[0])})"


class CallIterator(IteratorValue):
    """``iter(function, sentinel)``."""

    def __init__(self, function: Value, sentinel: Value) -> None:
        self.function = function
        self.sentinel = sentinel
        self.done = False

    @property
    def pytype(self) -> type:
        return type(iter(int, 1))

    def describe(self) -> str:
        return "a callable iterator"

    def children(self) -> tuple[Value, ...]:
        return (self.function, self.sentinel)

    def open_ended(self, tracer: Tracer) -> bool:
        return True

    def next(self, tracer: Tracer) -> Value | None:
        if self.done:
            return None
        tracer.steps += 1
        item = tracer.realize(tracer.call_value(self.function, [], {}))
        if tracer.same_or_equal(self.sentinel, item):
            self.done = True
            return None
        return item

    def reconstruct(self, cg: Codegen) -> str:
        if self.done:
            return f"{cg.constant(ended_call_iterator)}()"
        return f"{cg.constant(iter)}({cg.value(self.function)}, {cg.value(self.sentinel)})"


def ended_call_iterator() -> Any:
    """``iter(function, sentinel)`` that has met its sentinel."""
    iterator = iter(int, 0)
    next(iterator, None)
    return iterator
