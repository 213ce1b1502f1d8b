"""Reductions and scans.

Sums of floats may be taken in any order: the row's tolerance is stated per element of the reduced extent
as NumPy's own pairwise sum would have it. NaN propagates in max and min, and is the first extreme value
for argmax and argmin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, float32, int64
from ..graph.ir import ArrayType, array_type
from .kit import ANY, BOOL, NUMBER, Array, axes_tuple, check_axis, drop, laid_out, require, widening
from .layout import is_zero, k_order_axes, k_order_strides, strides_in_order
from .opdef import NEVER, OpDef, Reduce, Sample, Scan, Tolerance
from .samples import data, layouts, special

Axes = tuple[int, ...]


def reduced_type(x: ArrayType, axes: Sequence[int], dtype: DType) -> ArrayType:
    """The type of ``x`` without ``axes``, in the iterator's order over all of ``x``."""
    order = k_order_axes(x.shape, [x.strides])
    kept = [a for a in range(x.ndim) if a not in axes]
    place = {axis: i for i, axis in enumerate(kept)}
    shape = drop(x.shape, axes)
    strides = strides_in_order(shape, [place[a] for a in order if a in place])
    return ArrayType(dtype, shape, strides, x.device)


def reduce_meta(
    name: str, allowed: Sequence[DType], needs_elements: bool = False
) -> Callable[..., ArrayType]:
    def meta(x: ArrayType, *, axes: Axes) -> ArrayType:
        require([x], allowed, name)
        checked = axes_tuple(axes, x.ndim, name)
        if needs_elements and any(is_zero(x.shape[a]) for a in checked):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        return reduced_type(x, checked, x.dtype)

    return meta


def reduce_ref(fn: Callable[..., Any]) -> Callable[..., Array]:
    run = widening(lambda x, axes: fn(x, axis=axes, dtype=x.dtype))

    def ref(x: Array, *, axes: Axes) -> Array:
        return run(x, axes)

    return ref


# -- argmax and argmin ------------------------------------------------------------------------
def position_meta(name: str) -> Callable[..., ArrayType]:
    def meta(x: ArrayType, *, axis: int) -> ArrayType:
        require([x], ANY, name)
        check_axis(axis, x.ndim, name)
        if is_zero(x.shape[axis]):
            raise ValueError(f"attempt to get {name} of an empty sequence")
        return array_type(int64, drop(x.shape, (axis,)), x.device)

    return meta


def position_ref(fn: Callable[..., Any]) -> Callable[..., Array]:
    run = widening(lambda x, axis: fn(x, axis=axis))

    def ref(x: Array, *, axis: int) -> Array:
        return run(x, axis)

    return ref


# -- scans ------------------------------------------------------------------------------------
def scan_meta(name: str, allowed: Sequence[DType]) -> Callable[..., ArrayType]:
    def meta(x: ArrayType, *, axis: int) -> ArrayType:
        require([x], allowed, name)
        check_axis(axis, x.ndim, name)
        return ArrayType(x.dtype, x.shape, k_order_strides(x.shape, [x.strides]), x.device)

    return meta


def scan_ref(fn: np.ufunc) -> Callable[..., Array]:
    run = widening(lambda x, axis: fn.accumulate(x, axis=axis, dtype=x.dtype))

    def ref(x: Array, *, axis: int) -> Array:
        return run(x, axis)

    return ref


# -- samples ----------------------------------------------------------------------------------
def _axes_choices(x: Array) -> Iterator[Axes]:
    every = tuple(range(x.ndim))
    yield every
    if x.ndim > 1:
        yield from ((axis,) for axis in every)
    if x.ndim == 3:
        yield (0, 2)
    if x.ndim:
        yield ()


def _reduce_samples(
    dtypes: Sequence[DType], needs_elements: bool, extremes: bool, low: float, high: float
) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for label, x in layouts(dtype, low=low, high=high):
                for axes in _axes_choices(x):
                    if needs_elements and any(x.shape[a] == 0 for a in axes):
                        continue
                    yield Sample((x,), {"axes": axes}, f"{dtype}-{label}-{axes}")
            if extremes:
                yield Sample((special(dtype),), {"axes": (0,)}, f"{dtype}-special")
        for axes in ((0,), (1,), (0, 1)):
            row = data(dtypes[-1], (1000, 37), low=low, high=high)
            column = data(dtypes[0], (37, 1000), low=low, high=high).T
            yield Sample((row,), {"axes": axes}, f"large-{axes}")
            yield Sample((column,), {"axes": axes}, f"large-transposed-{axes}")
            if len(dtypes) > 1:
                single = data(float32, (1000, 37), low=low, high=high)
                yield Sample((single,), {"axes": axes}, f"float32-large-{axes}")

    return samples


def _axis_samples(
    dtypes: Sequence[DType], needs_elements: bool, extremes: bool, low: float, high: float
) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for label, x in layouts(dtype, low=low, high=high):
                for axis in range(x.ndim):
                    if needs_elements and x.shape[axis] == 0:
                        continue
                    params: Mapping[str, Any] = {"axis": axis}
                    yield Sample((x,), params, f"{dtype}-{label}-{axis}")
            if extremes:
                yield Sample((special(dtype),), {"axis": 0}, f"{dtype}-special")
                yield Sample((np.repeat(special(dtype), 2)[::-1],), {"axis": 0}, f"{dtype}-ties")
        for axis in (0, 1):
            yield Sample((data(float32, (1000, 37), low=low, high=high),), {"axis": axis}, f"large-{axis}")

    return samples


def reduction(
    name: str,
    ufunc: np.ufunc,
    combine: str,
    allowed: Sequence[DType],
    doc: str,
    *,
    needs_elements: bool = False,
    extremes: bool = True,
    eps: float = 64.0,
    low: float = -4.0,
    high: float = 4.0,
) -> OpDef:
    meta = reduce_meta(name, allowed, needs_elements)
    return OpDef(
        name,
        ("axes",),
        meta,
        laid_out(reduce_ref(ufunc.reduce), meta),
        lower=Reduce(combine),
        samples=_reduce_samples(allowed, needs_elements, extremes, low, high),
        dtypes=tuple(allowed),
        tolerance=Tolerance(eps),
        doc=doc,
    )


def position(name: str, fn: Callable[..., Any], doc: str) -> OpDef:
    return OpDef(
        name,
        ("axis",),
        position_meta(name),
        position_ref(fn),
        lower=Reduce(name),
        samples=_axis_samples(ANY, True, True, -4.0, 4.0),
        dtypes=ANY,
        tolerance=Tolerance(0.0),
        doc=doc,
        rounds={"f": NEVER},
    )


def scan(
    name: str,
    ufunc: np.ufunc,
    combine: str,
    allowed: Sequence[DType],
    doc: str,
    *,
    extremes: bool = True,
    eps: float = 64.0,
    low: float = -4.0,
    high: float = 4.0,
) -> OpDef:
    meta = scan_meta(name, allowed)
    return OpDef(
        name,
        ("axis",),
        meta,
        laid_out(scan_ref(ufunc), meta),
        lower=Scan(combine),
        samples=_axis_samples(allowed, False, extremes, low, high),
        dtypes=tuple(allowed),
        tolerance=Tolerance(eps),
        doc=doc,
    )


ROWS: tuple[OpDef, ...] = (
    reduction(
        "reduce_sum",
        np.add,
        "sum",
        ANY,
        "Sum over axes in the input's dtype (integers wrap; logical or for bool); 0 for none.",
    ),
    reduction(
        "reduce_prod",
        np.multiply,
        "prod",
        ANY,
        "Product over axes in the input's dtype (integers wrap; logical and for bool); 1 for none.",
        low=0.8,
        high=1.25,
    ),
    reduction(
        "reduce_max",
        np.maximum,
        "max",
        ANY,
        "Largest element over axes; NaN if there is one; an empty extent is an error.",
        needs_elements=True,
        eps=0.0,
    ),
    reduction(
        "reduce_min",
        np.minimum,
        "min",
        ANY,
        "Smallest element over axes; NaN if there is one; an empty extent is an error.",
        needs_elements=True,
        eps=0.0,
    ),
    reduction("reduce_any", np.logical_or, "any", BOOL, "Whether any element is true.", eps=0.0),
    reduction("reduce_all", np.logical_and, "all", BOOL, "Whether all elements are true.", eps=0.0),
    position(
        "argmax", np.argmax, "int64 position of the first largest element; of the first NaN if there is one."
    ),
    position(
        "argmin", np.argmin, "int64 position of the first smallest element; of the first NaN if there is one."
    ),
    scan("cumsum", np.add, "sum", NUMBER, "Running sum along an axis."),
    scan("cumprod", np.multiply, "prod", NUMBER, "Running product along an axis.", low=0.8, high=1.25),
    scan(
        "cummax", np.maximum, "max", ANY, "Running maximum along an axis; NaN from the first NaN on.", eps=0.0
    ),
    scan(
        "cummin", np.minimum, "min", ANY, "Running minimum along an axis; NaN from the first NaN on.", eps=0.0
    ),
)
