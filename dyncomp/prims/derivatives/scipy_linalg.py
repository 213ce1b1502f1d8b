"""Derivatives of routines of ``scipy.linalg`` that graphs call; those that are NumPy's, too, have its rules.

Triangular factors are taken as such: what is in the other triangle has no influence. Functions of matrices
by a theorem of R. Mathias, "A chain rule for matrix functions and applications" (1996):
``f([[A, E], [0, A]])`` is ``[[f(A), D], [0, f(A)]]``, ``D`` the derivative of ``f`` in the direction ``E``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dtypes import int64
from ...graph.ir import Callee, Ops, Var
from ..pointwise.partials import conjugate, total, zeros
from ..scipy_routines import Routine, routine_callee
from . import matrices
from .matrices import Cotangents, Maybe, Vars

adjoint, hermitian, product = matrices._turned, matrices._hermitian, matrices._product
solved, with_diagonal = matrices._solved, matrices._with_diagonal
Rule = Callable[..., Any]
Rules = tuple[Rule, Rule | None]
Found = Var | None
LIBRARY = "scipy.linalg"


def _call(ops: Ops, name: str, *inputs: Maybe, like: Var, **options: Any) -> Var:
    """A routine with one result of the shape and dtype of ``like``."""
    orders = (tuple(range(like.ndim)),)
    found: Var = ops.routine_call(
        *inputs,
        callee=routine_callee(LIBRARY, name, options, orders),
        numbers=(),
        dtypes=(like.dtype,),
        shapes=(like.shape,),
    )
    return found


def _triangle(ops: Ops, x: Var, lower: bool, strict: bool = False) -> Var:
    found: Var = ops.tril(x, k=-1 if strict else 0) if lower else ops.triu(x, k=1 if strict else 0)
    return found


def _outer(ops: Ops, x: Var, y: Var) -> Var:
    """``x @ y^H`` of columns or of a vector each."""
    if x.ndim == 1:
        found: Var = ops.outer(x, conjugate(ops, y))
        return found
    return product(ops, x, adjoint(ops, y))


def _solution_by_matrix(ops: Ops, by_right: Var, solution: Var) -> Var:
    """The cotangent of ``a`` in ``a @ solution == right``."""
    found: Var = ops.negative(_outer(ops, by_right, solution))
    return found


def _of_matrix(ops: Ops, x: Var, trans: int) -> Var:
    """Of a (co)tangent of a matrix that of its transpose (1) or conjugate transpose (2), and back."""
    if trans == 2:
        return adjoint(ops, x)
    found: Var = ops.copy(ops.transpose(x, perm=(1, 0))) if trans else x
    return found


# -- triangular systems ---------------------------------------------------------------------------
_ADJOINT = {0: 2, 1: 1, 2: 0}


def _adjoint_of(trans: int, is_complex: bool) -> int:
    if not is_complex:
        return 0 if trans else 1
    if trans == 1:
        raise TypeError("no derivative of the solution with the transpose of a complex matrix")
    return _ADJOINT[trans]


def triangular_vjp(
    ops: Ops,
    cts: Cotangents,
    inputs: Vars,
    outputs: Vars,
    *,
    trans: int,
    lower: bool,
    unit_diagonal: bool,
    check_finite: bool,
) -> Sequence[Found]:
    a, b = inputs
    (x,) = outputs
    form = {"lower": lower, "unit_diagonal": unit_diagonal, "check_finite": check_finite}
    turn = _adjoint_of(trans, a.dtype.is_complex)
    by_b = _call(ops, "solve_triangular", a, cts[0], like=b, trans=turn, **form)
    by_a = _of_matrix(ops, _solution_by_matrix(ops, by_b, x), trans)
    return _triangle(ops, by_a, lower, unit_diagonal), by_b


def triangular_jvp(
    ops: Ops,
    tangents: Cotangents,
    inputs: Vars,
    outputs: Vars,
    *,
    trans: int,
    lower: bool,
    unit_diagonal: bool,
    check_finite: bool,
) -> Maybe:
    (a, b), (ta, tb), (x,) = inputs, tangents, outputs
    moved = None
    if ta is not None:
        change = _of_matrix(ops, _triangle(ops, ta, lower, unit_diagonal), trans)
        moved = ops.negative(ops.matmul(change, x))
    right = total(ops, (moved, tb))
    if right is None:
        return None
    form = {"lower": lower, "unit_diagonal": unit_diagonal, "check_finite": check_finite}
    return _call(ops, "solve_triangular", a, right, like=b, trans=trans, **form)


# -- Cholesky -------------------------------------------------------------------------------------
def cholesky_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, lower: bool, check_finite: bool
) -> Sequence[Found]:
    return matrices.cholesky_vjp(ops, cts, inputs, outputs, upper=not lower)


def cholesky_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, lower: bool, check_finite: bool
) -> Maybe:
    return matrices.cholesky_jvp(ops, tangents, inputs, outputs, upper=not lower)


def cho_factor_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, lower: bool, check_finite: bool
) -> Sequence[Found]:
    """The other triangle of the result is the argument's."""
    (ct,) = cts
    assert ct is not None
    factor = _triangle(ops, outputs[0], lower)
    (inner,) = matrices.cholesky_vjp(ops, (_triangle(ops, ct, lower),), inputs, (factor,), upper=not lower)
    return (total(ops, (inner, _triangle(ops, ct, not lower, strict=True))),)


def cho_factor_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, lower: bool, check_finite: bool
) -> Maybe:
    (t,) = tangents
    if t is None:
        return None
    factor = _triangle(ops, outputs[0], lower)
    moved = matrices.cholesky_jvp(ops, tangents, inputs, (factor,), upper=not lower)
    return total(ops, (moved, _triangle(ops, t, not lower, strict=True)))


def cho_solve_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, lower: bool, check_finite: bool
) -> Sequence[Found]:
    factor, b = inputs
    by_b = _call(
        ops,
        "cho_solve",
        factor,
        cts[0],
        like=b,
        lower=lower,
        check_finite=check_finite,
    )
    by_matrix = _solution_by_matrix(ops, by_b, outputs[0])
    twice = ops.add(by_matrix, adjoint(ops, by_matrix))
    triangle = _triangle(ops, factor, lower)
    by_factor = product(ops, twice, triangle) if lower else product(ops, triangle, twice)
    return _triangle(ops, by_factor, lower), by_b


def cho_solve_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, lower: bool, check_finite: bool
) -> Maybe:
    (factor, b), (tf, tb), (x,) = inputs, tangents, outputs
    moved = None
    if tf is not None:
        half, change = _triangle(ops, factor, lower), _triangle(ops, tf, lower)
        pair = (change, adjoint(ops, half)) if lower else (adjoint(ops, change), half)
        part = product(ops, *pair)
        moved = ops.negative(ops.matmul(ops.add(part, adjoint(ops, part)), x))
    right = total(ops, (moved, tb))
    if right is None:
        return None
    return _call(ops, "cho_solve", factor, right, like=b, lower=lower, check_finite=check_finite)


# -- LU -------------------------------------------------------------------------------------------
def _permutation(ops: Ops, pivots: Var) -> Var:
    """Which rows of the matrix the factors are of, in order."""
    found: Var = ops.routine_call(
        pivots,
        callee=routine_callee(LIBRARY, "lu_permutation", {}, ((0,),)),
        numbers=(),
        dtypes=(int64,),
        shapes=(pivots.shape,),
    )
    return found


def _taken(ops: Ops, x: Var, rows: Var) -> Var:
    found: Var = ops.index(x, rows, dims=(0,), position=0)
    return found


def _lower_of(ops: Ops, factors: Var) -> Var:
    """The lower factor, whose diagonal is one."""
    diagonal = ops.full(shape=factors.shape[:1], value=1, dtype=factors.dtype, device=factors.type.device)
    return with_diagonal(ops, _triangle(ops, factors, True, strict=True), diagonal)


def lu_factor_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, check_finite: bool
) -> Sequence[Found]:
    factors, pivots = outputs
    ct = cts[0]
    if ct is None:
        return (None,)
    lower, upper = _lower_of(ops, factors), _triangle(ops, factors, False)
    on_lower = product(ops, adjoint(ops, lower), _triangle(ops, ct, True, strict=True))
    on_upper = product(ops, _triangle(ops, ct, False), adjoint(ops, upper))
    inner = ops.add(_triangle(ops, on_lower, True, strict=True), _triangle(ops, on_upper, False))
    left = solved(ops, adjoint(ops, lower), inner)
    by_rows = adjoint(ops, solved(ops, upper, adjoint(ops, left)))
    return (_taken(ops, by_rows, ops.argsort(_permutation(ops, pivots), axis=0)),)


def lu_solve_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, trans: int, check_finite: bool
) -> Sequence[Found]:
    factors, pivots, b = inputs
    turn = _adjoint_of(trans, factors.dtype.is_complex)
    by_b = _call(
        ops,
        "lu_solve",
        factors,
        pivots,
        cts[0],
        like=b,
        trans=turn,
        check_finite=check_finite,
    )
    by_matrix = _of_matrix(ops, _solution_by_matrix(ops, by_b, outputs[0]), trans)
    by_rows = _taken(ops, by_matrix, _permutation(ops, pivots))
    lower, upper = _lower_of(ops, factors), _triangle(ops, factors, False)
    on_lower = _triangle(ops, product(ops, by_rows, adjoint(ops, upper)), True, strict=True)
    on_upper = _triangle(ops, product(ops, adjoint(ops, lower), by_rows), False)
    return ops.add(on_lower, on_upper), None, by_b


# -- general systems --------------------------------------------------------------------------------
_SYMMETRIC = ("pos", "her", "sym")


def solve_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, assume_a: str, **options: object
) -> Sequence[Found]:
    by_a, by_b = matrices.solve_vjp(ops, cts, inputs, outputs)
    assert by_a is not None
    return hermitian(ops, by_a) if assume_a in _SYMMETRIC else by_a, by_b


def solve_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, assume_a: str, **options: object
) -> Maybe:
    ta, tb = tangents
    if ta is not None and assume_a in _SYMMETRIC:
        ta = hermitian(ops, ta)
    return matrices.solve_jvp(ops, (ta, tb), inputs, outputs)


# -- functions of matrices --------------------------------------------------------------------------
def _direction(ops: Ops, name: str, a: Var, direction: Maybe, options: Mapping[str, Any]) -> Var:
    n = a.shape[0]
    top = ops.concatenate(a, direction, axis=1)
    bottom = ops.concatenate(zeros(ops, a), a, axis=1)
    both = ops.contiguous(ops.concatenate(top, bottom, axis=0))
    found = _call(ops, name, both, like=both, **options)
    cut: Var = ops.strided_slice(found, starts=(0, n), sizes=(n, n), steps=(1, 1))
    made: Var = ops.contiguous(cut)
    return made


def _function_of_matrix(name: str) -> tuple[Rule, Rule]:
    def vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, **options: Any) -> Sequence[Found]:
        return (_direction(ops, name, adjoint(ops, inputs[0]), cts[0], options),)

    def jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, **options: Any) -> Maybe:
        return None if tangents[0] is None else _direction(ops, name, inputs[0], tangents[0], options)

    return vjp, jvp


# -- routines that are NumPy's, too -------------------------------------------------------------------
def _numpys(name: str, params: Callable[..., dict[str, Any]]) -> Rules:
    """The rules of a row, with its parameters made of the routine's options."""
    vjp, jvp = matrices.RULES[name]

    def of(rule: Rule) -> Rule:
        def run(ops: Ops, given: Cotangents, inputs: Vars, outputs: Vars, **options: Any) -> Any:
            return rule(ops, given, inputs, outputs, **params(**options))

        return run

    return of(vjp), None if jvp is None else of(jvp)


def _none(**options: Any) -> dict[str, Any]:
    return {}


def _uplo(*, lower: bool, **options: Any) -> dict[str, Any]:
    return {"uplo": "L" if lower else "U"}


def in_order(rules: Rules) -> Rules:
    """The rules for results as graphs have them: their axes in another order."""
    vjp, jvp = rules

    def opened(ops: Ops, values: Cotangents, callee: Callee) -> list[Var | None]:
        found = []
        for value, order in zip(values, _routine(callee).orders, strict=True):
            back = tuple(sorted(range(len(order)), key=order.__getitem__))
            found.append(None if value is None else _permuted(ops, value, back))
        return found

    def reverse(
        ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, callee: Callee, **params: object
    ) -> Any:
        results: Any = opened(ops, outputs, callee)
        return vjp(ops, opened(ops, cts, callee), inputs, results, **dict(_routine(callee).options))

    def forward(
        ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, callee: Callee, **params: object
    ) -> Any:
        assert jvp is not None
        results: Any = opened(ops, outputs, callee)
        found = jvp(ops, tangents, inputs, results, **dict(_routine(callee).options))
        several = found if isinstance(found, tuple) else (found,)
        made = [
            None if t is None else _permuted(ops, t, order)
            for t, order in zip(several, _routine(callee).orders, strict=True)
        ]
        return tuple(made) if isinstance(found, tuple) else made[0]

    return reverse, None if jvp is None else forward


def _routine(callee: Callee) -> Routine:
    found = callee.function
    assert isinstance(found, Routine)
    return found


def _permuted(ops: Ops, x: Var, order: tuple[int, ...]) -> Var:
    if order == tuple(range(len(order))):
        return x
    found: Var = ops.copy(ops.transpose(x, perm=order))
    return found


_RULES: dict[str, Rules] = {
    "cholesky": (cholesky_vjp, cholesky_jvp),
    "cho_factor": (cho_factor_vjp, cho_factor_jvp),
    "cho_solve": (cho_solve_vjp, cho_solve_jvp),
    "solve_triangular": (triangular_vjp, triangular_jvp),
    "lu_factor": (lu_factor_vjp, None),
    "lu_solve": (lu_solve_vjp, None),
    "solve": (solve_vjp, solve_jvp),
    "inv": _numpys("inv", _none),
    "det": _numpys("det", _none),
    "eigh": _numpys("eigh", _uplo),
    "eigvalsh": _numpys("eigvalsh", _uplo),
    "svd": _numpys("svd", lambda full_matrices, **options: {"full_matrices": full_matrices}),
    "svdvals": _numpys("svdvals", _none),
    "qr": _numpys("qr", lambda mode, **options: {"mode": "reduced" if mode == "economic" else "complete"}),
    "expm": _function_of_matrix("expm"),
    "logm": _function_of_matrix("logm"),
    "sqrtm": _function_of_matrix("sqrtm"),
}
RULES: Mapping[str, Rules] = {f"{LIBRARY}.{name}": in_order(rules) for name, rules in _RULES.items()}
