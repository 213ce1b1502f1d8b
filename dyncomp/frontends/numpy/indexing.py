"""Reading and writing subscripts: basic (views), advanced (copies), boolean masks (writes only)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import Dim, same
from ..base import ArrayRef, TraceContext, memory_of
from .data_dependent import positions
from .index_parse import (
    ArrayItem,
    IntItem,
    Item,
    MaskItem,
    NewAxis,
    SliceItem,
    Subscript,
    apply_basic,
    parse,
)
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    constant,
    convert,
    emit,
    is_scalar_constant,
    to_var,
    value_of,
    view_of,
    write,
)

TABLE = RuleTable()


# -- reading ----------------------------------------------------------------------------------
@TABLE.operator("getitem")
@TABLE.method("__getitem__")
def getitem(tx: TraceContext, x: object, key: object) -> ArrayRef:
    """``x[key]``: a view or a scalar for basic subscripts, a copy for integer arrays and boolean masks."""
    if not isinstance(x, ArrayRef):
        return getitem(tx, as_ref(tx, x), key)
    if x.kind != "array":
        if key == () and isinstance(key, tuple):
            return x
        raise Unsupported("invalid index to scalar variable")
    subscript = parse(tx, key, x.ndim)
    subscript = by_positions(tx, subscript, x.shape)
    if subscript.fancy:
        return _read_fancy(tx, x, subscript)
    view = apply_basic(tx, x.var, subscript.items).var
    if subscript.all_integers:
        return value_of(emit(tx, "copy", view))
    return view_of(x, view)


def by_positions(tx: TraceContext, subscript: Subscript, shape: tuple[Dim, ...]) -> Subscript:
    """Masks replaced by the positions that they select, whose number depends on the data."""
    items: list[Item] = []
    axis = 0
    for item in subscript.items:
        if not isinstance(item, MaskItem):
            items.append(item)
            axis += 0 if isinstance(item, NewAxis) else 1
            continue
        covered = shape[axis : axis + item.var.ndim]
        if not all(a == b for a, b in zip(item.var.shape, covered)):
            raise Unsupported("boolean index did not match the shape of the indexed array")
        items += [ArrayItem(var, "array") for var in positions(tx, item.var)]
        axis += item.var.ndim
    return Subscript(tuple(items), subscript.ellipsis)


def _masked_in_place(subscript: Subscript, value: Var) -> bool:
    """Whether a masked assignment is a choice between two values at each position: where the value does not
    vary along the selected elements."""
    if len(subscript.masks) != 1 or len(subscript.fancy) != 1:
        return False
    after = sum(not isinstance(i, IntItem) for i in subscript.items[subscript.masks[0] + 1 :])
    has_integers = any(isinstance(item, IntItem) for item in subscript.items)
    if not value.ndim:
        return True
    return not has_integers and (value.ndim <= after or same(value.shape[value.ndim - after - 1], 1))


def _read_fancy(tx: TraceContext, x: ArrayRef, subscript: Subscript) -> ArrayRef:
    fancy = _fancy(tx, x.var, subscript)
    result = gather(tx, fancy.view, fancy.indices, fancy.dims, fancy.position)
    if result.shape and all(_is_scalar_item(subscript.items[i]) for i in subscript.fancy):
        rest = [s for axis, s in enumerate(fancy.view.type.strides) if axis not in fancy.dims]
        if result.ndim > 1 and not all(map(same, rest, result.type.strides)):
            raise Unsupported("indexing with a scalar known at run time gives a view in another order")
        # a copy here, a view in the program: nobody writes to it, or to its array, in this graph
        tx.builder.seen_as_views[result.name] = x.var.name
        return ArrayRef(result, "array", readonly=True)
    return array_of(result) if subscript.ellipsis else value_of(result)


def _is_scalar_item(item: object) -> bool:
    return isinstance(item, ArrayItem) and item.kind != "array"


class _Fancy:
    """An advanced subscript: the basic part applied, and what ``index`` and ``index_put`` need."""

    def __init__(self, view: Var, indices: list[Var], dims: tuple[int, ...], position: int) -> None:
        self.view = view
        self.indices = indices
        self.dims = dims
        self.position = position

    def result_shape(self) -> tuple[Dim, ...]:
        rest = [d for axis, d in enumerate(self.view.shape) if axis not in self.dims]
        rest[self.position : self.position] = self.indices[0].shape
        return tuple(rest)


def _fancy(tx: TraceContext, x: Var, subscript: Subscript) -> _Fancy:
    basic = apply_basic(tx, x, subscript.items)
    arrays = [subscript.items[i] for i in subscript.fancy]
    indices = index_arrays(tx, [item.var for item in arrays if isinstance(item, ArrayItem)])
    dims = tuple(basic.dims[i] for i in subscript.fancy)
    return _Fancy(basic.var, indices, dims, result_position(subscript))


def result_position(subscript: Subscript) -> int:
    """Where the dimensions of the index arrays go: in the place of the indices if they stand together,
    else first. Integers count as index arrays here."""
    advanced = [
        i for i, item in enumerate(subscript.items) if isinstance(item, (ArrayItem, MaskItem, IntItem))
    ]
    if advanced[-1] - advanced[0] + 1 != len(advanced):
        return 0
    before = subscript.items[: advanced[0]]
    return sum(isinstance(item, (SliceItem, NewAxis)) for item in before)


def index_arrays(tx: TraceContext, arrays: list[Var]) -> list[Var]:
    """Index arrays as int64 in their common shape."""
    ready = [convert(tx, a, dtypes.int64) for a in arrays]
    shape = broadcast_shapes(*(a.shape for a in ready))
    return [broadcast_to(tx, a, shape) for a in ready]


def gather(tx: TraceContext, x: Var, indices: list[Var], dims: tuple[int, ...], position: int) -> Var:
    """The ``index`` op; the indices are as :func:`index_arrays` gives them."""
    return emit(tx, "index", x, *indices, dims=dims, position=position)


# -- writing ----------------------------------------------------------------------------------
@TABLE.operator("setitem")
@TABLE.method("__setitem__")
def setitem(tx: TraceContext, x: object, key: object, value: object) -> None:
    """``x[key] = value``. Values are cast as NumPy's assignment casts (``unsafe``)."""
    if not isinstance(x, ArrayRef) or x.kind != "array":
        raise Unsupported("item assignment on something that is not an array")
    if isinstance(key, ArrayRef) and key.kind != "masked" and key.dtype.is_bool and not key.ndim:
        _write_where(tx, x, key.var, assigned_value(tx, value, x.dtype))
        return
    subscript = parse(tx, key, x.ndim)
    checked = value if subscript.fancy or subscript.masks else fitting(tx, value, x.dtype)
    ready = assigned_value(tx, checked, x.dtype)
    if _masked_in_place(subscript, ready):
        _write_masked(tx, x, subscript, ready)
    elif subscript.fancy:
        _refuse_own_memory(tx, x.var, subscript, ready)
        _write_fancy(tx, x, by_positions(tx, subscript, x.shape), ready, "set")
    else:
        view = view_of(x, apply_basic(tx, x.var, subscript.items).var)
        if view.ndim == 0 and ready.ndim > 0:
            raise Unsupported("an array assigned to one element")
        write(tx, view, fit(tx, ready, view.shape))


def _write_where(tx: TraceContext, x: ArrayRef, flag: Var, number: Var) -> None:
    """One number to all elements or to none."""
    if number.ndim:
        raise Unsupported("an array assigned through a boolean scalar")
    mask, spread = (broadcast_to(tx, part, x.shape) for part in (flag, number))
    write(tx, x, emit(tx, "where", mask, spread, x.var))


def _refuse_own_memory(tx: TraceContext, x: Var, subscript: Subscript, value: Var) -> None:
    """NumPy assigns through a mask of the whole array element by element, also from the array's own memory,
    whose elements it may have written by then."""
    if len(subscript.items) != 1 or not subscript.masks or not value.ndim:
        return
    (item,) = subscript.items
    whole = isinstance(item, MaskItem) and item.var.ndim == x.ndim
    if whole and memory_of(tx.builder, value) == memory_of(tx.builder, x):
        raise Unsupported("a masked assignment from the memory that it writes")


def assigned_value(tx: TraceContext, value: object, dtype: DType) -> Var:
    """The right-hand side of an assignment, as a value of the array's dtype."""
    if isinstance(value, (str, bytes)):
        raise Unsupported("assigning a string to an array")
    if not isinstance(value, ArrayRef) and not is_scalar_constant(value) and isinstance(value, (list, tuple)):
        value = as_ref(tx, value)
    return to_var(tx, value, dtype)


def fitting(tx: TraceContext, value: object, dtype: DType) -> Any:
    """A value to be assigned to elements of ``dtype``. NumPy makes a Python number of one of its scalars,
    which must fit signed integers: where it does not, the graph raises (by a position out of bounds), and the
    original program runs."""
    if not isinstance(value, ArrayRef) or value.kind != "scalar" or dtype.kind != "int":
        return value
    if value.dtype.is_complex or np.can_cast(value.dtype.numpy, dtype.numpy):
        return value
    position = emit(
        tx, "where", _fits(tx, value.var, dtype), *(constant(tx, k, dtypes.int64) for k in (0, 1))
    )
    single = emit(tx, "reshape", convert(tx, value.var, dtype), shape=(1,))
    return value_of(gather(tx, single, [position], (0,), 0))


def _fits(tx: TraceContext, number: Var, dtype: DType) -> Var:
    """Whether a number, rounded towards zero, is one of ``dtype``; never for NaN."""
    bounds = np.iinfo(dtype.numpy)
    least, greatest, above, below = int(bounds.min), int(bounds.max), "greater_equal", "less_equal"
    if number.dtype.is_float:
        number = convert(tx, number, dtypes.float64)
        least, greatest, above, below = least - 1, greatest + 1, "greater", "less"
    upper = emit(tx, below, number, _bound(tx, greatest, number.dtype))
    if number.dtype.kind == "uint":
        return upper
    return emit(tx, "logical_and", emit(tx, above, number, _bound(tx, least, number.dtype)), upper)


def _bound(tx: TraceContext, value: int, dtype: DType) -> Var:
    return constant(tx, float(value) if dtype.is_float else value, dtype)


def fit(tx: TraceContext, value: Var, shape: tuple[Dim, ...]) -> Var:
    """Broadcast an assigned value: leading dimensions of size one too many are dropped."""
    extra = value.ndim - len(shape)
    if extra > 0:
        if not all(d == 1 for d in value.shape[:extra]):
            raise Unsupported(f"could not broadcast input array from shape {value.shape} into shape {shape}")
        value = emit(tx, "reshape", value, shape=value.shape[extra:])
    return broadcast_to(tx, value, shape)


def _write_fancy(tx: TraceContext, x: ArrayRef, subscript: Subscript, value: Var, combine: str) -> None:
    fancy = _fancy(tx, x.var, subscript)
    ready = fit(tx, value, fancy.result_shape())
    scatter(tx, view_of(x, fancy.view), fancy.indices, ready, fancy.dims, fancy.position, combine)


def scatter(
    tx: TraceContext,
    target: ArrayRef,
    indices: list[Var],
    value: Var,
    dims: tuple[int, ...],
    position: int,
    combine: str = "set",
) -> None:
    """Write ``value`` (of the shape that ``index`` would give) into the target's memory."""
    params = {"dims": dims, "position": position, "combine": combine}
    write(tx, target, emit(tx, "index_put", target.var, value, *indices, **params))


def combine_at(tx: TraceContext, x: ArrayRef, key: object, value: Var, combine: str) -> None:
    """``ufunc.at``: unbuffered combination at integer indices."""
    subscript = parse(tx, key, x.ndim)
    if subscript.masks or not subscript.fancy:
        raise Unsupported("ufunc.at with indices that are not integer arrays")
    _write_fancy(tx, x, subscript, value, combine)


def _write_masked(tx: TraceContext, x: ArrayRef, subscript: Subscript, value: Var) -> None:
    if len(subscript.fancy) > 1:
        raise Unsupported("a boolean mask together with other index arrays")
    place = subscript.masks[0]
    mask = subscript.items[place].var  # type: ignore[union-attr]
    basic = apply_basic(tx, x.var, subscript.items)
    first = basic.dims[place]
    view = basic.var
    covered = view.shape[first : first + mask.ndim]
    if not all(a == b for a, b in zip(mask.shape, covered)):
        raise Unsupported("boolean index did not match the shape of the indexed array")
    has_integers = any(isinstance(item, IntItem) for item in subscript.items)
    ready = _masked_value(tx, value, view, first, mask.ndim, has_integers)
    dims = tuple(range(first, first + mask.ndim))
    if mask.ndim != view.ndim:
        mask = emit(tx, "broadcast_in_dim", mask, shape=view.shape, dims=dims)
    write(tx, view_of(x, view), emit(tx, "where", mask, ready, view))


def _masked_value(
    tx: TraceContext, value: Var, view: Var, first: int, covered: int, has_integers: bool
) -> Var:
    """The value of a masked assignment spread over the whole view: it must not vary along the selected
    elements (their number depends on the data)."""
    after = view.ndim - first - covered
    if value.ndim == 0:
        return broadcast_to(tx, value, view.shape)
    if has_integers:
        raise Unsupported("assigning an array through a boolean mask together with integers")
    if value.ndim > after:
        along = value.ndim - after - 1
        if not value.shape[along] == 1:
            raise Unsupported(
                "assigning as many values as a boolean mask selects", break_id="data-dependent-shape"
            )
        shape = (*value.shape[:along], *[1] * covered, *value.shape[along + 1 :])
        value = emit(tx, "reshape", value, shape=shape)
    return fit(tx, value, view.shape)


# -- functions --------------------------------------------------------------------------------
def take_along(tx: TraceContext, x: Var, indices: Var, axis: int) -> Var:
    """``take_along_axis`` with both operands broadcast outside ``axis``."""
    index = convert(tx, indices, dtypes.int64)
    if index.ndim != x.ndim:
        raise Unsupported("`indices` and `arr` must have the same number of dimensions")
    outer = broadcast_shapes(_without(x.shape, axis), _without(index.shape, axis))
    x = broadcast_to(tx, x, _insert(outer, axis, x.shape[axis]))
    index = broadcast_to(tx, index, _insert(outer, axis, index.shape[axis]))
    return emit(tx, "take_along_axis", x, index, axis=axis)


def _without(shape: tuple[Dim, ...], axis: int) -> tuple[Dim, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _insert(shape: tuple[Dim, ...], axis: int, dim: Dim) -> tuple[Dim, ...]:
    return (*shape[:axis], dim, *shape[axis:])


def bounded(tx: TraceContext, indices: Var, size: Dim, mode: str) -> Var:
    """Indices of ``np.take(mode=...)``: ``clip`` and ``wrap`` bring them into range."""
    if mode == "raise":
        return indices
    if mode not in ("clip", "wrap"):
        raise Unsupported(f"mode={mode!r}")
    index = convert(tx, indices, dtypes.int64)
    limit = broadcast_to(tx, to_var(tx, size, dtypes.int64), index.shape)
    if mode == "wrap":
        return emit(tx, "remainder", index, limit)
    one = broadcast_to(tx, to_var(tx, 1, dtypes.int64), index.shape)
    zero = broadcast_to(tx, to_var(tx, 0, dtypes.int64), index.shape)
    last = emit(tx, "subtract", limit, one)
    return emit(tx, "minimum", emit(tx, "maximum", index, zero), last)


def as_index(tx: TraceContext, indices: object) -> ArrayRef:
    """An argument that holds indices; an empty list counts as integers."""
    if isinstance(indices, (list, tuple)) and not len(indices):
        return as_ref(tx, np.zeros(0, np.int64))
    ref = as_ref(tx, indices)
    if not ref.dtype.is_integer:
        raise Unsupported("indices must be integers")
    return ref
