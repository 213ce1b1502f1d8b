"""Arithmetic, comparisons, functions of real numbers, ``where`` and ``clamp``."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.table import TABLE as PRIMS
from ..base import ArrayRef, TraceContext
from ..numpy.operands import broadcast_to
from .data_dependent import nonzero
from .gradients import is_differentiated, requires, where_true, with_gradient
from .library import torch
from .operands import (
    Number,
    as_tensor,
    axis_of,
    checked_number,
    contiguous,
    convert,
    into,
    need_tensor,
    only_defaults,
    ordered,
    pointwise,
    tensor,
    to_var,
)
from .promote import float_type, is_tensor, result_type
from .shape import cat, piece
from .torch_rules import RuleTable, resolve

TABLE = RuleTable()
_LARGEST_HALF = 65504.0


# -- arithmetic -------------------------------------------------------------------------------
def _needs_tensor(*values: object) -> None:
    if not any(is_tensor(v) for v in values):
        raise Unsupported("no tensor among the operands")
    for value in values:
        if is_tensor(value):
            need_tensor(value)


_EXACT_NUMBERS = {"multiply": (0, 1), "divide": (1,), "floor_divide": (1,)}


def computing_dtype(op: str, dtype: DType, *values: Any) -> DType:
    """float32 for half-precision arithmetic with a number, whose value torch does not round first: on the
    CPU factors and divisors, on a GPU any."""
    if dtype.itemsize != 2 or not dtype.is_float:
        return dtype
    on_cpu = all(v.host or v.type.device == CPU for v in values if is_tensor(v))
    places = _EXACT_NUMBERS.get(op, ()) if on_cpu else range(len(values))
    return dtypes.float32 if any(_is_number(values[place]) for place in places) else dtype


def _is_number(value: Any) -> bool:
    """Whether torch takes an operand for a number: a tensor without dimensions too, if it is on the CPU."""
    if not is_tensor(value):
        return True
    return not value.ndim and (value.host or value.type.device == CPU)


def arithmetic(tx: TraceContext, op: str, a: object, b: object, dtype: DType | None = None) -> Var:
    """``op(a, b)`` in the operands' common dtype."""
    _needs_tensor(a, b)
    common = dtype or result_type(a, b)
    wide = computing_dtype(op, common, a, b)
    ready = [to_var(tx, v, wide, may_overflow=True) for v in (a, b)]
    return convert(tx, pointwise(tx, op, *ready), common)


def _with_scaled(tx: TraceContext, op: str, a: object, b: object, alpha: Any) -> Var:
    """``op(a, b * alpha)``; of halves alpha is one, and what comes of it is rounded once."""
    _needs_tensor(a, b)
    common = result_type(a, b)
    if common.is_complex:
        return _with_scaled_complex(tx, op, a, b, alpha, common)
    if type(alpha) is int and alpha == 1:
        return arithmetic(tx, op, a, b)
    if not is_tensor(b):
        raise Unsupported("alpha with a number")
    if isinstance(alpha, bool) and not common.is_bool:
        raise Unsupported("Boolean alpha only supported for Boolean results.")
    if not common.is_float and not isinstance(alpha, int):
        raise Unsupported("For integral input tensors, argument alpha must not be a floating point number.")
    if op == "subtract" and alpha == -(2**63):
        raise Unsupported("an alpha of which torch takes the negative as an integer")
    if type(alpha) in (bool, float) and alpha == 1:
        return arithmetic(tx, op, a, b)
    if common.is_bool:
        raise Unsupported("alpha with bools")
    if not common.is_float or common.itemsize > 2:
        scaled = pointwise(tx, "multiply", to_var(tx, b, common), to_var(tx, alpha, common))
        return pointwise(tx, op, to_var(tx, a, common), scaled)
    if type(alpha) not in (int, float) or not abs(alpha) <= _LARGEST_HALF:
        raise Unsupported("alpha that may be beyond the range of halves")
    wide = dtypes.float32
    factor = convert(tx, to_var(tx, alpha, common), wide)
    scaled = pointwise(tx, "multiply", to_var(tx, b, wide), factor)
    return convert(tx, pointwise(tx, op, to_var(tx, a, wide), scaled), common)


def _with_scaled_complex(tx: TraceContext, op: str, a: object, b: object, alpha: Any, common: DType) -> Var:
    """``a + alpha * b`` or ``a + -alpha * b``, by ``1 + 0j`` too: infinities, nan and ``-0.0`` show it.
    ``1 + z`` is ``z.add(1)``."""
    if type(alpha) not in (int, float, complex):
        raise Unsupported("alpha of complex numbers that is no number")
    if op == "add" and not is_tensor(a):
        a, b = b, a
    factor = complex(alpha if op == "add" else -alpha)
    scaled = pointwise(tx, "multiply", to_var(tx, b, common), to_var(tx, factor, common))
    return pointwise(tx, "add", to_var(tx, a, common), scaled)


def add_var(tx: TraceContext, a: object, b: object, alpha: object = 1) -> Var:
    return _with_scaled(tx, "logical_or" if _both_bool(a, b) else "add", a, b, alpha)


def subtract_var(tx: TraceContext, a: object, b: object, alpha: object = 1) -> Var:
    if any(_is_bool(v) for v in (a, b)):
        raise Unsupported("Subtraction, the `-` operator, with a bool tensor is not supported.")
    return _with_scaled(tx, "subtract", a, b, alpha)


def multiply_var(tx: TraceContext, a: object, b: object) -> Var:
    return arithmetic(tx, "logical_and" if _both_bool(a, b) else "multiply", a, b)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, ArrayRef) and value.dtype.is_bool)


def _both_bool(a: object, b: object) -> bool:
    return _is_bool(a) and _is_bool(b)


def divide_var(tx: TraceContext, a: object, b: object, rounding_mode: object = None) -> Var:
    if rounding_mode == "floor":
        return _floor_divided(tx, a, b)
    if rounding_mode not in (None, "trunc"):
        raise Unsupported(f"rounding_mode={rounding_mode!r}")
    common = result_type(a, b)
    if rounding_mode is None:
        return arithmetic(tx, "divide", a, b, float_type(common))
    if not common.is_float:
        raise Unsupported("truncated division of integers")
    return pointwise(tx, "trunc", arithmetic(tx, "divide", a, b, common))


def _integer_divisor(common: DType, b: object) -> None:
    """Division of integers by zero raises: divisors must be known."""
    if common.is_float:
        return
    if not isinstance(b, int) or b == 0 or common.is_bool:
        raise Unsupported("division of integers by numbers known at run time only may raise")


def floor_divide_var(tx: TraceContext, a: object, b: object) -> Var:
    """Unlike division that is rounded, it has no derivative."""
    if is_differentiated(tx, *(v.var for v in (a, b) if isinstance(v, ArrayRef))):
        raise Unsupported("floor_divide of what requires a gradient")
    return _floor_divided(tx, a, b)


def _floor_divided(tx: TraceContext, a: object, b: object) -> Var:
    common = result_type(a, b)
    _integer_divisor(common, b)
    return arithmetic(tx, "floor_divide", a, b, common)


def remainder_var(tx: TraceContext, a: object, b: object) -> Var:
    """Zeros have the sign of the dividend: NumPy, and the op, give them that of the divisor."""
    common = result_type(a, b)
    _integer_divisor(common, b)
    found = arithmetic(tx, "remainder", a, b, common)
    if not common.is_float:
        return found
    zero = to_var(tx, 0.0, common)
    signed = pointwise(tx, "copysign", zero, to_var(tx, a, common, may_overflow=True))
    out = pointwise(tx, "where", pointwise(tx, "equal", found, zero), signed, found)
    operands = [to_var(tx, v, common, may_overflow=True) for v in (a, b)]
    if not is_differentiated(tx, *operands):
        return out
    if requires(tx, operands[1]) or operands[0].shape != out.shape:
        raise Unsupported("remainder by what requires a gradient, or is larger")
    return with_gradient(tx, out, (operands[0], lambda cotangent: cotangent))


def power_var(tx: TraceContext, a: object, b: object) -> Var:
    """Small constant exponents are products and roots, as torch computes them."""
    _needs_tensor(a, b)
    common = result_type(a, b)
    if common.is_bool:
        raise Unsupported("powers of bools")
    b = _exponent(tx, b, common)
    if isinstance(b, Number):
        special = _constant_power(tx, as_tensor(tx, a), b, common)
        if special is not None:
            return special
    if common.is_integer and not (isinstance(b, int) and b >= 0):
        raise Unsupported("integers to powers that may be negative")
    return arithmetic(tx, "power", a, b, common)


def _exponent(tx: TraceContext, b: Any, common: DType) -> Any:
    """Numbers are to fit the dtype, and rounding may not make odd ones even."""
    if is_tensor(b) or not common.is_float or common == dtypes.float64:
        return b
    if isinstance(b, ArrayRef):
        return tensor(checked_number(tx, b.var, common, _LARGEST_ODD))
    largest = int(_LARGEST_HALF) if common == dtypes.float16 else _LARGEST_ODD
    if not -largest <= b <= largest and not (isinstance(b, float) and not math.isfinite(b)):
        raise Unsupported("powers to an exponent that is rounded, or beyond the range of halves")
    return b


_LARGEST_ODD = 1 << 24


def _constant_power(tx: TraceContext, x: ArrayRef, exponent: object, common: DType) -> Var | None:
    if exponent == 0:
        return None
    wide = convert(tx, x.var, dtypes.float32 if common.itemsize == 2 and common.is_float else common)
    found = _simple_power(tx, wide, exponent)
    return None if found is None else convert(tx, found, common)


def _simple_power(tx: TraceContext, x: Var, exponent: object) -> Var | None:
    if exponent == 2:
        return pointwise(tx, "multiply", x, x)
    if exponent == 3:
        return pointwise(tx, "multiply", pointwise(tx, "multiply", x, x), x)
    if not x.dtype.is_float:
        return None
    if exponent == 0.5:
        return pointwise(tx, "sqrt", x)
    if exponent == -0.5:
        return pointwise(tx, "rsqrt", x)
    if exponent == -1:
        return pointwise(tx, "reciprocal", x)
    if exponent == -2:
        return pointwise(tx, "reciprocal", pointwise(tx, "multiply", x, x))
    return None


@TABLE.both("add")
def add(tx: TraceContext, input: object, other: object, *, alpha: object = 1, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return tensor(add_var(tx, input, other, alpha))


@TABLE.both("sub", "subtract")
def sub(tx: TraceContext, input: object, other: object, *, alpha: object = 1, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return tensor(subtract_var(tx, input, other, alpha))


@TABLE.both("diff")
def diff(
    tx: TraceContext,
    input: object,
    n: object = 1,
    dim: object = -1,
    prepend: object = None,
    append: object = None,
    *,
    out: object = None,
) -> ArrayRef:
    """Differences of neighbours along ``dim``, once; more is torch's own routine."""
    only_defaults(out=out)
    parts = [need_tensor(part) for part in (prepend, input, append) if part is not None]
    x = need_tensor(input)
    if type(n) is not int or n != 1 or not x.ndim or type(dim) is bool:
        raise Unsupported("diff of a higher order, or of one number")
    if any(part.ndim != x.ndim or part.dtype != x.dtype for part in parts):
        raise Unsupported("diff of tensors of several dtypes or numbers of dimensions")
    whole = x if len(parts) == 1 else cat(tx, parts, dim)
    axis = axis_of(dim, x.ndim)
    size = whole.shape[axis]
    if size < 2:
        raise Unsupported("diff of nothing")
    later, before = (piece(tx, whole.var, axis, first, size - 1) for first in (1, 0))
    if x.dtype.is_bool:
        return tensor(pointwise(tx, "logical_xor", later.var, before.var))
    return tensor(subtract_var(tx, later, before))


@TABLE.both("mul", "multiply")
def mul(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return tensor(multiply_var(tx, input, other))


@TABLE.both("div", "divide", "true_divide")
def div(
    tx: TraceContext, input: object, other: object, *, rounding_mode: object = None, out: object = None
) -> ArrayRef:
    return into(tx, out, divide_var(tx, input, other, rounding_mode))


@TABLE.both("floor_divide")
def floor_divide(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return tensor(floor_divide_var(tx, input, other))


@TABLE.both("remainder")
def remainder(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return tensor(remainder_var(tx, input, other))


@TABLE.both("pow")
def pow(tx: TraceContext, input: object, exponent: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return tensor(power_var(tx, input, exponent))


def scaled_pair(
    tx: TraceContext, op: str, input: object, tensor1: object, tensor2: object, value: Any
) -> Var:
    """``input + op(value * tensor1, tensor2)``; of halves it is rounded once."""
    x, first, second = map(need_tensor, (input, tensor1, tensor2))
    common = result_type(x, first)
    if not common.is_float or not x.dtype == first.dtype == second.dtype:
        raise Unsupported("addcmul or addcdiv of these dtypes")
    wide = dtypes.float32 if common.itemsize == 2 else common
    a, b, c = (to_var(tx, v, wide) for v in (x, first, second))
    if type(value) not in (int, float) or value != 1:
        b = pointwise(tx, "multiply", to_var(tx, value, wide), b)
    return convert(tx, pointwise(tx, "add", a, pointwise(tx, op, b, c)), common)


def _scaled_pair(op: str) -> Callable[..., ArrayRef]:
    def rule(
        tx: TraceContext,
        input: object,
        tensor1: object,
        tensor2: object,
        *,
        value: object = 1,
        out: object = None,
    ) -> ArrayRef:
        only_defaults(out=out)
        return tensor(scaled_pair(tx, op, input, tensor1, tensor2, value))

    return rule


SCALED_PAIRS = {"addcmul": "multiply", "addcdiv": "divide"}
for _name, _op in SCALED_PAIRS.items():
    TABLE.both(_name)(_scaled_pair(_op))


# -- comparison and logic ---------------------------------------------------------------------
def _comparison(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
        only_defaults(out=out)
        _needs_tensor(input, other)
        common = result_type(input, other)
        ready = [to_var(tx, v, common, may_overflow=True) for v in (input, other)]
        return tensor(pointwise(tx, op, *ready))

    return rule


def _logical(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
        only_defaults(out=out)
        truth = [convert(tx, need_tensor(v).var, dtypes.bool_) for v in (input, other)]
        return tensor(pointwise(tx, op, *truth))

    return rule


def _bitwise(op: str, logical: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
        only_defaults(out=out)
        return tensor(bitwise_var(tx, op, logical, input, other))

    return rule


def bitwise_var(tx: TraceContext, op: str, logical: str, a: object, b: object) -> Var:
    _needs_tensor(a, b)
    common = result_type(a, b)
    if common.is_float:
        raise Unsupported(f"{op} of floating point numbers")
    return arithmetic(tx, logical if common.is_bool else op, a, b, common)


def shift_var(tx: TraceContext, op: str, a: object, b: object) -> Var:
    _needs_tensor(a, b)
    common = result_type(a, b)
    if not common.is_integer:
        raise Unsupported(f"{op} of bools or floating point numbers")
    return arithmetic(tx, op, a, b, common)


COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
for _name, _op in COMPARISONS.items():
    _rule = _comparison(_op)
    TABLE.both(*{_name, _op} - {"equal"})(_rule)
    TABLE.operator(_name)(_rule)
for _name in ("and", "or", "xor"):
    TABLE.both(f"logical_{_name}")(_logical(f"logical_{_name}"))
    TABLE.both(f"bitwise_{_name}")(_bitwise(f"bitwise_{_name}", f"logical_{_name}"))


@TABLE.both("logical_not")
def logical_not(tx: TraceContext, input: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return tensor(pointwise(tx, "logical_not", convert(tx, need_tensor(input).var, dtypes.bool_)))


@TABLE.both("bitwise_not")
@TABLE.operator("invert")
def bitwise_not(tx: TraceContext, input: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    x = need_tensor(input)
    if x.dtype.is_float:
        raise Unsupported("bitwise_not of floating point numbers")
    return tensor(pointwise(tx, "logical_not" if x.dtype.is_bool else "invert", x.var))


# -- operators --------------------------------------------------------------------------------
def _ordinary(name: str, var_of: Callable[..., Var]) -> None:
    def rule(tx: TraceContext, a: object, b: object) -> ArrayRef:
        return tensor(var_of(tx, a, b))

    TABLE.operator(name)(rule)


BINARY: dict[str, Callable[..., Var]] = {
    "add": add_var,
    "sub": subtract_var,
    "mul": multiply_var,
    "truediv": divide_var,
    "floordiv": floor_divide_var,
    "mod": remainder_var,
    "pow": power_var,
    "and": lambda tx, a, b: bitwise_var(tx, "bitwise_and", "logical_and", a, b),
    "or": lambda tx, a, b: bitwise_var(tx, "bitwise_or", "logical_or", a, b),
    "xor": lambda tx, a, b: bitwise_var(tx, "bitwise_xor", "logical_xor", a, b),
    "lshift": lambda tx, a, b: shift_var(tx, "left_shift", a, b),
    "rshift": lambda tx, a, b: shift_var(tx, "right_shift", a, b),
}
for _name, _function in BINARY.items():
    # the operator module writes and_ and or_
    _ordinary(_name if hasattr(operator, _name) else f"{_name}_", _function)


# -- functions of one tensor ------------------------------------------------------------------
def unary_var(tx: TraceContext, op: str, x: object, real: bool) -> Var:
    """``op(x)``; ``real``: a function of real numbers, integers become the default float dtype."""
    ref = need_tensor(x)
    dtype = float_type(ref.dtype) if real else ref.dtype
    wide = _computed_in(op, dtype)
    found = pointwise(tx, op, convert(tx, ref.var, wide))
    return found if wide is dtype else convert(tx, found, dtype)


def _computed_in(op: str, dtype: DType) -> DType:
    """float32 for halves that the op does not take."""
    row = PRIMS[op]
    if dtype in row.dtypes or not dtype.is_float or not row.names:
        return dtype
    if not _takes_halves(op):
        raise Unsupported(f"{op} of {dtype}, which torch refuses on some devices")
    return dtypes.float32


@functools.cache
def _takes_halves(op: str) -> bool:
    """Whether torch has the function for halves on CPUs, too."""
    row = PRIMS[op]
    assert row.scalar is not None
    function = resolve(next(row.names_in("torch")))
    try:
        function(*[torch.ones(1, dtype=torch.bfloat16)] * row.scalar.arity)
    except NotImplementedError:
        return False
    return True


def _unary(op: str, real: bool = True) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object, *, out: object = None) -> ArrayRef:
        only_defaults(out=out)
        return tensor(unary_var(tx, op, input, real))

    return rule


def _named(arity: int) -> dict[str, str]:
    """The op of each function of torch of so many tensors that a row names."""
    rows = [row for row in PRIMS.values() if row.scalar is not None and row.scalar.arity == arity]
    return {path: row.name for row in rows for path in row.names_in("torch")}


# torch's name: (op, whether it is a function of real numbers)
UNARY: dict[str, tuple[str, bool]] = {
    **{path: (op, True) for path, op in _named(1).items()},
    **{n: (n, True) for n in ("rsqrt", "reciprocal")},
    **{n: (n, False) for n in ("isnan", "isinf", "isfinite", "signbit")},
}
for _name, (_op, _real) in UNARY.items():
    (TABLE.function if "." in _name else TABLE.both)(_name)(_unary(_op, _real))


def keep_var(tx: TraceContext, op: str, x: object) -> Var:
    """Functions that keep the dtype; on integers the roundings do nothing."""
    ref = need_tensor(x)
    if ref.dtype.is_bool:
        raise Unsupported(f"{op} of bools")
    rounding = op in ("floor", "ceil", "trunc", "rint")
    if rounding and ref.dtype.is_integer:
        op = "copy"
    out = pointwise(tx, op, ref.var)
    if op == "sign" and ref.dtype.is_float:  # torch's sign of NaN is 0
        return pointwise(tx, "where", pointwise(tx, "isnan", ref.var), to_var(tx, 0, ref.dtype), out)
    return out


KEEPING = {
    "neg": "negative",
    "negative": "negative",
    "abs": "abs",
    "absolute": "abs",
    "sign": "sign",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "square": "square",
}


def _keeping(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object, *, out: object = None) -> ArrayRef:
        only_defaults(out=out)
        return tensor(keep_var(tx, op, input))

    return rule


for _name, _op in KEEPING.items():
    TABLE.both(_name)(_keeping(_op))
TABLE.operator("neg")(_keeping("negative"))
TABLE.operator("abs")(_keeping("abs"))


@TABLE.operator("pos")
def positive(tx: TraceContext, input: Any) -> ArrayRef:
    if need_tensor(input).dtype.is_bool:
        raise Unsupported("unary + of bools")
    found: ArrayRef = input
    return found


@TABLE.both("round")
def round(tx: TraceContext, input: object, *, decimals: int = 0, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    if decimals != 0:
        raise Unsupported("round with decimals")
    return tensor(keep_var(tx, "rint", input))


# -- two tensors ------------------------------------------------------------------------------
def _extreme(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
        for value in (input, other):
            need_tensor(value)
        bools = _both_bool(input, other)
        chosen = {"maximum": "logical_or", "minimum": "logical_and"}[op] if bools else op
        return into(tx, out, arithmetic(tx, chosen, input, other, result_type(input, other)))

    return rule


TABLE.both("maximum")(_extreme("maximum"))
TABLE.both("minimum")(_extreme("minimum"))


def _binary(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
        only_defaults(out=out)
        dtype = float_type(result_type(input, other))
        return tensor(convert(tx, arithmetic(tx, op, input, other, _computed_in(op, dtype)), dtype))

    return rule


for _name, _op in _named(2).items():
    (TABLE.function if "." in _name else TABLE.both)(_name)(_binary(_op))


@TABLE.both("atan2", "arctan2")
def atan2(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    dtype = float_type(result_type(need_tensor(input), need_tensor(other)))
    return tensor(arithmetic(tx, "arctan2", input, other, dtype))


@TABLE.both("lerp")
def lerp(tx: TraceContext, input: object, end: object, weight: Any, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return tensor(lerp_var(tx, input, end, weight))


def lerp_var(tx: TraceContext, input: object, end: object, weight: Any) -> Var:
    """By torch's two formulas, each exact at its own end (ATen/native/Lerp.h)."""
    x, y = need_tensor(input), need_tensor(end)
    if not x.dtype.is_float or x.dtype != y.dtype or x.dtype.itemsize == 2:
        raise Unsupported("lerp of these dtypes")
    if is_tensor(weight) and weight.dtype != x.dtype:
        raise Unsupported("lerp with a weight of another dtype")
    w = to_var(tx, weight, x.dtype)
    one = to_var(tx, 1.0, x.dtype)
    gap = pointwise(tx, "subtract", y.var, x.var)
    near = pointwise(tx, "add", x.var, pointwise(tx, "multiply", w, gap))
    rest = pointwise(tx, "multiply", gap, pointwise(tx, "subtract", one, w))
    far = pointwise(tx, "subtract", y.var, rest)
    low = pointwise(tx, "less", pointwise(tx, "abs", w), to_var(tx, 0.5, x.dtype))
    found = pointwise(tx, "where", low, near, far)
    spread = [broadcast_to(tx, v, found.shape) for v in (x.var, y.var, w)]
    return ordered(tx, found, spread)


# -- selection --------------------------------------------------------------------------------
@TABLE.function("where")
def where(tx: TraceContext, condition: object, input: object = None, other: object = None) -> Any:
    truth = need_tensor(condition)
    if input is None and other is None:
        return nonzero(tx, condition, as_tuple=True)
    if input is None or other is None:
        raise Unsupported("where with one argument", break_id="data-dependent-shape")
    if not truth.dtype.is_bool:
        raise Unsupported("where expected condition to be a boolean tensor")
    common = result_type(input, other)
    return tensor(pointwise(tx, "where", truth.var, to_var(tx, input, common), to_var(tx, other, common)))


@TABLE.method("where")
def where_method(tx: TraceContext, self: object, condition: object, other: object) -> Any:
    return where(tx, condition, self, other)


# Older versions ignore a bound that is NaN if it is the only one.
_BOUNDS_MAY_BE_NAN = bool(torch.zeros(()).clamp(math.nan).isnan())


def _slope_on_bound(bound: object) -> float:
    """Of torch's clamp: 1 before 2.14; then 0 on numbers, 0.5 on tensors."""
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.zeros((), requires_grad=True)
        return float(torch.autograd.grad(x.clamp(min=bound), x)[0])


_SLOPE_ON_NUMBERS, _SLOPE_ON_TENSORS = _slope_on_bound(0.0), _slope_on_bound(torch.zeros(()))


def clamp_var(tx: TraceContext, x: object, low: object, high: object) -> Var:
    """NaN in x or in a bound stays; the upper bound wins where the bounds cross."""
    if low is None and high is None:
        raise Unsupported("At least one of 'min' or 'max' must not be None")
    bounds = [b for b in (low, high) if b is not None]
    common = result_type(need_tensor(x), *bounds)
    if common.is_bool:
        raise Unsupported("clamp of bools")
    if any(isinstance(b, float) and math.isnan(b) for b in bounds):
        raise Unsupported("clamp with a NaN bound")
    if not _BOUNDS_MAY_BE_NAN and len(bounds) == 1 and getattr(bounds[0], "kind", "") == "python":
        raise Unsupported("clamp with a number for a bound, before torch 2.13")
    given = out = to_var(tx, x, common)
    limits = [None if b is None else to_var(tx, b, common) for b in (low, high)]
    for op, limit in zip(("maximum", "minimum"), limits):
        if limit is not None:
            out = pointwise(tx, op, out, limit)
    if not is_differentiated(tx, given, *(b for b in limits if b is not None)):
        return out
    slopes = [_SLOPE_ON_TENSORS if is_tensor(b) else _SLOPE_ON_NUMBERS for b in (low, high)]
    return _clamped(tx, out, given, limits, slopes)


def _clamped(
    tx: TraceContext, out: Var, x: Var, limits: Sequence[Var | None], slopes: Sequence[float]
) -> Var:
    """The clamped value with torch's derivative: 1 between the bounds, ``slopes`` on them."""
    if any(b is not None and requires(tx, b) for b in limits) or x.shape != out.shape:
        raise Unsupported("clamp with bounds that require a gradient, or that are larger")
    if None not in limits and all(0.0 < slope < 1.0 for slope in slopes):
        raise Unsupported("clamp between tensors, which may be equal")

    def gradient(cotangent: Var) -> Var:
        for (within, strictly), limit, slope in zip(_INSIDE, limits, slopes):
            if limit is None:
                continue
            if slope not in (0.0, 1.0):
                on = pointwise(tx, "multiply", cotangent, to_var(tx, slope, cotangent.dtype))
                cotangent = pointwise(tx, "where", pointwise(tx, "equal", x, limit), on, cotangent)
            cotangent = where_true(tx, pointwise(tx, within if slope else strictly, x, limit))(cotangent)
        return cotangent

    return with_gradient(tx, out, (x, gradient))


_INSIDE = (("greater_equal", "greater"), ("less_equal", "less"))


@TABLE.both("clamp", "clip")
def clamp(
    tx: TraceContext, input: object, min: object = None, max: object = None, *, out: object = None
) -> ArrayRef:
    only_defaults(out=out)
    return tensor(clamp_var(tx, input, min, max))


@TABLE.both("clamp_min")
def clamp_min(tx: TraceContext, input: object, min: object) -> ArrayRef:
    return tensor(clamp_var(tx, input, min, None))


@TABLE.both("clamp_max")
def clamp_max(tx: TraceContext, input: object, max: object) -> ArrayRef:
    return tensor(clamp_var(tx, input, None, max))


def masked_fill_var(tx: TraceContext, x: object, mask: object, value: Any) -> Var:
    ref, where_to = need_tensor(x), need_tensor(mask)
    if not where_to.dtype.is_bool:
        raise Unsupported("masked_fill_ only supports boolean masks")
    if is_tensor(value) and value.ndim:
        raise Unsupported("masked_fill_ only supports a 0-dimensional value tensor")
    if not ref.dtype.is_float and (isinstance(value, float) or (is_tensor(value) and value.dtype.is_float)):
        raise Unsupported("masked_fill of integers with a floating point number")
    # torch takes the number out of a tensor
    put = checked_number(tx, value.var, ref.dtype) if is_tensor(value) else to_var(tx, value, ref.dtype)
    return pointwise(tx, "where", where_to.var, put, ref.var)


@TABLE.both("masked_fill")
def masked_fill(tx: TraceContext, input: object, mask: object, value: object) -> ArrayRef:
    return tensor(contiguous(tx, masked_fill_var(tx, input, mask, value)))
