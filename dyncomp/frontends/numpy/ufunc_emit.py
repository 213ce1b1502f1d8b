"""Which ops compute a ufunc's inner loop, once operands have its dtypes and one shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...dataclass import dataclass
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.scalar import SCALARS
from ..base import TraceContext
from . import promote
from .operands import broadcast_to, constant, convert, emit
from .views import in_memory_as

Emit = Callable[..., Any]

# ufuncs whose op has another name
_RENAMED = {
    "absolute": "abs",
    "conjugate": "conj",
    "true_divide": "divide",
    "mod": "remainder",
    "pow": "power",
    "bitwise_not": "invert",
}

# may set floating-point status flags, for which NumPy warns or raises as np.errstate says
_QUIET = frozenset(
    [
        "sign",
        "signbit",
        "logical_not",
        "invert",
        "positive",
        "equal",
        "not_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "left_shift",
        "right_shift",
        "copysign",
        "isnan",
        "isinf",
        "isfinite",
        "conjugate",
        "absolute",
    ]
)
_INTEGER_FLAGS = frozenset(("floor_divide", "remainder", "fmod", "divmod", "divide", "power", "reciprocal"))

_COMPARISONS = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))


@dataclass(frozen=True)
class Loop:
    """The dtypes of a ufunc's inner loop: of its inputs and outputs."""

    ins: tuple[DType, ...]
    outs: tuple[DType, ...]


def full_like(tx: TraceContext, x: Var, value: object) -> Var:
    """A constant broadcast to the shape of ``x``, in its dtype."""
    return broadcast_to(tx, constant(tx, value, x.dtype), x.shape)


def _namesake(op: str) -> Emit:
    def run(tx: TraceContext, loop: Loop, *inputs: Var) -> Var:
        return emit(tx, op, *inputs)

    return run


def _positive(tx: TraceContext, loop: Loop, x: Var) -> Var:
    return _same(tx, x)


def _same(tx: TraceContext, x: Var) -> Var:
    """The values in a fresh array in the order of a ufunc's results: not a copy's where axes repeat."""
    return in_memory_as(tx, emit(tx, "copy", x), x)


def _rounding(op: str) -> Emit:
    def run(tx: TraceContext, loop: Loop, x: Var) -> Var:
        return emit(tx, op, x) if x.dtype.is_inexact else _same(tx, x)

    return run


def _absolute(tx: TraceContext, loop: Loop, x: Var) -> Var:
    if x.dtype.is_bool or x.dtype.kind == "uint":
        return _same(tx, x)
    return emit(tx, "abs", x)


def _conjugate(tx: TraceContext, loop: Loop, x: Var) -> Var:
    return emit(tx, "conj", x) if x.dtype.is_complex else _same(tx, x)


def _is_flag(op: str, of_integers: bool) -> Emit:
    def run(tx: TraceContext, loop: Loop, x: Var) -> Var:
        if x.dtype.is_inexact:
            return emit(tx, op, x)
        return emit(tx, "equal" if of_integers else "not_equal", x, x)

    return run


def _scaled(factor: Callable[[Any], Any]) -> Emit:
    """Multiplication by a constant computed in the loop's own precision."""

    def run(tx: TraceContext, loop: Loop, x: Var) -> Var:
        wide = convert(tx, x, dtypes.float32) if x.dtype == dtypes.float16 else x
        scale = factor(wide.dtype.numpy.type)
        return convert(tx, emit(tx, "multiply", wide, full_like(tx, wide, scale)), x.dtype)

    return run


def _degrees(kind: Callable[..., Any]) -> Any:
    return kind(180.0) / kind(math.pi)


def _radians(kind: Callable[..., Any]) -> Any:
    return kind(math.pi) / kind(180.0)


def _power(tx: TraceContext, loop: Loop, x: Var, y: Var) -> Var:
    if y.dtype.kind == "int":
        value = constant_value(tx, y)
        if value is None:
            raise Unsupported("integers to negative integer powers are an error; the exponent is not known")
        if value < 0:
            raise Unsupported("Integers to negative integer powers are not allowed.")
        return _integer_power(tx, x, y, value)
    return _inexact_power(tx, x, y)


def _integer_power(tx: TraceContext, x: Var, y: Var, exponent: int) -> Var:
    if exponent == 2:
        return emit(tx, "multiply", x, x)
    return emit(tx, "power", x, y)


def _float_power(tx: TraceContext, loop: Loop, x: Var, y: Var) -> Var:
    tx.unsure += 1  # without ``power``'s short cuts
    return _inexact_power(tx, x, y)


_FAST_POWERS = {2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}


def _inexact_power(tx: TraceContext, x: Var, y: Var) -> Var:
    """The ufunc's own short cuts for a constant exponent, which differ from ``pow`` at ``-inf``."""
    value = constant_value(tx, y) if x.shape else None
    if value == 1.0 and not x.dtype.is_complex:
        return in_memory_as(tx, _same(tx, x), x, y)
    op = _FAST_POWERS.get(value) if value is not None else None
    return emit(tx, op, x) if op is not None else emit(tx, "power", x, y)


def constant_value(tx: TraceContext, var: Var) -> Any:
    """The value of a constant broadcast to any shape, or ``None``. Looks back through the nodes."""
    wanted = var.name
    for node in reversed(tx.builder.nodes):
        if not node.outputs or node.outputs[0].name != wanted:
            continue
        if node.op == "full":
            return node.kwargs["value"]
        if node.op not in ("broadcast_in_dim", "copy", "reshape"):
            return None
        wanted = node.inputs[0].name
    return None


def _comparison(op: str) -> Emit:
    def run(tx: TraceContext, loop: Loop, x: Var, y: Var) -> Var:
        if x.dtype == y.dtype:
            return emit(tx, op, x, y)
        if x.dtype.kind == "int":
            return _compare_signed(tx, op, x, y)
        return _compare_signed(tx, _MIRROR[op], y, x)

    return run


_MIRROR = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def _compare_signed(tx: TraceContext, op: str, x: Var, y: Var) -> Var:
    """Compare int64 with uint64 exactly: a negative number is below every unsigned one."""
    below = emit(tx, "less", x, full_like(tx, x, 0))
    same_sign = emit(tx, op, emit(tx, "convert", x, dtype=y.dtype), y)
    if op in ("less", "less_equal", "not_equal"):
        return emit(tx, "logical_or", below, same_sign)
    return emit(tx, "logical_and", emit(tx, "logical_not", below), same_sign)


def _divmod(tx: TraceContext, loop: Loop, x: Var, y: Var) -> tuple[Var, Var]:
    return emit(tx, "floor_divide", x, y), emit(tx, "remainder", x, y)


def _modf(tx: TraceContext, loop: Loop, x: Var) -> tuple[Var, Var]:
    whole = emit(tx, "trunc", x)
    infinite = emit(tx, "isinf", x)
    part = emit(tx, "where", infinite, full_like(tx, x, 0.0), emit(tx, "subtract", x, whole))
    return emit(tx, "copysign", part, x), whole


def _spacing(tx: TraceContext, loop: Loop, x: Var) -> Var:
    if x.dtype == dtypes.float16:
        raise Unsupported("numpy.spacing of float16")
    infinity = full_like(tx, x, math.inf)
    is_zero = emit(tx, "equal", x, full_like(tx, x, 0.0))  # of either sign: up from there
    away = emit(tx, "where", is_zero, infinity, emit(tx, "copysign", infinity, x))
    return emit(tx, "subtract", emit(tx, "nextafter", x, away), x)


def _ldexp(tx: TraceContext, loop: Loop, x: Var, exponent: Var) -> Var:
    return in_memory_as(tx, emit(tx, "ldexp", x, convert(tx, exponent, dtypes.int64)), x, exponent)


def _bitwise_count(tx: TraceContext, loop: Loop, x: Var) -> Var:
    given = x
    if x.dtype.kind == "int":
        # the magnitude of the least number is one of the unsigned numbers only
        x = convert(tx, emit(tx, "abs", x), promote.from_np(np.dtype(f"u{x.dtype.itemsize}")))
    wide = convert(tx, x, dtypes.uint64)
    for shift, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        wide = _add_halves(tx, wide, shift, mask)
    product = emit(tx, "multiply", wide, full_like(tx, wide, 0x0101010101010101))
    count = emit(tx, "right_shift", product, full_like(tx, wide, 56))
    return in_memory_as(tx, convert(tx, count, loop.outs[0]), given)


def _add_halves(tx: TraceContext, x: Var, shift: int, mask: int) -> Var:
    masks = full_like(tx, x, mask)
    low = emit(tx, "bitwise_and", x, masks)
    high = emit(tx, "bitwise_and", emit(tx, "right_shift", x, full_like(tx, x, shift)), masks)
    return emit(tx, "add", low, high)


def _extreme(op: str, better: str) -> Emit:
    """``maximum`` and its like. Of equal halves, which NumPy compares one by one, the first is the result."""
    first_missing = op in ("maximum", "minimum")

    def run(tx: TraceContext, loop: Loop, x: Var, y: Var) -> Var:
        if x.dtype != dtypes.float16:
            return emit(tx, op, x, y)
        missing = emit(tx, "isnan", x if first_missing else y)
        chosen = emit(tx, "where", emit(tx, "logical_or", emit(tx, better, x, y), missing), x, y)
        return in_memory_as(tx, chosen, x, y)

    return run


def _clip(tx: TraceContext, loop: Loop, x: Var, low: Var, high: Var) -> Var:
    return emit(tx, "minimum", emit(tx, "maximum", x, low), high)


_SPECIAL: dict[str, Emit] = {
    "positive": _positive,
    "fabs": _absolute,
    "absolute": _absolute,
    "conjugate": _conjugate,
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "isnan": _is_flag("isnan", False),
    "isinf": _is_flag("isinf", False),
    "isfinite": _is_flag("isfinite", True),
    "degrees": _scaled(_degrees),
    "rad2deg": _scaled(_degrees),
    "radians": _scaled(_radians),
    "deg2rad": _scaled(_radians),
    "power": _power,
    "float_power": _float_power,
    "divmod": _divmod,
    "modf": _modf,
    "spacing": _spacing,
    "ldexp": _ldexp,
    "bitwise_count": _bitwise_count,
    "clip": _clip,
    "maximum": _extreme("maximum", "greater_equal"),
    "minimum": _extreme("minimum", "less_equal"),
    "fmax": _extreme("fmax", "greater_equal"),
    "fmin": _extreme("fmin", "less_equal"),
}


_OTHER_NAMES = {"mod": "remainder", "pow": "power", "true_divide": "divide"}


def emitter(ufunc: np.ufunc) -> Emit | None:
    """The function that emits the inner loop of ``ufunc``, or ``None`` where there is none."""
    name = _canonical(ufunc)
    if name in _SPECIAL:
        return _SPECIAL[name]
    if name in _COMPARISONS:
        return _comparison(name)
    op = _RENAMED.get(name, name)
    return _namesake(op) if op in SCALARS else None


def _canonical(ufunc: np.ufunc) -> str:
    return _OTHER_NAMES.get(ufunc.__name__, ufunc.__name__)


def sets_flags(ufunc: np.ufunc, loop: Loop) -> bool:
    """Whether the loop may set floating-point status flags."""
    name = _canonical(ufunc)
    if any(d.is_inexact for d in loop.ins):
        return name not in _QUIET
    return name in _INTEGER_FLAGS
