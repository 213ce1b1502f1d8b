"""Partial derivatives of pointwise rows, from which both directions follow.

``vjp`` multiplies each by the cotangent, ``jvp`` sums partial times tangent. A ``None`` partial or cotangent
is zero. Functions of complex numbers with partials are holomorphic (the others have rules of their own);
integer operands raise ``TypeError``. At kinks (ties of ``maximum``) the mean of the two sides is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...dataclass import dataclass
from ...graph.ir import Ops, Var, same_shape
from ...symbolic.integers import Dim

Vars = Sequence[Var]
Partials = Callable[[Any, Vars, Var], Sequence[Var | None]]


@dataclass(frozen=True)
class Unknown:
    """In place of a cotangent: there is none, and who needs it is told why."""

    reason: str


def scalar(ops: Ops, x: Var, value: float | Dim) -> Var:
    """``value`` broadcast to the shape of ``x``."""
    number = ops.full(shape=(), value=value, dtype=x.dtype, device=x.type.device)
    return ops.broadcast_in_dim(number, shape=x.shape, dims=())


def zeros(ops: Ops, x: Var) -> Var:
    return ops.full(shape=x.shape, value=0, dtype=x.dtype, device=x.type.device)


def in_sizes_of(ops: Ops, derivative: Var, of: Var) -> Var:
    """A derivative in the very sizes of its value. Of equal sizes that have two symbols, as those of a square
    matrix, rules give either."""
    if same_shape(derivative.shape, of.shape) or derivative.ndim != of.ndim:
        return derivative
    if not all(a == b for a, b in zip(derivative.shape, of.shape)):
        return derivative
    starts, steps = (0,) * of.ndim, (1,) * of.ndim
    found: Var = ops.copy(ops.strided_slice(derivative, starts=starts, sizes=of.shape, steps=steps))
    return found


def conjugate(ops: Ops, x: Var) -> Var:
    """The conjugate of a complex value; a real one itself, of which the op would make a copy."""
    found: Var = ops.conj(x) if x.dtype.is_complex else x
    return found


def total(ops: Ops, terms: Iterable[Var | None]) -> Var | None:
    """The sum of those that are not ``None``."""
    found: Var | None = None
    for term in terms:
        if term is not None:
            found = term if found is None else ops.add(found, term)
    return found


def require_inexact(values: Vars) -> None:
    for v in values:
        if not v.dtype.is_inexact and not v.dtype.is_bool:
            raise TypeError(f"no derivative for {v.dtype}")


def of_x(fn: Callable[[Any, Var, Var], Var]) -> Partials:
    def partials(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
        return (fn(ops, inputs[0], out),)

    return partials


def constant(*values: float) -> Partials:
    def partials(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
        return tuple(scalar(ops, x, v) if v else None for x, v in zip(inputs, values))

    return partials


def over_root(sign: float, of: Callable[[Any, Var, Var], Var]) -> Partials:
    """sign / sqrt(of(one, x*x))"""

    def fn(ops: Ops, x: Var, out: Var) -> Var:
        return ops.divide(scalar(ops, x, sign), ops.sqrt(of(ops, scalar(ops, x, 1.0), ops.square(x))))

    return of_x(fn)


def less(ops: Ops, a: Var, b: Var) -> Var:
    return ops.subtract(a, b)


def minus_one(ops: Ops, one: Var, square: Var) -> Var:
    return ops.subtract(square, one)


def more(ops: Ops, a: Var, b: Var) -> Var:
    return ops.add(a, b)


def log(base: float) -> Partials:
    return of_x(lambda ops, x, out: ops.reciprocal(ops.multiply(x, scalar(ops, x, math.log(base)))))


def gauss(sign: float) -> Partials:
    """sign * 2/sqrt(pi) * exp(-x*x)"""

    def fn(ops: Ops, x: Var, out: Var) -> Var:
        bell = ops.exp(ops.negative(ops.square(x)))
        return ops.multiply(scalar(ops, x, sign * 2.0 / math.sqrt(math.pi)), bell)

    return of_x(fn)


def bessel_i1(ops: Ops, x: Var, out: Var) -> Var:
    """I0(x) - I1(x)/x, and 1/2 at zero."""
    is_zero = ops.equal(x, zeros(ops, x))
    divisor = ops.where(is_zero, scalar(ops, x, 1.0), x)
    away = ops.subtract(ops.i0(x), ops.divide(out, divisor))
    return ops.where(is_zero, scalar(ops, x, 0.5), away)


def one_minus_square(ops: Ops, x: Var, out: Var) -> Var:
    return ops.subtract(scalar(ops, x, 1.0), ops.square(out))


def one_plus_square(ops: Ops, x: Var, out: Var) -> Var:
    return ops.add(scalar(ops, x, 1.0), ops.square(out))


def multiply(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    return inputs[1], inputs[0]


def divide(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    return ops.reciprocal(inputs[1]), ops.negative(ops.divide(out, inputs[1]))


def power(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    x, y = inputs
    first = ops.multiply(y, ops.power(x, ops.subtract(y, scalar(ops, y, 1.0))))
    zero = scalar(ops, x, 0.0)
    # 0**0 has no slope in x, and out is 0 where x is
    first = ops.where(ops.equal(y, zero), zero, first)
    log = ops.log(ops.where(ops.equal(x, zero), scalar(ops, x, 1.0), x))
    return first, ops.multiply(out, log)


def arctan2(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    y, x = inputs
    square = ops.add(ops.square(x), ops.square(y))
    return ops.divide(x, square), ops.negative(ops.divide(y, square))


def hypot(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    """0 at the origin."""
    length = ops.where(ops.equal(out, zeros(ops, out)), scalar(ops, out, 1.0), out)
    return tuple(ops.divide(v, length) for v in inputs)


def extreme(larger: str) -> Partials:
    """1 for the operand chosen, a half each for ties."""

    def partials(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
        x, y = inputs
        tie = ops.equal(x, y)
        half, one, zero = (scalar(ops, x, v) for v in (0.5, 1.0, 0.0))
        first = ops.where(tie, half, ops.where(getattr(ops, larger)(x, y), one, zero))
        return first, ops.subtract(one, first)

    return partials


def where(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    one = scalar(ops, out, 1.0)
    zero = scalar(ops, out, 0.0)
    return None, ops.where(inputs[0], one, zero), ops.where(inputs[0], zero, one)


def clip(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    x, lo, hi = inputs
    one = scalar(ops, x, 1.0)
    zero = scalar(ops, x, 0.0)
    low = ops.less(x, lo)
    above = ops.greater(ops.maximum(x, lo), hi)
    inside = ops.logical_not(ops.logical_or(low, above))
    floor = ops.logical_and(low, ops.logical_not(above))
    return ops.where(inside, one, zero), ops.where(floor, one, zero), ops.where(above, one, zero)


def logaddexp(exp: str) -> Partials:
    """``exp(v - out)``; of infinities that are equal the difference is 0, not NaN."""

    def partials(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
        found = []
        for v in inputs:
            below = ops.where(ops.equal(v, out), scalar(ops, out, 0.0), ops.subtract(v, out))
            found.append(getattr(ops, exp)(below))
        return tuple(found)

    return partials


def heaviside(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    """Of ``h`` at 0."""
    is_zero = ops.equal(inputs[0], zeros(ops, inputs[0]))
    return None, ops.convert(is_zero, dtype=inputs[1].dtype)


def copysign(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    x, y = inputs
    return ops.multiply(ops.sign(x), ops.copysign(scalar(ops, x, 1.0), y)), None


def remainder(rounding: str) -> Partials:
    def partials(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
        quotient = getattr(ops, rounding)(ops.divide(*inputs))
        return scalar(ops, out, 1.0), ops.negative(quotient)

    return partials


ZERO = constant(0.0, 0.0)


def pointwise_vjp(partials: Partials) -> Callable[..., tuple[Var | None, ...]]:
    def vjp(
        ops: Ops, cotangents: Vars, inputs: Vars, outputs: Vars, **params: object
    ) -> tuple[Var | None, ...]:
        require_inexact(inputs)
        (ct,) = cotangents
        slopes = partials(ops, inputs, outputs[0])
        return tuple(None if d is None else ops.multiply(ct, conjugate(ops, d)) for d in slopes)

    return vjp


def pointwise_jvp(partials: Partials) -> Callable[..., Var | None]:
    def jvp(
        ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
    ) -> Var | None:
        require_inexact(inputs)
        pairs = zip(tangents, partials(ops, inputs, outputs[0]))
        return total(ops, (None if t is None or d is None else ops.multiply(t, d) for t, d in pairs))

    return jvp
