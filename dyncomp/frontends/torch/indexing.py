"""Subscripts. Integers and slices give views; then integer tensors gather; a boolean mask selects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import is_c_contiguous
from ...symbolic.integers import Dim, SymInt, same
from ..base import ArrayRef, IntegerRange, TraceContext, memory_of
from ..numpy.index_parse import (
    FULL,
    ArrayItem,
    Item,
    MaskItem,
    NewAxis,
    SliceItem,
    Subscript,
    apply_basic,
    parse,
)
from ..numpy.operands import broadcast_shapes, broadcast_to, emit
from .create import arange
from .data_dependent import by_mask, places_of
from .operands import (
    Number,
    axis_of,
    contiguous,
    convert,
    in_order,
    iteration_order,
    need_tensor,
    only_defaults,
    pointwise,
    tensor,
    to_var,
    write,
)
from .promote import is_tensor
from .shape import axes_in_memory
from .torch_rules import RuleTable

TABLE = RuleTable()


def _parsed(tx: TraceContext, x: ArrayRef, key: object) -> Subscript:
    subscript = parse(tx, _plain_key(tx, key), x.ndim)
    for item in subscript.items:
        if isinstance(item, SliceItem) and item.slice.step is not None and item.slice.step < 1:
            raise Unsupported("slice step must be positive")
        if isinstance(item, ArrayItem) and item.kind != "array":
            raise Unsupported("indexing with a number that the graph computes")
        if isinstance(item, ArrayItem) and item.var.dtype not in (dtypes.int64, dtypes.int32):
            raise Unsupported(f"indexing with a tensor of dtype {item.var.dtype}")
    if len({_is_position(subscript.items[k]) for k in subscript.fancy}) > 1:
        raise Unsupported("indexing with tensors, one of them without dimensions")
    return subscript


def _is_position(item: Item) -> bool:
    """Whether it is one position, which gives a view."""
    return isinstance(item, ArrayItem) and not item.var.ndim


def _plain_key(tx: TraceContext, key: object) -> Any:
    entries = key if isinstance(key, tuple) else (key,)
    if any(isinstance(e, (tuple, np.ndarray, np.generic)) for e in entries):
        raise Unsupported("a sequence or NumPy value in a subscript")
    if any(isinstance(e, (range, IntegerRange)) for e in entries):
        ready = tuple([_positions_in(tx, e) for e in entries])
        return ready if isinstance(key, tuple) else ready[0]
    return key


def _positions_in(tx: TraceContext, entry: object) -> object:
    """A range as the list of its numbers, or as a tensor where it is not known."""
    if isinstance(entry, IntegerRange):
        return arange(tx, entry.start, entry.stop, entry.step)
    return list(entry) if isinstance(entry, range) else entry


@TABLE.operator("getitem")
@TABLE.method("__getitem__")
def getitem(tx: TraceContext, x: object, key: object) -> ArrayRef:
    ref = need_tensor(x)
    subscript = _parsed(tx, ref, key)
    leading = _leading_mask(subscript)
    if leading is not None:
        return by_mask(tx, ref.var, leading)
    subscript = _masks_as_positions(tx, ref, subscript)
    basic = apply_basic(tx, ref.var, subscript.items, keeps_step=True)
    if not subscript.fancy:
        return tensor(basic.var)
    dims, indices = _gathered(tx, subscript, basic.dims)
    position = _position(dims)
    if any(_is_position(subscript.items[k]) for k in subscript.fancy):
        return _selected(tx, ref, basic.var, indices, dims)
    found = emit(tx, "index", basic.var, *indices, dims=dims, position=position)
    return tensor(in_order(tx, found, _order_of_gathered(basic.var, indices, dims, position)))


def _selected(
    tx: TraceContext, base: ArrayRef, x: Var, indices: list[Var], dims: tuple[int, ...]
) -> ArrayRef:
    """At positions that the data says: a view, of which a copy stands in the graph. Only of what lies dense,
    or along one axis: others would be asked how they lie."""
    kept = [axis for axis in range(x.ndim) if axis not in dims]
    shape, strides = (tuple(all_[axis] for axis in kept) for all_ in (x.shape, x.type.strides))
    if len(kept) > 1 and not is_c_contiguous(shape, strides):
        raise Unsupported("a view that starts where the data says")
    copy = emit(tx, "index", x, *indices, dims=dims, position=0)
    tx.builder.seen_as_views[copy.name] = base.var.name
    return ArrayRef(copy, "array", "torch", readonly=True)


def _order_of_gathered(x: Var, indices: list[Var], dims: tuple[int, ...], position: int) -> list[int]:
    """The axes of ``x[indices]`` from outermost to innermost: those of a pointwise result of ``x``,
    broadcast along the dimensions of the indices, and these (``AdvancedIndex`` of
    ATen/native/TensorAdvancedIndexing.h)."""
    kept = [axis for axis in range(x.ndim) if axis not in dims]
    shape, strides = [x.shape[a] for a in kept], [x.type.strides[a] for a in kept]
    many, rest = indices[0].ndim, len(kept) - position
    shape[position:position] = indices[0].shape
    strides[position:position] = [0] * many
    steps = [(*[0] * position, *index.type.strides, *[0] * rest) for index in indices]
    return iteration_order(shape, [strides, *steps])


def _leading_mask(subscript: Subscript) -> Var | None:
    """The mask of ``x[mask]``."""
    first = subscript.items[0] if subscript.items else None
    return first.var if isinstance(first, MaskItem) and all(i == FULL for i in subscript.items[1:]) else None


def _masks_as_positions(tx: TraceContext, x: ArrayRef, subscript: Subscript) -> Subscript:
    """Among other indices a mask is the positions where it holds, an integer tensor for each dimension."""
    if not subscript.masks:
        return subscript
    items: list[Item] = []
    axis = 0
    for item in subscript.items:
        if isinstance(item, MaskItem):
            covered = x.shape[axis : axis + item.var.ndim]
            if not item.var.ndim or not all(a == b for a, b in zip(item.var.shape, covered)):
                raise Unsupported("a boolean mask of another shape than the tensor")
            items += [ArrayItem(var, "array") for var in places_of(tx, item.var)]
            axis += item.var.ndim
        else:
            items.append(item)
            axis += not isinstance(item, NewAxis)
    return replace(subscript, items=tuple(items))


def _gathered(
    tx: TraceContext, subscript: Subscript, dims: tuple[int, ...]
) -> tuple[tuple[int, ...], list[Var]]:
    """The indexed dimensions of the basic view, and index tensors in their common shape."""
    chosen = tuple(dims[i] for i in subscript.fancy)
    arrays = [subscript.items[i].var for i in subscript.fancy]  # type: ignore[union-attr]
    ready = [convert(tx, a, dtypes.int64) for a in arrays]
    shape = broadcast_shapes(*(a.shape for a in ready))
    return chosen, [broadcast_to(tx, a, shape) for a in ready]


def _position(dims: tuple[int, ...]) -> int:
    """Where the index tensors' dimensions go: in the place of adjacent indexed dimensions, else first.
    Integers count as taken before (unlike in NumPy)."""
    return dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0


@TABLE.operator("setitem")
@TABLE.method("__setitem__")
def setitem(tx: TraceContext, x: object, key: Any, value: object) -> None:
    ref = need_tensor(x)
    ready = _assigned(tx, value, ref)
    if is_tensor(key) and key.dtype.is_bool:
        _write_masked(tx, ref, need_tensor(key), ready)
        return
    subscript = _parsed(tx, ref, key)
    subscript = _masks_as_positions(tx, ref, subscript)
    basic = apply_basic(tx, ref.var, subscript.items, keeps_step=True)
    target = tensor(basic.var)
    if not subscript.fancy:
        write(tx, target, _fit(tx, ready, target.shape))
        return
    dims, indices = _gathered(tx, subscript, basic.dims)
    position = _position(dims)
    rest = [d for axis, d in enumerate(target.shape) if axis not in dims]
    rest[position:position] = indices[0].shape
    params: dict[str, Any] = {"dims": dims, "position": position, "combine": "set"}
    write(tx, target, emit(tx, "index_put", target.var, _fit(tx, ready, tuple(rest)), *indices, **params))


def _assigned(tx: TraceContext, value: object, ref: ArrayRef) -> Var:
    if not is_tensor(value) and not isinstance(value, (*Number, SymInt, ArrayRef)):
        raise Unsupported(f"assigning a {type(value).__name__} to a tensor")
    if isinstance(value, float) and not ref.dtype.is_float:
        raise Unsupported("assigning a floating point number to integers")
    return to_var(tx, value, ref.dtype)


def _fit(tx: TraceContext, value: Var, shape: tuple[Dim, ...]) -> Var:
    """The assigned value broadcast; leading dimensions of size one too many are dropped."""
    extra = value.ndim - len(shape)
    if extra > 0:
        if not all(d == 1 for d in value.shape[:extra]):
            raise Unsupported("shape mismatch in an assignment")
        value = emit(tx, "reshape", value, shape=value.shape[extra:])
    return broadcast_to(tx, value, shape)


def _write_masked(tx: TraceContext, ref: ArrayRef, mask: ArrayRef, value: Var) -> None:
    wrong = not all(a == b for a, b in zip(mask.shape, ref.shape[: mask.ndim]))
    if wrong or (value.ndim and not mask.ndim):
        raise Unsupported("the shape of the mask does not match the indexed tensor")
    rest = ref.ndim - mask.ndim
    if value.ndim > rest:
        _write_selected(tx, ref, mask.var, value)
        return
    rows = emit(tx, "reshape", mask.var, shape=(*mask.shape, *(1,) * rest)) if rest else mask.var
    write(tx, ref, pointwise(tx, "where", rows, _fit(tx, value, ref.shape[mask.ndim :]), ref.var))


def _write_selected(tx: TraceContext, ref: ArrayRef, mask: Var, value: Var) -> None:
    """``x[mask] = values``: at the positions where the mask holds, in order. There are as many values as
    positions if both follow from one mask, as in ``x[mask] = f(y[mask])``."""
    if value.ndim != 1 + ref.ndim - mask.ndim:
        raise Unsupported("values that are broadcast over a mask", break_id="data-dependent-shape")
    places = places_of(tx, mask)
    wanted = (places[0].shape[0], *ref.shape[mask.ndim :])
    if not all(map(same, value.shape, wanted)):
        raise Unsupported("as many values as a mask selects", break_id="data-dependent-shape")
    params: dict[str, Any] = {"dims": tuple(range(mask.ndim)), "position": 0, "combine": "set"}
    write(tx, ref, emit(tx, "index_put", ref.var, value, *places, **params))


@TABLE.both("index_select")
def index_select(tx: TraceContext, input: object, dim: object, index: object) -> ArrayRef:
    """Negative positions raise in torch: they are moved out of bounds."""
    x, places = need_tensor(input), need_tensor(index)
    axis = axis_of(dim, x.ndim)
    if places.ndim != 1 or x.ndim == 0:
        raise Unsupported("index_select with an index that is no vector")
    checked = no_negative(tx, places.var, x.shape[axis])
    return tensor(contiguous(tx, emit(tx, "index", x.var, checked, dims=(axis,), position=axis)))


@TABLE.both("index_fill")
def index_fill(tx: TraceContext, input: object, dim: object, index: object, value: object) -> ArrayRef:
    x, places = need_tensor(input), need_tensor(index)
    axis = axis_of(dim, x.ndim)
    filled = _assigned(tx, value, x)
    if places.ndim != 1 or x.ndim == 0 or filled.ndim:
        raise Unsupported("index_fill with an index that is no vector")
    rows = (*x.shape[:axis], places.shape[0], *x.shape[axis + 1 :])
    params: dict[str, Any] = {"dims": (axis,), "position": axis, "combine": "set"}
    index_var = convert(tx, places.var, dtypes.int64)
    made = emit(tx, "index_put", x.var, broadcast_to(tx, filled, rows), index_var, **params)
    return tensor(in_order(tx, made, axes_in_memory(x.var)))


@TABLE.method("index_fill_")
def index_fill_(tx: TraceContext, self: object, dim: object, index: object, value: object) -> ArrayRef:
    return write(tx, self, index_fill(tx, self, dim, index, value).var)


def no_negative(tx: TraceContext, positions: Var, size: Dim) -> Var:
    """int64 positions with negative ones moved behind the end."""
    index = convert(tx, positions, dtypes.int64)
    zero, limit = to_var(tx, 0, dtypes.int64), to_var(tx, size, dtypes.int64)
    return pointwise(tx, "where", pointwise(tx, "less", index, zero), limit, index)


@TABLE.both("gather")
def gather(
    tx: TraceContext, input: object, dim: object, index: object, *, sparse_grad: object = False
) -> ArrayRef:
    x, places = need_tensor(input), need_tensor(index)
    axis = axis_of(dim, x.ndim)
    if places.ndim != x.ndim or x.ndim == 0 or places.dtype != dtypes.int64:
        raise Unsupported("gather with an index of another number of dimensions")
    if any(not a == b for i, (a, b) in enumerate(zip(x.shape, places.shape)) if i != axis):
        raise Unsupported("gather from a part of the input")
    checked = no_negative(tx, places.var, x.shape[axis])
    return tensor(contiguous(tx, emit(tx, "take_along_axis", x.var, checked, axis=axis)))


@TABLE.both("index_add")
def index_add(
    tx: TraceContext,
    input: object,
    dim: object,
    index: object,
    source: object,
    *,
    alpha: object = 1,
    out: object = None,
) -> ArrayRef:
    """Slices of ``source`` added one after the other, as torch does; negative positions raise."""
    only_defaults(out=out)
    if isinstance(alpha, ArrayRef) or alpha != 1:
        raise Unsupported("index_add with a factor")
    x, places, values = need_tensor(input), need_tensor(index), need_tensor(source)
    axis = axis_of(dim, x.ndim)
    if places.ndim != 1 or x.ndim == 0 or values.ndim != x.ndim or x.dtype.is_bool:
        raise Unsupported("index_add of bools, or without dimensions")
    wanted = (*x.shape[:axis], places.shape[0], *x.shape[axis + 1 :])
    if not all(a == b for a, b in zip(values.shape, wanted)) or values.dtype != x.dtype:
        raise Unsupported("index_add of a source of another shape or dtype")
    if not is_c_contiguous(x.shape, x.strides):
        raise Unsupported("index_add to a tensor that is not contiguous")
    checked = no_negative(tx, places.var, x.shape[axis])
    params: dict[str, Any] = {"dims": (axis,), "position": axis, "combine": "add"}
    return tensor(emit(tx, "index_put", x.var, values.var, checked, **params))


@TABLE.method("index_add_")
def index_add_(
    tx: TraceContext, self: object, dim: object, index: object, source: object, *, alpha: object = 1
) -> ArrayRef:
    target = memory_of(tx.builder, need_tensor(self).var)
    if target in [memory_of(tx.builder, need_tensor(given).var) for given in (index, source)]:
        raise Unsupported("index_add_ with operands that share memory with the target")
    return write(tx, self, index_add(tx, self, dim, index, source, alpha=alpha).var)
