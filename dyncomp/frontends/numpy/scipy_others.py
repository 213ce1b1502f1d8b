"""Fourier and cosine transforms, distances and Toeplitz matrices of SciPy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext
from .index_functions import take
from .join import concatenate
from .operands import array_of, as_ref, convert, emit, integer, normalize_axis
from .scipy_table import RULES, call, rule

FFT = "scipy.fft"
DISTANCE = "scipy.spatial.distance"


# -- transforms -------------------------------------------------------------------------------------
def _transform(
    tx: TraceContext, name: str, x: ArrayRef, n: object, axis: object, norm: object, **more: Any
) -> ArrayRef:
    """One transform along one axis, by whichever backend SciPy has then."""
    along = normalize_axis(axis, x.ndim)
    length = None if n is None else int(integer(n, "a number of points"))
    if not x.dtype.is_inexact:
        x = array_of(convert(tx, x.var, dtypes.float64))
    if x.dtype not in (dtypes.float64, dtypes.complex128) or (x.dtype.is_complex and name in ("rfft", "dct")):
        raise Unsupported(f"{FFT}.{name} of {x.dtype}")
    small = np.ones((4,) * x.ndim, x.dtype.numpy)
    options = {"n": length, "axis": along, "norm": norm, **more}
    size: Dim = x.shape[along] if length is None else length
    if name == "rfft":
        size = size // 2 + 1
    elif name == "irfft" and length is None:
        size = 2 * (size - 1)
    shape = tuple(size if k == along else d for k, d in enumerate(x.shape))
    return array_of(call(tx, FFT, name, [x], [shape], [small], options)[0])


def _operand(tx: TraceContext, x: object, overwrite: object, plan: object = None) -> ArrayRef:
    found = as_ref(tx, x)
    if overwrite or plan is not None or not found.ndim:
        raise Unsupported("a transform of SciPy that may overwrite its argument, or has a plan")
    return found


def _one_axis(name: str) -> None:
    def of_axis(
        tx: TraceContext,
        x: object,
        n: object = None,
        axis: object = -1,
        norm: object = None,
        overwrite_x: object = False,
        workers: object = None,
        *,
        plan: object = None,
    ) -> ArrayRef:
        return _transform(tx, name, _operand(tx, x, overwrite_x, plan), n, axis, norm)

    RULES[FFT, name] = of_axis


def _several_axes(name: str, step: str, default: tuple[int, ...] | None) -> None:
    def of_axes(
        tx: TraceContext,
        x: object,
        s: Any = None,
        axes: Any = default,
        norm: object = None,
        overwrite_x: object = False,
        workers: object = None,
        *,
        plan: object = None,
    ) -> ArrayRef:
        found = _operand(tx, x, overwrite_x, plan)
        if axes is None:
            axes = range(found.ndim) if s is None else range(found.ndim - len(s), found.ndim)
        places = [normalize_axis(axis, found.ndim) for axis in ((axes,) if isinstance(axes, int) else axes)]
        sizes = [None] * len(places) if s is None else list(s) if isinstance(s, (list, tuple)) else [s]
        if len(sizes) != len(places) or not places or len(set(places)) < len(places):
            raise Unsupported("when given, axes and shape arguments have to be of the same length")
        steps = list(zip(sizes, places))
        last = steps.pop()
        if step == "rfft":
            found = _transform(tx, "rfft", found, *last, norm)
        for n, axis in steps:
            found = _transform(tx, "ifft" if step in ("ifft", "irfft") else "fft", found, n, axis, norm)
        return found if step == "rfft" else _transform(tx, step, found, *last, norm)

    RULES[FFT, name] = of_axes


for _step in ("fft", "ifft", "rfft", "irfft"):
    _one_axis(_step)
    _several_axes(f"{_step}n", _step, None)
    _several_axes(f"{_step}2", _step, (-2, -1))


def _cosine(name: str) -> None:
    def of_axis(
        tx: TraceContext,
        x: object,
        type: object = 2,
        n: object = None,
        axis: object = -1,
        norm: object = None,
        overwrite_x: object = False,
        workers: object = None,
        orthogonalize: object = None,
    ) -> ArrayRef:
        found = _operand(tx, x, overwrite_x)
        if type not in (1, 2, 3, 4) or orthogonalize is not None or found.dtype.is_complex:
            raise Unsupported(f"{FFT}.{name} with these arguments")
        return _transform(tx, name, found, n, axis, norm, type=type)

    RULES[FFT, name] = of_axis


for _name in ("dct", "idct", "dst", "idst"):
    _cosine(_name)


@rule(FFT)
def next_fast_len(tx: TraceContext, target: object, real: object = False) -> int:
    library: Any = sys.modules[FFT]
    found: int = library.next_fast_len(int(integer(target, "a number of points")), bool(real))
    return found


# -- distances --------------------------------------------------------------------------------------
def _points(tx: TraceContext, value: object) -> ArrayRef:
    x = as_ref(tx, value)
    if x.ndim != 2 or x.dtype.is_complex:
        raise Unsupported(f"a routine of {DISTANCE} on other than real points in rows")
    made: Var = convert(tx, x.var, dtypes.float64)
    return array_of(emit(tx, "contiguous", made))


@rule(DISTANCE)
def cdist(tx: TraceContext, XA: object, XB: object, metric: Any = "euclidean", **more: object) -> ArrayRef:
    if metric not in ("euclidean", "sqeuclidean") or more:
        raise Unsupported(f"{DISTANCE}.cdist with these arguments")
    first, second = _points(tx, XA), _points(tx, XB)
    small = [np.ones((2, 3)), np.ones((4, 3))]
    shape = (first.shape[0], second.shape[0])
    return array_of(call(tx, DISTANCE, "cdist", [first, second], [shape], small, {"metric": metric})[0])


# -- matrices ---------------------------------------------------------------------------------------
def _vector(tx: TraceContext, value: object) -> tuple[ArrayRef, int]:
    x = as_ref(tx, value)
    size = x.shape[0] if x.ndim == 1 else None
    if not isinstance(size, int) or not size:
        raise Unsupported("a matrix of scipy.linalg of a symbolic size, or made of other than vectors")
    return x, size


@rule("scipy.linalg")
def toeplitz(tx: TraceContext, c: object, r: object = None) -> ArrayRef:
    """Rows are parts of one line of numbers, each a step before the one above."""
    column, m = _vector(tx, c)
    row, n = _vector(tx, c if r is None else r)
    if r is None and row.dtype.is_complex:
        row = array_of(emit(tx, "conj", row.var))
    line = concatenate(tx, (take(tx, column, np.arange(m)[::-1].copy()), take(tx, row, np.arange(1, n))))
    return take(tx, line, np.arange(m)[::-1, None] + np.arange(n))


@rule("scipy.linalg")
def hankel(tx: TraceContext, c: object, r: object = None) -> ArrayRef:
    """Rows are parts of one line of numbers, each a step behind the one above."""
    column, m = _vector(tx, c)
    row, n = _vector(tx, np.zeros(m, column.dtype.numpy) if r is None else r)
    line = concatenate(tx, (column, take(tx, row, np.arange(1, n))))
    return take(tx, line, np.arange(m)[:, None] + np.arange(n))


@rule("scipy.linalg")
def circulant(tx: TraceContext, c: object) -> ArrayRef:
    column, n = _vector(tx, c)
    return take(tx, column, (np.arange(n)[:, None] - np.arange(n)) % n)
