"""Results whose size depends on the data, by NumPy's routines on the tensors' memory (``prims/dynamic``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import int32, int64
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import Dim, SymInt, product
from ..base import ArrayRef, TraceContext
from ..known import known_array, pinned_array
from ..meaning import size_of, size_of_selection
from ..numpy.data_dependent import call, positions
from ..numpy.operands import broadcast_to, emit, literal
from .create import arange
from .operands import axis_of, contiguous, need_tensor, tensor
from .torch_rules import RuleTable

TABLE = RuleTable()


def selects(tx: TraceContext, mask: Var) -> Dim:
    """How many elements a mask selects, without looking at the data where it is made of sizes alone."""
    known = pinned_array(tx.builder, mask) if tx.may_pin() else known_array(tx.builder, mask)
    return size_of_selection(tx, mask) if known is None else int(np.count_nonzero(known))


def places_of(tx: TraceContext, mask: Var) -> tuple[Var, ...]:
    """Where a mask holds, an index for each dimension."""
    return positions(tx, mask, selects(tx, mask))


def by_mask(tx: TraceContext, x: Var, mask: Var) -> ArrayRef:
    """``x[mask]`` where the mask covers the leading dimensions."""
    covered = x.shape[: mask.ndim]
    if not mask.ndim or not all(a == b for a, b in zip(mask.shape, covered)):
        raise Unsupported("a boolean mask of another shape than the tensor")
    shape = (selects(tx, mask), *x.shape[mask.ndim :])
    return tensor(call(tx, "select", [x, mask], [(x.dtype, shape)]))


@TABLE.function("masked_select")
@TABLE.method("masked_select")
def masked_select(tx: TraceContext, input: object, mask: object) -> ArrayRef:
    x, chosen = need_tensor(input), need_tensor(mask)
    if not chosen.dtype.is_bool or chosen.ndim != x.ndim:
        raise Unsupported("masked_select with a mask that is broadcast")
    return by_mask(tx, x.var, chosen.var)


@TABLE.function("nonzero")
@TABLE.method("nonzero")
def nonzero(tx: TraceContext, input: object, *, as_tuple: bool = False) -> Any:
    x = need_tensor(input)
    if not x.ndim:
        raise Unsupported("nonzero of a tensor without dimensions", break_id="data-dependent-shape")
    if as_tuple:
        return tuple(map(tensor, places_of(tx, x.var)))
    shape = (x.ndim, selects(tx, x.var))
    return tensor(emit(tx, "transpose", call(tx, "argwhere", [x.var], [(int64, shape)]), perm=(1, 0)))


@TABLE.both("bincount")
def bincount(tx: TraceContext, input: object, weights: object = None, minlength: object = 0) -> ArrayRef:
    """Of negative numbers NumPy raises, too: the original runs."""
    x = need_tensor(input)
    if weights is not None or type(minlength) is not int or minlength < 0 or x.ndim != 1:
        raise Unsupported("bincount with weights")
    if not x.dtype.is_integer:
        raise Unsupported("bincount of something else than integers")
    shape = (size_of(tx, "bincount", x.var, low=minlength),)
    return tensor(call(tx, "bincount", [x.var], [(int64, shape)], minlength=minlength))


@TABLE.both("repeat_interleave")
def repeat_interleave(
    tx: TraceContext, input: object, repeats: object = None, dim: object = None, *, output_size: object = None
) -> ArrayRef:
    """A tensor of counts says what is taken from which place, as an index. Of negative ones NumPy raises,
    too: the original runs."""
    if output_size is not None:
        raise Unsupported("repeat_interleave of a size that is given")
    x = need_tensor(input)
    source = x.var
    if dim is None or not x.ndim:
        source = emit(tx, "reshape", contiguous(tx, source), shape=(product(x.shape),))
    axis = 0 if dim is None else axis_of(dim, source.ndim)
    if type(repeats) is int or isinstance(repeats, SymInt):  # torch takes no bool
        return tensor(_each(tx, source, repeats, axis))
    counts = x if repeats is None else need_tensor(repeats)
    if counts.ndim != 1 or counts.dtype not in (int32, int64):
        raise Unsupported("repeat_interleave with counts of this type")
    if repeats is None:
        return tensor(_places(tx, counts.var))
    if counts.shape[0] != source.shape[axis]:
        raise Unsupported("repeat_interleave: repeats must have the same size as input along dim")
    taken = emit(tx, "index", source, _places(tx, counts.var), dims=(axis,), position=axis)
    return tensor(contiguous(tx, taken))


def _each(tx: TraceContext, x: Var, count: Dim, axis: int) -> Var:
    """Each place ``count`` times."""
    if count < 0:
        raise Unsupported("repeat_interleave: repeats can not be negative")
    before, after = x.shape[: axis + 1], x.shape[axis + 1 :]
    split = emit(tx, "reshape", x, shape=(*before, 1, *after))
    spread = contiguous(tx, broadcast_to(tx, split, (*before, count, *after)))
    made: Var = emit(tx, "reshape", spread, shape=(*before[:-1], before[-1] * count, *after))
    return made


def _places(tx: TraceContext, counts: Var) -> Var:
    """The number of each count, as often as it says."""
    known = pinned_array(tx.builder, counts) if tx.may_pin() else known_array(tx.builder, counts)
    if known is not None and (known >= 0).all():
        return literal(tx, np.repeat(np.arange(len(known)), known))
    numbers = arange(tx, counts.shape[0]).var
    size = size_of(tx, "repeat", counts, along=counts.shape[0])
    made: Var = call(tx, "repeat", [numbers, counts], [(int64, (size,))], axis=0)
    return made
