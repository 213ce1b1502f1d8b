"""Instances of classes that derive from a builtin container, string or number.

Such an object has two halves: attributes, as any instance has them, and a *part* that the builtin class
gives it. What the class does not define itself is done to the part. The part is no object of its own: what
it gave (a view, an iterator) holds the instance.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from ..breaks import Break
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind, short
from ..guards.source import ItemSource, Source
from ..objects.class_names import class_dict
from .base import Codegen, Tracer, Value
from .mapping import DictValue
from .number import ConstValue
from .obj import InstanceValue
from .seq import ListValue, TupleValue, refuse_large

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
# in the order in which they are looked for: OrderedDict is a dict
_CONTAINERS = (OrderedDict, dict, list)
_IMMUTABLE = (tuple, str, bytes, int, float, complex)
_INTEGERS = np.iinfo(np.int64)


def builtin_part(cls: type) -> type | None:
    """The builtin class that an ordinary class derives from besides ``object``, if it is one whose instances
    capture knows; else ``None``."""
    for base in (*_CONTAINERS, *_IMMUTABLE):
        if issubclass(cls, base):
            break
    else:
        return None
    others = [other for other in cls.__mro__ if other not in base.__mro__]
    return base if others and all(_adds_attributes(other) for other in others) else None


def _adds_attributes(cls: type) -> bool:
    """Whether a class is written in Python and adds at most ``__dict__``, ``__weakref__`` and slots."""
    if not cls.__flags__ & _HEAP_TYPE or cls.__base__ is None:
        return False
    slots = class_dict(cls).get("__slots__", ())
    count = 1 if isinstance(slots, str) else len(tuple(slots))
    return cls.__basicsize__ <= cls.__base__.__basicsize__ + 8 * (2 + count)


class DerivedValue(InstanceValue):
    """See the module's docstring. ``base`` is the builtin class, ``part`` what it holds."""

    def __init__(self, cls: type, base: type, obj: object = None, source: Source | None = None) -> None:
        super().__init__(cls, obj, source)
        self.base = base
        self.part: Value = _EMPTY_PARTS[base](self)

    def children(self) -> tuple[Value, ...]:
        return (*super().children(), *self.part.children())

    @property
    def item_reader(self) -> Any:
        """What reads an item as the builtin class does, whatever the class defines."""
        reader: Any = self.base
        return reader.__getitem__

    def is_native(self, tracer: Tracer, name: str) -> bool:
        """Whether the class leaves the special method to the builtin class."""
        found: bool = tracer.is_native(self, name)
        return found

    def operand(self, tracer: Tracer) -> Value:
        """An object of the builtin class with the same contents, for an operation that only reads it."""
        if isinstance(self.part, ListPart):
            return ListValue(list(self.part.contents(tracer)))
        if isinstance(self.part, TupleValue):
            return TupleValue([tracer.realize(v) for v in self.part.children()])
        return self.part

    # -- protocols ------------------------------------------------------------------------------
    def getitem(self, tracer: Tracer, key: Value) -> Value:
        if self.is_native(tracer, "__getitem__"):
            return self.operand(tracer).getitem(tracer, key)
        return super().getitem(tracer, key)

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        if self.is_native(tracer, "__setitem__"):
            self.part.setitem(tracer, key, value)
        else:
            super().setitem(tracer, key, value)

    def delitem(self, tracer: Tracer, key: Value) -> None:
        if self.is_native(tracer, "__delitem__"):
            self.part.delitem(tracer, key)
        else:
            super().delitem(tracer, key)

    def length(self, tracer: Tracer) -> Value:
        if self.is_native(tracer, "__len__"):
            return self.part.length(tracer)
        return super().length(tracer)

    def contains(self, tracer: Tracer, item: Value) -> Value:
        if self.is_native(tracer, "__contains__"):
            return self.part.contains(tracer, item)
        return super().contains(tracer, item)

    def iterate(self, tracer: Tracer) -> Value:
        if self.is_native(tracer, "__iter__"):
            return self.part.iterate(tracer)
        return super().iterate(tracer)

    def items(self, tracer: Tracer) -> list[Value]:
        if self.is_native(tracer, "__iter__"):
            return self.part.items(tracer)
        return super().items(tracer)

    def truth(self, tracer: Tracer) -> bool:
        has_truth = hasattr(self.base, "__bool__")
        if self.is_native(tracer, "__bool__") if has_truth else self._truth_is_length(tracer):
            return self.part.truth(tracer)
        return super().truth(tracer)

    def _truth_is_length(self, tracer: Tracer) -> bool:
        return self.special(tracer, "__bool__") is None and self.is_native(tracer, "__len__")

    def for_rule(self, tracer: Tracer) -> Any:
        """Array libraries take sequences item by item, and numbers as their own scalars."""
        if self.base in (list, tuple) and all(self.is_native(tracer, n) for n in _READING):
            return self.part.for_rule(tracer)
        if self.base is float and self.is_native(tracer, "__float__"):
            return np.float64(self.part.const)
        if self.base is complex and self.is_native(tracer, "__complex__"):
            return np.complex128(self.part.const)
        if self.base is int and self.is_native(tracer, "__index__") and self.is_native(tracer, "__int__"):
            if _INTEGERS.min <= self.part.const <= _INTEGERS.max:
                return np.int64(self.part.const)
        return super().for_rule(tracer)

    # -- rebuilding -----------------------------------------------------------------------------
    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        new, cls = cg.constant(self.base.__new__), cg.constant(self.cls)
        given = f", {cg.value(self.operand(cg.tracer))}" if self.base in _IMMUTABLE else ""
        name: str = cg.temporary(f"{new}({cls}{given})")
        cg.remember(self, name)
        for line in self.replay(cg):
            cg.line(line)
        return name

    def replay(self, cg: Codegen) -> list[str]:
        target = cg.value(self)
        changes = self.part.changes(cg, target) if isinstance(self.part, (DictPart, ListPart)) else []
        return changes + super().replay(cg)


_READING = ("__getitem__", "__len__", "__iter__")


class DictPart(DictValue):
    """What a dict or ``OrderedDict`` gives to an instance of a class derived from it."""

    def __init__(self, owner: DerivedValue) -> None:
        entries: dict[Any, Value] | None = {} if owner.source is None else None
        super().__init__(entries, owner.source, owner.obj, owner.base)
        self.owner = owner
        self.builtin: Any = owner.base

    def describe(self) -> str:
        return self.owner.describe()

    def _check_namespace(self, tracer: Tracer, changing: object) -> None:
        """Such a dict is no module's globals."""

    def touch(self, tracer: Tracer) -> None:
        self.mutated = self.owner.mutated = True
        tracer.note_mutation(self.owner)

    def missing(self, tracer: Tracer, key: object) -> Value:
        hook = self.owner.special(tracer, "__missing__")
        if hook is not None:
            return tracer.realize(tracer.call_value(hook, [ConstValue(key)], {}))
        return super().missing(tracer, key)

    def reconstruct(self, cg: Codegen) -> str:
        text: str = cg.value(self.owner)
        return text

    def view_text(self, cg: Codegen, kind: str) -> str:
        return f"{cg.constant(getattr(self.cls, kind))}({cg.value(self.owner)})"

    def replay(self, cg: Codegen) -> list[str]:
        cg.replay(self.owner)
        return []

    def changes(self, cg: Codegen, target: str) -> list[str]:
        """Statements that bring the entries of ``target`` up to date, not by the class's own methods."""
        if self.source is None:
            assert self._entries is not None
            return self._assignments(cg, target, self._entries)
        if not self.mutated:
            return []
        if self._entries is None:
            return self._assignments(cg, target, self._written)
        removed, is_cleared, stored = self.differences()
        delete = cg.constant(self.builtin.__delitem__)
        lines = [f"{delete}({target}, {cg.constant(k)})" for k in removed]
        lines += [f"{cg.constant(self.builtin.clear)}({target})"] * is_cleared
        return lines + self._assignments(cg, target, stored)

    def _assignments(self, cg: Codegen, target: str, entries: dict[Any, Value]) -> list[str]:
        store = cg.constant(self.builtin.__setitem__)
        return [f"{store}({target}, {cg.constant(k)}, {cg.value(v)})" for k, v in entries.items()]


def has_length(found: Any, length: int) -> bool:
    """The guard of a derived list's length."""
    return list.__len__(found) == length


class ListPart(ListValue):
    """What a list gives to an instance of a class derived from it."""

    def __init__(self, owner: DerivedValue) -> None:
        outside = owner.source is not None
        super().__init__(None if outside else [], owner.source)
        self.owner = owner
        self._size = list.__len__(owner.obj) if outside else 0

    def describe(self) -> str:
        return self.owner.describe()

    def contents(self, tracer: Tracer) -> list[Value]:
        if self._items is None:
            assert self.source is not None
            refuse_large(tracer, self._size, "list")
            check = CustomCheck(has_length, self._size, f"a list of length {self._size}")
            tracer.guard(self.source, Kind.CUSTOM_ARRAY, check)
            stored = [list.__getitem__(self.owner.obj, i) for i in range(self._size)]
            children = [tracer.child(v, ItemSource(self.source, i)) for i, v in enumerate(stored)]
            self._items = children + self.appended
            self.appended = []
        return self._items

    def touch(self, tracer: Tracer) -> None:
        self.mutated = self.owner.mutated = True
        tracer.note_mutation(self.owner)

    def reconstruct(self, cg: Codegen) -> str:
        text: str = cg.value(self.owner)
        return text

    def replay(self, cg: Codegen) -> list[str]:
        cg.replay(self.owner)
        return []

    def changes(self, cg: Codegen, target: str) -> list[str]:
        """Statements that bring the items of ``target`` up to date, not by the class's own methods."""
        if self._items is None:
            return [f"{cg.constant(list.append)}({target}, {cg.value(v)})" for v in self.appended]
        if self.source is not None and not self.mutated:
            return []
        items = cg.items(self._items)
        if self.source is None:
            return [f"{cg.constant(list.extend)}({target}, [{items}])"] if items else []
        whole = cg.constant(slice(None))
        return [f"{cg.constant(list.__setitem__)}({target}, {whole}, [{items}])"]


def _nothing(owner: DerivedValue) -> Value:
    """The part of an immutable object is given when it is made."""
    return ConstValue(None)


_EMPTY_PARTS: dict[type, Any] = {
    dict: DictPart,
    OrderedDict: DictPart,
    list: ListPart,
    **dict.fromkeys(_IMMUTABLE, _nothing),
}


def same_contents(found: object, expected: object) -> bool:
    """The guard of a derived string or number."""
    base: Any = type(expected)
    if base in (float, complex):
        return bool(base.__repr__(found) == repr(expected))  # tells signs of zero apart
    return bool(base.__eq__(found, expected))


def derived_from_outside(tracer: Tracer, obj: Any, base: type, source: Source) -> DerivedValue:
    """The value of an object from outside whose class derives from ``base``."""
    tracer.guard(source, Kind.TYPE_IS, type(obj))
    value = DerivedValue(type(obj), base, obj, source)
    if base is tuple:
        size = tuple.__len__(obj)
        check = CustomCheck(has_tuple_length, size, f"a tuple of length {size}")
        tracer.guard(source, Kind.CUSTOM_ARRAY, check)
        stored = [tuple.__getitem__(obj, i) for i in range(size)]
        value.part = TupleValue([tracer.child(v, ItemSource(source, i)) for i, v in enumerate(stored)])
    elif base in _EXACT:
        exact = _EXACT[base](obj)
        check = CustomCheck(same_contents, exact, f"{base.__name__} {short(exact):.80}")
        tracer.guard(source, Kind.CUSTOM_ARRAY, check)
        value.part = ConstValue(exact)
    return value


def has_tuple_length(found: Any, length: int) -> bool:
    """The guard of a derived tuple's length."""
    return tuple.__len__(found) == length


# an object of the builtin class that equals one of a derived class, by no method of that
_EXACT: dict[type, Any] = {
    str: str.__str__,
    int: int.__index__,
    float: float.__float__,
    bytes: bytes.__bytes__,
    complex: complex.__complex__,
}


def merged_part(tracer: Tracer, value: Value) -> Value:
    """``value`` as ``dict.update`` and ``**`` read it: a derived dict's own entries where its class has them
    read directly, or reads them the same way."""
    if not isinstance(value, DerivedValue) or not isinstance(value.part, DictPart):
        return value
    if not has_own_entries(tracer, value):
        raise Break("unsupported-call", f"the entries of {value.describe()}")
    return value.part


def has_own_entries(tracer: Tracer, value: Value) -> bool:
    """Whether ``dict.update`` and ``**`` read the entries of ``value`` by none of its own methods."""
    if not isinstance(value, DerivedValue) or not isinstance(value.part, DictPart):
        return False
    needed = ("__iter__",) if value.base is dict else ("__iter__", "keys", "__getitem__")
    return all(value.is_native(tracer, name) for name in needed)
