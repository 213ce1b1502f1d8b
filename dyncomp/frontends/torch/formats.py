"""Memory formats: the order of memory that torch suggests for a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.ir import Var
from ...prims.layout import is_c_contiguous
from ...symbolic.integers import Dim
from ..base import TraceContext
from ..numpy.operands import emit
from .operands import contiguous, in_order


def in_suggested_format(tx: TraceContext, x: Var, out: Var) -> Var:
    """In the memory format that torch suggests for the input: channels last if it is so, else in C order."""
    if is_c_contiguous(x.shape, x.type.strides):
        return contiguous(tx, out)
    if is_channels_last(x) or is_channels_last_3d(x):
        return in_order(tx, out, (0, *range(2, x.ndim), 1))
    return contiguous(tx, out)


def is_channels_last(x: Var) -> bool:
    return has_last_channels(x.shape, x.type.strides)


def is_turned(x: Var) -> bool:
    """Whether an image's channels are innermost in memory: then so are those of results, and loops follow."""
    return x.ndim == 4 and not is_c_contiguous(x.shape, x.type.strides) and is_channels_last(x)


def channels_inside(tx: TraceContext, x: Var) -> Var:
    """An image with its channels as last axis."""
    found: Var = emit(tx, "transpose", x, perm=(0, 2, 3, 1))
    return found


def channels_outside(tx: TraceContext, x: Var) -> Var:
    """The inverse of ``channels_inside``."""
    found: Var = emit(tx, "transpose", x, perm=(0, 3, 1, 2))
    return found


def is_channels_last_3d(x: Var) -> bool:
    return x.ndim == 5 and _ascend(x.shape, x.type.strides, (1, 4, 3, 2, 0))


def has_last_channels(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """``is_channels_last_strides_2d`` of c10/core/MemoryFormat.h."""
    return len(shape) == 4 and _ascend(shape, strides, (1, 3, 2, 0))


def _ascend(shape: Sequence[Dim], strides: Sequence[Dim], order: Sequence[int]) -> bool:
    """Whether strides grow along the axes in order, from the channels' to the batch's."""
    if strides[1] == 0:
        return False
    least: Any = 0
    for axis in order:
        if shape[axis] == 0 or strides[axis] < least or (axis == 0 and least == strides[1]):
            return False
        least = strides[axis] * shape[axis]
    return True
