"""Special functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kit import (
    FLOAT,
    Array,
)
from ..opdef import OpDef
from ..scalar_types import ScalarOp, Vector
from . import partials
from .kit import by_element, called, unary

if TYPE_CHECKING:
    from ..scalar import ScalarBuilder


def _lgamma(x: float) -> float:
    if math.isnan(x):
        return x
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def sigmoid_ref(x: Array) -> Array:
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return (1.0 / (1.0 + np.exp(-wide))).astype(x.dtype)


def _sigmoid(s: ScalarBuilder, x: object) -> Any:
    one = s.const(1, s.dtype(x))
    return s.divide(one, s.add(one, s.exp(s.negative(x))))


ROWS: tuple[OpDef, ...] = (
    unary(
        "erf",
        by_element(math.erf),
        FLOAT,
        "Error function.",
        own_order=True,
        scalar=called("erf", "dc_erf({0})", vector=Vector()),
        partials=partials.gauss(1.0),
    ),
    unary(
        "erfc",
        by_element(math.erfc),
        FLOAT,
        "Complementary error function.",
        own_order=True,
        scalar=called("erfc", cost=25, vector=Vector()),
        partials=partials.gauss(-1.0),
    ),
    unary(
        "lgamma",
        by_element(_lgamma),
        FLOAT,
        "Logarithm of the absolute value of the gamma function; inf at the poles.",
        own_order=True,
        low=0.1,
        high=20.0,
        eps=32.0,
        scalar=called("lgamma", cost=60, vector=Vector()),
    ),
    unary(
        "sigmoid",
        sigmoid_ref,
        FLOAT,
        "1 / (1 + exp(-x)).",
        own_order=True,
        scalar=ScalarOp(
            cpp={"f": "dc_sigmoid_{t}({0})"},
            triton={"f": "dc_sigmoid({0})"},
            decomp=_sigmoid,
            cost=16,
            vector=Vector(),
        ),
        partials=partials.of_x(
            lambda ops, x, out: ops.multiply(out, ops.subtract(partials.scalar(ops, x, 1.0), out))
        ),
    ),
)
