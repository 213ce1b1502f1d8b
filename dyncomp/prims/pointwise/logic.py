"""Comparisons, logic, choice and classes of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import bfloat16, bool_, float32, float64
from ...graph.ir import ArrayType
from ..kit import (
    ANY,
    BOOL,
    FLOAT,
    pointwise_type,
    require,
    require_alike,
    require_same_shape,
)
from ..opdef import NEVER, OpDef, Sample
from ..samples import data, layouts, special
from ..scalar_types import ScalarOp
from . import pairs, partials
from .kit import binary, pointwise, unary

if TYPE_CHECKING:
    from ..scalar import ScalarBuilder


def of_truth(name: str) -> Callable[..., Any]:
    """The scalar row ``name`` on the operands' truth values."""

    def expr(s: ScalarBuilder, *args: object) -> Any:
        return getattr(s, name)(*(s.cast(a, bool_) for a in args))

    return expr


def _false_for_integers(name: str, answer: bool) -> Callable[..., Any]:
    def expr(s: ScalarBuilder, x: object) -> Any:
        return getattr(s, name)(x) if s.dtype(x).is_inexact else s.const(answer, bool_)

    return expr


def _signbit(s: ScalarBuilder, x: object) -> Any:
    return s.signbit(s.cast(x, float32) if s.dtype(x) is bfloat16 else x)


def _signbit_definition(x: Any) -> Any:
    return np.less(x, 0) if np.asarray(x).dtype.kind in "biu" else np.signbit(x)


def _comparison(name: str, sign: str, **said: Any) -> ScalarOp:
    return ScalarOp(
        cpp={"biuf": f"{{0}} {sign} {{1}}", "c": f"dc_{name}_{{t}}({{0}}, {{1}})"},
        triton={"biuf": f"{{0}} {sign} {{1}}"},
        python=sign,
        **said,
    )


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


ROWS: tuple[OpDef, ...] = (
    binary(
        "equal",
        np.equal,
        ANY,
        "x == y.",
        result=bool_,
        scalar=_comparison(
            "equal", "==", pair=lambda s, a, b: s.logical_and(s.equal(a[0], b[0]), s.equal(a[1], b[1]))
        ),
        exact=True,
        rounds={"fc": NEVER},
    ),
    binary(
        "not_equal",
        np.not_equal,
        ANY,
        "x != y (true for NaN).",
        result=bool_,
        scalar=_comparison(
            "not_equal",
            "!=",
            pair=lambda s, a, b: s.logical_or(s.not_equal(a[0], b[0]), s.not_equal(a[1], b[1])),
        ),
        exact=True,
        rounds={"fc": NEVER},
    ),
    binary(
        "less",
        np.less,
        ANY,
        "x < y; complex by (real, imag).",
        result=bool_,
        scalar=_comparison("less", "<", negation="greater_equal", pair=pairs.ordered("less")),
        exact=True,
        rounds={"f": NEVER},
    ),
    binary(
        "less_equal",
        np.less_equal,
        ANY,
        "x <= y; complex by (real, imag).",
        result=bool_,
        scalar=_comparison("less_equal", "<=", negation="greater", pair=pairs.ordered("less_equal")),
        exact=True,
        rounds={"f": NEVER},
    ),
    binary(
        "greater",
        np.greater,
        ANY,
        "x > y; complex by (real, imag).",
        result=bool_,
        scalar=_comparison("greater", ">", negation="less_equal", pair=pairs.ordered("greater")),
        exact=True,
        rounds={"f": NEVER},
    ),
    binary(
        "greater_equal",
        np.greater_equal,
        ANY,
        "x >= y; complex by (real, imag).",
        result=bool_,
        scalar=_comparison("greater_equal", ">=", negation="less", pair=pairs.ordered("greater_equal")),
        exact=True,
        rounds={"f": NEVER},
    ),
    unary(
        "logical_not",
        np.logical_not,
        ANY,
        "x == 0.",
        result=bool_,
        expr=of_truth("logical_not"),
        scalar=ScalarOp(
            kinds="b", cpp={"b": "!{0}"}, triton={"b": "{0} == 0"}, python="not", involution=True
        ),
        exact=True,
        rounds={"fc": NEVER},
    ),
    binary(
        "logical_and",
        np.logical_and,
        ANY,
        expr=of_truth("logical_and"),
        doc="x != 0 and y != 0.",
        result=bool_,
        scalar=ScalarOp(
            commutative=True, kinds="b", cpp={"b": "{0} & {1}"}, triton={"b": "{0} & {1}"}, python="and"
        ),
        exact=True,
        rounds={"fc": NEVER},
    ),
    binary(
        "logical_or",
        np.logical_or,
        ANY,
        expr=of_truth("logical_or"),
        doc="x != 0 or y != 0.",
        result=bool_,
        scalar=ScalarOp(
            commutative=True, kinds="b", cpp={"b": "{0} | {1}"}, triton={"b": "{0} | {1}"}, python="or"
        ),
        exact=True,
        rounds={"fc": NEVER},
    ),
    binary(
        "logical_xor",
        np.logical_xor,
        ANY,
        expr=of_truth("logical_xor"),
        doc="(x != 0) != (y != 0).",
        result=bool_,
        scalar=ScalarOp(commutative=True, kinds="b", cpp={"b": "{0} != {1}"}, triton={"b": "{0} ^ {1}"}),
        exact=True,
        rounds={"fc": NEVER},
    ),
    pointwise(
        3,
        "where",
        np.where,
        ANY,
        "x where the bool condition holds, else y.",
        meta=where_meta,
        samples=where_samples,
        eps=0.0,
        scalar=ScalarOp(
            cpp={"biuf": "{0} ? {1} : {2}", "c": "{T}{{{0} ? {1}.re : {2}.re, {0} ? {1}.im : {2}.im}}"},
            triton={"biuf": "tl.where({0}, {1}, {2})"},
            exact_in_half=True,
            principal=1,
            python="if",
            pair=lambda s, c, a, b: (s.where(c, a[0], b[0]), s.where(c, a[1], b[1])),
        ),
        partials=partials.where,
        exact=True,
        rounds={"fc": NEVER},
    ),
    unary(
        "isnan",
        np.isnan,
        ANY,
        "Whether NaN (either part for complex).",
        result=bool_,
        expr=_false_for_integers("isnan", False),
        scalar=ScalarOp(
            cpp={"biu": "false", "f": "{0} != {0}", "c": "({0}.re != {0}.re) | ({0}.im != {0}.im)"},
            triton={"biu": "({0} != {0})", "f": "{0} != {0}"},
            pair=lambda s, a: s.logical_or(s.isnan(a[0]), s.isnan(a[1])),
        ),
        rounds={"fc": NEVER},
    ),
    unary(
        "isinf",
        np.isinf,
        ANY,
        "Whether infinite.",
        result=bool_,
        expr=_false_for_integers("isinf", False),
        scalar=ScalarOp(
            cpp={"biu": "false", "f": "dc_abs_{t}({0}) == __builtin_inf()", "c": "dc_isinf_{t}({0})"},
            triton={"biu": "({0} != {0})", "f": 'tl.abs({0}) == float("inf")'},
            pair=lambda s, a: s.logical_or(s.isinf(a[0]), s.isinf(a[1])),
        ),
        rounds={"fc": NEVER},
    ),
    unary(
        "isfinite",
        np.isfinite,
        ANY,
        "Whether neither NaN nor infinite.",
        result=bool_,
        expr=_false_for_integers("isfinite", True),
        scalar=ScalarOp(
            cpp={"biu": "true", "f": "dc_abs_{t}({0}) < __builtin_inf()", "c": "dc_isfinite_{t}({0})"},
            triton={"biu": "({0} == {0})", "f": 'tl.abs({0}) < float("inf")'},
            pair=lambda s, a: s.logical_and(s.isfinite(a[0]), s.isfinite(a[1])),
        ),
        rounds={"fc": NEVER},
    ),
    unary(
        "signbit",
        np.signbit,
        FLOAT,
        "Whether the sign bit is set (-0.0 and negative NaN too).",
        result=bool_,
        expr=_signbit,
        scalar=ScalarOp(
            kinds="iuf",
            numpy=_signbit_definition,
            cpp={"iu": "{0} < 0", "f": "dc_signbit_{t}({0})"},
            triton={"iu": "{0} < 0", "f": "dc_signbit({0})"},
        ),
        rounds={"f": NEVER},
    ),
)
