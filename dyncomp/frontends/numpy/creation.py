"""Fresh arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import has_c_order, has_f_order, is_fortran, sorted_axes
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext
from . import promote
from .numpy_rules import RuleTable
from .operands import (
    IN_MEMORY,
    array_of,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    constant,
    convert,
    converted,
    emit,
    exact_value,
    fill,
    from_nested,
    integer,
    is_scalar_constant,
    memory_order,
    only_defaults,
    operand,
    to_var,
    told_order,
    value_of,
)
from .promote import parse_dtype
from .shape import parse_shape, reshape_var
from .traced import Traced
from .views import reversed_axes, transpose_var

TABLE = RuleTable()


def in_memory_order(tx: TraceContext, shape: Sequence[Dim], order: str, make: Callable[..., Any]) -> Var:
    """A fresh array made by ``make(shape)`` in C order, laid out as ``order`` says."""
    if memory_order(order) != "F":
        return make(tuple(shape))
    return reversed_axes(tx, make(tuple(shape)[::-1]))


def _filled(value: object) -> Any:
    def rule(
        tx: TraceContext,
        shape: object,
        dtype: object = None,
        order: str = "C",
        *,
        device: object = None,
        like: object = None,
    ) -> ArrayRef:
        only_defaults(device=device, like=like)
        wanted = parse_dtype(dtype)

        def make(dims: tuple[Dim, ...]) -> Var:
            if value is None:
                return emit(tx, "empty", shape=dims, dtype=wanted, device=CPU)
            return fill(tx, dims, exact_value(value, wanted), wanted)

        return array_of(in_memory_order(tx, _sizes(shape), "C" if order is None else order, make))

    return rule


def _sizes(shape: object) -> tuple[Dim, ...]:
    dims = parse_shape(shape)
    if any(d < 0 for d in dims):
        raise Unsupported("negative dimensions are not allowed")
    return dims


TABLE.function("zeros")(_filled(0))
TABLE.function("ones")(_filled(1))
TABLE.function("empty")(_filled(None))


@TABLE.function("full")
def full(
    tx: TraceContext,
    shape: object,
    fill_value: object,
    dtype: object = None,
    order: str = "C",
    *,
    device: object = None,
    like: object = None,
) -> ArrayRef:
    only_defaults(device=device, like=like)
    dims = _sizes(shape)
    return _full(tx, dims, fill_value, None if dtype is None else parse_dtype(dtype), order)


def _full(
    tx: TraceContext, dims: tuple[Dim, ...], value: object, dtype: DType | None, order: str
) -> ArrayRef:
    if is_scalar_constant(value):
        wanted = dtype or promote.from_np(promote.default_dtype(promote.operand_type(value)))
        exact = exact_value(value, wanted)
        return array_of(in_memory_order(tx, dims, order, lambda shape: fill(tx, shape, exact, wanted)))
    ref = as_ref(tx, value)
    var = convert(tx, ref.var, dtype or ref.dtype)

    def make(shape: tuple[Dim, ...]) -> Var:
        spread = broadcast_to(tx, var, dims)
        if memory_order(order) == "F":
            spread = reversed_axes(tx, spread)
        return emit(tx, "contiguous", spread)

    return array_of(in_memory_order(tx, dims, order, make))


def _like_rule(value: object) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        dtype: object = None,
        order: str = "K",
        subok: bool = True,
        shape: object = None,
        *,
        device: object = None,
    ) -> ArrayRef:
        return _like(tx, a, value, dtype, order, shape, device)

    return rule


def _like(
    tx: TraceContext, a: object, value: object, dtype: object, order: str, shape: object, device: object
) -> ArrayRef:
    only_defaults(device=device)
    x = as_ref(tx, a)
    wanted = x.dtype if dtype is None else parse_dtype(dtype)
    dims = x.shape if shape is None else _sizes(shape)
    perm = _like_order(x, order, len(dims))

    def make(permuted: tuple[Dim, ...]) -> Var:
        if value is None:
            return emit(tx, "empty", shape=permuted, dtype=wanted, device=CPU)
        if is_scalar_constant(value):
            return fill(tx, permuted, exact_value(value, wanted), wanted)
        if tuple(perm) != tuple(range(len(dims))):
            raise Unsupported("full_like with an array value and an order that is not C")
        return emit(tx, "contiguous", broadcast_to(tx, to_var(tx, operand(tx, value), wanted), permuted))

    fresh = make(tuple(dims[axis] for axis in perm))
    if list(perm) == list(range(len(dims))):
        return array_of(fresh)
    return array_of(transpose_var(tx, fresh, np.argsort(perm).tolist()))


def _like_order(x: ArrayRef, order: str, ndim: int) -> list[int]:
    """Axes from outermost to innermost of a new array like ``x``."""
    natural = list(range(ndim))
    strides = x.var.type.strides
    order = memory_order(order)
    if order == "K" and ndim == x.ndim:
        return sorted_axes(x.shape, strides)
    if order == "F" or (order == "A" and is_fortran(x.shape, strides)):
        return natural[::-1]
    return natural


TABLE.function("zeros_like")(_like_rule(0))
TABLE.function("ones_like")(_like_rule(1))
TABLE.function("empty_like")(_like_rule(None))


@TABLE.function("full_like")
def full_like(
    tx: TraceContext,
    a: object,
    fill_value: object,
    dtype: object = None,
    order: str = "K",
    subok: bool = True,
    shape: object = None,
    *,
    device: object = None,
) -> ArrayRef:
    if fill_value is None:
        raise Unsupported("numpy.full_like of None")
    return _like(tx, a, fill_value, dtype, order, shape, device)


@TABLE.function("eye")
def eye(
    tx: TraceContext,
    N: object,
    M: object = None,
    k: object = 0,
    dtype: object = float,
    order: str = "C",
    *,
    device: object = None,
    like: object = None,
) -> ArrayRef:
    only_defaults(device=device, like=like)
    rows = integer(N, "a size")
    shape = (rows, rows if M is None else integer(M, "a size"))
    row = emit(tx, "iota", shape=shape, axis=0, dtype=dtypes.int64, device=CPU)
    column = emit(tx, "iota", shape=shape, axis=1, dtype=dtypes.int64, device=CPU)
    shift = broadcast_to(tx, to_var(tx, integer(k), dtypes.int64), shape)
    on_diagonal = emit(tx, "equal", emit(tx, "subtract", column, row), shift)
    result = convert(tx, on_diagonal, parse_dtype(dtype))
    if memory_order(order) == "F":
        result = reversed_axes(tx, emit(tx, "contiguous", reversed_axes(tx, result)))
    return array_of(result)


@TABLE.function("identity")
def identity(tx: TraceContext, n: object, dtype: object = None, *, like: object = None) -> ArrayRef:
    only_defaults(like=like)
    return eye(tx, n, dtype=dtype)


# -- from other arrays ------------------------------------------------------------------------
@TABLE.function("array")
def array(
    tx: TraceContext,
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: object = None,
) -> ArrayRef:
    only_defaults(like=like)
    made = as_array(tx, object, dtype, order or "K", _must_copy(copy))
    _refuse_copy(object, made, copy)
    if made.ndim < ndmin:
        shape = (1,) * (ndmin - made.ndim) + made.shape
        made = array_of(emit(tx, "reshape", made.var, shape=shape))
    return made


def _must_copy(copy: object) -> bool:
    """A ``copy=`` argument: ``True``, ``None`` (if needed), or a member of NumPy's ``_CopyMode``."""
    mode = getattr(copy, "value", copy)
    return bool(mode) and mode != 2


def _refuse_copy(given: object, made: ArrayRef, copy: object) -> None:
    """``copy=False`` raises where the result cannot be the array itself."""
    mode = getattr(copy, "value", copy)
    if mode is not None and not mode and made is not given:
        raise Unsupported("copy=False raises where a copy is needed")


def as_array(tx: TraceContext, value: object, dtype: object, order: str, copy: bool) -> ArrayRef:
    """``np.asarray`` or ``np.array``: the same object where nothing changes and ``copy`` is false."""
    wanted = None if dtype is None else parse_dtype(dtype)
    if isinstance(value, (list, tuple)):
        return _ordered(tx, from_nested(tx, value, wanted), order)
    if is_scalar_constant(value) and wanted is not None:
        return array_of(constant(tx, value, wanted))
    ref = as_ref(tx, value)
    if isinstance(value, np.ndarray):
        return _ordered(tx, convert(tx, ref.var, wanted or ref.dtype), order)
    order = told_order(ref.var, order)
    var = converted(tx, ref.var, wanted or ref.dtype)
    if var is ref.var and ref.kind == "array" and not copy:
        if ref.part is not None and memory_order(order) in ("C", "F"):
            raise Unsupported(IN_MEMORY)
        ordered = _ordered(tx, var, order)
        return ref if ordered.var is var else ordered
    if var is ref.var:
        var = emit(tx, "copy", var)
    return _ordered(tx, var, order)


def _ordered(tx: TraceContext, var: Var, order: str) -> ArrayRef:
    strides = var.type.strides
    order = memory_order(order)
    if order == "C" and not has_c_order(var.shape, strides):
        return array_of(emit(tx, "contiguous", var))
    if order == "F" and not has_f_order(var.shape, strides):
        return array_of(reversed_axes(tx, emit(tx, "contiguous", reversed_axes(tx, var))))
    return array_of(var)


@TABLE.function("asarray", "asanyarray")
def asarray(
    tx: TraceContext,
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: object = None,
    copy: Any = None,
    like: object = None,
) -> ArrayRef:
    only_defaults(device=device, like=like)
    made = as_array(tx, a, dtype, order or "K", _must_copy(copy))
    _refuse_copy(a, made, copy)
    return made


@TABLE.function("ascontiguousarray")
def ascontiguousarray(tx: TraceContext, a: object, dtype: object = None, *, like: object = None) -> ArrayRef:
    only_defaults(like=like)
    return _at_least_1d(tx, as_array(tx, a, dtype, "C", False))


@TABLE.function("asfortranarray")
def asfortranarray(tx: TraceContext, a: object, dtype: object = None, *, like: object = None) -> ArrayRef:
    only_defaults(like=like)
    return _at_least_1d(tx, as_array(tx, a, dtype, "F", False))


def _at_least_1d(tx: TraceContext, ref: ArrayRef) -> ArrayRef:
    return ref if ref.ndim else array_of(emit(tx, "reshape", ref.var, shape=(1,)))


@TABLE.function("copy")
def copy(tx: TraceContext, a: object, order: str = "K", subok: bool = False) -> ArrayRef:
    return as_array(tx, a, None, order, True)


@TABLE.method("copy")
def copy_method(tx: TraceContext, x: ArrayRef, order: str = "C") -> ArrayRef:
    """``x.copy()``: C order unless asked otherwise; scalars stay scalars."""
    if x.kind != "array":
        return value_of(emit(tx, "copy", x.var))
    return as_array(tx, x, None, order, True)


@TABLE.method("__copy__")
def shallow_copy_method(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """As ``copy.copy`` asks for: with the axes in memory in the array's own order."""
    return copy_method(tx, x, "K")


@TABLE.method("__deepcopy__")
def deepcopy_method(tx: TraceContext, x: ArrayRef, memo: object = None) -> ArrayRef:
    return copy_method(tx, x, "K")


# -- grids ------------------------------------------------------------------------------------
@TABLE.function("meshgrid")
def meshgrid(
    tx: TraceContext, *xi: object, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[ArrayRef, ...]:
    refs = [as_ref(tx, x) for x in xi]
    ndim = len(refs)
    if indexing not in ("xy", "ij"):
        raise Unsupported("Valid values for `indexing` are 'xy' and 'ij'.")
    places = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        places[:2] = [1, 0]
    lines = []
    for place, ref in zip(places, refs):
        flat = reshape_var(tx, ref.var, (ref.var.type.size,))
        shape = tuple(flat.shape[0] if i == place else 1 for i in range(ndim))
        lines.append(emit(tx, "reshape", flat, shape=shape))
    if sparse:
        return tuple(array_of(emit(tx, "contiguous", x) if copy else x) for x in lines)
    full_shape = broadcast_shapes(*(x.shape for x in lines))
    grids = [broadcast_to(tx, x, full_shape) for x in lines]
    if not copy:
        raise Unsupported("grids that are views, which NumPy lets be written")
    return tuple(array_of(emit(tx, "contiguous", g)) for g in grids)


@TABLE.function("indices")
def indices(tx: TraceContext, dimensions: Any, dtype: object = int, sparse: bool = False) -> Any:
    shape = _sizes(tuple(dimensions))
    wanted = parse_dtype(dtype)
    if sparse:
        lines = []
        for axis, size in enumerate(shape):
            line = tuple(size if i == axis else 1 for i in range(len(shape)))
            lines.append(array_of(emit(tx, "iota", shape=line, axis=axis, dtype=wanted, device=CPU)))
        return tuple(lines)
    if not shape:
        raise Unsupported("numpy.indices of no dimensions")
    rows = []
    for axis in range(len(shape)):
        grid = emit(tx, "iota", shape=shape, axis=axis, dtype=wanted, device=CPU)
        rows.append(emit(tx, "reshape", grid, shape=(1, *shape)))
    return array_of(emit(tx, "concatenate", *rows, axis=0))


@TABLE.function("vander")
def vander(tx: TraceContext, x: object, N: object = None, increasing: bool = False) -> ArrayRef:
    ref = as_ref(tx, x)
    count = int(ref.shape[0] if N is None else integer(N))
    if ref.ndim != 1 or count < 1 or count > 64:
        raise Unsupported("numpy.vander of this shape")
    wanted = promote.from_np(np.promote_types(ref.dtype.numpy, np.int64))
    value = Traced(tx, value_of(convert(tx, ref.var, wanted)))
    column = Traced(tx, array_of(broadcast_to(tx, constant(tx, 1, wanted), ref.shape)))
    columns = [column]
    for _ in range(count - 1):
        columns.append(columns[-1] * value)
    ordered = columns if increasing else columns[::-1]
    parts = [emit(tx, "reshape", emit(tx, "contiguous", c.var), shape=(*ref.shape, 1)) for c in ordered]
    return array_of(emit(tx, "concatenate", *parts, axis=1))
