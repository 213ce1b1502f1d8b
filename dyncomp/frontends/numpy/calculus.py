"""Differences, sums over curves, convolution, polynomials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ..base import ArrayRef, TraceContext
from . import promote
from .creation import full_like as zeros_like
from .join import concatenate
from .math_functions import where
from .numpy_rules import RuleTable
from .operands import (
    NO,
    array_of,
    as_ref,
    broadcast_to,
    convert,
    emit,
    integer,
    is_scalar_constant,
    normalize_axis,
    value_of,
)
from .reductions import cumsum, sum_
from .traced import Traced
from .views import flatten_view, in_memory_of_copy, slice_axis

TABLE = RuleTable()


def along(x: Traced, axis: int, start: object, stop: object) -> Traced:
    """``x[..., start:stop, ...]`` along ``axis``."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


# -- differences ------------------------------------------------------------------------------
@TABLE.function("diff")
def diff(
    tx: TraceContext, a: object, n: object = 1, axis: object = -1, prepend: object = NO, append: object = NO
) -> ArrayRef:
    """``np.diff``; booleans give ``not_equal``."""
    x = as_ref(tx, a)
    order = int(integer(n))
    if order == 0:
        return x
    if order < 0 or not x.ndim:
        raise Unsupported("diff requires a non-negative order and at least one dimension")
    place = normalize_axis(axis, x.ndim)
    parts = [_end(tx, x, prepend, place), x, _end(tx, x, append, place)]
    present = [p for p in parts if p is not None]
    result = Traced(tx, x if len(present) == 1 else concatenate(tx, present, place))
    ufunc = np.not_equal if result.dtype.is_bool else np.subtract
    for _ in range(order):
        result = along(result, place, 1, None).call(ufunc, along(result, place, None, -1))
    return result.ref


def _end(tx: TraceContext, x: ArrayRef, value: object, axis: int) -> ArrayRef | None:
    if value is NO:
        return None
    end = as_ref(tx, value)
    if end.ndim:
        return end
    shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
    return array_of(broadcast_to(tx, end.var, shape))


@TABLE.function("ediff1d")
def ediff1d(tx: TraceContext, ary: object, to_end: object = None, to_begin: object = None) -> ArrayRef:
    if to_end is not None or to_begin is not None:
        raise Unsupported("numpy.ediff1d with to_begin= or to_end=")
    flat = Traced(tx, array_of(flatten_view(tx, as_ref(tx, ary).var)))
    return (flat[1:] - flat[:-1]).ref


@TABLE.function("gradient")
def gradient(
    tx: TraceContext, f: object, *varargs: object, axis: object = None, edge_order: object = 1
) -> Any:
    """``np.gradient`` with constant spacings or coordinates per axis."""
    x = as_ref(tx, f)
    if axis is None:
        axes: tuple[int, ...] = tuple(range(x.ndim))
    else:
        several = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = tuple(normalize_axis(i, x.ndim) for i in several)
    if edge_order not in (1, 2) or not axes:
        raise Unsupported("numpy.gradient of a scalar, or with edge_order not 1 or 2")
    if x.dtype.is_bool:
        raise Unsupported("numpy boolean subtract, the `-` operator, is not supported")
    spacings = _spacings(tx, varargs, len(axes))
    value = Traced(tx, x)
    if not value.dtype.is_inexact:
        value = Traced(tx, value_of(convert(tx, x.var, dtypes.float64)))
    parts = [_gradient_along(tx, value, i, h, edge_order) for i, h in zip(axes, spacings)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _spacings(tx: TraceContext, varargs: tuple[Any, ...], count: int) -> list[Any]:
    if not varargs:
        return [1.0] * count
    if len(varargs) == 1 and _is_scalar(varargs[0]):
        return [_spacing(tx, varargs[0])] * count
    if len(varargs) != count:
        raise Unsupported("invalid number of arguments of numpy.gradient")
    return [_spacing(tx, v) for v in varargs]


def _is_scalar(value: object) -> bool:
    return is_scalar_constant(value) or (isinstance(value, ArrayRef) and not value.ndim)


def _spacing(tx: TraceContext, value: object) -> Any:
    """A number, or a traced vector of differences between coordinates."""
    if _is_scalar(value):
        return Traced(tx, value) if isinstance(value, ArrayRef) and value.kind != "python" else value
    coordinates = Traced(tx, value)
    if coordinates.ndim != 1:
        raise Unsupported("distances must be either scalars or 1d")
    if coordinates.dtype.is_integer:
        coordinates = Traced(tx, value_of(convert(tx, coordinates.var, dtypes.float64)))
    return coordinates[1:] - coordinates[:-1]


def _gradient_along(tx: TraceContext, f: Traced, axis: int, h: Any, edge_order: int) -> ArrayRef:
    size = f.shape[axis]
    if not size >= edge_order + 1:
        raise Unsupported("Shape of array too small to calculate a numerical gradient")
    uneven = isinstance(h, Traced) and h.ndim == 1
    if uneven and not h.shape[0] == size - 1:
        raise Unsupported("when 1d, distances must match the length of the corresponding dimension")
    first = h[0] if uneven else h
    last = h[-1] if uneven else h
    middle = _uneven_middle(f, axis, h) if uneven else _even_middle(f, axis, h)
    if edge_order == 1:
        begin = (along(f, axis, 1, 2) - along(f, axis, 0, 1)) / first
        end = (along(f, axis, -1, None) - along(f, axis, -2, -1)) / last
    else:
        begin, end = _second_order_edges(f, axis, h, uneven)
    joined = concatenate(tx, [begin.ref, middle.ref, end.ref], axis)
    return array_of(in_memory_of_copy(tx, convert(tx, joined.var, f.dtype), f.var))


def _even_middle(f: Traced, axis: int, h: Any) -> Traced:
    return (along(f, axis, 2, None) - along(f, axis, None, -2)) / (2.0 * h)


def _reshaped(h: Traced, ndim: int, axis: int) -> Traced:
    """A vector along ``axis`` of ``ndim`` dimensions."""
    return h[(None,) * axis + (slice(None),) + (None,) * (ndim - axis - 1)]


def _uneven_middle(f: Traced, axis: int, h: Traced) -> Traced:
    dx1 = h[:-1]
    dx2 = h[1:]
    a = -dx2 / (dx1 * (dx1 + dx2))
    b = (dx2 - dx1) / (dx1 * dx2)
    c = dx1 / (dx2 * (dx1 + dx2))
    a, b, c = (_reshaped(v, f.ndim, axis) for v in (a, b, c))
    return a * along(f, axis, None, -2) + b * along(f, axis, 1, -1) + c * along(f, axis, 2, None)


def _second_order_edges(f: Traced, axis: int, h: Any, uneven: bool) -> tuple[Traced, Traced]:
    if uneven:
        dx1, dx2 = h[0], h[1]
        a = -(2.0 * dx1 + dx2) / (dx1 * (dx1 + dx2))
        b = (dx1 + dx2) / (dx1 * dx2)
        c = -dx1 / (dx2 * (dx1 + dx2))
    else:
        a, b, c = -1.5 / h, 2.0 / h, -0.5 / h
    begin = a * along(f, axis, 0, 1) + b * along(f, axis, 1, 2) + c * along(f, axis, 2, 3)
    if uneven:
        dx1, dx2 = h[-2], h[-1]
        a = dx2 / (dx1 * (dx1 + dx2))
        b = -(dx2 + dx1) / (dx1 * dx2)
        c = (2.0 * dx2 + dx1) / (dx2 * (dx1 + dx2))
    else:
        a, b, c = 0.5 / h, -2.0 / h, 1.5 / h
    end = a * along(f, axis, -3, -2) + b * along(f, axis, -2, -1) + c * along(f, axis, -1, None)
    return begin, end


@TABLE.function("trapezoid", "trapz")
def trapezoid(tx: TraceContext, y: object, x: object = None, dx: object = 1.0, axis: object = -1) -> ArrayRef:
    value = Traced(tx, y)
    place = normalize_axis(axis, value.ndim)
    if x is None:
        step: Any = dx if not isinstance(dx, ArrayRef) else Traced(tx, dx)
    else:
        positions = Traced(tx, x)
        step = Traced(tx, diff(tx, positions.ref, axis=0 if positions.ndim == 1 else place))
        if positions.ndim == 1:
            step = _reshaped(step, value.ndim, place)
    area = step * (along(value, place, 1, None) + along(value, place, None, -1)) / 2.0
    return sum_(tx, area.ref, place)


# -- convolution ------------------------------------------------------------------------------
def _two_vectors(tx: TraceContext, a: object, v: object) -> tuple[ArrayRef, ArrayRef]:
    refs = [as_ref(tx, x) for x in (a, v)]
    refs = [array_of(emit(tx, "reshape", r.var, shape=(1,))) if not r.ndim else r for r in refs]
    if any(r.ndim != 1 for r in refs) or any(r.shape[0] == 0 for r in refs):
        raise Unsupported("convolution of arrays that are not vectors, or empty")
    dtype = promote.from_np(np.result_type(*(r.dtype.numpy for r in refs)))
    first, second = (array_of(convert(tx, r.var, dtype)) for r in refs)
    if dtype.is_inexact:
        tx.assume("numpy-errstate")
    return first, second


@TABLE.function("convolve")
def convolve(tx: TraceContext, a: object, v: object, mode: str = "full") -> ArrayRef:
    first, second = _two_vectors(tx, a, v)
    return array_of(emit(tx, "convolve", first.var, second.var, mode=mode))


@TABLE.function("correlate")
def correlate(tx: TraceContext, a: object, v: object, mode: str = "valid") -> ArrayRef:
    a, v = as_ref(tx, a), as_ref(tx, v)
    if not (a.ndim and v.ndim):
        raise Unsupported("object of too small depth for desired array")
    first, second = _two_vectors(tx, a, v)
    return array_of(emit(tx, "correlate", first.var, second.var, mode=mode))


# -- polynomials ------------------------------------------------------------------------------
@TABLE.function("polyval")
def polyval(tx: TraceContext, p: object, x: object) -> ArrayRef:
    """Horner's scheme over coefficients of known number."""
    coefficients = as_ref(tx, p)
    if coefficients.ndim != 1 or not coefficients.shape[0] <= 64:
        raise Unsupported("numpy.polyval of many coefficients")
    point = Traced(tx, x)
    terms = Traced(tx, coefficients)
    zeros = zeros_like(tx, point.ref, 0)
    if not coefficients.shape[0]:
        return zeros
    result = Traced(tx, value_of(zeros.var))
    for i in range(int(coefficients.shape[0])):
        result = result * point + terms[i]
    return result.ref


def _of_sequence(tx: TraceContext, sequence: object) -> ArrayRef:
    """NumPy looks through the argument for arrays of other libraries before anything else; then its own
    Python implementation says it all."""
    if not isinstance(sequence, (list, tuple)) and not as_ref(tx, sequence).ndim:
        text = "dispatcher for __array_function__ did not return an iterable"
        raise Unsupported(text, break_id="would-raise")
    raise Unsupported("polynomials and their roots have no rule of their own")


TABLE.function("poly")(_of_sequence)
TABLE.function("roots")(_of_sequence)


@TABLE.function("polyder")
def polyder(tx: TraceContext, p: object, m: object = 1) -> ArrayRef:
    coefficients = Traced(tx, p)
    if m != 1 or coefficients.ndim != 1 or not coefficients.shape[0] >= 2:
        raise Unsupported("numpy.polyder of this polynomial or order")
    degree = int(coefficients.shape[0]) - 1
    return (coefficients[:-1] * Traced(tx, np.arange(degree, 0, -1))).ref


# -- phases -----------------------------------------------------------------------------------
@TABLE.function("unwrap")
def unwrap(
    tx: TraceContext, p: object, discont: Any = None, axis: object = -1, *, period: Any = 2 * math.pi
) -> ArrayRef:
    """Of floating-point phases."""
    value = Traced(tx, p)
    if not value.dtype.is_float or not value.ndim or isinstance(period, ArrayRef):
        raise Unsupported("numpy.unwrap of numbers that are not floating point")
    place = normalize_axis(axis, value.ndim)
    jump = period / 2 if discont is None else discont
    low, high = -period / 2, period / 2
    steps = Traced(tx, diff(tx, value.ref, axis=place))
    wrapped = (steps - low) % period + low
    at_edge = (wrapped == low) & (steps > 0)
    wrapped = Traced(tx, where(tx, at_edge.ref, high, wrapped.ref))
    correction = Traced(tx, where(tx, (abs(steps) < jump).ref, 0, (wrapped - steps).ref))
    total = Traced(tx, cumsum(tx, correction.ref, place))
    first = slice_axis(tx, value.var, place, 0, 1)
    rest = along(value, place, 1, None) + total
    joined = concatenate(tx, [array_of(first), rest.ref], place)
    return array_of(in_memory_of_copy(tx, joined.var, value.var))
