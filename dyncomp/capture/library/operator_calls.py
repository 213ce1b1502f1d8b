"""The ``operator`` module."""

from __future__ import annotations

import operator

from .. import operators
from ..breaks import Break
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.getters import GetterValue
from ..values.number import ConstValue, SymIntValue
from ..values.seq import ListValue, TupleValue
from .numbers import convert_array
from .registry import HANDLERS, Handler, builtin


def _register_operators() -> None:
    for spelling, name in operators.BINARY_NAMES.items():
        HANDLERS[getattr(operator, name)] = _binary_handler(spelling)
        in_place = getattr(operator, f"i{name.rstrip('_')}", None)
        if in_place is not None:
            HANDLERS[in_place] = _binary_handler(f"{spelling}=")
    for spelling, name in operators.UNARY_NAMES.items():
        HANDLERS[getattr(operator, name)] = _unary_handler(spelling)


def _binary_handler(spelling: str) -> Handler:
    def handle(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 2 or kwargs:
            raise Break("would-raise", f"operator {spelling} takes two arguments")
        return tracer.binary(spelling, *args)

    return handle


def _unary_handler(spelling: str) -> Handler:
    def handle(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs:
            raise Break("would-raise", f"operator {spelling} takes one argument")
        return tracer.unary(spelling, args[0])

    return handle


_register_operators()


@builtin(operator.itemgetter)
def _itemgetter(tracer: Tracer, item: Value, /, *items: Value) -> Value:
    return GetterValue(operator.itemgetter, [item, *items], {})


@builtin(operator.attrgetter)
def _attrgetter(tracer: Tracer, attr: Value, /, *attrs: Value) -> Value:
    return GetterValue(operator.attrgetter, [attr, *attrs], {})


@builtin(operator.methodcaller)
def _methodcaller(tracer: Tracer, name: Value, /, *args: Value, **kwargs: Value) -> Value:
    return GetterValue(operator.methodcaller, [name, *args], kwargs)


@builtin(operator.concat)
def _concat(tracer: Tracer, a: Value, b: Value, /) -> Value:
    return _joined(tracer, "+", a, b)


@builtin(operator.iconcat)
def _iconcat(tracer: Tracer, a: Value, b: Value, /) -> Value:
    return _joined(tracer, "+=", a, b)


def _joined(tracer: Tracer, op: str, a: Value, b: Value) -> Value:
    if not isinstance(a, (ListValue, TupleValue)):
        raise Break("unsupported-call", f"operator.concat of {a.describe()}")
    return tracer.binary(op, a, b)


@builtin(operator.length_hint)
def _length_hint(tracer: Tracer, obj: Value, default: Value | None = None, /) -> Value:
    if isinstance(obj, (ListValue, TupleValue)):
        return obj.length(tracer)
    raise Break("unsupported-call", f"operator.length_hint of {obj.describe()}")


@builtin(operator.getitem)
def _getitem(tracer: Tracer, obj: Value, key: Value) -> Value:
    return tracer.realize(obj.getitem(tracer, key))


@builtin(operator.index)
def _index(tracer: Tracer, obj: Value) -> Value:
    if isinstance(obj, SymIntValue):
        return obj
    if obj.is_const and isinstance(obj.const, int):
        return ConstValue(int.__index__(obj.const))
    if isinstance(obj, ArrayValue) and obj.ref.dtype.kind in ("int", "uint") and _is_single(obj):
        return convert_array(tracer, obj, int)
    raise Break("unsupported-call", f"operator.index of {obj.describe()}")


def _is_single(array: ArrayValue) -> bool:
    return array.ref.kind in ("scalar", "python") or (array.ref.kind == "array" and array.ref.ndim == 0)
