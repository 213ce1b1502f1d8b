"""Tensors with zeros around them, and images whose places are repeated or made of channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import is_c_contiguous
from ...symbolic.integers import depends_on_data
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from .formats import (
    channels_inside,
    channels_outside,
    in_suggested_format,
    is_channels_last_3d,
    is_turned,
)
from .operands import as_own, contiguous, integer, need_tensor, tensor
from .shape import dense_copy
from .torch_rules import RuleTable, of_rank

TABLE = RuleTable()
# Factors of which the inverse is exact: torch multiplies with it.
_FACTORS = (1, 2, 4, 8, 16)


def _image(value: object, least: int) -> ArrayRef:
    x = need_tensor(value)
    if x.ndim < least or not all(type(d) is int and d > 0 for d in x.shape):
        raise Unsupported("a tensor of this shape as an image")
    if not is_c_contiguous(x.shape, x.strides) and is_channels_last_3d(x.var):
        raise Unsupported("volumes of channels last as images")
    return x


def _turned(tx: TraceContext, x: ArrayRef) -> Var:
    return contiguous(tx, channels_inside(tx, x.var))


def _turned_back(tx: TraceContext, x: Var) -> ArrayRef:
    return tensor(as_own(tx, channels_outside(tx, contiguous(tx, x))))


def _copied(tx: TraceContext, x: Var) -> Var:
    """In C order, and another array where it was already: results share no memory with images."""
    found: Var = emit(tx, "contiguous", x)
    return found


def _joined(tx: TraceContext, x: Var, shape: Sequence[int]) -> Var:
    """Fresh values in C order in another shape, as a tensor of its own that is no view."""
    found: Var = emit(tx, "copy", emit(tx, "reshape", x, shape=tuple(shape)))
    return found


def _regrouped(
    tx: TraceContext, x: Var, split: Sequence[int], perm: Sequence[int], shape: Sequence[int]
) -> Var:
    """Split into axes, which are permuted and joined."""
    parts = emit(tx, "reshape", contiguous(tx, x), shape=tuple(split))
    moved = _copied(tx, emit(tx, "transpose", parts, perm=tuple(perm)))
    return _joined(tx, moved, shape)


def _overflows(fill: float, dtype: DType) -> bool:
    """Whether a fill is finite and none of the dtype's numbers, which torch refuses (``overflows`` of
    c10/util/TypeCast.h)."""
    if isinstance(fill, float) and not math.isfinite(fill):
        return False
    return abs(fill) > float(np.finfo(dtype.numpy).max)


def _slice(tx: TraceContext, x: Var, axis: int, start: int, size: int, step: int = 1) -> Var:
    starts, sizes, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], sizes[axis], steps[axis] = start, size, step
    params = {"starts": tuple(starts), "sizes": tuple(sizes), "steps": tuple(steps)}
    found: Var = emit(tx, "strided_slice", x, **params)
    return found


def _reflected(tx: TraceContext, x: Var, axis: int, low: int, high: int) -> tuple[Var, Var]:
    size = int(x.shape[axis])
    return _slice(tx, x, axis, low, low, -1), _slice(tx, x, axis, max(size - 2, 0), high, -1)


def _replicated(tx: TraceContext, x: Var, axis: int, low: int, high: int) -> tuple[Var, Var]:
    def repeated(start: int, count: int) -> Var:
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        edge = _slice(tx, x, axis, start, 1)
        found: Var = emit(tx, "broadcast_in_dim", edge, shape=shape, dims=tuple(range(x.ndim)))
        return found

    return repeated(0, low), repeated(int(x.shape[axis]) - 1, high)


def _from_the_other_end(tx: TraceContext, x: Var, axis: int, low: int, high: int) -> tuple[Var, Var]:
    return _slice(tx, x, axis, int(x.shape[axis]) - low, low), _slice(tx, x, axis, 0, high)


# What lies before and behind an axis, and the largest width beyond the size of the axis that there may be.
_EDGES: dict[str, tuple[Callable[..., tuple[Var, Var]], float]] = {
    "reflect": (_reflected, -1),
    "replicate": (_replicated, math.inf),
    "circular": (_from_the_other_end, 0),
}


def _pad_edges(tx: TraceContext, x: ArrayRef, widths: tuple[Any, ...], mode: str, value: object) -> ArrayRef:
    """With elements of the image (ATen/native/{ReflectionPad,ReplicationPadding,PadNd}.cpp)."""
    edges, beyond = _EDGES[mode]
    rank = len(widths) // 2
    if value not in (None, 0) or len(widths) % 2 or not 1 <= rank <= 3 or x.ndim not in (rank + 1, rank + 2):
        raise Unsupported("padding with elements of the image of tensors of these dimensions")
    # the result is in C order, but for images with channels last
    if not x.dtype.is_float or not (rank == 1 or is_c_contiguous(x.shape, x.strides)):
        raise Unsupported("padding with elements of the image of tensors of this kind")
    if any(d == 0 if type(d) is int else depends_on_data(d) for d in x.shape):
        raise Unsupported("padding with elements of the image of tensors of this shape")
    out = x.var
    for axis, low, high in zip(reversed(range(x.ndim)), widths[::2], widths[1::2]):
        size = x.shape[axis]
        if type(size) is not int or not all(type(n) is int and 0 <= n <= size + beyond for n in (low, high)):
            raise Unsupported("padding with elements of the image by these widths")
        before, behind = edges(tx, out, axis, low, high)
        parts = [part for part, n in ((before, low), (out, 1), (behind, high)) if n]
        out = emit(tx, "concatenate", *parts, axis=axis) if len(parts) > 1 else out
    return tensor(_copied(tx, out) if out is x.var else contiguous(tx, out))


def pad(tx: TraceContext, input: Any, pad: Any, mode: Any = "constant", value: Any = None) -> ArrayRef:
    """With a constant (``constant_pad_nd`` of ATen/native/PadNd.cpp)."""
    x = need_tensor(input)
    if mode in _EDGES:
        return _pad_edges(tx, x, tuple(map(integer, pad)), mode, value)
    if not x.ndim or all(type(d) is int for d in x.shape):
        x = _image(input, 1)  # symbolic sizes are of tensors in C order
    elif x.ndim > 3 and not is_c_contiguous(x.shape, x.strides):
        raise Unsupported("padding of a tensor of changing sizes in another order than C's")
    fill = 0.0 if value is None else value
    if mode != "constant" or not x.dtype.is_float or type(fill) not in (int, float):
        raise Unsupported("padding of this mode, or with this value")
    if fill != 0 and x.dtype.itemsize < 4:
        raise Unsupported("padding of halves with a value that may have to be rounded")
    if fill != 0 and _overflows(fill, x.dtype):
        raise Unsupported("padding with a value that overflows the dtype", break_id="would-raise")
    given = tuple(map(integer, pad))
    if len(given) % 2 or len(given) > 2 * x.ndim or not all(type(n) is int and n >= 0 for n in given):
        raise Unsupported("padding by these widths")
    if not any(given):
        return tensor(dense_copy(tx, x.var))
    pairs = [(given[k], given[k + 1]) for k in range(0, len(given), 2)]
    widths = (*[(0, 0)] * (x.ndim - len(pairs)), *reversed(pairs))
    if is_turned(x.var):
        inner = tuple(widths[axis] for axis in (0, 2, 3, 1))
        return _turned_back(tx, emit(tx, "pad", _turned(tx, x), widths=inner, value=float(fill)))
    out = emit(tx, "pad", x.var, widths=widths, value=float(fill))
    return tensor(in_suggested_format(tx, x.var, out))


TABLE.function("_C._nn.pad")(pad)


def pixel_shuffle(tx: TraceContext, input: object, upscale_factor: object) -> ArrayRef:
    x, r = _image(input, 3), upscale_factor
    if type(r) is not int or r < 1:
        raise Unsupported("pixel_shuffle by this factor")
    *lead, channels, high, wide = x.shape
    if channels % (r * r):
        raise Unsupported("pixel_shuffle: the channels do not fit the factor")
    made, n = channels // (r * r), len(lead)
    if is_turned(x.var):
        split, shape = (*lead, high, wide, made, r, r), (*lead, high * r, wide * r, made)
        return _turned_back(tx, _regrouped(tx, _turned(tx, x), split, (0, 1, 4, 2, 5, 3), shape))
    split, shape = (*lead, made, r, r, high, wide), (*lead, made, high * r, wide * r)
    perm = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return tensor(_regrouped(tx, x.var, split, perm, shape))


TABLE.function("pixel_shuffle")(pixel_shuffle)


def pixel_unshuffle(tx: TraceContext, input: object, downscale_factor: object) -> ArrayRef:
    x, r = _image(input, 3), downscale_factor
    if type(r) is not int or r < 1:
        raise Unsupported("pixel_unshuffle by this factor")
    *lead, channels, high, wide = x.shape
    if high % r or wide % r:
        raise Unsupported("pixel_unshuffle: the sizes do not fit the factor")
    (rows, columns), n = (high // r, wide // r), len(lead)
    if is_turned(x.var):
        split, shape = (*lead, rows, r, columns, r, channels), (*lead, rows, columns, channels * r * r)
        return _turned_back(tx, _regrouped(tx, _turned(tx, x), split, (0, 1, 3, 5, 2, 4), shape))
    split, shape = (*lead, channels, rows, r, columns, r), (*lead, channels * r * r, rows, columns)
    perm = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return tensor(_regrouped(tx, x.var, split, perm, shape))


TABLE.function("pixel_unshuffle")(pixel_unshuffle)


def _factors(sizes: Sequence[int], output_size: Any, scales: Any) -> tuple[int, ...]:
    """How often each place is repeated along each axis."""
    rank = len(sizes)
    if output_size is not None:
        wanted = tuple(output_size)
        if len(wanted) != rank or any(type(n) is not int or n % d for n, d in zip(wanted, sizes)):
            raise Unsupported("nearest places of sizes that are no multiples")
        found = tuple(n // d for n, d in zip(wanted, sizes))
    else:
        given = tuple(scales)
        if len(given) != rank or any(s not in _FACTORS for s in given):
            raise Unsupported("nearest places by other factors")
        found = tuple(int(s) for s in given)
    if any(f not in _FACTORS for f in found):
        raise Unsupported("nearest places by these factors")
    return found


def nearest(
    tx: TraceContext, rank: int, input: object, output_size: object, scale_factors: object = None
) -> ArrayRef:
    """Each place is repeated; all other scales are the library's."""
    x = _image(input, rank + 2)
    if x.ndim != rank + 2 or not x.dtype.is_float or (output_size is None) == (scale_factors is None):
        raise Unsupported("nearest places of a tensor of this kind")
    sizes = [int(d) for d in x.shape[2:]]
    factors = _factors(sizes, output_size, scale_factors)
    pairs = [n for pair in zip(sizes, factors) for n in pair]
    made = [d * f for d, f in zip(sizes, factors)]
    if is_turned(x.var):
        shape = (x.shape[0], *pairs, x.shape[1])
        out: Var = emit(tx, "broadcast_in_dim", _turned(tx, x), shape=shape, dims=(0, 1, 3, 5))
        shape = (x.shape[0], *made, x.shape[1])
        return _turned_back(tx, _joined(tx, _copied(tx, out), shape))
    dims = (0, 1, *(2 + 2 * axis for axis in range(rank)))
    out = emit(tx, "broadcast_in_dim", x.var, shape=(*x.shape[:2], *pairs), dims=dims)
    return tensor(_joined(tx, _copied(tx, out), (*x.shape[:2], *made)))


for _rank in (1, 2, 3):
    TABLE.function(f"_C._nn.upsample_nearest{_rank}d")(of_rank(nearest, _rank))
