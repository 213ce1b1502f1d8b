"""CuPy's elementwise functions and operators: by NumPy's rules where both compute the same in the same
types. Where they do is a fact of CuPy's kernels and differs for kinds of numbers, so that the list stands
here and not in rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import Unsupported
from ..base import ArrayRef, Rule, TraceContext
from ..numpy import promote
from .cupy_rules import NUMPY, RuleTable, is_own, operand, own, taken
from .library import cupy

TABLE = RuleTable()

# Elementwise functions by the kinds of numbers for which CuPy's give what NumPy's do. (Of floats its ``//``
# and ``%`` round otherwise, and its ``sign`` gives 0 for NaN; of integers its ``power`` and others differ; of
# complex numbers its ``/`` by zero.)
_BY_KINDS = {
    "biufc": "add subtract multiply negative positive absolute square conjugate equal not_equal",
    "biuf": "true_divide less less_equal greater greater_equal maximum minimum fmax fmin floor ceil trunc "
    "rint logical_and logical_or logical_xor logical_not",
    "biu": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift",
    "iu": "floor_divide remainder sign",
    "f": "exp sqrt cbrt exp2 expm1 log log2 log10 log1p power reciprocal fmod fabs sin cos tan arcsin "
    "arccos arctan sinh cosh tanh arcsinh arccosh arctanh arctan2 hypot copysign heaviside deg2rad rad2deg "
    "radians degrees isnan isinf isfinite signbit",
}
_AGREE = {name: kinds for kinds, names in _BY_KINDS.items() for name in names.split()}
_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "pos": "positive",
    "abs": "absolute",
    "invert": "invert",
    "inv": "invert",
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY = ("neg", "pos", "abs", "invert", "inv")
_TYPES = "?bBhHiIlLqQefdFD"
_LETTERS = frozenset(_TYPES + "->")
Loop = tuple[tuple[np.dtype[Any], ...], tuple[np.dtype[Any], ...]]


@lru_cache(maxsize=256)
def _loops(types: tuple[str, ...]) -> tuple[Loop, ...]:
    """CuPy's loops: dtypes of operands, dtypes of results. (Its own letters, as ``E`` for bfloat16, are left
    out: nothing but such an array is cast to these.)"""
    halves = [text.split("->") for text in types if set(text) <= _LETTERS]
    return tuple((tuple(map(np.dtype, ins)), tuple(map(np.dtype, outs))) for ins, outs in halves)


def _casts(kind: promote.Operand, dtype: np.dtype[Any]) -> bool:
    if isinstance(kind, type):  # a Python number
        return bool(np.result_type(dtype, kind(0)) == dtype)
    return bool(np.can_cast(kind, dtype))


def cupys_loop(types: tuple[str, ...], kinds: list[promote.Operand]) -> Loop:
    """The first loop whose operands these can be cast to, as CuPy chooses."""
    for loop in _loops(types):
        if all(_casts(kind, dtype) for kind, dtype in zip(kinds, loop[0])):
            return loop
    raise Unsupported("operands of types that the CuPy function does not take")


def _is_whole(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biu"


def _alike(name: str, mine: np.dtype[Any], theirs: np.dtype[Any]) -> bool:
    """Whether an operand in CuPy's loop counts as in NumPy's."""
    divides = name == "true_divide" and theirs == np.float64  # CuPy's converts integers in the loop
    return mine == theirs or (_is_whole(mine) and (_is_whole(theirs) or divides))


def check_loop(name: str, types: tuple[str, ...], operands: list[Any]) -> None:
    """Refuse operands for which CuPy computes in other types than NumPy, or otherwise."""
    kinds = [promote.operand_type(value) for value in operands]
    ins, outs = cupys_loop(types, kinds)
    ufunc: np.ufunc = getattr(np, name)
    resolved = promote.resolve(ufunc, kinds, [None] * len(outs))
    theirs = resolved[: len(ins)]
    alike = all(_alike(name, a, b) for a, b in zip(ins, theirs))
    if not alike or resolved[len(ins) :] != outs:
        raise Unsupported(f"cupy.{name} of these operands computes in other types than NumPy's")
    if any(dtype.kind not in _AGREE[name] for dtype in ins) and not _is_whole_power(name, operands):
        raise Unsupported(f"cupy.{name} of {ins[0]} differs from NumPy's")


def _is_whole_power(name: str, operands: list[Any]) -> bool:
    """An integer array to a power that is known."""
    if name != "power" or not isinstance(operands[0], ArrayRef) or operands[0].dtype.is_bool:
        return False
    return operands[0].dtype.is_integer and type(operands[1]) is int and operands[1] >= 0


def _ufunc_rule(name: str, ufunc: Any) -> Rule:
    rule = NUMPY.rules.functions[getattr(np, name)]
    types = tuple(ufunc.types)

    def call(tx: TraceContext, *args: Any, out: Any = None) -> Any:
        operands = [operand(value) for value in args[: ufunc.nin]]
        if not any(map(is_own, operands)) or len(args) < ufunc.nin:
            raise Unsupported(f"cupy.{name} without arrays")
        results = [*args[ufunc.nin :], *([] if out is None else [out])]
        if len(results) > 1:
            raise Unsupported(f"cupy.{name} called with {len(args)} positional arguments")
        check_loop(name, types, operands)
        if not results or results[0] is None:
            return taken(tx, rule, *operands)
        return taken(tx, rule, *operands, out=own(results[0]))

    return call


def _operator_rule(name: str, ufunc_name: str, types: tuple[str, ...]) -> Rule:
    rule = NUMPY.rules.operators[name]

    def call(tx: TraceContext, *operands: object) -> Any:
        values = [operand(value) for value in operands]
        check_loop(ufunc_name, types, values)
        return taken(tx, rule, *values)

    return call


def _in_place_rule(name: str, ufunc_name: str, types: tuple[str, ...], plain: Rule) -> Rule:
    rule = NUMPY.rules.operators[name]

    def call(tx: TraceContext, a: object, b: object) -> Any:
        if not is_own(a):
            return plain(tx, a, b)
        check_loop(ufunc_name, types, [a, operand(b)])
        return taken(tx, rule, a, b)

    return call


def _reflected(plain: Rule) -> Rule:
    return lambda tx, a, b: plain(tx, b, a)


def _add_ufuncs() -> None:
    for name in _AGREE:
        ufunc = getattr(cupy, name, None)
        if isinstance(ufunc, cupy.ufunc) and getattr(np, name) in NUMPY.rules.functions:
            TABLE.functions[ufunc] = _ufunc_rule(name, ufunc)


def _add_operators() -> None:
    for name, ufunc_name in _OPERATORS.items():
        types = tuple(getattr(cupy, ufunc_name).types)
        rule = TABLE.operators[name] = _operator_rule(name, ufunc_name, types)
        short = name.strip("_")
        if name in _UNARY:
            continue
        TABLE.methods[f"__{short}__"] = rule
        if name not in _COMPARISONS:
            TABLE.operators[f"i{short}"] = _in_place_rule(f"i{short}", ufunc_name, types, rule)
            TABLE.methods[f"__r{short}__"] = _reflected(rule)


_add_ufuncs()
_add_operators()


# -- products -------------------------------------------------------------------------------------
@TABLE.operator("matmul")
def matmul(tx: TraceContext, a: object, b: object) -> Any:
    return taken(tx, NUMPY.rules.operators["matmul"], own(a), own(b))


@TABLE.function("matmul")
def matmul_function(tx: TraceContext, a: object, b: object) -> Any:
    return taken(tx, NUMPY.rules.functions[np.matmul], own(a), own(b))


# -- choices --------------------------------------------------------------------------------------
_WHERE = tuple(f"{t}{t}->{t}" for t in _TYPES)


@TABLE.function("where")
def where(tx: TraceContext, condition: object, x: object = None, y: object = None) -> Any:
    if x is None or y is None:
        raise Unsupported("positions that depend on data", break_id="data-dependent-shape")
    values = [operand(x), operand(y)]
    _, outs = cupys_loop(_WHERE, [promote.operand_type(value) for value in values])
    made = taken(tx, NUMPY.rules.functions[np.where], own(condition), *values)
    if made.dtype.numpy != outs[0]:
        raise Unsupported("cupy.where of these operands gives another type than NumPy's")
    return made
