"""Elementwise functions that are not ufuncs: where, clip, round, isclose, nan_to_num…"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import is_fortran
from ...prims.table import TABLE as PRIMS
from ...symbolic.integers import SymInt
from ..base import ArrayRef, TraceContext
from . import promote
from .data_dependent import nonzero
from .numpy_rules import RuleTable
from .operands import (
    NO,
    array_of,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    constant,
    convert,
    emit,
    integer,
    is_scalar_constant,
    operand,
    shape_of,
    to_var,
    value_of,
    write,
)
from .reductions import all_
from .routines import chosen
from .traced import Traced
from .ufunc_emit import full_like
from .ufunc_methods import single_out
from .ufuncs import call_ufunc
from .views import in_memory_as, in_memory_of_copy

TABLE = RuleTable()

_CLIP: np.ufunc = np._core.umath.clip  # type: ignore[attr-defined]


@TABLE.function("where")
def where(tx: TraceContext, condition: object, x: object = NO, y: object = NO, /) -> Any:
    """``np.where(condition, x, y)``; with one argument it is ``np.nonzero``."""
    if x is NO and y is NO:
        return nonzero(tx, condition)
    if x is NO or y is NO:
        raise Unsupported("either both or neither of x and y should be given")
    operands = [operand(tx, x), operand(tx, y)]
    dtype = promote.result_dtype(*operands)
    test = to_var(tx, operand(tx, condition), dtypes.bool_)
    shape = broadcast_shapes(test.shape, *map(shape_of, operands))
    ready = [broadcast_to(tx, to_var(tx, v, dtype), shape) for v in operands]
    return array_of(emit(tx, "where", broadcast_to(tx, test, shape), *ready))


def _is_none(value: object) -> bool:
    return value is None or value is NO


@TABLE.function("clip")
def clip(
    tx: TraceContext,
    a: Any,
    a_min: object = NO,
    a_max: object = NO,
    out: Any = None,
    *,
    min: object = NO,
    max: object = NO,
    **kwargs: Any,
) -> Any:
    """``np.clip``: ``minimum(maximum(a, low), high)`` in the common dtype."""
    low = a_min if a_min is not NO else min
    high = a_max if a_max is not NO else max
    if _is_none(low) and _is_none(high):
        return call_ufunc(tx, np.positive, as_ref(tx, a), out=out, **kwargs)
    if _is_none(low):
        return call_ufunc(tx, np.minimum, a, high, out=out, **kwargs)
    if _is_none(high):
        return call_ufunc(tx, np.maximum, a, low, out=out, **kwargs)
    _check_bound(a, low)
    _check_bound(a, high)
    return call_ufunc(tx, _CLIP, a, low, high, out=out, **kwargs)


def _check_bound(a: object, bound: object) -> None:
    """NumPy ignores Python integers beyond the range of an integer array; here they are refused."""
    if isinstance(a, ArrayRef) and a.dtype.is_integer and type(bound) is int:
        info = np.iinfo(a.dtype.numpy)
        if not info.min <= bound <= info.max:
            raise Unsupported(f"clipping {a.dtype} at {bound}")


@TABLE.method("clip")
def clip_method(
    tx: TraceContext,
    x: ArrayRef,
    min: object = None,
    max: object = None,
    out: object = None,
    **kwargs: object,
) -> Any:
    return clip(tx, x, min, max, out, **kwargs)


# -- rounding ---------------------------------------------------------------------------------
@TABLE.function("round", "around")
def round_(tx: TraceContext, a: object, decimals: object = 0, out: object = None) -> ArrayRef:
    """``np.round``: multiply by a power of ten, ``rint``, divide."""
    x = as_ref(tx, a)
    places = int(integer(decimals))
    target = single_out(out)
    if x.dtype.is_complex:
        raise Unsupported("numpy.round of complex numbers")
    if not x.dtype.is_float:
        if not 0 <= places < 2**31 or x.dtype.is_bool:  # NumPy's is a C int
            raise Unsupported(f"numpy.round of {x.dtype} to {places} decimals")
        result = emit(tx, "copy", x.var)
    else:
        result = _round_float(tx, x.var, places)
    if target is not None:
        return write(tx, target, convert(tx, result, target.dtype))
    return value_of(result)


def _round_float(tx: TraceContext, x: Var, places: int) -> Var:
    tx.assume("numpy-errstate")
    if places == 0:
        return emit(tx, "rint", x)
    # NumPy multiplies by the weak Python float 10**|places|
    factor = full_like(tx, x, _power_of_ten(x.dtype, abs(places)))
    first, last = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    rounded = emit(tx, last, emit(tx, "rint", emit(tx, first, x, factor)), factor)
    return rounded if is_fortran(x.shape, x.type.strides) else emit(tx, "contiguous", rounded)


def _power_of_ten(dtype: DType, places: int) -> float:
    with np.errstate(all="ignore"):
        factor = np.asarray(10.0**places if places <= 300 else np.inf).astype(dtype.numpy).item()
    if not np.isfinite(factor):
        raise Unsupported(f"numpy.round of {dtype} to {places} decimals")
    return factor


@TABLE.method("round", "__round__")
def round_method(tx: TraceContext, x: ArrayRef, decimals: object = 0, out: object = None) -> ArrayRef:
    if x.kind == "python":
        raise Unsupported("round of a Python number known at run time only")
    return round_(tx, x, decimals, out)


@TABLE.function("fix")
def fix(tx: TraceContext, x: object, out: object = None) -> Any:
    return call_ufunc(tx, np.trunc, as_ref(tx, x), out=out)


# -- complex numbers --------------------------------------------------------------------------
def real_part(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """``x.real``; of real arrays the array itself. Of complex arrays NumPy gives a view, here it is a
    copy that captured code does not write, and later writes to ``x`` are refused (see ``operands.write``)."""
    if not x.dtype.is_complex:
        return _as_part(tx, x)
    return _part(tx, x, "real")


def _as_part(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """Python's booleans have parts that are integers."""
    if x.kind == "python" and x.dtype.is_bool:
        return ArrayRef(convert(tx, x.var, dtypes.int64), "python")
    return x


def _part(tx: TraceContext, x: ArrayRef, name: str) -> ArrayRef:
    return ArrayRef(
        emit(tx, name, x.var), x.kind, readonly=True, part=(x, name) if x.kind == "array" else None
    )


def imag_part(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """``x.imag``: zeros (read-only) of real arrays; see :func:`real_part`."""
    if x.dtype.is_complex:
        return _part(tx, x, "imag")
    x = _as_part(tx, x)
    zeros = emit(tx, "contiguous", full_like(tx, x.var, 0))
    zeros = in_memory_as(tx, zeros, x.var) if is_fortran(x.shape, x.strides) else emit(tx, "copy", zeros)
    return ArrayRef(zeros, x.kind, readonly=True)


@TABLE.function("real")
def real(tx: TraceContext, val: Any) -> Any:
    if isinstance(val, SymInt) or is_scalar_constant(val):
        return val.real
    return real_part(tx, as_ref(tx, val))


@TABLE.function("imag")
def imag(tx: TraceContext, val: Any) -> Any:
    if isinstance(val, SymInt):
        return 0
    if is_scalar_constant(val):
        return val.imag
    return imag_part(tx, as_ref(tx, val))


@TABLE.method("conj", "conjugate")
def conj_method(tx: TraceContext, x: ArrayRef, out: object = None) -> Any:
    """``x.conj()``: of a real array the array itself."""
    if not x.dtype.is_complex and out is None:
        return x
    return call_ufunc(tx, np.conjugate, x, out=out)


@TABLE.function("angle")
def angle(tx: TraceContext, z: object, deg: bool = False) -> ArrayRef:
    x = Traced(tx, z)
    if x.dtype.is_complex:
        real = value_of(emit(tx, "real", x.var))
        imag: Any = value_of(emit(tx, "imag", x.var))
    else:
        real, imag = x.ref, 0
    result = Traced(tx, call_ufunc(tx, np.arctan2, imag, real))
    return (result * (180 / np.pi)).ref if deg else result.ref


def _is_number(x: object) -> bool:
    return isinstance(x, SymInt) or (is_scalar_constant(x) and not isinstance(x, np.generic))


def _iscomplex_rule(ufunc: np.ufunc) -> Any:
    def rule(tx: TraceContext, x: object) -> ArrayRef:
        if ufunc is np.equal and (isinstance(x, ArrayRef) and x.kind == "python" or _is_number(x)):
            raise Unsupported("numpy.isreal of a Python number, which gives a Python boolean")
        ref = as_ref(tx, x)
        if ufunc is np.not_equal and not ref.dtype.is_complex:
            return value_of(
                emit(tx, "contiguous", broadcast_to(tx, constant(tx, False, dtypes.bool_), ref.shape))
            )
        return call_ufunc(tx, ufunc, imag_part(tx, ref), 0)

    return rule


TABLE.function("isreal")(_iscomplex_rule(np.equal))
TABLE.function("iscomplex")(_iscomplex_rule(np.not_equal))


# -- special values ---------------------------------------------------------------------------
@TABLE.function("nan_to_num")
def nan_to_num(
    tx: TraceContext,
    x: object,
    copy: bool = True,
    nan: object = 0.0,
    posinf: object = None,
    neginf: object = None,
) -> ArrayRef:
    ref = as_ref(tx, x)
    if ref.dtype.is_complex:
        raise Unsupported("numpy.nan_to_num of complex numbers")
    if not ref.dtype.is_float:
        result = emit(tx, "copy", ref.var)
    else:
        result = in_memory_of_copy(tx, _replace_special(tx, ref.var, nan, posinf, neginf), ref.var)
    if not copy:
        return write(tx, ref, result)
    return value_of(result)


def _replace_special(tx: TraceContext, x: Var, nan: object, posinf: object, neginf: object) -> Var:
    info = np.finfo(x.dtype.numpy)
    high = info.max.item() if posinf is None else posinf
    low = info.min.item() if neginf is None else neginf

    def spread(value: object) -> Var:
        return broadcast_to(tx, to_var(tx, operand(tx, value), x.dtype), x.shape)

    missing = emit(tx, "isnan", x)
    infinite = emit(tx, "isinf", x)
    negative = emit(tx, "signbit", x)
    replaced = emit(tx, "where", negative, spread(low), spread(high))
    result = emit(tx, "where", infinite, replaced, x)
    return emit(tx, "where", missing, spread(nan), result)


def _infinite_rule(negative: bool) -> Any:
    def rule(tx: TraceContext, x: object, out: object = None) -> Any:
        ref = as_ref(tx, x)
        if ref.dtype.is_complex:
            raise Unsupported("isposinf of complex numbers")
        sign = call_ufunc(tx, np.signbit, ref)
        if not negative:
            sign = call_ufunc(tx, np.logical_not, sign)
        return call_ufunc(tx, np.logical_and, call_ufunc(tx, np.isinf, ref), sign, out=out)

    return rule


TABLE.function("isposinf")(_infinite_rule(False))
TABLE.function("isneginf")(_infinite_rule(True))


# -- comparison of arrays ---------------------------------------------------------------------
@TABLE.function("isclose")
def isclose(
    tx: TraceContext,
    a: object,
    b: object,
    rtol: object = 1.0e-5,
    atol: object = 1.0e-8,
    equal_nan: bool = False,
) -> ArrayRef:
    x = Traced(tx, a)
    y = _inexact(tx, Traced(tx, b))
    finite = y.call(np.isfinite)
    near = abs(x - y) <= (atol + rtol * abs(y))
    result = (near & finite) | (x == y)
    if equal_nan:
        result = result | (x.call(np.isnan) & y.call(np.isnan))
    return result.ref


def _inexact(tx: TraceContext, y: Traced) -> Traced:
    dtype = promote.from_np(np.result_type(y.dtype.numpy, 1.0))
    return Traced(tx, ArrayRef(convert(tx, y.var, dtype), y.ref.kind))


@TABLE.function("allclose")
def allclose(
    tx: TraceContext,
    a: object,
    b: object,
    rtol: object = 1.0e-5,
    atol: object = 1.0e-8,
    equal_nan: bool = False,
) -> ArrayRef:
    close = all_(tx, isclose(tx, a, b, rtol, atol, equal_nan))
    return ArrayRef(close.var, "python")


@TABLE.function("array_equal")
def array_equal(tx: TraceContext, a1: object, a2: object, equal_nan: bool = False) -> Any:
    x, y = Traced(tx, a1), Traced(tx, a2)
    if x.ndim != y.ndim or not all(m == n for m, n in zip(x.shape, y.shape)):
        return False
    same = x == y
    if equal_nan:
        same = same | (x.call(np.isnan) & y.call(np.isnan))
    return ArrayRef(all_(tx, same.ref).var, "python")


@TABLE.function("array_equiv")
def array_equiv(tx: TraceContext, a1: object, a2: object) -> Any:
    x, y = Traced(tx, a1), Traced(tx, a2)
    try:
        broadcast_shapes(x.shape, y.shape)
    except Unsupported:
        return False
    return ArrayRef(all_(tx, (x == y).ref).var, "python")


# -- choices ----------------------------------------------------------------------------------
@TABLE.function("select")
def select(tx: TraceContext, condlist: Any, choicelist: Any, default: Any = 0) -> ArrayRef:
    if not isinstance(condlist, (list, tuple)) or len(condlist) != len(choicelist) or not condlist:
        raise Unsupported("list of cases must be same length as list of conditions")
    conditions = [as_ref(tx, c) for c in condlist]
    if any(not c.dtype.is_bool for c in conditions):
        raise Unsupported("numpy.select with conditions that are not boolean")
    choices = [operand(tx, c) for c in (*choicelist, default)]
    if any(isinstance(c, int) and not -(2**63) <= c < 2**63 for c in choices):
        raise Unsupported("numpy.select of integers that are objects to NumPy")
    dtype = promote.result_dtype(*choices)
    refs = [to_var(tx, c, dtype) for c in choices]
    shape = broadcast_shapes(*(c.shape for c in conditions), *(r.shape for r in refs))
    result = broadcast_to(tx, refs[-1], shape)
    for condition, choice in zip(conditions[::-1], refs[-2::-1]):
        test = broadcast_to(tx, condition.var, shape)
        result = emit(tx, "where", test, broadcast_to(tx, choice, shape), result)
    return array_of(emit(tx, "contiguous", result))


@TABLE.function("choose")
def choose(tx: TraceContext, a: object, choices: object, out: object = None, mode: str = "raise") -> ArrayRef:
    """``np.choose`` from a list of arrays; for ``mode="raise"``, which checks every index, by NumPy."""
    if out is not None or not isinstance(choices, (list, tuple)):
        raise Unsupported("numpy.choose from one array, or with out=")
    weak = [isinstance(c, (int, float, complex)) or getattr(c, "kind", "") == "python" for c in choices]
    if any(weak) and not all(weak):
        raise Unsupported("numpy.choose among arrays and Python numbers, whose types are weak")
    refs = [as_ref(tx, c) for c in choices]
    if mode == "raise":
        return chosen(tx, as_ref(tx, a), refs)
    index = Traced(tx, a)
    count = len(refs)
    index = index % count if mode == "wrap" else Traced(tx, clip(tx, index.ref, 0, count - 1))
    dtype = promote.from_np(np.result_type(*(r.dtype.numpy for r in refs)))
    shape = broadcast_shapes(index.shape, *(r.shape for r in refs))
    result = broadcast_to(tx, convert(tx, refs[-1].var, dtype), shape)
    for number in reversed(range(count - 1)):
        test = broadcast_to(tx, (index == number).var, shape)
        choice = broadcast_to(tx, convert(tx, refs[number].var, dtype), shape)
        result = emit(tx, "where", test, choice, result)
    return value_of(emit(tx, "contiguous", result))


@TABLE.function("copyto")
def copyto(
    tx: TraceContext, dst: object, src: object, casting: str = "same_kind", where: object = True
) -> None:
    if not isinstance(dst, ArrayRef):
        raise Unsupported("copyto() argument 1 must be a numpy.ndarray")
    call_ufunc(tx, np.positive, _positive_source(tx, src, dst.dtype, casting), out=dst, where=where)


def _positive_source(tx: TraceContext, src: object, dtype: DType, casting: str) -> ArrayRef:
    value = operand(tx, src)
    kind = promote.operand_type(value)
    source = promote.promote(kind, dtype.numpy) if isinstance(kind, type) else kind
    if not promote.can_cast(promote.from_np(source), dtype, casting) or dtype.is_bool:
        raise Unsupported(f"Cannot cast array data to {dtype} according to the rule {casting!r}")
    return value_of(to_var(tx, value, dtype))


@TABLE.function("putmask")
def putmask(tx: TraceContext, a: object, mask: object, values: object) -> None:
    value = as_ref(tx, values)
    if not isinstance(a, ArrayRef) or (value.ndim and value.shape != a.shape):
        raise Unsupported("numpy.putmask with values that are repeated")
    _check_safe(value, a)
    test = to_var(tx, operand(tx, mask), dtypes.bool_)
    if len(test.shape) != a.ndim or not all(m == n for m, n in zip(test.shape, a.shape)):
        raise Unsupported("putmask: mask and data must be the same size")
    ready = broadcast_to(tx, to_var(tx, operand(tx, values), a.dtype), a.shape)
    write(tx, a, emit(tx, "where", test, ready, a.var))


def _check_safe(values: ArrayRef, target: ArrayRef) -> None:
    if values.kind == "array" and not promote.can_cast(values.dtype, target.dtype, "safe"):
        raise Unsupported(f"Cannot cast array data from {values.dtype} to {target.dtype} safely")


@TABLE.function("place")
def place(tx: TraceContext, arr: object, mask: object, vals: object) -> None:
    value = as_ref(tx, vals)
    if not isinstance(arr, ArrayRef) or any(n != 1 for n in value.shape):
        raise Unsupported("numpy.place of several values, or into what is no array")
    _check_safe(value, arr)
    if not promote.can_cast(value.dtype, arr.dtype, "same_kind"):
        raise Unsupported("numpy.place that converts to another kind of number")
    putmask(tx, arr, mask, value_of(emit(tx, "reshape", value.var, shape=())) if value.shape else vals)


# -- functions that NumPy writes in Python ----------------------------------------------------
def _of_floats(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, x: Any) -> ArrayRef:
        """What is no float becomes float64; the result is an array, of no dimensions for a number."""
        value = Traced(tx, x)
        if value.dtype.is_complex:
            raise Unsupported(f"numpy.{op} of complex numbers")
        dtype = value.dtype if value.dtype.is_float else dtypes.float64
        wide = dtype if dtype in PRIMS[op].dtypes else dtypes.float32
        return array_of(convert(tx, emit(tx, op, convert(tx, value.var, wide)), dtype))

    return rule


for _row in PRIMS.values():
    for _path in _row.names_in("numpy"):
        TABLE.function(_path)(_of_floats(_row.name))


# -- waves ------------------------------------------------------------------------------------
@TABLE.function("sinc")
def sinc(tx: TraceContext, x: object) -> ArrayRef:
    value = Traced(tx, x)
    if not value.dtype.is_inexact:
        value = Traced(tx, value_of(convert(tx, value.var, dtypes.float64)))
    scaled = value * np.pi
    tiny = np.finfo(value.dtype.numpy).eps.item()
    nonzero = Traced(tx, where(tx, (scaled == 0).ref, tiny, scaled.ref))
    result = nonzero.call(np.sin) / nonzero
    return value_of(result.var)
