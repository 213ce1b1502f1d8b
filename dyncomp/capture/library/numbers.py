"""Numbers: ``int``, ``float``, ``abs``, ``min``, ``sum``…"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator

from ... import dtypes
from ...dtypes import bool_
from ...frontends.base import ArrayRef, own_number
from ...symbolic.integers import sym_max, sym_min
from ..breaks import Break
from ..calls.folding import is_computed, pure_operand, python_call
from ..loops.idle_loops import LAYERS
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.iterator import can_step
from ..values.number import ComputedValue, ConstValue, NumberValue, SymIntValue, number_operand
from ..values.obj import InstanceValue
from ..values.seq import TupleValue
from .registry import builtin, in_turn


@builtin(bool)
def _bool(tracer: Tracer, obj: Value | None = None) -> Value:
    if obj is None:
        return ConstValue(False)
    if isinstance(obj, ArrayValue):
        return convert_array(tracer, obj, bool)
    if isinstance(obj, ComputedValue):
        return python_call(tracer, bool, [obj])
    return ConstValue(obj.truth(tracer))


@builtin(int, keywords=("base",))
def _int(tracer: Tracer, obj: Value | None = None, base: Value | None = None) -> Value:
    if isinstance(obj, SymIntValue):
        return obj
    return _number(tracer, int, obj, base)


@builtin(float)
def _float(tracer: Tracer, obj: Value | None = None) -> Value:
    return _number(tracer, float, obj)


@builtin(complex)
def _complex(tracer: Tracer, real: Value | None = None, imag: Value | None = None) -> Value:
    if real is None and imag is not None:
        return _number(tracer, complex, ConstValue(0), imag)
    return _number(tracer, complex, real, imag)


def _number(tracer: Tracer, cls: type, obj: Value | None, extra: Value | None = None) -> Value:
    if obj is None:
        return ConstValue(cls())
    if extra is None and isinstance(obj, ArrayValue):
        return convert_array(tracer, obj, cls)
    if extra is None and isinstance(obj, InstanceValue):
        return _by_method(tracer, cls, obj)
    args = [obj] if extra is None else [obj, extra]
    if any(is_computed(a) for a in args) and all(pure_operand(a) for a in args):
        return python_call(tracer, cls, args)
    return ConstValue(
        tracer.fold(cls, *(tracer.constant_of(a, f"an argument of {cls.__name__}") for a in args))
    )


def _by_method(tracer: Tracer, cls: type, obj: InstanceValue) -> Value:
    """``int(obj)`` and the like by the class's own method."""
    for name in (f"__{cls.__name__}__", "__float__", "__index__"):
        method = obj.special(tracer, name)
        if method is not None and not (cls is int and name == "__float__"):
            found: Value = tracer.realize(tracer.call_value(method, [], {}))
            if found.pytype is cls:
                return found
            break
    raise Break("unsupported-call", f"{cls.__name__}() of {obj.describe()}")


def convert_array(tracer: Tracer, obj: ArrayValue, cls: type) -> Value:
    """``float(x)`` of a one-element array: a Python number that the graph computes."""
    if obj.ref.kind == "python" and obj.pytype is cls:
        return obj
    target = _exact_conversion(obj, cls)
    # NumPy warns of dimensions
    one = all(type(n) is int and n == 1 for n in obj.ref.shape) and obj.ref.frontend != "numpy"
    if target is not None and (obj.ref.ndim == 0 or one):
        element = tracer.tx.ops.reshape(obj.ref.var, shape=()) if obj.ref.ndim else obj.ref.var
        var = element if obj.ref.dtype == target else tracer.tx.ops.convert(element, dtype=target)
        if obj.ref.kind == "array":
            var = own_number(tracer.tx, var, element)
        number = dataclasses.replace(obj.ref, var=var, kind="python", readonly=False, part=None)
        return tracer.wrap_result(number)
    raise Break("data-dependent-value", f"{cls.__name__}() of {obj.describe()}")


def _exact_conversion(obj: ArrayValue, cls: type) -> dtypes.DType | None:
    """The dtype whose Python number ``cls(obj)`` is, where the conversion cannot raise."""
    given = obj.ref.dtype
    if cls is float and not given.is_complex:
        return dtypes.float64
    if cls is int and (given.is_bool or (given.is_integer and given is not dtypes.uint64)):
        return dtypes.int64
    if cls is complex:
        return dtypes.complex128
    return dtypes.bool_ if cls is bool and given.is_bool else None


@builtin(abs)
def _abs(tracer: Tracer, obj: Value) -> Value:
    if isinstance(obj, ArrayValue):
        return tracer.operator("abs", [obj])
    if isinstance(obj, SymIntValue):
        return tracer.wrap_result(abs(obj.sym))
    if isinstance(obj, NumberValue):
        return python_call(tracer, abs, [obj])
    return ConstValue(tracer.fold(abs, tracer.constant_of(obj, "a number")))


@builtin(divmod)
def _divmod(tracer: Tracer, a: Value, b: Value) -> Value:
    if isinstance(a, InstanceValue) or isinstance(b, InstanceValue):
        raise Break("unsupported-call", "divmod() of objects that may define it")
    return TupleValue([tracer.binary("//", a, b), tracer.binary("%", a, b)])


@builtin(pow)
def _pow(tracer: Tracer, base: Value, exp: Value, mod: Value | None = None) -> Value:
    if mod is not None:
        if any(is_computed(v) for v in (base, exp, mod)):
            return python_call(tracer, pow, [base, exp, mod])
        values = [tracer.constant_of(v, "an argument of pow") for v in (base, exp, mod)]
        return ConstValue(tracer.fold(pow, *values))
    return tracer.binary("**", base, exp)


@builtin(min)
def _min(tracer: Tracer, *args: Value, key: Value | None = None, default: Value | None = None) -> Value:
    return _extreme(tracer, "<", args, key, default)


@builtin(max)
def _max(tracer: Tracer, *args: Value, key: Value | None = None, default: Value | None = None) -> Value:
    return _extreme(tracer, ">", args, key, default)


def _extreme(
    tracer: Tracer, relation: str, args: tuple[Value, ...], key: Value | None, default: Value | None
) -> Value:
    if not args or (default is not None and len(args) > 1):
        raise Break("would-raise", "wrong arguments of min() or max()")
    key = None if key is not None and key.is_const and key.const is None else key
    items: list[Value] = []
    keyed: list[Value] = []
    best = -1  # where a comparison may run code, or arrays may change: the best of the items so far
    for item in args if len(args) > 1 else in_turn(tracer, args[0]):
        items.append(item)
        keyed.append(item if key is None else tracer.realize(tracer.call_value(key, [item], {})))
        if best >= 0 or not _is_settled(keyed[-1]):
            best = _best(tracer, relation, keyed, best)
    if not items:
        if default is None:
            raise tracer.raise_like(min if relation == "<" else max, [])
        return default
    if best >= 0:
        return items[best]
    if (
        key is None
        and all(number_operand(i) for i in items)
        and any(isinstance(i, NumberValue) for i in items)
    ):
        return python_call(tracer, min if relation == "<" else max, items)
    if key is None and all(_whole(i) for i in items) and any(isinstance(i, SymIntValue) for i in items):
        choose = sym_min if relation == "<" else sym_max
        return tracer.wrap_result(functools.reduce(choose, [i.for_rule(tracer) for i in items]))
    if key is None and all(map(_is_float, items)) and any(map(_is_computed_float, items)):
        return _extreme_float(tracer, relation, items)
    return items[_best(tracer, relation, keyed, -1)]


def _is_computed_float(value: Value) -> bool:
    return isinstance(value, ArrayValue) and value.ref.kind == "python"


def _extreme_float(tracer: Tracer, relation: str, items: list[Value]) -> Value:
    """In the graph, as Python finds it: the first of equal ones, and a NaN only where it is the first."""
    ops = tracer.tx.ops
    best, *others = [tracer.float_variable(item) for item in items]
    for other in others:
        better = ops.less(other, best) if relation == "<" else ops.greater(other, best)
        best = ops.where(better, other, best)
    return tracer.array_value(ArrayRef(best, "python", tracer.config.frontends[0].name))


def _best(tracer: Tracer, relation: str, keyed: list[Value], best: int) -> int:
    """The position of the best item; that of all but the last, where it is not negative."""
    first = 1 if best < 0 else len(keyed) - 1
    best = max(best, 0)
    for position in range(first, len(keyed)):
        if tracer.compare(relation, keyed[position], keyed[best]).truth(tracer):
            best = position
    return best


def _is_float(value: Value) -> bool:
    """Whether a value is a Python float: known, from outside, or made by the graph."""
    known = value.is_const or isinstance(value, NumberValue)
    return value.pytype is float and (known or _is_computed_float(value))


def _is_settled(value: Value) -> bool:
    """A number or another constant: what is done with it later is as if it were done now."""
    number = isinstance(value, (NumberValue, SymIntValue))
    return value.is_const or number or (isinstance(value, ArrayValue) and value.ref.kind != "array")


def _whole(value: Value) -> bool:
    return isinstance(value, SymIntValue) or (value.is_const and type(value.const) is int)


@builtin(sum)
def _sum(tracer: Tracer, iterable: Value, /, start: Value | None = None) -> Value:
    total = start if start is not None else ConstValue(0)
    if total.pytype in (str, bytes, bytearray):
        tracer.raise_like(sum, [], total.pytype())
    items: list[Value] = []
    rest = in_turn(tracer, iterable)
    for item in rest:
        items.append(item)
        if not _is_settled(item):
            return _sum_in_turn(tracer, total, items, rest)
    if items and all(i.is_const for i in items) and total.is_const:
        return tracer.wrap_result(tracer.fold(sum, [i.const for i in items], total.const))
    if any(isinstance(i, NumberValue) for i in items) and all(number_operand(v) for v in (total, *items)):
        return python_call(tracer, sum, [TupleValue(items), total])
    return _sum_in_turn(tracer, total, items, iter(()))


def _sum_in_turn(tracer: Tracer, total: Value, items: list[Value], rest: Iterator[Value]) -> Value:
    """Add each item when it was asked for: adding it may run code, and an array may change later."""
    floats = [i for i in items if isinstance(i, ArrayValue) and i.ref.kind == "python"]
    if any(isinstance(i, NumberValue) for i in items) or (floats and len(items) > 2):
        raise Break("unsupported-call", "sum() of Python floats known only at run time (compensated in C)")
    for item in itertools.chain(items, rest):
        if isinstance(item, NumberValue):
            raise Break("unsupported-call", "sum() of Python floats known only at run time")
        total = tracer.binary("+", total, item)
    return total


@builtin(any)
def _any(tracer: Tracer, iterable: Value, /) -> Value:
    return _of_row(tracer, iterable, "reduce_any") or ConstValue(_meets(tracer, iterable, True))


@builtin(all)
def _all(tracer: Tracer, iterable: Value, /) -> Value:
    return _of_row(tracer, iterable, "reduce_all") or ConstValue(not _meets(tracer, iterable, False))


def _of_row(tracer: Tracer, iterable: Value, op: str) -> Value | None:
    """``any`` or ``all`` of an array with one dimension, whose numbers have no other truth than theirs."""
    row = tracer.realize(iterable)
    if not isinstance(row, ArrayValue) or row.ref.kind != "array" or row.ref.ndim != 1:
        return None
    var = row.ref.var
    if var.dtype != bool_:
        var = tracer.builder.emit("convert", var, dtype=bool_)
    return tracer.array_value(ArrayRef(tracer.builder.emit(op, var, axes=(0,)), "python", row.ref.frontend))


def _meets(tracer: Tracer, iterable: Value, wanted: bool) -> bool:
    """Whether an item's truth is ``wanted``; items behind the first such are not asked for."""
    iterator = iterable.iterate(tracer)
    if not can_step(tracer, iterator):
        raise Break("unsupported-operation", f"expansion of {iterator.describe()}")
    for _ in range(LAYERS * tracer.config.options.unroll_ops):
        item = iterator.next(tracer)
        if item is None:
            return False
        if tracer.realize(item).truth(tracer) == wanted:
            return True
    raise Break("unsupported-operation", f"{iterator.describe()} gives too many items")


@builtin(math.prod)
def _prod(tracer: Tracer, iterable: Value, *, start: Value | None = None) -> Value:
    total = start if start is not None else ConstValue(1)
    for item in in_turn(tracer, iterable):
        total = tracer.binary("*", total, item)
    return total


@builtin(functools.reduce)
def _reduce(tracer: Tracer, function: Value, iterable: Value, *initial: Value) -> Value:
    items = in_turn(tracer, iterable)
    total = initial[0] if initial else next(items, None)
    if total is None:
        raise tracer.raise_like(functools.reduce, max, [])
    for item in items:
        total = tracer.call_value(function, [total, item], {})
    return total
