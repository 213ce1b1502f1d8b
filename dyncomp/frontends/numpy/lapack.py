"""Decompositions and solutions of linear systems, by LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import has_c_order
from ...symbolic.integers import product
from ..base import ArrayRef, TraceContext
from . import promote
from .linalg import matmul
from .numpy_rules import RuleTable, resolve
from .operands import array_of, as_ref, broadcast_shapes, broadcast_to, convert, emit, value_of
from .reductions import max_, sum_
from .shape import reshape, swapaxes
from .traced import Traced
from .ufunc_emit import full_like

TABLE = RuleTable()


def lapack_operand(tx: TraceContext, value: object, *others: ArrayRef, square: bool = True) -> Var:
    """A matrix operand in the dtype that ``numpy.linalg`` computes in."""
    x = as_ref(tx, value)
    if x.ndim < 2 or (square and not x.shape[-1] == x.shape[-2]):
        raise Unsupported("Last 2 dimensions of the array must be square")
    return convert(tx, x.var, lapack_dtype(x, *others))


def lapack_dtype(*refs: ArrayRef) -> DType:
    for ref in refs:
        if ref.dtype in (dtypes.float16, dtypes.bfloat16):
            raise Unsupported(f"array type {ref.dtype} is unsupported in linalg")
    kinds = [r.dtype.numpy if r.dtype.is_inexact else np.dtype(np.float64) for r in refs]
    return promote.from_np(np.result_type(*kinds))


@TABLE.function("linalg.solve")
def solve(tx: TraceContext, a: object, b: object) -> ArrayRef:
    """``b`` is a vector only where it has one dimension (NumPy 2)."""
    x, y = as_ref(tx, a), as_ref(tx, b)
    left = lapack_operand(tx, x, y)
    right = convert(tx, y.var, left.dtype)
    if y.ndim == 0 or (y.ndim == 1 and x.ndim > 2):
        raise Unsupported("numpy.linalg.solve of a stack of matrices with one vector")
    if y.ndim > 1:
        stack = broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left = broadcast_to(tx, left, (*stack, *left.shape[-2:]))
        right = broadcast_to(tx, right, (*stack, *right.shape[-2:]))
    return array_of(emit(tx, "solve", left, right))


@TABLE.function("linalg.tensorsolve")
def tensorsolve(tx: TraceContext, a: object, b: object, axes: object = None) -> ArrayRef:
    x, y = as_ref(tx, a), as_ref(tx, b)
    shape = x.shape[y.ndim - x.ndim :]
    size = product(shape)
    if axes is not None or product(x.shape) != size * size:
        raise Unsupported("numpy.linalg.tensorsolve of these arrays")
    found = solve(tx, reshape(tx, x, (size, size)), reshape(tx, y, (size,)))
    return array_of(emit(tx, "copy", reshape(tx, found, shape).var))


@TABLE.function("linalg.inv")
def inv(tx: TraceContext, a: object) -> ArrayRef:
    return array_of(emit(tx, "inv", lapack_operand(tx, a)))


@TABLE.function("linalg.det")
def det(tx: TraceContext, a: object) -> ArrayRef:
    return value_of(emit(tx, "det", lapack_operand(tx, a)))


@TABLE.function("linalg.cholesky")
def cholesky(tx: TraceContext, a: object, /, *, upper: bool = False) -> ArrayRef:
    return array_of(emit(tx, "cholesky", lapack_operand(tx, a), upper=bool(upper)))


def _named(path: str, parts: tuple[Var, ...]) -> Any:
    """The parts as NumPy's own named tuple."""
    values = [value_of(part) for part in parts]
    kind = resolve(f"linalg._linalg.{path}")
    return tuple(values) if kind is None else kind(*values)


@TABLE.function("linalg.slogdet")
def slogdet(tx: TraceContext, a: object) -> Any:
    return _named("SlogdetResult", emit(tx, "slogdet", lapack_operand(tx, a)))


@TABLE.function("linalg.qr")
def qr(tx: TraceContext, a: object, mode: str = "reduced") -> Any:
    if mode == "r":
        return array_of(emit(tx, "qr", lapack_operand(tx, a, square=False), mode="reduced")[1])
    if mode not in ("reduced", "complete"):
        raise Unsupported(f"numpy.linalg.qr with mode={mode!r}")
    x = lapack_operand(tx, a, square=False)
    if x.ndim > 2 and not has_c_order(x.shape, x.type.strides):
        raise Unsupported("numpy.linalg.qr of stacked matrices in other than C order")
    return _named("QRResult", emit(tx, "qr", x, mode=mode))


@TABLE.function("linalg.svd")
def svd(
    tx: TraceContext, a: object, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if hermitian:
        raise Unsupported("numpy.linalg.svd(hermitian=True)")
    x = lapack_operand(tx, a, square=False)
    if not compute_uv:
        return array_of(emit(tx, "svdvals", x))
    return _named("SVDResult", emit(tx, "svd", x, full_matrices=bool(full_matrices)))


@TABLE.function("linalg.svdvals")
def svdvals(tx: TraceContext, x: object, /) -> ArrayRef:
    return array_of(emit(tx, "svdvals", lapack_operand(tx, x, square=False)))


@TABLE.function("linalg.eigh")
def eigh(tx: TraceContext, a: object, UPLO: str = "L") -> Any:
    return _named("EighResult", emit(tx, "eigh", lapack_operand(tx, a), uplo=UPLO.upper()))


@TABLE.function("linalg.eigvalsh")
def eigvalsh(tx: TraceContext, a: object, UPLO: str = "L") -> ArrayRef:
    return array_of(emit(tx, "eigvalsh", lapack_operand(tx, a), uplo=UPLO.upper()))


@TABLE.function("linalg.matrix_rank")
def matrix_rank(
    tx: TraceContext, A: object, tol: object = None, hermitian: bool = False, *, rtol: object = None
) -> ArrayRef:
    x = as_ref(tx, A)
    if tol is not None or rtol is not None or hermitian or x.ndim < 2:
        raise Unsupported("numpy.linalg.matrix_rank with a tolerance, or of a vector")
    values = Traced(tx, svdvals(tx, x))
    relative = max(int(d) for d in x.shape[-2:]) * float(np.finfo(values.dtype.numpy).eps)
    bound = Traced(tx, max_(tx, values.ref, -1, keepdims=True)) * relative
    return sum_(tx, (values > bound).ref, -1)


@TABLE.function("linalg.pinv")
def pinv(
    tx: TraceContext, a: object, rcond: Any = None, hermitian: bool = False, *, rtol: object = None
) -> ArrayRef:
    x = as_ref(tx, a)
    if rtol is not None or hermitian or isinstance(rcond, ArrayRef):
        raise Unsupported("numpy.linalg.pinv with rtol= or hermitian=")
    source = lapack_operand(tx, x, square=False)
    if source.dtype.is_complex:
        source = emit(tx, "conj", source)
    left, values, right = emit(tx, "svd", source, full_matrices=False)
    bound = 1e-15 if rcond is None else float(rcond)
    singular = Traced(tx, array_of(values))
    largest = Traced(tx, max_(tx, singular.ref, -1, keepdims=True))
    large = (singular > largest * bound).var
    zeros = broadcast_to(tx, (singular * 0.0).var, singular.shape)
    inverse = emit(tx, "where", large, (1.0 / singular).var, zeros)
    scaled = Traced(tx, array_of(inverse))[..., None] * Traced(tx, swapaxes(tx, array_of(left), -1, -2))
    return matmul(tx, swapaxes(tx, array_of(right), -1, -2), scaled.ref)


@TABLE.function("linalg.cond")
def cond(tx: TraceContext, x: object, p: object = None) -> ArrayRef:
    """The quotient of singular values, infinite where that is NaN for no NaN in the matrix."""
    matrix = as_ref(tx, x)
    if p not in (None, 2, -2) or matrix.ndim < 2 or any(size == 0 for size in matrix.shape):
        raise Unsupported(f"numpy.linalg.cond with p={p!r}")
    tx.assume("numpy-errstate")
    values = Traced(tx, svdvals(tx, matrix))
    first, last = values[..., 0], values[..., -1]
    quotient = last / first if p == -2 else first / last
    missing = emit(tx, "isnan", lapack_operand(tx, matrix, square=False))
    given = emit(tx, "reduce_any", missing, axes=(missing.ndim - 2, missing.ndim - 1))
    unknown = emit(tx, "logical_and", emit(tx, "isnan", quotient.var), emit(tx, "logical_not", given))
    infinite = full_like(tx, quotient.var, np.inf)
    return value_of(emit(tx, "where", unknown, infinite, quotient.var))
