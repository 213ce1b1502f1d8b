"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import is_c_contiguous
from ...symbolic.integers import Dim, product, same
from ..base import ArrayRef, TraceContext
from .index_functions import take
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    as_ref,
    broadcast_to,
    constant,
    emit,
    integer,
    normalize_axis,
    operand,
    to_var,
    view_of,
    write,
)
from .promote import parse_dtype
from .views import flatten_view, reshape_var

TABLE = RuleTable()


@TABLE.function("diagonal")
@TABLE.method("diagonal")
def diagonal(
    tx: TraceContext, a: object, offset: object = 0, axis1: object = 0, axis2: object = 1
) -> ArrayRef:
    """A read-only view."""
    x = as_ref(tx, a)
    first = normalize_axis(axis1, x.ndim)
    second = normalize_axis(axis2, x.ndim)
    shift = int(integer(offset))
    return ArrayRef(emit(tx, "diagonal", x.var, offset=shift, axis1=first, axis2=second), readonly=True)


@TABLE.function("linalg.diagonal")
def linalg_diagonal(tx: TraceContext, x: object, /, *, offset: object = 0) -> ArrayRef:
    return diagonal(tx, x, offset, -2, -1)


@TABLE.function("diag")
def diag(tx: TraceContext, v: object, k: object = 0) -> ArrayRef:
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
def diagflat(tx: TraceContext, v: object, k: object = 0) -> ArrayRef:
    x = as_ref(tx, v)
    return diag(tx, array_of(reshape_var(tx, x.var, (product(x.shape),))), k)


def _triangle(op: str) -> Any:
    def rule(tx: TraceContext, m: object, k: object = 0) -> ArrayRef:
        x = as_ref(tx, m)
        if x.ndim < 1:
            raise Unsupported(f"numpy.{op} of a scalar")
        source = x.var
        if x.ndim == 1:
            source = emit(tx, "contiguous", broadcast_to(tx, source, (x.shape[0], x.shape[0])))
        if not is_c_contiguous(source.shape, source.type.strides):
            return array_of(_masked_triangle(tx, op, source, integer(k)))
        return array_of(emit(tx, op, source, k=integer(k)))

    return rule


def _masked_triangle(tx: TraceContext, op: str, x: Var, k: Dim) -> Var:
    """As NumPy computes it, whose C-ordered mask has a say in the memory order of the result."""
    shape = x.shape[-2:]
    row = emit(tx, "iota", shape=shape, axis=0, dtype=dtypes.int64, device=x.type.device)
    column = emit(tx, "iota", shape=shape, axis=1, dtype=dtypes.int64, device=x.type.device)
    offset = broadcast_to(tx, to_var(tx, k, dtypes.int64), shape)
    compare = "less_equal" if op == "tril" else "greater_equal"
    mask = emit(tx, compare, emit(tx, "subtract", column, row), offset)
    zero = broadcast_to(tx, constant(tx, 0, x.dtype), x.shape)
    return emit(tx, "where", broadcast_to(tx, mask, x.shape), x, zero)


TABLE.function("tril")(_triangle("tril"))
TABLE.function("triu")(_triangle("triu"))


@TABLE.function("tri")
def tri(
    tx: TraceContext,
    N: object,
    M: object = None,
    k: object = 0,
    dtype: object = float,
    *,
    like: object = None,
) -> ArrayRef:
    rows = integer(N, "a size")
    columns = rows if M is None else integer(M, "a size")
    ones = emit(tx, "contiguous", broadcast_to(tx, constant(tx, 1, parse_dtype(dtype)), (rows, columns)))
    return array_of(emit(tx, "tril", ones, k=integer(k)))


def _repeated(tx: TraceContext, values: Var, size: Dim) -> Var:
    """``values`` again and again, as many as ``size``."""
    (count,) = values.shape
    if same(count, size):
        return values
    if not isinstance(count, int) or not isinstance(size, int) or not count:
        raise Unsupported("numpy.fill_diagonal with values of another number, which is symbolic or zero")
    return take(tx, array_of(values), np.arange(size) % count).var


@TABLE.function("fill_diagonal")
def fill_diagonal(tx: TraceContext, a: object, val: object, wrap: bool = False) -> None:
    """In place, for two dimensions; several values are repeated, or cut off."""
    if not isinstance(a, ArrayRef) or a.ndim != 2:
        raise Unsupported("numpy.fill_diagonal of an array that is not two-dimensional")
    if wrap and a.shape[0] > a.shape[1]:
        raise Unsupported("numpy.fill_diagonal(wrap=True) of a tall matrix")
    value = to_var(tx, operand(tx, val), a.dtype)
    view = emit(tx, "diagonal", a.var, offset=0, axis1=0, axis2=1)
    if value.ndim:
        value = _repeated(tx, flatten_view(tx, value), view.shape[0])
    write(tx, view_of(a, view), broadcast_to(tx, value, view.shape))
