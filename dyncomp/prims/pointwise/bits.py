"""Bitwise functions and those of integers alone."""

from __future__ import annotations

import numpy as np

from ..kit import (
    BOOL,
    INTEGER,
)
from ..opdef import OpDef
from ..scalar_types import ScalarOp
from .kit import binary, unary

_BITS = BOOL + INTEGER


ROWS: tuple[OpDef, ...] = (
    unary(
        "invert",
        np.invert,
        BOOL + INTEGER,
        "Bitwise not; logical not for bool.",
        eps=0.0,
        scalar=ScalarOp(
            cpp={"b": "!{0}", "iu": "~{0}"},
            triton={"b": "{0} == 0", "iu": "~{0}"},
            python="~",
            involution=True,
        ),
        exact=True,
    ),
    binary(
        "bitwise_and",
        np.bitwise_and,
        _BITS,
        "Bitwise and.",
        eps=0.0,
        scalar=ScalarOp(commutative=True, cpp={"biu": "{0} & {1}"}, triton={"biu": "{0} & {1}"}, python="&"),
        exact=True,
    ),
    binary(
        "bitwise_or",
        np.bitwise_or,
        _BITS,
        "Bitwise or.",
        eps=0.0,
        scalar=ScalarOp(commutative=True, cpp={"biu": "{0} | {1}"}, triton={"biu": "{0} | {1}"}, python="|"),
        exact=True,
    ),
    binary(
        "bitwise_xor",
        np.bitwise_xor,
        _BITS,
        "Bitwise exclusive or.",
        eps=0.0,
        scalar=ScalarOp(
            commutative=True,
            cpp={"b": "{0} != {1}", "iu": "{0} ^ {1}"},
            triton={"biu": "{0} ^ {1}"},
            python="^",
        ),
        exact=True,
    ),
    binary(
        "left_shift",
        np.left_shift,
        INTEGER,
        "x * 2**y, wrapping; 0 where y is negative or not below the width.",
        eps=0.0,
        scalar=ScalarOp(cpp={"iu": "dc_shl_{t}({0}, {1})"}, triton={"iu": "dc_shl({0}, {1})"}, python="<<"),
    ),
    binary(
        "right_shift",
        np.right_shift,
        INTEGER,
        "floor(x / 2**y); the sign (0 or -1) where y is negative or not below the width.",
        eps=0.0,
        scalar=ScalarOp(cpp={"iu": "dc_shr_{t}({0}, {1})"}, triton={"iu": "dc_shr({0}, {1})"}, python=">>"),
    ),
    binary(
        "gcd",
        np.gcd,
        INTEGER,
        "Greatest common divisor, not negative.",
        eps=0.0,
        scalar=ScalarOp(cpp={"iu": "dc_gcd_{t}({0}, {1})"}, triton={"iu": "dc_gcd({0}, {1})"}, cost=60),
    ),
    binary(
        "lcm",
        np.lcm,
        INTEGER,
        "Least common multiple, not negative.",
        eps=0.0,
        scalar=ScalarOp(cpp={"iu": "dc_lcm_{t}({0}, {1})"}, triton={"iu": "dc_lcm({0}, {1})"}, cost=80),
    ),
)
