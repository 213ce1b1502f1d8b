"""Reductions that leave out NaN. (NumPy warns for slices that hold nothing else; that is not kept.)"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import product
from ..base import ArrayRef, TraceContext
from .numpy_rules import RuleTable
from .operands import NO, as_ref, emit, given, value_of
from .reductions import cumprod, cumsum, max_, mean, min_, prod, std, sum_, var
from .ufunc_emit import full_like
from .ufunc_methods import deliver, reduce_ufunc, reduction_axes, single_out
from .ufuncs import call_ufunc
from .views import in_memory_as, in_memory_of_copy

TABLE = RuleTable()


def _missing(tx: TraceContext, x: ArrayRef) -> Var:
    return emit(tx, "isnan", x.var)


def _replaced(tx: TraceContext, x: ArrayRef, value: object) -> ArrayRef:
    """``x`` with ``value`` for NaN, as an operand of the same kind."""
    var_ = emit(tx, "where", _missing(tx, x), full_like(tx, x.var, value), x.var)
    return ArrayRef(in_memory_of_copy(tx, var_, x.var), x.kind)


def _summing_rule(plain: Callable[..., Any], neutral: Any) -> Any:
    def rule(tx: TraceContext, a: object, *args: Any, **kwargs: Any) -> ArrayRef:
        x = as_ref(tx, a)
        return plain(tx, _replaced(tx, x, neutral) if x.dtype.is_inexact else x, *args, **kwargs)

    return rule


TABLE.function("nansum")(_summing_rule(sum_, 0.0))
TABLE.function("nanprod")(_summing_rule(prod, 1.0))
TABLE.function("nancumsum")(_summing_rule(cumsum, 0.0))
TABLE.function("nancumprod")(_summing_rule(cumprod, 1.0))


def _extreme_rule(ufunc: np.ufunc, plain: Callable[..., Any]) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO,
        initial: Any = NO,
        where: Any = NO,
    ) -> ArrayRef:
        x = as_ref(tx, a)
        if not x.dtype.is_inexact:
            return plain(tx, x, axis, out, keepdims, initial, where)
        if given(initial) or where is not NO:
            raise Unsupported("nanmax or nanmin with initial= or where=")
        return reduce_ufunc(tx, ufunc, x, axis, None, out, keepdims)

    return rule


TABLE.function("nanmax")(_extreme_rule(np.fmax, max_))
TABLE.function("nanmin")(_extreme_rule(np.fmin, min_))


@TABLE.function("nanmean")
def nanmean(
    tx: TraceContext,
    a: object,
    axis: object = None,
    dtype: object = None,
    out: object = None,
    keepdims: object = NO,
    *,
    where: object = NO,
) -> ArrayRef:
    x = as_ref(tx, a)
    if not x.dtype.is_inexact:
        return mean(tx, x, axis, dtype, out, keepdims, where=where)
    if dtype is not None or where is not NO:
        raise Unsupported("numpy.nanmean with dtype= or where=")
    _check_not_empty(x)
    tx.assume("numpy-errstate")
    tx.assume("numpy-warnings")
    count = _count_present(tx, x, axis, keepdims)
    total = sum_(tx, _replaced(tx, x, 0.0), axis, keepdims=keepdims)
    quotient = call_ufunc(tx, np.true_divide, total, _as_dtype_of(tx, count, total))
    return deliver(tx, in_memory_as(tx, quotient.var, total.var), single_out(out), "unsafe")


def _check_not_empty(x: ArrayRef) -> None:
    """Means and variances of nothing warn, by ``warnings.warn``."""
    if product(x.shape) == 0:
        raise Unsupported("a mean or variance of nothing, which warns")


def _as_dtype_of(tx: TraceContext, count: ArrayRef, like: ArrayRef) -> ArrayRef:
    return value_of(emit(tx, "convert", count.var, dtype=like.dtype))


def _count_present(tx: TraceContext, x: ArrayRef, axis: object, keepdims: object) -> ArrayRef:
    present = emit(tx, "logical_not", _missing(tx, x))
    return sum_(tx, value_of(present), axis, dtypes.int64, keepdims=keepdims)


def _nan_variance(tx: TraceContext, x: ArrayRef, axis: object, ddof: object, keepdims: object) -> ArrayRef:
    axes = reduction_axes(axis, x.ndim)
    count = _count_present(tx, x, axes, True)
    total = sum_(tx, _replaced(tx, x, 0.0), axes, keepdims=True)
    centre = call_ufunc(tx, np.true_divide, total, _as_dtype_of(tx, count, total))
    deviation = call_ufunc(tx, np.subtract, x, centre)
    zeroed = emit(tx, "where", _missing(tx, x), full_like(tx, deviation.var, 0.0), deviation.var)
    squares = call_ufunc(tx, np.multiply, value_of(zeroed), value_of(zeroed))
    summed = sum_(tx, squares, axes, keepdims=keepdims)
    present = _count_present(tx, x, axes, keepdims)
    left = call_ufunc(tx, np.subtract, present, ddof)
    result = call_ufunc(tx, np.true_divide, summed, _as_dtype_of(tx, left, summed))
    enough = call_ufunc(tx, np.greater, left, 0)
    nan = full_like(tx, result.var, math.nan)
    return value_of(emit(tx, "where", enough.var, result.var, nan))


def _variance_rule(plain: Any, root: bool) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = NO,
    ) -> ArrayRef:
        x = as_ref(tx, a)
        if not x.dtype.is_inexact:
            return plain(tx, x, axis, dtype, out, ddof, keepdims)
        if dtype is not None or x.dtype.is_complex:
            raise Unsupported("nanvar or nanstd with dtype=, or of complex numbers")
        _check_not_empty(x)
        tx.assume("numpy-errstate")
        tx.assume("numpy-warnings")
        result = _nan_variance(tx, x, axis, ddof, keepdims)
        if root:
            result = call_ufunc(tx, np.sqrt, result)
        return deliver(tx, result.var, single_out(out), "unsafe")

    return rule


TABLE.function("nanvar")(_variance_rule(var, False))
TABLE.function("nanstd")(_variance_rule(std, True))
