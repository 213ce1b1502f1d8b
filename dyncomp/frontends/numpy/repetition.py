"""Repeating and padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...device import CPU
from ...dtypes import int64
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import is_fortran
from ...symbolic.integers import Dim, product
from ..base import ArrayRef, TraceContext
from .data_dependent import repeat_by_counts
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    as_ref,
    broadcast_to,
    emit,
    exact_value,
    integer,
    literal,
    normalize_axis,
    to_var,
    view_of,
)
from .shape import parse_shape, several
from .views import reshape_var, reversed_axes

TABLE = RuleTable()


@TABLE.function("tile")
def tile(tx: TraceContext, A: object, reps: object) -> ArrayRef:
    x = as_ref(tx, A)
    given = [integer(r, "a count") for r in several(reps)]
    ndim = max(x.ndim, len(given))
    counts: list[Dim] = [*[1] * (ndim - len(given)), *given]
    shape = (1,) * (ndim - x.ndim) + x.shape
    if x.kind == "array" and all(r == 1 for r in given):
        return array_of(reshape_var(tx, emit(tx, "copy", x.var), shape))
    if not ndim:
        return array_of(emit(tx, "copy", x.var))
    total = tuple(c * s for c, s in zip(counts, shape))
    if x.kind == "array" and any(d == 0 for d in shape):
        return view_of(x, reshape_var(tx, x.var, total))  # NumPy gives a view, of nothing
    apart: list[Dim] = []
    spread: list[Dim] = []
    for count, size in zip(counts, shape):
        apart += [1, size]
        spread += [count, size]
    source = reshape_var(tx, x.var, tuple(apart))
    fresh = emit(tx, "contiguous", broadcast_to(tx, source, spread))
    return array_of(emit(tx, "reshape", fresh, shape=total))


@TABLE.function("repeat")
@TABLE.method("repeat")
def repeat(tx: TraceContext, a: object, repeats: object, axis: object = None) -> ArrayRef:
    x = as_ref(tx, a)
    source = reshape_var(tx, x.var, (product(x.shape),)) if axis is None or not x.ndim else x.var
    along = 0 if axis is None else normalize_axis(axis, source.ndim)
    if isinstance(repeats, ArrayRef):
        if repeats.ndim:
            return repeat_by_counts(tx, source, repeats.var, along)
        raise Unsupported("numpy.repeat with a count that is data", break_id="data-dependent-shape")
    if isinstance(repeats, (list, tuple)) and len(repeats) == 1:
        (repeats,) = repeats
    if isinstance(repeats, (list, tuple, np.ndarray)):
        return array_of(_repeat_each(tx, source, np.asarray(repeats), along))
    count = integer(repeats, "a count")
    before = (*source.shape[: along + 1],)
    after = source.shape[along + 1 :]
    split = reshape_var(tx, source, (*before, 1, *after))
    fresh = emit(tx, "contiguous", broadcast_to(tx, split, (*before, count, *after)))
    flat = emit(tx, "reshape", fresh, shape=(*before[:-1], before[-1] * count, *after))
    return array_of(emit(tx, "copy", flat))


def _repeat_each(tx: TraceContext, x: Var, repeats: np.ndarray[Any, Any], axis: int) -> Var:
    size = int(x.shape[axis])
    if repeats.shape != (size,) or repeats.dtype.kind not in "iu":
        raise Unsupported("numpy.repeat with counts of another length than the axis")
    positions = np.repeat(np.arange(size), repeats)
    result = emit(tx, "index", x, literal(tx, positions), dims=(axis,), position=axis)
    return result if result.type.is_contiguous else emit(tx, "contiguous", result)


@TABLE.function("resize")
def resize(tx: TraceContext, a: object, new_shape: object) -> ArrayRef:
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
def pad(
    tx: TraceContext, array: object, pad_width: object, mode: object = "constant", **kwargs: object
) -> ArrayRef:
    """``np.pad`` for modes ``constant edge reflect symmetric wrap`` (and ``empty``)."""
    x = as_ref(tx, array)
    widths = _pad_widths(pad_width, x.ndim)
    if mode == "constant" or (mode == "empty" and not kwargs):
        return array_of(_pad_constant(tx, x.var, widths, kwargs))
    if mode not in ("edge", "reflect", "symmetric", "wrap") or kwargs:
        raise Unsupported(f"numpy.pad with mode={mode!r} and {sorted(kwargs)}")
    turn = is_fortran(x.shape, x.var.type.strides)
    var = reversed_axes(tx, x.var) if turn else x.var
    for axis, (before, after) in enumerate(reversed(widths) if turn else widths):
        size = var.shape[axis]
        if all(isinstance(d, int) for d in (size, before, after)):
            var = _extended(tx, var, axis, _static_positions(int(size), int(before), int(after), mode))
        elif not (before == 0 and after == 0):
            positions = _source_positions(tx, var.shape[axis], before, after, mode)
            var = emit(tx, "index", var, positions, dims=(axis,), position=axis)
    var = emit(tx, "contiguous", var)
    return array_of(reversed_axes(tx, var) if turn else var)


def _static_positions(size: int, before: int, after: int, mode: str) -> np.ndarray[Any, Any]:
    try:
        return np.pad(np.arange(size), (before, after), mode)  # type: ignore[call-overload,no-any-return]
    except ValueError as error:
        raise Unsupported(str(error)) from error


# Positions that go up, down or stay for at most so many stretches are slices side by side.
_MOST_STRETCHES = 8


def _extended(tx: TraceContext, x: Var, axis: int, positions: np.ndarray[Any, Any]) -> Var:
    """The elements of an axis at positions that are known."""
    if np.array_equal(positions, np.arange(int(x.shape[axis]))):
        return x
    stretches = _stretches(positions)
    if len(stretches) > _MOST_STRETCHES:
        return emit(tx, "index", x, literal(tx, positions), dims=(axis,), position=axis)
    parts = []
    for start, step, count in stretches:
        starts = tuple(start if k == axis else 0 for k in range(x.ndim))
        steps = tuple(step or 1 if k == axis else 1 for k in range(x.ndim))
        length = count if step else 1
        sizes = tuple(length if k == axis else d for k, d in enumerate(x.shape))
        part = emit(tx, "strided_slice", x, starts=starts, sizes=sizes, steps=steps)
        wanted = tuple(count if k == axis else d for k, d in enumerate(x.shape))
        parts.append(part if step else broadcast_to(tx, part, wanted))
    return emit(tx, "concatenate", *parts, axis=axis)


def _stretches(positions: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """Runs of positions in steps of 1, -1 or 0: first position, step and length."""
    found: list[tuple[int, int, int]] = []
    at = 0
    values = positions.tolist()
    while at < len(values):
        step = values[at + 1] - values[at] if at + 1 < len(values) else 1
        step = step if step in (-1, 0, 1) else 1
        end = at + 1
        while end < len(values) and values[end] - values[end - 1] == step:
            end += 1
        found.append((values[at], step, end - at))
        at = end
    return found


def _source_positions(tx: TraceContext, size: Dim, before: Dim, after: Dim, mode: str) -> Var:
    """Which element of an axis of ``size``, a symbol, each element of the padded axis is."""
    if size == 0:
        raise Unsupported(f"numpy.pad of nothing with mode={mode!r}")
    shape = (before + size + after,)

    def spread(value: Dim) -> Var:
        return broadcast_to(tx, to_var(tx, value, int64), shape)

    line = emit(tx, "iota", shape=shape, axis=0, dtype=int64, device=CPU)
    place = emit(tx, "subtract", line, spread(before))
    if mode == "edge" or (mode == "reflect" and size == 1):
        return emit(tx, "clip", place, spread(0), spread(size - 1))
    if mode == "wrap":
        return emit(tx, "remainder", place, spread(size))
    inner = 1 if mode == "reflect" else 0  # the ends are not repeated
    period = 2 * (size - inner)
    place = emit(tx, "remainder", place, spread(period))
    back = emit(tx, "subtract", spread(period - 1 + inner), place)
    return emit(tx, "where", emit(tx, "greater_equal", place, spread(size)), back, place)


def _pad_widths(pad_width: object, ndim: int) -> tuple[tuple[Dim, Dim], ...]:
    if isinstance(pad_width, ArrayRef):
        raise Unsupported("numpy.pad with widths that are data", break_id="data-dependent-shape")
    if isinstance(pad_width, dict):
        raise Unsupported("numpy.pad with a dict of widths")
    if not isinstance(pad_width, (tuple, list, np.ndarray)):
        width = integer(pad_width, "a width")
        return _not_negative([(width, width)]) * ndim
    rows = list(pad_width)
    nested = [isinstance(row, (tuple, list, np.ndarray)) for row in rows]
    lengths = {len(row) for row in rows} if all(nested) else {len(rows)}
    if lengths not in ({1}, {2}) or (any(nested) and not all(nested)):
        raise Unsupported("widths of numpy.pad do not match the array")
    if not nested[0]:
        before = integer(rows[0], "a width")
        after = integer(rows[-1], "a width")
        return _not_negative([(before, after)]) * ndim
    pairs = _not_negative([(integer(r[0], "a width"), integer(r[-1], "a width")) for r in rows])
    pairs = pairs * ndim if len(pairs) == 1 else pairs
    if len(pairs) != ndim:
        raise Unsupported("widths of numpy.pad do not match the array")
    return pairs


def _not_negative(pairs: list[tuple[Dim, Dim]]) -> tuple[tuple[Dim, Dim], ...]:
    """The widths themselves, which NumPy checks before it looks at the array's axes."""
    if any(before < 0 or after < 0 for before, after in pairs):
        raise Unsupported("index can't contain negative values")
    return tuple(pairs)


def _pad_constant(
    tx: TraceContext, x: Var, widths: tuple[tuple[Dim, Dim], ...], kwargs: dict[str, Any]
) -> Var:
    value = kwargs.pop("constant_values", 0)
    if kwargs or isinstance(value, (tuple, list, ArrayRef)):
        raise Unsupported("numpy.pad with several or computed constant_values")
    return emit(tx, "pad", x, widths=widths, value=exact_value(value, x.dtype))
