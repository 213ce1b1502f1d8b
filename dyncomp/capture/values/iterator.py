"""Iterators that capture steps through itself; each can be rebuilt half-consumed."""

from __future__ import annotations

from typing import Any

from ...symint import SymInt
from ..breaks import Break
from .base import Codegen, OpaqueValue, Tracer, Value
from .number import ConstValue


class IteratorValue(Value):
    """Base class: ``remaining`` is how many items are left where that is known."""

    def iterate(self, tracer: Tracer) -> Value:
        return self

    def remaining(self, tracer: Tracer) -> int | None:
        return None

    def truth(self, tracer: Tracer) -> bool:
        return True

    def items(self, tracer: Tracer) -> list[Value]:
        count = self.remaining(tracer)
        if count is None or count > tracer.config.options.unroll_ops:
            raise Break("unsupported-operation", f"expansion of {self.describe()}")
        found: list[Value] = []
        while (item := self.next(tracer)) is not None:
            found.append(item)
        return found


class OpaqueIterator(OpaqueValue):
    """An iterator from outside that capture cannot step; it is its own iterator."""

    def iterate(self, tracer: Tracer) -> Value:
        return self

    def truth(self, tracer: Tracer) -> bool:
        return True


class SequenceIterator(IteratorValue):
    """Iterator over a list, tuple, string or dict view whose items are known. ``live``: the very list of
    items of a traced list, so that appending while iterating is seen."""

    def __init__(self, items: list[Value], origin: Value, pytype: type | None = None) -> None:
        self.sequence = items
        self.origin = origin
        self.position = 0
        self.done = False
        self._pytype = pytype

    @property
    def pytype(self) -> type:
        return self._pytype or type(iter([]))

    def describe(self) -> str:
        return f"an iterator over {self.origin.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.origin,)

    def remaining(self, tracer: Tracer) -> int | None:
        return 0 if self.done else len(self.sequence) - self.position

    def next(self, tracer: Tracer) -> Value | None:
        if self.done or self.position >= len(self.sequence):
            self.done = True  # for good, even if the list grows
            return None
        self.position += 1
        tracer.steps += 1
        return self.sequence[self.position - 1]

    def reconstruct(self, cg: Codegen) -> str:
        if self.done and self._pytype is None:
            return f"{cg.constant(iter)}([])"
        text = f"{cg.constant(iter)}({cg.value(self.origin)})"
        if self.position:
            return f"{cg.constant(advance)}({text}, {self.position})"
        return text


def advance(iterator: Any, count: int) -> Any:
    """Drop ``count`` items of an iterator and return it."""
    for _ in range(count):
        next(iterator)
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

    def remaining(self, tracer: Tracer) -> int | None:
        if not self.is_static():
            return None
        return len(range(self.current, self.stop, self.step))

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
        self.position = 0

    @property
    def pytype(self) -> type:
        return type(iter([]))

    def describe(self) -> str:
        return f"an iterator over {self.array.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.array,)

    def remaining(self, tracer: Tracer) -> int | None:
        rows = self.array.ref.shape[0]
        return None if isinstance(rows, SymInt) else rows - self.position

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


class ZipIterator(IteratorValue):
    """``zip``, ``enumerate`` and ``map`` over traced iterators."""

    def __init__(
        self, kind: str, sources: list[Value], start: Any = 0, function: Value | None = None
    ) -> None:
        self.kind = kind
        self.sources = sources
        self.count = start
        self.function = function

    @property
    def pytype(self) -> type:
        return {"zip": zip, "enumerate": enumerate, "map": map}[self.kind]

    def describe(self) -> str:
        return f"a {self.kind} iterator"

    def children(self) -> tuple[Value, ...]:
        return tuple(self.sources) + ((self.function,) if self.function else ())

    def remaining(self, tracer: Tracer) -> int | None:
        counts = [s.remaining(tracer) if isinstance(s, IteratorValue) else None for s in self.sources]
        known = [c for c in counts if c is not None]
        if not counts:
            return 0
        return min(known) if len(known) == len(counts) else None

    def open_ended(self, tracer: Tracer) -> bool:
        unknown = [s for s in self.sources if not isinstance(s, IteratorValue) or s.remaining(tracer) is None]
        return bool(unknown) and all(s.open_ended(tracer) for s in unknown)

    def next(self, tracer: Tracer) -> Value | None:
        row: list[Value] = []
        for source in self.sources:
            item = source.next(tracer)
            if item is None:
                return None
            row.append(item)
        if not row:
            return None
        if self.kind == "map":
            assert self.function is not None
            return tracer.call_value(self.function, row, {})
        if self.kind == "enumerate":
            row.insert(0, tracer.wrap_result(self.count))
            self.count = self.count + 1
        return tracer.new_tuple(row)

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(cg.value(s) for s in self.sources)
        if self.kind == "enumerate":
            return f"{cg.constant(enumerate)}({inner}, {cg.symbolic(self.count)})"
        if self.kind == "map":
            assert self.function is not None
            return f"{cg.constant(map)}({cg.value(self.function)}, {inner})"
        return f"{cg.constant(zip)}({inner})"
