"""Pooling over windows of the last dimensions."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import Unsupported
from ...graph.ir import Literal, Var
from ...prims.layout import is_c_contiguous
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from .formats import channels_inside, channels_outside, in_suggested_format, is_turned
from .functional import real_tensor
from .gradients import is_differentiated, where_true, with_gradient
from .operands import contiguous, convert, pointwise, tensor, to_var
from .reductions import widened
from .torch_rules import RuleTable, of_rank

TABLE = RuleTable()
_MOST_POINTS = 64  # of a window: each is an operand of the generated loop


@dataclass(frozen=True)
class _Windows:
    """Windows over the last ``len(kernel)`` dimensions."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool

    def count(self, axis: int, size: int) -> int:
        """How many windows there are along an axis (``pooling_output_shape`` of ATen/native/Pool.h)."""
        k, s, p, d = self.kernel[axis], self.stride[axis], self.padding[axis], self.dilation[axis]
        span = size + 2 * p - d * (k - 1) - 1
        found = (span + (s - 1 if self.ceil else 0)) // s + 1
        if self.ceil and (found - 1) * s >= size + p:
            found -= 1
        return found

    def share(self) -> bool:
        """Whether windows overlap, or reach beyond the edges, over several axes."""
        spans = ((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation))
        return len(self.kernel) > 1 and (any(map(operator.gt, spans, self.stride)) or any(self.padding))

    def along(self, axis: int) -> _Windows:
        """Those over one axis."""
        one = slice(axis, axis + 1)
        return _Windows(self.kernel[one], self.stride[one], self.padding[one], self.dilation[one], self.ceil)

    def seen(self, axis: int, size: int, padding: bool) -> list[int]:
        """How many elements each window of an axis has, with those of the padding or without."""
        k, s, p = self.kernel[axis], self.stride[axis], self.padding[axis]
        starts = [s * number - p for number in range(self.count(axis, size))]
        if padding:
            return [min(start + k, size + p) - start for start in starts]
        return [min(start + k, size) - max(start, 0) for start in starts]


def _sizes(value: object, rank: int, name: str) -> tuple[int, ...]:
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(given) == 1:
        given *= rank
    if len(given) != rank or not all(type(v) is int for v in given):
        raise Unsupported(f"{name}={value!r} in pooling over {rank} dimensions")
    return given


def _windows(
    rank: int,
    kernel_size: object,
    stride: object,
    padding: object,
    dilation: object,
    ceil_mode: object,
    apart: bool,
) -> _Windows:
    """``apart``: each axis is gone over by itself where there are many elements."""
    kernel = _sizes(kernel_size, rank, "kernel_size")
    step = kernel if stride is None or stride in ([], ()) else _sizes(stride, rank, "stride")
    pad, gap = _sizes(padding, rank, "padding"), _sizes(dilation, rank, "dilation")
    if min(*kernel, *step, *gap, 1) < 1 or any(not 0 <= p <= k // 2 for p, k in zip(pad, kernel)):
        raise Unsupported("pooling with these sizes of windows, steps or padding")
    if (max(kernel) if apart else math.prod(kernel)) > _MOST_POINTS:
        raise Unsupported(f"pooling over windows of more than {_MOST_POINTS} elements")
    return _Windows(kernel, step, pad, gap, bool(ceil_mode))


def _input(value: object, rank: int) -> ArrayRef:
    x = real_tensor(value)
    if x.ndim not in (rank + 1, rank + 2) or not all(type(d) is int and d > 0 for d in x.shape):
        raise Unsupported("pooling of a tensor of this shape")
    if rank == 3 and x.dtype.itemsize < 4:
        raise Unsupported("pooling of halves over three dimensions")
    if rank != 2 and not is_c_contiguous(x.shape, x.strides):
        raise Unsupported("pooling over one or three dimensions of a tensor that is not contiguous")
    return x


def _points(tx: TraceContext, x: Var, windows: _Windows, fill: float, lead: int) -> list[Var]:
    """For each place in a window the tensor of what the windows over the axes from ``lead`` on have there."""
    rank = len(windows.kernel)
    counts = [windows.count(a, int(x.shape[lead + a])) for a in range(rank)]
    if min(counts) < 1:
        raise Unsupported("pooling: the output would be too small")
    x = _padded(tx, x, windows, counts, fill, lead)
    behind = x.ndim - lead - rank
    sizes = (*x.shape[:lead], *counts, *x.shape[lead + rank :])
    steps = (*(1,) * lead, *windows.stride, *(1,) * behind)
    found = []
    for place in itertools.product(*map(range, windows.kernel)):
        starts = (*(0,) * lead, *(p * d for p, d in zip(place, windows.dilation)), *(0,) * behind)
        found.append(emit(tx, "strided_slice", x, starts=starts, sizes=sizes, steps=steps))
    return found


def _padded(
    tx: TraceContext, x: Var, windows: _Windows, counts: Sequence[int], fill: float, lead: int
) -> Var:
    """The input with what its windows see outside of it."""
    widths: list[tuple[int, int]] = [(0, 0)] * lead
    for axis, count in enumerate(counts):
        size, low = int(x.shape[lead + axis]), windows.padding[axis]
        reach = (count - 1) * windows.stride[axis] + windows.dilation[axis] * (windows.kernel[axis] - 1) + 1
        widths.append((low, max(0, reach - size - low)))
    widths += [(0, 0)] * (x.ndim - len(widths))
    if not any(low or high for low, high in widths):
        return x
    found: Var = emit(tx, "pad", x, widths=tuple(widths), value=fill)
    return found


def _pooled(tx: TraceContext, op: str, x: Var, wide: Var, windows: _Windows, fill: float) -> Var:
    """What is in each window combined, in the memory format suggested for ``x``: ``wide`` is ``x`` in another
    dtype, perhaps."""
    rank = len(windows.kernel)
    if rank != 2 or not is_turned(x):
        return _own(tx, _over_axes(tx, op, wide, windows, fill, x.ndim - rank), windows)
    turned = channels_inside(tx, wide)
    return channels_outside(tx, _own(tx, _over_axes(tx, op, turned, windows, fill, 1), windows))


def _own(tx: TraceContext, x: Var, windows: _Windows) -> Var:
    """In C order, and not in the input's memory: windows of one element give a slice of it."""
    alone = math.prod(windows.kernel) == 1
    found: Var = emit(tx, "contiguous", x) if alone else contiguous(tx, x)
    return found


def _over_axes(tx: TraceContext, op: str, x: Var, windows: _Windows, fill: float, lead: int) -> Var:
    """Windows over the axes from ``lead`` on. A maximum is that of maxima along one axis, which windows that
    overlap share; sums are made in one go, in the order of the elements."""
    joint = math.prod(windows.kernel) <= _MOST_POINTS and not windows.share()
    # of several extreme elements the first in the order of memory has the gradient
    joint = joint or is_differentiated(tx, x)
    if op != "maximum" or joint:
        return _combined(tx, op, _points(tx, x, windows, fill, lead))
    for axis in range(len(windows.kernel)):
        x = _combined(tx, op, _points(tx, x, windows.along(axis), fill, lead + axis))
    return x


def _combined(tx: TraceContext, op: str, points: Sequence[Var]) -> Var:
    out = points[0]
    for point in points[1:]:
        before = out
        out = pointwise(tx, op, before, point)
        if op == "maximum" and is_differentiated(tx, before, point):
            later = pointwise(tx, "greater", point, before)
            first = pointwise(tx, "logical_not", later)
            out = with_gradient(tx, out, (before, where_true(tx, first)), (point, where_true(tx, later)))
    return out


def max_pool(
    tx: TraceContext,
    rank: int,
    input: object,
    kernel_size: object,
    stride: object = None,
    padding: object = 0,
    dilation: object = 1,
    ceil_mode: object = False,
) -> ArrayRef:
    x = _input(input, rank)
    windows = _windows(rank, kernel_size, stride, padding, dilation, ceil_mode, True)
    return tensor(_pooled(tx, "maximum", x.var, x.var, windows, float("-inf")))


TABLE.function("max_pool1d")(of_rank(max_pool, 1))
TABLE.function("max_pool2d")(of_rank(max_pool, 2))
TABLE.function("max_pool3d")(of_rank(max_pool, 3))


def avg_pool(
    tx: TraceContext,
    rank: int,
    input: object,
    kernel_size: object,
    stride: object = None,
    padding: object = 0,
    ceil_mode: object = False,
    count_include_pad: object = True,
    divisor_override: object = None,
) -> ArrayRef:
    x = _input(input, rank)
    windows = _windows(rank, kernel_size, stride, padding, 1, ceil_mode, False)
    if divisor_override is not None and (type(divisor_override) is not int or divisor_override == 0):
        raise Unsupported("average pooling with this divisor")
    wide = widened(tx, x.var)
    tx.unsure += 1
    total = _pooled(tx, "add", x.var, wide, windows, 0.0)
    divisor = _divisor(tx, windows, total, x, bool(count_include_pad), divisor_override)
    out = pointwise(tx, "divide", total, divisor)
    return tensor(in_suggested_format(tx, x.var, convert(tx, out, x.dtype)))


def _divisor(
    tx: TraceContext, windows: _Windows, total: Var, x: ArrayRef, include_pad: bool, given: int | None
) -> Var:
    """By what the sum of each window is divided (``avg_pool2d`` of ATen/native/cpu/AvgPoolKernel.cpp)."""
    if given is not None:
        return to_var(tx, float(given), total.dtype)
    rank = len(windows.kernel)
    lead = x.ndim - rank
    counts = [windows.seen(axis, int(x.shape[lead + axis]), include_pad) for axis in range(rank)]
    if all(len(set(count)) == 1 for count in counts):
        return to_var(tx, float(math.prod(count[0] for count in counts)), total.dtype)
    found = functools.reduce(np.multiply.outer, (np.array(count) for count in counts))
    literal = Literal.of(found.astype(total.dtype.numpy), total.dtype)
    numbers = emit(tx, "constant", literal=literal)
    spread: Var = emit(tx, "broadcast_in_dim", numbers, shape=total.shape, dims=tuple(range(lead, x.ndim)))
    return spread


TABLE.function("avg_pool1d", "F.avg_pool1d")(of_rank(avg_pool, 1))
TABLE.function("F.avg_pool2d", "_C._nn.avg_pool2d")(of_rank(avg_pool, 2))
TABLE.function("_C._nn.avg_pool3d")(of_rank(avg_pool, 3))


def adaptive_avg_pool(tx: TraceContext, rank: int, input: Any, output_size: Any) -> ArrayRef:
    """Where the windows are all of one size."""
    x = _input(input, rank)
    lead = x.ndim - rank
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    wanted = [int(x.shape[lead + a]) if n is None else n for a, n in enumerate(given)]
    sizes = [int(d) for d in x.shape[lead:]]
    if len(wanted) != rank or any(type(n) is not int or n < 1 or d % n for n, d in zip(wanted, sizes)):
        raise Unsupported("adaptive pooling over windows of different sizes")
    wide = widened(tx, contiguous(tx, x.var))
    split = [part for n, d in zip(wanted, sizes) for part in (n, d // n)]
    blocks = emit(tx, "reshape", wide, shape=(*x.shape[:lead], *split))
    axes = tuple(lead + 1 + 2 * a for a in range(rank))
    total = emit(tx, "reduce_sum", blocks, axes=axes)
    count = to_var(tx, float(math.prod(sizes) // math.prod(wanted)), wide.dtype)
    out = convert(tx, pointwise(tx, "divide", contiguous(tx, total), count), x.dtype)
    return tensor(in_suggested_format(tx, x.var, out))


TABLE.function("adaptive_avg_pool1d", "F.adaptive_avg_pool1d")(of_rank(adaptive_avg_pool, 1))
TABLE.function("F.adaptive_avg_pool2d", "_C._nn.adaptive_avg_pool2d")(of_rank(adaptive_avg_pool, 2))
TABLE.function("_C._nn.adaptive_avg_pool3d")(of_rank(adaptive_avg_pool, 3))
