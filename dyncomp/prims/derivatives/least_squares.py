"""``np.linalg.lstsq``: the solution ``x`` is the pseudoinverse of ``a`` times ``b``.

G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
variables separate" (1973). Where columns (of a matrix with fewer of them than rows) depend on each other, the
pseudoinverse is differentiable among matrices of the same rank only, and that is the derivative; in other
directions it jumps. Nothing of this needs distinct singular values, and all of it is made of solutions again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.ir import Ops, Var
from ..pointwise.partials import conjugate, total, zeros
from .matrices import _columns, _product, _turned, svdvals_jvp, svdvals_vjp

# singular values below this part of the largest are taken to be 0
_MOST_CUT = 1e-6
Options = tuple[tuple[str, Any], ...]


def _of_columns(ops: Ops, x: Var) -> Var:
    found: Var = ops.reshape(x, shape=(*x.shape, 1)) if x.ndim == 1 else x
    return found


def _solution(ops: Ops, a: Var, b: Var, options: Options) -> Var:
    """The pseudoinverse of ``a`` times columns."""
    (_, rcond), *_ = options
    if rcond is not None and rcond > _MOST_CUT:
        raise TypeError(
            f"no derivative of lstsq with rcond={rcond}, which cuts off singular values that may not be 0 "
            "(numpy.linalg.svd has one)"
        )
    found: Var = ops.library_call(
        a,
        b,
        function="least_squares",
        options=options,
        dtypes=(b.dtype,),
        shapes=((a.shape[1], b.shape[1]),),
    )
    return found


def _two(ops: Ops, a: Var, b: Var, c: Var, options: Options) -> tuple[Var, Var]:
    """Solutions of the columns of ``b`` and of ``c``, of one factorisation."""
    both = _solution(ops, a, ops.concatenate(b, c, axis=1), options)
    rows, cut = both.shape[0], b.shape[1]
    first = ops.strided_slice(both, starts=(0, 0), sizes=(rows, cut), steps=(1, 1))
    second = ops.strided_slice(both, starts=(0, cut), sizes=(rows, c.shape[1]), steps=(1, 1))
    return first, second


def vjp(
    ops: Ops,
    cts: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    options: Options,
    **_: object,
) -> tuple[Var | None, ...]:
    a, b = inputs
    columns, x = _of_columns(ops, b), _of_columns(ops, outputs[0])
    on_x, on_residuals, _rank, on_values = (*cts, None, None, None)[:4]
    left = ops.subtract(columns, ops.matmul(a, x))
    by_a: list[Var | None] = []
    by_b: list[Var | None] = []
    if on_x is not None:
        ct = _of_columns(ops, on_x)
        turned = _turned(ops, a)
        back, of_x = _two(ops, turned, ct, x, options)
        again, kept = _two(ops, a, back, ops.matmul(a, ct), options)
        by_b.append(back)
        by_a.append(ops.negative(_product(ops, back, _turned(ops, x))))
        by_a.append(_product(ops, left, _turned(ops, again)))
        by_a.append(_product(ops, of_x, _turned(ops, ops.subtract(ct, kept))))
    if on_residuals is not None and left.shape[0] > x.shape[0]:
        scaled = ops.multiply(left, _columns(ops, ops.add(on_residuals, on_residuals), left))
        by_b.append(scaled)
        by_a.append(ops.negative(_product(ops, scaled, _turned(ops, x))))
    if on_values is not None:
        by_a.append(svdvals_vjp(ops, (on_values,), inputs, ())[0])
    on_b = total(ops, by_b)
    return total(ops, by_a), None if on_b is None else ops.reshape(ops.contiguous(on_b), shape=b.shape)


def jvp(
    ops: Ops,
    tangents: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    options: Options,
    **_: object,
) -> Any:
    (a, b), (ta, tb) = inputs, tangents
    columns, x = _of_columns(ops, b), _of_columns(ops, outputs[0])
    left = ops.subtract(columns, ops.matmul(a, x))
    change = None if ta is None else ops.negative(ops.matmul(ta, x))
    change = total(ops, (change, None if tb is None else _of_columns(ops, tb)))
    if change is None:
        return None if len(outputs) == 1 else (None,) * len(outputs)
    if ta is None:
        moved = _solution(ops, a, change, options)
    else:
        turned = _turned(ops, ta)
        outside, of_x = _two(ops, _turned(ops, a), ops.matmul(turned, left), x, options)
        free = ops.matmul(turned, of_x)
        moved, kept = _two(ops, a, ops.add(change, outside), ops.matmul(a, free), options)
        moved = ops.add(moved, ops.subtract(free, kept))
    moved = ops.reshape(ops.contiguous(moved), shape=outputs[0].shape)
    if len(outputs) == 1:
        return moved
    rates = zeros(ops, outputs[1])
    if left.shape[0] > x.shape[0]:
        each = ops.multiply(conjugate(ops, left), ops.add(change, change))
        rates = ops.reduce_sum(ops.real(each) if each.dtype.is_complex else each, axes=(0,))
    return moved, rates, None, svdvals_jvp(ops, (ta,), inputs, ())
