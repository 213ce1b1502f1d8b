"""Python's operators on arrays, NumPy scalars and run-time Python scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...symbolic.integers import SymInt
from ..base import ArrayRef, TraceContext
from .numpy_rules import RuleTable
from .operands import constant, convert, emit, is_scalar_constant, operand, symbolic
from .ufuncs import call_ufunc

TABLE = RuleTable()

_BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
_COMPARE: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNARY: dict[str, np.ufunc] = {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
    "inv": np.invert,
}


def _is_python(value: object) -> bool:
    """A value that plain Python computes with: not an array, not a NumPy scalar."""
    if isinstance(value, ArrayRef):
        return value.kind == "python"
    return isinstance(value, SymInt) or type(value) in (bool, int, float, complex)


def _checked(value: object) -> Any:
    """An operand, refusing what NumPy's operators would hand to the other operand's type."""
    if isinstance(value, (ArrayRef, SymInt)) or is_scalar_constant(value):
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        return value
    raise Unsupported(f"an operator between an array and a {type(value).__name__}")


def _binary_rule(name: str, ufunc: np.ufunc) -> Any:
    def rule(tx: TraceContext, a: object, b: object) -> Any:
        if _is_python(a) and _is_python(b):
            return _python_binary(tx, name, a, b)
        x, y = _checked(a), _checked(b)
        short = _power_by_number(tx, x, y) if name == "pow" else None
        return short if short is not None else call_ufunc(tx, ufunc, x, y)

    return rule


def _in_place_rule(name: str, ufunc: np.ufunc, plain: Callable[..., Any]) -> Any:
    def rule(tx: TraceContext, a: Any, b: Any) -> Any:
        if not isinstance(a, ArrayRef) or a.kind != "array":
            return plain(tx, a, b)
        if name == "pow" and a.dtype.is_bool:
            raise Unsupported("an in-place power of booleans")
        return call_ufunc(tx, ufunc, a, _checked(b), out=a)

    return rule


def _power_by_number(tx: TraceContext, x: object, y: object) -> Any:
    """``array ** 2`` is ``np.square(array)``, which differs from ``np.power`` for booleans."""
    if isinstance(x, ArrayRef) and x.kind == "array" and type(y) in (int, float) and y == 2:
        if type(y) is int or x.dtype.is_inexact:
            return call_ufunc(tx, np.square, x)
    return None


def _compare_rule(name: str, ufunc: np.ufunc) -> Any:
    def rule(tx: TraceContext, a: object, b: object) -> Any:
        if _is_python(a) and _is_python(b):
            return _python_compare(tx, ufunc, a, b)
        return call_ufunc(tx, ufunc, _checked(a), _checked(b))

    return rule


def _unary_rule(name: str, ufunc: np.ufunc) -> Any:
    def rule(tx: TraceContext, a: object) -> Any:
        if _is_python(a):
            return _python_unary(tx, name, a)
        return call_ufunc(tx, ufunc, a)

    return rule


for _name, _ufunc in _BINARY.items():
    _rule = _binary_rule(_name, _ufunc)
    _in_place = _in_place_rule(_name, _ufunc, _rule)
    _plain_name = _name.strip("_")
    TABLE.operators[_name] = _rule
    TABLE.operators["i" + _plain_name] = _in_place
    TABLE.methods[f"__{_plain_name}__"] = _rule
    TABLE.methods[f"__i{_plain_name}__"] = _in_place
for _name, _ufunc in _COMPARE.items():
    TABLE.operators[_name] = _compare_rule(_name, _ufunc)
    TABLE.methods[f"__{_name}__"] = TABLE.operators[_name]
for _name in _UNARY:
    TABLE.operators[_name] = _unary_rule(_name, _UNARY[_name])
    TABLE.methods[f"__{_name}__"] = TABLE.operators[_name]


@TABLE.operator("divmod")
def divmod_(tx: TraceContext, a: object, b: object) -> Any:
    """``divmod(a, b)``."""
    if _is_python(a) and _is_python(b):
        raise Unsupported("divmod of Python numbers known at run time only")
    return call_ufunc(tx, np.divmod, _checked(a), _checked(b))


def _reflected(name: str) -> Any:
    plain = TABLE.operators[name]

    def rule(tx: TraceContext, a: object, b: object) -> Any:
        return plain(tx, b, a)

    return rule


for _name in _BINARY:
    TABLE.methods[f"__r{_name.strip('_')}__"] = _reflected(_name)


@TABLE.operator("contains")
def contains(tx: TraceContext, a: object, value: object) -> ArrayRef:
    """``value in array``: whether any element is equal."""
    found = call_ufunc(tx, np.equal, a, operand(tx, value))
    axes = tuple(range(found.ndim))
    var = emit(tx, "reduce_any", found.var, axes=axes) if axes else found.var
    return ArrayRef(var, "python")


# -- Python scalars whose value is known at run time only --------------------------------------
# They follow Python's rules. What could raise (division by zero, overflow of power) or leave int64
# is not captured.
def _python_ref(tx: TraceContext, value: object) -> ArrayRef:
    if isinstance(value, ArrayRef):
        return value
    if isinstance(value, SymInt):
        return ArrayRef(symbolic(tx, value, dtypes.int64), "python")
    dtype = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
    return ArrayRef(constant(tx, value, dtype[type(value)]), "python")


def _python_binary(tx: TraceContext, name: str, a: object, b: object) -> ArrayRef:
    x, y = _python_ref(tx, a), _python_ref(tx, b)
    if x.dtype.is_bool and y.dtype.is_bool and name in ("and_", "or_", "xor"):
        return _python_result(
            tx, {"and_": "logical_and", "or_": "logical_or", "xor": "logical_xor"}[name], x, y
        )
    if not (x.dtype.is_inexact or y.dtype.is_inexact):
        raise Unsupported("arithmetic on Python integers known at run time only may leave 64 bits")
    op = {"add": "add", "sub": "subtract", "mul": "multiply"}.get(name)
    if op is None or x.dtype.is_complex or y.dtype.is_complex:
        raise Unsupported(f"Python's {name} on numbers known at run time only may raise")
    return _python_result(tx, op, _as_float(tx, x), _as_float(tx, y))


def _python_result(tx: TraceContext, op: str, *refs: ArrayRef) -> ArrayRef:
    return ArrayRef(emit(tx, op, *(r.var for r in refs)), "python")


def _as_float(tx: TraceContext, ref: ArrayRef) -> ArrayRef:
    if ref.dtype.is_integer:
        raise Unsupported("a Python integer known at run time only, mixed with a float")
    return ArrayRef(convert(tx, ref.var, dtypes.float64), "python")


def _python_compare(tx: TraceContext, ufunc: np.ufunc, a: object, b: object) -> ArrayRef:
    x, y = _python_ref(tx, a), _python_ref(tx, b)
    if x.dtype != y.dtype:
        if dtypes.int64 in (x.dtype, y.dtype):
            raise Unsupported("comparing a Python integer with a float, exactly")
        common = dtypes.complex128 if dtypes.complex128 in (x.dtype, y.dtype) else dtypes.float64
        x = ArrayRef(convert(tx, x.var, common))
        y = ArrayRef(convert(tx, y.var, common))
    if x.dtype.is_complex and ufunc not in (np.equal, np.not_equal):
        raise Unsupported("ordering of complex numbers")
    return _python_result(tx, ufunc.__name__, x, y)


def _python_unary(tx: TraceContext, name: str, a: object) -> ArrayRef:
    x = _python_ref(tx, a)
    if name == "pos" and not x.dtype.is_bool:
        return x
    if x.dtype.is_float and name in ("neg", "abs"):
        return _python_result(tx, {"neg": "negative", "abs": "abs"}[name], x)
    raise Unsupported(f"Python's {name} on a {x.dtype} known at run time only")
