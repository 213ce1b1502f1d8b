"""Products, running products and extremes, sorts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dtypes import int64
from ...graph.ir import Ops, Var
from ..composite.kit import spread
from ..pointwise.partials import conjugate, scalar, zeros
from .structure import flipped, put_along

Vars = Sequence[Var]
Tangents = Sequence[Var | None]


def _is_zero(ops: Ops, x: Var) -> Var:
    found: Var = ops.equal(x, zeros(ops, x))
    return found


def _product_slopes(ops: Ops, x: Var, axes: Sequence[int]) -> Var:
    """The product of all other elements of the extent, for each element."""
    is_zero = _is_zero(ops, x)
    one = scalar(ops, x, 1.0)
    others = ops.where(is_zero, one, x)
    product = spread(ops, ops.reduce_prod(others, axes=axes), x, axes)
    count = spread(ops, ops.reduce_sum(ops.convert(is_zero, dtype=int64), axes=axes), x, axes)
    none, single = (ops.equal(count, scalar(ops, count, n)) for n in (0, 1))
    at_zero = ops.where(ops.logical_and(single, is_zero), product, zeros(ops, x))
    found: Var = ops.where(none, ops.divide(product, others), at_zero)
    return found


def prod_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axes: Any) -> tuple[Var | None, ...]:
    (x,) = inputs
    slopes = conjugate(ops, _product_slopes(ops, x, axes))
    return (ops.multiply(spread(ops, cts[0], x, axes), slopes),)


def prod_jvp(ops: Ops, tangents: Tangents, inputs: Vars, outputs: Vars, *, axes: Any) -> Var | None:
    if tangents[0] is None:
        return None
    terms = ops.multiply(tangents[0], _product_slopes(ops, inputs[0], axes))
    found: Var = ops.reduce_sum(terms, axes=axes)
    return found


def _sum_from_here(ops: Ops, x: Var, axis: int) -> Var:
    found: Var = ops.copy(flipped(ops, ops.cumsum(flipped(ops, x, axis), axis=axis), axis))
    return found


def _zeros_seen(ops: Ops, x: Var, axis: int) -> tuple[Var, Var, Var]:
    """Whether an element is before the first zero, is it, and the elements with it replaced by one."""
    is_zero = _is_zero(ops, x)
    seen = ops.cumsum(ops.convert(is_zero, dtype=int64), axis=axis)
    before = ops.equal(seen, zeros(ops, seen))
    first = ops.logical_and(is_zero, ops.equal(seen, scalar(ops, seen, 1)))
    return before, first, ops.where(first, scalar(ops, x, 1.0), x)


def cumprod_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int) -> tuple[Var | None, ...]:
    (x,) = inputs
    before, first, replaced = _zeros_seen(ops, x, axis)
    divisor = ops.where(before, x, scalar(ops, x, 1.0))
    usual = _sum_from_here(ops, ops.multiply(cts[0], conjugate(ops, outputs[0])), axis)
    others = conjugate(ops, ops.cumprod(replaced, axis=axis))
    at_first = _sum_from_here(ops, ops.multiply(cts[0], others), axis)
    rest = ops.where(first, at_first, zeros(ops, x))
    return (ops.where(before, ops.divide(usual, conjugate(ops, divisor)), rest),)


def cumprod_jvp(ops: Ops, tangents: Tangents, inputs: Vars, outputs: Vars, *, axis: int) -> Var | None:
    (x,), (t,) = inputs, tangents
    if t is None:
        return None
    before, first, replaced = _zeros_seen(ops, x, axis)
    relative = ops.where(before, ops.divide(t, ops.where(before, x, scalar(ops, x, 1.0))), zeros(ops, x))
    usual = ops.multiply(outputs[0], ops.cumsum(relative, axis=axis))
    # beyond the first zero only its own tangent counts
    lone = ops.cumsum(ops.where(first, t, zeros(ops, x)), axis=axis)
    found: Var = ops.add(usual, ops.multiply(ops.cumprod(replaced, axis=axis), lone))
    return found


def _places(ops: Ops, x: Var, out: Var, axis: int) -> Var:
    """Where along the axis the running extreme of each position was found last."""
    place = ops.iota(shape=x.shape, axis=axis, dtype=int64, device=x.type.device)
    found: Var = ops.cummax(ops.where(ops.equal(x, out), place, zeros(ops, place)), axis=axis)
    return found


def running_extreme_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int
) -> tuple[Var | None, ...]:
    (x,) = inputs
    return (put_along(ops, zeros(ops, x), cts[0], _places(ops, x, outputs[0], axis), axis, "add"),)


def running_extreme_jvp(
    ops: Ops, tangents: Tangents, inputs: Vars, outputs: Vars, *, axis: int
) -> Var | None:
    if tangents[0] is None:
        return None
    places = _places(ops, inputs[0], outputs[0], axis)
    found: Var = ops.take_along_axis(tangents[0], places, axis=axis)
    return found


def sort_vjp(positions: str) -> Callable[..., tuple[Var | None, ...]]:
    def vjp(
        ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int, **params: object
    ) -> tuple[Var | None, ...]:
        (x,) = inputs
        order = getattr(ops, positions)(x, axis=axis, **params)
        return (put_along(ops, zeros(ops, x), cts[0], order, axis, "set"),)

    return vjp


def sort_jvp(positions: str) -> Callable[..., Var | None]:
    def jvp(
        ops: Ops, tangents: Tangents, inputs: Vars, outputs: Vars, *, axis: int, **params: object
    ) -> Var | None:
        if tangents[0] is None:
            return None
        order = getattr(ops, positions)(inputs[0], axis=axis, **params)
        found: Var = ops.take_along_axis(tangents[0], order, axis=axis)
        return found

    return jvp
