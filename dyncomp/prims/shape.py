"""Views, their functional inverses, and copies.

A view's result shares the input's memory and has NumPy's strides for it. ``update_*`` ops give the base
with a window replaced; the result stands for a fresh array like the base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import ALL, DType
from ..graph.ir import ArrayType, array_type, same_shape
from ..symbolic.integers import Dim, SymInt, same, sym_max, sym_min
from .kit import Array, axes_tuple, check_axis, drop
from .layout import is_one, like, reshape_strides, shapes_equal
from .opdef import NEVER, OpDef, Pointwise, Tolerance, Update, View
from .pointwise.partials import constant
from .scalar import ScalarBuilder
from .shape_samples import (
    as_strided_samples,
    broadcast_samples,
    copy_samples,
    diagonal_samples,
    reshape_samples,
    slice_samples,
    transpose_samples,
    triangle_samples,
    update_diagonal_samples,
    update_slice_samples,
    update_strided_samples,
)

Dims = tuple[Dim, ...]


# -- strided_slice ----------------------------------------------------------------------------
def _check_window(x: ArrayType, starts: Dims, sizes: Dims, steps: Dims) -> None:
    if not len(starts) == len(sizes) == len(steps) == x.ndim:
        raise ValueError(f"a slice of {x.ndim} dimensions needs as many starts, sizes and steps")
    for axis, (dim, start, size, step) in enumerate(zip(x.shape, starts, sizes, steps)):
        if not isinstance(step, SymInt) and step == 0:
            raise ValueError("slice step cannot be zero")
        if any(isinstance(v, SymInt) for v in (dim, start, size, step)) or size == 0:
            continue
        last = start + (size - 1) * step
        if not (0 <= start < dim and 0 <= last < dim):
            raise IndexError(f"slice {start}:{size}:{step} is out of bounds for axis {axis} of size {dim}")


def slice_meta(x: ArrayType, *, starts: Dims, sizes: Dims, steps: Dims) -> ArrayType:
    _check_window(x, starts, sizes, steps)
    strides = tuple(s * step for s, step in zip(x.strides, steps))
    return ArrayType(x.dtype, tuple(sizes), strides, x.device)


def _slices(starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> tuple[slice, ...]:
    out = []
    for start, size, step in zip(starts, sizes, steps):
        if size == 0:
            out.append(slice(0, 0, step))
            continue
        stop = start + (size - 1) * step + (1 if step > 0 else -1)
        out.append(slice(start, stop if stop >= 0 else None, step))
    return tuple(out)


def slice_ref(x: Array, *, starts: Dims, sizes: Dims, steps: Dims) -> Array:
    window: Any = (*_slices(starts, sizes, steps), Ellipsis)  # type: ignore[arg-type]
    return x[window]


def slice_index(
    x: ArrayType, index: Sequence[Any], *, starts: Dims, sizes: Dims, steps: Dims
) -> tuple[Any, ...]:
    return tuple(i * step + start for i, start, step in zip(index, starts, steps))


# -- transpose --------------------------------------------------------------------------------
def transpose_meta(x: ArrayType, *, perm: tuple[int, ...]) -> ArrayType:
    axes_tuple(perm, x.ndim, "transpose")
    if len(perm) != x.ndim:
        raise ValueError("transpose needs every axis once")
    return ArrayType(x.dtype, tuple(x.shape[p] for p in perm), tuple(x.strides[p] for p in perm), x.device)


def transpose_ref(x: Array, *, perm: tuple[int, ...]) -> Array:
    return x.transpose(perm)


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes ``perm``."""
    out = [0] * len(perm)
    for position, axis in enumerate(perm):
        out[axis] = position
    return tuple(out)


def transpose_index(x: ArrayType, index: Sequence[Any], *, perm: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(index[p] for p in inverse(perm))


# -- reshape ----------------------------------------------------------------------------------
def reshape_meta(x: ArrayType, *, shape: Dims) -> ArrayType:
    if x.is_contiguous and same_shape(x.shape, tuple(shape)):
        return x
    strides = reshape_strides(x.shape, x.strides, shape)
    if strides is None:
        raise ValueError(f"reshape of {x} to {tuple(shape)} is not a view: make it contiguous first")
    return ArrayType(x.dtype, tuple(shape), strides, x.device)


def reshape_ref(x: Array, *, shape: Dims) -> Array:
    return x.reshape(shape)


# -- broadcast_in_dim -------------------------------------------------------------------------
def _expands(dim: Dim, target: Dim) -> bool:
    """Whether a dimension is stretched (its stride becomes 0)."""
    if same(dim, target):
        return False
    if is_one(dim):
        return True
    if dim == target:
        return False
    raise ValueError(f"cannot broadcast a dimension of size {dim} to {target}")


def broadcast_meta(x: ArrayType, *, shape: Dims, dims: tuple[int, ...]) -> ArrayType:
    axes_tuple(dims, len(shape), "broadcast_in_dim")
    if len(dims) != x.ndim or list(dims) != sorted(dims):
        raise ValueError(f"broadcast_in_dim of {x.ndim} dimensions: bad dims {dims}")
    strides: list[Dim] = [0] * len(shape)
    for axis, dim, stride in zip(dims, x.shape, x.strides):
        if not _expands(dim, shape[axis]):
            strides[axis] = stride
    return ArrayType(x.dtype, tuple(shape), tuple(strides), x.device)


def broadcast_ref(x: Array, *, shape: Dims, dims: tuple[int, ...]) -> Array:
    spread = x[tuple(slice(None) if axis in dims else None for axis in range(len(shape)))]
    return np.broadcast_to(spread, shape)  # type: ignore[arg-type]


def broadcast_index(
    x: ArrayType, index: Sequence[Any], *, shape: Dims, dims: tuple[int, ...]
) -> tuple[Any, ...]:
    return tuple(0 if _expands(dim, shape[axis]) else index[axis] for axis, dim in zip(dims, x.shape))


# -- diagonal ---------------------------------------------------------------------------------
def diagonal_length(rows: Dim, columns: Dim, offset: Dim) -> Dim:
    """Elements on diagonal number ``offset`` of a matrix (0 where it misses the matrix)."""
    if offset >= 0:
        return sym_max(sym_min(rows, columns - offset), 0)
    return sym_max(sym_min(rows + offset, columns), 0)


def _check_diagonal(x: ArrayType, axis1: int, axis2: int) -> None:
    check_axis(axis1, x.ndim, "diagonal")
    check_axis(axis2, x.ndim, "diagonal")
    if axis1 == axis2:
        raise ValueError("diagonal: axis1 and axis2 cannot be the same")


def diagonal_meta(x: ArrayType, *, offset: Dim, axis1: int, axis2: int) -> ArrayType:
    _check_diagonal(x, axis1, axis2)
    length = diagonal_length(x.shape[axis1], x.shape[axis2], offset)
    shape = (*drop(x.shape, (axis1, axis2)), length)
    strides = (*drop(x.strides, (axis1, axis2)), x.strides[axis1] + x.strides[axis2])
    return ArrayType(x.dtype, shape, strides, x.device)


def diagonal_ref(x: Array, *, offset: int, axis1: int, axis2: int) -> Array:
    return x.diagonal(offset, axis1, axis2)


def diagonal_index(
    x: ArrayType, index: Sequence[Any], *, offset: Dim, axis1: int, axis2: int
) -> tuple[Any, ...]:
    out: list[Any] = list(index[:-1])
    position = index[-1]
    row = position if offset >= 0 else position + (-offset)
    column = position + offset if offset >= 0 else position
    for axis, value in sorted(((axis1, row), (axis2, column)), key=lambda pair: pair[0]):
        out.insert(axis, value)
    return tuple(out)


# -- as_strided -------------------------------------------------------------------------------
def as_strided_meta(x: ArrayType, *, shape: Dims, strides: Dims, offset: Dim) -> ArrayType:
    if len(shape) != len(strides):
        raise ValueError("as_strided needs a stride for each dimension")
    return ArrayType(x.dtype, tuple(shape), tuple(strides), x.device)


def as_strided_ref(x: Array, *, shape: Dims, strides: Dims, offset: int) -> Array:
    if 0 in shape:
        return np.empty(shape, x.dtype)
    item = x.itemsize
    start = x
    if offset:
        start = _shifted(x, offset * item)
    steps = tuple(s * item for s in strides)
    return np.lib.stride_tricks.as_strided(start, shape, steps)  # type: ignore[arg-type]


class _Memory:
    """Array interface of memory at an address, keeping its owner alive."""

    def __init__(self, owner: Array, address: int, dtype: np.dtype[Any]) -> None:
        self.__array_interface__ = {
            "data": (address, not owner.flags.writeable),
            "shape": (1,),
            "typestr": f"|V{dtype.itemsize}",
            "version": 3,
        }
        self.owner = owner


def _shifted(x: Array, distance: int) -> Array:
    """A one-element array at ``distance`` bytes from the first element of ``x``."""
    address = x.__array_interface__["data"][0] + distance
    return np.asarray(_Memory(x, address, x.dtype)).view(x.dtype)


# -- updates ----------------------------------------------------------------------------------
def update_meta(view: Callable[..., ArrayType], name: str) -> Callable[..., ArrayType]:
    """Meta of the update that undoes ``view``."""

    def meta(base: ArrayType, value: ArrayType, **params: object) -> ArrayType:
        window = view(base, **params)
        if value.dtype is not base.dtype:
            raise TypeError(f"{name} of {value.dtype} into {base.dtype}")
        if not shapes_equal(value.shape, window.shape):
            raise ValueError(f"{name} of shape {value.shape} into a window of shape {window.shape}")
        return like(base)

    return meta


def update_ref(view: Callable[..., Array]) -> Callable[..., Array]:
    """Reference of the update that undoes ``view``."""

    def ref(base: Array, value: Array, **params: object) -> Array:
        out = base.copy(order="K")
        window = view(out, **params)
        if window.size and not window.flags.writeable:
            window.flags.writeable = True  # diagonal gives a read-only view
        if window.size:
            window[...] = value
        return out

    return ref


def update_strided_ref(base: Array, value: Array, *, shape: Dims, strides: Dims, offset: int) -> Array:
    """The window is described in the base's own memory, which a copy need not have: work on a copy of
    the whole span."""
    out = base.copy(order="K")
    if 0 in shape or base.size == 0:
        return out
    low = sum(min(0, (d - 1) * s) for d, s in zip(base.shape, base.strides))
    high = sum(max(0, (d - 1) * s) for d, s in zip(base.shape, base.strides))
    item = base.itemsize
    span = as_strided_ref(base, shape=((high - low) // item + 1,), strides=(1,), offset=low // item).copy()
    start = -low // item
    window = as_strided_ref(span, shape=shape, strides=strides, offset=start + offset)
    window[...] = value
    own = tuple(s // item for s in base.strides)
    out[...] = as_strided_ref(span, shape=base.shape, strides=own, offset=start)
    return out


# -- copies -----------------------------------------------------------------------------------
def contiguous_meta(x: ArrayType) -> ArrayType:
    return array_type(x.dtype, x.shape, x.device)


def _same_value(s: ScalarBuilder, x: object) -> Any:
    return x


def triangle_meta(x: ArrayType, *, k: Dim) -> ArrayType:
    if x.ndim < 2:
        raise ValueError("tril and triu need at least two dimensions")
    return like(x)


def _triangle(keep: str) -> Callable[..., Any]:
    def expr(s: ScalarBuilder, x: object, *, k: Dim) -> Any:
        from_diagonal = s.subtract(s.index(-1), s.index(-2))
        limit = s.emit("symbol", (), INT64, k) if isinstance(k, SymInt) else s.const(k, INT64)
        return s.where(getattr(s, keep)(from_diagonal, limit), x, s.const(0, s.dtype(x)))

    return expr


INT64: DType = next(d for d in ALL if d.name == "int64")
_EXACT = Tolerance(0.0)


def _like_input(ref: Callable[..., Array]) -> Callable[..., Array]:
    """``ref``'s values in the memory order of its first argument."""

    def wrapped(x: Array, **params: object) -> Array:
        out = np.empty_like(x)
        out[...] = ref(x, **params)
        return out

    return wrapped


ROWS: tuple[OpDef, ...] = (
    OpDef(
        "strided_slice",
        ("starts", "sizes", "steps"),
        slice_meta,
        slice_ref,
        lower=View(slice_index, "update_slice"),
        samples=slice_samples,
        tolerance=_EXACT,
        doc="Element i of an axis is element `start + i*step` (any step but 0, negative ones for "
        "reversal); `sizes` is the result's shape. Starts are not negative.",
    ),
    OpDef(
        "transpose",
        ("perm",),
        transpose_meta,
        transpose_ref,
        lower=View(transpose_index, "transpose"),
        samples=transpose_samples,
        tolerance=_EXACT,
        doc="Axis i of the result is axis perm[i].",
    ),
    OpDef(
        "reshape",
        ("shape",),
        reshape_meta,
        reshape_ref,
        lower=View(None, "reshape"),
        samples=reshape_samples,
        tolerance=_EXACT,
        doc="C-order reshape where NumPy would give a view; an error elsewhere.",
    ),
    OpDef(
        "broadcast_in_dim",
        ("shape", "dims"),
        broadcast_meta,
        broadcast_ref,
        lower=View(broadcast_index, ""),
        samples=broadcast_samples,
        tolerance=_EXACT,
        doc="Axis i of the input is axis dims[i] of the result, stretched where its size is 1.",
    ),
    OpDef(
        "diagonal",
        ("offset", "axis1", "axis2"),
        diagonal_meta,
        diagonal_ref,
        lower=View(diagonal_index, "update_diagonal"),
        samples=diagonal_samples,
        tolerance=_EXACT,
        doc="The diagonal of two axes as the last axis, as `ndarray.diagonal`.",
    ),
    OpDef(
        "as_strided",
        ("shape", "strides", "offset"),
        as_strided_meta,
        as_strided_ref,
        lower=View(None, "update_strided"),
        samples=as_strided_samples,
        tolerance=_EXACT,
        doc="A window on the input's memory: strides and offset in elements from its first element.",
    ),
    OpDef(
        "stop_gradient",
        (),
        lambda x: x,
        lambda x: x.view(),
        lower=View(lambda x, index: tuple(index), "stop_gradient"),
        samples=copy_samples,
        tolerance=_EXACT,
        doc="The input itself, through which no derivative goes.",
    ),
    OpDef(
        "update_slice",
        ("starts", "sizes", "steps"),
        update_meta(slice_meta, "update_slice"),
        update_ref(slice_ref),
        lower=Update("strided_slice"),
        samples=update_slice_samples,
        tolerance=_EXACT,
        doc="The base with the window of `strided_slice` replaced by value.",
    ),
    OpDef(
        "update_diagonal",
        ("offset", "axis1", "axis2"),
        update_meta(diagonal_meta, "update_diagonal"),
        update_ref(diagonal_ref),
        lower=Update("diagonal"),
        samples=update_diagonal_samples,
        tolerance=_EXACT,
        doc="The base with the window of `diagonal` replaced by value.",
    ),
    OpDef(
        "update_strided",
        ("shape", "strides", "offset"),
        update_meta(as_strided_meta, "update_strided"),
        update_strided_ref,
        lower=Update("as_strided"),
        samples=update_strided_samples,
        tolerance=_EXACT,
        doc="The base with the window of `as_strided` (in the base's own strides) replaced by value.",
    ),
    OpDef(
        "contiguous",
        (),
        contiguous_meta,
        lambda x: x.copy(order="C"),
        lower=Pointwise(_same_value),
        samples=copy_samples,
        tolerance=_EXACT,
        partials=constant(1.0),
        doc="A fresh C-contiguous copy.",
        free=True,
        rounds={"fc": NEVER},
    ),
    OpDef(
        "copy",
        (),
        like,
        lambda x: x.copy(order="K"),
        lower=Pointwise(_same_value),
        samples=copy_samples,
        tolerance=_EXACT,
        partials=constant(1.0),
        doc="A fresh copy in the input's memory order.",
        free=True,
        rounds={"fc": NEVER},
    ),
    OpDef(
        "tril",
        ("k",),
        triangle_meta,
        _like_input(np.tril),
        lower=Pointwise(_triangle("less_equal")),
        samples=triangle_samples,
        tolerance=_EXACT,
        doc="Zero above diagonal `k` of the last two axes.",
        rounds={"fc": NEVER},
    ),
    OpDef(
        "triu",
        ("k",),
        triangle_meta,
        _like_input(np.triu),
        lower=Pointwise(_triangle("greater_equal")),
        samples=triangle_samples,
        tolerance=_EXACT,
        doc="Zero below diagonal `k` of the last two axes.",
        rounds={"fc": NEVER},
    ),
)
