"""Composites that join, pad, move and make arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...dtypes import DType, bool_, complex64, float32, float64, int8, int32, int64
from ...graph.ir import Ops, Var
from ...symbolic.integers import Dim
from ..kit import Array, check_axis, replace
from ..layout import dims_equal, is_fortran, is_zero, multi_sorted_axes, sorted_axes
from ..opdef import OpDef, Sample
from ..samples import data, indices, layouts
from ..shape import inverse
from .kit import composite, filled, number, window

_FEW = (float64, int8, bool_, complex64)
Widths = tuple[tuple[Dim, Dim], ...]


# -- joins ------------------------------------------------------------------------------------
def concatenate(ops: Ops, *arrays: Var, axis: int) -> Var:
    """Regions of one fresh array, in the memory order that NumPy picks."""
    check_axis(axis, arrays[0].ndim, "concatenate")
    for other in arrays[1:]:
        _check_joinable(arrays[0], other, axis)
    order = multi_sorted_axes([a.type for a in arrays])
    turned = [ops.transpose(a, perm=tuple(order)) for a in arrays]
    joined = _joined(ops, turned, order.index(axis))
    return ops.transpose(joined, perm=inverse(order))


def _check_joinable(first: Var, other: Var, axis: int) -> None:
    if first.ndim != other.ndim or first.dtype is not other.dtype:
        raise ValueError("concatenate needs arrays of one dtype and number of dimensions")
    for position, (a, b) in enumerate(zip(first.shape, other.shape)):
        if position != axis and not dims_equal(a, b):
            raise ValueError(f"concatenate: sizes {a} and {b} of dimension {position} differ")


def _joined(ops: Ops, arrays: list[Var], axis: int) -> Var:
    first = arrays[0]
    total: Dim = 0
    for a in arrays:
        total = total + a.shape[axis]
    shape = replace(first.shape, axis, total)
    out = ops.empty(shape=shape, dtype=first.dtype, device=first.type.device)
    start: Dim = 0
    for a in arrays:
        if not is_zero(a.type.size):
            starts = tuple(start if i == axis else 0 for i in range(a.ndim))
            out = ops.update_slice(out, a, starts=starts, sizes=a.shape, steps=(1,) * a.ndim)
        start = start + a.shape[axis]
    return out


def stack(ops: Ops, *arrays: Var, axis: int) -> Var:
    dims = tuple(i if i < axis else i + 1 for i in range(arrays[0].ndim))
    raised = [ops.broadcast_in_dim(a, shape=(*a.shape[:axis], 1, *a.shape[axis:]), dims=dims) for a in arrays]
    return ops.concatenate(*raised, axis=axis)


def pad(ops: Ops, x: Var, *, widths: Widths, value: object) -> Var:
    """Constant padding; Fortran order for Fortran-contiguous input, as `np.pad`."""
    if len(widths) != x.ndim:
        raise ValueError("pad needs a pair of widths for each dimension")
    turn = is_fortran(x.shape, x.type.strides)
    if turn:
        x = ops.transpose(x, perm=tuple(reversed(range(x.ndim))))
        widths = tuple(reversed(widths))
    shape = tuple(low + d + high for d, (low, high) in zip(x.shape, widths))
    out = ops.full(shape=shape, value=value, dtype=x.dtype, device=x.type.device)
    if not is_zero(x.type.size):
        starts = tuple(low for low, _ in widths)
        out = ops.update_slice(out, x, starts=starts, sizes=x.shape, steps=(1,) * x.ndim)
    return ops.transpose(out, perm=tuple(reversed(range(x.ndim)))) if turn else out


def roll(ops: Ops, x: Var, *, shifts: tuple[Dim, ...], axes: tuple[int, ...]) -> Var:
    """Two regions of a fresh array per axis."""
    out = x
    for shift, axis in zip(shifts, axes):
        out = _rolled(ops, out, shift, axis)
    return ops.copy(x) if out is x else out


def _rolled(ops: Ops, x: Var, shift: Dim, axis: int) -> Var:
    check_axis(axis, x.ndim, "roll")
    n = x.shape[axis]
    if is_zero(x.type.size):
        return x
    offset = shift % n
    if offset == 0:
        return x
    order = sorted_axes(x.shape, x.type.strides)
    turned = ops.transpose(x, perm=tuple(order))
    place = order.index(axis)
    tail = window(ops, turned, place, n - offset, offset)
    head = window(ops, turned, place, 0, n - offset)
    return ops.transpose(_joined(ops, [tail, head], place), perm=inverse(order))


def repeat(ops: Ops, x: Var, *, repeats: Dim, axis: int) -> Var:
    check_axis(axis, x.ndim, "repeat")
    dims = tuple(i if i <= axis else i + 1 for i in range(x.ndim))
    shape = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    spread = ops.contiguous(ops.broadcast_in_dim(x, shape=shape, dims=dims))
    return ops.reshape(spread, shape=replace(x.shape, axis, x.shape[axis] * repeats))


def tile(ops: Ops, x: Var, *, reps: tuple[Dim, ...]) -> Var:
    """``reps`` has one entry for each dimension."""
    if len(reps) != x.ndim:
        raise ValueError("tile needs a number of repetitions for each dimension")
    shape = tuple(d for pair in zip(reps, x.shape) for d in pair)
    spread = ops.broadcast_in_dim(x, shape=shape, dims=tuple(range(1, 2 * x.ndim, 2)))
    final = tuple(r * d for r, d in zip(reps, x.shape))
    return ops.reshape(ops.contiguous(spread), shape=final)


def diff(ops: Ops, x: Var, *, axis: int) -> Var:
    """First differences along an axis (not_equal for bool)."""
    check_axis(axis, x.ndim, "diff")
    n = x.shape[axis]
    if not n >= 1:
        return ops.copy(x)
    later = window(ops, x, axis, 1, n - 1)
    earlier = window(ops, x, axis, 0, n - 1)
    return ops.not_equal(later, earlier) if x.dtype.is_bool else ops.subtract(later, earlier)


def trace(ops: Ops, x: Var, *, offset: Dim, axis1: int, axis2: int) -> Var:
    line = ops.diagonal(x, offset=offset, axis1=axis1, axis2=axis2)
    return ops.reduce_sum(line, axes=(line.ndim - 1,))


def diag_embed(ops: Ops, x: Var, *, offset: int) -> Var:
    """Matrices with the last axis of ``x`` on diagonal ``offset``."""
    n = x.shape[-1] + abs(offset)
    out = ops.full(shape=(*x.shape[:-1], n, n), value=0, dtype=x.dtype, device=x.type.device)
    return ops.update_diagonal(out, x, offset=offset, axis1=x.ndim - 1, axis2=x.ndim)


# -- gathers with a mode ----------------------------------------------------------------------
def take(ops: Ops, x: Var, index: Var, *, axis: int, mode: str = "raise") -> Var:
    """Elements of one axis by an int64 array of any shape; mode raise, wrap or clip. C order."""
    check_axis(axis, x.ndim, "take")
    n = x.shape[axis]
    if mode == "wrap":
        index = ops.remainder(index, filled(ops, index, n))
    elif mode == "clip":
        index = ops.clip(index, filled(ops, index, 0), filled(ops, index, n - 1))
    elif mode != "raise":
        raise ValueError(f"take: mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    out = ops.index(x, index, dims=(axis,), position=axis)
    return out if out.type.is_contiguous else ops.contiguous(out)


# -- creation ---------------------------------------------------------------------------------
def arange(ops: Ops, *, start: object, step: object, size: Dim, dtype: DType) -> Var:
    """start + i*step in ``dtype``."""
    position = ops.iota(shape=(size,), axis=0, dtype=dtype)
    scaled = ops.multiply(position, filled(ops, position, step))
    return ops.add(scaled, filled(ops, position, start))


def linspace(ops: Ops, *, start: float, stop: float, num: Dim, endpoint: bool, dtype: DType) -> Var:
    """``num`` evenly spaced numbers; the last is exactly ``stop`` with ``endpoint``. float64 inside."""
    position = ops.iota(shape=(num,), axis=0, dtype=float64)
    parts = num - 1 if endpoint else num
    span = filled(ops, position, stop - start)
    if parts > 0:
        count = ops.broadcast_in_dim(number(ops, parts, float64, position), shape=(num,), dims=())
        step = ops.divide(span, count)
        line = (
            ops.multiply(position, step) if stop != start else ops.multiply(ops.divide(position, count), span)
        )
    else:
        line = ops.multiply(position, span)
    line = ops.add(line, filled(ops, line, start))
    if endpoint and num > 1:
        last = ops.equal(ops.iota(shape=(num,), axis=0, dtype=int64), filled(ops, position, num - 1, int64))
        line = ops.where(last, filled(ops, line, stop), line)
    if dtype.is_integer:
        line = ops.floor(line)
    return ops.convert(line, dtype=dtype)


def eye(ops: Ops, *, rows: Dim, columns: Dim, k: Dim, dtype: DType) -> Var:
    row, column = _row_and_column(ops, rows, columns)
    return ops.convert(ops.equal(column, ops.add(row, filled(ops, row, k))), dtype=dtype)


def tri(ops: Ops, *, rows: Dim, columns: Dim, k: Dim, dtype: DType) -> Var:
    row, column = _row_and_column(ops, rows, columns)
    return ops.convert(ops.less_equal(column, ops.add(row, filled(ops, row, k))), dtype=dtype)


def _row_and_column(ops: Ops, rows: Dim, columns: Dim) -> tuple[Var, Var]:
    shape = (rows, columns)
    return tuple(ops.iota(shape=shape, axis=axis, dtype=int64) for axis in (0, 1))  # type: ignore[return-value]


def full_like(ops: Ops, x: Var, *, value: object, dtype: DType) -> Var:
    """A constant in the memory order of ``x``."""
    order = sorted_axes(x.shape, x.type.strides)
    shape = tuple(x.shape[a] for a in order)
    out = ops.full(shape=shape, value=value, dtype=dtype, device=x.type.device)
    return ops.transpose(out, perm=inverse(order))


def indicator(ops: Ops, x: Var, *, count: Dim, dtype: DType) -> Var:
    """One-hot rows: position x[i] of a new last axis of ``count`` is 1. Out of range gives zeros."""
    dims = tuple(range(x.ndim))
    wide = ops.broadcast_in_dim(x, shape=(*x.shape, count), dims=dims)
    place = ops.iota(shape=(*x.shape, count), axis=x.ndim, dtype=x.dtype)
    return ops.convert(ops.contiguous(ops.equal(wide, place)), dtype=dtype)


# -- references -------------------------------------------------------------------------------
def _roll_ref(x: Array, *, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    return np.roll(x, shifts, axes)


def _diag_embed_ref(x: Array, *, offset: int) -> Array:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    place = np.arange(x.shape[-1])
    out[..., place + max(0, -offset), place + max(0, offset)] = x
    return out


def _arange_ref(*, start: object, step: object, size: int, dtype: DType) -> Array:
    kind = dtype.numpy.type
    return np.asarray(np.arange(size).astype(dtype.numpy) * kind(step) + kind(start))


def _take_ref(x: Array, index: Array, *, axis: int, mode: str = "raise") -> Array:
    return np.asarray(np.take(x, index, axis=axis, mode=mode))  # type: ignore[call-overload]


def _linspace_ref(*, start: float, stop: float, num: int, endpoint: bool, dtype: DType) -> Array:
    return np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype.numpy)


def _indicator_ref(x: Array, *, count: int, dtype: DType) -> Array:
    return (x[..., None] == np.arange(count)).astype(dtype.numpy, order="C")


# -- samples ----------------------------------------------------------------------------------
def _join_samples(
    fn: Callable[[Array], Iterator[tuple[tuple[Array, ...], int]]],
) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in _FEW:
            for label, x in layouts(dtype):
                for number_, (arrays, axis) in enumerate(fn(x)):
                    yield Sample(arrays, {"axis": axis}, f"{dtype}-{label}-{number_}")

    return samples


def _concatenations(x: Array) -> Iterator[tuple[tuple[Array, ...], int]]:
    for axis in range(x.ndim):
        yield (x, x), axis
        yield (x, np.ascontiguousarray(x), x[:0] if axis == 0 else x), axis
        yield (x,), axis


def _stacks(x: Array) -> Iterator[tuple[tuple[Array, ...], int]]:
    for axis in range(x.ndim + 1):
        yield (x, x, x), axis


def _layout_samples(*choose: Callable[[Array], Any], least: int = 1) -> Callable[[], Iterator[Sample]]:
    """Samples over layouts, with the params that each function makes of the array."""

    def samples() -> Iterator[Sample]:
        for dtype in _FEW:
            for label, x in layouts(dtype):
                if x.ndim < least:
                    continue
                for number_, make in enumerate(choose):
                    yield Sample((x,), make(x), f"{dtype}-{label}-{number_}")

    return samples


def _numeric_layouts(
    choose: Callable[[Array], Iterator[Any]], least: int = 1
) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in (float64, int8, float32):
            for label, x in layouts(dtype):
                if x.ndim >= least:
                    for number_, params in enumerate(choose(x)):
                        yield Sample((x,), params, f"{dtype}-{label}-{number_}")

    return samples


def _each_axis(x: Array) -> Iterator[Any]:
    for axis in range(x.ndim):
        yield {"axis": axis}


def _traces(x: Array) -> Iterator[Any]:
    for offset in (0, 1, -1):
        yield {"offset": offset, "axis1": 0, "axis2": x.ndim - 1}


def _take_samples() -> Iterator[Sample]:
    for dtype in _FEW:
        for label, x in layouts(dtype):
            for axis in range(x.ndim):
                if x.size == 0:
                    continue
                n = x.shape[axis]
                for shape in ((), (4,), (2, 3)):
                    wild = indices(shape, 3 * n)
                    yield Sample(
                        (x, indices(shape, n)),
                        {"axis": axis, "mode": "raise"},
                        f"{dtype}-{label}-{axis}-{shape}",
                    )
                    yield Sample(
                        (x, wild), {"axis": axis, "mode": "wrap"}, f"{dtype}-{label}-{axis}-{shape}-wrap"
                    )
                    yield Sample(
                        (x, wild), {"axis": axis, "mode": "clip"}, f"{dtype}-{label}-{axis}-{shape}-clip"
                    )


def _creation(*choices: dict[str, Any], dtypes: tuple[DType, ...]) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for number_, params in enumerate(choices):
                yield Sample((), {**params, "dtype": dtype}, f"{dtype}-{number_}")

    return samples


def _indicator_samples() -> Iterator[Sample]:
    for dtype in (int64, int8):
        yield Sample((data(dtype, (5,)),), {"count": 4, "dtype": float64}, f"{dtype}")
        yield Sample((data(dtype, (5, 3)).T,), {"count": 6, "dtype": bool_}, f"{dtype}-transposed")


_MATRICES = tuple(
    {"rows": n, "columns": m, "k": k} for n, m in ((3, 3), (2, 5), (5, 2), (0, 3)) for k in (0, 1, -1, 7)
)
_LINES = tuple(
    {"start": a, "stop": b, "num": n, "endpoint": e}
    for a, b in ((0.0, 1.0), (-2.5, 7.0), (3.0, 3.0)) for n in (0, 1, 2, 7, 50) for e in (True, False)
)  # fmt: skip
_RANGES = tuple({"start": a, "step": s, "size": n} for a in (0, 3) for s in (1, 2) for n in (0, 1, 9))

ROWS: tuple[OpDef, ...] = (
    composite(
        "concatenate",
        ("axis",),
        concatenate,
        lambda *xs, axis: np.concatenate(xs, axis),
        _join_samples(_concatenations),
        "Arrays joined along an existing axis.",
        eps=0.0,
    ),
    composite(
        "stack",
        ("axis",),
        stack,
        lambda *xs, axis: np.stack(xs, axis),
        _join_samples(_stacks),
        "Arrays of one shape joined along a new axis.",
        eps=0.0,
    ),
    composite(
        "pad",
        ("widths", "value"),
        pad,
        lambda x, widths, value: np.pad(x, widths, constant_values=value) if x.ndim else x.copy(),
        _layout_samples(
            lambda x: {"widths": ((1, 2),) * x.ndim, "value": 1},
            lambda x: {"widths": ((0, 0),) * x.ndim, "value": 0},
            least=0,
        ),
        "Constant padding: (before, after) for each dimension.",
        eps=0.0,
    ),
    composite(
        "roll",
        ("shifts", "axes"),
        roll,
        _roll_ref,
        _layout_samples(
            lambda x: {"shifts": (1,), "axes": (0,)},
            lambda x: {"shifts": (-2,), "axes": (x.ndim - 1,)},
            lambda x: {"shifts": (0, 3), "axes": (0, x.ndim - 1)},
        ),
        "Elements shifted cyclically along axes.",
        eps=0.0,
    ),
    composite(
        "repeat",
        ("repeats", "axis"),
        repeat,
        lambda x, repeats, axis: np.repeat(x, repeats, axis),
        _layout_samples(
            lambda x: {"repeats": 3, "axis": 0},
            lambda x: {"repeats": 2, "axis": x.ndim - 1},
            lambda x: {"repeats": 0, "axis": 0},
        ),
        "Each element of an axis repeated.",
        eps=0.0,
    ),
    composite(
        "tile",
        ("reps",),
        tile,
        lambda x, reps: np.ascontiguousarray(np.tile(x, reps)),
        _layout_samples(lambda x: {"reps": (2,) * x.ndim}, lambda x: {"reps": (1,) * (x.ndim - 1) + (3,)}),
        "The whole array repeated along its axes.",
        eps=0.0,
    ),
    composite(
        "diff",
        ("axis",),
        diff,
        lambda x, axis: np.diff(x, axis=axis),
        _numeric_layouts(_each_axis),
        "First differences.",
        eps=2.0,
    ),
    composite(
        "trace",
        ("offset", "axis1", "axis2"),
        trace,
        lambda x, offset, axis1, axis2: np.asarray(np.trace(x, offset, axis1, axis2, dtype=x.dtype)),
        _numeric_layouts(_traces, least=2),
        "Sum along a diagonal, in the input's dtype.",
        absolute=64.0,
    ),
    composite(
        "diag_embed",
        ("offset",),
        diag_embed,
        _diag_embed_ref,
        _layout_samples(*(lambda x, k=k: {"offset": k} for k in (0, 2, -1))),
        "Matrices with a given diagonal, zero elsewhere.",
        eps=0.0,
    ),
    composite(
        "take",
        ("axis", "mode"),
        take,
        _take_ref,
        _take_samples,
        "Elements of one axis by index; mode raise, wrap or clip.",
        eps=0.0,
    ),
    composite(
        "arange",
        ("start", "step", "size", "dtype"),
        arange,
        _arange_ref,
        _creation(*_RANGES, dtypes=(int64, int32, float64, float32)),
        "start + i*step.",
        eps=0.0,
    ),
    composite(
        "linspace",
        ("start", "stop", "num", "endpoint", "dtype"),
        linspace,
        _linspace_ref,
        _creation(*_LINES, dtypes=(float64, float32, int64)),
        "Evenly spaced numbers.",
        eps=1.0,
        absolute=4.0,
    ),
    composite(
        "eye",
        ("rows", "columns", "k", "dtype"),
        eye,
        lambda rows, columns, k, dtype: np.eye(rows, columns, k, dtype.numpy),
        _creation(*_MATRICES, dtypes=(float64, bool_, int64)),
        "Ones on diagonal k.",
        eps=0.0,
    ),
    composite(
        "tri",
        ("rows", "columns", "k", "dtype"),
        tri,
        lambda rows, columns, k, dtype: np.tri(rows, columns, k, dtype.numpy),
        _creation(*_MATRICES, dtypes=(float64, bool_, int64)),
        "Ones at and below diagonal k.",
        eps=0.0,
    ),
    composite(
        "full_like",
        ("value", "dtype"),
        full_like,
        lambda x, value, dtype: np.full_like(x, value, dtype.numpy),
        _layout_samples(
            lambda x: {"value": 2, "dtype": float32}, lambda x: {"value": 1, "dtype": int64}, least=0
        ),
        "A constant of the input's shape and memory order.",
        eps=0.0,
    ),
    composite(
        "one_hot",
        ("count", "dtype"),
        indicator,
        _indicator_ref,
        _indicator_samples,
        "x == i for i below `count`, on a new last axis.",
        eps=0.0,
    ),
)
