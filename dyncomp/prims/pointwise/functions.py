"""Roots, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kit import (
    FLOAT,
    INEXACT,
)
from ..opdef import ONCE, OpDef
from ..scalar_types import ScalarOp, Vector
from . import pairs, partials
from .kit import binary, called, unary

if TYPE_CHECKING:
    from ..scalar import ScalarBuilder


def _tail_of_sum(s: ScalarBuilder, x: object, y: object, exp: Callable[..., Any]) -> Any:
    """``log1p(exp(-|x - y|))``, for equal numbers anything. NaN is an invalid operation, as NumPy's."""
    dtype = s.dtype(x)
    # no difference of equal infinities, which is an error
    difference = s.subtract(x, s.where(s.equal(x, y), s.const(0, dtype), y))
    ratio = exp(s.negative(s.abs(difference)))
    return s.log1p(s.where(s.isnan(difference), s.const(-2, dtype), ratio))


def _logaddexp(s: ScalarBuilder, x: object, y: object) -> Any:
    total = s.add(s.maximum(x, y), _tail_of_sum(s, x, y, s.exp))
    return s.where(s.equal(x, y), s.add(x, s.const(math.log(2.0), s.dtype(x))), total)


def _logaddexp2(s: ScalarBuilder, x: object, y: object) -> Any:
    dtype = s.dtype(x)
    tail = _tail_of_sum(s, x, y, s.exp2)
    total = s.add(s.maximum(x, y), s.multiply(tail, s.const(1 / math.log(2.0), dtype)))
    return s.where(s.equal(x, y), s.add(x, s.const(1, dtype)), total)


ROWS: tuple[OpDef, ...] = (
    unary(
        "sqrt",
        np.sqrt,
        INEXACT,
        "Square root; NaN for negative reals.",
        low=0.0,
        scalar=ScalarOp(
            cpp={"f": "__builtin_sqrt{fsuffix}({0})", "c": "dc_sqrt_{t}({0})"},
            triton={"f": "dc_sqrt({0})"},
            cost=6,
            ieee=True,
        ),
        partials=partials.of_x(lambda ops, x, out: ops.divide(partials.scalar(ops, x, 0.5), out)),
        errors=("invalid",),
        names=("torch.sqrt", "math.sqrt"),
        closed="sqrt(x)",
        rounds={"f": ONCE},
        rounded_otherwise_by=("torch",),
    ),
    unary(
        "cbrt",
        np.cbrt,
        FLOAT,
        "Cube root.",
        scalar=called("cbrt", cost=25, vector=Vector()),
        partials=partials.of_x(
            lambda ops, x, out: ops.divide(partials.scalar(ops, x, 1 / 3), ops.square(out))
        ),
        names=("scipy.special.cbrt", "math.cbrt"),
        closed="cbrt(x)",
    ),
    unary(
        "exp",
        np.exp,
        INEXACT,
        "e**x.",
        scalar=called("exp", "tl.exp({0})", vector=Vector(), pair=pairs.exp),
        partials=partials.of_x(lambda ops, x, out: out),
        errors=(
            "over",
            "under",
        ),
        names=("torch.exp", "math.exp"),
        closed="exp(x)",
    ),
    unary(
        "exp2",
        np.exp2,
        INEXACT,
        "2**x.",
        scalar=called("exp2", "tl.exp2({0})", vector=Vector()),
        partials=partials.of_x(lambda ops, x, out: ops.multiply(out, partials.scalar(ops, x, math.log(2)))),
        errors=("over",),
        names=("scipy.special.exp2", "torch.exp2", "torch.special.exp2", "math.exp2"),
        closed="2**x",
    ),
    unary(
        "expm1",
        np.expm1,
        INEXACT,
        "exp(x) - 1, accurate near 0.",
        scalar=called("expm1", vector=Vector()),
        partials=partials.of_x(lambda ops, x, out: ops.add(out, partials.scalar(ops, x, 1.0))),
        errors=("over",),
        names=("scipy.special.expm1", "torch.expm1", "torch.special.expm1", "math.expm1"),
        closed="exp(x) - 1",
    ),
    unary(
        "log",
        np.log,
        INEXACT,
        "Natural logarithm; -inf at 0, NaN for negative reals.",
        low=0.1,
        scalar=called("log", "tl.log({0})", vector=Vector(looked_at="logarithm")),
        partials=partials.of_x(lambda ops, x, out: ops.reciprocal(x)),
        errors=(
            "divide",
            "invalid",
        ),
        names=("torch.log", "math.log"),
        closed="log(x)",
    ),
    unary(
        "log2",
        np.log2,
        INEXACT,
        "Logarithm to base 2.",
        low=0.1,
        scalar=called("log2", "tl.log2({0})", vector=Vector(looked_at="logarithm")),
        partials=partials.log(2.0),
        errors=("divide",),
        names=("torch.log2", "math.log2"),
        closed="log(x) / log(2)",
    ),
    unary(
        "log10",
        np.log10,
        INEXACT,
        "Logarithm to base 10.",
        low=0.1,
        scalar=called("log10", vector=Vector(looked_at="logarithm")),
        partials=partials.log(10.0),
        errors=("divide",),
        names=("torch.log10", "math.log10"),
        closed="log(x) / log(10)",
    ),
    unary(
        "log1p",
        np.log1p,
        INEXACT,
        "log(1 + x), accurate near 0.",
        low=-0.9,
        scalar=called("log1p", vector=Vector(looked_at="pole")),
        partials=partials.of_x(lambda ops, x, out: ops.reciprocal(ops.add(x, partials.scalar(ops, x, 1.0)))),
        errors=("divide",),
        names=("scipy.special.log1p", "torch.log1p", "torch.special.log1p", "math.log1p"),
        closed="log(1 + x)",
    ),
    unary(
        "sin",
        np.sin,
        INEXACT,
        "Sine (radians).",
        scalar=called("sin", "tl.sin({0})", vector=Vector(guarded=True)),
        partials=partials.of_x(lambda ops, x, out: ops.cos(x)),
        names=("torch.sin", "math.sin"),
        closed="sin(x)",
    ),
    unary(
        "cos",
        np.cos,
        INEXACT,
        "Cosine (radians).",
        scalar=called("cos", "tl.cos({0})", vector=Vector(guarded=True)),
        partials=partials.of_x(lambda ops, x, out: ops.negative(ops.sin(x))),
        names=("torch.cos", "math.cos"),
        closed="cos(x)",
    ),
    unary(
        "tan",
        np.tan,
        INEXACT,
        "Tangent (radians).",
        eps=16.0,
        scalar=called("tan", cost=25, vector=Vector(guarded=True)),
        partials=partials.of_x(partials.one_plus_square),
        names=("torch.tan", "math.tan"),
        closed="tan(x)",
    ),
    unary(
        "arcsin",
        np.arcsin,
        INEXACT,
        "Inverse sine.",
        low=-1.0,
        high=1.0,
        scalar=called("arcsin", "dc_libdevice.asin({0})", cost=20, vector=Vector()),
        partials=partials.over_root(1.0, partials.less),
        errors=("invalid",),
        names=("torch.asin", "torch.arcsin", "math.asin"),
        closed="asin(x)",
    ),
    unary(
        "arccos",
        np.arccos,
        INEXACT,
        "Inverse cosine.",
        low=-1.0,
        high=1.0,
        scalar=called("arccos", "dc_libdevice.acos({0})", cost=20, vector=Vector()),
        partials=partials.over_root(-1.0, partials.less),
        errors=("invalid",),
        names=("torch.acos", "torch.arccos", "math.acos"),
        closed="acos(x)",
    ),
    unary(
        "arctan",
        np.arctan,
        INEXACT,
        "Inverse tangent.",
        scalar=called("arctan", "dc_libdevice.atan({0})", cost=20, vector=Vector()),
        partials=partials.of_x(
            lambda ops, x, out: ops.reciprocal(ops.add(partials.scalar(ops, x, 1.0), ops.square(x)))
        ),
        names=("torch.atan", "torch.arctan", "math.atan"),
        closed="atan(x)",
    ),
    unary(
        "sinh",
        np.sinh,
        INEXACT,
        "Hyperbolic sine.",
        scalar=called("sinh", cost=20, vector=Vector()),
        partials=partials.of_x(lambda ops, x, out: ops.cosh(x)),
        errors=("over",),
        names=("torch.sinh", "math.sinh"),
        closed="sinh(x)",
    ),
    unary(
        "cosh",
        np.cosh,
        INEXACT,
        "Hyperbolic cosine.",
        scalar=called("cosh", cost=20, vector=Vector()),
        partials=partials.of_x(lambda ops, x, out: ops.sinh(x)),
        errors=("over",),
        names=("torch.cosh", "math.cosh"),
        closed="cosh(x)",
    ),
    unary(
        "tanh",
        np.tanh,
        INEXACT,
        "Hyperbolic tangent.",
        scalar=called("tanh", vector=Vector(), beside_one=True),
        partials=partials.of_x(partials.one_minus_square),
        names=("torch.tanh", "math.tanh"),
        closed="tanh(x)",
    ),
    unary(
        "arcsinh",
        np.arcsinh,
        INEXACT,
        "Inverse hyperbolic sine.",
        scalar=called("arcsinh", "dc_libdevice.asinh({0})", cost=30, vector=Vector()),
        partials=partials.over_root(1.0, partials.more),
        names=("torch.asinh", "torch.arcsinh", "math.asinh"),
        closed="asinh(x)",
    ),
    unary(
        "arccosh",
        np.arccosh,
        INEXACT,
        "Inverse hyperbolic cosine.",
        low=1.0,
        scalar=called("arccosh", "dc_libdevice.acosh({0})", cost=30, vector=Vector()),
        partials=partials.over_root(1.0, partials.minus_one),
        names=("torch.acosh", "torch.arccosh", "math.acosh"),
        closed="acosh(x)",
    ),
    unary(
        "arctanh",
        np.arctanh,
        INEXACT,
        "Inverse hyperbolic tangent.",
        low=-0.95,
        high=0.95,
        scalar=called("arctanh", "dc_libdevice.atanh({0})", cost=30, vector=Vector(looked_at="pole")),
        partials=partials.of_x(
            lambda ops, x, out: ops.reciprocal(ops.subtract(partials.scalar(ops, x, 1.0), ops.square(x)))
        ),
        errors=("divide",),
        names=("torch.atanh", "torch.arctanh", "math.atanh"),
        closed="atanh(x)",
    ),
    binary(
        "arctan2",
        np.arctan2,
        FLOAT,
        "Angle of the point (y, x) in [-pi, pi]; C's signed zeros.",
        scalar=ScalarOp(
            cpp={"f": "dc_arctan2_{t}({0}, {1})"},
            triton={"f": "dc_libdevice.atan2({0}, {1})"},
            cost=30,
            vector=Vector(),
        ),
        partials=partials.arctan2,
        closed="atan2(x, y)",
        names=("math.atan2",),
    ),
    binary(
        "hypot",
        np.hypot,
        FLOAT,
        "sqrt(x*x + y*y) without undue overflow; inf if either is infinite, even with NaN.",
        scalar=ScalarOp(
            cpp={"f": "dc_hypot_{t}({0}, {1})"},
            triton={"f": "dc_libdevice.hypot({0}, {1})"},
            cost=12,
            vector=Vector(),
        ),
        partials=partials.hypot,
        closed="sqrt(x**2 + y**2)",
        names=("math.hypot",),
    ),
    binary(
        "logaddexp",
        np.logaddexp,
        FLOAT,
        "log(exp(x) + exp(y)) without overflow.",
        absolute=8.0,
        scalar=ScalarOp(decomp=_logaddexp, cost=40),
        partials=partials.logaddexp("exp"),
        closed="log(exp(x) + exp(y))",
    ),
    binary(
        "logaddexp2",
        np.logaddexp2,
        FLOAT,
        "log2(2**x + 2**y) without overflow.",
        absolute=8.0,
        scalar=ScalarOp(decomp=_logaddexp2, cost=40),
        partials=partials.logaddexp("exp2"),
        closed="log(2**x + 2**y) / log(2)",
    ),
)
