"""Parts of complex numbers, absolute values, and conversions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.ir import Ops, Var
from ..pointwise.partials import scalar, zeros

Vars = Sequence[Var]


def conj_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    return (ops.conj(cts[0]),)


def conj_jvp(ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars) -> Var | None:
    return None if tangents[0] is None else ops.conj(tangents[0])


def real_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    if not inputs[0].dtype.is_complex:
        return (cts[0],)
    return (ops.complex(cts[0], zeros(ops, cts[0])),)


def real_jvp(ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars) -> Var | None:
    return None if tangents[0] is None else ops.real(tangents[0])


def imag_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    if not inputs[0].dtype.is_complex:
        return (None,)
    return (ops.complex(zeros(ops, cts[0]), cts[0]),)


def imag_jvp(ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars) -> Var | None:
    return None if tangents[0] is None else ops.imag(tangents[0])


def complex_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    return ops.real(cts[0]), ops.imag(cts[0])


def complex_jvp(ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars) -> Var | None:
    if all(t is None for t in tangents):
        return None
    parts = (zeros(ops, x) if t is None else t for t, x in zip(tangents, inputs))
    found: Var = ops.complex(*parts)
    return found


def _direction(ops: Ops, x: Var, size: Var) -> tuple[Var, Var]:
    """Real and imaginary part of ``x / abs(x)``, 0 at 0."""
    is_zero = ops.equal(size, zeros(ops, size))
    divisor = ops.where(is_zero, scalar(ops, size, 1.0), size)
    return ops.divide(ops.real(x), divisor), ops.divide(ops.imag(x), divisor)


def abs_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    (x,) = inputs
    if not x.dtype.is_complex:
        return (ops.multiply(cts[0], ops.sign(x)),)
    re, im = _direction(ops, x, outputs[0])
    return (ops.complex(ops.multiply(cts[0], re), ops.multiply(cts[0], im)),)


def abs_jvp(ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars) -> Var | None:
    (x,), (t,) = inputs, tangents
    if t is None:
        return None
    if not x.dtype.is_complex:
        found: Var = ops.multiply(t, ops.sign(x))
        return found
    re, im = _direction(ops, x, outputs[0])
    return ops.add(ops.multiply(ops.real(t), re), ops.multiply(ops.imag(t), im))  # type: ignore[no-any-return]


def angle_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    (x,) = inputs
    if not x.dtype.is_complex:
        return (None,)
    turn = _turn(ops, x)
    return (ops.complex(*(ops.multiply(cts[0], part) for part in turn)),)


def angle_jvp(ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars) -> Var | None:
    (x,), (t,) = inputs, tangents
    if t is None or not x.dtype.is_complex:
        return None
    re, im = _turn(ops, x)
    return ops.add(ops.multiply(ops.real(t), re), ops.multiply(ops.imag(t), im))  # type: ignore[no-any-return]


def _turn(ops: Ops, x: Var) -> tuple[Var, Var]:
    """Derivatives of the angle by real and imaginary part."""
    re, im = ops.real(x), ops.imag(x)
    square = ops.add(ops.square(re), ops.square(im))
    return ops.negative(ops.divide(im, square)), ops.divide(re, square)


def convert_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, dtype: Any) -> tuple[Var | None, ...]:
    (x,) = inputs
    if not x.dtype.is_inexact or not dtype.is_inexact:
        return (None,)
    return (ops.convert(cts[0], dtype=x.dtype),)


def convert_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, *, dtype: Any
) -> Var | None:
    if tangents[0] is None or not dtype.is_inexact:
        return None
    found: Var = ops.convert(tangents[0], dtype=dtype)
    return found


def sign_rule(ops: Ops, given: Sequence[Var | None], inputs: Vars, outputs: Vars) -> Var | None:
    """The derivative of ``x / abs(x)``, which is its own adjoint: what is across ``x``, over ``abs(x)``."""
    (x,), (t,) = inputs, given
    if t is None or not x.dtype.is_complex:
        return None
    sign = outputs[0]
    along = ops.real(ops.multiply(ops.conj(sign), t))
    across = ops.subtract(t, ops.multiply(sign, ops.complex(along, zeros(ops, along))))
    size = ops.abs(x)
    is_zero = ops.equal(size, zeros(ops, size))
    rate = ops.where(
        is_zero, zeros(ops, size), ops.reciprocal(ops.where(is_zero, scalar(ops, size, 1.0), size))
    )
    found: Var = ops.multiply(across, ops.complex(rate, zeros(ops, rate)))
    return found


def sign_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    return (sign_rule(ops, cts, inputs, outputs),)
