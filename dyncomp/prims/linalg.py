"""Linear algebra on the last two axes, by NumPy's LAPACK routines. Leading axes are a stack.

Singular input raises ``numpy.linalg.LinAlgError`` as NumPy does. Factors that are not unique (signs of
singular and eigenvectors) are the library's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, complex64, complex128, float32, float64, int64
from ..graph.ir import ArrayType, array_type, contiguous_strides
from ..symbolic.integers import Dim, product, sym_min
from .kit import Array, require
from .layout import dims_equal, k_order_axes, shapes_equal, strides_in_order
from .opdef import Extern, OpDef, Sample, Tolerance
from .samples import data

LAPACK = (float32, float64, complex64, complex128)
Shape = tuple[Dim, ...]


def stacked(dtype: DType, operands: Sequence[ArrayType], core: Shape) -> ArrayType:
    """Type of a generalized ufunc's output: stack dimensions in the operands' K order around a C-ordered
    core. Operands have equal stack shapes."""
    first = operands[0]
    loop = first.shape[:-2]
    order = k_order_axes(loop, [t.strides[:-2] for t in operands])
    size = product(core)
    outer = [size * s for s in strides_in_order(loop, order)]
    return ArrayType(dtype, (*loop, *core), (*outer, *contiguous_strides(core)), first.device)


def _check(x: ArrayType, name: str, square: bool = False) -> tuple[Dim, Dim]:
    require([x], LAPACK, name)
    if x.ndim < 2:
        raise ValueError(f"{name} needs at least two dimensions")
    rows, columns = x.shape[-2:]
    if square and not dims_equal(rows, columns):
        raise ValueError(f"{name}: last two dimensions must be square")
    return rows, columns


def inv_meta(x: ArrayType) -> ArrayType:
    n, _ = _check(x, "inv", True)
    return stacked(x.dtype, [x], (n, n))


def det_meta(x: ArrayType) -> ArrayType:
    _check(x, "det", True)
    return stacked(x.dtype, [x], ())


def slogdet_meta(x: ArrayType) -> tuple[ArrayType, ArrayType]:
    _check(x, "slogdet", True)
    return stacked(x.dtype, [x], ()), stacked(x.dtype.real, [x], ())


def cholesky_meta(x: ArrayType, *, upper: bool = False) -> ArrayType:
    n, _ = _check(x, "cholesky", True)
    return stacked(x.dtype, [x], (n, n))


def solve_meta(a: ArrayType, b: ArrayType) -> ArrayType:
    n, _ = _check(a, "solve", True)
    if a.dtype is not b.dtype:
        raise TypeError("solve needs operands of one dtype")
    if b.ndim == 1:
        if a.ndim != 2 or not dims_equal(b.shape[0], n):
            raise ValueError("solve: a vector b needs one matrix a of its size")
        return array_type(a.dtype, b.shape, a.device)
    if not shapes_equal(a.shape[:-1], b.shape[:-1]):
        raise ValueError(f"solve: shapes {a.shape} and {b.shape} do not fit")
    return stacked(a.dtype, [a, b], (n, b.shape[-1]))


def factored_meta(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    n, _ = _check(a, "lu_factor", True)
    if a.dtype is not float64 or a.ndim != 2:
        raise TypeError("lu_factor is for one matrix of float64")
    return array_type(a.dtype, (n, n), a.device), array_type(int64, (n,), a.device)


def solve_factored_meta(
    a: ArrayType, factors: ArrayType, pivots: ArrayType, b: ArrayType, *, transposed: bool
) -> ArrayType:
    if not shapes_equal(factors.shape, a.shape) or not shapes_equal(pivots.shape, a.shape[:1]):
        raise ValueError("solve_factored: factors of another matrix")
    return solve_meta(a, b)


def triangular_meta(a: ArrayType, b: ArrayType, *, lower: bool, left: bool) -> ArrayType:
    n, _ = _check(a, "solve_triangular", True)
    if a.dtype is not b.dtype:
        raise TypeError("solve_triangular needs operands of one dtype")
    fits = a.ndim == b.ndim and shapes_equal(a.shape[:-2], b.shape[:-2])
    if not fits or not dims_equal(b.shape[-2 if left else -1], n):
        raise ValueError(f"solve_triangular: shapes {a.shape} and {b.shape} do not fit")
    return array_type(a.dtype, b.shape, a.device)


def qr_meta(x: ArrayType, *, mode: str = "reduced") -> tuple[ArrayType, ArrayType]:
    rows, columns = _check(x, "qr")
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    inner = rows if mode == "complete" else sym_min(rows, columns)
    return array_type(x.dtype, (*x.shape[:-2], rows, inner)), array_type(
        x.dtype, (*x.shape[:-2], inner, columns)
    )


def svd_meta(x: ArrayType, *, full_matrices: bool = True) -> tuple[ArrayType, ArrayType, ArrayType]:
    rows, columns = _check(x, "svd")
    inner = sym_min(rows, columns)
    left, right = (rows, columns) if full_matrices else (inner, inner)
    return (
        stacked(x.dtype, [x], (rows, left)),
        stacked(x.dtype.real, [x], (inner,)),
        stacked(x.dtype, [x], (right, columns)),
    )


def svdvals_meta(x: ArrayType) -> ArrayType:
    rows, columns = _check(x, "svdvals")
    return stacked(x.dtype.real, [x], (sym_min(rows, columns),))


def eigh_meta(x: ArrayType, *, uplo: str = "L") -> tuple[ArrayType, ArrayType]:
    n, _ = _check(x, "eigh", True)
    return stacked(x.dtype.real, [x], (n,)), stacked(x.dtype, [x], (n, n))


def eigvalsh_meta(x: ArrayType, *, uplo: str = "L") -> ArrayType:
    n, _ = _check(x, "eigvalsh", True)
    return stacked(x.dtype.real, [x], (n,))


# -- references -------------------------------------------------------------------------------
def det_ref(x: Array) -> Array:
    return np.asarray(np.linalg.det(x))


def slogdet_ref(x: Array) -> tuple[Array, Array]:
    sign, log = np.linalg.slogdet(x)
    return np.asarray(sign), np.asarray(log)


def cholesky_ref(x: Array, *, upper: bool = False) -> Array:
    return np.linalg.cholesky(x, upper=upper)


def factored_ref(a: Array) -> tuple[Array, Array]:
    """By rows, the largest element of a column first. The factors are those of LAPACK, transposed."""
    lu = np.array(a)
    pivots = np.arange(1, len(a) + 1)
    for k in range(len(a)):
        best = k + int(np.argmax(np.abs(lu[k:, k])))
        if lu[best, k] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        pivots[k] = best + 1
        lu[[k, best]] = lu[[best, k]]
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return np.ascontiguousarray(lu.T), pivots


def solve_factored_ref(a: Array, factors: Array, pivots: Array, b: Array, *, transposed: bool) -> Array:
    lower = np.tril(factors.T, -1) + np.eye(len(a))
    upper = np.triu(factors.T)
    order = np.arange(len(a))
    for k, best in enumerate(pivots):
        order[[k, best - 1]] = order[[best - 1, k]]
    if not transposed:
        return np.linalg.solve(upper, np.linalg.solve(lower, b[order]))
    found = np.empty_like(b)
    found[order] = np.linalg.solve(lower.T, np.linalg.solve(upper.T, b))
    return found


def triangular_ref(a: Array, b: Array, *, lower: bool, left: bool) -> Array:
    triangle = np.tril(a) if lower else np.triu(a)
    if left:
        return np.ascontiguousarray(np.linalg.solve(triangle, b))
    turned = np.linalg.solve(np.swapaxes(triangle, -1, -2), np.swapaxes(b, -1, -2))
    return np.ascontiguousarray(np.swapaxes(turned, -1, -2))


def qr_ref(x: Array, *, mode: str = "reduced") -> tuple[Array, Array]:
    q, r = np.linalg.qr(x, mode=mode)  # type: ignore[call-overload]
    return np.ascontiguousarray(q), np.ascontiguousarray(r)


def svd_ref(x: Array, *, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    return tuple(np.linalg.svd(x, full_matrices=full_matrices))  # type: ignore[return-value]


def svdvals_ref(x: Array) -> Array:
    return np.linalg.svd(x, compute_uv=False)


def eigh_ref(x: Array, *, uplo: str = "L") -> tuple[Array, Array]:
    return tuple(np.linalg.eigh(x, uplo))  # type: ignore[return-value,arg-type,call-overload]


def eigvalsh_ref(x: Array, *, uplo: str = "L") -> Array:
    return np.linalg.eigvalsh(x, uplo)  # type: ignore[arg-type,call-overload]


# -- samples ----------------------------------------------------------------------------------
def _matrices(dtype: DType, shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[str, Array]]:
    for shape in shapes:
        yield f"{dtype}-{shape}", data(dtype, shape, 3)
    first = shapes[0]
    yield f"{dtype}-transposed", data(dtype, first[::-1], 4).T
    stack = data(dtype, (3, 2, *first[-2:]), 5)
    yield f"{dtype}-stack", stack
    yield f"{dtype}-permuted", stack.transpose(1, 0, 2, 3)


def _well_conditioned(x: Array) -> Array:
    n = min(x.shape[-2:])
    return (x + 10 * n * np.eye(*x.shape[-2:], dtype=x.dtype)).astype(x.dtype)


def _definite(x: Array) -> Array:
    return (_well_conditioned(x) + np.conj(np.swapaxes(_well_conditioned(x), -1, -2))).astype(x.dtype)


def matrix_samples(
    shapes: Sequence[tuple[int, ...]], prepare: Callable[[Array], Array], *params: dict[str, Any]
) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in LAPACK:
            for label, x in _matrices(dtype, shapes):
                for number, chosen in enumerate(params or ({},)):
                    yield Sample((prepare(x),), chosen, f"{label}-{number}")

    return samples


def solve_samples() -> Iterator[Sample]:
    for dtype in LAPACK:
        for n in (1, 3, 8):
            a = _well_conditioned(data(dtype, (n, n), 1))
            yield Sample((a, data(dtype, (n,), 2)), {}, f"{dtype}-vector-{n}")
            yield Sample((a, data(dtype, (n, 2), 3)), {}, f"{dtype}-matrix-{n}")
            yield Sample((a.T, data(dtype, (2, n), 3).T), {}, f"{dtype}-transposed-{n}")
        stack = _well_conditioned(data(dtype, (2, 3, 3), 1))
        yield Sample((stack, data(dtype, (2, 3, 4), 2)), {}, f"{dtype}-stack")


def factored_samples() -> Iterator[Sample]:
    for n in (1, 3, 8):
        a = data(float64, (n, n), 1) + np.eye(n)
        yield Sample((a,), {}, f"{n}")
        yield Sample((a.T,), {}, f"transposed-{n}")


def solve_factored_samples() -> Iterator[Sample]:
    for n in (1, 3, 8):
        a = data(float64, (n, n), 1) + np.eye(n)
        for transposed in (False, True):
            for shape in ((n,), (n, 2)):
                right = data(float64, shape, 2)
                label = f"{n}-{len(shape)}-{transposed}"
                yield Sample((a, *factored_ref(a), right), {"transposed": transposed}, label)


def triangular_samples() -> Iterator[Sample]:
    for dtype in LAPACK:
        a = _well_conditioned(data(dtype, (4, 4), 1))
        for lower in (True, False):
            for left in (True, False):
                params = {"lower": lower, "left": left}
                label = f"{dtype}-{lower}-{left}"
                b = data(dtype, (4, 3) if left else (3, 4), 2)
                yield Sample((a, b), params, label)
                yield Sample((a.T, np.asfortranarray(b)), params, f"{label}-transposed")
        stack = _well_conditioned(data(dtype, (2, 3, 3), 1))
        params = {"lower": True, "left": True}
        yield Sample((stack, data(dtype, (2, 3, 4), 2)), params, f"{dtype}-stack")


_SQUARE = ((3, 3), (1, 1), (8, 8))
_ANY_SHAPE = ((5, 3), (3, 3), (3, 5), (1, 1))


def _same(x: Array) -> Array:
    return x


def routine(
    name: str,
    params: tuple[str, ...],
    meta: Callable[..., Any],
    ref: Callable[..., Any],
    samples: Callable[[], Iterator[Sample]],
    doc: str,
    lapack: str = "",
    when: tuple[tuple[str, object], ...] = (),
    passed: tuple[str, ...] = (),
    dtypes: tuple[DType, ...] = LAPACK,
) -> OpDef:
    return OpDef(
        name,
        params,
        meta,
        ref,
        lower=Extern(lapack, when, passed),
        samples=samples,
        dtypes=dtypes,
        tolerance=Tolerance(256.0),
        doc=doc,
    )


ROWS: tuple[OpDef, ...] = (
    routine(
        "solve",
        (),
        solve_meta,
        np.linalg.solve,
        solve_samples,
        "The solution x of a @ x = b for a vector b (one matrix) or a stack of matrices.",
        lapack="solve",
    ),
    routine(
        "lu_factor",
        (),
        factored_meta,
        factored_ref,
        factored_samples,
        "The factors of one matrix as LAPACK packs them, transposed, and its pivots: for `solve_factored`.",
        lapack="factored",
        dtypes=(float64,),
    ),
    routine(
        "solve_factored",
        ("transposed",),
        solve_factored_meta,
        solve_factored_ref,
        solve_factored_samples,
        "The solution x of a @ x = b, or of a.T @ x = b if `transposed`, by what `lu_factor` gives of a.",
        lapack="solve_factored",
        passed=("transposed",),
        dtypes=(float64,),
    ),
    routine(
        "solve_triangular",
        ("lower", "left"),
        triangular_meta,
        triangular_ref,
        triangular_samples,
        "The solution x of a @ x = b (`left`) or x @ a = b for matrices b. Of a only the triangle with its "
        "diagonal is read, the lower or the upper one.",
        lapack="triangular",
        passed=("lower", "left"),
    ),
    routine(
        "inv",
        (),
        inv_meta,
        np.linalg.inv,
        matrix_samples(_SQUARE, _well_conditioned),
        "Inverse of square matrices.",
        lapack="inverse",
    ),
    routine(
        "det",
        (),
        det_meta,
        det_ref,
        matrix_samples(_SQUARE, _well_conditioned),
        "Determinant.",
        lapack="determinant",
    ),
    routine(
        "slogdet",
        (),
        slogdet_meta,
        slogdet_ref,
        matrix_samples(_SQUARE, _well_conditioned),
        "Sign (or phase) and logarithm of the absolute value of the determinant.",
    ),
    routine(
        "cholesky",
        ("upper",),
        cholesky_meta,
        cholesky_ref,
        matrix_samples(_SQUARE, _definite, {"upper": False}, {"upper": True}),
        "Cholesky factor of a Hermitian positive definite matrix, lower or upper.",
        lapack="cholesky",
        when=(("upper", False),),
    ),
    routine(
        "qr",
        ("mode",),
        qr_meta,
        qr_ref,
        matrix_samples(_ANY_SHAPE, _well_conditioned, {"mode": "reduced"}, {"mode": "complete"}),
        "QR factors; mode is reduced or complete.",
        lapack="reduced_qr",
        when=(("mode", "reduced"),),
    ),
    routine(
        "svd",
        ("full_matrices",),
        svd_meta,
        svd_ref,
        matrix_samples(_ANY_SHAPE, _same, {"full_matrices": True}, {"full_matrices": False}),
        "Singular value decomposition: u, s, vh.",
    ),
    routine(
        "svdvals",
        (),
        svdvals_meta,
        svdvals_ref,
        matrix_samples(_ANY_SHAPE, _same),
        "Singular values, in descending order.",
    ),
    routine(
        "eigh",
        ("uplo",),
        eigh_meta,
        eigh_ref,
        matrix_samples(_SQUARE, _definite, {"uplo": "L"}, {"uplo": "U"}),
        "Eigenvalues (ascending) and eigenvectors of a Hermitian matrix, from its triangle `uplo`.",
        lapack="eigh",
        when=(("uplo", "L"),),
    ),
    routine(
        "eigvalsh",
        ("uplo",),
        eigvalsh_meta,
        eigvalsh_ref,
        matrix_samples(_SQUARE, _definite, {"uplo": "L"}, {"uplo": "U"}),
        "Eigenvalues of a Hermitian matrix.",
        lapack="eigvalsh",
        when=(("uplo", "L"),),
    ),
)
