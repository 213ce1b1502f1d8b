"""Functions that read and write at indices: take, put, ix_, unravel_index…"""

from __future__ import annotations

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext
from .indexing import as_index, bounded, combine_at, index_arrays, scatter, take_along
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    array_operand,
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
from .routines import unravelled
from .traced import Traced
from .ufunc_methods import at_ufunc, deliver, single_out
from .ufuncs import elementwise_ufuncs
from .views import flatten_view, reshape_var

TABLE = RuleTable()

for _ufunc in elementwise_ufuncs():
    TABLE.functions[_ufunc.at] = at_ufunc(combine_at, _ufunc)


@TABLE.function("take")
def take(
    tx: TraceContext, a: object, indices: object, axis: object = None, out: object = None, mode: str = "raise"
) -> ArrayRef:
    x = as_ref(tx, a)
    if isinstance(out, ArrayRef) and out.dtype != x.dtype:
        raise Unsupported("numpy.take into an array of another dtype")
    index = as_index(tx, indices)
    source = flatten_view(tx, x.var) if axis is None else x.var
    along = 0 if axis is None else normalize_axis(axis, x.ndim)
    if source.ndim == 0:
        raise Unsupported("numpy.take of a scalar along an axis")
    (positions,) = index_arrays(tx, [bounded(tx, index.var, source.shape[along], mode)])
    result = emit(tx, "index", source, positions, dims=(along,), position=along)
    if result.ndim > 1 and not result.type.is_contiguous:
        result = emit(tx, "contiguous", result)
    return deliver(tx, result, single_out(out), "unsafe")


@TABLE.function("take_along_axis")
def take_along_axis(tx: TraceContext, arr: object, indices: object, axis: object = -1) -> ArrayRef:
    x = array_operand(arr)
    index = as_index(tx, array_operand(indices))
    if axis is None:
        if index.ndim != 1:
            raise Unsupported("when axis=None, `indices` must have a single dimension.")
        return array_of(take_along(tx, flatten_view(tx, x.var), index.var, 0))
    return array_of(take_along(tx, x.var, index.var, normalize_axis(axis, x.ndim)))


@TABLE.function("put_along_axis")
def put_along_axis(tx: TraceContext, arr: object, indices: object, values: object, axis: object) -> None:
    if not isinstance(arr, ArrayRef) or arr.kind != "array" or axis is None:
        raise Unsupported("numpy.put_along_axis without an axis")
    along = normalize_axis(axis, arr.ndim)
    index = as_index(tx, indices).var
    if index.ndim != arr.ndim:
        raise Unsupported("`indices` and `arr` must have the same number of dimensions")
    rows = []
    for i, size in enumerate(arr.shape):
        if i == along:
            rows.append(index)
            continue
        shape = tuple(size if j == i else 1 for j in range(arr.ndim))
        line = emit(tx, "iota", shape=shape, axis=i, dtype=dtypes.int64, device=arr.var.type.device)
        rows.append(line)
    ready = index_arrays(tx, rows)
    value = to_var(tx, operand(tx, values), arr.dtype)
    spread = broadcast_to(tx, value, ready[0].shape)
    scatter(tx, arr, ready, spread, tuple(range(arr.ndim)), 0)


@TABLE.function("put")
def put(tx: TraceContext, a: object, ind: object, v: object, mode: str = "raise") -> None:
    """For contiguous arrays and values of the shape of the indices, or one value."""
    if not isinstance(a, ArrayRef) or a.kind != "array":
        raise Unsupported("numpy.put into something that is not an array")
    if mode != "raise" or a.ndim != 1:
        raise Unsupported("numpy.put with a mode, or into several dimensions")
    index = as_index(tx, ind).var
    value = to_var(tx, operand(tx, v), a.dtype)
    if value.ndim and not (
        len(value.shape) == index.ndim and all(m == n for m, n in zip(value.shape, index.shape))
    ):
        raise Unsupported("numpy.put with values that are repeated")
    ready = index_arrays(tx, [index])
    scatter(tx, a, ready, broadcast_to(tx, value, ready[0].shape), (0,), 0)


@TABLE.function("ix_")
def ix_(tx: TraceContext, *args: object) -> tuple[ArrayRef, ...]:
    made = []
    for place, sequence in enumerate(args):
        if isinstance(sequence, (list, tuple)) and not sequence:
            sequence = np.zeros(0, np.int64)
        if isinstance(sequence, (list, tuple)) and all(type(item) is bool for item in sequence):
            sequence = np.flatnonzero(sequence)
        ref = as_ref(tx, sequence)
        if ref.ndim != 1:
            raise Unsupported("Cross index must be 1 dimensional")
        if ref.dtype.is_bool:
            raise Unsupported("numpy.ix_ of a boolean array", break_id="data-dependent-shape")
        shape = tuple(ref.shape[0] if i == place else 1 for i in range(len(args)))
        made.append(array_of(reshape_var(tx, ref.var, shape)))
    return tuple(made)


@TABLE.function("unravel_index")
def unravel_index(tx: TraceContext, indices: object, shape: object, order: str = "C") -> tuple[ArrayRef, ...]:
    """Of indices that come from ``argmax`` and ``argmin``, which are in range, and by NumPy of others."""
    ref = as_ref(tx, indices)
    if order != "C" or not _is_position(tx, ref):
        return unravelled(tx, ref, shape, order)
    dims: tuple[Dim, ...] = (
        tuple(integer(d) for d in shape) if isinstance(shape, tuple) else (integer(shape),)
    )
    rest = Traced(tx, value_of(convert(tx, ref.var, dtypes.int64)))
    parts: list[ArrayRef] = []
    for place in reversed(range(len(dims))):
        if place == 0:
            parts.append(rest.ref)
            break
        parts.append((rest % dims[place]).ref)
        rest = rest // dims[place]
    return tuple(parts[::-1])


def _is_position(tx: TraceContext, ref: ArrayRef) -> bool:
    return any(
        node.op in ("argmax", "argmin") and node.outputs[0].name == ref.var.name for node in tx.builder.nodes
    )
