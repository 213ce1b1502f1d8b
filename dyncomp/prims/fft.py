"""One-dimensional discrete Fourier transforms, by NumPy's own routine (pocketfft).

``n``: length of the transform (an integer; the input is cut or padded with zeros), or ``None`` for the
input's. ``norm``: ``None`` or "backward", "ortho", "forward". Transforms over several axes are composites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..dtypes import DType, complex64, complex128, float32, float64
from ..graph.ir import ArrayType
from ..symbolic.integers import Dim
from .kit import Array, check_axis, replace, require
from .layout import is_zero, k_order_strides, sorted_axes, strides_in_order
from .opdef import Extern, OpDef, Sample, Tolerance
from .samples import layouts

_REAL = (float32, float64)
_COMPLEX = (complex64, complex128)
_COMPLEX_OF = {float32: complex64, float64: complex128, complex64: complex64, complex128: complex128}

Length = Callable[[Dim], Dim]


def transform_meta(
    name: str, allowed: tuple[DType, ...], to_real: bool, default: Length, length: Length
) -> Callable[..., ArrayType]:
    """``default``: transform length for an input length; ``length``: result length for a transform
    length. The result has the memory order of the input (of its conjugate for hfft)."""

    def meta(x: ArrayType, *, n: Dim | None, axis: int, norm: str | None = None) -> ArrayType:
        require([x], allowed, name)
        check_axis(axis, x.ndim, name)
        points = default(x.shape[axis]) if n is None else n
        if is_zero(points):
            raise ValueError(f"{name}: invalid number of data points (0)")
        shape = replace(x.shape, axis, length(points))
        dtype = x.dtype.real if to_real else _COMPLEX_OF[x.dtype]
        strides = k_order_strides(x.shape, [x.strides]) if name == "hfft" else x.strides
        return ArrayType(dtype, shape, strides_in_order(shape, sorted_axes(x.shape, strides)), x.device)

    return meta


def transform_ref(fn: Callable[..., Any], meta: Callable[..., ArrayType]) -> Callable[..., Array]:
    def ref(x: Array, *, n: int | None, axis: int, norm: str | None = None) -> Array:
        return np.asarray(fn(x, n=n, axis=axis, norm=norm))

    return ref


def _samples(dtypes: tuple[DType, ...], shortest: int) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for label, x in layouts(dtype):
                for axis in range(x.ndim):
                    if x.shape[axis] < shortest or x.size == 0:
                        continue
                    for n, norm in ((None, None), (3, "ortho"), (10, "forward")):
                        yield Sample(
                            (x,), {"n": n, "axis": axis, "norm": norm}, f"{dtype}-{label}-{axis}-{n}"
                        )

    return samples


def transform(
    name: str,
    fn: Callable[..., Any],
    allowed: tuple[DType, ...],
    doc: str,
    *,
    to_real: bool = False,
    default: Length = lambda n: n,
    length: Length = lambda n: n,
    shortest: int = 1,
    inverse: bool = False,
    shared: bool = True,
) -> OpDef:
    meta = transform_meta(name, allowed, to_real, default, length)
    return OpDef(
        name,
        ("n", "axis", "norm"),
        meta,
        transform_ref(fn, meta),
        lower=Extern(transform=(allowed == _REAL, to_real, inverse) if shared else None),
        samples=_samples(allowed, shortest),
        dtypes=allowed,
        tolerance=Tolerance(64.0),
        doc=doc,
    )


ROWS: tuple[OpDef, ...] = (
    transform("fft", np.fft.fft, _REAL + _COMPLEX, "Discrete Fourier transform along an axis."),
    transform(
        "ifft",
        np.fft.ifft,
        _REAL + _COMPLEX,
        "Inverse discrete Fourier transform along an axis.",
        inverse=True,
    ),
    transform(
        "rfft",
        np.fft.rfft,
        _REAL,
        "Fourier transform of real input: the n//2 + 1 terms of non-negative frequency.",
        length=lambda n: n // 2 + 1,
    ),
    transform(
        "irfft",
        np.fft.irfft,
        _COMPLEX,
        "Inverse of rfft; n defaults to 2*(m - 1).",
        to_real=True,
        default=lambda m: (m - 1) * 2,
        shortest=2,
        inverse=True,
    ),
    transform(
        "hfft",
        np.fft.hfft,
        _COMPLEX,
        "Fourier transform of a signal with Hermitian symmetry: real spectrum; n defaults to 2*(m - 1).",
        to_real=True,
        default=lambda m: (m - 1) * 2,
        shortest=2,
        shared=False,
    ),
    transform("ihfft", np.fft.ihfft, _REAL, "Inverse of hfft.", length=lambda n: n // 2 + 1, shared=False),
)
