"""Objects of the standard library that never change: what is asked of them is answered at capture."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..guards.source import Source
from ..values.base import Codegen, NamedMethodValue, OpaqueValue, Tracer, Value
from ..values.decimals import check_context
from ..values.mapping import DictValue
from ..values.number import ConstValue
from ..values.seq import ListValue, TupleValue
from .types import KNOWN, NUMPY_TIMES, is_known

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))
_Make = Callable[[Codegen], str]


class FrozenValue(Value):
    """Such an object: one from outside, or one that is made again where it is needed, by the expression that
    ``make`` gives or, without one, of its parts."""

    def __init__(self, obj: Any, make: _Make | None, source: Source | None = None) -> None:
        self.obj = obj
        self.make = make
        self.source = source

    @staticmethod
    def outside(tracer: Tracer, obj: object, source: Source) -> Value:
        look = KNOWN[type(obj)].guarded_by
        if look is None:
            tracer.guard(source, Kind.IS, obj)
            return FrozenValue(obj, _unmade, source)
        tracer.guard(source, Kind.TYPE_IS, type(obj))
        if not is_known(obj):
            return OpaqueValue(obj, source)
        tracer.guard(source, Kind.CUSTOM_ARRAY, CustomCheck(looks_like, look(obj), f"{obj!r:.80}"))
        return FrozenValue(obj, None, source)

    @property
    def pytype(self) -> type:
        return type(self.obj)

    def describe(self) -> str:
        return f"an object of type {type(self.obj).__module__}.{type(self.obj).__qualname__}"

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        if self.make is not None:
            return self.make(cg)
        parts = KNOWN[type(self.obj)].parts
        assert parts is not None
        function, *args = parts(self.obj)
        return f"{cg.constant(function)}({', '.join(map(cg.constant, args))})"

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.obj)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        known = KNOWN[type(self.obj)]
        if name in known.methods and hasattr(self.obj, name):
            return FrozenMethodValue(self, name)
        if name not in known.attributes:
            raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")
        found = tracer.fold(getattr, self.obj, name)
        # what it holds is the same each time, like its time zone
        if type(found) in KNOWN and (self.source is not None or known.parts is None):
            return FrozenValue(found, lambda cg: f"{cg.value(self)}.{name}")
        return from_plain(tracer, found, None if known.parts else lambda cg: f"{cg.value(self)}.{name}")

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        if "__getitem__" not in KNOWN[type(self.obj)].methods:
            return super().getitem(tracer, key)
        return FrozenMethodValue(self, "__getitem__").call(tracer, [key], {})


def looks_like(found: object, expected: tuple[Any, ...]) -> bool:
    """The guard of an object from outside."""
    look = KNOWN[type(found)].guarded_by
    assert look is not None
    return is_known(found) and _same(look(found), expected)


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(type(x) is type(y) and x == y for x, y in zip(a, b))


class FrozenMethodValue(NamedMethodValue):
    """A method of such an object, bound and not yet called."""

    owner: FrozenValue

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        return call_pure(tracer, getattr(self.owner.obj, self.name), [self.owner], args, kwargs, self._made)

    def _made(self, given: list[Any], keywords: dict[str, Any]) -> _Make:
        def make(cg: Codegen) -> str:
            parts = [*map(cg.constant, given), *(f"{k}={cg.constant(v)}" for k, v in keywords.items())]
            return f"{cg.value(self.owner)}.{self.name}({', '.join(parts)})"

        return make


def call_pure(
    tracer: Tracer,
    function: Callable[..., Any],
    owners: list[Value],
    args: list[Value],
    kwargs: dict[str, Value],
    made: Callable[[list[Any], dict[str, Any]], _Make] | None = None,
) -> Value:
    """``function(*args, **kwargs)`` that depends on these only; what it gives may be one of ``owners``."""
    given = [_argument(tracer, arg) for arg in args]
    keywords = {name: _argument(tracer, value) for name, value in kwargs.items()}
    values = [*owners, *args, *kwargs.values()]
    result = tracer.fold(lambda: check_context(tracer, function, given, keywords, values))
    for value in values:
        if isinstance(value, FrozenValue) and value.obj is result:
            return value
    return from_plain(tracer, result, made(given, keywords) if made is not None else None)


def _unmade(cg: Codegen) -> str:
    raise Break("unsupported-operation", "an object that a library function gave among others is kept")


def _argument(tracer: Tracer, value: Value) -> Any:
    value = tracer.realize(value)
    if isinstance(value, FrozenValue):
        return value.obj
    found = tracer.key_constant(value, "an argument of a library function")
    if type(found) not in _PLAIN:
        raise Break("unsupported-call", f"a library function of {value.describe()}")
    return found


def from_plain(tracer: Tracer, obj: Any, make: _Make | None) -> Value:
    """The value of what a library function gave: containers as made in the frame, others as they are."""
    kind = type(obj)
    if kind in NUMPY_TIMES and not is_known(obj):
        raise Break("unsupported-operation", f"a {kind.__name__} without a unit")
    if kind is decimal.Decimal and not is_known(obj):
        raise Break("unsupported-operation", "a Decimal that is not a number")
    if kind in KNOWN:
        return FrozenValue(obj, make if KNOWN[kind].parts is None else None)
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
