"""Tuples, lists, ranges and slices."""

from __future__ import annotations

from typing import Any

from ...dtypes import int64
from ...frontends.base import IntegerRange
from ...python_code.versions.tables import SLICE_BOUNDS_LAST
from ...symbolic.integers import SymInt
from ..breaks import Break
from ..guards.guard import Kind
from ..guards.source import ItemSource, Source
from .base import Codegen, Tracer, Value
from .iterator import RangeIterator, SequenceIterator
from .number import ConstValue, NumberValue, SymIntValue
from .steady import Steady


def index_of(tracer: Tracer, key: Value, length: int, what: str) -> int:
    """A sequence index as a non-negative int. ``what``: plain Python's message where it is out of range."""
    index = tracer.index_constant(key, "a sequence index")
    if index < 0:
        index += length
    if not 0 <= index < length:
        tracer.raise_exception(IndexError, what)
    return index


def refuse_large(tracer: Tracer, size: int, what: str) -> None:
    """Containers from outside are looked into item by item, with a guard each: not where they are large."""
    if size > tracer.config.options.unroll_ops:
        raise Break("unsupported-operation", f"a {what} of {size} items is looked into")


class SequenceValue(Value):
    """What tuples and lists share; ``contents`` gives the items."""

    noun = "tuple"  # in messages of IndexError

    def contents(self, tracer: Tracer) -> list[Value]:
        raise NotImplementedError

    def rebuild(self, items: list[Value]) -> Value:
        """A value of the same kind with other items (slicing, concatenation)."""
        raise NotImplementedError

    def items(self, tracer: Tracer) -> list[Value]:
        return list(self.contents(tracer))

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.contents(tracer))

    def length(self, tracer: Tracer) -> Value:
        return ConstValue(len(self.contents(tracer)))

    def iterate(self, tracer: Tracer) -> Value:
        return SequenceIterator(self.contents(tracer), self)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        items = self.contents(tracer)
        if isinstance(key, SliceValue) or (key.is_const and isinstance(key.const, slice)):
            chosen = items[tracer.slice_of(key)]
            return self if len(chosen) == len(items) and self._is_own_copy(chosen) else self.rebuild(chosen)
        return items[index_of(tracer, key, len(items), f"{self.noun} index out of range")]

    def _is_own_copy(self, items: list[Value]) -> bool:
        """Whether Python gives the object itself where a copy with these items is asked for."""
        return self.pytype is tuple and all(a is b for a, b in zip(items, self.children()))

    def contains(self, tracer: Tracer, item: Value) -> Value:
        steady = Steady(tracer, self)
        found = any(steady.same_or_equal(tracer, candidate, item) for candidate in self.items(tracer))
        return ConstValue(found)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.container_method(self, name)


class TupleValue(SequenceValue):
    """A tuple, or an instance of a plain namedtuple class (``cls``)."""

    def __init__(self, items: list[Value], source: Source | None = None, cls: type = tuple) -> None:
        self._items = items
        self.source = source
        self.cls = cls

    @property
    def pytype(self) -> type:
        return self.cls

    def contents(self, tracer: Tracer) -> list[Value]:
        return self._items

    def children(self) -> tuple[Value, ...]:
        return tuple(self._items)

    @property
    def keeps_class(self) -> bool:
        """Whether parts of it and sums with it are of its class, as those of ``torch.Size``: a class with
        indexing of its own. Those of a named tuple are plain tuples."""
        return self.cls is not tuple and "__getitem__" in vars(self.cls)

    def rebuild(self, items: list[Value]) -> Value:
        if not self.keeps_class:
            return TupleValue(items)
        if not all(issubclass(item.pytype, int) for item in items):
            raise Break("unsupported-operation", f"a {self.cls.__name__} with items that are no integers")
        return TupleValue(items, None, self.cls)

    @property
    def is_const(self) -> bool:
        return self.cls is tuple and all(v.is_const for v in self._items)

    @property
    def const(self) -> Any:
        return tuple(v.const for v in self._items)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if self.cls is not tuple:
            return tracer.class_attribute(self, name)
        return super().getattr(tracer, name)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        inner = cg.items(self._items)
        text = f"({inner},)" if self._items else "()"
        if self._items and all(v.is_const for v in self._items):
            text = f"(*[{inner}],)"  # new each time, not a constant of the code
        if hasattr(self.cls, "_fields"):
            return f"{cg.constant(tuple.__new__)}({cg.constant(self.cls)}, {text})"
        return text if self.cls is tuple else f"{cg.constant(self.cls)}({text})"

    def for_rule(self, tracer: Tracer) -> Any:
        values = [v.for_rule(tracer) for v in self._items]
        return tuple.__new__(self.cls, values) if hasattr(self.cls, "_fields") else tuple(values)


class ListValue(SequenceValue):
    """A list. One that came from outside is not looked into (nor its length guarded) until it has to be:
    appending to it only records the appended items."""

    noun = "list"

    def __init__(self, items: list[Value] | None, source: Source | None = None, obj: Any = None) -> None:
        self._items = items
        self._obj = obj
        self._size = len(obj) if obj is not None else 0
        self.source = source
        self.appended: list[Value] = []
        self.mutated = False

    @property
    def obj(self) -> Any:
        """The object, where it came from outside."""
        return self._obj

    @property
    def pytype(self) -> type:
        return list

    @property
    def looked_into(self) -> bool:
        return self._items is not None

    def contents(self, tracer: Tracer) -> list[Value]:
        if self._items is None:
            assert self.source is not None
            refuse_large(tracer, self._size, "list")
            tracer.guard(self.source, Kind.LEN, (list, self._size))
            children = [tracer.child(self._obj[i], ItemSource(self.source, i)) for i in range(self._size)]
            self._items = children + self.appended
            self.appended = []
        return self._items

    def children(self) -> tuple[Value, ...]:
        return tuple(self.appended if self._items is None else self._items)

    def rebuild(self, items: list[Value]) -> Value:
        return ListValue(items)

    def append(self, tracer: Tracer, value: Value) -> None:
        self.touch(tracer)
        (self.appended if self._items is None else self._items).append(value)

    def touch(self, tracer: Tracer) -> None:
        """Note that the list is about to change."""
        self.mutated = True
        tracer.note_mutation(self)

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        items = self.contents(tracer)
        if isinstance(key, SliceValue) or (key.is_const and isinstance(key.const, slice)):
            self._assign_slice(tracer, items, tracer.slice_of(key), value)
            return
        index = index_of(tracer, key, len(items), "list assignment index out of range")
        self.touch(tracer)
        items[index] = value

    def _assign_slice(self, tracer: Tracer, items: list[Value], where: slice, value: Value) -> None:
        """The items, when they are asked for, may change the list."""
        size = len(items)
        start, stop, step = tracer.fold(where.indices, size)
        replacement = tracer.items_in_two(value)
        if SLICE_BOUNDS_LAST:
            start, stop, step = where.indices(len(items))
        if step == 1:
            where = slice(start, max(start, stop))
        elif len(items) != size and not SLICE_BOUNDS_LAST:
            raise Break(
                "unsupported-operation", f"{self.describe()} that changes while its items are replaced"
            )
        tracer.fold(lambda: list(range(len(items))).__setitem__(where, list(range(len(replacement)))))
        self.touch(tracer)
        items[where] = replacement

    def delitem(self, tracer: Tracer, key: Value) -> None:
        items = self.contents(tracer)
        if isinstance(key, SliceValue) or (key.is_const and isinstance(key.const, slice)):
            where: Any = tracer.slice_of(key)
        else:
            where = index_of(tracer, key, len(items), "list assignment index out of range")
        self.touch(tracer)
        del items[where]

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        assert self._items is not None
        return f"[{cg.items(self._items)}]"

    def replay(self, cg: Codegen) -> list[str]:
        """Statements that bring the outside list up to date."""
        target = cg.value(self)
        if self._items is None:
            return [f"{target}.append({cg.value(v)})" for v in self.appended]
        return [f"{target}[:] = [{cg.items(self._items)}]"]

    def for_rule(self, tracer: Tracer) -> Any:
        return [v.for_rule(tracer) for v in self.contents(tracer)]


def _is_integer(value: Value) -> bool:
    return isinstance(value, NumberValue) and type(value.hint) is int


def _from_array(value: Value) -> bool:
    ref = getattr(value, "ref", None)
    if ref is None or ref.dtype != int64:
        return False
    return ref.kind in ("scalar", "python") or (ref.kind == "array" and not ref.ndim)


class RangeValue(SequenceValue):
    """``range(start, stop, step)`` with integers that may be symbolic."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start = start
        self.stop = stop
        self.step = step

    @property
    def pytype(self) -> type:
        return range

    @property
    def is_const(self) -> bool:
        return not any(isinstance(v, SymInt) for v in (self.start, self.stop, self.step))

    @property
    def const(self) -> Any:
        return self.pinned()

    def contents(self, tracer: Tracer) -> list[Value]:
        count = self.count()
        if count > tracer.config.options.unroll_ops:
            raise Break("unsupported-operation", f"expansion of a range of {count}")
        return [tracer.wrap_result(self.start + i * self.step) for i in range(count)]

    def count(self) -> int:
        """Number of items (specialises symbolic bounds)."""
        if self.is_const:
            if abs(self.stop - self.start) >= 2**63:
                raise Break("would-raise", "the length of a long range")
            return len(self.const)
        return len(self.pinned())

    def length(self, tracer: Tracer) -> Value:
        if not self.is_const and self.step == 1 and self.start <= self.stop:
            return tracer.wrap_result(self.stop - self.start)
        return ConstValue(self.count())

    def truth(self, tracer: Tracer) -> bool:
        if self.step > 0:
            return bool(self.start < self.stop)
        return bool(self.start > self.stop)

    def pinned(self) -> range:
        """The range with its bounds known."""
        return range(int(self.start), int(self.stop), int(self.step))

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        if isinstance(key, SliceValue) or (key.is_const and isinstance(key.const, slice)):
            part = tracer.fold(self.pinned().__getitem__, tracer.slice_of(key))
            return RangeValue(part.start, part.stop, part.step)
        index = tracer.integer_of(key, "a range index")
        if not self.is_const and index >= 0 and self.step == 1:
            if not self.start + index < self.stop:
                tracer.raise_exception(IndexError, "range object index out of range")
            return tracer.wrap_result(self.start + index)
        count = self.count()
        if not -count <= index < count:
            tracer.raise_exception(IndexError, "range object index out of range")
        return ConstValue(self.pinned()[index])

    def iterate(self, tracer: Tracer) -> Value:
        return RangeIterator(self.start, self.stop, self.step)

    def contains(self, tracer: Tracer, item: Value) -> Value:
        if self.is_const and item.is_const:
            return ConstValue(item.const in self.const)
        return super().contains(tracer, item)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in ("start", "stop", "step"):
            return tracer.wrap_result(getattr(self, name))
        return tracer.container_method(self, name)

    def for_rule(self, tracer: Tracer) -> Any:
        return self.pinned() if self.is_const else IntegerRange(self.start, self.stop, self.step)

    def backwards(self) -> RangeValue:
        """The range from its last number to its first."""
        if self.is_const:
            part = self.const[::-1]
            return RangeValue(part.start, part.stop, part.step)
        step = int(self.step)
        rest = self.stop - self.start + step - (1 if step > 0 else -1)
        many = rest // step if (self.start < self.stop if step > 0 else self.start > self.stop) else 0
        last = self.start + (many - 1) * step
        return RangeValue(last, self.start - step, -step)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        parts = ", ".join(cg.symbolic(v) for v in (self.start, self.stop, self.step))
        return f"{cg.constant(range)}({parts})"


def spread(value: Value) -> Value:
    """A constant tuple by its items, so that it goes with tuples that are not constant."""
    if isinstance(value, ConstValue) and type(value.const) is tuple:
        return TupleValue([spread(ConstValue(item)) for item in value.const])
    return value


class SliceValue(Value):
    """``slice(start, stop, step)``."""

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        self.parts = (start, stop, step)

    @property
    def pytype(self) -> type:
        return slice

    @property
    def is_const(self) -> bool:
        return all(p.is_const for p in self.parts)

    @property
    def const(self) -> Any:
        return slice(*(p.const for p in self.parts))

    def children(self) -> tuple[Value, ...]:
        return self.parts

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return tracer.container_method(self, name)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        inner = ", ".join(cg.value(p) for p in self.parts)
        return f"{cg.constant(slice)}({inner})"

    def for_rule(self, tracer: Tracer) -> Any:
        parts = []
        for part in self.parts:
            if not (part.is_const or isinstance(part, SymIntValue) or _is_integer(part) or _from_array(part)):
                raise Break("data-dependent-value", f"a slice bound that is {part.describe()}")
            parts.append(part.for_rule(tracer))
        return slice(*parts)
