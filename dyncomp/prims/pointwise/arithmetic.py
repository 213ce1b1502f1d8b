"""Arithmetic, extremes and rounding. Operands have one shape, and one dtype unless stated.

Integers wrap around (two's complement); integer division and remainder by zero give 0, as NumPy's do.
C++ spellings rely on every value being stored in a variable of its own type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import bfloat16, float64, int32, int64
from ...graph.ir import ArrayType
from ..kit import (
    ANY,
    BOOL,
    FLOAT,
    INEXACT,
    NUMBER,
    REAL,
    Array,
    pointwise_type,
    require,
    require_same_shape,
)
from ..opdef import NEVER, ONCE, OpDef, Sample
from ..samples import layouts, special
from ..scalar_types import ScalarOp, Vector
from . import pairs, partials
from .kit import binary, pointwise, real_of, unary

if TYPE_CHECKING:
    from ..scalar import ScalarBuilder


def _int_power(x: Any, y: Any) -> Any:
    """Wrap-around power; a negative exponent gives the truncated quotient (0 unless the base is 1 or -1)."""
    x, y = np.broadcast_arrays(x, y)
    if x.dtype.kind != "i":
        return np.power(x, y)
    positive = np.power(x, np.maximum(y, 0))
    odd = np.where(y & 1, x, x * x)
    unit = np.abs(x) == 1
    return np.where(y < 0, np.where(unit, odd, 0), positive).astype(x.dtype)


def _power_definition(x: Any, y: Any) -> Any:
    return _int_power(x, y) if np.asarray(x).dtype.kind in "iu" else np.power(x, y)


def _rint(x: Any) -> Any:
    return np.rint(x) if np.asarray(x).dtype.kind in "fcV" else np.asarray(x)


def _wrapping(sign: str) -> str:
    """Integer arithmetic in the unsigned type, where C++ defines overflow."""
    return f"({{T}})(({{U}}){{0}} {sign} ({{U}}){{1}})"


def _number_wins(s: ScalarBuilder, x: object, y: object, extreme: object) -> Any:
    if not s.dtype(x).is_float:
        return extreme
    return s.where(s.isnan(x), y, s.where(s.isnan(y), x, extreme))


def _heaviside(s: ScalarBuilder, x: object, y: object) -> Any:
    zero = s.const(0, s.dtype(x))
    step = s.where(s.less(x, zero), zero, s.const(1, s.dtype(x)))
    value = s.where(s.equal(x, zero), y, step)
    return s.where(s.isnan(x), x, value)


def _ignoring_nan(name: str, propagating: str) -> Callable[..., Any]:
    """fmax and fmin; complex ones from the propagating function."""

    def expr(s: ScalarBuilder, x: object, y: object) -> Any:
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


def _reciprocal(s: ScalarBuilder, x: object) -> Any:
    dtype = s.dtype(x)
    if dtype.is_inexact:
        return s.reciprocal(x)
    # NumPy divides integers as doubles and converts back
    return s.cast(s.divide(s.const(1.0, float64), s.cast(x, float64)), dtype)


def _identity_of_integers(name: str) -> Callable[..., Any]:
    def expr(s: ScalarBuilder, x: object) -> Any:
        return getattr(s, name)(x) if s.dtype(x).is_float else x

    return expr


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


def _rounding(builtin: str, triton: str, kinds: str = "biuf", **said: Any) -> ScalarOp:
    cpp = {"biu": "{0}", "f": f"__builtin_{builtin}{{fsuffix}}({{0}})", "c": f"dc_{builtin}_{{t}}({{0}})"}
    return ScalarOp(kinds=kinds, cpp=cpp, triton={"biu": "{0}", "f": triton}, **said)


_FLOOR_LIKE = BOOL + REAL


ROWS: tuple[OpDef, ...] = (
    binary(
        "add",
        np.add,
        ANY,
        "x + y; integers wrap; logical or for bool.",
        scalar=ScalarOp(
            commutative=True,
            cpp={"b": "{0} | {1}", "iu": _wrapping("+"), "f": "{0} + {1}", "c": "dc_add_{t}({0}, {1})"},
            triton={"b": "{0} | {1}", "iuf": "{0} + {1}"},
            ieee=True,
            python="+",
            pair=lambda s, a, b: (s.add(a[0], b[0]), s.add(a[1], b[1])),
        ),
        partials=partials.constant(1.0, 1.0),
        exact=True,
        rare_errors=("invalid",),
        closed="x + y",
        rounds={"fc": ONCE},
    ),
    binary(
        "subtract",
        np.subtract,
        NUMBER,
        "x - y; integers wrap; bool is an error.",
        scalar=ScalarOp(
            cpp={"iu": _wrapping("-"), "f": "{0} - {1}", "c": "dc_sub_{t}({0}, {1})"},
            triton={"iuf": "{0} - {1}"},
            ieee=True,
            python="-",
            pair=lambda s, a, b: (s.subtract(a[0], b[0]), s.subtract(a[1], b[1])),
        ),
        partials=partials.constant(1.0, -1.0),
        exact=True,
        rare_errors=("invalid",),
        closed="x - y",
        rounds={"fc": ONCE},
    ),
    binary(
        "multiply",
        np.multiply,
        ANY,
        "x * y; integers wrap; logical and for bool.",
        scalar=ScalarOp(
            commutative=True,
            cpp={"b": "{0} & {1}", "iu": _wrapping("*"), "f": "{0} * {1}", "c": "dc_mul_{t}({0}, {1})"},
            triton={"b": "{0} & {1}", "iuf": "{0} * {1}"},
            ieee=True,
            python="*",
            pair=pairs.multiply,
        ),
        partials=partials.multiply,
        exact=True,
        rare_errors=(
            "over",
            "under",
        ),
        closed="x*y",
        rounds={"f": ONCE},
    ),
    binary(
        "divide",
        np.divide,
        INEXACT,
        "x / y, correctly rounded; IEEE division by zero; complex by Smith's method, as NumPy's.",
        keep=_ordinary_complex,
        scalar=ScalarOp(
            cpp={"f": "{0} / {1}", "c": "dc_div_{t}({0}, {1})"},
            triton={"f": "dc_divide({0}, {1})"},
            cost=4,
            ieee=True,
            python="/",
            pair=pairs.divide,
        ),
        partials=partials.divide,
        errors=(
            "divide",
            "invalid",
        ),
        rare_errors=(
            "over",
            "under",
        ),
        closed="x / y",
        names=("operator.truediv",),
        rounds={"f": ONCE},
    ),
    binary(
        "floor_divide",
        np.floor_divide,
        REAL,
        "floor(x / y) by NumPy's rules; integer division by zero gives 0, the overflow of the least "
        "integer by -1 wraps; floats as npy_floor_divide.",
        scalar=ScalarOp(
            kinds="biuf",
            cpp={"biu": "dc_floordiv_{t}({0}, {1})", "f": "dc_floordiv_{t}({0}, {1})"},
            triton={"iu": "dc_floordiv_int({0}, {1})", "f": "dc_floordiv_float({0}, {1})"},
            cost=12,
            vector=Vector(guarded=True),
            python="//",
        ),
        partials=partials.ZERO,
        names=("operator.floordiv",),
    ),
    binary(
        "remainder",
        np.remainder,
        REAL,
        "x - floor_divide(x, y)*y with the sign of y; 0 for integer division by zero.",
        scalar=ScalarOp(
            kinds="biuf",
            cpp={"biu": "dc_remainder_{t}({0}, {1})", "f": "dc_remainder_{t}({0}, {1})"},
            triton={"iu": "dc_remainder_int({0}, {1})", "f": "dc_remainder_float({0}, {1})"},
            cost=12,
            vector=Vector(guarded=True),
            python="%",
        ),
        partials=partials.remainder("floor"),
        errors=("invalid",),
        names=("operator.mod",),
    ),
    binary(
        "fmod",
        np.fmod,
        REAL,
        "The remainder of C, with the sign of x; 0 for integer division by zero.",
        scalar=ScalarOp(
            kinds="biuf",
            cpp={"biu": "dc_fmod_{t}({0}, {1})", "f": "dc_fmod_{t}({0}, {1})"},
            triton={"iu": "dc_fmod_int({0}, {1})", "f": "dc_libdevice.fmod({0}, {1})"},
            cost=12,
            vector=Vector(guarded=True),
        ),
        partials=partials.remainder("trunc"),
        names=("math.fmod",),
    ),
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
        scalar=ScalarOp(
            numpy=_power_definition,
            cpp={"iufc": "dc_pow_{t}({0}, {1})"},
            triton={"iu": "dc_power_int({0}, {1})", "f": "dc_libdevice.pow({0}, {1})"},
            cost=60,
            vector=Vector(looked_at="zero to a power"),
        ),
        partials=partials.power,
        errors=(
            "divide",
            "over",
            "invalid",
        ),
        rare_errors=("under",),
        closed="x**y",
        names=(
            "math.pow",
            "operator.pow",
        ),
    ),
    unary(
        "negative",
        np.negative,
        NUMBER,
        "-x; integers wrap; bool is an error.",
        eps=0.0,
        scalar=ScalarOp(
            cpp={"iu": "({T})(0 - ({U}){0})", "f": "-{0}", "c": "dc_neg_{t}({0})"},
            triton={"iuf": "-{0}"},
            exact_in_half=True,
            python="-",
            involution=True,
            pair=lambda s, a: (s.negative(a[0]), s.negative(a[1])),
        ),
        partials=partials.constant(-1.0),
        exact=True,
        closed="-x",
        rounds={"fc": NEVER},
    ),
    unary(
        "abs",
        np.abs,
        ANY,
        "Absolute value; real for complex input; the least integer stays itself.",
        result=real_of,
        scalar=ScalarOp(
            cpp={
                "bu": "{0}",
                "i": "({T})({0} < 0 ? 0 - ({U}){0} : ({U}){0})",
                "f": "dc_abs_{t}({0})",
                "c": "dc_abs_{t}({0})",
            },
            triton={"bu": "{0}", "if": "tl.abs({0})"},
            exact_in_half=True,
            python="abs",
            pair=lambda s, a: s.hypot(a[0], a[1]),
        ),
        partials=partials.of_x(lambda ops, x, out: ops.sign(x)),
        exact=True,
        closed="Abs(x)",
        names=("math.fabs", "builtins.abs"),
        rounds={"f": NEVER},
    ),
    unary(
        "sign",
        np.sign,
        NUMBER,
        "-1, 0 or 1; NaN for NaN; x/abs(x) for complex x, 0 at 0.",
        scalar=ScalarOp(
            cpp={
                "i": "({0} > 0) - ({0} < 0)",
                "u": "{0} != 0",
                "f": "dc_sign_{t}({0})",
                "c": "dc_sign_{t}({0})",
            },
            triton={
                "iu": "({0} > 0).to({0}.dtype) - ({0} < 0).to({0}.dtype)",
                "f": "tl.where({0} != {0}, {0}, ({0} > 0).to({0}.dtype) - ({0} < 0).to({0}.dtype))",
            },
            exact_in_half=True,
        ),
        partials=partials.ZERO,
        rounds={"f": NEVER},
    ),
    unary(
        "square",
        np.square,
        NUMBER,
        "x*x.",
        scalar=ScalarOp(
            kinds="biufc",
            cpp={"iu": "({T})(({U}){0} * ({U}){0})", "f": "{0} * {0}"},
            triton={"iuf": "{0} * {0}"},
            decomp=lambda s, x: s.multiply(x, x),
            python="**",
        ),
        partials=partials.of_x(lambda ops, x, out: ops.multiply(partials.scalar(ops, x, 2.0), x)),
        errors=("over",),
        closed="x**2",
        rounds={"f": ONCE},
    ),
    unary(
        "reciprocal",
        np.reciprocal,
        NUMBER,
        "1/x; for integers the double quotient converted back.",
        expr=_reciprocal,
        extremes=False,
        low=0.5,
        scalar=ScalarOp(
            kinds="fc",
            cpp={"c": "dc_reciprocal_{t}({0})"},
            decomp=lambda s, x: s.divide(s.const(1, s.dtype(x)), x),
            cost=4,
        ),
        partials=partials.of_x(lambda ops, x, out: ops.negative(ops.square(out))),
        errors=("divide",),
        closed="1 / x",
        rounds={"f": ONCE},
    ),
    binary(
        "maximum",
        np.maximum,
        ANY,
        "The larger operand; NaN if either is; complex by (real, imag).",
        eps=0.0,
        scalar=ScalarOp(
            commutative=True,
            cpp={
                "b": "{0} | {1}",
                "iu": "{0} > {1} ? {0} : {1}",
                "f": "(({0} > {1}) | ({0} != {0})) ? {0} : {1}",
                "c": "dc_max_{t}({0}, {1})",
            },
            triton={
                "b": "{0} | {1}",
                "iu": "tl.maximum({0}, {1})",
                "f": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
            },
            exact_in_half=True,
            python="max",
        ),
        partials=partials.extreme("greater"),
        exact=True,
    ),
    binary(
        "minimum",
        np.minimum,
        ANY,
        "The smaller operand; NaN if either is; complex by (real, imag).",
        eps=0.0,
        scalar=ScalarOp(
            commutative=True,
            cpp={
                "b": "{0} & {1}",
                "iu": "{0} < {1} ? {0} : {1}",
                "f": "(({0} < {1}) | ({0} != {0})) ? {0} : {1}",
                "c": "dc_min_{t}({0}, {1})",
            },
            triton={
                "b": "{0} & {1}",
                "iu": "tl.minimum({0}, {1})",
                "f": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
            },
            exact_in_half=True,
            python="min",
        ),
        partials=partials.extreme("less"),
        exact=True,
    ),
    unary(
        "relu",
        lambda x: np.maximum(x, x.dtype.type(0)),
        FLOAT,
        "maximum(x, 0).",
        eps=0.0,
        own_order=True,
        scalar=ScalarOp(decomp=lambda s, x: s.maximum(x, s.const(0, s.dtype(x))), exact_in_half=True),
        partials=partials.relu,
        exact=True,
    ),
    binary(
        "with_derivative_of",
        lambda x, y: np.array(x),
        INEXACT,
        "The first operand, with the derivative of the second.",
        eps=0.0,
        own_order=True,
        scalar=ScalarOp(decomp=lambda s, x, y: x, exact_in_half=True),
        partials=partials.constant(0.0, 1.0),
        exact=True,
        rounds={"fc": NEVER},
    ),
    binary(
        "fmax",
        np.fmax,
        ANY,
        "The larger operand; NaN only if both are.",
        eps=0.0,
        expr=_ignoring_nan("fmax", "maximum"),
        scalar=ScalarOp(
            commutative=True,
            kinds="biuf",
            cpp={"f": "(({0} > {1}) | ({1} != {1})) ? {0} : {1}"},
            triton={"f": "tl.where(({0} > {1}) | ({1} != {1}), {0}, {1})"},
            decomp=lambda s, x, y: _number_wins(s, x, y, s.maximum(x, y)),
            exact_in_half=True,
        ),
        partials=partials.extreme("greater"),
    ),
    binary(
        "fmin",
        np.fmin,
        ANY,
        "The smaller operand; NaN only if both are.",
        eps=0.0,
        expr=_ignoring_nan("fmin", "minimum"),
        scalar=ScalarOp(
            commutative=True,
            kinds="biuf",
            cpp={"f": "(({0} < {1}) | ({1} != {1})) ? {0} : {1}"},
            triton={"f": "tl.where(({0} < {1}) | ({1} != {1}), {0}, {1})"},
            decomp=lambda s, x, y: _number_wins(s, x, y, s.minimum(x, y)),
            exact_in_half=True,
        ),
        partials=partials.extreme("less"),
    ),
    pointwise(
        3,
        "clip",
        np.clip,
        ANY,
        "minimum(maximum(x, lo), hi): NaN in any operand gives NaN; hi wins where lo > hi.",
        eps=1.0,
        scalar=ScalarOp(decomp=lambda s, x, lo, hi: s.minimum(s.maximum(x, lo), hi), cost=2),
        partials=partials.clip,
    ),
    binary(
        "heaviside",
        np.heaviside,
        FLOAT,
        "0 for x < 0, h at 0, 1 for x > 0, NaN for NaN.",
        eps=0.0,
        scalar=ScalarOp(decomp=_heaviside, cost=3),
        partials=partials.heaviside,
        rounds={"f": NEVER},
    ),
    binary(
        "copysign",
        np.copysign,
        FLOAT,
        "abs(x) with the sign of y.",
        eps=0.0,
        scalar=ScalarOp(
            cpp={"f": "__builtin_copysign{fsuffix}({0}, {1})"},
            triton={"f": "dc_libdevice.copysign({0}, {1})"},
            exact_in_half=True,
        ),
        partials=partials.copysign,
        names=("math.copysign",),
        rounds={"f": NEVER},
    ),
    binary(
        "nextafter",
        np.nextafter,
        tuple(d for d in FLOAT if d is not bfloat16),
        "The next value after x towards y.",
        eps=0.25,
        scalar=ScalarOp(
            cpp={
                "float16": "dc_nextafter_f16({0}, {1})",
                "bfloat16": "dc_nextafter_bf16({0}, {1})",
                "f": "dc_nextafter_{t}({0}, {1})",
            },
            triton={"f": "dc_libdevice.nextafter({0}, {1})"},
            cost=10,
        ),
        rounds={"f": NEVER},
    ),
    binary(
        "ldexp",
        np.ldexp,
        FLOAT,
        "x * 2**n for int32 or int64 n, rounded once; overflows to inf.",
        meta=ldexp_meta,
        samples=ldexp_samples,
        scalar=ScalarOp(
            cpp={"f": "dc_ldexp_{t}({0}, {1})"},
            triton={"f": "dc_libdevice.ldexp({0}, {1}.to(tl.int32))"},
            mixed=True,
            cost=6,
        ),
        rounds={"f": ONCE},
    ),
    unary(
        "floor",
        np.floor,
        _FLOOR_LIKE,
        "Largest integer value <= x.",
        eps=0.0,
        expr=_identity_of_integers("floor"),
        scalar=_rounding("floor", "tl.floor({0})", exact_in_half=True),
        partials=partials.ZERO,
        rounds={"f": NEVER},
    ),
    unary(
        "ceil",
        np.ceil,
        _FLOOR_LIKE,
        "Smallest integer value >= x.",
        eps=0.0,
        expr=_identity_of_integers("ceil"),
        scalar=_rounding("ceil", "tl.ceil({0})", exact_in_half=True),
        partials=partials.ZERO,
        rounds={"f": NEVER},
    ),
    unary(
        "trunc",
        np.trunc,
        _FLOOR_LIKE,
        "x rounded towards zero.",
        eps=0.0,
        expr=_identity_of_integers("trunc"),
        scalar=_rounding("trunc", "dc_libdevice.trunc({0})", exact_in_half=True),
        partials=partials.ZERO,
        rounds={"f": NEVER},
    ),
    unary(
        "rint",
        np.rint,
        INEXACT,
        "x rounded to the nearest integer value, halves to even.",
        eps=0.0,
        scalar=_rounding("rint", "dc_rint({0})", kinds="biufc", numpy=_rint, exact_in_half=True),
        partials=partials.ZERO,
        rounds={"f": NEVER},
    ),
)
