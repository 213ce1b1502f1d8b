"""Composites that reduce: statistics, softmax. ``axes`` are dropped from the result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType, complex64, complex128, float16, float32, float64
from ...graph.ir import Ops, Var
from ..kit import Array
from ..opdef import OpDef, Sample
from ..samples import data, layouts
from .kit import composite, extent, filled, number, spread

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


# -- samples ----------------------------------------------------------------------------------
def axes_samples(
    dtypes: Sequence[DType], *choices: dict[str, Any], empty: bool = False
) -> Callable[[], Iterator[Sample]]:
    """Layouts over some axes; ``empty``: extents of no elements too."""

    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for label, x in layouts(dtype, 2):
                for axes in _axes(x):
                    if not empty and any(x.shape[a] == 0 for a in axes):
                        continue
                    for number_, params in enumerate(choices or ({},)):
                        yield Sample((x,), {"axes": axes, **params}, f"{dtype}-{label}-{axes}-{number_}")
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


_DDOF = ({"ddof": 0}, {"ddof": 1})


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
)
