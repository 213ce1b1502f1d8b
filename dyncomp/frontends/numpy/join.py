"""Joining and splitting arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import multi_sorted_axes
from ...prims.shape import inverse
from ...symbolic.integers import Dim, product
from ..base import ArrayRef, TraceContext
from . import promote
from .indexing import getitem
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    array_operand,
    as_ref,
    convert,
    emit,
    integer,
    normalize_axis,
    value_of,
    view_of,
)
from .promote import parse_dtype
from .shape import atleast_1d, atleast_2d, atleast_3d
from .ufunc_methods import deliver, single_out
from .views import flatten_view, reshape_var, slice_axis, transpose_var

TABLE = RuleTable()

UNPACK_LIMIT = 64
_MOST_PARTS = 1024


def sequence(tx: TraceContext, arrays: object) -> list[ArrayRef]:
    """The arrays of a sequence argument; an array is the sequence of its rows."""
    if isinstance(arrays, ArrayRef):
        if arrays.ndim == 0 or not arrays.shape[0] <= UNPACK_LIMIT:
            raise Unsupported("an array as the sequence of arrays to join")
        return [getitem(tx, arrays, i) for i in range(int(arrays.shape[0]))]
    if not isinstance(arrays, (list, tuple)):
        raise Unsupported(f"a {type(arrays).__name__} as the sequence of arrays to join")
    if not arrays:
        raise Unsupported("need at least one array to join")
    return [as_ref(tx, a) for a in arrays]


def join(
    tx: TraceContext, refs: Sequence[ArrayRef], axis: int, out: object, dtype: object, casting: str
) -> ArrayRef:
    """Concatenation of arrays of one ndim along a normalized axis, in their common dtype."""
    if dtype is not None:
        wanted = parse_dtype(dtype)
    else:
        wanted = promote.from_np(np.result_type(*(r.dtype.numpy for r in refs)))
    if any(not promote.can_cast(r.dtype, wanted, casting) for r in refs):
        raise Unsupported(f"cannot cast to {wanted} according to the rule {casting!r}")
    target = single_out(out)
    if target is not None and dtype is not None:
        raise Unsupported("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    result = _joined(tx, [r.var for r in refs], axis, wanted)
    return array_of(result) if target is None else deliver(tx, result, target, casting)


def _joined(tx: TraceContext, parts: Sequence[Var], axis: int, dtype: DType) -> Var:
    """The parts converted and joined, in the memory order of the parts as they are: those that conversion
    makes may have others."""
    converted = [convert(tx, part, dtype) for part in parts]
    order = multi_sorted_axes([part.type for part in parts])
    if order == multi_sorted_axes([part.type for part in converted]):
        return emit(tx, "concatenate", *converted, axis=axis)
    turned = [emit(tx, "contiguous", transpose_var(tx, part, order)) for part in converted]
    joined = emit(tx, "concatenate", *turned, axis=order.index(axis))
    return transpose_var(tx, joined, inverse(order))


@TABLE.function("concatenate", "concat")
def concatenate(
    tx: TraceContext,
    arrays: object,
    /,
    axis: object = 0,
    out: object = None,
    *,
    dtype: object = None,
    casting: str = "same_kind",
) -> ArrayRef:
    refs = sequence(tx, arrays)
    if any(r.ndim == 0 for r in refs):
        raise Unsupported("zero-dimensional arrays cannot be concatenated")
    if axis is None:
        refs = [array_of(flatten_view(tx, r.var)) for r in refs]
        axis = 0
    if any(r.ndim != refs[0].ndim for r in refs):
        raise Unsupported("all the input array dimensions must match")
    return join(tx, refs, normalize_axis(axis, refs[0].ndim), out, dtype, casting)


@TABLE.function("stack")
def stack(
    tx: TraceContext,
    arrays: object,
    axis: object = 0,
    out: object = None,
    *,
    dtype: object = None,
    casting: str = "same_kind",
) -> ArrayRef:
    refs = sequence(tx, arrays)
    first = refs[0].shape
    if any(r.ndim != len(first) or not all(m == n for m, n in zip(r.shape, first)) for r in refs):
        raise Unsupported("all input arrays must have the same shape")
    along = normalize_axis(axis, len(first) + 1)
    grown = []
    for r in refs:
        shape = (*r.shape[:along], 1, *r.shape[along:])
        grown.append(array_of(emit(tx, "reshape", r.var, shape=shape)))
    return join(tx, grown, along, out, dtype, casting)


def _grow(tx: TraceContext, arrays: Any, rule: Callable[..., Any]) -> list[ArrayRef]:
    return [rule(tx, r) for r in sequence(tx, arrays)]


@TABLE.function("vstack")
def vstack(tx: TraceContext, tup: object, *, dtype: object = None, casting: str = "same_kind") -> ArrayRef:
    return concatenate(tx, _grow(tx, tup, atleast_2d), 0, dtype=dtype, casting=casting)


@TABLE.function("hstack")
def hstack(tx: TraceContext, tup: object, *, dtype: object = None, casting: str = "same_kind") -> ArrayRef:
    refs = _grow(tx, tup, atleast_1d)
    return concatenate(tx, refs, 0 if refs[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@TABLE.function("dstack")
def dstack(tx: TraceContext, tup: object) -> ArrayRef:
    return concatenate(tx, _grow(tx, tup, atleast_3d), 2)


@TABLE.function("column_stack")
def column_stack(tx: TraceContext, tup: object) -> ArrayRef:
    columns = []
    for r in sequence(tx, tup):
        shape = (product(r.shape), 1) if r.ndim < 2 else r.shape
        columns.append(array_of(emit(tx, "reshape", r.var, shape=shape)))
    return concatenate(tx, columns, 1)


@TABLE.function("append")
def append(tx: TraceContext, arr: object, values: object, axis: object = None) -> ArrayRef:
    refs = [as_ref(tx, arr), as_ref(tx, values)]
    if axis is None:
        refs = [array_of(flatten_view(tx, r.var)) for r in refs]
        return concatenate(tx, refs, 0)
    return concatenate(tx, refs, axis)


@TABLE.function("block")
def block(tx: TraceContext, arrays: object) -> ArrayRef:
    depth = _depth(arrays)
    if not depth:
        return array_of(emit(tx, "contiguous", as_ref(tx, arrays).var))
    return _block(tx, arrays, depth, depth)


def _depth(arrays: object) -> int:
    if isinstance(arrays, tuple):
        raise Unsupported("arrays is a tuple. Only lists can be used to arrange blocks")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise Unsupported("List at arrays cannot be empty")
    depths = {_depth(a) for a in arrays}
    if len(depths) != 1:
        raise Unsupported("List depths are mismatched")
    return depths.pop() + 1


def _block(tx: TraceContext, arrays: Any, depth: int, left: int) -> ArrayRef:
    if left == 0:
        r = as_ref(tx, arrays)
        if r.ndim > depth and depth > 0:
            raise Unsupported("numpy.block of arrays with more dimensions than the nesting")
        shape = (1,) * (depth - r.ndim) + r.shape
        return array_of(reshape_var(tx, r.var, shape)) if r.ndim < depth else r
    parts = [_block(tx, a, depth, left - 1) for a in arrays]
    return concatenate(tx, parts, -left)


# -- splitting --------------------------------------------------------------------------------
def _sections(size: Dim, indices_or_sections: object, equal: bool) -> list[tuple[Dim, Dim]]:
    """(start, length) of every part."""
    if isinstance(indices_or_sections, (list, tuple, np.ndarray)):
        return _at_positions(size, [integer(i) for i in indices_or_sections])
    count = int(integer(indices_or_sections))
    if count <= 0:
        raise Unsupported("number sections must be larger than 0.")
    if equal:
        if not size % count == 0:
            raise Unsupported("array split does not result in an equal division")
        each = size // count
        return [(each * i, each) for i in range(count)]
    if count > _MOST_PARTS:
        raise Unsupported(f"a split into {count} parts")
    # the first ``size % count`` parts are longer by one
    lengths = [(size + (count - 1 - i)) // count for i in range(count)]
    return [(sum(lengths[:i], 0), length) for i, length in enumerate(lengths)]


def _at_positions(size: Dim, positions: list[Dim]) -> list[tuple[Dim, Dim]]:
    bounds = [0, *positions, size]
    parts = []
    for begin, end in zip(bounds, bounds[1:]):
        low = _bounded(begin, size)
        high = _bounded(end, size)
        parts.append((low, high - low if high > low else 0))
    return parts


def _bounded(bound: Dim, size: Dim) -> Dim:
    """A slice bound brought into ``0..size``."""
    if bound < 0:
        bound = bound + size
        return 0 if bound < 0 else bound
    return size if bound > size else bound


def _split(
    tx: TraceContext, ary: object, indices_or_sections: object, axis: object, equal: bool
) -> list[ArrayRef]:
    x = as_ref(tx, ary)
    along = normalize_axis(axis, x.ndim)
    parts = _sections(x.shape[along], indices_or_sections, equal)
    return [view_of(x, slice_axis(tx, x.var, along, start, size)) for start, size in parts]


@TABLE.function("split")
def split(tx: TraceContext, ary: object, indices_or_sections: object, axis: object = 0) -> list[ArrayRef]:
    return _split(tx, ary, indices_or_sections, axis, True)


@TABLE.function("array_split")
def array_split(
    tx: TraceContext, ary: object, indices_or_sections: object, axis: object = 0
) -> list[ArrayRef]:
    return _split(tx, ary, indices_or_sections, axis, False)


@TABLE.function("hsplit")
def hsplit(tx: TraceContext, ary: object, indices_or_sections: object) -> list[ArrayRef]:
    x = as_ref(tx, ary)
    return _split(tx, x, indices_or_sections, 1 if x.ndim > 1 else 0, True)


@TABLE.function("vsplit")
def vsplit(tx: TraceContext, ary: object, indices_or_sections: object) -> list[ArrayRef]:
    x = as_ref(tx, ary)
    if x.ndim < 2:
        raise Unsupported("vsplit only works on arrays of 2 or more dimensions")
    return _split(tx, x, indices_or_sections, 0, True)


@TABLE.function("dsplit")
def dsplit(tx: TraceContext, ary: object, indices_or_sections: object) -> list[ArrayRef]:
    x = as_ref(tx, ary)
    if x.ndim < 3:
        raise Unsupported("dsplit only works on arrays of 3 or more dimensions")
    return _split(tx, x, indices_or_sections, 2, True)


@TABLE.function("unstack")
def unstack(tx: TraceContext, x: object, /, *, axis: object = 0) -> tuple[ArrayRef, ...]:
    ref = array_operand(x)
    along = normalize_axis(axis, ref.ndim)
    if not ref.shape[along] <= UNPACK_LIMIT:
        raise Unsupported("numpy.unstack of many parts")
    rest = tuple(d for i, d in enumerate(ref.shape) if i != along)
    parts: list[Var] = [slice_axis(tx, ref.var, along, i, 1) for i in range(int(ref.shape[along]))]
    found = [emit(tx, "reshape", part, shape=rest) for part in parts]
    return tuple(view_of(ref, part) if rest else value_of(emit(tx, "copy", part)) for part in found)
