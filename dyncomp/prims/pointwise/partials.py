"""Partial derivatives of pointwise rows, from which both directions follow.

``vjp`` multiplies each by the cotangent, ``jvp`` sums partial times tangent. A ``None`` partial or cotangent
is zero (or refused: ``OpDef.no_derivative_by``). A partial that chooses is a function of the (co)tangent: an
infinite one is not multiplied by 0. Functions of complex numbers with partials are holomorphic (the others
have rules of their own); integer operands raise ``TypeError``. At kinks (ties of ``maximum``) the mean of the
two sides is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...graph.ir import Ops, Var
from ...symbolic.integers import Dim

Vars = Sequence[Var]
Partial = Var | Callable[[Var], Var] | None
Partials = Callable[[Any, Vars, Var], Sequence[Partial]]


class Unknown:
    """In place of a cotangent or a partial derivative that there is no formula for, and why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def scalar(ops: Ops, x: Var, value: float | Dim) -> Var:
    """``value`` broadcast to the shape of ``x``."""
    number = ops.full(shape=(), value=value, dtype=x.dtype, device=x.type.device)
    return ops.broadcast_in_dim(number, shape=x.shape, dims=())


def zeros(ops: Ops, x: Var) -> Var:
    return ops.full(shape=x.shape, value=0, dtype=x.dtype, device=x.type.device)


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


class Constant:
    """Partial derivatives that are numbers."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def __call__(self, ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
        return tuple(scalar(ops, x, v) if v else None for x, v in zip(inputs, self.values))


def constant(*values: float) -> Partials:
    return Constant(*values)


def times(ops: Ops, x: Var, value: float) -> Var | None:
    """``x`` times a number; ``None`` for nothing."""
    if value == 1:
        return x
    if value == -1:
        found: Var = ops.negative(x)
        return found
    made: Var = ops.multiply(x, scalar(ops, x, value))
    return made if value else None


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


def zeta(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    """By ``q``: -x zeta(x + 1, q)"""
    x, q = inputs
    return None, ops.negative(ops.multiply(x, ops.zeta(ops.add(x, scalar(ops, x, 1.0)), q)))


def betainc(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
    """By ``x``: x**(a-1) (1-x)**(b-1) gamma(a+b) / (gamma(a) gamma(b))"""
    a, b, x = inputs
    zero, one = zeros(ops, x), scalar(ops, x, 1.0)
    log = ops.subtract(ops.lgamma(ops.add(a, b)), ops.add(ops.lgamma(a), ops.lgamma(b)))
    for parameter, of in ((a, ops.log(x)), (b, ops.log1p(ops.negative(x)))):
        power = ops.subtract(parameter, one)
        term = ops.where(ops.equal(power, zero), zero, ops.multiply(power, of))  # x**0 is 1 for 0, too
        log = ops.add(log, term)
    return None, None, ops.exp(log)


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
    return tuple(ops.divide(v, out) for v in inputs)


def extreme(larger: str) -> Partials:
    """1 for the operand chosen, a half each for ties."""

    def partials(ops: Ops, inputs: Vars, out: Var) -> Sequence[Partial]:
        x, y = inputs
        tie = ops.equal(x, y)
        first = getattr(ops, larger)(x, y)

        def shared(t: Var) -> Var:
            found: Var = ops.where(tie, ops.multiply(t, scalar(ops, t, 0.5)), t)
            return found

        return (
            lambda t: ops.where(ops.logical_or(tie, first), shared(t), zeros(ops, t)),
            lambda t: ops.where(first, zeros(ops, t), shared(t)),
        )

    return partials


def chosen(ops: Ops, mask: Var) -> Callable[[Var], Var]:
    """1 where the mask is true, else 0."""
    return lambda t: ops.where(mask, t, zeros(ops, t))


def left_out(ops: Ops, mask: Var) -> Callable[[Var], Var]:
    """0 where the mask is true, else 1."""
    return lambda t: ops.where(mask, zeros(ops, t), t)


def relu(ops: Ops, inputs: Vars, out: Var) -> Sequence[Partial]:
    """0 at 0; NaN goes through."""
    return (left_out(ops, ops.less_equal(out, zeros(ops, out))),)


def where(ops: Ops, inputs: Vars, out: Var) -> Sequence[Partial]:
    return None, chosen(ops, inputs[0]), left_out(ops, inputs[0])


def clip(ops: Ops, inputs: Vars, out: Var) -> Sequence[Partial]:
    x, lo, hi = inputs
    low = ops.less(x, lo)
    above = ops.greater(ops.maximum(x, lo), hi)
    floor = ops.logical_and(low, ops.logical_not(above))
    return left_out(ops, ops.logical_or(low, above)), chosen(ops, floor), chosen(ops, above)


def logaddexp(exp: str) -> Partials:
    def partials(ops: Ops, inputs: Vars, out: Var) -> Sequence[Var | None]:
        return tuple(getattr(ops, exp)(ops.subtract(v, out)) for v in inputs)

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


def _times(ops: Ops, ct: Var, slope: Var | Callable[[Var], Var]) -> Var:
    found: Var = slope(ct) if callable(slope) else ops.multiply(ct, conjugate(ops, slope))
    return found


def _along(ops: Ops, t: Var | None, slope: Partial) -> Var | None:
    if t is None or slope is None:
        return None
    found: Var = slope(t) if callable(slope) else ops.multiply(t, slope)
    return found


def pointwise_vjp(partials: Partials) -> Callable[..., tuple[Var | None, ...]]:
    def vjp(
        ops: Ops, cotangents: Vars, inputs: Vars, outputs: Vars, **params: object
    ) -> tuple[Var | None, ...]:
        require_inexact(inputs)
        (ct,) = cotangents
        if isinstance(partials, Constant):
            return tuple(times(ops, ct, value) for _, value in zip(inputs, partials.values))
        slopes = partials(ops, inputs, outputs[0])
        return tuple(None if d is None else _times(ops, ct, d) for d in slopes)

    return vjp


def pointwise_jvp(partials: Partials) -> Callable[..., Var | None]:
    def jvp(
        ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
    ) -> Var | None:
        require_inexact(inputs)
        if isinstance(partials, Constant):
            given = zip(tangents, partials.values)
            return total(ops, (None if t is None else times(ops, t, value) for t, value in given))
        pairs = zip(tangents, partials(ops, inputs, outputs[0]))
        return total(ops, (_along(ops, t, d) for t, d in pairs))

    return jvp
