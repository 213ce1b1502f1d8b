"""Composites that reduce: statistics, norms, softmax. ``axes`` are dropped from the result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType, complex64, complex128, float16, float32, float64, int8, int64
from ...graph.ir import Ops, Var
from ..kit import NATIVE, Array
from ..opdef import OpDef, Sample
from ..samples import data, layouts
from .kit import composite, extent, filled, number, spread, window

Axes = tuple[int, ...]
_INEXACT = (float16, float32, float64, complex64, complex128)
_FLOAT = (float16, float32, float64)


def _over(ops: Ops, total: Var, count: object) -> Var:
    """``total`` divided by a count, in the total's dtype."""
    real = total.dtype.real
    divisor = ops.convert(number(ops, count, real, total), dtype=total.dtype)
    return ops.divide(total, ops.broadcast_in_dim(divisor, shape=total.shape, dims=()))


def mean(ops: Ops, x: Var, *, axes: Axes) -> Var:
    """float16 is summed in float32, as in NumPy."""
    if x.dtype is float16:
        wide = ops.mean(ops.convert(x, dtype=float32), axes=axes)
        return ops.convert(wide, dtype=float16)
    return _over(ops, ops.reduce_sum(x, axes=axes), extent(x, axes))


def _squared_deviation(ops: Ops, x: Var, axes: Axes) -> Var:
    center = _over(ops, ops.reduce_sum(x, axes=axes), extent(x, axes))
    deviation = ops.subtract(x, spread(ops, center, x, axes))
    if x.dtype.is_complex:
        return ops.add(ops.square(ops.real(deviation)), ops.square(ops.imag(deviation)))
    return ops.square(deviation)


def var(ops: Ops, x: Var, *, axes: Axes, ddof: float = 0) -> Var:
    total = ops.reduce_sum(_squared_deviation(ops, x, axes), axes=axes)
    count = extent(x, axes)
    free = count - ddof
    return _over(ops, total, free if free > 0 else 0)


def std(ops: Ops, x: Var, *, axes: Axes, ddof: float = 0) -> Var:
    return ops.sqrt(ops.var(x, axes=axes, ddof=ddof))


def _shifted_exp(ops: Ops, x: Var, axes: Axes) -> tuple[Var, Var]:
    """exp(x - max) and the maximum spread over x."""
    top = spread(ops, ops.reduce_max(x, axes=axes), x, axes)
    return ops.exp(ops.subtract(x, top)), top


def softmax(ops: Ops, x: Var, *, axes: Axes) -> Var:
    terms, _ = _shifted_exp(ops, x, axes)
    return ops.divide(terms, spread(ops, ops.reduce_sum(terms, axes=axes), x, axes))


def log_softmax(ops: Ops, x: Var, *, axes: Axes) -> Var:
    terms, top = _shifted_exp(ops, x, axes)
    total = ops.log(ops.reduce_sum(terms, axes=axes))
    return ops.subtract(ops.subtract(x, top), spread(ops, total, x, axes))


def logsumexp(ops: Ops, x: Var, *, axes: Axes) -> Var:
    top = ops.reduce_max(x, axes=axes)
    safe = ops.where(ops.isfinite(top), top, filled(ops, top, 0))
    terms = ops.exp(ops.subtract(x, spread(ops, safe, x, axes)))
    return ops.add(ops.log(ops.reduce_sum(terms, axes=axes)), safe)


def ptp(ops: Ops, x: Var, *, axes: Axes) -> Var:
    return ops.subtract(ops.reduce_max(x, axes=axes), ops.reduce_min(x, axes=axes))


def count_nonzero(ops: Ops, x: Var, *, axes: Axes) -> Var:
    truth = ops.not_equal(x, filled(ops, x, 0))
    return ops.reduce_sum(ops.convert(truth, dtype=int64), axes=axes)


# -- ignoring NaN -----------------------------------------------------------------------------
def _without_nan(ops: Ops, x: Var, value: float) -> Var:
    return ops.where(ops.isnan(x), filled(ops, x, value), x)


def _count_valid(ops: Ops, x: Var, axes: Axes) -> Var:
    return ops.reduce_sum(ops.convert(ops.logical_not(ops.isnan(x)), dtype=int64), axes=axes)


def nansum(ops: Ops, x: Var, *, axes: Axes) -> Var:
    return ops.reduce_sum(_without_nan(ops, x, 0.0), axes=axes)


def nanprod(ops: Ops, x: Var, *, axes: Axes) -> Var:
    return ops.reduce_prod(_without_nan(ops, x, 1.0), axes=axes)


def _nan_extreme(reduce: str, identity: float) -> Callable[..., Var]:
    def decomp(ops: Ops, x: Var, *, axes: Axes) -> Var:
        found = getattr(ops, reduce)(_without_nan(ops, x, identity), axes=axes)
        none = ops.reduce_all(ops.isnan(x), axes=axes)
        return ops.where(none, filled(ops, found, float("nan")), found)

    return decomp


def nanmean(ops: Ops, x: Var, *, axes: Axes) -> Var:
    total = ops.nansum(x, axes=axes)
    return ops.divide(total, ops.convert(_count_valid(ops, x, axes), dtype=x.dtype))


def nanvar(ops: Ops, x: Var, *, axes: Axes, ddof: float = 0) -> Var:
    valid = ops.logical_not(ops.isnan(x))
    center = spread(ops, ops.nanmean(x, axes=axes), x, axes)
    deviation = ops.where(valid, ops.subtract(x, center), filled(ops, x, 0))
    count = ops.convert(_count_valid(ops, x, axes), dtype=x.dtype)
    free = ops.subtract(count, filled(ops, count, ddof))
    total = ops.reduce_sum(ops.square(deviation), axes=axes)
    enough = ops.greater(free, filled(ops, free, 0))
    return ops.where(enough, ops.divide(total, free), filled(ops, total, float("nan")))


def nanstd(ops: Ops, x: Var, *, axes: Axes, ddof: float = 0) -> Var:
    return ops.sqrt(ops.nanvar(x, axes=axes, ddof=ddof))


# -- norms and order statistics ---------------------------------------------------------------
def vector_norm(ops: Ops, x: Var, *, axes: Axes, ord: float = 2) -> Var:
    size = ops.abs(x)
    if ord == float("inf"):
        return ops.reduce_max(size, axes=axes)
    if ord == float("-inf"):
        return ops.reduce_min(size, axes=axes)
    if ord == 0:
        return ops.convert(ops.count_nonzero(x, axes=axes), dtype=size.dtype)
    if ord == 1:
        return ops.reduce_sum(size, axes=axes)
    if ord == 2:
        return ops.sqrt(ops.reduce_sum(_abs_squared(ops, x), axes=axes))
    total = ops.reduce_sum(ops.power(size, filled(ops, size, ord)), axes=axes)
    return ops.power(total, filled(ops, total, 1.0 / ord))


def _abs_squared(ops: Ops, x: Var) -> Var:
    if x.dtype.is_complex:
        return ops.add(ops.square(ops.real(x)), ops.square(ops.imag(x)))
    return ops.square(x)


def median(ops: Ops, x: Var, *, axis: int) -> Var:
    """The mean of the one or two middle elements; NaN if there is a NaN."""
    ordered = ops.sort(x, axis=axis, kind=None)
    n = x.shape[axis]
    half = n // 2
    size = 1 if n % 2 == 1 else 2
    middle = ops.mean(window(ops, ordered, axis, half if size == 1 else half - 1, size), axes=(axis,))
    last = ops.reduce_sum(window(ops, ordered, axis, n - 1, 1), axes=(axis,))
    return ops.where(ops.isnan(last), last, middle)


# -- references -------------------------------------------------------------------------------
def _over_axes(fn: Callable[..., Any]) -> Callable[..., Array]:
    def ref(x: Array, *, axes: Axes, **params: object) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(fn(x, axis=axes, **params))

    return ref


def _quiet_nan(fn: Callable[..., Any]) -> Callable[..., Array]:
    def ref(x: Array, *, axes: Axes, **params: object) -> Array:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(fn(x, axis=axes, **params))

    return ref


def _softmax(x: Array, axis: Axes) -> Array:
    terms = np.exp(x - x.max(axis=axis, keepdims=True))
    return terms / terms.sum(axis=axis, keepdims=True)


def _log_softmax(x: Array, axis: Axes) -> Array:
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def _logsumexp(x: Array, axis: Axes) -> Array:
    top = x.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    total = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return np.squeeze(total, axis=axis)


def _vector_norm(x: Array, axis: Axes, ord: float) -> Array:
    return np.linalg.vector_norm(x, axis=axis, ord=ord)


def _count(x: Array, axis: Axes) -> Array:
    return np.asarray(np.count_nonzero(x, axis=axis), np.int64)


def _median(x: Array, *, axis: int) -> Array:
    return np.asarray(np.median(x, axis=axis))


# -- samples ----------------------------------------------------------------------------------
def axes_samples(
    dtypes: Sequence[DType], *choices: dict[str, Any], with_nan: bool = False, empty: bool = False
) -> Callable[[], Iterator[Sample]]:
    """Layouts over some axes; ``empty``: extents of no elements too."""

    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for label, x in layouts(dtype, 2):
                for axes in _axes(x):
                    if not empty and any(x.shape[a] == 0 for a in axes):
                        continue
                    for number_, params in enumerate(choices or ({},)):
                        array = _holes(x) if with_nan else x
                        yield Sample((array,), {"axes": axes, **params}, f"{dtype}-{label}-{axes}-{number_}")
        large = data(float32, (300, 37))
        for axes in ((0,), (1,), (0, 1)):
            for number_, params in enumerate(choices or ({},)):
                yield Sample((large,), {"axes": axes, **params}, f"large-{axes}-{number_}")

    return samples


def _axes(x: Array) -> Iterator[Axes]:
    yield tuple(range(x.ndim))
    if x.ndim > 1:
        yield from ((axis,) for axis in range(x.ndim))
    if x.ndim == 3:
        yield (0, 2)


def _holes(x: Array) -> Array:
    """Some NaNs, and a whole row of them."""
    out = x.copy(order="K")
    if out.size:
        out[np.abs(out) > 3] = np.nan
    if out.ndim == 2:
        out[0] = np.nan
    return out


def median_samples() -> Iterator[Sample]:
    for dtype in _FLOAT:
        for label, x in layouts(dtype):
            for axis in range(x.ndim):
                if x.shape[axis]:
                    yield Sample((x,), {"axis": axis}, f"{dtype}-{label}-{axis}")
    holes = data(float64, (4, 5))
    holes[1, 2] = np.nan
    yield Sample((holes,), {"axis": 1}, "nan")


_DDOF = ({"ddof": 0}, {"ddof": 1})
_ORDERS = tuple({"ord": o} for o in (2, 1, 3, 0, float("inf"), float("-inf")))


def _row(
    name: str,
    decomp: Callable[..., Any],
    ref: Callable[..., Any],
    doc: str,
    dtypes: Sequence[DType],
    *choices: dict[str, Any],
    **kw: Any,
) -> OpDef:
    absolute = kw.pop("absolute", 256.0)
    params = ("axes", *(choices[0] if choices else ()))
    return composite(
        name,
        params,
        decomp,
        ref,
        axes_samples(dtypes, *choices, **kw),
        doc,
        dtypes=dtypes,
        eps=64.0,
        absolute=absolute,
    )


_NATIVE_SOME = tuple(d for d in NATIVE if d in (*_FLOAT, int8, int64))

ROWS: tuple[OpDef, ...] = (
    _row(
        "mean",
        mean,
        _quiet_nan(np.mean),
        "Arithmetic mean of inexact numbers; NaN for none.",
        _INEXACT,
        empty=True,
    ),
    _row(
        "var",
        var,
        _quiet_nan(np.var),
        "Variance, divided by n - ddof (at least 0).",
        _INEXACT,
        *_DDOF,
        empty=True,
    ),
    _row("std", std, _quiet_nan(np.std), "Square root of the variance.", _INEXACT, *_DDOF, empty=True),
    _row("softmax", softmax, _over_axes(_softmax), "exp(x)/sum(exp(x)), shifted by the maximum.", _FLOAT),
    _row("log_softmax", log_softmax, _over_axes(_log_softmax), "log(softmax(x)).", _FLOAT),
    _row("logsumexp", logsumexp, _over_axes(_logsumexp), "log(sum(exp(x))) without overflow.", _FLOAT),
    _row("ptp", ptp, _over_axes(np.ptp), "Maximum minus minimum.", _NATIVE_SOME),
    _row(
        "count_nonzero",
        count_nonzero,
        _over_axes(_count),
        "int64 number of elements that are not 0.",
        (*_NATIVE_SOME, complex64),
        empty=True,
    ),
    _row(
        "nansum", nansum, _quiet_nan(np.nansum), "Sum of what is not NaN.", _FLOAT, with_nan=True, empty=True
    ),
    _row("nanprod", nanprod, _quiet_nan(np.nanprod), "Product of what is not NaN.", _FLOAT, with_nan=True),
    _row(
        "nanmax",
        _nan_extreme("reduce_max", float("-inf")),
        _quiet_nan(np.nanmax),
        "Largest of what is not NaN; NaN where all are.",
        _FLOAT,
        with_nan=True,
    ),
    _row(
        "nanmin",
        _nan_extreme("reduce_min", float("inf")),
        _quiet_nan(np.nanmin),
        "Smallest of what is not NaN; NaN where all are.",
        _FLOAT,
        with_nan=True,
    ),
    _row("nanmean", nanmean, _quiet_nan(np.nanmean), "Mean of what is not NaN.", _FLOAT, with_nan=True),
    _row(
        "nanvar", nanvar, _quiet_nan(np.nanvar), "Variance of what is not NaN.", _FLOAT, *_DDOF, with_nan=True
    ),
    _row(
        "nanstd",
        nanstd,
        _quiet_nan(np.nanstd),
        "Standard deviation of what is not NaN.",
        _FLOAT,
        *_DDOF,
        with_nan=True,
    ),
    _row(
        "vector_norm",
        vector_norm,
        _over_axes(_vector_norm),
        "Norm of order `ord` over axes: 2, 1, 0 (count), inf, -inf or any other.",
        (float32, float64, complex64, complex128),
        *_ORDERS,
    ),
    composite(
        "median",
        ("axis",),
        median,
        _median,
        median_samples,
        "Median along an axis; NaN if there is a NaN.",
        dtypes=_FLOAT,
    ),
)
