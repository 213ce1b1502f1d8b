"""Rows of the scalar table: arithmetic, comparison, logic and bits.

Integers wrap around (two's complement); integer division and remainder by zero give 0, as NumPy's do.
C++ spellings rely on every value being stored in a variable of its own type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .scalar_types import ScalarOp


def _int_power(x: Any, y: Any) -> Any:
    """Wrap-around power; a negative exponent gives the truncated quotient (0 unless the base is 1 or -1)."""
    x, y = np.broadcast_arrays(x, y)
    if x.dtype.kind != "i":
        return np.power(x, y)
    positive = np.power(x, np.maximum(y, 0))
    odd = np.where(y & 1, x, x * x)
    unit = np.abs(x) == 1
    return np.where(y < 0, np.where(unit, odd, 0), positive).astype(x.dtype)


def _complex_constructor(re: Any, im: Any) -> Any:
    re = np.asarray(re)
    out = np.empty(np.broadcast_shapes(re.shape, np.shape(im)), np.result_type(re.dtype, np.complex64))
    out.real = re
    out.imag = im
    return out


def _copy_real(x: Any) -> Any:
    return np.real(x).copy()


def _copy_imag(x: Any) -> Any:
    return np.imag(x).copy() if np.iscomplexobj(x) else np.zeros_like(x)


def _wrapping(sign: str) -> str:
    """Integer arithmetic in the unsigned type, where C++ defines overflow."""
    return f"({{T}})(({{U}}){{0}} {sign} ({{U}}){{1}})"


_COMPARE = {
    "equal": ("==", np.equal),
    "not_equal": ("!=", np.not_equal),
    "less": ("<", np.less),
    "less_equal": ("<=", np.less_equal),
    "greater": (">", np.greater),
    "greater_equal": (">=", np.greater_equal),
}


def _comparison(name: str) -> ScalarOp:
    sign, function = _COMPARE[name]
    return ScalarOp(
        name,
        2,
        "biufc",
        function,
        result="bool",
        cpp={"biuf": f"{{0}} {sign} {{1}}", "c": f"dc_{name}_{{t}}({{0}}, {{1}})"},
        triton={"biuf": f"{{0}} {sign} {{1}}"},
        doc="Complex numbers are ordered by real, then imaginary part.",
    )


ARITHMETIC = (
    ScalarOp(
        "add",
        2,
        "biufc",
        np.add,
        cpp={"b": "{0} | {1}", "iu": _wrapping("+"), "f": "{0} + {1}", "c": "dc_add_{t}({0}, {1})"},
        triton={"b": "{0} | {1}", "iuf": "{0} + {1}"},
        doc="On bool: logical or.",
    ),
    ScalarOp(
        "subtract",
        2,
        "iufc",
        np.subtract,
        cpp={"iu": _wrapping("-"), "f": "{0} - {1}", "c": "dc_sub_{t}({0}, {1})"},
        triton={"iuf": "{0} - {1}"},
    ),
    ScalarOp(
        "multiply",
        2,
        "biufc",
        np.multiply,
        cpp={"b": "{0} & {1}", "iu": _wrapping("*"), "f": "{0} * {1}", "c": "dc_mul_{t}({0}, {1})"},
        triton={"b": "{0} & {1}", "iuf": "{0} * {1}"},
        doc="On bool: logical and.",
    ),
    ScalarOp(
        "divide",
        2,
        "fc",
        np.divide,
        cpp={"f": "{0} / {1}", "c": "dc_div_{t}({0}, {1})"},
        triton={"f": "dc_divide({0}, {1})"},
        cost=4,
        doc="Correctly rounded; complex by Smith's method, as NumPy's.",
    ),
    ScalarOp(
        "floor_divide",
        2,
        "biuf",
        np.floor_divide,
        cpp={"biu": "dc_floordiv_{t}({0}, {1})", "f": "dc_floordiv_{t}({0}, {1})"},
        triton={"iu": "dc_floordiv_int({0}, {1})", "f": "dc_floordiv_float({0}, {1})"},
        cost=12,
        doc="Rounds towards minus infinity; integers: x // 0 = 0, MIN // -1 = MIN.",
    ),
    ScalarOp(
        "remainder",
        2,
        "biuf",
        np.remainder,
        cpp={"biu": "dc_remainder_{t}({0}, {1})", "f": "dc_remainder_{t}({0}, {1})"},
        triton={"iu": "dc_remainder_int({0}, {1})", "f": "dc_remainder_float({0}, {1})"},
        cost=12,
        doc="The sign of the divisor; integers: x % 0 = 0.",
    ),
    ScalarOp(
        "fmod",
        2,
        "biuf",
        np.fmod,
        cpp={"biu": "dc_fmod_{t}({0}, {1})", "f": "dc_fmod_{t}({0}, {1})"},
        triton={"iu": "dc_fmod_int({0}, {1})", "f": "dc_libdevice.fmod({0}, {1})"},
        cost=12,
        doc="The sign of the dividend; integers: fmod(x, 0) = 0.",
    ),
    ScalarOp(
        "power",
        2,
        "iufc",
        lambda x, y: _int_power(x, y) if np.asarray(x).dtype.kind in "iu" else np.power(x, y),
        cpp={"iufc": "dc_pow_{t}({0}, {1})"},
        triton={"iu": "dc_power_int({0}, {1})", "f": "dc_libdevice.pow({0}, {1})"},
        cost=60,
        doc="Integers wrap; a negative integer exponent truncates (NumPy raises: frontends check).",
    ),
    ScalarOp(
        "negative",
        1,
        "iufc",
        np.negative,
        cpp={"iu": "({T})(0 - ({U}){0})", "f": "-{0}", "c": "dc_neg_{t}({0})"},
        triton={"iuf": "-{0}"},
    ),
    ScalarOp(
        "abs",
        1,
        "biufc",
        np.abs,
        result="real",
        cpp={
            "bu": "{0}",
            "i": "({T})({0} < 0 ? 0 - ({U}){0} : ({U}){0})",
            "f": "dc_abs_{t}({0})",
            "c": "dc_abs_{t}({0})",
        },
        triton={"bu": "{0}", "if": "tl.abs({0})"},
        doc="abs(MIN) is MIN; of a complex number its modulus.",
    ),
    ScalarOp(
        "sign",
        1,
        "iufc",
        np.sign,
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
        doc="sign(nan) is nan; of a complex number z / abs(z).",
    ),
    ScalarOp(
        "square",
        1,
        "biufc",
        np.square,
        cpp={"iu": "({T})(({U}){0} * ({U}){0})", "f": "{0} * {0}"},
        triton={"iuf": "{0} * {0}"},
        decomp=lambda s, x: s.multiply(x, x),
    ),
    ScalarOp(
        "reciprocal",
        1,
        "fc",
        np.reciprocal,
        cpp={"c": "dc_reciprocal_{t}({0})"},
        decomp=lambda s, x: s.divide(s.const(1, s.dtype(x)), x),
        cost=4,
    ),
    ScalarOp(
        "maximum",
        2,
        "biufc",
        np.maximum,
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
        doc="NaN wins.",
    ),
    ScalarOp(
        "minimum",
        2,
        "biufc",
        np.minimum,
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
        doc="NaN wins.",
    ),
    ScalarOp(
        "fmax",
        2,
        "biuf",
        np.fmax,
        cpp={"f": "(({0} > {1}) | ({1} != {1})) ? {0} : {1}"},
        triton={"f": "tl.where(({0} > {1}) | ({1} != {1}), {0}, {1})"},
        decomp=lambda s, x, y: _number_wins(s, x, y, s.maximum(x, y)),
        doc="A number wins over NaN.",
    ),
    ScalarOp(
        "fmin",
        2,
        "biuf",
        np.fmin,
        cpp={"f": "(({0} < {1}) | ({1} != {1})) ? {0} : {1}"},
        triton={"f": "tl.where(({0} < {1}) | ({1} != {1}), {0}, {1})"},
        decomp=lambda s, x, y: _number_wins(s, x, y, s.minimum(x, y)),
        doc="A number wins over NaN.",
    ),
    ScalarOp(
        "clip",
        3,
        "biufc",
        np.clip,
        decomp=lambda s, x, lo, hi: s.minimum(s.maximum(x, lo), hi),
        cost=2,
        doc="NaN in any argument gives NaN; hi wins where lo > hi.",
    ),
    ScalarOp(
        "heaviside",
        2,
        "f",
        np.heaviside,
        decomp=lambda s, x, y: _heaviside(s, x, y),
        cost=3,
    ),
)


def _number_wins(s: Any, x: Any, y: Any, extreme: Any) -> Any:
    if not s.dtype(x).is_float:
        return extreme
    return s.where(s.isnan(x), y, s.where(s.isnan(y), x, extreme))


def _heaviside(s: Any, x: Any, y: Any) -> Any:
    zero = s.const(0, s.dtype(x))
    step = s.where(s.less(x, zero), zero, s.const(1, s.dtype(x)))
    value = s.where(s.equal(x, zero), y, step)
    return s.where(s.isnan(x), x, value)


LOGIC = (
    *(_comparison(name) for name in _COMPARE),
    ScalarOp(
        "logical_not",
        1,
        "b",
        np.logical_not,
        cpp={"b": "!{0}"},
        triton={"b": "{0} == 0"},
    ),
    ScalarOp(
        "logical_and",
        2,
        "b",
        np.logical_and,
        cpp={"b": "{0} & {1}"},
        triton={"b": "{0} & {1}"},
    ),
    ScalarOp(
        "logical_or",
        2,
        "b",
        np.logical_or,
        cpp={"b": "{0} | {1}"},
        triton={"b": "{0} | {1}"},
    ),
    ScalarOp(
        "logical_xor",
        2,
        "b",
        np.logical_xor,
        cpp={"b": "{0} != {1}"},
        triton={"b": "{0} ^ {1}"},
    ),
    ScalarOp(
        "where",
        3,
        "biufc",
        np.where,
        # by parts: gcc does not vectorise a choice between structs
        cpp={"biuf": "{0} ? {1} : {2}", "c": "{T}{{{0} ? {1}.re : {2}.re, {0} ? {1}.im : {2}.im}}"},
        triton={"biuf": "tl.where({0}, {1}, {2})"},
        mixed=False,
        doc="Condition bool, both values of one dtype.",
    ),
    ScalarOp(
        "isnan",
        1,
        "biufc",
        np.isnan,
        result="bool",
        cpp={"biu": "false", "f": "{0} != {0}", "c": "({0}.re != {0}.re) | ({0}.im != {0}.im)"},
        triton={"biu": "({0} != {0})", "f": "{0} != {0}"},
    ),
    ScalarOp(
        "isinf",
        1,
        "biufc",
        np.isinf,
        result="bool",
        cpp={"biu": "false", "f": "dc_abs_{t}({0}) == __builtin_inf()", "c": "dc_isinf_{t}({0})"},
        triton={"biu": "({0} != {0})", "f": 'tl.abs({0}) == float("inf")'},
    ),
    ScalarOp(
        "isfinite",
        1,
        "biufc",
        np.isfinite,
        result="bool",
        cpp={"biu": "true", "f": "dc_abs_{t}({0}) < __builtin_inf()", "c": "dc_isfinite_{t}({0})"},
        triton={"biu": "({0} == {0})", "f": 'tl.abs({0}) < float("inf")'},
    ),
    ScalarOp(
        "signbit",
        1,
        "iuf",
        lambda x: np.less(x, 0) if np.asarray(x).dtype.kind in "biu" else np.signbit(x),
        result="bool",
        cpp={"iu": "{0} < 0", "f": "dc_signbit_{t}({0})"},
        triton={"iu": "{0} < 0", "f": "dc_signbit({0})"},
    ),
)

BITS = (
    ScalarOp(
        "invert",
        1,
        "biu",
        np.invert,
        cpp={"b": "!{0}", "iu": "~{0}"},
        triton={"b": "{0} == 0", "iu": "~{0}"},
    ),
    ScalarOp(
        "bitwise_and",
        2,
        "biu",
        np.bitwise_and,
        cpp={"biu": "{0} & {1}"},
        triton={"biu": "{0} & {1}"},
    ),
    ScalarOp(
        "bitwise_or",
        2,
        "biu",
        np.bitwise_or,
        cpp={"biu": "{0} | {1}"},
        triton={"biu": "{0} | {1}"},
    ),
    ScalarOp(
        "bitwise_xor",
        2,
        "biu",
        np.bitwise_xor,
        cpp={"b": "{0} != {1}", "iu": "{0} ^ {1}"},
        triton={"biu": "{0} ^ {1}"},
    ),
    ScalarOp(
        "left_shift",
        2,
        "iu",
        np.left_shift,
        cpp={"iu": "dc_shl_{t}({0}, {1})"},
        triton={"iu": "dc_shl({0}, {1})"},
        doc="0 for a shift outside [0, width).",
    ),
    ScalarOp(
        "right_shift",
        2,
        "iu",
        np.right_shift,
        cpp={"iu": "dc_shr_{t}({0}, {1})"},
        triton={"iu": "dc_shr({0}, {1})"},
        doc="Arithmetic; 0 or -1 (the sign) for a shift outside [0, width).",
    ),
    ScalarOp(
        "gcd",
        2,
        "iu",
        np.gcd,
        cpp={"iu": "dc_gcd_{t}({0}, {1})"},
        triton={"iu": "dc_gcd({0}, {1})"},
        cost=60,
    ),
    ScalarOp(
        "lcm",
        2,
        "iu",
        np.lcm,
        cpp={"iu": "dc_lcm_{t}({0}, {1})"},
        triton={"iu": "dc_lcm({0}, {1})"},
        cost=80,
    ),
)

COMPLEX = (
    ScalarOp(
        "conj",
        1,
        "iufc",
        np.conjugate,
        cpp={"iuf": "{0}", "c": "dc_conj_{t}({0})"},
        triton={"iuf": "{0}"},
    ),
    ScalarOp(
        "real",
        1,
        "biufc",
        _copy_real,
        result="real",
        cpp={"biuf": "{0}", "c": "{0}.re"},
        triton={"biuf": "{0}"},
    ),
    ScalarOp(
        "imag",
        1,
        "biufc",
        _copy_imag,
        result="real",
        cpp={"biuf": "0", "c": "{0}.im"},
        triton={"biuf": "{0} * 0"},
    ),
    ScalarOp(
        "complex",
        2,
        "f",
        _complex_constructor,
        result="complex",
        cpp={"f": "{{{0}, {1}}}"},
        doc="From real and imaginary part, both float32 or both float64.",
    ),
)

ROWS: tuple[ScalarOp, ...] = (*ARITHMETIC, *LOGIC, *BITS, *COMPLEX)
