"""Objects of the standard library that never change: what is asked of them is answered at capture."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..guards.guard import Kind
from ..guards.source import Source
from .base import Codegen, NamedMethodValue, Tracer, Value
from .mapping import DictValue
from .number import ConstValue
from .seq import ListValue, TupleValue

_MATCH_METHODS = frozenset({"group", "groups", "groupdict", "start", "end", "span", "expand", "__getitem__"})
_PATTERN_METHODS = frozenset({"match", "search", "fullmatch", "findall", "split", "sub", "subn"})
# by type: the methods, and the attributes, that only read
_KNOWN: dict[type, tuple[frozenset[str], frozenset[str]]] = {
    re.Match: (_MATCH_METHODS, frozenset({"string", "pos", "endpos", "lastindex", "lastgroup", "re"})),
    re.Pattern: (_PATTERN_METHODS, frozenset({"pattern", "flags", "groups"})),
}
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))


class FrozenValue(Value):
    """Such an object: one from outside, guarded by identity, or one that ``make`` gives an expression for."""

    def __init__(self, obj: Any, make: Callable[[Codegen], str], source: Source | None = None) -> None:
        self.obj = obj
        self.make = make
        self.source = source

    @staticmethod
    def outside(tracer: Tracer, obj: Any, source: Source) -> FrozenValue:
        tracer.guard(source, Kind.IS, obj)
        return FrozenValue(obj, _unmade, source)

    @property
    def pytype(self) -> type:
        return type(self.obj)

    def describe(self) -> str:
        return f"an object of type {type(self.obj).__module__}.{type(self.obj).__qualname__}"

    def reconstruct(self, cg: Codegen) -> str:
        return cg.load(self.source) if self.source is not None else self.make(cg)

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.obj)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        methods, attributes = _KNOWN[type(self.obj)]
        if name in methods:
            return FrozenMethodValue(self, name)
        if name not in attributes:
            raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")
        return from_plain(tracer, getattr(self.obj, name), lambda cg: f"{cg.value(self)}.{name}")

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        if "__getitem__" not in _KNOWN[type(self.obj)][0]:
            return super().getitem(tracer, key)
        return FrozenMethodValue(self, "__getitem__").call(tracer, [key], {})


class FrozenMethodValue(NamedMethodValue):
    """A method of such an object, bound and not yet called."""

    owner: FrozenValue

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        given = [_argument(tracer, arg) for arg in args]
        keywords = {name: _argument(tracer, value) for name, value in kwargs.items()}
        method = getattr(self.owner.obj, self.name)
        result = tracer.fold(lambda: method(*given, **keywords))

        def make(cg: Codegen) -> str:
            parts = [*map(cg.constant, given), *(f"{k}={cg.constant(v)}" for k, v in keywords.items())]
            return f"{cg.value(self.owner)}.{self.name}({', '.join(parts)})"

        return from_plain(tracer, result, make)


def _unmade(cg: Codegen) -> str:
    raise Break("unsupported-operation", "an object that a library function gave among others is kept")


def _argument(tracer: Tracer, value: Value) -> Any:
    found = tracer.constant_of(value, "an argument of a library function")
    if type(found) not in _PLAIN:
        raise Break("unsupported-call", f"a library function of {value.describe()}")
    return found


def from_plain(tracer: Tracer, obj: Any, make: Callable[[Codegen], str]) -> Value:
    """The value of what a library function gave: containers as made in the frame, others as they are."""
    kind = type(obj)
    if kind in _KNOWN:
        return FrozenValue(obj, make)
    if kind in _PLAIN:
        return ConstValue(obj)
    if kind is list:
        return ListValue([from_plain(tracer, item, _unmade) for item in obj])
    if kind is tuple:
        return TupleValue([from_plain(tracer, item, _unmade) for item in obj])
    if kind is dict:
        return DictValue({key: from_plain(tracer, item, _unmade) for key, item in obj.items()})
    found: Value = tracer.child_or_constant(obj, None)
    return found
