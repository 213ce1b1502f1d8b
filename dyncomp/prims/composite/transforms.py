"""Fourier transforms over several axes, one axis after the other as NumPy does (last axis first)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType, complex64, complex128, float32, float64
from ...graph.ir import Ops, Var
from ..kit import Array
from ..opdef import OpDef, Sample
from ..samples import layouts
from .kit import composite

_REAL = (float32, float64)
_COMPLEX = (complex64, complex128)
Lengths = tuple[Any, ...]
Axes = tuple[int, ...]


def _every_axis(transform: str) -> Callable[..., Var]:
    def decomp(ops: Ops, x: Var, *, lengths: Lengths, axes: Axes, norm: str | None = None) -> Var:
        for n, axis in reversed(list(zip(lengths, axes))):
            x = getattr(ops, transform)(x, n=n, axis=axis, norm=norm)
        return x

    return decomp


def rfftn(ops: Ops, x: Var, *, lengths: Lengths, axes: Axes, norm: str | None = None) -> Var:
    """The last of ``axes`` by rfft, the others by fft."""
    x = ops.rfft(x, n=lengths[-1], axis=axes[-1], norm=norm)
    for n, axis in reversed(list(zip(lengths[:-1], axes[:-1]))):
        x = ops.fft(x, n=n, axis=axis, norm=norm)
    return x


def irfftn(ops: Ops, x: Var, *, lengths: Lengths, axes: Axes, norm: str | None = None) -> Var:
    """All but the last of ``axes`` by ifft, the last by irfft."""
    for n, axis in zip(lengths[:-1], axes[:-1]):
        x = ops.ifft(x, n=n, axis=axis, norm=norm)
    return ops.irfft(x, n=lengths[-1], axis=axes[-1], norm=norm)


def _ref(fn: Callable[..., Any]) -> Callable[..., Array]:
    def ref(x: Array, *, lengths: Lengths, axes: Axes, norm: str | None = None) -> Array:
        given = None if all(n is None for n in lengths) else lengths
        return np.asarray(fn(x, s=given, axes=axes, norm=norm))

    return ref


def _samples(dtypes: Sequence[DType]) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for label, x in layouts(dtype):
                if x.ndim < 2 or x.size == 0 or min(x.shape) < 2:
                    continue
                for axes in sorted({(0, 1), (1, 0), tuple(range(x.ndim))}):
                    params = {"lengths": (None,) * len(axes), "axes": axes, "norm": None}
                    yield Sample((x,), params, f"{dtype}-{label}-{axes}")
                cut = {"lengths": (4, 6), "axes": (0, 1), "norm": "ortho"}
                yield Sample((x,), cut, f"{dtype}-{label}-cut")

    return samples


def _row(
    name: str, decomp: Callable[..., Any], fn: Callable[..., Any], dtypes: Sequence[DType], doc: str
) -> OpDef:
    return composite(
        name,
        ("lengths", "axes", "norm"),
        decomp,
        _ref(fn),
        _samples(dtypes),
        doc,
        dtypes=dtypes,
        eps=256.0,
        absolute=1024.0,
    )


ROWS: tuple[OpDef, ...] = (
    _row(
        "fftn",
        _every_axis("fft"),
        np.fft.fftn,
        _REAL + _COMPLEX,
        "Fourier transform over `axes`; `lengths` as n of fft.",
    ),
    _row(
        "ifftn", _every_axis("ifft"), np.fft.ifftn, _REAL + _COMPLEX, "Inverse Fourier transform over `axes`."
    ),
    _row("rfftn", rfftn, np.fft.rfftn, _REAL, "Fourier transform of real input over `axes`."),
    _row("irfftn", irfftn, np.fft.irfftn, _COMPLEX, "Inverse of rfftn."),
)
