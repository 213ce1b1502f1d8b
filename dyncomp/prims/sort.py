"""Sorting and searching, by NumPy's own routines. NaN sorts last."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..dtypes import bool_, complex128, float32, float64, int8, int64, uint8
from ..graph.ir import ArrayType, array_type
from ..symbolic.integers import Dim, sym_max, sym_min
from .kit import NATIVE, Array, check_axis, require
from .layout import like
from .opdef import Extern, OpDef, Sample, Tolerance
from .samples import data, layouts, special

_FEW = (float64, int8, uint8, bool_, complex128, float32)


def sort_meta(x: ArrayType, *, axis: int, kind: str | None = None) -> ArrayType:
    require([x], NATIVE, "sort")
    check_axis(axis, x.ndim, "sort")
    return like(x)


def argsort_meta(x: ArrayType, *, axis: int, kind: str | None = None) -> ArrayType:
    require([x], NATIVE, "argsort")
    check_axis(axis, x.ndim, "argsort")
    return array_type(int64, x.shape, x.device)


def sort_ref(x: Array, *, axis: int, kind: str | None = None) -> Array:
    return np.sort(x, axis=axis, kind=kind)  # type: ignore[call-overload,arg-type]


def argsort_ref(x: Array, *, axis: int, kind: str | None = None) -> Array:
    return np.argsort(x, axis=axis, kind=kind)  # type: ignore[call-overload,arg-type]


def partition_meta(x: ArrayType, *, kth: tuple[int, ...], axis: int) -> ArrayType:
    require([x], NATIVE, "partition")
    check_axis(axis, x.ndim, "partition")
    return like(x)


def partition_ref(x: Array, *, kth: tuple[int, ...], axis: int) -> Array:
    return np.partition(x, kth, axis=axis)


def argpartition_meta(x: ArrayType, *, kth: tuple[int, ...], axis: int) -> ArrayType:
    require([x], NATIVE, "argpartition")
    check_axis(axis, x.ndim, "argpartition")
    return array_type(int64, x.shape, x.device)


def argpartition_ref(x: Array, *, kth: tuple[int, ...], axis: int) -> Array:
    return np.ascontiguousarray(np.argpartition(x, kth, axis=axis))


def search_meta(a: ArrayType, v: ArrayType, *, side: str) -> ArrayType:
    require([a, v], NATIVE, "searchsorted")
    if a.ndim != 1 or a.dtype is not v.dtype:
        raise ValueError("searchsorted needs a sorted vector and values of its dtype")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    return array_type(int64, v.shape, v.device)


def search_ref(a: Array, v: Array, *, side: str) -> Array:
    return np.asarray(np.searchsorted(a, v, side=side))  # type: ignore[call-overload]


def interp_meta(x: ArrayType, xp: ArrayType, fp: ArrayType) -> ArrayType:
    require([x, xp, fp], (float64,), "interp")
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError("interp needs vectors xp and fp")
    return array_type(float64, x.shape, x.device)


def interp_ref(x: Array, xp: Array, fp: Array) -> Array:
    return np.asarray(np.interp(x, xp, fp))


def _window_length(n: Dim, m: Dim, mode: str) -> Dim:
    if mode == "full":
        return n + m - 1
    longest = sym_max(n, m)
    if mode == "same":
        return longest
    if mode == "valid":
        return longest - sym_min(n, m) + 1
    raise ValueError(f"mode is 'full', 'same' or 'valid', not {mode!r}")


def window_meta(a: ArrayType, v: ArrayType, *, mode: str) -> ArrayType:
    require([a, v], NATIVE, "convolve")
    if a.ndim != 1 or v.ndim != 1 or a.dtype is not v.dtype:
        raise ValueError("convolve and correlate need two vectors of one dtype")
    return array_type(a.dtype, (_window_length(a.shape[0], v.shape[0], mode),), a.device)


def convolve_ref(a: Array, v: Array, *, mode: str) -> Array:
    return np.ascontiguousarray(np.convolve(a, v, mode))  # type: ignore[call-overload]


def correlate_ref(a: Array, v: Array, *, mode: str) -> Array:
    return np.ascontiguousarray(np.correlate(a, v, mode))  # type: ignore[call-overload]


# -- samples ----------------------------------------------------------------------------------
def axis_samples(**more: object) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in _FEW:
            for label, x in layouts(dtype):
                for axis in range(x.ndim):
                    yield Sample((x,), {"axis": axis, **more}, f"{dtype}-{label}-{axis}")
            yield Sample((special(dtype),), {"axis": 0, **more}, f"{dtype}-special")
        yield Sample((data(float32, (1000, 37)),), {"axis": 0, **more}, "large")

    return samples


def kth_samples() -> Iterator[Sample]:
    for dtype in _FEW:
        for label, x in layouts(dtype):
            for axis in range(x.ndim):
                # a result that is fully determined: all positions of short axes
                if x.shape[axis]:
                    kth = tuple(range(x.shape[axis]))
                    yield Sample((x,), {"kth": kth, "axis": axis}, f"{dtype}-{label}-{axis}")


def search_samples() -> Iterator[Sample]:
    for dtype in _FEW:
        table = np.sort(data(dtype, (9,), 5))
        for label, v in layouts(dtype):
            for side in ("left", "right"):
                yield Sample((table, v), {"side": side}, f"{dtype}-{label}-{side}")
        yield Sample((np.sort(special(dtype)), special(dtype)), {"side": "left"}, f"{dtype}-special")
    yield Sample((data(float64, (0,)), data(float64, (3,))), {"side": "left"}, "empty table")


def interp_samples() -> Iterator[Sample]:
    xp = np.linspace(-3.0, 3.0, 7)
    fp = data(float64, (7,))
    for label, x in layouts(float64):
        yield Sample((x, xp, fp), {}, label)
    yield Sample((special(float64), xp, fp), {}, "special")


def window_samples() -> Iterator[Sample]:
    for dtype in (float64, float32, int64, complex128):
        for mode in ("full", "same", "valid"):
            for n, m in ((7, 3), (3, 7), (5, 5), (1, 4)):
                pair = (data(dtype, (n,), 1), data(dtype, (m,), 2))
                yield Sample(pair, {"mode": mode}, f"{dtype}-{mode}-{n}-{m}")
    yield Sample((data(float64, (9,))[::-1], data(float64, (8,))[::2]), {"mode": "full"}, "strided")


_EXACT = Tolerance(0.0)

ROWS: tuple[OpDef, ...] = (
    OpDef(
        "sort",
        ("axis", "kind"),
        sort_meta,
        sort_ref,
        lower=Extern(),
        samples=axis_samples(kind=None),
        dtypes=NATIVE,
        tolerance=_EXACT,
        doc="Sorted along an axis, as `np.sort`.",
    ),
    OpDef(
        "argsort",
        ("axis", "kind"),
        argsort_meta,
        argsort_ref,
        lower=Extern(),
        samples=axis_samples(kind="stable"),
        dtypes=NATIVE,
        tolerance=_EXACT,
        doc="int64 positions that sort along an axis, as `np.argsort` (ties as its `kind`).",
    ),
    OpDef(
        "partition",
        ("kth", "axis"),
        partition_meta,
        partition_ref,
        lower=Extern(),
        samples=kth_samples,
        dtypes=NATIVE,
        tolerance=_EXACT,
        doc="Partly sorted: the elements `kth` are in place, as `np.partition`.",
    ),
    OpDef(
        "argpartition",
        ("kth", "axis"),
        argpartition_meta,
        argpartition_ref,
        lower=Extern(),
        samples=kth_samples,
        dtypes=NATIVE,
        tolerance=_EXACT,
        doc="int64 positions that partition, as `np.argpartition`.",
    ),
    OpDef(
        "searchsorted",
        ("side",),
        search_meta,
        search_ref,
        lower=Extern(),
        samples=search_samples,
        dtypes=NATIVE,
        tolerance=_EXACT,
        doc="int64 positions where values would keep the vector `a` sorted.",
    ),
    OpDef(
        "interp",
        (),
        interp_meta,
        interp_ref,
        lower=Extern(),
        samples=interp_samples,
        dtypes=(float64,),
        doc="Piecewise linear interpolation through (xp, fp), constant beyond the ends.",
    ),
    OpDef(
        "convolve",
        ("mode",),
        window_meta,
        convolve_ref,
        lower=Extern(),
        samples=window_samples,
        dtypes=NATIVE,
        tolerance=Tolerance(64.0),
        doc="Discrete convolution of two vectors; an empty one is an error.",
    ),
    OpDef(
        "correlate",
        ("mode",),
        window_meta,
        correlate_ref,
        lower=Extern(),
        samples=window_samples,
        dtypes=NATIVE,
        tolerance=Tolerance(64.0),
        doc="Cross-correlation of two vectors, the second conjugated.",
    ),
)
