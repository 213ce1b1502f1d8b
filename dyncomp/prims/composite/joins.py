"""Composites that join, pad and move arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...dtypes import bool_, complex64, float64, int8
from ...graph.ir import Ops, Var
from ...symbolic.integers import Dim
from ..kit import Array, check_axis, replace
from ..layout import dims_equal, is_fortran, is_zero, multi_sorted_axes, sorted_axes
from ..opdef import NEVER, OpDef, Sample
from ..samples import layouts
from ..shape import inverse
from .kit import composite, window

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
        # empty ones, too: they have a gradient
        starts = tuple(start if i == axis else 0 for i in range(a.ndim))
        out = ops.update_slice(out, a, starts=starts, sizes=a.shape, steps=(1,) * a.ndim)
        start = start + a.shape[axis]
    return out


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


def tile(ops: Ops, x: Var, *, reps: tuple[Dim, ...]) -> Var:
    """``reps`` has one entry for each dimension."""
    if len(reps) != x.ndim:
        raise ValueError("tile needs a number of repetitions for each dimension")
    shape = tuple(d for pair in zip(reps, x.shape) for d in pair)
    spread = ops.broadcast_in_dim(x, shape=shape, dims=tuple(range(1, 2 * x.ndim, 2)))
    final = tuple(r * d for r, d in zip(reps, x.shape))
    return ops.reshape(ops.contiguous(spread), shape=final)


# -- references -------------------------------------------------------------------------------
def _roll_ref(x: Array, *, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    return np.roll(x, shifts, axes)


# -- samples ----------------------------------------------------------------------------------
def _concatenation_samples() -> Iterator[Sample]:
    for dtype in _FEW:
        for label, x in layouts(dtype):
            for number_, (arrays, axis) in enumerate(_concatenations(x)):
                yield Sample(arrays, {"axis": axis}, f"{dtype}-{label}-{number_}")


def _concatenations(x: Array) -> Iterator[tuple[tuple[Array, ...], int]]:
    for axis in range(x.ndim):
        yield (x, x), axis
        yield (x, np.ascontiguousarray(x), x[:0] if axis == 0 else x), axis
        yield (x,), axis


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


ROWS: tuple[OpDef, ...] = (
    composite(
        "concatenate",
        ("axis",),
        concatenate,
        lambda *xs, axis: np.concatenate(xs, axis),
        _concatenation_samples,
        "Arrays joined along an existing axis.",
        eps=0.0,
        rounds={"fc": NEVER},
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
        rounds={"fc": NEVER},
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
        rounds={"fc": NEVER},
    ),
    composite(
        "tile",
        ("reps",),
        tile,
        lambda x, reps: np.ascontiguousarray(np.tile(x, reps)),
        _layout_samples(lambda x: {"reps": (2,) * x.ndim}, lambda x: {"reps": (1,) * (x.ndim - 1) + (3,)}),
        "The whole array repeated along its axes.",
        eps=0.0,
        rounds={"fc": NEVER},
    ),
)
