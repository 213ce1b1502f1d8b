"""Sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Var
from ..base import ArrayRef, TraceContext
from .index_functions import take
from .index_parse import int_position
from .library import digitize_by_data
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    as_ref,
    broadcast_to,
    convert,
    emit,
    integer,
    normalize_axis,
    operand,
    to_var,
    value_of,
)
from .promote import from_np
from .traced import Traced
from .views import flatten_view

TABLE = RuleTable()


def _kind(kind: object, stable: object) -> str:
    if stable is not None:
        return "stable" if stable else "quicksort"
    return "quicksort" if kind is None else str(kind)


@TABLE.function("sort")
def sort(
    tx: TraceContext,
    a: object,
    axis: object = -1,
    kind: object = None,
    order: object = None,
    *,
    stable: object = None,
) -> ArrayRef:
    x = as_ref(tx, a)
    if order is not None or not x.ndim:
        raise Unsupported("numpy.sort of a scalar, or with order=")
    source = flatten_view(tx, x.var) if axis is None else x.var
    along = 0 if axis is None else normalize_axis(axis, x.ndim)
    return array_of(emit(tx, "sort", source, axis=along, kind=_kind(kind, stable)))


@TABLE.function("argsort")
def argsort(
    tx: TraceContext,
    a: object,
    axis: object = -1,
    kind: object = None,
    order: object = None,
    *,
    stable: object = None,
) -> ArrayRef:
    x = as_ref(tx, a)
    if order is not None or not x.ndim:
        raise Unsupported("numpy.argsort of a scalar, or with order=")
    source = flatten_view(tx, x.var) if axis is None else x.var
    along = 0 if axis is None else normalize_axis(axis, x.ndim)
    return array_of(emit(tx, "argsort", source, axis=along, kind=_kind(kind, stable)))


def _partition_rule(op: str) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        kth: object,
        axis: object = -1,
        kind: object = "introselect",
        order: object = None,
    ) -> ArrayRef:
        x = as_ref(tx, a)
        if order is not None or not x.ndim or x.dtype.is_complex:
            raise Unsupported(f"numpy.{op} of scalars or complex numbers, or with order=")
        source = flatten_view(tx, x.var) if axis is None else x.var
        along = 0 if axis is None else normalize_axis(axis, x.ndim)
        places = kth if isinstance(kth, (tuple, list)) else (kth,)
        size = source.shape[along]
        ready = tuple(int_position(integer(k, "a position"), size) for k in places)
        return array_of(emit(tx, op, source, kth=ready, axis=along))

    return rule


partition = _partition_rule("partition")
argpartition = _partition_rule("argpartition")
TABLE.function("partition")(partition)
TABLE.function("argpartition")(argpartition)


@TABLE.function("searchsorted")
def searchsorted(
    tx: TraceContext, a: object, v: object, side: str = "left", sorter: object = None
) -> ArrayRef:
    haystack = as_ref(tx, a)
    needle = as_ref(tx, v)
    if haystack.ndim != 1 or side not in ("left", "right"):
        raise Unsupported("numpy.searchsorted of an array that is not one-dimensional")
    if sorter is not None:
        order = as_ref(tx, sorter)
        if order.ndim != 1 or not order.shape[0] == haystack.shape[0] or not order.dtype.is_integer:
            raise Unsupported("sorter must be a permutation of the array's indices")
        haystack = take(tx, haystack, order)
    return value_of(_search(tx, haystack, needle, side))


def _search(tx: TraceContext, haystack: ArrayRef, needle: ArrayRef, side: str) -> Var:
    common = from_np(np.promote_types(haystack.dtype.numpy, needle.dtype.numpy))
    sorted_values = convert(tx, haystack.var, common)
    return emit(tx, "searchsorted", sorted_values, convert(tx, needle.var, common), side=side)


@TABLE.function("digitize")
def digitize(tx: TraceContext, x: object, bins: object, right: bool = False) -> ArrayRef:
    """By a search where the bins are known at capture (NumPy raises where they are not monotonic)."""
    if isinstance(bins, ArrayRef):
        return digitize_by_data(tx, x, bins, right)
    edges = np.asarray(bins)
    differences = np.diff(edges)
    needle = as_ref(tx, x)
    if needle.dtype.is_complex or edges.ndim != 1:
        raise Unsupported("numpy.digitize of complex numbers")
    if np.all(differences >= 0):
        return value_of(_search(tx, as_ref(tx, edges), needle, "left" if right else "right"))
    if not np.all(differences <= 0):
        raise Unsupported("bins must be monotonically increasing or decreasing")
    found = _search(tx, as_ref(tx, np.ascontiguousarray(edges[::-1])), needle, "right" if right else "left")
    return (len(edges) - Traced(tx, value_of(found))).ref


@TABLE.function("_core.multiarray.interp")
def interp_without_period(
    tx: TraceContext, x: object, xp: object, fp: object, left: object = None, right: object = None
) -> ArrayRef:
    return interp(tx, x, xp, fp, left, right)


@TABLE.function("interp")
def interp(
    tx: TraceContext,
    x: object,
    xp: object,
    fp: object,
    left: object = None,
    right: object = None,
    period: object = None,
) -> ArrayRef:
    """Of real data; the ends are constant unless ``left`` and ``right`` say otherwise."""
    if period is not None:
        raise Unsupported("numpy.interp with period=")
    points, positions, heights = (as_ref(tx, v) for v in (x, xp, fp))
    if heights.dtype.is_complex or positions.ndim != 1 or heights.ndim != 1:
        raise Unsupported("numpy.interp of complex values")
    if not positions.shape[0] == heights.shape[0] or positions.shape[0] == 0:
        raise Unsupported("fp and xp are not of the same length.")
    ready = [convert(tx, r.var, dtypes.float64) for r in (points, positions, heights)]
    result = Traced(tx, value_of(emit(tx, "interp", *ready)))
    value = Traced(tx, value_of(ready[0]))
    ends = Traced(tx, array_of(ready[1]))
    if left is not None:
        result = _where(tx, value < ends[0], left, result)
    if right is not None:
        result = _where(tx, value > ends[-1], right, result)
    return result.ref


def _where(tx: TraceContext, test: Traced, value: object, other: Traced) -> Traced:
    var = broadcast_to(tx, to_var(tx, operand(tx, value), other.dtype), other.shape)
    return Traced(tx, value_of(emit(tx, "where", test.var, var, other.var)))
