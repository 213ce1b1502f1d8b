"""Activations made of clamps and of other activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import Unsupported
from ...graph.ir import Var
from ..base import ArrayRef, TraceContext
from .functional import real_tensor
from .gradients import requires, where_true, with_gradient
from .normalization import per_channel
from .operands import axis_of, contiguous, convert, fitting, need_tensor, pointwise, tensor, to_var, write
from .reductions import widened
from .shape import slice_axis
from .torch_rules import RuleTable

TABLE = RuleTable()


class _Pointwise:
    """Arithmetic on one tensor, half precision computed in float32 and rounded once."""

    def __init__(self, tx: TraceContext, x: Var) -> None:
        self.tx = tx
        self.x = x

    def __call__(self, op: str, *operands: Any) -> Var:
        ready = [v if isinstance(v, Var) else to_var(self.tx, float(v), self.x.dtype) for v in operands]
        return pointwise(self.tx, op, *ready)

    def clamped(self, x: Var, low: float, high: float, at_nan: float = 1.0) -> Var:
        """By torch's derivative, which is 0 on the bounds."""
        out = self("minimum", self("maximum", x, low), high)
        if not requires(self.tx, x):
            return out
        if at_nan:
            outside = self("logical_or", self("less_equal", x, low), self("greater_equal", x, high))
            inside = self("logical_not", outside)
        else:
            inside = self("logical_and", self("greater", x, low), self("less", x, high))
        return with_gradient(self.tx, out, (x, where_true(self.tx, inside)))


Body = Callable[[_Pointwise, Var], Var]


def _apply(tx: TraceContext, input: object, body: Body, inplace: object = False) -> ArrayRef:
    x = real_tensor(input)
    wide = widened(tx, x.var)
    out = convert(tx, body(_Pointwise(tx, wide), wide), x.dtype)
    return write(tx, input, out) if inplace else tensor(out)


def _number(value: object, name: str) -> float:
    if not isinstance(value, (int, float)):
        raise Unsupported(f"{name} that is not a number")
    return float(value)


@TABLE.function("F.hardtanh")
def hardtanh(
    tx: TraceContext, input: object, min_val: object = -1.0, max_val: object = 1.0, inplace: object = False
) -> ArrayRef:
    low, high = _number(min_val, "min_val"), _number(max_val, "max_val")
    if low > high:
        raise Unsupported("min_val cannot be greater than max_val")
    for bound in (low, high):
        fitting(bound, real_tensor(input).dtype)
    return _apply(tx, input, lambda e, x: e.clamped(x, low, high), inplace)


@TABLE.function("F.relu6")
def relu6(tx: TraceContext, input: object, inplace: object = False) -> ArrayRef:
    return _apply(tx, input, lambda e, x: e.clamped(x, 0.0, 6.0), inplace)


def _gate(e: _Pointwise, x: Var) -> Var:
    """``relu6(x + 3) / 6``."""
    return e("divide", e.clamped(e("add", x, 3.0), 0.0, 6.0, at_nan=0.0), 6.0)


@TABLE.function("F.hardsigmoid")
def hardsigmoid(tx: TraceContext, input: object, inplace: object = False) -> ArrayRef:
    return _apply(tx, input, _gate, inplace)


@TABLE.function("F.hardswish")
def hardswish(tx: TraceContext, input: object, inplace: object = False) -> ArrayRef:
    def body(e: _Pointwise, x: Var) -> Var:
        return e("divide", e("multiply", x, e.clamped(e("add", x, 3.0), 0.0, 6.0)), 6.0)

    return _apply(tx, input, body, inplace)


def _softplus(e: _Pointwise, x: Var) -> Var:
    """``log(1 + exp(x))``, ``x`` itself from 20 on."""
    return e("where", e("greater", x, 20.0), x, e("log1p", e("exp", x)))


@TABLE.function("F.mish")
def mish(tx: TraceContext, input: object, inplace: object = False) -> ArrayRef:
    return _apply(tx, input, lambda e, x: e("multiply", x, e("tanh", _softplus(e, x))), inplace)


@TABLE.function("F.softsign")
def softsign(tx: TraceContext, input: object) -> ArrayRef:
    return _apply(tx, input, lambda e, x: e("divide", x, e("add", e("abs", x), 1.0)))


@TABLE.function("F.logsigmoid")
def logsigmoid(tx: TraceContext, input: object) -> ArrayRef:
    def body(e: _Pointwise, x: Var) -> Var:
        tail = e("log1p", e("exp", e("negative", e("abs", x))))
        return e("subtract", e("minimum", x, 0.0), tail)

    return tensor(contiguous(tx, _apply(tx, input, body).var))


def _exponential_unit(alpha: float, scale: float, steepness: float) -> Body:
    """``scale * x`` above zero, ``scale * alpha * (exp(x * steepness) - 1)`` below."""

    def body(e: _Pointwise, x: Var) -> Var:
        below = e("multiply", e("expm1", e("multiply", x, steepness)), alpha * scale)
        return e("where", e("greater", x, 0.0), e("multiply", x, scale), below)

    return body


@TABLE.function("F.selu")
def selu(tx: TraceContext, input: object, inplace: object = False) -> ArrayRef:
    """The constants of Klambauer et al., "Self-Normalizing Neural Networks" (2017)."""
    body = _exponential_unit(1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)
    return _apply(tx, input, body, inplace)


@TABLE.function("F.celu")
def celu(tx: TraceContext, input: object, alpha: object = 1.0, inplace: object = False) -> ArrayRef:
    slope = _number(alpha, "alpha")
    if slope == 0.0:
        raise Unsupported("celu with alpha 0")
    return _apply(tx, input, _exponential_unit(slope, 1.0, 1.0 / slope), inplace)


@TABLE.function("F.glu")
def glu(tx: TraceContext, input: object, dim: object = -1) -> ArrayRef:
    """The first half along ``dim`` times the sigmoid of the second."""
    x = real_tensor(input)
    axis = axis_of(dim, x.ndim)
    size = x.shape[axis] if x.ndim else 0
    if not isinstance(size, int) or size % 2 or not x.ndim:
        raise Unsupported("glu along an odd or unknown size")
    first, second = (slice_axis(tx, x.var, axis, start, size // 2) for start in (0, size // 2))
    gate = pointwise(tx, "sigmoid", widened(tx, second))
    return tensor(convert(tx, pointwise(tx, "multiply", widened(tx, first), gate), x.dtype))


@TABLE.function("F.prelu")
def prelu(tx: TraceContext, input: object, weight: object) -> ArrayRef:
    """A slope for each channel (dimension 1), or one for all."""
    x, w = real_tensor(input), need_tensor(weight)
    if w.dtype != x.dtype or w.ndim > 1:
        raise Unsupported("prelu with weights of another dtype or shape")
    slope = per_channel(tx, w.var, x.ndim)
    below = pointwise(tx, "multiply", x.var, slope)
    zero = to_var(tx, 0.0, x.dtype)
    return tensor(pointwise(tx, "where", pointwise(tx, "greater", x.var, zero), x.var, below))
