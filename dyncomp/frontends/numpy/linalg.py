"""Products of matrices and vectors, norms, and LAPACK's routines."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import has_c_order
from ..base import ArrayRef, TraceContext
from . import promote
from .diagonals import diagonal
from .numpy_rules import RuleTable
from .operands import (
    array_of,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    convert,
    emit,
    integer,
    normalize_axis,
    value_of,
)
from .reductions import max_, min_, sum_
from .traced import Traced
from .ufunc_methods import deliver, outer_ufunc, single_out
from .ufuncs import call_ufunc
from .views import flatten_view, in_memory_of_products, reshape_var

TABLE = RuleTable()


def common_dtype(*refs: ArrayRef) -> DType:
    """The dtype of a product of arrays."""
    return promote.from_np(np.result_type(*(r.dtype.numpy for r in refs)))


def contract(
    tx: TraceContext,
    x: Var,
    y: Var,
    axes: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> Var:
    """``dot_general``; the sizes of contracted and batch dimensions must agree."""
    if x.dtype.is_inexact:
        tx.assume("numpy-errstate")
    for i, j in (*zip(*axes), *zip(*batch)):
        if not x.shape[i] == y.shape[j]:
            raise Unsupported(f"shapes {x.shape} and {y.shape} do not fit a product")
    return emit(tx, "dot_general", x, y, contract=axes, batch=batch)


# -- products ---------------------------------------------------------------------------------
@TABLE.function("matmul", "linalg.matmul")
@TABLE.operator("matmul")
@TABLE.method("__matmul__")
def matmul(
    tx: TraceContext,
    x1: object,
    x2: object,
    /,
    out: object = None,
    *,
    casting: str = "same_kind",
    dtype: object = None,
    **kwargs: object,
) -> ArrayRef:
    """``np.matmul`` and ``@``."""
    if kwargs:
        raise Unsupported(f"numpy.matmul with {sorted(kwargs)}")
    if isinstance(x1, (int, float, complex)) or isinstance(x2, (int, float, complex)):
        raise Unsupported("matmul: Input operand does not have enough dimensions")
    x, y = as_ref(tx, x1), as_ref(tx, x2)
    wanted = common_dtype(x, y) if dtype is None else promote.parse_dtype(dtype)
    if not x.ndim or not y.ndim:
        raise Unsupported("matmul: Input operand does not have enough dimensions")
    result = _matmul(tx, convert(tx, x.var, wanted), convert(tx, y.var, wanted))
    if x.ndim > 1 and y.ndim > 1:
        result = in_memory_of_products(tx, result, (x.var, y.var))
    target = single_out(out)
    return deliver(tx, result, target, casting)


def _matmul(tx: TraceContext, x: Var, y: Var) -> Var:
    if y.ndim <= 2:
        return contract(tx, x, y, ((x.ndim - 1,), (0,)))
    if x.ndim == 1:
        return contract(tx, y, x, ((y.ndim - 2,), (0,)))
    outer = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x = broadcast_to(tx, x, (*outer, *x.shape[-2:]))
    y = broadcast_to(tx, y, (*outer, *y.shape[-2:]))
    batch = tuple(range(len(outer)))
    return contract(tx, x, y, ((x.ndim - 1,), (y.ndim - 2,)), (batch, batch))


@TABLE.method("__rmatmul__")
def rmatmul(tx: TraceContext, x: ArrayRef, other: object) -> ArrayRef:
    return matmul(tx, other, x)


@TABLE.operator("imatmul")
@TABLE.method("__imatmul__")
def imatmul(tx: TraceContext, x: ArrayRef, other: object) -> ArrayRef:
    return matmul(tx, x, other, out=x)


@TABLE.function("dot")
def dot(tx: TraceContext, a: object, b: object, out: object = None) -> ArrayRef:
    x, y = as_ref(tx, a), as_ref(tx, b)
    dtype = common_dtype(x, y)
    if not x.ndim or not y.ndim:
        scaled = _scaled(tx, convert(tx, x.var, dtype), convert(tx, y.var, dtype))
        return deliver(tx, scaled, single_out(out))
    place = 0 if y.ndim == 1 else y.ndim - 2
    result = contract(tx, convert(tx, x.var, dtype), convert(tx, y.var, dtype), ((x.ndim - 1,), (place,)))
    target = single_out(out)
    if target is not None and target.dtype != dtype:
        raise Unsupported("output array is not acceptable (must have the right datatype)")
    return deliver(tx, result, target)


_BLAS_DTYPES = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def _scaled(tx: TraceContext, x: Var, y: Var) -> Var:
    """A product with a number as ``dot`` computes it: up to two dimensions by the BLAS, in C order and added
    to zero, so that no result is a negative zero; else by the ufunc."""
    product = call_ufunc(tx, np.multiply, array_of(x), array_of(y)).var
    if product.dtype not in _BLAS_DTYPES or product.ndim > 2:
        return product
    return emit(tx, "contiguous", call_ufunc(tx, np.add, array_of(product), 0).var)


@TABLE.function("vdot")
def vdot(tx: TraceContext, a: object, b: object, /) -> ArrayRef:
    x, y = as_ref(tx, a), as_ref(tx, b)
    dtype = common_dtype(x, y)
    first = flatten_view(tx, convert(tx, x.var, dtype))
    second = flatten_view(tx, convert(tx, y.var, dtype))
    if dtype.is_complex:
        first = emit(tx, "conj", first)
    return value_of(contract(tx, first, second, ((0,), (0,))))


@TABLE.function("vecdot", "linalg.vecdot")
def vecdot(tx: TraceContext, x1: object, x2: object, /, out: object = None, *, axis: object = -1) -> ArrayRef:
    x, y = as_ref(tx, x1), as_ref(tx, x2)
    if axis != -1 or out is not None or not x.ndim or not y.ndim:
        raise Unsupported("numpy.vecdot with axis= or out=")
    if x.dtype.is_complex:
        x = value_of(emit(tx, "conj", x.var))
    dtype = common_dtype(x, y)
    if not x.shape[-1] == y.shape[-1]:
        raise Unsupported("vecdot: mismatch in its core dimension")
    return sum_(tx, call_ufunc(tx, np.multiply, x, y), -1, dtype=dtype.numpy)


@TABLE.function("inner")
def inner(tx: TraceContext, a: object, b: object, /) -> ArrayRef:
    x, y = as_ref(tx, a), as_ref(tx, b)
    if not x.ndim or not y.ndim:
        return dot(tx, x, y)
    dtype = common_dtype(x, y)
    axes = ((x.ndim - 1,), (y.ndim - 1,))
    return value_of(contract(tx, convert(tx, x.var, dtype), convert(tx, y.var, dtype), axes))


@TABLE.function("outer")
def outer(tx: TraceContext, a: object, b: object, out: object = None) -> ArrayRef:
    x = array_of(flatten_view(tx, as_ref(tx, a).var))
    y = array_of(flatten_view(tx, as_ref(tx, b).var))
    return outer_ufunc(tx, np.multiply, x, y, out=out)


@TABLE.function("linalg.outer")
def linalg_outer(tx: TraceContext, x1: object, x2: object, /) -> ArrayRef:
    x, y = as_ref(tx, x1), as_ref(tx, x2)
    if x.ndim != 1 or y.ndim != 1:
        raise Unsupported("Input arrays must be one-dimensional")
    return outer(tx, x, y)


@TABLE.function("tensordot", "linalg.tensordot")
def tensordot(tx: TraceContext, a: object, b: object, axes: object = 2) -> ArrayRef:
    x, y = as_ref(tx, a), as_ref(tx, b)
    if isinstance(axes, (tuple, list)):
        first, second = (_axis_list(part) for part in axes)
    else:
        count = int(integer(axes))
        first, second = list(range(-count, 0)), list(range(count))
    if len(first) != len(second):
        raise Unsupported("shape-mismatch for sum")
    pairs = (
        tuple(normalize_axis(i, x.ndim) for i in first),
        tuple(normalize_axis(i, y.ndim) for i in second),
    )
    dtype = common_dtype(x, y)
    return array_of(contract(tx, convert(tx, x.var, dtype), convert(tx, y.var, dtype), pairs))


def _axis_list(part: object) -> list[Any]:
    return list(part) if isinstance(part, (tuple, list)) else [part]


@TABLE.function("kron")
def kron(tx: TraceContext, a: object, b: object) -> ArrayRef:
    x, y = as_ref(tx, a), as_ref(tx, b)
    if not x.ndim or not y.ndim:
        return call_ufunc(tx, np.multiply, x, y)
    if not all(has_c_order(v.shape, v.strides) for v in (x, y)):
        raise Unsupported("numpy.kron of arrays in other than C order: memory as its steps make it")
    ndim = max(x.ndim, y.ndim)
    first = (1,) * (ndim - x.ndim) + x.shape
    second = (1,) * (ndim - y.ndim) + y.shape
    left = reshape_var(tx, x.var, [d for pair in zip(first, (1,) * ndim) for d in pair])
    right = reshape_var(tx, y.var, [d for pair in zip((1,) * ndim, second) for d in pair])
    spread = call_ufunc(tx, np.multiply, array_of(left), array_of(right))
    shape = tuple(m * n for m, n in zip(first, second))
    return array_of(reshape_var(tx, emit(tx, "contiguous", spread.var), shape))


@TABLE.function("cross")
def cross(
    tx: TraceContext,
    a: object,
    b: object,
    axisa: object = -1,
    axisb: object = -1,
    axisc: object = -1,
    axis: object = None,
) -> ArrayRef:
    """Of vectors of three elements along the last axis."""
    if any(i != -1 for i in (axisa, axisb, axisc)) or axis not in (None, -1):
        raise Unsupported("numpy.cross along another axis than the last")
    x, y = Traced(tx, a), Traced(tx, b)
    if not x.ndim or not y.ndim or not (x.shape[-1] == 3 and y.shape[-1] == 3):
        raise Unsupported("numpy.cross of vectors that do not have three elements")
    x0, x1, x2 = (x[..., i] for i in range(3))
    y0, y1, y2 = (y[..., i] for i in range(3))
    parts = (x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0)
    columns = [emit(tx, "reshape", p.var, shape=(*p.shape, 1)) for p in parts]
    return array_of(emit(tx, "contiguous", emit(tx, "concatenate", *columns, axis=parts[0].ndim)))


@TABLE.function("linalg.cross")
def linalg_cross(tx: TraceContext, x1: object, x2: object, /, *, axis: object = -1) -> ArrayRef:
    return cross(tx, x1, x2, axis=integer(axis, "an axis"))


@TABLE.function("trace")
def trace(
    tx: TraceContext,
    a: object,
    offset: object = 0,
    axis1: object = 0,
    axis2: object = 1,
    dtype: object = None,
    out: object = None,
) -> ArrayRef:
    return sum_(tx, diagonal(tx, a, offset, axis1, axis2), -1, dtype, out)


@TABLE.function("linalg.trace")
def linalg_trace(tx: TraceContext, x: object, /, *, offset: object = 0, dtype: object = None) -> ArrayRef:
    return trace(tx, x, offset, -2, -1, dtype)


# -- norms ------------------------------------------------------------------------------------
def _floating(tx: TraceContext, x: ArrayRef) -> Traced:
    dtype = x.dtype if x.dtype.is_inexact else dtypes.float64
    return Traced(tx, value_of(convert(tx, x.var, dtype)))


def _modulus_squared(x: Traced) -> Traced:
    if not x.dtype.is_complex:
        return x * x
    real = Traced(x.tx, value_of(emit(x.tx, "real", x.var)))
    imag = Traced(x.tx, value_of(emit(x.tx, "imag", x.var)))
    return real * real + imag * imag


@TABLE.function("linalg.norm")
def norm(
    tx: TraceContext, x: object, ord: object = None, axis: object = None, keepdims: object = False
) -> ArrayRef:
    value = _floating(tx, as_ref(tx, x))
    if value.ndim == 0:
        raise Unsupported("the norm of a scalar")
    if axis is None and ord is None:
        return _euclidean(tx, value, None, keepdims)
    axes = tuple(range(value.ndim)) if axis is None else axis
    if not isinstance(axes, (tuple, list)):
        axes = (axes,)
    places = tuple(normalize_axis(i, value.ndim) for i in axes)
    if len(places) == 1:
        return _vector_norm(tx, value, ord, places[0], keepdims)
    if len(places) == 2:
        return _matrix_norm(tx, value, ord, places, keepdims)
    raise Unsupported("Improper number of dimensions to norm.")


def _euclidean(tx: TraceContext, x: Traced, axis: object, keepdims: object) -> ArrayRef:
    total = sum_(tx, _modulus_squared(x).ref, axis, keepdims=keepdims)
    return call_ufunc(tx, np.sqrt, total)


def _vector_norm(tx: TraceContext, x: Traced, ord: Any, axis: int, keepdims: object) -> ArrayRef:
    if ord is None or ord == 2:
        return _euclidean(tx, x, axis, keepdims)
    if isinstance(ord, (str, ArrayRef)):
        raise Unsupported(f"Invalid norm order {ord!r} for vectors")
    if isinstance(ord, np.generic):
        ord = ord.item()  # the powers are taken in place, in the array's dtype
    magnitude = abs(x)
    if ord == np.inf:
        return max_(tx, magnitude.ref, axis, keepdims=keepdims)
    if ord == -np.inf:
        return min_(tx, magnitude.ref, axis, keepdims=keepdims)
    if ord == 0:
        flags = (x != 0).var
        return sum_(tx, value_of(convert(tx, flags, x.dtype.real)), axis, keepdims=keepdims)
    if ord == 1:
        return sum_(tx, magnitude.ref, axis, keepdims=keepdims)
    total = Traced(tx, sum_(tx, (magnitude**ord).ref, axis, keepdims=keepdims))
    return (total ** (1.0 / ord)).ref


def _matrix_norm(
    tx: TraceContext, x: Traced, ord: object, axes: tuple[int, ...], keepdims: object
) -> ArrayRef:
    if ord in (None, "fro", "f"):
        return _euclidean(tx, x, axes, keepdims)
    if ord not in (1, -1, np.inf, -np.inf) or isinstance(ord, str):
        raise Unsupported(f"the matrix norm of order {ord!r}")  # NumPy's implementation is traced
    row, column = axes if ord in (1, -1) else axes[::-1]
    sums = sum_(tx, abs(x).ref, row, keepdims=True)
    reduce = max_ if ord in (1, np.inf) else min_
    result = reduce(tx, sums, column, keepdims=True)
    if keepdims:
        return result
    rest = tuple(d for i, d in enumerate(result.shape) if i not in axes)
    return value_of(emit(tx, "reshape", result.var, shape=rest))


@TABLE.function("linalg.vector_norm")
def vector_norm(
    tx: TraceContext, x: object, /, *, axis: object = None, keepdims: bool = False, ord: object = 2
) -> ArrayRef:
    value = _floating(tx, as_ref(tx, x))
    if axis is None:
        if keepdims:
            raise Unsupported("numpy.linalg.vector_norm over all axes with keepdims")
        flat = Traced(tx, array_of(flatten_view(tx, value.var)))
        return _vector_norm(tx, flat, ord, 0, False)
    return _vector_norm(tx, value, ord, normalize_axis(axis, value.ndim), keepdims)


@TABLE.function("linalg.matrix_norm")
def matrix_norm(tx: TraceContext, x: object, /, *, keepdims: bool = False, ord: object = "fro") -> ArrayRef:
    value = _floating(tx, as_ref(tx, x))
    if value.ndim < 2:
        raise Unsupported("the matrix norm of an array of fewer than two dimensions")
    return _matrix_norm(tx, value, ord, (value.ndim - 2, value.ndim - 1), keepdims)


@TABLE.function("linalg.matrix_power")
def matrix_power(tx: TraceContext, a: object, n: object) -> ArrayRef:
    x = as_ref(tx, a)
    power = int(integer(n))
    if x.ndim < 2 or not x.shape[-1] == x.shape[-2] or power < 1 or power > 64:
        raise Unsupported("numpy.linalg.matrix_power of this matrix or exponent")
    if power == 1:
        return x  # as NumPy: the matrix itself
    if power == 3:
        return matmul(tx, matmul(tx, x, x), x)
    result: ArrayRef | None = None
    square = x
    while power:
        if power & 1:
            result = square if result is None else matmul(tx, result, square)
        power >>= 1
        if power:
            square = matmul(tx, square, square)
    assert result is not None
    return result


@TABLE.function("linalg.multi_dot")
def multi_dot(tx: TraceContext, arrays: object, *, out: object = None) -> ArrayRef:
    """Multiplied in the order written."""
    if out is not None or not isinstance(arrays, (list, tuple)) or len(arrays) < 2:
        raise Unsupported("numpy.linalg.multi_dot of fewer than two arrays")
    refs = [as_ref(tx, array) for array in arrays]
    ranks = [ref.ndim for ref in refs]
    if len(refs) > 2 and not (all(rank == 2 for rank in ranks[1:-1]) and {ranks[0], ranks[-1]} <= {1, 2}):
        raise Unsupported("arrays of numpy.linalg.multi_dot must be two-dimensional", break_id="would-raise")
    result = refs[0]
    for other in refs[1:]:
        result = dot(tx, result, other)
    return result
