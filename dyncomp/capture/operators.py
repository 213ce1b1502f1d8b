"""Binary and unary operators over traced values."""

from __future__ import annotations

import enum
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..device import CPU
from ..dtypes import float64
from ..frontends.base import ArrayRef, Called, libraries_of
from ..frontends.known import known_array
from ..graph.ir import Var
from .breaks import Break
from .calls.float_calls import complex_operator, float_operator, is_exact
from .calls.folding import text_operator
from .immutable import methods as frozen
from .mappings import container_operator
from .methods.table import one_by_one
from .objects.derived import leaves_to_array
from .objects.identity import identical
from .objects.object_operators import BINARY_NAMES, COMPARISONS, has_own_operator, special_method
from .sizes.unbacked import is_whole_number, item
from .values.array import ArrayValue
from .values.base import OpaqueValue, Tracer, Value
from .values.derived import DerivedValue
from .values.number import (
    ConstValue,
    NumberValue,
    SymIntValue,
    binary_number,
    number_operand,
    unary_number,
)
from .values.obj import InstanceValue
from .values.ordering import ComparedValue
from .values.seq import ListValue, TupleValue, spread
from .values.steady import Steady

UNARY_NAMES = {"-": "neg", "+": "pos", "~": "invert"}
_MISSING = object()


def array_operator(tracer: Tracer, name: str, values: list[Value]) -> Value:
    """Emit an operator through the frontend of its array operands."""
    values = [_known_number(tracer, v, values) for v in values]
    arrays = [v for v in values if isinstance(v, ArrayValue)]
    proper = [v for v in arrays if v.ref.kind != "python"]
    if not proper:
        return _number_from_array(tracer, name, values)
    names = sorted(libraries_of([v.ref for v in proper]))
    if len(names) > 1:
        scalars = [v for v in proper if v.ref.frontend == "numpy"]
        if not tracer.decisions.among_tensors and all(v.ref.kind == "scalar" and v.source for v in scalars):
            tracer.decisions.among_tensors = True
            raise tracer.restart
        raise Break("unsupported-operation", f"{name} of arrays of {' and '.join(names)}")
    frontend = tracer.config.frontend_named(names[0])
    rule = frontend.find_operator(name)
    if rule is None:
        raise Break("unsupported-operation", f"operator {name} on {proper[0].describe()}")
    return tracer.apply_rule(rule, values, {}, f"operator {name}", frontend, Called("operator", name))


def _known_number(tracer: Tracer, value: Value, values: list[Value]) -> Value:
    """The number that a scalar of NumPy (``np.sqrt(width)``) is known to be, beside others' arrays."""
    if not isinstance(value, ArrayValue) or value.ref.kind != "scalar" or value.ref.dtype != float64:
        return value
    others = (v.ref for v in values if isinstance(v, ArrayValue) and v is not value)
    if all(ref.frontend == value.ref.frontend or ref.kind != "array" for ref in others):
        return value
    known = known_array(tracer.builder, value.ref.var)
    return value if known is None else ConstValue(np.float64(known))


# operators on floats that never raise, by their prim
_TOTAL_ON_FLOATS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "lt": "less",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "abs": "abs",
}


def _number_from_array(tracer: Tracer, name: str, values: list[Value]) -> Value:
    """Python floats that the graph computes (``float(x.sum())``) stay in the graph where the operator is
    total, as Python's float arithmetic is float64's."""
    if all(is_whole_number(v) or _is_int(v) for v in values):
        return _whole_numbers(tracer, name, values)
    prim = _TOTAL_ON_FLOATS.get(name)
    if prim is not None and all(v.pytype is float or is_exact(v) for v in values):
        ops = tracer.tx.ops
        operands = [float_variable(tracer, v) for v in values]
        var = getattr(ops, prim)(*operands)
        return tracer.wrap_result(ArrayRef(var, "python", tracer.config.frontends[0].name))
    found = float_operator(tracer, name, values)
    if found is None and any(v.pytype is complex for v in values):
        found = _complex_numbers(tracer, name, values)
    if found is not None:
        return found
    raise Break("data-dependent-value", f"{name} of Python numbers that come from an array")


# operators on complex numbers that never raise
_TOTAL_ON_COMPLEX = ("add", "sub", "mul", "eq", "ne", "neg")


def _complex_numbers(tracer: Tracer, name: str, values: list[Value]) -> Value | None:
    """Python makes complex numbers of the other operands first, and multiplies as NumPy does."""
    if not all(v.pytype in (float, complex) or is_exact(v) for v in values):
        return None
    operands = [_complex_variable(tracer, v) for v in values]
    if name not in _TOTAL_ON_COMPLEX:
        return complex_operator(tracer, name, operands)
    var = getattr(tracer.tx.ops, _TOTAL_ON_FLOATS[name])(*operands)
    return tracer.wrap_result(ArrayRef(var, "python", tracer.config.frontends[0].name))


def _complex_variable(tracer: Tracer, value: Value) -> Var:
    ops = tracer.tx.ops
    if value.is_const:
        found: Var = ops.full(shape=(), value=complex(value.const), dtype=dtypes.complex128, device=CPU)
        return found
    ref: ArrayRef = value.for_rule(tracer)
    return ref.var if ref.dtype == dtypes.complex128 else ops.convert(ref.var, dtype=dtypes.complex128)


def _is_int(value: Value) -> bool:
    return isinstance(value, SymIntValue) or (value.is_const and type(value.const) is int)


def _whole_numbers(tracer: Tracer, name: str, values: list[Value]) -> Value:
    """Python ints of which some come from arrays: those are symbols from here on."""
    ready = [item(tracer, v) if isinstance(v, ArrayValue) else v for v in values]
    if name == "abs":
        return tracer.wrap_result(abs(ready[0].for_rule(tracer)))
    names = UNARY_NAMES if len(values) == 1 else BINARY_NAMES
    spelling = next(s for s, n in names.items() if n == name)
    return unary(tracer, spelling, ready[0]) if len(values) == 1 else binary(tracer, spelling, *ready)


def float_variable(tracer: Tracer, value: Value) -> Var:
    """A Python float, or constant int, in the graph."""
    if value.is_const:
        number = float(value.const)
        found: Var = tracer.tx.ops.full(shape=(), value=number, dtype=dtypes.float64, device=CPU)
        return found
    ref: ArrayRef = value.for_rule(tracer)
    return ref.var


def binary(tracer: Tracer, op: str, a: Value, b: Value) -> Value:
    """``a op b`` where ``op`` is spelled as in Python, in-place forms included."""
    plain = op[:-1] if op.endswith("=") and op not in COMPARISONS else op
    if isinstance(b, ArrayValue) and leaves_to_array(tracer, a, BINARY_NAMES[plain].rstrip("_")):
        return _with_array(tracer, op, plain, a, b)
    if has_own_operator(tracer, plain, a) or (
        not isinstance(a, ArrayValue) and has_own_operator(tracer, plain, b)
    ):
        return special_method(tracer, op, plain, a, b)
    formatted = text_operator(tracer, plain, a, b) if plain == "%" and a.pytype is str else None
    if formatted is not None:
        return formatted
    if isinstance(a, ArrayValue) or isinstance(b, ArrayValue):
        if isinstance(b, ArrayValue) and b.ref.kind == "scalar" and a.pytype is complex:
            if b.ref.dtype == dtypes.float64:
                # CPython takes it for the float that it is: its own complex number, no complex128
                b = tracer.array_value(ArrayRef(b.ref.var, "python", b.ref.frontend))
        return _with_array(tracer, op, plain, a, b)
    if number_operand(a) and number_operand(b) and not (a.is_const and b.is_const):
        return binary_number(tracer, plain, a, b)
    text = text_operator(tracer, plain, a, b)
    if text is not None:
        return text
    if isinstance(a, ComparedValue):
        found = a.compared(tracer, op, b)
    else:
        found = frozen.operation(tracer, getattr(operator, BINARY_NAMES[plain]), [a, b])
    if found is not None:
        return found
    if isinstance(a, (ListValue, TupleValue)) or isinstance(b, (ListValue, TupleValue)):
        found = _sequences(tracer, op, plain, spread(a), spread(b))
        if found is not None:
            return found
    found = container_operator(tracer, op, plain, a, b)
    if found is not None:
        return found
    if plain in ("==", "!=") and not (a.is_const and b.is_const):
        return _compare_unlike(tracer, plain, a, b)
    if a.is_const and b.is_const:
        function = getattr(
            operator, BINARY_NAMES[plain] if op == plain else f"i{BINARY_NAMES[plain].rstrip('_')}"
        )
        if plain in ("==", "!="):
            return ConstValue(bool(tracer.fold(function, a.const, b.const)))
        if plain == "|" and _in_unions(a.const) and _in_unions(b.const):
            return ConstValue(tracer.fold(function, a.const, b.const))
        return tracer.wrap_result(tracer.fold(function, _immutable(a), _immutable(b)))
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def _in_unions(constant: object) -> bool:
    """Whether ``|`` of such constants makes a union of types: no metaclass has an operator of its own."""
    meta: Any = type(constant)
    if isinstance(constant, type):
        return meta.__or__ is type.__or__ and meta.__ror__ is type.__ror__
    return constant is None or meta in (types.UnionType, types.GenericAlias)


def _immutable(value: Value) -> Any:
    constant = value.const
    if type(constant) in (type, types.GenericAlias, types.UnionType, enum.EnumMeta):
        return constant  # unions of types
    if isinstance(constant, type) or callable(constant):
        raise Break("unsupported-operation", f"an operator on {value.describe()}")
    return constant


def _refuse_repetition(count: Value, repeated: Value) -> None:
    """A NumPy scalar times a Python sequence repeats the sequence."""
    if isinstance(count, ArrayValue) and count.ref.kind in ("scalar", "python"):
        if hasattr(repeated.pytype, "__len__") and not isinstance(repeated, ArrayValue):
            raise Break("data-dependent-value", f"a repeat count that is {count.describe()}")


def _with_array(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value:
    for v in (a, b):
        if v.is_const and v.const is None and plain in ("==", "!="):
            raise Break("unsupported-operation", "comparison of an array with None")
    if plain == "*":
        _refuse_repetition(a, b)
        _refuse_repetition(b, a)
    in_place = op != plain and isinstance(a, ArrayValue) and a.ref.kind in ("array", "masked")
    name = BINARY_NAMES[plain].rstrip("_")
    if in_place:
        tracer.operator(f"i{name}", [a, b])
        return a
    return tracer.operator(BINARY_NAMES[plain], [a, b])


def _sequences(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value | None:
    if isinstance(a, ListValue) and op == "+=":
        for item in one_by_one(tracer, b):
            a.append(tracer, tracer.realize(item))
        return a
    if isinstance(a, ListValue) and op == "*=":
        repeated = a.items(tracer) * tracer.integer_of(b, "a repeat count")
        items = a.contents(tracer)
        a.touch(tracer)
        items[:] = repeated
        return a
    same = isinstance(a, (ListValue, TupleValue)) and type(a) is type(b)
    if plain == "+" and same:
        assert isinstance(a, (ListValue, TupleValue))
        if a.pytype is tuple and b.pytype is tuple:
            if not b.items(tracer):
                return a
            if not a.items(tracer):
                return b
        kind = b if isinstance(b, TupleValue) and b.keeps_class else a
        return kind.rebuild(a.items(tracer) + b.items(tracer))
    if plain == "*":
        sequence, count = (a, b) if isinstance(a, (ListValue, TupleValue)) else (b, a)
        if isinstance(sequence, (ListValue, TupleValue)):
            times = tracer.integer_of(count, "a repeat count")
            if times == 1 and sequence.pytype is tuple:
                return sequence
            return sequence.rebuild(sequence.items(tracer) * times)
    if plain in ("==", "!=") and same:
        return ConstValue(_equal_items(tracer, a, b) == (plain == "=="))
    if plain in COMPARISONS and same:
        return _ordered_items(tracer, plain, a, b)
    return None


def _equal_items(tracer: Tracer, a: Value, b: Value) -> bool:
    first, second = a.items(tracer), b.items(tracer)
    if len(first) != len(second):
        return False
    steady = Steady(tracer, a, b)
    return all(steady.same_or_equal(tracer, x, y) for x, y in zip(first, second))


def _ordered_items(tracer: Tracer, op: str, a: Value, b: Value) -> Value:
    first, second = a.items(tracer), b.items(tracer)
    steady = Steady(tracer, a, b)
    for x, y in zip(first, second):
        if not steady.same_or_equal(tracer, x, y):
            return tracer.compare(op, x, y)  # whatever a method returns
    comparison: Callable[[int, int], bool] = getattr(operator, BINARY_NAMES[op])
    return ConstValue(comparison(len(first), len(second)))


def _compares_by_identity(cls: type) -> bool:
    return cls.__eq__ is object.__eq__ and cls.__ne__ is object.__ne__


def _compare_unlike(tracer: Tracer, op: str, a: Value, b: Value) -> Value:
    """Equality of values of unlike kinds whose types settle it."""
    settled = (
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        type(None),
        tuple,
        list,
        dict,
        range,
        slice,
        set,
        frozenset,
        types.FunctionType,
        types.MethodType,
        types.BuiltinFunctionType,
        types.ModuleType,
    )
    if a.pytype in settled and b.pytype in settled:
        numbers, sets = (int, float, complex, bool), (set, frozenset)
        alike = (a.pytype in numbers and b.pytype in numbers) or (a.pytype in sets and b.pytype in sets)
        if a.pytype is not b.pytype and not alike:
            return ConstValue(op == "!=")
    if _compares_by_identity(a.pytype) and _compares_by_identity(b.pytype):
        return ConstValue(identical(tracer, a, b) == (op == "=="))
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def unary(tracer: Tracer, op: str, a: Value) -> Value:
    """``-a``, ``+a``, ``~a``."""
    if isinstance(a, ArrayValue):
        return tracer.operator(UNARY_NAMES[op], [a])
    if isinstance(a, (SymIntValue, NumberValue)):
        return unary_number(tracer, op, a)
    if isinstance(a, InstanceValue):
        method = a.special(tracer, f"__{UNARY_NAMES[op]}__")
        if method is not None:
            return tracer.realize(tracer.call_value(method, [], {}))
        if isinstance(a, DerivedValue) and a.is_native(tracer, f"__{UNARY_NAMES[op]}__"):
            return unary(tracer, op, a.operand(tracer))
    found = frozen.operation(tracer, getattr(operator, UNARY_NAMES[op]), [a])
    if found is not None:
        return found
    plain = a.is_const and type(a.const) in (int, float, complex, bool)
    if plain or (a.is_const and isinstance(a.const, enum.Flag)):
        return ConstValue(tracer.fold(getattr(operator, UNARY_NAMES[op]), a.const))
    raise Break("unsupported-operation", f"unary {op} of {a.describe()}")


def same_or_equal(tracer: Tracer, a: Value, b: Value) -> bool:
    """``a is b or a == b``: how containers find their items."""
    a, b = tracer.realize(a), tracer.realize(b)
    if a is b:
        return True
    if a.is_const and b.is_const and type(a.const) is float and a.const != a.const:
        return identical(tracer, a, b)  # not a number: equal to nothing, and yet itself
    if isinstance(a, OpaqueValue) and isinstance(b, OpaqueValue) and a.obj is b.obj:
        raise Break("opaque-object", f"whether two references to {a.describe()} are one")
    found: Value = tracer.compare("==", a, b)
    return found.truth(tracer)
