"""Order statistics and covariances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import SymInt, product
from ..base import ArrayRef, TraceContext
from . import promote
from .diagonals import diagonal
from .join import concatenate
from .linalg import dot
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    as_ref,
    broadcast_to,
    constant,
    convert,
    emit,
    given,
    integer,
    normalize_axes,
    to_var,
    value_of,
)
from .reductions import mean
from .traced import Traced
from .ufunc_methods import deliver, keep_dims, single_out
from .views import reshape_var, slice_axis, transpose_var

TABLE = RuleTable()

# Whether NumPy keeps a Python number that says which quantile in double precision also for an array of single
# precision: newer releases do (and round the weight), older ones round the number itself.
_KEEPS_DOUBLE: bool = np.quantile(np.array([0] * 2 + [1] * 10, np.float32), 0.1) == np.float32(0.1)


def gathered_last(tx: TraceContext, x: Var, axes: tuple[int, ...]) -> Var:
    """The axes joined into one, the last; NumPy's way of reducing over several at once."""
    rest = [i for i in range(x.ndim) if i not in axes]
    moved = transpose_var(tx, x, [*rest, *axes])
    return reshape_var(tx, moved, (*(x.shape[i] for i in rest), product(x.shape[i] for i in axes)))


def _element(tx: TraceContext, ordered: Var, place: Any) -> Traced:
    part = slice_axis(tx, ordered, ordered.ndim - 1, place, 1)
    return Traced(tx, value_of(emit(tx, "reshape", part, shape=part.shape[:-1])))


def _ordered(tx: TraceContext, x: ArrayRef, axes: tuple[int, ...]) -> Var:
    line = gathered_last(tx, x.var, axes)
    if line.shape[-1] == 0:
        raise Unsupported("an order statistic of no elements")
    return emit(tx, "sort", line, axis=line.ndim - 1, kind="quicksort")


def _nan_where_missing(tx: TraceContext, ordered: Var, result: Traced) -> Var:
    """NaN where any element is NaN: sorting puts it last."""
    if not ordered.dtype.is_inexact:
        return result.var
    missing = _element(tx, ordered, ordered.shape[-1] - 1).call(np.isnan)
    nan = broadcast_to(tx, constant(tx, math.nan, result.dtype), result.shape)
    return emit(tx, "where", missing.var, nan, result.var)


def _finish(
    tx: TraceContext, var: Var, x: ArrayRef, axes: tuple[int, ...], keepdims: object, out: object
) -> ArrayRef:
    if given(keepdims) and keepdims:
        var = keep_dims(tx, var, x.shape, axes)
    return deliver(tx, var, single_out(out))


@TABLE.function("median")
def median(
    tx: TraceContext,
    a: object,
    axis: object = None,
    out: object = None,
    overwrite_input: bool = False,
    keepdims: object = False,
) -> ArrayRef:
    """``np.median``: the mean of the middle elements; NaN where there is one."""
    x = as_ref(tx, a)
    if overwrite_input or x.dtype.is_complex or x.ndim == 0:
        raise Unsupported("numpy.median of complex numbers or scalars, or with overwrite_input")
    tx.assume("numpy-errstate")
    axes = normalize_axes(axis, x.ndim)
    ordered = _ordered(tx, x, axes)
    size = ordered.shape[-1]
    if size % 2 == 1:
        middle = _element(tx, ordered, size // 2)
        dtype = middle.dtype if middle.dtype.is_inexact else dtypes.float64
        result = Traced(tx, value_of(convert(tx, middle.var, dtype))) + 0.0  # a mean of -0.0 is 0.0
    else:
        pair = slice_axis(tx, ordered, ordered.ndim - 1, size // 2 - 1, 2)
        result = Traced(tx, mean(tx, array_of(pair), -1))
    return _finish(tx, _nan_where_missing(tx, ordered, result), x, axes, keepdims, out)


def _quantile_at(
    tx: TraceContext, ordered: Var, fraction: float, kind: Callable[..., Any], computed: DType
) -> Var:
    """One quantile by linear interpolation between neighbours, as NumPy's ``_lerp`` rounds it: the difference
    in the array's own dtype, the rest in ``computed``."""
    if isinstance(ordered.shape[-1], SymInt):
        return _quantile_of_symbolic(tx, ordered, kind(fraction), computed)
    size = int(ordered.shape[-1])
    place = kind(size - 1) * kind(fraction)
    low = int(np.clip(np.floor(place), 0, size - 1))
    high = min(low + 1, size - 1)
    gamma = float(place - kind(np.floor(place)))
    first = _element(tx, ordered, low)
    last = _element(tx, ordered, high)
    first, last, difference = _as(tx, computed, first, last, last - first)
    result = first + difference * gamma if gamma < 0.5 else last - difference * (1 - gamma)
    return _nan_where_missing(tx, ordered, result)


def _as(tx: TraceContext, dtype: DType, *values: Traced) -> list[Traced]:
    return [Traced(tx, value_of(convert(tx, value.var, dtype))) for value in values]


def _quantile_of_symbolic(tx: TraceContext, ordered: Var, fraction: Any, computed: DType) -> Var:
    """As above, where the graph computes the place."""
    size = ordered.shape[-1]
    wanted = promote.from_np(fraction.dtype)
    place = Traced(tx, ArrayRef(to_var(tx, size - 1, wanted), "scalar")) * fraction
    below = place.call(np.floor)
    low = Traced(tx, value_of(convert(tx, below.var, dtypes.int64)))
    high = (low + 1).call(np.minimum, size - 1)
    gamma = (place - below).then(_spread, ordered.shape[:-1])
    weight, rest = _as(tx, computed, gamma, 1 - gamma)
    first, last = (_gathered(tx, ordered, index.var) for index in (low, high))
    first, last, difference = _as(tx, computed, first, last, last - first)
    near = first + difference * weight
    far = last - difference * rest
    chosen = emit(tx, "where", (gamma < 0.5).var, near.var, far.var)
    return _nan_where_missing(tx, ordered, Traced(tx, value_of(chosen)))


def _spread(tx: TraceContext, ref: ArrayRef, shape: Any) -> ArrayRef:
    return value_of(broadcast_to(tx, ref.var, tuple(shape)))


def _gathered(tx: TraceContext, ordered: Var, index: Var) -> Traced:
    axis = ordered.ndim - 1
    return Traced(tx, value_of(emit(tx, "index", ordered, index, dims=(axis,), position=axis)))


def _are_plain(x: ArrayRef, q: object, scale: float) -> bool:
    """Whether positions are such that types follow from the array alone, or from float64."""
    dtype = np.asarray(q).dtype
    if dtype.kind in "iu":
        return scale != 1 or (type(q) is int and x.dtype.is_float)
    return dtype == np.float64


def _fractions(x: ArrayRef, q: Any, scale: float) -> np.ndarray[Any, Any]:
    """Positions in 0..1, in the precision in which NumPy computes them."""
    kind = x.dtype.numpy.type if x.dtype.is_float and not _KEEPS_DOUBLE else np.float64
    if scale != 1:
        fractions = np.asarray(np.true_divide(q, kind(scale)))
    elif type(q) in (int, float):
        fractions = np.asarray(q, dtype=kind)
    else:
        fractions = np.asarray(q)
    return fractions if fractions.dtype.kind == "f" else fractions.astype(np.float64)


def _quantiles(
    tx: TraceContext,
    a: object,
    q: object,
    axis: object,
    out: object,
    method: object,
    keepdims: object,
    scale: float,
    weights: object,
) -> ArrayRef:
    x = as_ref(tx, a)
    if method != "linear" or weights is not None or x.dtype.is_complex or x.dtype.is_bool or x.ndim == 0:
        raise Unsupported("quantiles with another method than 'linear', weights, or of these dtypes")
    if isinstance(q, ArrayRef) or x.dtype in (dtypes.float16, dtypes.bfloat16):
        raise Unsupported("quantiles of half precision, or at positions that are data")
    if not _are_plain(x, q, scale):
        raise Unsupported("quantiles at booleans, integers or single precision: they have a say in the type")
    fractions = _fractions(x, q, scale)
    if fractions.ndim > 1 or not np.all((fractions >= 0) & (fractions <= 1)):
        raise Unsupported("quantiles must be in the range [0, 1], in one dimension")
    tx.assume("numpy-errstate")
    axes = normalize_axes(axis, x.ndim)
    ordered = _ordered(tx, x, axes)
    weak = type(q) in (int, float) and x.dtype.is_float
    computed = x.dtype if weak else promote.from_np(np.result_type(x.dtype.numpy, fractions.dtype))
    found = [_quantile_at(tx, ordered, f, fractions.dtype.type, computed) for f in fractions.ravel()]
    found = [emit(tx, "contiguous", var) for var in found]  # NumPy takes them from a copy in C order
    if given(keepdims) and keepdims:
        found = [keep_dims(tx, var, x.shape, axes) for var in found]
    if fractions.ndim == 0:
        return deliver(tx, found[0], single_out(out))
    rows = [emit(tx, "reshape", var, shape=(1, *var.shape)) for var in found]
    return deliver(tx, emit(tx, "concatenate", *rows, axis=0), single_out(out))


@TABLE.function("percentile")
def percentile(
    tx: TraceContext,
    a: object,
    q: object,
    axis: object = None,
    out: object = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: object = False,
    *,
    weights: object = None,
) -> ArrayRef:
    return _quantiles(tx, a, q, axis, out, method, keepdims, 100.0, weights)


@TABLE.function("quantile")
def quantile(
    tx: TraceContext,
    a: object,
    q: object,
    axis: object = None,
    out: object = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: object = False,
    *,
    weights: object = None,
) -> ArrayRef:
    return _quantiles(tx, a, q, axis, out, method, keepdims, 1.0, weights)


# -- covariance -------------------------------------------------------------------------------
@TABLE.function("cov")
def cov(
    tx: TraceContext,
    m: object,
    y: object = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: object = None,
    fweights: object = None,
    aweights: object = None,
    *,
    dtype: object = None,
) -> ArrayRef:
    """``np.cov`` without weights."""
    if fweights is not None or aweights is not None:
        raise Unsupported("numpy.cov with weights")
    parts = [_observations(tx, part, rowvar, dtype) for part in ((m,) if y is None else (m, y))]
    rows = parts[0] if len(parts) == 1 else concatenate(tx, parts, 0)
    count = rows.shape[1]
    left = count - (integer(ddof) if ddof is not None else 0 if bias else 1)
    if not left > 0:
        raise Unsupported("Degrees of freedom <= 0 for slice")
    centred = Traced(tx, rows) - Traced(tx, mean(tx, rows, 1))[:, None]
    other = array_of(transpose_var(tx, centred.var, (1, 0)))
    if centred.dtype.is_complex:
        other = array_of(emit(tx, "conj", other.var))
    products = Traced(tx, dot(tx, centred.ref, other))
    result = products * float(1.0 / np.float64(left)) if isinstance(left, int) else products / left
    shape = tuple(d for d in result.shape if d != 1)
    return array_of(emit(tx, "reshape", result.var, shape=shape))


def _observations(tx: TraceContext, m: object, rowvar: bool, dtype: Any) -> ArrayRef:
    ref = as_ref(tx, m)
    if ref.ndim > 2 or ref.ndim == 0:
        raise Unsupported("m has more than 2 dimensions")
    if product(ref.shape) == 0:
        raise Unsupported("covariance of nothing")
    wanted = np.result_type(ref.dtype.numpy, np.float64) if dtype is None else np.dtype(dtype)
    if not np.issubdtype(wanted, np.inexact):
        raise Unsupported("covariance with a dtype= that is not inexact")
    var = convert(tx, ref.var, promote.from_np(wanted))
    if ref.ndim == 1:
        return array_of(emit(tx, "reshape", var, shape=(1, *var.shape)))
    return array_of(var if rowvar else transpose_var(tx, var, (1, 0)))


@TABLE.function("corrcoef")
def corrcoef(
    tx: TraceContext, x: object, y: object = None, rowvar: bool = True, *, dtype: object = None
) -> ArrayRef:
    c = Traced(tx, cov(tx, x, y, rowvar, dtype=dtype))
    if c.dtype.is_complex:
        raise Unsupported("numpy.corrcoef of complex numbers")
    if c.ndim == 0:
        return (c / c).ref
    deviation = Traced(tx, diagonal(tx, c.ref)).call(np.sqrt)
    scaled = c / deviation[:, None] / deviation[None, :]
    return scaled.call(np.maximum, -1.0).call(np.minimum, 1.0).ref
