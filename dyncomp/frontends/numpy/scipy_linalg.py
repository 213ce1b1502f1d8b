"""``scipy.linalg`` of real matrices: its own routines as nodes, whose derivatives
``prims.derivatives.scipy_linalg`` says. What they refuse they refuse when the graph runs: then the original
does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Callee, Var
from ...prims.derivatives.scipy_linalg import ROUTINES
from ...symbolic.integers import Dim, same
from ..base import ArrayRef, Rule, TraceContext
from ..rule_table import below
from .diagonals import TABLE as DIAGONALS
from .index_functions import take
from .join import concatenate
from .lapack import lapack_dtype
from .operands import array_of, as_ref, convert, emit, value_of
from .operators import TABLE as OPERATORS
from .views import flatten_view

_RULES: dict[str, Rule] = {}


def _function(name: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES[name] = rule
        return rule

    return register


def find(fn: object) -> Rule | None:
    """The rule of a function of ``scipy.linalg``."""
    name = getattr(fn, "__name__", None)
    rule = _RULES.get(name) if isinstance(name, str) else None
    return rule if rule is not None and below(sys.modules.get("scipy.linalg"), str(name)) is fn else None


# -- nodes ----------------------------------------------------------------------------------------
def _operands(tx: TraceContext, *values: object) -> list[Var]:
    """Matrices, and vectors after the first of them, in the dtype that the routine computes in."""
    refs = [as_ref(tx, value) for value in values]
    dtype = lapack_dtype(*refs)
    if dtype.is_complex or refs[0].ndim != 2 or any(ref.ndim not in (1, 2) for ref in refs):
        raise Unsupported("scipy.linalg of complex numbers or of stacks of matrices")
    return [convert(tx, ref.var, dtype) for ref in refs]


def _square(x: Var) -> Dim:
    if not same(*x.shape):
        raise Unsupported("scipy.linalg of a matrix that is not square")
    return x.shape[0]


def _call(
    tx: TraceContext, name: str, inputs: list[Var], shapes: list[tuple[Dim, ...]], *numbers: int
) -> list[Var]:
    """Results in the order of FORTRAN where the routine gives them so: a transposed view of what it left."""
    routine = ROUTINES[name]
    dtype: DType = inputs[0].dtype
    turned = [shape[::-1] if routine.fortran else shape for shape in shapes]
    made = emit(
        tx,
        "routine_call",
        *inputs,
        callee=Callee(routine, f"scipy.linalg.{name}", (), (), None, f"scipy.linalg.{name}"),
        numbers=tuple(map(int, numbers)),
        dtypes=(dtype,) * len(shapes),
        shapes=tuple(turned),
    )
    results = made if isinstance(made, tuple) else (made,)
    if not routine.fortran:
        return list(results)
    return [emit(tx, "transpose", r, perm=(1, 0)) if r.ndim == 2 else r for r in results]


def _plain(overwritten: object, check_finite: object = True) -> None:
    """Numbers that are not finite are always refused when the graph runs: the original knows what to do."""
    if overwritten or not isinstance(check_finite, bool):
        raise Unsupported("scipy.linalg with overwrite_a= or overwrite_b=")


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, (bool, int, np.bool_)):
        raise Unsupported(f"scipy.linalg with {what}= as data")
    return bool(value)


# -- factors and solutions --------------------------------------------------------------------------
@_function("cholesky")
def cholesky(
    tx: TraceContext,
    a: object,
    lower: object = False,
    overwrite_a: object = False,
    check_finite: object = True,
) -> ArrayRef:
    _plain(overwrite_a, check_finite)
    (x,) = _operands(tx, a)
    n = _square(x)
    return array_of(_call(tx, "cholesky", [x], [(n, n)], _flag(lower, "lower"))[0])


@_function("cho_factor")
def cho_factor(
    tx: TraceContext,
    a: object,
    lower: object = False,
    overwrite_a: object = False,
    check_finite: object = True,
) -> tuple[ArrayRef, bool]:
    """The factor, and the argument in the other triangle."""
    below_ = _flag(lower, "lower")
    factor = cholesky(tx, a, below_, overwrite_a, check_finite)
    other = _other_triangle(tx, as_ref(tx, a), below_)
    return OPERATORS.operators["add"](tx, factor, other), below_


def _other_triangle(tx: TraceContext, a: ArrayRef, lower: bool) -> ArrayRef:
    rule = DIAGONALS.functions[np.triu if lower else np.tril]
    found: ArrayRef = rule(tx, a, 1 if lower else -1)
    return found


@_function("cho_solve")
def cho_solve(
    tx: TraceContext,
    c_and_lower: Any,
    b: object,
    overwrite_b: object = False,
    check_finite: object = True,
) -> ArrayRef:
    factor, below_ = c_and_lower
    lower = _flag(below_, "lower")
    inner = solve_triangular(tx, factor, b, 0 if lower else 1, lower, False, overwrite_b, check_finite)
    return solve_triangular(tx, factor, inner, 1 if lower else 0, lower)


@_function("solve_triangular")
def solve_triangular(
    tx: TraceContext,
    a: object,
    b: object,
    trans: object = 0,
    lower: object = False,
    unit_diagonal: object = False,
    overwrite_b: object = False,
    check_finite: object = True,
) -> ArrayRef:
    _plain(overwrite_b, check_finite)
    x, y = _operands(tx, a, b)
    if trans not in (0, 1, 2, "N", "T", "C") or not same(_square(x), y.shape[0]):
        raise Unsupported("scipy.linalg.solve_triangular of these arguments")
    flags = (trans not in (0, "N"), _flag(lower, "lower"), _flag(unit_diagonal, "unit_diagonal"))
    return array_of(_call(tx, "solve_triangular", [x, y], [y.shape], *flags)[0])


@_function("solve")
def solve(
    tx: TraceContext,
    a: object,
    b: object,
    lower: object = False,
    overwrite_a: object = False,
    overwrite_b: object = False,
    check_finite: object = True,
    assume_a: object = None,
    transposed: object = False,
) -> ArrayRef:
    _plain(overwrite_a or overwrite_b, check_finite)
    symmetric = assume_a in ("sym", "symmetric", "her", "hermitian", "pos", "positive definite")
    if transposed or not (symmetric or assume_a in (None, "gen", "general")):
        raise Unsupported("scipy.linalg.solve with these arguments")
    x, y = _operands(tx, a, b)
    if not same(_square(x), y.shape[0]):
        raise Unsupported("scipy.linalg.solve of shapes that do not fit")
    kind = 0 if not symmetric else 2 if assume_a in ("pos", "positive definite") else 1
    plain = assume_a is None
    return array_of(_call(tx, "solve", [x, y], [y.shape], kind, _flag(lower, "lower"), plain)[0])


@_function("inv")
def inv(
    tx: TraceContext, a: object, overwrite_a: object = False, check_finite: object = True, **kind: object
) -> ArrayRef:
    _plain(overwrite_a or kind, check_finite)
    (x,) = _operands(tx, a)
    n = _square(x)
    return array_of(_call(tx, "inv", [x], [(n, n)])[0])


@_function("det")
def det(tx: TraceContext, a: object, overwrite_a: object = False, check_finite: object = True) -> ArrayRef:
    _plain(overwrite_a, check_finite)
    (x,) = _operands(tx, a)
    _square(x)
    return value_of(_call(tx, "det", [x], [()])[0])


@_function("expm")
def expm(tx: TraceContext, A: object) -> ArrayRef:
    (x,) = _operands(tx, A)
    n = _square(x)
    return array_of(_call(tx, "expm", [x], [(n, n)])[0])


@_function("eigh")
def eigh(
    tx: TraceContext,
    a: object,
    b: object = None,
    *,
    lower: object = True,
    eigvals_only: object = False,
    check_finite: object = True,
    **more: object,
) -> Any:
    _plain(b is not None or more, check_finite)
    (x,) = _operands(tx, a)
    n = _square(x)
    values, vectors = _call(tx, "eigh", [x], [(n,), (n, n)], _flag(lower, "lower"))
    if _flag(eigvals_only, "eigvals_only"):
        raise Unsupported("scipy.linalg.eigh(eigvals_only=True)")
    return array_of(values), array_of(vectors)


# -- matrices of a few numbers ----------------------------------------------------------------------
def _gathered(tx: TraceContext, values: ArrayRef, places: np.ndarray[Any, Any]) -> ArrayRef:
    return take(tx, values, places)


def _vector(tx: TraceContext, value: object) -> tuple[ArrayRef, int]:
    ref = as_ref(tx, value)
    if ref.ndim != 1:
        raise Unsupported("a matrix of scipy.linalg made of an array that is no vector")
    found = array_of(flatten_view(tx, ref.var))
    (size,) = found.shape
    if not isinstance(size, int) or not size:
        raise Unsupported("a matrix of scipy.linalg of a symbolic size, or of none")
    return found, size


@_function("toeplitz")
def toeplitz(tx: TraceContext, c: object, r: object = None) -> ArrayRef:
    column, rows = _vector(tx, c)
    row, columns = (column, rows) if r is None else _vector(tx, r)
    if column.dtype.is_complex or row.dtype != column.dtype:
        raise Unsupported("scipy.linalg.toeplitz of complex numbers, or of two types")
    place = np.subtract.outer(np.arange(rows), np.arange(columns))
    both = concatenate(tx, (column, row), 0)
    return _gathered(tx, both, np.where(place >= 0, place, rows - place))


@_function("hankel")
def hankel(tx: TraceContext, c: object, r: object = None) -> ArrayRef:
    column, rows = _vector(tx, c)
    if r is None:
        raise Unsupported("scipy.linalg.hankel of one vector")
    row, columns = _vector(tx, r)
    if row.dtype != column.dtype:
        raise Unsupported("scipy.linalg.hankel of two types")
    place = np.add.outer(np.arange(rows), np.arange(columns))
    both = concatenate(tx, (column, row), 0)
    return _gathered(tx, both, np.where(place < rows, place, place + 1))


@_function("circulant")
def circulant(tx: TraceContext, c: object) -> ArrayRef:
    column, size = _vector(tx, c)
    return _gathered(tx, column, np.subtract.outer(np.arange(size), np.arange(size)) % size)
