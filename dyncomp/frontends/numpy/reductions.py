"""Sums, products, extremes, means and their relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import product
from ..base import ArrayRef, TraceContext
from . import promote
from .numpy_rules import RuleTable
from .operands import (
    NO,
    as_ref,
    broadcast_to,
    convert,
    emit,
    given,
    normalize_axes,
    normalize_axis,
    operand,
    to_var,
    value_of,
)
from .ufunc_emit import full_like
from .ufunc_methods import accumulate_ufunc, deliver, keep_dims, reduce_ufunc, reduction_axes, single_out
from .ufuncs import call_ufunc
from .views import flatten_view, slice_axis

TABLE = RuleTable()


def _reduction_rule(ufunc: np.ufunc) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        axis: object = None,
        dtype: object = None,
        out: object = None,
        keepdims: object = NO,
        initial: object = NO,
        where: object = NO,
    ) -> ArrayRef:
        return reduce_ufunc(tx, ufunc, a, axis, dtype, out, keepdims, initial, where)

    return rule


def _extreme_rule(ufunc: np.ufunc) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        axis: object = None,
        out: object = None,
        keepdims: object = NO,
        initial: object = NO,
        where: object = NO,
    ) -> ArrayRef:
        return reduce_ufunc(tx, ufunc, a, axis, None, out, keepdims, initial, where)

    return rule


def _truth_rule(ufunc: np.ufunc) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        axis: object = None,
        out: object = None,
        keepdims: object = NO,
        *,
        where: object = NO,
    ) -> ArrayRef:
        return reduce_ufunc(tx, ufunc, a, axis, None, out, keepdims, NO, where)

    return rule


sum_ = _reduction_rule(np.add)
prod = _reduction_rule(np.multiply)
max_ = _extreme_rule(np.maximum)
min_ = _extreme_rule(np.minimum)
any_ = _truth_rule(np.logical_or)
all_ = _truth_rule(np.logical_and)

for _names, _rule in (
    (("sum",), sum_),
    (("prod",), prod),
    (("max", "amax"), max_),
    (("min", "amin"), min_),
    (("any",), any_),
    (("all",), all_),
):
    TABLE.function(*_names)(_rule)
    TABLE.method(_names[0])(_rule)


# -- mean and variance ------------------------------------------------------------------------
def count_items(tx: TraceContext, x: ArrayRef, axes: tuple[int, ...], where: object, keep: bool) -> Any:
    """Number of elements that a mean divides by: an integer, or an array with ``where=``."""
    if where is True or where is NO:
        count = product(x.shape[axis] for axis in axes)
        if count == 0:
            raise Unsupported("Mean of empty slice")
        return count
    mask = to_var(tx, operand(tx, where), dtypes.bool_)
    ready = convert(tx, broadcast_to(tx, mask, x.shape), dtypes.int64)
    counted = emit(tx, "reduce_sum", ready, axes=axes)
    return value_of(keep_dims(tx, counted, x.shape, axes) if keep else counted)


def _divide(tx: TraceContext, total: Var, count: object) -> Var:
    if isinstance(count, ArrayRef):
        divisor = convert(tx, count.var, total.dtype)
    else:
        divisor = to_var(tx, count, total.dtype)
    return emit(tx, "divide", total, broadcast_to(tx, divisor, total.shape))


def _float_dtype(dtype: DType) -> DType:
    return dtype if dtype.is_inexact else dtypes.float64


@TABLE.function("mean")
@TABLE.method("mean")
def mean(
    tx: TraceContext,
    a: object,
    axis: object = None,
    dtype: object = None,
    out: object = None,
    keepdims: object = NO,
    *,
    where: object = NO,
) -> ArrayRef:
    """``np.mean``: float16 is summed in float32, integers in float64."""
    x = as_ref(tx, a)
    axes = normalize_axes(axis, x.ndim)
    keep = bool(given(keepdims) and keepdims)
    result = _float_dtype(x.dtype) if dtype is None else promote.parse_dtype(dtype)
    computed = dtypes.float32 if result == dtypes.float16 and dtype is None else result
    if not computed.is_inexact:
        raise Unsupported("numpy.mean with an integer dtype=")
    tx.assume("numpy-errstate")
    count = count_items(tx, x, axes, where, keep)
    total = reduce_ufunc(tx, np.add, x, axes, computed, None, keep, NO, where)
    return deliver(tx, convert(tx, _divide(tx, total.var, count), result), single_out(out), "unsafe")


def _variance(
    tx: TraceContext,
    a: object,
    axis: object,
    dtype: object,
    ddof: object,
    keepdims: object,
    where: object,
    known_mean: object,
) -> Var:
    x = as_ref(tx, a)
    axes = normalize_axes(axis, x.ndim)
    keep = bool(given(keepdims) and keepdims)
    computed = _float_dtype(x.dtype) if dtype is None else promote.parse_dtype(dtype)
    if not computed.is_inexact or (x.dtype.is_complex and not computed.is_complex):
        raise Unsupported("numpy.var with this dtype=")
    tx.assume("numpy-errstate")
    if given(known_mean):
        centre = known_mean
    else:
        total = reduce_ufunc(tx, np.add, x, axes, computed, None, True, NO, where)
        centre = value_of(_divide(tx, total.var, count_items(tx, x, axes, where, True)))
    deviation = call_ufunc(tx, np.subtract, x, centre)
    squares = _squared_modulus(tx, deviation.var)
    summed = reduce_ufunc(tx, np.add, value_of(squares), axes, computed.real, None, keep, NO, where)
    return _divide(tx, summed.var, _degrees_of_freedom(tx, x, axes, where, keep, ddof))


def _squared_modulus(tx: TraceContext, x: Var) -> Var:
    if not x.dtype.is_complex:
        return emit(tx, "multiply", x, x)
    real = emit(tx, "real", x)
    imag = emit(tx, "imag", x)
    return emit(tx, "add", emit(tx, "multiply", real, real), emit(tx, "multiply", imag, imag))


def _degrees_of_freedom(
    tx: TraceContext, x: ArrayRef, axes: tuple[int, ...], where: object, keep: bool, ddof: Any
) -> Any:
    count = count_items(tx, x, axes, where, keep)
    if isinstance(ddof, ArrayRef):
        raise Unsupported("ddof must be known at capture")
    if isinstance(count, ArrayRef):
        left = call_ufunc(tx, np.subtract, count, ddof)
        return call_ufunc(tx, np.maximum, left, 0)
    left = count - (int(ddof) if float(ddof).is_integer() else ddof)
    if not left > 0:
        raise Unsupported("Degrees of freedom <= 0 for slice")
    return left


@TABLE.function("var")
@TABLE.method("var")
def var(
    tx: TraceContext,
    a: object,
    axis: object = None,
    dtype: object = None,
    out: object = None,
    ddof: object = 0,
    keepdims: object = NO,
    *,
    where: object = NO,
    mean: object = NO,
    correction: object = NO,
) -> ArrayRef:
    """``np.var``: the mean of squared deviations from the mean, in two passes as NumPy's."""
    ddof = _degrees(ddof, correction)
    result = _variance(tx, a, axis, dtype, ddof, keepdims, where, mean)
    return deliver(tx, result, single_out(out), "unsafe")


def _degrees(ddof: object, correction: object) -> Any:
    if not given(correction):
        return ddof
    if isinstance(ddof, ArrayRef) or ddof != 0:
        raise Unsupported("ddof and correction can't be provided simultaneously.")
    return correction


@TABLE.function("std")
@TABLE.method("std")
def std(
    tx: TraceContext,
    a: object,
    axis: object = None,
    dtype: object = None,
    out: object = None,
    ddof: object = 0,
    keepdims: object = NO,
    *,
    where: object = NO,
    mean: object = NO,
    correction: object = NO,
) -> ArrayRef:
    """``np.std``: the square root of :func:`var`."""
    ddof = _degrees(ddof, correction)
    result = _variance(tx, a, axis, dtype, ddof, keepdims, where, mean)
    return deliver(tx, emit(tx, "sqrt", result), single_out(out), "unsafe")


@TABLE.function("average")
def average(
    tx: TraceContext,
    a: object,
    axis: object = None,
    weights: object = None,
    returned: bool = False,
    *,
    keepdims: object = NO,
) -> Any:
    """``np.average`` without weights (with weights NumPy raises where they sum to zero)."""
    if weights is not None:
        raise Unsupported("numpy.average with weights raises where the weights sum to zero")
    x = as_ref(tx, a)
    result = mean(tx, x, axis, keepdims=keepdims)
    if product(result.shape) == 0:
        raise Unsupported("numpy.average divides by the number of averages")
    if not returned:
        return result
    axes = reduction_axes(axis, x.ndim)
    count = to_var(tx, count_items(tx, x, axes, NO, False), result.dtype)
    return result, value_of(emit(tx, "copy", broadcast_to(tx, count, result.shape)))


# -- positions of extremes --------------------------------------------------------------------
def _position_rule(op: str) -> Any:
    def rule(
        tx: TraceContext, a: object, axis: object = None, out: object = None, *, keepdims: object = NO
    ) -> ArrayRef:
        x = as_ref(tx, a)
        along = 0 if axis is None else normalize_axis(axis, max(x.ndim, 1))
        flat = x.var if axis is not None and x.ndim else flatten_view(tx, x.var)
        if flat.shape[along] == 0:
            raise Unsupported(f"attempt to get {op} of an empty sequence")
        found = emit(tx, op, flat, axis=along)
        if given(keepdims) and keepdims:
            axes = (along,) if axis is not None and x.ndim else tuple(range(x.ndim))
            found = keep_dims(tx, found, x.shape, axes)
        return deliver(tx, found, single_out(out))

    return rule


argmax = _position_rule("argmax")
argmin = _position_rule("argmin")
TABLE.function("argmax")(argmax)
TABLE.function("argmin")(argmin)
TABLE.method("argmax")(argmax)
TABLE.method("argmin")(argmin)


@TABLE.function("ptp")
def ptp(
    tx: TraceContext, a: object, axis: object = None, out: object = None, keepdims: object = NO
) -> ArrayRef:
    """``np.ptp``: maximum minus minimum."""
    x = as_ref(tx, a)
    keep = bool(given(keepdims) and keepdims)
    high = reduce_ufunc(tx, np.maximum, x, axis, keepdims=keep)
    low = reduce_ufunc(tx, np.minimum, x, axis, keepdims=keep)
    result = call_ufunc(tx, np.subtract, high, low)
    return deliver(tx, result.var, single_out(out))


_COUNT_KIND = "python" if type(np.count_nonzero(np.zeros(1))) is int else "scalar"


@TABLE.function("count_nonzero")
def count_nonzero(tx: TraceContext, a: object, axis: object = None, *, keepdims: bool = False) -> ArrayRef:
    """``np.count_nonzero``: int64, or a Python ``int`` over all axes in older versions of NumPy."""
    x = as_ref(tx, a)
    flags = convert(tx, x.var, dtypes.bool_)
    counted = reduce_ufunc(tx, np.add, value_of(flags), axis, dtypes.int64, None, keepdims)
    whole = axis is None and not keepdims
    return ArrayRef(counted.var, _COUNT_KIND if whole else counted.kind)


# -- scans ------------------------------------------------------------------------------------
def _scan_rule(ufunc: np.ufunc) -> Any:
    def rule(
        tx: TraceContext, a: object, axis: object = None, dtype: object = None, out: object = None
    ) -> ArrayRef:
        x = as_ref(tx, a)
        if axis is None or x.ndim == 0:
            x = ArrayRef(flatten_view(tx, x.var))
            axis = 0 if axis is None else normalize_axis(axis, 1)
        return accumulate_ufunc(tx, ufunc, x, axis, dtype, out)

    return rule


cumsum = _scan_rule(np.add)
cumprod = _scan_rule(np.multiply)
TABLE.function("cumsum")(cumsum)
TABLE.function("cumprod")(cumprod)
TABLE.method("cumsum")(cumsum)
TABLE.method("cumprod")(cumprod)


def _cumulative_rule(ufunc: np.ufunc) -> Any:
    def rule(
        tx: TraceContext,
        x: object,
        /,
        *,
        axis: object = None,
        dtype: object = None,
        out: object = None,
        include_initial: bool = False,
    ) -> ArrayRef:
        ref = as_ref(tx, x)
        if ref.ndim == 0 or (axis is None and ref.ndim > 1):
            raise Unsupported("the axis of a cumulative sum must be given")
        along = normalize_axis(0 if axis is None else axis, ref.ndim)
        scanned = accumulate_ufunc(tx, ufunc, ref, along, dtype, None)
        if include_initial:
            identity = full_like(tx, scanned.var, ufunc.identity)
            start = slice_axis(tx, identity, along, 0, 1)
            scanned = value_of(emit(tx, "concatenate", start, scanned.var, axis=along))
        return deliver(tx, scanned.var, single_out(out))

    return rule


TABLE.function("cumulative_sum")(_cumulative_rule(np.add))
TABLE.function("cumulative_prod")(_cumulative_rule(np.multiply))
