"""Memory formats: the order of memory that torch suggests for a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import Unsupported
from ...graph.ir import GraphBuilder, Var
from ...prims.layout import is_c_contiguous
from ...prims.opdef import Contract, Pointwise
from ...symbolic.integers import Dim, hint, same
from ..base import TraceContext
from ..numpy.operands import emit
from .library import torch
from .operands import contiguous, in_order

_CHANNELS_FIRST, _CHANNELS_FIRST_3D = (1, 3, 2, 0), (1, 4, 3, 2, 0)  # axes from the innermost
FORMATS = {torch.contiguous_format: None, torch.channels_last: 4, torch.channels_last_3d: 5}  # with axes


def in_suggested_format(tx: TraceContext, x: Var, out: Var) -> Var:
    """In the memory format that torch suggests for the input: channels last if it is so, else in C order."""
    if is_c_contiguous(x.shape, x.type.strides):
        return contiguous(tx, out)
    if is_channels_last(x) or is_channels_last_3d(x):
        return in_order(tx, out, (0, *range(2, x.ndim), 1))
    return contiguous(tx, out)


def suggested_format(x: Var) -> Any:
    """``suggest_memory_format``. Refuses where axes of size one decide, whose strides are not guarded."""
    order = {4: _CHANNELS_FIRST, 5: _CHANNELS_FIRST_3D}.get(x.ndim, ())
    counting = [axis for axis in order if not same(x.shape[axis], 1)]
    if not order or not _ascend(x.shape, x.type.strides, counting):
        return torch.contiguous_format
    if len(counting) < len(order):
        raise Unsupported("the memory format of a tensor with axes of size one")
    return torch.channels_last if x.ndim == 4 else torch.channels_last_3d


def in_format(tx: TraceContext, x: Var, wanted: Any) -> Var:
    if FORMATS[wanted] is None:
        return contiguous(tx, x)
    if FORMATS[wanted] != x.ndim:
        raise Unsupported(f"{wanted} of {x.ndim} axes")
    return in_order(tx, x, (0, *range(2, x.ndim), 1))


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
    return x.ndim == 5 and _ascend(x.shape, x.type.strides, _CHANNELS_FIRST_3D)


def has_last_channels(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """``is_channels_last_strides_2d`` of c10/core/MemoryFormat.h."""
    return len(shape) == 4 and _ascend(shape, strides, _CHANNELS_FIRST)


def _ascend(shape: Sequence[Dim], strides: Sequence[Dim], order: Sequence[int]) -> bool:
    """Whether strides grow along the axes in order, from the channels' to the batch's."""
    if 1 in order and strides[1] == 0:
        return False
    least: Any = 0
    for axis in order:
        if shape[axis] == 0 or strides[axis] < least or (axis == 0 and least == strides[1]):
            return False
        least = strides[axis] * shape[axis]
    return True


def has_eager_strides(builder: GraphBuilder, x: Var) -> bool:
    """Whether eager's tensor has the strides of ``x`` along dimensions of size one, too. Guards and ops leave
    these free; they are known of what is computed in C order, and of rearranged axes of such."""
    node = builder.producer(x)
    if node is None or all(n > 1 for n in x.shape):
        return all(n > 1 for n in x.shape)
    row: Any = builder.table[node.op]
    if node.op == "transpose":
        return has_eager_strides(builder, node.inputs[0])
    if node.op == "reshape":
        return has_eager_strides(builder, node.inputs[0]) and _all_views_agree(node.inputs[0], x)
    if not x.type.is_contiguous:
        return False
    if isinstance(row.lower, Pointwise):  # operands in C order, and others that are broadcast, as biases are
        makers = [builder.producer(var) for var in node.inputs]
        spread = [made for made in makers if made is not None and made.op == "broadcast_in_dim"]
        own = [var for var, made in zip(node.inputs, makers) if made not in spread]
        operands = [*own, *(made.inputs[0] for made in spread)]
        return bool(own or not operands) and all(
            v.type.is_contiguous and has_eager_strides(builder, v) for v in operands
        )
    return isinstance(row.lower, Contract) or node.op == "contiguous"


def _all_views_agree(x: Var, made: Var) -> bool:
    """Whether ``made``, a reshape of ``x``, has eager's strides whether the program asked for it by ``view``,
    ``unsqueeze`` or ``squeeze``, which differ along dimensions of size one."""
    shape, strides = tuple(map(hint, x.shape)), tuple(map(hint, x.type.strides))
    wanted, found = tuple(map(hint, made.shape)), tuple(map(hint, made.type.strides))
    old = torch.empty_strided(shape, strides, device="meta")
    views = [old.view(wanted)]
    views += [view for view in map(old.unsqueeze, range(len(shape) + 1)) if view.shape == wanted]
    views += [view for view in map(old.squeeze, range(len(shape))) if view.shape == wanted]
    return all(view.stride() == found for view in [*views, old.squeeze()] if view.shape == wanted)
