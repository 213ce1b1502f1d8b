"""``scipy.linalg``'s routines as nodes (``routine_call``), and their derivatives: formulas of ops and of such
routines. Matrices are real. A routine's results in the order of FORTRAN are given transposed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...graph.ir import Callee, Ops, Var
from ..pointwise.partials import total
from . import matrices

Vars = Sequence[Var]
Array = np.ndarray[Any, Any]
Numbers = tuple[int, ...]
Rule = Callable[..., Any]


@dataclass(frozen=True)
class Routine:
    """``run(library, arrays, numbers)`` gives the results, ``vjp`` and ``jvp`` are as those of rows, with
    ``numbers`` behind; inputs and outputs are to them as the library has them."""

    name: str
    fortran: bool

    def __call__(self, arrays: Sequence[Array], numbers: Numbers) -> tuple[Array, ...]:
        found = _RUN[self.name](sys.modules["scipy.linalg"], arrays, numbers)
        results = found if isinstance(found, tuple) else (found,)
        return tuple(np.asarray(r).T for r in results) if self.fortran else results

    @property
    def rules(self) -> tuple[Rule, Rule]:
        return _RULES[self.name]


def _solve(library: Any, arrays: Sequence[Array], numbers: Numbers) -> Array:
    kind, lower, plain = numbers
    assumed = None if plain else ("gen", "sym", "pos")[kind]
    found: Array = library.solve(*arrays, lower=bool(lower), assume_a=assumed)
    return found


def _solve_triangular(library: Any, arrays: Sequence[Array], numbers: Numbers) -> Array:
    trans, lower, unit = numbers
    found: Array = library.solve_triangular(*arrays, trans=trans, lower=bool(lower), unit_diagonal=bool(unit))
    return found


_RUN: Mapping[str, Callable[[Any, Sequence[Array], Numbers], Any]] = {
    "cholesky": lambda library, arrays, numbers: library.cholesky(*arrays, lower=bool(numbers[0])),
    "solve_triangular": _solve_triangular,
    "solve": _solve,
    "inv": lambda library, arrays, numbers: library.inv(*arrays),
    "det": lambda library, arrays, numbers: library.det(*arrays),
    "expm": lambda library, arrays, numbers: library.expm(*arrays),
    "eigh": lambda library, arrays, numbers: library.eigh(*arrays, lower=bool(numbers[0])),
}
_FORTRAN = frozenset(("cholesky", "solve_triangular", "eigh"))
ROUTINES: Mapping[str, Routine] = {name: Routine(name, name in _FORTRAN) for name in _RUN}


def _turned(ops: Ops, x: Var) -> Var:
    return matrices._turned(ops, x) if x.ndim == 2 else x


def _call(ops: Ops, name: str, inputs: Vars, shape: tuple[Any, ...], numbers: Numbers) -> Var:
    """A routine with one result, as the library gives it."""
    routine = ROUTINES[name]
    made: Var = ops.routine_call(
        *inputs,
        callee=Callee(routine, f"scipy.linalg.{name}", (), (), None, f"scipy.linalg.{name}"),
        numbers=numbers,
        dtypes=(inputs[0].dtype,),
        shapes=(shape[::-1] if routine.fortran else shape,),
    )
    return _turned(ops, made) if routine.fortran else made


def _outer(ops: Ops, x: Var, y: Var) -> Var:
    found: Var = ops.outer(x, y) if x.ndim == 1 else ops.matmul(x, _turned(ops, y))
    return found


# -- rules ----------------------------------------------------------------------------------------
def _triangle(ops: Ops, x: Var, numbers: Numbers) -> Var:
    _, lower, unit = numbers
    found: Var = ops.tril(x, k=-unit) if lower else ops.triu(x, k=unit)
    return found


def _triangular_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, numbers: Numbers) -> tuple[Var, ...]:
    trans, lower, unit = numbers
    (a, b), (x,) = inputs, outputs
    by_b = _call(ops, "solve_triangular", (a, cts[0]), b.shape, (1 - trans, lower, unit))
    by_a = _outer(ops, x, by_b) if trans else _outer(ops, by_b, x)
    return ops.negative(_triangle(ops, by_a, numbers)), by_b


def _triangular_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, numbers: Numbers
) -> Var | None:
    (a, b), (ta, tb), (x,) = inputs, tangents, outputs
    moved = None
    if ta is not None:
        inner = _triangle(ops, ta, numbers)
        moved = ops.negative(ops.matmul(_turned(ops, inner) if numbers[0] else inner, x))
    right = total(ops, (moved, tb))
    return None if right is None else _call(ops, "solve_triangular", (a, right), b.shape, numbers)


def _solve_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, numbers: Numbers) -> tuple[Var, ...]:
    (a, b), (x,) = inputs, outputs
    symmetric = numbers[0]
    by_b = _call(ops, "solve", (a if symmetric else _turned(ops, a), cts[0]), b.shape, numbers)
    by_a = ops.negative(_outer(ops, by_b, x))
    return matrices._hermitian(ops, by_a) if symmetric else by_a, by_b


def _solve_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, numbers: Numbers
) -> Var | None:
    (a, b), (ta, tb), (x,) = inputs, tangents, outputs
    if ta is not None and numbers[0]:
        ta = matrices._hermitian(ops, ta)
    right = total(ops, (None if ta is None else ops.negative(ops.matmul(ta, x)), tb))
    return None if right is None else _call(ops, "solve", (a, right), b.shape, numbers)


def _exponential_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, numbers: Numbers) -> tuple[Var, ...]:
    """N. J. Higham, "Functions of Matrices", 3.16: the derivative is a block of a larger exponential."""
    return (_moved_exponential(ops, _turned(ops, inputs[0]), cts[0]),)


def _exponential_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, numbers: Numbers
) -> Var | None:
    return None if tangents[0] is None else _moved_exponential(ops, inputs[0], tangents[0])


def _moved_exponential(ops: Ops, x: Var, direction: Var) -> Var:
    n = x.shape[0]
    above = ops.concatenate(x, direction, axis=1)
    under = ops.concatenate(ops.subtract(x, x), x, axis=1)
    both = _call(ops, "expm", (ops.concatenate(above, under, axis=0),), (2 * n, 2 * n), ())
    found: Var = ops.copy(ops.strided_slice(both, starts=(0, n), sizes=(n, n), steps=(1, 1)))
    return found


def _as_row(vjp: Rule, jvp: Rule, names: tuple[str, ...] = ()) -> tuple[Rule, Rule]:
    """The rules of a row, with the parameters ``names`` made of ``numbers``."""

    def params(numbers: Numbers) -> dict[str, Any]:
        return {"upper": not numbers[0]} if "upper" in names else {"uplo": "UL"[numbers[0]]} if names else {}

    return (
        lambda ops, cts, inputs, outputs, numbers: vjp(ops, cts, inputs, outputs, **params(numbers)),
        lambda ops, ts, inputs, outputs, numbers: jvp(ops, ts, inputs, outputs, **params(numbers)),
    )


_RULES: Mapping[str, tuple[Rule, Rule]] = {
    "cholesky": _as_row(matrices.cholesky_vjp, matrices.cholesky_jvp, ("upper",)),
    "solve_triangular": (_triangular_vjp, _triangular_jvp),
    "solve": (_solve_vjp, _solve_jvp),
    "inv": _as_row(matrices.inv_vjp, matrices.inv_jvp),
    "det": _as_row(matrices.det_vjp, matrices.det_jvp),
    "expm": (_exponential_vjp, _exponential_jvp),
    "eigh": _as_row(matrices.eigh_vjp, matrices.eigh_jvp, ("uplo",)),
}


def vjp(
    ops: Ops, routine: Routine, cts: Sequence[Var | None], inputs: Vars, outputs: Vars, numbers: Numbers
) -> tuple[Var | None, ...]:
    turn = routine.fortran
    found: tuple[Var | None, ...] = routine.rules[0](
        ops,
        [ct if ct is None or not turn else _turned(ops, ct) for ct in cts],
        inputs,
        [_turned(ops, out) if turn else out for out in outputs],
        numbers,
    )
    return found


def jvp(
    ops: Ops, routine: Routine, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, numbers: Numbers
) -> Any:
    turn = routine.fortran
    given = [_turned(ops, out) if turn else out for out in outputs]
    found = routine.rules[1](ops, tangents, inputs, given, numbers)
    if not turn or found is None:
        return found
    if isinstance(found, tuple):
        return tuple(None if t is None else _turned(ops, t) for t in found)
    return _turned(ops, found)
