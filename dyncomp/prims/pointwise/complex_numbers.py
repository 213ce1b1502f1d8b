"""Complex numbers and their parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import complex64, complex128, float32, float64
from ...graph.ir import ArrayType
from ...graph.noted import silently
from ..kit import (
    ANY,
    COMPLEX,
    FLOAT,
    NUMBER,
    Array,
    pointwise_type,
    require,
    require_alike,
)
from ..opdef import NEVER, OpDef
from ..scalar_types import ScalarOp
from . import partials
from .kit import binary, real_of, unary

if TYPE_CHECKING:
    from ..scalar import ScalarBuilder


def _copy_real(x: Any) -> Any:
    return np.real(x).copy()


def _copy_imag(x: Any) -> Any:
    return np.imag(x).copy() if np.iscomplexobj(x) else np.zeros_like(x)


def _angle_of(x: Array) -> Array:
    return np.arctan2(x.imag, x.real)


def _imag(s: ScalarBuilder, x: object) -> Any:
    dtype = s.dtype(x)
    return s.imag(x) if dtype.is_complex else s.const(0, dtype)


def _real(s: ScalarBuilder, x: object) -> Any:
    return s.real(x) if s.dtype(x).is_complex else x


def _conj(s: ScalarBuilder, x: object) -> Any:
    return s.conj(x) if s.dtype(x).is_complex else x


def _angle(s: ScalarBuilder, x: object) -> Any:
    if s.dtype(x).is_complex:
        return s.arctan2(s.imag(x), s.real(x))
    zero = s.const(0, s.dtype(x))
    turned = s.where(s.signbit(x), s.const(math.pi, s.dtype(x)), zero)
    return s.where(s.isnan(x), x, turned)


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


ROWS: tuple[OpDef, ...] = (
    unary(
        "conj",
        np.conjugate,
        NUMBER,
        "Complex conjugate; x itself for reals.",
        expr=_conj,
        eps=0.0,
        scalar=ScalarOp(
            cpp={"iuf": "{0}", "c": "dc_conj_{t}({0})"},
            triton={"iuf": "{0}"},
            exact_in_half=True,
            involution=True,
            pair=lambda s, a: (a[0], s.negative(a[1])),
        ),
        partials=partials.constant(1.0),
        rounds={"fc": NEVER},
    ),
    unary(
        "real",
        _copy_real,
        ANY,
        "Real part, as a fresh array.",
        result=real_of,
        expr=_real,
        eps=0.0,
        own_order=True,
        scalar=ScalarOp(
            cpp={"biuf": "{0}", "c": "{0}.re"},
            triton={"biuf": "{0}"},
            exact_in_half=True,
            pair=lambda s, a: a[0],
        ),
        partials=partials.constant(1.0),
        rounds={"fc": NEVER},
    ),
    unary(
        "imag",
        _copy_imag,
        ANY,
        "Imaginary part (0 for reals), as a fresh array.",
        result=real_of,
        expr=_imag,
        eps=0.0,
        own_order=True,
        scalar=ScalarOp(
            cpp={"biuf": "0", "c": "{0}.im"},
            triton={"biuf": "{0} * 0"},
            exact_in_half=True,
            pair=lambda s, a: a[1],
        ),
        rounds={"fc": NEVER},
    ),
    unary(
        "angle",
        _angle_of,
        COMPLEX + FLOAT,
        "Argument of a complex number in (-pi, pi].",
        result=real_of,
        own_order=True,
        scalar=ScalarOp(decomp=_angle, cost=30),
    ),
    binary(
        "complex",
        complex_ref,
        (float32, float64),
        "The complex number with these real and imaginary parts.",
        meta=complex_meta,
        eps=0.0,
        scalar=ScalarOp(result="complex", cpp={"f": "{{{0}, {1}}}"}, pair=lambda s, re, im: (re, im)),
        rounds={"fc": NEVER},
    ),
)
