"""Fourier transforms of many rows: NumPy's own loops, on the threads of the pool."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dtypes import complex64, complex128, float32, float64
from ...prims.opdef import Extern, OpDef
from ...runtime import _launch
from .values import Value

# Elements of an array from which its rows are shared among threads.
LEAST_ELEMENTS = 16_384


@functools.cache
def _ufuncs() -> Mapping[str, Any]:
    """NumPy's ufuncs by name; nothing where it keeps them elsewhere or they are not as they were."""
    names = ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft")
    try:
        module = importlib.import_module("numpy.fft._pocketfft_umath")
        found = {name: getattr(module, name) for name in names}
    except (ImportError, AttributeError):
        return {}
    right = all(isinstance(u, np.ufunc) and (u.nin, u.nout) == (2, 1) and u.signature for u in found.values())
    return found if right else {}


def fourier_routine(
    row: OpDef, params: Mapping[str, Any], operands: Sequence[Value]
) -> Callable[..., Any] | None:
    """What computes a transform whose rows can be shared among threads, if this is one."""
    if not isinstance(row.lower, Extern) or row.lower.transform is None or not _ufuncs():
        return None
    takes_real, _, _ = row.lower.transform
    (x,) = operands
    wanted = (float32, float64) if takes_real else (complex64, complex128)
    if x.dtype not in wanted or len(x.shape) < 2:
        return None
    return functools.partial(
        _transform, row.name, row.lower.transform, functools.partial(row.ref, **params), **params
    )


def _transform(
    name: str,
    kind: tuple[bool, bool, bool],
    plain: Callable[[Any], Any],
    x: Any,
    *,
    n: int | None,
    axis: int,
    norm: str | None = None,
) -> Any:
    """``np.fft.NAME(x, n, axis, norm)`` as NumPy computes it; ``plain`` is that itself."""
    takes_real, to_real, inverse = kind
    axis = axis % x.ndim
    points = ((x.shape[axis] - 1) * 2 if to_real else x.shape[axis]) if n is None else n
    if x.size < LEAST_ELEMENTS or points < 1:
        return plain(x)
    single = x.dtype.itemsize == (4 if takes_real else 8)
    factor = _factor(points, norm, inverse, np.dtype(np.float32 if single else np.float64))
    # without a factor NumPy takes the first of its loops that single precision can be converted for
    wide = x.astype(np.float64 if takes_real else np.complex128) if single and factor is None else x
    real = np.dtype(np.float32 if single and factor is not None else np.float64)
    length = points // 2 + 1 if takes_real else points
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    out = np.empty_like(wide, shape=shape, dtype=real if to_real else np.result_type(real, 1j))
    ufunc = _ufuncs()[f"rfft_n_{'odd' if points % 2 else 'even'}" if takes_real else name]
    _launch.transform_rows(ufunc, wide, 1.0 if factor is None else factor, out, axis)
    return out.astype(np.float32 if to_real else np.complex64) if wide is not x else out


def _factor(points: int, norm: str | None, inverse: bool, real: np.dtype[Any]) -> float | None:
    """What results are multiplied by, rounded as NumPy rounds it; nothing for 1."""
    if norm == "ortho":
        return float(np.reciprocal(np.sqrt(points, dtype=real)))
    scaled = norm in (None, "backward") if inverse else norm == "forward"
    return float(np.reciprocal(points, dtype=real)) if scaled else None
