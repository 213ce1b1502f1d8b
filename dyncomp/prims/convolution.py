"""Convolutions of stacks of images, in deep learning's sense: no kernel is turned round.

Images are ``(batch, channels, *sizes)``, any number of spatial dimensions; the kernels of a convolution are
``(channels out, channels in / groups, *sizes)``, those of a transposed one
``(channels in, channels out / groups, *sizes)``. ``channels_last`` lays the result out with its channels
innermost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..device import CPU
from ..dtypes import DType, bfloat16, float16, float32, float64
from ..graph.ir import ArrayType
from ..symbolic.integers import Dim
from .kit import Array, require
from .layout import dims_equal, strides_in_order
from .opdef import Convolve, Extern, OpDef, Sample, Tolerance
from .samples import data

DTYPES = (float32, float64)
Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


def _laid_out(x: ArrayType, shape: tuple[Dim, ...], channels_last: bool) -> ArrayType:
    rank = len(shape)
    order = (0, *range(2, rank), 1) if channels_last else tuple(range(rank))
    return ArrayType(x.dtype, shape, strides_in_order(shape, order), x.device)


def _check(x: ArrayType, w: ArrayType, name: str, groups: int, *per_axis: Sequence[Any]) -> int:
    """The number of spatial dimensions. A GPU's library convolves halves, too."""
    require([x, w], DTYPES if x.device == CPU else (*DTYPES, float16, bfloat16), name)
    if x.dtype is not w.dtype:
        raise TypeError(f"{name} needs operands of one dtype, not {x.dtype} and {w.dtype}")
    rank = x.ndim - 2
    if rank < 1 or w.ndim != x.ndim or any(len(given) != rank for given in per_axis):
        raise ValueError(
            f"{name}: {x.ndim} and {w.ndim} dimensions, and parameters for other numbers of them"
        )
    if groups < 1 or not isinstance(w.shape[0], int) or w.shape[0] % groups:
        raise ValueError(f"{name}: {w.shape[0]} kernels in {groups} groups")
    return rank


def convolution_meta(
    x: ArrayType,
    w: ArrayType,
    *,
    stride: Sizes,
    padding: Pads,
    dilation: Sizes,
    groups: int = 1,
    channels_last: bool = False,
) -> ArrayType:
    rank = _check(x, w, "convolution", groups, stride, padding, dilation)
    if not dims_equal(x.shape[1], w.shape[1] * groups):
        raise ValueError(f"convolution: {x.shape[1]} channels for kernels of {w.shape[1]} in {groups} groups")
    sizes: list[Dim] = []
    for axis in range(rank):
        low, high = padding[axis]
        reach = dilation[axis] * (w.shape[2 + axis] - 1) + 1
        sizes.append((x.shape[2 + axis] + low + high - reach) // stride[axis] + 1)
    return _laid_out(x, (x.shape[0], w.shape[0], *sizes), channels_last)


def wide_convolution_meta(x: ArrayType, w: ArrayType, **params: Any) -> ArrayType:
    if x.dtype is not bfloat16 or w.dtype is not bfloat16:
        raise TypeError(f"wide_convolution of {x.dtype} and {w.dtype}")
    return convolution_meta(replace(x, dtype=float32), replace(w, dtype=float32), **params)


def transpose_meta(
    x: ArrayType,
    w: ArrayType,
    *,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    dilation: Sizes,
    groups: int = 1,
    channels_last: bool = False,
) -> ArrayType:
    rank = _check(x, w, "convolution_transpose", groups, stride, padding, output_padding, dilation)
    if not dims_equal(x.shape[1], w.shape[0]):
        raise ValueError(f"convolution_transpose: {x.shape[1]} channels for {w.shape[0]} kernels")
    sizes: list[Dim] = []
    for axis in range(rank):
        reach = dilation[axis] * (w.shape[2 + axis] - 1) + output_padding[axis] + 1
        sizes.append((x.shape[2 + axis] - 1) * stride[axis] - 2 * padding[axis] + reach)
    return _laid_out(x, (x.shape[0], w.shape[1] * groups, *sizes), channels_last)


def _innermost(x: Array) -> Array:
    """With the channels innermost in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


# -- references -------------------------------------------------------------------------------
def _padded(x: Array, padding: Pads) -> Array:
    """With zeros around; negative widths cut off."""
    widths = [(max(low, 0), max(high, 0)) for low, high in padding]
    x = np.pad(x, ((0, 0), (0, 0), *widths))
    cuts = [slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(x.shape[2:], padding)]
    return x[(slice(None), slice(None), *cuts)]


def convolution_ref(
    x: Array,
    w: Array,
    *,
    stride: Sizes,
    padding: Pads,
    dilation: Sizes,
    groups: int = 1,
    channels_last: bool = False,
) -> Array:
    """A product of the kernels with the windows that they see, group by group."""
    rank = len(stride)
    axes = tuple(range(2, 2 + rank))
    reach = tuple(d * (n - 1) + 1 for d, n in zip(dilation, w.shape[2:]))
    seen = np.lib.stride_tricks.sliding_window_view(_padded(x, padding), reach, axes)
    seen = seen[(slice(None), slice(None), *[slice(None, None, s) for s in (*stride, *dilation)])]
    batch, channels, out = seen.shape[0], seen.shape[1] // groups, seen.shape[2 : 2 + rank]
    split = seen.reshape(batch, groups, channels, *out, *w.shape[2:])
    places = (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
    points = split.transpose(places).reshape(
        groups, batch * math.prod(out), channels * math.prod(w.shape[2:])
    )
    kernels = w.reshape(groups, w.shape[0] // groups, -1).swapaxes(1, 2)
    found = np.matmul(points, kernels).reshape(groups, batch, *out, w.shape[0] // groups)
    back = (1, 0, 2 + rank, *range(2, 2 + rank))
    result = np.ascontiguousarray(found.transpose(back)).reshape(batch, w.shape[0], *out)
    return _innermost(result) if channels_last else result


def wide_convolution_ref(x: Array, w: Array, **params: Any) -> Array:
    return convolution_ref(x.astype(np.float32), w.astype(np.float32), **params)


def transpose_ref(
    x: Array,
    w: Array,
    *,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    dilation: Sizes,
    groups: int = 1,
    channels_last: bool = False,
) -> Array:
    """A convolution of the image with its elements moved apart by the turned kernels."""
    rank = len(stride)
    sizes = [(n - 1) * s + 1 for n, s in zip(x.shape[2:], stride)]
    apart = np.zeros((*x.shape[:2], *sizes), x.dtype)
    apart[(slice(None), slice(None), *[slice(None, None, s) for s in stride])] = x
    pads = []
    for axis in range(rank):
        edge = dilation[axis] * (w.shape[2 + axis] - 1) - padding[axis]
        pads.append((edge, edge + output_padding[axis]))
    split = w.reshape(groups, w.shape[0] // groups, *w.shape[1:]).swapaxes(1, 2)
    kernels = np.flip(split.reshape(-1, w.shape[0] // groups, *w.shape[2:]), tuple(range(2, 2 + rank)))
    return convolution_ref(
        apart,
        kernels,
        stride=(1,) * rank,
        padding=tuple(pads),
        dilation=dilation,
        groups=groups,
        channels_last=channels_last,
    )


# -- samples ----------------------------------------------------------------------------------
# (image, kernels, stride, padding, dilation, groups), one number for all axes.
_CASES: tuple[tuple[Sizes, Sizes, int, tuple[int, int], int, int], ...] = (
    ((2, 3, 9, 11), (4, 3, 3, 3), 1, (1, 1), 1, 1),
    ((1, 3, 9, 20), (4, 3, 3, 3), 2, (1, 1), 1, 1),
    ((1, 4, 7, 7), (6, 4, 1, 1), 1, (0, 0), 1, 1),
    ((2, 4, 7, 8), (6, 4, 1, 1), 2, (0, 0), 1, 1),
    ((1, 3, 12, 12), (5, 3, 5, 3), 3, (2, 1), 1, 1),
    ((1, 2, 12, 40), (3, 2, 3, 3), 1, (2, 2), 2, 1),
    ((2, 6, 8, 8), (4, 3, 3, 3), 1, (0, 0), 1, 2),
    ((2, 5, 10, 19), (5, 1, 3, 3), 1, (1, 1), 1, 5),
    ((1, 5, 10, 19), (5, 1, 5, 5), 2, (2, 2), 1, 5),
    ((1, 5, 10, 19), (10, 1, 3, 3), 1, (1, 1), 1, 5),
    ((2, 3, 30), (4, 3, 5), 2, (2, 2), 1, 1),
    ((1, 3, 50), (4, 3, 4), 1, (3, 0), 3, 1),
    ((1, 2, 5, 6, 7), (3, 2, 3, 2, 3), 1, (1, 1), 1, 1),
    ((1, 20, 14, 14), (37, 20, 3, 3), 1, (1, 1), 1, 1),
    ((1, 3, 4, 4), (2, 3, 4, 4), 1, (0, 0), 1, 1),
    ((0, 3, 4, 4), (2, 3, 3, 3), 1, (0, 0), 1, 1),
)


def _sample(dtype: DType, case: tuple[Any, ...], last: bool) -> Sample:
    shape, kernels, stride, padding, dilation, groups = case
    rank = len(shape) - 2
    params = {
        "stride": (stride,) * rank,
        "padding": (padding,) * rank,
        "dilation": (dilation,) * rank,
        "groups": groups,
        "channels_last": last,
    }
    x, w = data(dtype, shape, 1), data(dtype, kernels, 2)
    label = f"{dtype}-{shape}-{kernels}-{stride}-{padding}-{dilation}-{groups}-{last}"
    return Sample((_innermost(x), _innermost(w)) if last else (x, w), params, label)


def convolution_samples() -> Iterator[Sample]:
    for dtype, case, last in itertools.product(DTYPES, _CASES, (False, True)):
        yield _sample(dtype, case, last)
    x, w = data(float32, (2, 8, 12, 14), 1), data(float32, (4, 5, 3, 3), 2)
    params = {"stride": (1, 2), "padding": ((1, 0), (0, 2)), "dilation": (2, 1)}
    yield Sample((x[:, ::2, 1:, ::-1], w[:, 1:, :, ::-1]), params, "strided")


def wide_convolution_samples() -> Iterator[Sample]:
    for case, last in itertools.product(_CASES, (False, True)):
        if len(case[0]) <= 4 and case[1][1] > 1:  # as `narrow` makes them
            yield _sample(bfloat16, case, last)


def transpose_samples() -> Iterator[Sample]:
    for dtype, last in itertools.product(DTYPES, (False, True)):
        for stride, padding, extra, dilation, groups in ((1, 0, 0, 1, 1), (2, 1, 1, 1, 2), (3, 2, 0, 2, 1)):
            x, w = data(dtype, (2, 4, 5, 6), 1), data(dtype, (4, 3, 3, 2), 2)
            params = {
                "stride": (stride,) * 2,
                "padding": (padding,) * 2,
                "output_padding": (extra,) * 2,
                "dilation": (dilation,) * 2,
                "groups": groups,
                "channels_last": last,
            }
            yield Sample((x, w), params, f"{dtype}-{stride}-{padding}-{extra}-{dilation}-{groups}-{last}")


ROWS: tuple[OpDef, ...] = (
    OpDef(
        "convolution",
        ("stride", "padding", "dilation", "groups", "channels_last"),
        convolution_meta,
        convolution_ref,
        lower=Convolve(),
        samples=convolution_samples,
        dtypes=DTYPES,
        # sums in another order of the terms, which are far larger than some sums
        tolerance=Tolerance(1024.0, 1024.0),
        doc="Convolution over the last dimensions; `padding` has the zeros before and after each of them.",
    ),
    OpDef(
        "wide_convolution",
        ("stride", "padding", "dilation", "groups", "channels_last"),
        wide_convolution_meta,
        wide_convolution_ref,
        lower=Convolve(),
        samples=wide_convolution_samples,
        tolerance=Tolerance(1024.0, 1024.0),
        doc="`convolution` of bfloat16 over one or two dimensions, with sums and results in float32.",
    ),
    OpDef(
        "convolution_transpose",
        ("stride", "padding", "output_padding", "dilation", "groups", "channels_last"),
        transpose_meta,
        transpose_ref,
        lower=Extern(),
        samples=transpose_samples,
        dtypes=DTYPES,
        tolerance=Tolerance(64.0, 64.0),
        doc="The transpose of a convolution with respect to its image; `output_padding` is what is added at "
        "the end of each dimension.",
    ),
)
