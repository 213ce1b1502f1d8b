"""Pointwise ops of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..dtypes import ALL, DType, bfloat16, bool_, float32, float64
from ..graph.ir import ArrayType
from ..graph.noted import silently
from .kit import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    REAL,
    Array,
    laid_out,
    pointwise_meta,
    quiet,
    require,
    widening,
)
from .layout import like
from .opdef import OpDef, Pointwise, Sample, Tolerance
from .samples import layouts, pointwise_samples, special


def scalar_call(name: str) -> Callable[..., Any]:
    """The expression that is the scalar row of the same name."""

    def expr(s: Any, *args: Any) -> Any:
        return getattr(s, name)(*args)

    return expr


def unary(
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
    extremes: bool = True,
    own_order: bool = False,
) -> OpDef:
    """A row for a function of one operand. ``low`` and ``high``: where its samples lie; ``own_order``:
    ``fn`` is not a ufunc, and its result has to be put in the order of one."""
    meta = pointwise_meta(name, allowed, result)
    return OpDef(
        name,
        (),
        meta,
        laid_out(widening(fn), meta, own_order),
        lower=Pointwise(expr or scalar_call(name)),
        samples=pointwise_samples(allowed, low=low, high=high, extremes=extremes),
        dtypes=tuple(allowed),
        tolerance=Tolerance(eps),
        doc=doc,
    )


def real_of(dtype: DType) -> DType:
    return dtype.real


# -- references and expressions that NumPy or the scalar table do not have ---------------------
def by_element(fn: Callable[[float], float]) -> Callable[[Array], Array]:
    """A reference from a function of Python floats, rounded once."""
    vectorised = np.frompyfunc(fn, 1, 1)

    def ref(x: Array) -> Array:
        return np.asarray(vectorised(x.astype(np.float64))).astype(x.dtype)

    return ref


def _lgamma(x: float) -> float:
    if math.isnan(x):
        return x
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def angle_ref(x: Array) -> Array:
    return np.arctan2(x.imag, x.real)


def _reciprocal(s: Any, x: Any) -> Any:
    dtype = s.dtype(x)
    if dtype.is_inexact:
        return s.reciprocal(x)
    # NumPy divides integers as doubles and converts back
    return s.cast(s.divide(s.const(1.0, float64), s.cast(x, float64)), dtype)


def _imag(s: Any, x: Any) -> Any:
    dtype = s.dtype(x)
    return s.imag(x) if dtype.is_complex else s.const(0, dtype)


def _real(s: Any, x: Any) -> Any:
    return s.real(x) if s.dtype(x).is_complex else x


def _conj(s: Any, x: Any) -> Any:
    return s.conj(x) if s.dtype(x).is_complex else x


def _identity_of_integers(name: str) -> Callable[..., Any]:
    def expr(s: Any, x: Any) -> Any:
        return getattr(s, name)(x) if s.dtype(x).is_float else x

    return expr


def _false_for_integers(name: str, answer: bool) -> Callable[..., Any]:
    def expr(s: Any, x: Any) -> Any:
        return getattr(s, name)(x) if s.dtype(x).is_inexact else s.const(answer, bool_)

    return expr


def _signbit(s: Any, x: Any) -> Any:
    return s.signbit(s.cast(x, float32) if s.dtype(x) is bfloat16 else x)


def of_truth(name: str) -> Callable[..., Any]:
    """The scalar row ``name`` on the operands' truth values."""

    def expr(s: Any, *args: Any) -> Any:
        return getattr(s, name)(*(s.cast(a, bool_) for a in args))

    return expr


# -- convert ----------------------------------------------------------------------------------
def convert_meta(x: ArrayType, *, dtype: DType) -> ArrayType:
    require([x], ALL, "convert")
    return like(x, dtype)


def convert_ref(x: Array, *, dtype: DType) -> Array:
    with silently():
        if x.dtype.kind == "c" and not dtype.is_complex and not dtype.is_bool:
            x = x.real
        return x.astype(dtype.numpy)


def _convert(s: Any, x: Any, *, dtype: DType) -> Any:
    return s.cast(x, dtype)


def convert_samples() -> Iterator[Sample]:
    """Every pair of dtypes on ordinary values, layouts on one pair, extremes where they are defined."""
    for source in ALL:
        for target in ALL:
            for label, array in layouts(source):
                if label in ("matrix", "0-d"):
                    yield Sample((array,), {"dtype": target}, f"{source}-{target}-{label}")
            if source.is_integer or source.is_bool or target.is_inexact or target.is_bool:
                yield Sample((special(source),), {"dtype": target}, f"{source}-{target}-special")
    for label, array in layouts(float64):
        yield Sample((array,), {"dtype": ALL[11]}, f"float64-{label}")


CONVERT = OpDef(
    "convert",
    ("dtype",),
    convert_meta,
    convert_ref,
    lower=Pointwise(_convert),
    samples=convert_samples,
    tolerance=Tolerance(0.0),
    doc="Elements converted to `dtype` as `ndarray.astype` does: a C cast (float to integer truncates; "
    "what does not fit is undefined as in NumPy), to bool by comparison with zero, complex to real drops "
    "the imaginary part.",
)

_FLOOR_LIKE = BOOL + REAL


def sigmoid_ref(x: Array) -> Array:
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return (1.0 / (1.0 + np.exp(-wide))).astype(x.dtype)


ROWS: tuple[OpDef, ...] = (
    CONVERT,
    unary("negative", np.negative, NUMBER, "-x; integers wrap; bool is an error.", eps=0.0),
    unary(
        "abs",
        np.abs,
        ANY,
        "Absolute value; real for complex input; the least integer stays itself.",
        result=real_of,
    ),
    unary("sign", np.sign, NUMBER, "-1, 0 or 1; NaN for NaN; x/abs(x) for complex x, 0 at 0."),
    unary(
        "floor",
        np.floor,
        _FLOOR_LIKE,
        "Largest integer value <= x.",
        eps=0.0,
        expr=_identity_of_integers("floor"),
    ),
    unary(
        "ceil",
        np.ceil,
        _FLOOR_LIKE,
        "Smallest integer value >= x.",
        eps=0.0,
        expr=_identity_of_integers("ceil"),
    ),
    unary(
        "trunc",
        np.trunc,
        _FLOOR_LIKE,
        "x rounded towards zero.",
        eps=0.0,
        expr=_identity_of_integers("trunc"),
    ),
    unary("rint", np.rint, INEXACT, "x rounded to the nearest integer value, halves to even.", eps=0.0),
    unary("sqrt", np.sqrt, INEXACT, "Square root; NaN for negative reals.", low=0.0),
    unary("cbrt", np.cbrt, FLOAT, "Cube root."),
    unary("exp", np.exp, INEXACT, "e**x."),
    unary("exp2", np.exp2, INEXACT, "2**x."),
    unary("expm1", np.expm1, INEXACT, "exp(x) - 1, accurate near 0."),
    unary("log", np.log, INEXACT, "Natural logarithm; -inf at 0, NaN for negative reals.", low=0.1),
    unary("log2", np.log2, INEXACT, "Logarithm to base 2.", low=0.1),
    unary("log10", np.log10, INEXACT, "Logarithm to base 10.", low=0.1),
    unary("log1p", np.log1p, INEXACT, "log(1 + x), accurate near 0.", low=-0.9),
    unary("sin", np.sin, INEXACT, "Sine (radians)."),
    unary("cos", np.cos, INEXACT, "Cosine (radians)."),
    unary("tan", np.tan, INEXACT, "Tangent (radians).", eps=16.0),
    unary("arcsin", np.arcsin, INEXACT, "Inverse sine.", low=-1.0, high=1.0),
    unary("arccos", np.arccos, INEXACT, "Inverse cosine.", low=-1.0, high=1.0),
    unary("arctan", np.arctan, INEXACT, "Inverse tangent."),
    unary("sinh", np.sinh, INEXACT, "Hyperbolic sine."),
    unary("cosh", np.cosh, INEXACT, "Hyperbolic cosine."),
    unary("tanh", np.tanh, INEXACT, "Hyperbolic tangent."),
    unary("arcsinh", np.arcsinh, INEXACT, "Inverse hyperbolic sine."),
    unary("arccosh", np.arccosh, INEXACT, "Inverse hyperbolic cosine.", low=1.0),
    unary("arctanh", np.arctanh, INEXACT, "Inverse hyperbolic tangent.", low=-0.95, high=0.95),
    unary("erf", by_element(math.erf), FLOAT, "Error function.", own_order=True),
    unary("erfc", by_element(math.erfc), FLOAT, "Complementary error function.", own_order=True),
    unary(
        "lgamma",
        by_element(_lgamma),
        FLOAT,
        "Logarithm of the absolute value of the gamma function; inf at the poles.",
        own_order=True,
        low=0.1,
        high=20.0,
        eps=32.0,
    ),
    unary("sigmoid", sigmoid_ref, FLOAT, "1 / (1 + exp(-x)).", own_order=True),
    unary(
        "reciprocal",
        np.reciprocal,
        NUMBER,
        "1/x; for integers the double quotient converted back.",
        expr=_reciprocal,
        extremes=False,
        low=0.5,
    ),
    unary("square", np.square, NUMBER, "x*x."),
    unary(
        "isnan",
        np.isnan,
        ANY,
        "Whether NaN (either part for complex).",
        result=bool_,
        expr=_false_for_integers("isnan", False),
    ),
    unary(
        "isinf", np.isinf, ANY, "Whether infinite.", result=bool_, expr=_false_for_integers("isinf", False)
    ),
    unary(
        "isfinite",
        np.isfinite,
        ANY,
        "Whether neither NaN nor infinite.",
        result=bool_,
        expr=_false_for_integers("isfinite", True),
    ),
    unary(
        "signbit",
        np.signbit,
        FLOAT,
        "Whether the sign bit is set (-0.0 and negative NaN too).",
        result=bool_,
        expr=_signbit,
    ),
    unary("logical_not", np.logical_not, ANY, "x == 0.", result=bool_, expr=of_truth("logical_not")),
    unary("invert", np.invert, BOOL + INTEGER, "Bitwise not; logical not for bool.", eps=0.0),
    unary("conj", np.conjugate, NUMBER, "Complex conjugate; x itself for reals.", expr=_conj, eps=0.0),
    unary(
        "real",
        quiet(lambda x: x.real),
        ANY,
        "Real part, as a fresh array.",
        result=real_of,
        expr=_real,
        eps=0.0,
        own_order=True,
    ),
    unary(
        "imag",
        quiet(lambda x: x.imag),
        ANY,
        "Imaginary part (0 for reals), as a fresh array.",
        result=real_of,
        expr=_imag,
        eps=0.0,
        own_order=True,
    ),
    unary(
        "angle",
        angle_ref,
        COMPLEX + FLOAT,
        "Argument of a complex number in (-pi, pi].",
        result=real_of,
        own_order=True,
    ),
)
