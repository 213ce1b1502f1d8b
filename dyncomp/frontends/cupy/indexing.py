"""Subscripts of CuPy's arrays: integers give arrays without dimensions that share memory, and positions in
arrays are taken modulo the size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...symbolic.integers import Dim, SymInt
from ..base import ArrayRef, TraceContext
from ..numpy.indexing import bounded
from ..numpy.operands import array_of, convert
from .cupy_rules import NUMPY, RuleTable, is_own, operand, own, taken

TABLE = RuleTable()


def _consumed(entry: object) -> int:
    """How many dimensions an entry of a subscript stands for."""
    if entry is None or entry is Ellipsis:
        return 0
    return entry.ndim if isinstance(entry, ArrayRef) and entry.dtype.is_bool else 1


def in_bounds(tx: TraceContext, positions: Any, size: Dim) -> Any:
    """Positions in an array, modulo the size."""
    if isinstance(positions, (list, tuple)):
        return _known(positions, size)
    if not is_own(positions) or not positions.ndim or not positions.dtype.is_integer:
        raise Unsupported("positions that are not an array of integers")
    if not size > 0:
        raise Unsupported("positions along an empty dimension")
    return array_of(bounded(tx, convert(tx, positions.var, dtypes.int64), size, "wrap"))


def _known(positions: object, size: Dim) -> Any:
    found = np.asarray(positions)
    if found.dtype.kind != "i" or type(size) is not int or not ((-size <= found) & (found < size)).all():
        raise Unsupported("a list as subscript of a CuPy array")
    return positions


def _entries(tx: TraceContext, x: ArrayRef, key: object) -> tuple[Any, ...]:
    """The subscript with positions in bounds; it ends in an ellipsis, so that the result is an array."""
    entries = key if isinstance(key, tuple) else (key,)
    rest = x.ndim - sum(map(_consumed, entries))
    found: list[Any] = []
    axis = 0
    for entry in entries:
        if isinstance(entry, ArrayRef) and entry.dtype.is_bool:
            own(entry)
        elif isinstance(entry, (ArrayRef, list)):
            if axis >= x.ndim:
                raise Unsupported("too many indices")
            entry = in_bounds(tx, entry, x.shape[axis])
        elif not (entry is None or entry is Ellipsis or isinstance(entry, (int, np.integer, slice, SymInt))):
            raise Unsupported(f"a {type(entry).__name__} as subscript of a CuPy array")
        axis += rest if entry is Ellipsis else _consumed(entry)
        found.append(entry)
    return tuple(found) if Ellipsis in [e for e in found if e is Ellipsis] else (*found, Ellipsis)


def _has_mask(entries: tuple[Any, ...]) -> bool:
    return any(isinstance(entry, ArrayRef) and entry.dtype.is_bool for entry in entries)


@TABLE.operator("getitem")
def getitem(tx: TraceContext, x: object, key: object) -> Any:
    entries = _entries(tx, own(x), key)
    if _has_mask(entries):
        raise Unsupported("what a mask selects of a CuPy array", break_id="data-dependent-shape")
    return taken(tx, NUMPY.rules.operators["getitem"], x, entries)


@TABLE.operator("setitem")
def setitem(tx: TraceContext, x: object, key: object, value: object) -> None:
    entries = _entries(tx, own(x), key)
    given = operand(value)
    if _has_mask(entries) and is_own(given) and given.ndim:
        raise Unsupported("an array written through a mask", break_id="data-dependent-shape")
    taken(tx, NUMPY.rules.operators["setitem"], x, entries, given)


TABLE.methods["__getitem__"] = getitem
TABLE.methods["__setitem__"] = setitem


@TABLE.both("take")
def take(tx: TraceContext, a: Any, indices: Any, axis: Any = None, out: Any = None) -> Any:
    if out is not None or type(axis) is not int or not -own(a).ndim <= axis < a.ndim:
        raise Unsupported("cupy.take of these arguments")
    positions = in_bounds(tx, indices, a.shape[axis])
    return taken(tx, NUMPY.rules.functions[np.take], a, positions, axis)
