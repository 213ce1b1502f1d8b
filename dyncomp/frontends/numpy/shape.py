"""Functions that change the shape: views wherever NumPy gives views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import has_c_order, is_fortran, k_order_axes
from ...symbolic.integers import Dim, product
from ..base import ArrayRef, TraceContext
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    array_operand,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    emit,
    integer,
    memory_order,
    normalize_axes,
    normalize_axis,
    value_of,
    view_of,
)
from .views import reshape_var, reshapes_in_place, reversed_axes, transpose_var

TABLE = RuleTable()


@TABLE.function("_core.multiarray.normalize_axis_index")
def normalize_axis_index(tx: TraceContext, axis: object, ndim: object, msg_prefix: object = None) -> int:
    return normalize_axis(axis, int(integer(ndim)))


def viewed(tx: TraceContext, x: ArrayRef, var: Var) -> ArrayRef:
    """A view of ``x``; of a scalar, a scalar again where no dimensions were added, else a fresh array."""
    if x.kind == "array":
        return view_of(x, var)
    return array_of(emit(tx, "copy", var)) if var.shape else ArrayRef(var, "scalar")


def parse_shape(shape: object) -> tuple[Dim, ...]:
    """A ``shape`` argument: an integer or a sequence of integers (symbolic ones included)."""
    if isinstance(shape, (tuple, list)):
        return tuple(integer(d, "a size") for d in shape)
    return (integer(shape, "a size"),)


def completed_shape(shape: tuple[Dim, ...], size: Dim) -> tuple[Dim, ...]:
    """``shape`` with its ``-1`` worked out."""
    unknown = [i for i, d in enumerate(shape) if isinstance(d, int) and d < 0]
    if not unknown:
        return shape
    if len(unknown) > 1 or shape[unknown[0]] != -1:
        raise Unsupported(f"cannot reshape into shape {shape}")
    place = unknown[0]
    known = product(d for i, d in enumerate(shape) if i != place)
    if known == 0 or not size % known == 0:
        raise Unsupported(f"cannot reshape array of size {size} into shape {shape}")
    return (*shape[:place], size // known, *shape[place + 1 :])


# -- reshape ----------------------------------------------------------------------------------
@TABLE.function("reshape")
def reshape(
    tx: TraceContext, a: object, /, shape: object, order: str = "C", *, copy: object = None
) -> ArrayRef:
    """``np.reshape``: a view where NumPy gives one, else a copy."""
    x = as_ref(tx, a)
    wanted = completed_shape(parse_shape(shape), product(x.shape))
    order = memory_order(order)
    fortran = order == "F" or (order == "A" and _is_fortran(x.var))
    if order == "K":
        raise Unsupported(f"reshape with order={order!r}")
    source = emit(tx, "copy", x.var) if copy else x.var
    if fortran:
        source = reversed_axes(tx, source)
        wanted = wanted[::-1]
    in_place = reshapes_in_place(source, wanted)
    if copy is False and not in_place:
        raise Unsupported("Unable to avoid creating a copy while reshaping.")
    result = reshape_var(tx, source, wanted)
    if fortran:
        result = reversed_axes(tx, result)
    return viewed(tx, x, result) if in_place and not copy else array_of(result)


def _is_fortran(x: Var) -> bool:
    return is_fortran(x.shape, x.type.strides)


@TABLE.method("reshape")
def reshape_method(
    tx: TraceContext, x: ArrayRef, *shape: object, order: str = "C", copy: object = None
) -> ArrayRef:
    """``x.reshape(2, 3)`` or ``x.reshape((2, 3))``."""
    if not shape:
        raise Unsupported("reshape() takes exactly 1 argument (0 given)", break_id="would-raise")
    wanted = shape[0] if len(shape) == 1 else shape
    return reshape(tx, x, wanted, order, copy=copy)


@TABLE.function("ravel")
@TABLE.method("ravel")
def ravel(tx: TraceContext, a: object, order: str = "C") -> ArrayRef:
    """``np.ravel``: a view of a contiguous array, else a copy."""
    x = as_ref(tx, a)
    source = _in_order(tx, x.var, order)
    contiguous = has_c_order(source.shape, source.type.strides)
    if not contiguous:
        source = emit(tx, "contiguous", source)
    flat = emit(tx, "reshape", source, shape=(product(source.shape),))
    if x.kind != "array" or not contiguous:
        return array_of(emit(tx, "copy", flat))  # no view of what was put in order, as .base tells
    return ArrayRef(flat, "array", readonly=x.readonly and contiguous)


def _in_order(tx: TraceContext, x: Var, order: str) -> Var:
    """``x`` with its axes so permuted that C order of the result is ``order`` of ``x``."""
    order = memory_order(order)
    if order == "F" or (order == "A" and _is_fortran(x)):
        return reversed_axes(tx, x)
    if order == "K":
        return transpose_var(tx, x, k_order_axes(x.shape, [x.type.strides]))
    return x


@TABLE.method("flatten")
def flatten(tx: TraceContext, x: ArrayRef, order: str = "C") -> ArrayRef:
    """A copy with one dimension."""
    fresh = emit(tx, "contiguous", _in_order(tx, x.var, order))
    return array_of(emit(tx, "copy", emit(tx, "reshape", fresh, shape=(product(x.shape),))))


def _wrapped(tx: TraceContext, a: object) -> ArrayRef:
    """The operand of a function that calls a method of its argument: Python's numbers, which have no such
    method, become arrays."""
    x = as_ref(tx, a)
    if x.kind == "array" or isinstance(a, np.generic) or (a is x and x.kind != "python"):
        return x
    return array_of(emit(tx, "copy", x.var))


@TABLE.function("squeeze")
@TABLE.method("squeeze")
def squeeze(tx: TraceContext, a: object, axis: object = None) -> ArrayRef:
    x = _wrapped(tx, a)
    if axis is None:
        axes = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        axes = normalize_axes(axis, x.ndim)
        if not all(x.shape[i] == 1 for i in axes):
            raise Unsupported("cannot select an axis to squeeze out which has size not equal to one")
    if not axes and x.kind == "array":
        return x
    shape = tuple(d for i, d in enumerate(x.shape) if i not in axes)
    return viewed(tx, x, emit(tx, "reshape", x.var, shape=shape))


@TABLE.function("expand_dims")
def expand_dims(tx: TraceContext, a: object, axis: object) -> ArrayRef:
    x = as_ref(tx, a)
    places = several(axis)
    axes = normalize_axes(tuple(places), x.ndim + len(places))
    rest = iter(x.shape)
    shape = tuple(1 if i in axes else next(rest) for i in range(x.ndim + len(axes)))
    return viewed(tx, x, emit(tx, "reshape", x.var, shape=shape))


def _at_least(ndim: int, place: Callable[..., Any]) -> Any:
    def rule(tx: TraceContext, *arrays: object) -> Any:
        made = []
        for a in arrays:
            x = as_ref(tx, a)
            if x.ndim >= ndim:
                made.append(x)
            else:
                made.append(ArrayRef(emit(tx, "reshape", x.var, shape=place(x.shape)), readonly=x.readonly))
        return made[0] if len(made) == 1 else tuple(made)

    return rule


def _place_2d(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return (1,) * (2 - len(shape)) + shape


def _place_3d(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    if len(shape) == 2:
        return (*shape, 1)
    return (1, shape[0], 1) if shape else (1, 1, 1)


atleast_1d = _at_least(1, lambda shape: (1,))
atleast_2d = _at_least(2, _place_2d)
atleast_3d = _at_least(3, _place_3d)
TABLE.function("atleast_1d")(atleast_1d)
TABLE.function("atleast_2d")(atleast_2d)
TABLE.function("atleast_3d")(atleast_3d)


# -- permutations -----------------------------------------------------------------------------
def permuted(tx: TraceContext, x: ArrayRef, perm: Sequence[int]) -> ArrayRef:
    if not x.shape and x.kind != "array":
        return x
    return viewed(tx, x, transpose_var(tx, x.var, perm))


@TABLE.function("transpose", "permute_dims")
def transpose(tx: TraceContext, a: object, axes: Any = None) -> ArrayRef:
    x = _wrapped(tx, a)
    if axes is None:
        return permuted(tx, x, range(x.ndim)[::-1])
    perm = [normalize_axis(axis, x.ndim) for axis in axes]
    if sorted(perm) != list(range(x.ndim)):
        raise Unsupported("axes don't match array")
    return permuted(tx, x, perm)


@TABLE.method("transpose")
def transpose_method(tx: TraceContext, x: ArrayRef, *axes: object) -> ArrayRef:
    """``x.transpose()``, ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        return transpose(tx, x, axes[0])
    return transpose(tx, x, axes or None)


@TABLE.function("swapaxes")
@TABLE.method("swapaxes")
def swapaxes(tx: TraceContext, a: object, axis1: object, axis2: object) -> ArrayRef:
    x = as_ref(tx, a)
    first = normalize_axis(axis1, x.ndim)
    second = normalize_axis(axis2, x.ndim)
    perm = list(range(x.ndim))
    perm[first], perm[second] = second, first
    return permuted(tx, x, perm)


@TABLE.function("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(tx: TraceContext, x: object, /) -> ArrayRef:
    ref = as_ref(tx, x)
    if ref.ndim < 2:
        raise Unsupported("matrix_transpose of an array of fewer than two dimensions")
    return swapaxes(tx, ref, -1, -2)


@TABLE.function("moveaxis")
def moveaxis(tx: TraceContext, a: object, source: object, destination: object) -> ArrayRef:
    x = as_ref(tx, a)
    sources = [normalize_axis(s, x.ndim) for s in several(source)]
    targets = [normalize_axis(d, x.ndim) for d in several(destination)]
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise Unsupported("moveaxis needs as many distinct destinations as sources")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources)):
        order.insert(target, axis)
    return permuted(tx, x, order)


def several(value: object) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


@TABLE.function("rollaxis")
def rollaxis(tx: TraceContext, a: object, axis: object, start: object = 0) -> ArrayRef:
    x = array_operand(a)
    along = normalize_axis(axis, x.ndim)
    place = int(integer(start))
    place = place + x.ndim if place < 0 else place
    if along < place:
        place -= 1
    order = [i for i in range(x.ndim) if i != along]
    order.insert(place, along)
    return permuted(tx, x, order)


# -- broadcasting -----------------------------------------------------------------------------
@TABLE.function("broadcast_to")
def broadcast_to_rule(tx: TraceContext, array: object, shape: object, subok: bool = False) -> ArrayRef:
    """A read-only view."""
    x = as_ref(tx, array)
    wanted = parse_shape(shape)
    return ArrayRef(_spread(tx, x.var, wanted), "array", readonly=True)


def _spread(tx: TraceContext, x: Var, shape: tuple[Dim, ...]) -> Var:
    spread = broadcast_to(tx, x, shape)
    if spread is x:
        spread = emit(tx, "broadcast_in_dim", x, shape=tuple(shape), dims=tuple(range(x.ndim)))
    return spread


@TABLE.function("broadcast_arrays")
def broadcast_arrays(tx: TraceContext, *args: object, subok: bool = False) -> tuple[ArrayRef, ...]:
    """Views of the common shape; writing to one warns in NumPy."""
    refs = [as_ref(tx, a) for a in args]
    shape = broadcast_shapes(*(r.shape for r in refs))
    made = []
    for r in refs:
        if r.kind == "array" and len(r.shape) == len(shape) and all(a == b for a, b in zip(r.shape, shape)):
            made.append(r)
        else:
            spread = _spread(tx, r.var, shape)
            made.append(ArrayRef(spread, "array", readonly=True, writeable_outside=not r.readonly))
    return tuple(made)


@TABLE.function("lib.stride_tricks.sliding_window_view")
def sliding_window_view(
    tx: TraceContext,
    x: object,
    window_shape: object,
    axis: object = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> ArrayRef:
    """A read-only view of all windows: the window's dimensions come last."""
    ref = as_ref(tx, x)
    window = parse_shape(window_shape)
    axes = tuple(range(ref.ndim)) if axis is None else normalize_axes(axis, ref.ndim)
    if writeable or len(axes) != len(window) or (isinstance(axis, (tuple, list)) and tuple(axis) != axes):
        raise Unsupported("sliding_window_view with writeable=True, or axes out of order")
    shape = list(ref.shape)
    for place, size in zip(axes, window):
        if size < 0 or size > shape[place]:
            raise Unsupported("window shape cannot be larger than input array shape")
        shape[place] = shape[place] - size + 1
    strides = (*ref.strides, *(ref.strides[place] for place in axes))
    view = emit(tx, "as_strided", ref.var, shape=(*shape, *window), strides=strides, offset=0)
    return ArrayRef(view, "array", readonly=True)


# -- order of elements ------------------------------------------------------------------------
def flip_var(tx: TraceContext, x: Var, axes: Sequence[int]) -> Var:
    starts = []
    for axis, size in enumerate(x.shape):
        backwards = axis in axes and size != 0
        starts.append(size - 1 if backwards else 0)
    steps = tuple(-1 if axis in axes else 1 for axis in range(x.ndim))
    return emit(tx, "strided_slice", x, starts=tuple(starts), sizes=x.shape, steps=steps)


@TABLE.function("flip")
def flip(tx: TraceContext, m: object, axis: object = None) -> ArrayRef:
    x = as_ref(tx, m)
    if axis is None and not x.ndim:
        return value_of(emit(tx, "copy", x.var))  # as indexed with an empty tuple
    return viewed(tx, x, flip_var(tx, x.var, normalize_axes(axis, x.ndim)))


@TABLE.function("fliplr")
def fliplr(tx: TraceContext, m: object) -> ArrayRef:
    x = as_ref(tx, m)
    if x.ndim < 2:
        raise Unsupported("Input must be >= 2-d.")
    return flip(tx, x, 1)


@TABLE.function("flipud")
def flipud(tx: TraceContext, m: object) -> ArrayRef:
    x = as_ref(tx, m)
    if x.ndim < 1:
        raise Unsupported("Input must be >= 1-d.")
    return flip(tx, x, 0)


@TABLE.function("rot90")
def rot90(tx: TraceContext, m: object, k: object = 1, axes: Any = (0, 1)) -> ArrayRef:
    x = as_ref(tx, m)
    first, second = (normalize_axis(a, x.ndim) for a in axes)
    if first == second:
        raise Unsupported("Axes must be different.")
    turns = int(integer(k)) % 4
    if turns in (0, 2):
        return flip(tx, x, (first, second)) if turns else viewed(tx, x, flip_var(tx, x.var, ()))
    if turns == 1:
        return swapaxes(tx, flip(tx, x, second), first, second)
    return flip(tx, swapaxes(tx, x, first, second), second)


@TABLE.function("roll")
def roll(tx: TraceContext, a: object, shift: object, axis: object = None) -> ArrayRef:
    x = as_ref(tx, a)
    if axis is None:
        flat = reshape_var(tx, x.var, (product(x.shape),))
        moved = emit(tx, "roll", flat, shifts=(_total(shift),), axes=(0,))
        return array_of(emit(tx, "reshape", moved, shape=x.shape))
    axes = [normalize_axis(i, x.ndim) for i in several(axis)]
    shifts = [integer(s, "a shift") for s in several(shift)]
    count = max(len(axes), len(shifts))
    axes = axes * count if len(axes) == 1 else axes
    shifts = shifts * count if len(shifts) == 1 else shifts
    if len(axes) != len(shifts):
        raise Unsupported("'shift' and 'axis' should be scalars or sequences of one length")
    totals: dict[int, Dim] = {}
    for i, s in zip(axes, shifts):
        totals[i] = totals.get(i, 0) + s
    moved = emit(tx, "roll", x.var, shifts=tuple(totals.values()), axes=tuple(totals))
    return array_of(moved)


def _total(shift: object) -> Dim:
    total: Dim = 0
    for s in several(shift):
        total = total + integer(s, "a shift")
    return total
