"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...errors import Unsupported
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext
from .numpy_rules import RuleTable
from .operands import array_of, as_ref, convert, emit, integer, normalize_axes, normalize_axis
from .ufunc_methods import deliver, single_out
from .views import in_memory_as

TABLE = RuleTable()

_REAL_INPUT = ("rfft", "ihfft")
_COMPLEX_INPUT = ("irfft", "hfft")


def transform(tx: TraceContext, op: str, a: object, n: object, axis: object, norm: object) -> ArrayRef:
    """One transform along one axis."""
    x = as_ref(tx, a)
    if x.dtype in (dtypes.float16, dtypes.bfloat16):
        raise Unsupported("a Fourier transform of half precision")
    if x.dtype.is_complex and op in _REAL_INPUT:
        raise Unsupported(f"numpy.fft.{op} of complex numbers")
    if norm not in (None, "backward", "ortho", "forward"):
        raise Unsupported(f"Invalid norm value {norm!r}")
    if not x.ndim:
        raise Unsupported("a Fourier transform of a scalar")
    var = in_memory_as(tx, x.var, x.var) if op == "hfft" else x.var  # NumPy conjugates it first, by a ufunc
    var = var if x.dtype.is_inexact else convert(tx, var, dtypes.float64)
    if op in _COMPLEX_INPUT and not var.dtype.is_complex:
        wide = dtypes.complex64 if var.dtype == dtypes.float32 else dtypes.complex128
        var = convert(tx, var, wide)
    along = normalize_axis(axis, x.ndim)
    length: Dim | None = None if n is None else integer(n, "a number of points")
    if length is not None and not length > 0:
        raise Unsupported(f"Invalid number of FFT data points ({length}) specified.")
    if length is None and not x.shape[along] > (1 if op in _COMPLEX_INPUT else 0):
        raise Unsupported("a Fourier transform of no data points")
    return array_of(emit(tx, op, var, n=length, axis=along, norm=norm))


def _one_axis_rule(op: str) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        n: object = None,
        axis: object = -1,
        norm: object = None,
        out: object = None,
    ) -> ArrayRef:
        return deliver(tx, transform(tx, op, a, n, axis, norm).var, single_out(out))

    return rule


for _op in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    TABLE.function(f"fft.{_op}")(_one_axis_rule(_op))


def _several_axes_rule(op: str, default_axes: object) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        s: object = None,
        axes: object = default_axes,
        norm: object = None,
        out: object = None,
    ) -> ArrayRef:
        x = as_ref(tx, a)
        if not x.ndim:
            raise Unsupported("a Fourier transform over no axes")
        places, sizes = _places(x, s, axes)
        result = _transform_all(tx, op, x, places, sizes, norm)
        return deliver(tx, result.var, single_out(out))

    return rule


def _places(x: ArrayRef, s: Any, axes: Any) -> tuple[list[int], list[Any]]:
    if axes is None and s is not None:
        raise Unsupported("a Fourier transform with s= and without axes=")
    places = list(range(x.ndim)) if axes is None else [normalize_axis(i, x.ndim) for i in axes]
    sizes = [None] * len(places) if s is None else list(s)
    if len(sizes) != len(places) or any(size == -1 for size in sizes if size is not None):
        raise Unsupported("Shape and axes have different lengths.")
    return places, sizes


def _transform_all(
    tx: TraceContext, op: str, x: ArrayRef, places: Sequence[int], sizes: Sequence[Any], norm: object
) -> ArrayRef:
    steps = list(zip(sizes, places))
    if op == "irfft":
        order = [("ifft", n, i) for n, i in steps[:-1]] + [("irfft", *steps[-1])]
    elif op == "rfft":
        order = [("rfft", *steps[-1])] + [("fft", n, i) for n, i in reversed(steps[:-1])]
    else:
        order = [(op, n, i) for n, i in reversed(steps)]
    for name, n, axis in order:
        x = transform(tx, name, x, n, axis, norm)
    return x


for _op in ("fft", "ifft", "rfft", "irfft"):
    TABLE.function(f"fft.{_op}2")(_several_axes_rule(_op, (-2, -1)))
    TABLE.function(f"fft.{_op}n")(_several_axes_rule(_op, None))


def _shift_rule(forward: bool) -> Any:
    def rule(tx: TraceContext, x: object, axes: object = None) -> ArrayRef:
        ref = as_ref(tx, x)
        places = normalize_axes(axes, ref.ndim)
        if not places:
            raise Unsupported("not enough values to unpack")  # NumPy's roll says so of no axes at all
        halves = [ref.shape[i] // 2 for i in places]
        shifts = tuple(halves if forward else [-half for half in halves])
        return array_of(emit(tx, "roll", ref.var, shifts=shifts, axes=tuple(places)))

    return rule


TABLE.function("fft.fftshift")(_shift_rule(True))
TABLE.function("fft.ifftshift")(_shift_rule(False))
