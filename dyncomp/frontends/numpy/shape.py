"""Functions that change the shape: views wherever NumPy gives views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import is_c_contiguous, is_f_contiguous, sorted_axes
from ...symint import Dim, product, same
from ..base import ArrayRef, TraceContext
from .operands import (
    array_of,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    constant,
    emit,
    exact_value,
    integer,
    literal,
    normalize_axes,
    normalize_axis,
    operand,
    to_var,
    view_of,
    write,
)
from .promote import parse_dtype
from .rules import RuleTable
from .views import reshape_var, reshapes_in_place, reversed_axes, transpose_var

TABLE = RuleTable()


def viewed(x: ArrayRef, var: Var) -> ArrayRef:
    """A view of ``x``; of a scalar, a scalar again where no dimensions were added."""
    if x.kind != "array" and not var.shape:
        return ArrayRef(var, "scalar")
    return view_of(x, var)


def parse_shape(shape: Any) -> tuple[Dim, ...]:
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
    tx: TraceContext, a: Any, /, shape: Any, order: str = "C", *, copy: Any = None
) -> ArrayRef:
    """``np.reshape``: a view where NumPy gives one, else a copy."""
    x = as_ref(tx, a)
    wanted = completed_shape(parse_shape(shape), product(x.shape))
    fortran = order == "F" or (order == "A" and _is_fortran(x.var))
    if order not in ("C", "F", "A"):
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
    return viewed(x, result) if in_place and not copy else array_of(result)


def _is_fortran(x: Var) -> bool:
    return is_f_contiguous(x.shape, x.type.strides) and not is_c_contiguous(x.shape, x.type.strides)


@TABLE.method("reshape")
def reshape_method(tx: TraceContext, x: ArrayRef, *shape: Any, order: str = "C", copy: Any = None) -> ArrayRef:
    """``x.reshape(2, 3)`` or ``x.reshape((2, 3))``."""
    wanted = shape[0] if len(shape) == 1 else shape
    return reshape(tx, x, wanted, order, copy=copy)


@TABLE.function("ravel")
@TABLE.method("ravel")
def ravel(tx: TraceContext, a: Any, order: str = "C") -> ArrayRef:
    """``np.ravel``: a view of a contiguous array, else a copy."""
    x = as_ref(tx, a)
    source = _in_order(tx, x.var, order)
    contiguous = is_c_contiguous(source.shape, source.type.strides)
    if not contiguous:
        source = emit(tx, "contiguous", source)
    flat = emit(tx, "reshape", source, shape=(product(source.shape),))
    return ArrayRef(flat, "array", readonly=x.readonly and contiguous)


def _in_order(tx: TraceContext, x: Var, order: str) -> Var:
    """``x`` with its axes so permuted that C order of the result is ``order`` of ``x``."""
    if order == "F" or (order == "A" and _is_fortran(x)):
        return reversed_axes(tx, x)
    if order == "K":
        return transpose_var(tx, x, sorted_axes(x.shape, x.type.strides))
    if order not in ("C", "A"):
        raise Unsupported(f"order={order!r}")
    return x


@TABLE.method("flatten")
def flatten(tx: TraceContext, x: ArrayRef, order: str = "C") -> ArrayRef:
    """A copy with one dimension."""
    fresh = emit(tx, "contiguous", _in_order(tx, x.var, order))
    return array_of(emit(tx, "reshape", fresh, shape=(product(x.shape),)))


@TABLE.function("squeeze")
@TABLE.method("squeeze")
def squeeze(tx: TraceContext, a: Any, axis: Any = None) -> ArrayRef:
    x = as_ref(tx, a)
    if axis is None:
        axes = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        axes = normalize_axes(axis, x.ndim)
        if not all(x.shape[i] == 1 for i in axes):
            raise Unsupported("cannot select an axis to squeeze out which has size not equal to one")
    shape = tuple(d for i, d in enumerate(x.shape) if i not in axes)
    return viewed(x, emit(tx, "reshape", x.var, shape=shape))


@TABLE.function("expand_dims")
def expand_dims(tx: TraceContext, a: Any, axis: Any) -> ArrayRef:
    x = as_ref(tx, a)
    several = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = normalize_axes(tuple(several), x.ndim + len(several))
    rest = iter(x.shape)
    shape = tuple(1 if i in axes else next(rest) for i in range(x.ndim + len(axes)))
    return viewed(x, emit(tx, "reshape", x.var, shape=shape))


def _at_least(ndim: int, place: Any) -> Any:
    def rule(tx: TraceContext, *arrays: Any) -> Any:
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
    return viewed(x, transpose_var(tx, x.var, perm))


@TABLE.function("transpose", "permute_dims")
def transpose(tx: TraceContext, a: Any, axes: Any = None) -> ArrayRef:
    x = as_ref(tx, a)
    if axes is None:
        return permuted(tx, x, range(x.ndim)[::-1])
    perm = [normalize_axis(axis, x.ndim) for axis in axes]
    if sorted(perm) != list(range(x.ndim)):
        raise Unsupported("axes don't match array")
    return permuted(tx, x, perm)


@TABLE.method("transpose")
def transpose_method(tx: TraceContext, x: ArrayRef, *axes: Any) -> ArrayRef:
    """``x.transpose()``, ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        return transpose(tx, x, axes[0])
    return transpose(tx, x, axes or None)


@TABLE.function("swapaxes")
@TABLE.method("swapaxes")
def swapaxes(tx: TraceContext, a: Any, axis1: Any, axis2: Any) -> ArrayRef:
    x = as_ref(tx, a)
    first = normalize_axis(axis1, x.ndim)
    second = normalize_axis(axis2, x.ndim)
    perm = list(range(x.ndim))
    perm[first], perm[second] = second, first
    return permuted(tx, x, perm)


@TABLE.function("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(tx: TraceContext, x: Any, /) -> ArrayRef:
    ref = as_ref(tx, x)
    if ref.ndim < 2:
        raise Unsupported("matrix_transpose of an array of fewer than two dimensions")
    return swapaxes(tx, ref, -1, -2)


@TABLE.function("moveaxis")
def moveaxis(tx: TraceContext, a: Any, source: Any, destination: Any) -> ArrayRef:
    x = as_ref(tx, a)
    sources = [normalize_axis(s, x.ndim) for s in _several(source)]
    targets = [normalize_axis(d, x.ndim) for d in _several(destination)]
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise Unsupported("moveaxis needs as many distinct destinations as sources")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources)):
        order.insert(target, axis)
    return permuted(tx, x, order)


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


@TABLE.function("rollaxis")
def rollaxis(tx: TraceContext, a: Any, axis: Any, start: Any = 0) -> ArrayRef:
    x = as_ref(tx, a)
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
def broadcast_to_rule(tx: TraceContext, array: Any, shape: Any, subok: bool = False) -> ArrayRef:
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
def broadcast_arrays(tx: TraceContext, *args: Any, subok: bool = False) -> tuple[ArrayRef, ...]:
    """Views of the common shape; marked read-only here (writing to one warns in NumPy)."""
    refs = [as_ref(tx, a) for a in args]
    shape = broadcast_shapes(*(r.shape for r in refs))
    made = []
    for r in refs:
        if r.kind == "array" and len(r.shape) == len(shape) and all(map(same, r.shape, shape)):
            made.append(r)
        else:
            made.append(ArrayRef(_spread(tx, r.var, shape), "array", readonly=True))
    return tuple(made)


# -- order of elements ------------------------------------------------------------------------
def flip_var(tx: TraceContext, x: Var, axes: Sequence[int]) -> Var:
    starts = []
    for axis, size in enumerate(x.shape):
        backwards = axis in axes and not size == 0
        starts.append(size - 1 if backwards else 0)
    steps = tuple(-1 if axis in axes else 1 for axis in range(x.ndim))
    return emit(tx, "strided_slice", x, starts=tuple(starts), sizes=x.shape, steps=steps)


@TABLE.function("flip")
def flip(tx: TraceContext, m: Any, axis: Any = None) -> ArrayRef:
    x = as_ref(tx, m)
    return viewed(x, flip_var(tx, x.var, normalize_axes(axis, x.ndim)))


@TABLE.function("fliplr")
def fliplr(tx: TraceContext, m: Any) -> ArrayRef:
    x = as_ref(tx, m)
    if x.ndim < 2:
        raise Unsupported("Input must be >= 2-d.")
    return flip(tx, x, 1)


@TABLE.function("flipud")
def flipud(tx: TraceContext, m: Any) -> ArrayRef:
    x = as_ref(tx, m)
    if x.ndim < 1:
        raise Unsupported("Input must be >= 1-d.")
    return flip(tx, x, 0)


@TABLE.function("rot90")
def rot90(tx: TraceContext, m: Any, k: Any = 1, axes: Any = (0, 1)) -> ArrayRef:
    x = as_ref(tx, m)
    first, second = (normalize_axis(a, x.ndim) for a in axes)
    if first == second:
        raise Unsupported("Axes must be different.")
    turns = int(integer(k)) % 4
    if turns in (0, 2):
        return flip(tx, x, (first, second)) if turns else viewed(x, flip_var(tx, x.var, ()))
    if turns == 1:
        return swapaxes(tx, flip(tx, x, second), first, second)
    return flip(tx, swapaxes(tx, x, first, second), second)


@TABLE.function("roll")
def roll(tx: TraceContext, a: Any, shift: Any, axis: Any = None) -> ArrayRef:
    x = as_ref(tx, a)
    if axis is None:
        flat = reshape_var(tx, x.var, (product(x.shape),))
        moved = emit(tx, "roll", flat, shifts=(_total(shift),), axes=(0,))
        return array_of(emit(tx, "reshape", moved, shape=x.shape))
    axes = [normalize_axis(i, x.ndim) for i in _several(axis)]
    shifts = [integer(s, "a shift") for s in _several(shift)]
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


def _total(shift: Any) -> Dim:
    total: Dim = 0
    for s in _several(shift):
        total = total + integer(s, "a shift")
    return total


# -- repetition -------------------------------------------------------------------------------
@TABLE.function("tile")
def tile(tx: TraceContext, A: Any, reps: Any) -> ArrayRef:
    x = as_ref(tx, A)
    counts = [integer(r, "a count") for r in _several(reps)]
    ndim = max(x.ndim, len(counts))
    counts = [1] * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - x.ndim) + x.shape
    if not ndim:
        return array_of(emit(tx, "copy", x.var))
    apart: list[Dim] = []
    spread: list[Dim] = []
    for count, size in zip(counts, shape):
        apart += [1, size]
        spread += [count, size]
    source = reshape_var(tx, x.var, tuple(apart))
    fresh = emit(tx, "contiguous", broadcast_to(tx, source, spread))
    return array_of(emit(tx, "reshape", fresh, shape=tuple(c * s for c, s in zip(counts, shape))))


@TABLE.function("repeat")
@TABLE.method("repeat")
def repeat(tx: TraceContext, a: Any, repeats: Any, axis: Any = None) -> ArrayRef:
    x = as_ref(tx, a)
    source = reshape_var(tx, x.var, (product(x.shape),)) if axis is None or not x.ndim else x.var
    along = 0 if axis is None else normalize_axis(axis, source.ndim)
    if isinstance(repeats, ArrayRef):
        raise Unsupported("numpy.repeat with counts that are data", break_id="data-dependent-shape")
    if isinstance(repeats, (list, tuple)) and len(repeats) == 1:
        (repeats,) = repeats
    if isinstance(repeats, (list, tuple, np.ndarray)):
        return array_of(_repeat_each(tx, source, np.asarray(repeats), along))
    count = integer(repeats, "a count")
    before = (*source.shape[: along + 1],)
    after = source.shape[along + 1 :]
    split = reshape_var(tx, source, (*before, 1, *after))
    fresh = emit(tx, "contiguous", broadcast_to(tx, split, (*before, count, *after)))
    return array_of(emit(tx, "reshape", fresh, shape=(*before[:-1], before[-1] * count, *after)))


def _repeat_each(tx: TraceContext, x: Var, repeats: np.ndarray[Any, Any], axis: int) -> Var:
    size = int(x.shape[axis])
    if repeats.shape != (size,) or repeats.dtype.kind not in "iu":
        raise Unsupported("numpy.repeat with counts of another length than the axis")
    positions = np.repeat(np.arange(size), repeats)
    return emit(tx, "index", x, literal(tx, positions), dims=(axis,), position=axis)


@TABLE.function("resize")
def resize(tx: TraceContext, a: Any, new_shape: Any) -> ArrayRef:
    """``np.resize``: repeated copies of ``a`` in C order."""
    x = as_ref(tx, a)
    shape = tuple(int(d) for d in parse_shape(new_shape))
    size = int(product(x.shape))
    wanted = int(product(shape))
    if size == 0 or wanted == 0:
        raise Unsupported("numpy.resize of or to an empty array")
    flat = reshape_var(tx, x.var, (size,))
    copies = [flat] * -(-wanted // size)
    joined = emit(tx, "concatenate", *copies, axis=0)
    kept = emit(tx, "strided_slice", joined, starts=(0,), sizes=(wanted,), steps=(1,))
    return array_of(emit(tx, "reshape", emit(tx, "contiguous", kept), shape=shape))


# -- padding ----------------------------------------------------------------------------------
@TABLE.function("pad")
def pad(tx: TraceContext, array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> ArrayRef:
    """``np.pad`` for modes ``constant edge reflect symmetric wrap`` (and ``empty``)."""
    x = as_ref(tx, array)
    widths = _pad_widths(pad_width, x.ndim)
    if mode in ("constant", "empty"):
        return array_of(_pad_constant(tx, x.var, widths, kwargs))
    if mode not in ("edge", "reflect", "symmetric", "wrap") or kwargs:
        raise Unsupported(f"numpy.pad with mode={mode!r} and {sorted(kwargs)}")
    var = x.var
    for axis, (before, after) in enumerate(widths):
        if before == 0 and after == 0:
            continue
        try:
            positions = np.pad(np.arange(int(var.shape[axis])), (int(before), int(after)), mode)
        except ValueError as error:
            raise Unsupported(str(error)) from error
        var = emit(tx, "index", var, literal(tx, positions), dims=(axis,), position=axis)
    return array_of(emit(tx, "contiguous", var))


def _pad_widths(pad_width: Any, ndim: int) -> tuple[tuple[Dim, Dim], ...]:
    if isinstance(pad_width, ArrayRef):
        raise Unsupported("numpy.pad with widths that are data", break_id="data-dependent-shape")
    if isinstance(pad_width, dict):
        raise Unsupported("numpy.pad with a dict of widths")
    if not isinstance(pad_width, (tuple, list, np.ndarray)):
        width = integer(pad_width, "a width")
        return ((width, width),) * ndim
    rows = list(pad_width)
    if not isinstance(rows[0], (tuple, list, np.ndarray)):
        before = integer(rows[0], "a width")
        after = integer(rows[-1], "a width")
        return ((before, after),) * ndim
    pairs = [(integer(r[0], "a width"), integer(r[-1], "a width")) for r in rows]
    pairs = pairs * ndim if len(pairs) == 1 else pairs
    if len(pairs) != ndim or any(b < 0 or a < 0 for b, a in pairs):
        raise Unsupported("widths of numpy.pad do not match the array")
    return tuple(pairs)


def _pad_constant(tx: TraceContext, x: Var, widths: tuple[tuple[Dim, Dim], ...], kwargs: dict[str, Any]) -> Var:
    value = kwargs.pop("constant_values", 0)
    if kwargs or isinstance(value, (tuple, list, ArrayRef)):
        raise Unsupported("numpy.pad with several or computed constant_values")
    return emit(tx, "pad", x, widths=widths, value=exact_value(value, x.dtype))


# -- diagonals and triangles ------------------------------------------------------------------
@TABLE.function("diagonal")
@TABLE.method("diagonal")
def diagonal(tx: TraceContext, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> ArrayRef:
    """A read-only view."""
    x = as_ref(tx, a)
    first = normalize_axis(axis1, x.ndim)
    second = normalize_axis(axis2, x.ndim)
    shift = int(integer(offset))
    return ArrayRef(emit(tx, "diagonal", x.var, offset=shift, axis1=first, axis2=second), readonly=True)


@TABLE.function("linalg.diagonal")
def linalg_diagonal(tx: TraceContext, x: Any, /, *, offset: Any = 0) -> ArrayRef:
    return diagonal(tx, x, offset, -2, -1)


@TABLE.function("diag")
def diag(tx: TraceContext, v: Any, k: Any = 0) -> ArrayRef:
    x = as_ref(tx, v)
    if x.ndim == 2:
        return diagonal(tx, x, k)
    if x.ndim != 1:
        raise Unsupported("Input must be 1- or 2-d.")
    offset = int(integer(k))
    size = x.shape[0] + abs(offset)
    base = broadcast_to(tx, constant(tx, 0, x.dtype), (size, size))
    base = emit(tx, "contiguous", base)
    return array_of(emit(tx, "update_diagonal", base, x.var, offset=offset, axis1=0, axis2=1))


@TABLE.function("diagflat")
def diagflat(tx: TraceContext, v: Any, k: Any = 0) -> ArrayRef:
    x = as_ref(tx, v)
    return diag(tx, array_of(reshape_var(tx, x.var, (product(x.shape),))), k)


def _triangle(op: str) -> Any:
    def rule(tx: TraceContext, m: Any, k: Any = 0) -> ArrayRef:
        x = as_ref(tx, m)
        if x.ndim < 1:
            raise Unsupported(f"numpy.{op} of a scalar")
        source = x.var
        if x.ndim == 1:
            source = emit(tx, "contiguous", broadcast_to(tx, source, (x.shape[0], x.shape[0])))
        return array_of(emit(tx, op, source, k=integer(k)))

    return rule


TABLE.function("tril")(_triangle("tril"))
TABLE.function("triu")(_triangle("triu"))


@TABLE.function("tri")
def tri(tx: TraceContext, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> ArrayRef:
    rows = integer(N, "a size")
    columns = rows if M is None else integer(M, "a size")
    ones = emit(tx, "contiguous", broadcast_to(tx, constant(tx, 1, parse_dtype(dtype)), (rows, columns)))
    return array_of(emit(tx, "tril", ones, k=integer(k)))


@TABLE.function("fill_diagonal")
def fill_diagonal(tx: TraceContext, a: Any, val: Any, wrap: bool = False) -> None:
    """In place, for two dimensions and one value."""
    if not isinstance(a, ArrayRef) or a.ndim != 2:
        raise Unsupported("numpy.fill_diagonal of an array that is not two-dimensional")
    if wrap and a.shape[0] > a.shape[1]:
        raise Unsupported("numpy.fill_diagonal(wrap=True) of a tall matrix")
    value = to_var(tx, operand(tx, val), a.dtype)
    if value.ndim:
        raise Unsupported("numpy.fill_diagonal with several values")
    view = emit(tx, "diagonal", a.var, offset=0, axis1=0, axis2=1)

    write(tx, view_of(a, view), broadcast_to(tx, value, view.shape))


