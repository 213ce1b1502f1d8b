"""Pointwise ops of two and three operands. Operands have one shape, and one dtype unless stated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, bfloat16, bool_, complex64, complex128, float32, float64, int32, int64
from ..graph.ir import ArrayType
from ..graph.noted import silently
from .elementwise import of_truth, scalar_call
from .kit import (
    ANY,
    BOOL,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    REAL,
    Array,
    laid_out,
    pointwise_meta,
    pointwise_type,
    require,
    require_alike,
    require_same_shape,
    widening,
)
from .opdef import OpDef, Pointwise, Sample, Tolerance
from .samples import data, layouts, pointwise_samples, special


def binary(
    name: str,
    fn: Callable[..., Any],
    allowed: Sequence[DType],
    doc: str,
    *,
    result: Callable[[DType], DType] | DType | None = None,
    expr: Callable[..., Any] | None = None,
    low: float = -4.0,
    high: float = 4.0,
    eps: float = 8.0,
    absolute: float = 0.0,
    extremes: bool = True,
    operand: Callable[[int, Array], Array] | None = None,
    keep: Callable[..., Any] | None = None,
) -> OpDef:
    """A row for a function of two operands."""
    meta = pointwise_meta(name, allowed, result)
    return OpDef(
        name,
        (),
        meta,
        laid_out(widening(fn), meta),
        lower=Pointwise(expr or scalar_call(name)),
        samples=pointwise_samples(
            allowed, 2, low=low, high=high, extremes=extremes, operand=operand, keep=keep
        ),
        dtypes=tuple(allowed),
        tolerance=Tolerance(eps, absolute),
        doc=doc,
    )


# -- expressions of functions composed from others --------------------------------------------
def _ignoring_nan(name: str, propagating: str) -> Callable[..., Any]:
    """fmax and fmin; complex ones from the propagating function."""

    def expr(s: Any, x: Any, y: Any) -> Any:
        if not s.dtype(x).is_complex:
            return getattr(s, name)(x, y)
        return s.where(s.isnan(y), x, s.where(s.isnan(x), y, getattr(s, propagating)(x, y)))

    return expr


def _no_negative_power(position: int, array: Array) -> Array:
    return np.abs(array) if position == 1 and array.dtype.kind == "i" else array


def _power_defined(x: Array, y: Array) -> Any:
    """NumPy raises for negative integer exponents; complex powers at 0 are left to the library."""
    if x.dtype.kind == "i":
        return y >= 0
    if x.dtype.kind == "c":
        return (x != 0) & (y != 0)
    return np.ones(x.shape, bool)


def _ordinary_complex(x: Array, y: Array) -> Any:
    """Complex division by zero is not defined by NumPy beyond "not finite"."""
    return (y != 0) if y.dtype.kind == "c" else np.ones(y.shape, bool)


# -- ldexp, complex, where, clip --------------------------------------------------------------
def ldexp_meta(x: ArrayType, n: ArrayType) -> ArrayType:
    require([x], FLOAT, "ldexp")
    require([n], (int32, int64), "ldexp exponents")
    require_same_shape([x, n], "ldexp")
    return pointwise_type([x, n], x.dtype)


def ldexp_samples() -> Iterator[Sample]:
    for dtype in FLOAT:
        for (label, x), (_, n) in zip(layouts(dtype), layouts(int64, 1)):
            yield Sample((x, n), {}, f"{dtype}-{label}")
        values = special(dtype)
        yield Sample((values, np.arange(values.size, dtype=np.int32) - 7), {}, f"{dtype}-special")
    yield Sample((np.full(4, 1.5), np.array([2000, -2000, -1074, 1023])), {}, "overflow")


def complex_meta(re: ArrayType, im: ArrayType) -> ArrayType:
    require([re, im], (float32, float64), "complex")
    require_alike([re, im], "complex")
    return pointwise_type([re, im], complex64 if re.dtype is float32 else complex128)


def complex_ref(re: Array, im: Array) -> Array:
    dtype = np.complex64 if re.dtype == np.float32 else np.complex128
    with silently():
        out = np.empty_like(re + im, dtype=dtype)
    out.real = re
    out.imag = im
    return out


def where_meta(condition: ArrayType, x: ArrayType, y: ArrayType) -> ArrayType:
    require([condition], BOOL, "where conditions")
    require_alike([x, y], "where")
    require_same_shape([condition, x], "where")
    return pointwise_type([condition, x, y], x.dtype)


def where_samples() -> Iterator[Sample]:
    for dtype in ANY:
        for (label, c), (_, x), (_, y) in zip(layouts(bool_, 7), layouts(dtype), layouts(dtype, 1)):
            yield Sample((c, x, y), {}, f"{dtype}-{label}")
        values = special(dtype)
        yield Sample((data(bool_, values.shape), values, values[::-1]), {}, f"{dtype}-special")
    c = data(bool_, (4, 5))
    x = data(float64, (5, 4)).T
    yield Sample((c, x, np.broadcast_to(data(float64, (5,)), (4, 5))), {}, "mixed")


clip_meta = pointwise_meta("clip", ANY)


OTHERS: tuple[OpDef, ...] = (
    OpDef(
        "ldexp",
        (),
        ldexp_meta,
        laid_out(widening(np.ldexp), ldexp_meta),
        lower=Pointwise(scalar_call("ldexp")),
        samples=ldexp_samples,
        dtypes=FLOAT,
        doc="x * 2**n for int32 or int64 n, rounded once; overflows to inf.",
    ),
    OpDef(
        "complex",
        (),
        complex_meta,
        complex_ref,
        lower=Pointwise(scalar_call("complex")),
        samples=pointwise_samples((float32, float64), 2),
        dtypes=(float32, float64),
        tolerance=Tolerance(0.0),
        doc="The complex number with these real and imaginary parts.",
    ),
    OpDef(
        "where",
        (),
        where_meta,
        np.where,
        lower=Pointwise(scalar_call("where")),
        samples=where_samples,
        dtypes=ANY,
        tolerance=Tolerance(0.0),
        doc="x where the bool condition holds, else y.",
    ),
    OpDef(
        "clip",
        (),
        clip_meta,
        laid_out(widening(np.clip), clip_meta),
        lower=Pointwise(scalar_call("clip")),
        samples=pointwise_samples(ANY, 3),
        dtypes=ANY,
        tolerance=Tolerance(1.0),
        doc="minimum(maximum(x, lo), hi): NaN in any operand gives NaN; hi wins where lo > hi.",
    ),
)

_BITS = BOOL + INTEGER

ROWS: tuple[OpDef, ...] = (
    binary("add", np.add, ANY, "x + y; integers wrap; logical or for bool."),
    binary("subtract", np.subtract, NUMBER, "x - y; integers wrap; bool is an error."),
    binary("multiply", np.multiply, ANY, "x * y; integers wrap; logical and for bool."),
    binary("divide", np.divide, INEXACT, "x / y; IEEE division by zero.", keep=_ordinary_complex),
    binary(
        "floor_divide",
        np.floor_divide,
        REAL,
        "floor(x / y) by NumPy's rules; integer division by zero gives 0, the overflow of the least "
        "integer by -1 wraps; floats as npy_floor_divide.",
    ),
    binary(
        "remainder",
        np.remainder,
        REAL,
        "x - floor_divide(x, y)*y with the sign of y; 0 for integer division by zero.",
    ),
    binary("fmod", np.fmod, REAL, "The remainder of C, with the sign of x; 0 for integer division by zero."),
    binary(
        "power",
        np.power,
        NUMBER,
        "x**y; integers by repeated multiplication, wrapping (negative integer exponents are an error "
        "that frontends raise).",
        low=0.1,
        operand=_no_negative_power,
        keep=_power_defined,
        eps=32.0,
    ),
    binary(
        "maximum", np.maximum, ANY, "The larger operand; NaN if either is; complex by (real, imag).", eps=0.0
    ),
    binary(
        "minimum", np.minimum, ANY, "The smaller operand; NaN if either is; complex by (real, imag).", eps=0.0
    ),
    binary(
        "fmax",
        np.fmax,
        ANY,
        "The larger operand; NaN only if both are.",
        eps=0.0,
        expr=_ignoring_nan("fmax", "maximum"),
    ),
    binary(
        "fmin",
        np.fmin,
        ANY,
        "The smaller operand; NaN only if both are.",
        eps=0.0,
        expr=_ignoring_nan("fmin", "minimum"),
    ),
    binary("arctan2", np.arctan2, FLOAT, "Angle of the point (y, x) in [-pi, pi]; C's signed zeros."),
    binary("hypot", np.hypot, FLOAT, "sqrt(x*x + y*y) without undue overflow; inf if either is infinite."),
    binary("copysign", np.copysign, FLOAT, "abs(x) with the sign of y.", eps=0.0),
    binary(
        "nextafter",
        np.nextafter,
        tuple(d for d in FLOAT if d is not bfloat16),
        "The next value after x towards y.",
        eps=0.25,  # tells neighbours apart; NumPy's versions differ in the sign of a float16 zero
    ),
    binary("logaddexp", np.logaddexp, FLOAT, "log(exp(x) + exp(y)) without overflow.", absolute=8.0),
    binary("logaddexp2", np.logaddexp2, FLOAT, "log2(2**x + 2**y) without overflow.", absolute=8.0),
    binary("heaviside", np.heaviside, FLOAT, "0 for x < 0, h at 0, 1 for x > 0, NaN for NaN.", eps=0.0),
    binary("equal", np.equal, ANY, "x == y.", result=bool_),
    binary("not_equal", np.not_equal, ANY, "x != y (true for NaN).", result=bool_),
    binary("less", np.less, ANY, "x < y; complex by (real, imag).", result=bool_),
    binary("less_equal", np.less_equal, ANY, "x <= y; complex by (real, imag).", result=bool_),
    binary("greater", np.greater, ANY, "x > y; complex by (real, imag).", result=bool_),
    binary("greater_equal", np.greater_equal, ANY, "x >= y; complex by (real, imag).", result=bool_),
    binary(
        "logical_and",
        np.logical_and,
        ANY,
        expr=of_truth("logical_and"),
        doc="x != 0 and y != 0.",
        result=bool_,
    ),
    binary(
        "logical_or", np.logical_or, ANY, expr=of_truth("logical_or"), doc="x != 0 or y != 0.", result=bool_
    ),
    binary(
        "logical_xor",
        np.logical_xor,
        ANY,
        expr=of_truth("logical_xor"),
        doc="(x != 0) != (y != 0).",
        result=bool_,
    ),
    binary("bitwise_and", np.bitwise_and, _BITS, "Bitwise and.", eps=0.0),
    binary("bitwise_or", np.bitwise_or, _BITS, "Bitwise or.", eps=0.0),
    binary("bitwise_xor", np.bitwise_xor, _BITS, "Bitwise exclusive or.", eps=0.0),
    binary(
        "left_shift",
        np.left_shift,
        INTEGER,
        "x * 2**y, wrapping; 0 where y is negative or not below the width.",
        eps=0.0,
    ),
    binary(
        "right_shift",
        np.right_shift,
        INTEGER,
        "floor(x / 2**y); the sign (0 or -1) where y is negative or not below the width.",
        eps=0.0,
    ),
    binary("gcd", np.gcd, INTEGER, "Greatest common divisor, not negative.", eps=0.0),
    binary("lcm", np.lcm, INTEGER, "Least common multiple, not negative.", eps=0.0),
    *OTHERS,
)
