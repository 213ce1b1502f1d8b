"""NumPy's own routines on whole arrays, in the forms in which graphs call them (``library_call``)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from .kit import Array, quiet


def _unravel(indices: Array, *, shape: tuple[int, ...], order: Any) -> Array:
    """A row of indices for each place; NumPy gives the columns of such an array."""
    return np.stack(np.unravel_index(indices, shape, order), axis=-1)


def _ravel(*indices: Any, dims: tuple[int, ...], mode: Any, order: Any) -> Any:
    return np.ravel_multi_index(indices, dims, mode, order)


def _choose(index: Array, *choices: Array, mode: Any) -> Any:
    return np.choose(index, choices, mode=mode)


@quiet
def _reduced(x: Array, *, ufunc: str, axis: object, keepdims: bool) -> Any:
    return getattr(np, ufunc).reduce(x, axis=axis, keepdims=keepdims)


@quiet
def _accumulated(x: Array, *, ufunc: str, axis: int) -> Any:
    return getattr(np, ufunc).accumulate(x, axis=axis)


@quiet
def _reduced_at(x: Array, indices: Array, *, ufunc: str, axis: int) -> Any:
    return getattr(np, ufunc).reduceat(x, indices, axis=axis)


@quiet
def _nan_statistic(x: Array, *rest: Array, statistic: str, axis: Any, **options: object) -> Any:
    """Where NumPy would warn of a slice that holds nothing but NaN the original program is to run."""
    if x.size == 0 or (x.dtype.kind in "fc" and np.isnan(x).all(axis=axis).any()):
        raise ValueError("All-NaN slice encountered")
    return getattr(np, statistic)(x, *rest, axis=axis, **options)


def _lstsq(a: Array, b: Array, *, rcond: Any) -> Any:
    solution, residuals, rank, values = np.linalg.lstsq(a, b, rcond)
    return solution, residuals, np.asarray(rank), values


def _least_squares(a: Array, b: Array, *, rcond: Any) -> Any:
    return np.linalg.lstsq(a, b, rcond)[0]


def _in_order(*inputs: Array, routine: str, orders: tuple[tuple[int, ...], ...], **options: object) -> Any:
    """A routine whose results are laid out in another way: each with its axes in the order that makes it
    contiguous."""
    made = ROUTINES[routine](*inputs, **options)
    results = made if isinstance(made, tuple) else (made,)
    return tuple(np.asarray(array).transpose(order) for array, order in zip(results, orders, strict=True))


def _histogram2d(x: Array, y: Array, *rest: Array, bins: Any, range: Any, density: Any) -> Any:
    """Without ``density`` with a border, of which NumPy gives the inner part."""
    counts, *edges = np.histogram2d(x, y, bins, range, density, rest[0] if rest else None)
    return (counts if density else np.pad(counts, 1)), *edges


ROUTINES: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        "accumulated": _accumulated,
        "choose": _choose,
        "histogram2d": _histogram2d,
        "in_order": _in_order,
        "isin": np.isin,
        "least_squares": _least_squares,
        "lstsq": _lstsq,
        "nan_statistic": _nan_statistic,
        "packbits": np.packbits,
        "ravel": _ravel,
        "reduced": _reduced,
        "reduced_at": _reduced_at,
        "unpackbits": np.unpackbits,
        "unravel": _unravel,
    }
)
