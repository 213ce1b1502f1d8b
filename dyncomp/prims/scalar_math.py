"""Rows of the scalar table: rounding, powers, exponentials, trigonometry and special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .scalar_types import ScalarOp


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A definition from Python's ``math`` (NumPy has none), computed in double."""

    def apply(x: Any) -> Any:
        x = np.asarray(x)
        flat = [function(v) for v in x.astype(np.float64).ravel().tolist()]
        return np.array(flat, np.float64).reshape(x.shape).astype(x.dtype)

    return apply


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except ValueError:
        return math.inf
    except OverflowError:
        return math.inf


def _sigmoid_definition(x: Any) -> Any:
    x = np.asarray(x)
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(x.dtype)


def _rint(x: Any) -> Any:
    return np.rint(x) if np.asarray(x).dtype.kind in "fcV" else np.asarray(x)


def _unary(
    name: str, numpy: Callable[..., Any], kinds: str = "fc", triton: str = "", cost: int = 15, doc: str = ""
) -> ScalarOp:
    return ScalarOp(
        name,
        1,
        kinds,
        numpy,
        cpp={kinds: f"dc_{name}_{{t}}({{0}})"},
        triton={"f": triton or f"dc_libdevice.{name}({{0}})"},
        cost=cost,
        doc=doc,
    )


def _rounding(name: str, numpy: Callable[..., Any], builtin: str, triton: str) -> ScalarOp:
    return ScalarOp(
        name,
        1,
        "biufc" if name == "rint" else "biuf",
        numpy,
        cpp={"biu": "{0}", "f": f"__builtin_{builtin}{{fsuffix}}({{0}})", "c": f"dc_{name}_{{t}}({{0}})"},
        triton={"biu": "{0}", "f": triton},
    )


ROUNDING = (
    _rounding("floor", np.floor, "floor", "tl.floor({0})"),
    _rounding("ceil", np.ceil, "ceil", "tl.ceil({0})"),
    _rounding("trunc", np.trunc, "trunc", "dc_libdevice.trunc({0})"),
    _rounding("rint", _rint, "rint", "dc_rint({0})"),
)

EXPONENTIAL = (
    ScalarOp(
        "sqrt",
        1,
        "fc",
        np.sqrt,
        cpp={"f": "__builtin_sqrt{fsuffix}({0})", "c": "dc_sqrt_{t}({0})"},
        triton={"f": "dc_sqrt({0})"},
        cost=6,
    ),
    _unary("cbrt", np.cbrt, "f", cost=25),
    _unary("exp", np.exp, triton="tl.exp({0})"),
    _unary("exp2", np.exp2, triton="tl.exp2({0})"),
    _unary("expm1", np.expm1),
    _unary("log", np.log, triton="tl.log({0})"),
    _unary("log2", np.log2, triton="tl.log2({0})"),
    _unary("log10", np.log10),
    _unary("log1p", np.log1p),
)

TRIGONOMETRY = (
    _unary("sin", np.sin, triton="tl.sin({0})"),
    _unary("cos", np.cos, triton="tl.cos({0})"),
    _unary("tan", np.tan, cost=25),
    _unary("arcsin", np.arcsin, triton="dc_libdevice.asin({0})", cost=20),
    _unary("arccos", np.arccos, triton="dc_libdevice.acos({0})", cost=20),
    _unary("arctan", np.arctan, triton="dc_libdevice.atan({0})", cost=20),
    _unary("sinh", np.sinh, cost=20),
    _unary("cosh", np.cosh, cost=20),
    _unary("tanh", np.tanh),
    _unary("arcsinh", np.arcsinh, triton="dc_libdevice.asinh({0})", cost=30),
    _unary("arccosh", np.arccosh, triton="dc_libdevice.acosh({0})", cost=30),
    _unary("arctanh", np.arctanh, triton="dc_libdevice.atanh({0})", cost=30),
)

SPECIAL = (
    _unary("erf", _elementwise(math.erf), "f", "dc_erf({0})"),
    _unary("erfc", _elementwise(math.erfc), "f", cost=25),
    _unary("lgamma", _elementwise(_lgamma), "f", cost=60),
    ScalarOp(
        "sigmoid",
        1,
        "f",
        _sigmoid_definition,
        cpp={"f": "dc_sigmoid_{t}({0})"},
        triton={"f": "dc_sigmoid({0})"},
        decomp=lambda s, x: _sigmoid(s, x),
        cost=16,
        doc="1 / (1 + exp(-x)) in one step.",
    ),
)


def _sigmoid(s: Any, x: Any) -> Any:
    one = s.const(1, s.dtype(x))
    return s.divide(one, s.add(one, s.exp(s.negative(x))))


def _angle(s: Any, x: Any) -> Any:
    if s.dtype(x).is_complex:
        return s.arctan2(s.imag(x), s.real(x))
    zero = s.const(0, s.dtype(x))
    turned = s.where(s.signbit(x), s.const(math.pi, s.dtype(x)), zero)
    return s.where(s.isnan(x), x, turned)


def _tail_of_sum(s: Any, x: Any, y: Any, exp: Any) -> Any:
    """``log1p(exp(-|x - y|))``, for equal numbers anything. NaN is an invalid operation, as NumPy's."""
    dtype = s.dtype(x)
    # no difference of equal infinities, which is an error
    difference = s.subtract(x, s.where(s.equal(x, y), s.const(0, dtype), y))
    ratio = exp(s.negative(s.abs(difference)))
    return s.log1p(s.where(s.isnan(difference), s.const(-2, dtype), ratio))


def _logaddexp(s: Any, x: Any, y: Any) -> Any:
    total = s.add(s.maximum(x, y), _tail_of_sum(s, x, y, s.exp))
    return s.where(s.equal(x, y), s.add(x, s.const(math.log(2.0), s.dtype(x))), total)


def _logaddexp2(s: Any, x: Any, y: Any) -> Any:
    dtype = s.dtype(x)
    tail = _tail_of_sum(s, x, y, s.exp2)
    total = s.add(s.maximum(x, y), s.multiply(tail, s.const(1 / math.log(2.0), dtype)))
    return s.where(s.equal(x, y), s.add(x, s.const(1, dtype)), total)


BINARY = (
    ScalarOp(
        "arctan2",
        2,
        "f",
        np.arctan2,
        cpp={"f": "dc_arctan2_{t}({0}, {1})"},
        triton={"f": "dc_libdevice.atan2({0}, {1})"},
        cost=30,
    ),
    ScalarOp(
        "hypot",
        2,
        "f",
        np.hypot,
        cpp={"f": "dc_hypot_{t}({0}, {1})"},
        triton={"f": "dc_libdevice.hypot({0}, {1})"},
        cost=12,
        doc="No intermediate overflow; inf where either is infinite, even with NaN.",
    ),
    ScalarOp(
        "copysign",
        2,
        "f",
        np.copysign,
        cpp={"f": "__builtin_copysign{fsuffix}({0}, {1})"},
        triton={"f": "dc_libdevice.copysign({0}, {1})"},
    ),
    ScalarOp(
        "nextafter",
        2,
        "f",
        np.nextafter,
        cpp={
            "float16": "dc_nextafter_f16({0}, {1})",
            "bfloat16": "dc_nextafter_bf16({0}, {1})",
            "f": "dc_nextafter_{t}({0}, {1})",
        },
        triton={"f": "dc_libdevice.nextafter({0}, {1})"},
        cost=10,
    ),
    ScalarOp(
        "ldexp",
        2,
        "f",
        lambda x, n: np.ldexp(x, n),
        cpp={"f": "dc_ldexp_{t}({0}, {1})"},
        triton={"f": "dc_libdevice.ldexp({0}, {1}.to(tl.int32))"},
        mixed=True,
        cost=6,
        doc="The exponent is any signed integer dtype.",
    ),
    ScalarOp("logaddexp", 2, "f", np.logaddexp, decomp=_logaddexp, cost=40),
    ScalarOp("logaddexp2", 2, "f", np.logaddexp2, decomp=_logaddexp2, cost=40),
    ScalarOp("angle", 1, "fc", np.angle, result="real", decomp=_angle, cost=30),
)

ROWS: tuple[ScalarOp, ...] = (*ROUNDING, *EXPONENTIAL, *TRIGONOMETRY, *SPECIAL, *BINARY)
