"""Routines of ``scipy.linalg`` on single matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import Dim, same
from ..base import ArrayRef, TraceContext
from . import promote
from .operands import array_of, as_ref, convert, emit, value_of
from .scipy_table import RULES, call, rule

LIBRARY = "scipy.linalg"
_DTYPES = (dtypes.float64, dtypes.complex128)
_ASSUMED = {
    None: "",
    "gen": "gen",
    "general": "gen",
    "sym": "sym",
    "symmetric": "sym",
    "her": "her",
    "hermitian": "her",
    "pos": "pos",
    "positive definite": "pos",
}
_TRANSPOSED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


# -- operands and calls ---------------------------------------------------------------------------
def _operand(tx: TraceContext, value: object, *ndims: int) -> ArrayRef:
    x = as_ref(tx, value)
    if x.ndim not in ndims:
        raise Unsupported(f"a routine of {LIBRARY} on an array of {x.ndim} dimensions")
    if x.dtype.is_integer or x.dtype.is_bool:
        x = array_of(convert(tx, x.var, dtypes.float64))
    if x.dtype not in _DTYPES:
        raise Unsupported(f"a routine of {LIBRARY} on {x.dtype}")
    if any(same(size, 0) for size in x.shape):
        raise Unsupported(f"a routine of {LIBRARY} on an empty array")
    if not x.var.type.is_contiguous and not _is_turned(x):
        x = array_of(emit(tx, "contiguous", x.var))
    return x


def _is_turned(x: ArrayRef) -> bool:
    return x.ndim == 2 and same(x.strides[0], 1) and same(x.strides[1], x.shape[0])


def _square(tx: TraceContext, value: object) -> ArrayRef:
    x = _operand(tx, value, 2)
    if not x.shape[0] == x.shape[1]:
        raise Unsupported(f"a routine of {LIBRARY} on a matrix that is not square")
    return x


def _right(tx: TraceContext, value: object, matrix: ArrayRef) -> ArrayRef:
    b = _operand(tx, value, 1, 2)
    if not b.shape[0] == matrix.shape[0]:
        raise Unsupported("a right-hand side of another size than the matrix")
    return b


def _common(tx: TraceContext, *refs: ArrayRef) -> list[ArrayRef]:
    dtype = promote.from_np(np.result_type(*(ref.dtype.numpy for ref in refs)))
    return [array_of(convert(tx, ref.var, dtype)) for ref in refs]


def _refuse_overwriting(*flags: object) -> None:
    if any(flags):
        raise Unsupported(f"a routine of {LIBRARY} that may overwrite its arguments")


def _called(
    tx: TraceContext,
    name: str,
    inputs: list[ArrayRef],
    shapes: list[tuple[Dim, ...]],
    options: dict[str, Any] | None = None,
    small: list[np.ndarray[Any, Any]] | None = None,
) -> list[Var]:
    """A routine on a square matrix and perhaps a right-hand side."""
    examples = [_small(ref, 3 - k) for k, ref in enumerate(inputs)] if small is None else small
    return call(tx, LIBRARY, name, inputs, shapes, examples, options or {})


def _small(ref: ArrayRef, columns: int, rows: int = 3) -> np.ndarray[Any, Any]:
    """A small array of the same type and layout; a square matrix is positive definite."""
    made = np.ones((rows, columns)[: ref.ndim], ref.dtype.numpy)
    if ref.ndim == 2:
        made[np.diag_indices(min(rows, columns))] += 3
    return np.asfortranarray(made) if _is_turned(ref) and not ref.var.type.is_contiguous else made


# -- factors and solutions ------------------------------------------------------------------------
@rule(LIBRARY)
def cholesky(
    tx: TraceContext, a: object, lower: Any = False, overwrite_a: object = False, check_finite: Any = True
) -> ArrayRef:
    _refuse_overwriting(overwrite_a)
    x = _square(tx, a)
    options = {"lower": bool(lower), "check_finite": bool(check_finite)}
    return array_of(_called(tx, "cholesky", [x], [x.shape], options)[0])


@rule(LIBRARY)
def cho_factor(
    tx: TraceContext, a: object, lower: Any = False, overwrite_a: object = False, check_finite: Any = True
) -> tuple[ArrayRef, Any]:
    _refuse_overwriting(overwrite_a)
    x = _square(tx, a)
    options = {"lower": bool(lower), "check_finite": bool(check_finite)}
    return array_of(_called(tx, "cho_factor", [x], [x.shape], options)[0]), lower


@rule(LIBRARY)
def cho_solve(
    tx: TraceContext, c_and_lower: Any, b: object, overwrite_b: object = False, check_finite: Any = True
) -> ArrayRef:
    _refuse_overwriting(overwrite_b)
    c, lower = c_and_lower
    factor = _square(tx, c)
    factor, right = _common(tx, factor, _right(tx, b, factor))
    options = {"lower": bool(lower), "check_finite": bool(check_finite)}
    return array_of(_called(tx, "cho_solve", [factor, right], [right.shape], options)[0])


@rule(LIBRARY)
def solve_triangular(
    tx: TraceContext,
    a: object,
    b: object,
    trans: Any = 0,
    lower: Any = False,
    unit_diagonal: Any = False,
    overwrite_b: object = False,
    check_finite: Any = True,
) -> ArrayRef:
    _refuse_overwriting(overwrite_b)
    x = _square(tx, a)
    x, right = _common(tx, x, _right(tx, b, x))
    options = {
        "trans": _TRANSPOSED[trans],
        "lower": bool(lower),
        "unit_diagonal": bool(unit_diagonal),
        "check_finite": bool(check_finite),
    }
    return array_of(_called(tx, "solve_triangular", [x, right], [right.shape], options)[0])


@rule(LIBRARY)
def lu_factor(
    tx: TraceContext, a: object, overwrite_a: object = False, check_finite: Any = True
) -> tuple[ArrayRef, ...]:
    _refuse_overwriting(overwrite_a)
    x = _square(tx, a)
    made = _called(tx, "lu_factor", [x], [x.shape, x.shape[:1]], {"check_finite": bool(check_finite)})
    return tuple(map(array_of, made))


@rule(LIBRARY)
def lu_solve(
    tx: TraceContext,
    lu_and_piv: Any,
    b: object,
    trans: Any = 0,
    overwrite_b: object = False,
    check_finite: Any = True,
) -> ArrayRef:
    _refuse_overwriting(overwrite_b)
    lu, piv = lu_and_piv
    factors, pivots = _square(tx, lu), as_ref(tx, piv)
    if pivots.ndim != 1 or not pivots.dtype.is_integer or not pivots.shape[0] == factors.shape[0]:
        raise Unsupported("scipy.linalg.lu_solve with these pivots")
    factors, right = _common(tx, factors, _right(tx, b, factors))
    small = [_small(factors, 3), np.arange(3, dtype=pivots.dtype.numpy), _small(right, 2)]
    options = {"trans": _TRANSPOSED[trans], "check_finite": bool(check_finite)}
    return array_of(_called(tx, "lu_solve", [factors, pivots, right], [right.shape], options, small)[0])


@rule(LIBRARY)
def solve(
    tx: TraceContext,
    a: object,
    b: object,
    lower: Any = False,
    overwrite_a: object = False,
    overwrite_b: object = False,
    check_finite: Any = True,
    assume_a: Any = None,
    transposed: object = False,
) -> ArrayRef:
    _refuse_overwriting(overwrite_a, overwrite_b)
    if transposed or assume_a not in _ASSUMED:
        raise Unsupported("scipy.linalg.solve with transposed= or of such a matrix")
    x = _square(tx, a)
    x, right = _common(tx, x, _right(tx, b, x))
    if x.dtype.is_complex and _ASSUMED[assume_a] == "sym":
        raise Unsupported("scipy.linalg.solve of a complex symmetric matrix")
    options = {
        "assume_a": _ASSUMED[assume_a] or None,
        "lower": bool(lower),
        "check_finite": bool(check_finite),
    }
    return array_of(_called(tx, "solve", [x, right], [right.shape], options)[0])


@rule(LIBRARY)
def inv(
    tx: TraceContext,
    a: object,
    overwrite_a: object = False,
    check_finite: Any = True,
    *,
    assume_a: object = None,
    lower: object = False,
) -> ArrayRef:
    _refuse_overwriting(overwrite_a)
    if assume_a not in (None, "gen", "general") or lower:
        raise Unsupported("scipy.linalg.inv of such a matrix")
    x = _square(tx, a)
    return array_of(_called(tx, "inv", [x], [x.shape], {"check_finite": bool(check_finite)})[0])


@rule(LIBRARY)
def det(tx: TraceContext, a: object, overwrite_a: object = False, check_finite: Any = True) -> ArrayRef:
    _refuse_overwriting(overwrite_a)
    x = _square(tx, a)
    return value_of(_called(tx, "det", [x], [()], {"check_finite": bool(check_finite)})[0])


# -- eigenvalues, singular values, QR ---------------------------------------------------------------
@rule(LIBRARY)
def eigh(
    tx: TraceContext,
    a: object,
    b: object = None,
    *,
    lower: Any = True,
    eigvals_only: object = False,
    overwrite_a: object = False,
    overwrite_b: object = False,
    type: object = 1,
    check_finite: Any = True,
    subset_by_index: object = None,
    subset_by_value: object = None,
    driver: object = None,
) -> Any:
    _refuse_overwriting(overwrite_a, overwrite_b)
    if b is not None or type != 1 or subset_by_index is not None or subset_by_value is not None or driver:
        raise Unsupported("scipy.linalg.eigh with these arguments")
    x = _square(tx, a)
    options = {"lower": bool(lower), "check_finite": bool(check_finite)}
    if eigvals_only:
        return array_of(_called(tx, "eigvalsh", [x], [x.shape[:1]], options)[0])
    return tuple(map(array_of, _called(tx, "eigh", [x], [x.shape[:1], x.shape], options)))


@rule(LIBRARY)
def eigvalsh(tx: TraceContext, a: object, b: object = None, **options: Any) -> Any:
    return eigh(tx, a, b, eigvals_only=True, **options)


@rule(LIBRARY)
def svd(
    tx: TraceContext,
    a: object,
    full_matrices: Any = True,
    compute_uv: object = True,
    overwrite_a: object = False,
    check_finite: Any = True,
    lapack_driver: object = "gesdd",
) -> Any:
    _refuse_overwriting(overwrite_a)
    if lapack_driver != "gesdd":
        raise Unsupported("scipy.linalg.svd with lapack_driver=")
    x = _operand(tx, a, 2)
    if not compute_uv:
        return svdvals(tx, a, check_finite=check_finite)
    m, n = x.shape
    least = _least(x)
    shapes = [(m, m), (least,), (n, n)] if full_matrices else [(m, least), (least,), (least, n)]
    options = {"full_matrices": bool(full_matrices), "check_finite": bool(check_finite)}
    return tuple(map(array_of, _called(tx, "svd", [x], shapes, options, [_small(x, 3, 4)])))


def _least(x: ArrayRef) -> Dim:
    m, n = x.shape
    return m if m <= n else n


@rule(LIBRARY)
def svdvals(tx: TraceContext, a: object, overwrite_a: object = False, check_finite: Any = True) -> ArrayRef:
    _refuse_overwriting(overwrite_a)
    x = _operand(tx, a, 2)
    return array_of(
        _called(tx, "svdvals", [x], [(_least(x),)], {"check_finite": bool(check_finite)}, [_small(x, 3, 4)])[
            0
        ]
    )


@rule(LIBRARY)
def qr(
    tx: TraceContext,
    a: object,
    overwrite_a: object = False,
    lwork: object = None,
    mode: Any = "full",
    pivoting: object = False,
    check_finite: Any = True,
) -> Any:
    _refuse_overwriting(overwrite_a)
    if lwork is not None or pivoting or mode not in ("full", "economic"):
        raise Unsupported("scipy.linalg.qr with these arguments")
    x = _operand(tx, a, 2)
    m, n = x.shape
    least = _least(x) if mode == "economic" else m
    options = {"mode": mode, "check_finite": bool(check_finite)}
    return tuple(map(array_of, _called(tx, "qr", [x], [(m, least), (least, n)], options, [_small(x, 3, 4)])))


# -- functions of matrices ------------------------------------------------------------------------
def _function_of_matrix(name: str) -> None:
    def of_matrix(tx: TraceContext, A: object) -> ArrayRef:
        x = _square(tx, A)
        return array_of(_called(tx, name, [x], [x.shape])[0])

    RULES[LIBRARY, name] = of_matrix


for _name in ("expm", "logm", "sqrtm"):
    _function_of_matrix(_name)
