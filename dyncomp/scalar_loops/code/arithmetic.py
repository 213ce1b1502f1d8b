"""Operators on single numbers: Python's and NumPy's.

What a NumPy operator gives is found by asking NumPy with numbers of the same types (NEP 50). Where an
answer is
not the plain one (an overflow, a division by zero, a warning), generated code leaves before the instruction.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..analysis.affine import Form, combine, shifted
from ..analysis.ranges import compared, raised
from ..kinds.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    KIND_OF_TYPE,
    NP_BOOL,
    Compared,
    Kind,
    Value,
    items_of,
    moved,
)
from .block import Block
from .walk import Stop

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_POSITIVE": operator.pos,
    "UNARY_INVERT": operator.invert,
}
_CHECKED = {"+": "add", "-": "sub", "*": "mul"}
_EXACT = 2**53
NUMBERS = ("int", "float", "bool", "numpy")


def is_number(value: Value) -> bool:
    return value.kind.family in NUMBERS


def check_numbers(args: Sequence[Value], *counts: int) -> None:
    """Whether a call has as many arguments as one of ``counts``, all of them numbers."""
    if len(args) not in counts or not all(map(is_number, args)):
        raise Stop(f"a call with {', '.join(a.kind.code for a in args)}")


def binary(b: Block, op: str, left: Value, right: Value) -> Value:
    """``left op right``."""
    if not (is_number(left) and is_number(right)):
        raise Stop(f"{left.kind} {op} {right.kind}")
    if op == "@":
        raise Stop("a product of matrices")
    if left.kind.family == "numpy" or right.kind.family == "numpy":
        return _numpy_binary(b, op, left, right)
    if FLOAT in (left.kind, right.kind):
        return _float_binary(b, op, as_double(b, left), as_double(b, right), FLOAT)
    if left.kind == right.kind == BOOL and op in ("&", "|", "^"):
        return b.new(BOOL, f"{left.text} {op} {right.text}", 0, 1)
    return _INT_BINARY.get(op, _unknown)(b, op, as_int(b, left), as_int(b, right))


def _unknown(b: Block, op: str, left: Value, right: Value) -> Value:
    raise Stop(f"{left.kind} {op} {right.kind}")


# -- conversions --------------------------------------------------------------------------------------------
def as_int(b: Block, value: Value) -> Value:
    """A Python int or bool as an int."""
    if value.kind == INT:
        return value
    low, high = (0, 1) if value.constant is None else (value.constant, value.constant)
    return Value(INT, (f"(i64){value.text}",), None, low, high)


def as_double(b: Block, value: Value) -> str:
    """A Python number as a double."""
    return value.text if value.kind == FLOAT else f"(double){value.text}"


def bounds(value: Value) -> tuple[int, int]:
    low = -(2**63) if value.low is None else value.low
    high = 2**63 - 1 if value.high is None else value.high
    return low, high


def convert(b: Block, value: Value, kind: Kind) -> str:
    """A number as an operand of NumPy's loop for ``kind``."""
    if value.kind.code == kind.code:
        return value.text
    ctype = kind.parts[0][1]
    dtype = kind.detail
    if value.kind == INT and dtype.kind in "iu":
        low, high = bounds(value)
        limits = np.iinfo(dtype)
        if low < limits.min:
            b.check(f"{value.text} >= {_literal(int(limits.min))}", f"a number too small for {dtype}")
        if high > limits.max:
            b.check(f"{value.text} <= {_literal(int(limits.max))}", f"a number too large for {dtype}")
    if value.kind == INT and ctype == "float":
        return f"(float)(double){value.text}"
    return f"({ctype}){value.text}"


def _literal(value: int) -> str:
    return "(-9223372036854775807LL - 1)" if value == -(2**63) else f"{value}LL"


# -- Python's ints ------------------------------------------------------------------------------------------
def _made(b: Block, expression: str, low: int, high: int, checked: str = "") -> Value:
    """An int; ``checked`` computes it where it may overflow."""
    if low >= -(2**63) and high < 2**63:
        return b.new(INT, expression, low, high)
    name = b.walker.temp("i64")
    b.check(checked.format(name), "an int of more than 64 bits")
    return Value(INT, (name,), None, max(low, -(2**63)), min(high, 2**63 - 1))


def _int_sum(b: Block, op: str, x: Value, y: Value) -> Value:
    (a, c), (d, e) = bounds(x), bounds(y)
    ends = {
        "+": (a + d, c + e),
        "-": (a - e, c - d),
        "*": (min(a * d, a * e, c * d, c * e), max(a * d, a * e, c * d, c * e)),
    }[op]
    form = _form(op, x, y)
    if form is not None and (ends[0] < -(2**63) or ends[1] >= 2**63):
        low, high = b.bounds_of(form)
        ends = (max(low, ends[0]), min(high, ends[1]))
    checked = f"!__builtin_{_CHECKED[op]}_overflow({x.text}, {y.text}, &{{}})"
    made = _made(b, f"{x.text} {op} {y.text}", *ends, checked)
    found = moved(made, made.parts, form)
    if op != "*" and y.constant is not None:
        found.below = raised(x.below, y.constant if op == "+" else -y.constant)
    elif op == "+" and x.constant is not None:
        found.below = raised(y.below, x.constant)
    return found


def _form(op: str, x: Value, y: Value) -> Form | None:
    forms = [Form((), v.constant) if v.constant is not None else v.fact for v in (x, y)]
    if not any(isinstance(v.fact, Form) for v in (x, y)) or not all(isinstance(f, Form) for f in forms):
        return None
    return combine(op, *forms)  # type: ignore[arg-type]


def _int_divide(b: Block, op: str, x: Value, y: Value) -> Value:
    low, high = bounds(y)
    if y.constant is not None and y.constant > 0 and y.constant & (y.constant - 1) == 0:
        return _by_power_of_two(b, op, x, y.constant)
    if low <= 0 <= high:
        b.check(f"{y.text} != 0", "a division by zero")
    if low <= -1 <= high and bounds(x)[0] == -(2**63):
        b.check(f"{y.text} != -1", "a division by -1")
    if op == "%":
        ends = (min(low + 1, 0), max(high - 1, 0))
        if low > 0 and bounds(x)[0] >= 0:
            rest = f"{x.text} % {y.text}"
            if y.constant is None:  # counters that go round are mostly less
                rest = f"{x.text} < {y.text} ? {x.text} : {rest}"
            return _below(b, b.new(INT, rest, 0, min(ends[1], bounds(x)[1])), y)
        return _below(b, b.new(INT, f"floor_mod({x.text}, {y.text})", *ends), y)
    if low > 0:
        ends = (min(bounds(x)[0], 0), max(bounds(x)[1], 0))
        plain = f"{x.text} / {y.text}" if bounds(x)[0] >= 0 else f"floor_div({x.text}, {y.text})"
        return b.new(INT, plain, *ends)
    return b.new(INT, f"floor_div({x.text}, {y.text})")


def _below(b: Block, rest: Value, divisor: Value) -> Value:
    """What is left of a division by ``divisor`` is less than that, if it is positive."""
    if bounds(divisor)[0] > 0 and divisor.text in b.walker.fixed:
        rest.below = {divisor.text: 0}
    return rest


def _by_power_of_two(b: Block, op: str, x: Value, power: int) -> Value:
    """Floor and remainder by a power of two are a shift and the lowest bits, whatever the sign."""
    low, high = bounds(x)
    if op == "%":
        return b.new(INT, f"{x.text} & {power - 1}LL", 0, power - 1)
    return _shifted(b, x, power.bit_length() - 1)


def _shifted(b: Block, x: Value, bits: int) -> Value:
    low, high = bounds(x)
    fact = shifted(x.fact, bits) if isinstance(x.fact, Form) and bits else None
    return Value(INT, (b.temp("i64", f"{x.text} >> {bits}"),), fact, low >> bits, high >> bits)


def _int_true_divide(b: Block, op: str, x: Value, y: Value) -> Value:
    if bounds(y)[0] <= 0 <= bounds(y)[1]:
        b.check(f"{y.text} != 0", "a division by zero")
    for value in (x, y):
        check_exact(b, value)
    return b.new(FLOAT, f"(double){x.text} / (double){y.text}")


def check_exact(b: Block, value: Value) -> None:
    low, high = bounds(value)
    if low < -_EXACT or high > _EXACT:
        b.check(f"{value.text} >= -{_EXACT}LL && {value.text} <= {_EXACT}LL", "an int that is no double")


def _int_bits(b: Block, op: str, x: Value, y: Value) -> Value:
    low, high = None, None
    (a, c), (d, e) = bounds(x), bounds(y)
    if op == "&" and (a >= 0 or d >= 0):
        low, high = 0, min(top for bottom, top in ((a, c), (d, e)) if bottom >= 0)
    elif a >= 0 and d >= 0:
        low, high = 0, (1 << max(c.bit_length(), e.bit_length())) - 1
    return b.new(INT, f"{x.text} {op} {y.text}", low, high)


def _int_shift(b: Block, op: str, x: Value, y: Value) -> Value:
    (a, c), (d, e) = bounds(x), bounds(y)
    if d < 0:
        b.check(f"{y.text} >= 0", "a negative shift")
    if op == ">>" and y.constant is not None and y.constant < 64:
        return _shifted(b, x, y.constant)
    if op == ">>":
        amount = y.text if e < 64 else f"({y.text} > 63 ? 63 : {y.text})"
        least = min(max(d, 0), 63)
        return b.new(
            INT,
            f"{x.text} >> {amount}",
            a >> least if a < 0 else 0,
            max(c >> least, 0) if c >= 0 else c >> 63,
        )
    if e < 63 and a << e >= -(2**63) and c << e < 2**63:
        return b.new(INT, f"(i64)((u64){x.text} << {y.text})", min(a << e, a), max(c << e, c))
    if e > 62:
        b.check(f"{y.text} < 63", "an int of more than 64 bits")
    made = b.temp("i64", f"(i64)((u64){x.text} << {y.text})")
    b.check(f"({made} >> {y.text}) == {x.text}", "an int of more than 64 bits")
    return Value(INT, (made,))


def _int_power(b: Block, op: str, x: Value, y: Value) -> Value:
    if y.constant == 2:
        return _int_sum(b, "*", x, x)
    if bounds(y)[0] < 0:
        b.check(f"{y.text} >= 0", "a negative power")
    name = b.walker.temp("i64")
    b.check(f"int_power({x.text}, {y.text}, &{name})", "an int of more than 64 bits")
    return Value(INT, (name,))


_INT_BINARY: dict[str, Callable[[Block, str, Value, Value], Value]] = {
    "+": _int_sum, "-": _int_sum, "*": _int_sum, "//": _int_divide, "%": _int_divide, "/": _int_true_divide,
    "&": _int_bits, "|": _int_bits, "^": _int_bits, "<<": _int_shift, ">>": _int_shift, "**": _int_power,
}  # fmt: skip


# -- floats -------------------------------------------------------------------------------------------------
def _float_binary(b: Block, op: str, x: str, y: str, kind: Kind) -> Value:
    """Doubles, or single floats for + - * /."""
    if op in ("+", "-"):
        return b.new(kind, f"{x} {op} {y}")
    if op == "*":
        return b.new(kind, f"PRODUCT({x}, {y})")
    if op in ("/", "//", "%"):
        b.check(f"{y} != 0", "a division by zero")
    if op == "/":
        return b.new(kind, f"{x} / {y}")
    if op not in ("//", "%", "**") or kind.parts[0][1] != "double":
        raise Stop(f"{kind} {op} {kind}")
    if op == "**":
        name = b.walker.temp("double")
        b.check(f"float_power({x}, {y}, &{name})", "a power that is not a plain number")
        return Value(kind, (name,))
    b.check(f"is_finite({x}) && is_finite({y})", "a number that is not finite")
    return b.new(kind, f"{'float_floor_div' if op == '//' else 'float_mod'}({x}, {y})")


# -- NumPy's scalars ----------------------------------------------------------------------------------------
def sample(kind: Kind) -> Any:
    """A one of the kind."""
    types = {INT: 1, FLOAT: 1.0, BOOL: True, COMPLEX: 1j}
    return types[kind] if kind in types else kind.detail.type(1)


def result_kind(function: Callable[..., Any], *kinds: Kind) -> Kind:
    """What ``function`` gives for numbers of these kinds."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = KIND_OF_TYPE.get(type(function(*map(sample, kinds))))
    except Exception as error:
        raise Stop(str(error)) from error
    if found is None:
        raise Stop(f"an unknown result of {', '.join(kind.code for kind in kinds)}")
    return found


def _numpy_binary(b: Block, op: str, left: Value, right: Value) -> Value:
    kind = result_kind(OPERATORS[op], left.kind, right.kind)
    if kind.family != "numpy":
        raise Stop(f"{left.kind} {op} {right.kind}")
    x, y = convert(b, left, kind), convert(b, right, kind)
    if kind.detail.kind == "f":
        result = _float_binary(b, op, x, y, kind)
        if op in ("/", "//"):  # there is a branch already: others would take up to 4 times as long
            r = result.text
            b.check(f"is_finite({r}) || follows({r}, {x}, {y})", "a result of which NumPy may warn")
        return result
    if kind.detail.kind == "b":
        return _bool_binary(b, op, x, y)
    return _integer_binary(b, op, x, y, kind, right)


def _bool_binary(b: Block, op: str, x: str, y: str) -> Value:
    if op not in ("&", "|", "^", "+", "*"):
        raise Stop(f"{op} of NumPy's bools")
    return b.new(NP_BOOL, f"{x} {({'+': '|', '*': '&'}).get(op, op)} {y}")


def _integer_binary(b: Block, op: str, x: str, y: str, kind: Kind, right: Value) -> Value:
    ctype, dtype = kind.parts[0][1], kind.detail
    if op in _CHECKED:
        name = b.walker.temp(ctype)
        b.check(f"!__builtin_{_CHECKED[op]}_overflow({x}, {y}, &{name})", "an overflow, of which NumPy warns")
        return Value(kind, (name,))
    if op in ("//", "%"):
        return _integer_divide(b, op, x, y, kind, right)
    if op in ("&", "|", "^"):
        return b.new(kind, f"({ctype})({x} {op} {y})")
    if op in ("<<", ">>"):
        b.check(f"{y} >= 0 && {y} < {8 * dtype.itemsize}", "a shift by too much")
        wide = "i64" if op == ">>" and dtype.kind == "i" else "u64"
        return b.new(kind, f"({ctype})(({wide}){x} {op} {y})")
    if op == "**" and dtype.itemsize == 8 and dtype.kind == "i":
        name = b.walker.temp("i64")
        b.check(f"{y} >= 0 && int_power({x}, {y}, &{name})", "a power that does not fit")
        return Value(kind, (name,))
    raise Stop(f"{kind} {op} {kind}")


def _integer_divide(b: Block, op: str, x: str, y: str, kind: Kind, right: Value) -> Value:
    if not right.constant:
        b.check(f"{y} != 0", "a division by zero")
    ctype = kind.parts[0][1]
    if kind.detail.kind == "u":
        return b.new(kind, f"({ctype})({x} {'/' if op == '//' else '%'} {y})")
    if right.constant is None or right.constant == -1:
        b.check(f"{y} != -1", "a division by -1")
    return b.new(kind, f"({ctype}){'floor_div' if op == '//' else 'floor_mod'}({x}, {y})")


# -- comparisons and signs ----------------------------------------------------------------------------------
def compare(b: Block, op: str, left: Value, right: Value) -> Value:
    """``left op right`` as Python's bool or NumPy's."""
    if not (is_number(left) and is_number(right)):
        raise Stop(f"{left.kind} {op} {right.kind}")
    families = (left.kind.family, right.kind.family)
    kind = NP_BOOL if "numpy" in families else BOOL
    if _is_integer(left) and _is_integer(right):
        if "u64" in (left.kind.parts[0][1], right.kind.parts[0][1]) and left.kind != right.kind:
            raise Stop("a comparison of signed and unsigned numbers")
        if kind == BOOL:
            return _compare_ints(b, op, as_int(b, left), as_int(b, right))
        if left.kind.code == right.kind.code:
            return b.new(kind, f"{left.text} {op} {right.text}")
        return b.new(kind, f"(i64){left.text} {op} (i64){right.text}")
    if kind == BOOL:
        for value in (left, right):
            if value.kind == INT:
                check_exact(b, value)
        return b.new(BOOL, f"{as_double(b, left)} {op} {as_double(b, right)}")
    common = result_kind(operator.add, left.kind, right.kind)
    return b.new(NP_BOOL, f"{convert(b, left, common)} {op} {convert(b, right, common)}")


def compare_tuples(b: Block, op: str, left: Value, right: Value) -> Value:
    """``left == right`` of tuples of numbers, or ``!=``; one NaN equals itself, which is not told here."""
    pairs = list(zip(items_of(left), items_of(right)))
    if op not in ("==", "!=") or not all(is_number(v) for pair in pairs for v in pair):
        raise Stop(f"{left.kind} {op} {right.kind}")
    if len(left.kind.detail) != len(right.kind.detail):
        return b.walker.constant(op == "!=")
    for value in (v for pair in pairs for v in pair if v.kind.parts[0][1] in ("double", "float")):
        b.check(f"{value.text} == {value.text}", "a NaN in a tuple")
    same = [b.truth(compare(b, "==", *pair)) for pair in pairs]
    found = " && ".join(same) or "true"
    return b.new(BOOL, f"!({found})" if op == "!=" else found, 0, 1)


def _compare_ints(b: Block, op: str, x: Value, y: Value) -> Value:
    known = compared(op, bounds(x), bounds(y))
    if known is not None:
        return b.walker.constant(known)
    return Compared(b.temp("bool", f"{x.text} {op} {y.text}"), op, x, y)


def _is_integer(value: Value) -> bool:
    kind = value.kind
    return kind in (INT, BOOL) or (kind.family == "numpy" and kind.detail.kind in "iub")


def unary(b: Block, op: str, value: Value) -> Value:
    """A sign or ``~``."""
    if not is_number(value):
        raise Stop(f"{op} of {value.kind}")
    if value.kind in (INT, BOOL):
        return _int_unary(b, op, value)
    kind = result_kind(_UNARY[op], value.kind)
    if op == "UNARY_POSITIVE":
        return value
    if op == "UNARY_INVERT":
        mark = "!" if kind == NP_BOOL else "~"
        return b.new(kind, f"({kind.parts[0][1]}){mark}{value.text}")
    if kind.family == "numpy" and kind.detail.kind == "u":
        raise Stop("a sign of an unsigned number")
    if kind.family == "numpy" and kind.detail.kind == "i":
        b.check(
            f"{value.text} != {_literal(int(np.iinfo(kind.detail).min))}", "an overflow, of which NumPy warns"
        )
    return b.new(kind, f"({kind.parts[0][1]})-{value.text}")


def _int_unary(b: Block, op: str, value: Value) -> Value:
    if op == "UNARY_INVERT" and value.kind == BOOL:
        raise Stop("~ of a bool")
    number = as_int(b, value)
    low, high = bounds(number)
    if op == "UNARY_POSITIVE":
        return number
    if op == "UNARY_INVERT":
        return b.new(INT, f"~{number.text}", -high - 1, -low - 1)
    if number.constant is not None and low > -(2**63):
        return b.walker.constant(-low)
    return _int_sum(b, "-", b.walker.constant(0), number)


def magnitude(b: Block, value: Value, kind: Kind) -> Value:
    """``abs(value)``, of this kind."""
    ctype = kind.parts[0][1]
    if ctype in ("double", "float"):
        return b.new(kind, f"{'__builtin_fabs' if ctype == 'double' else '__builtin_fabsf'}({value.text})")
    if kind.detail.kind in "ub":
        return Value(kind, value.parts)
    least = -(2 ** (8 * kind.detail.itemsize - 1))
    b.check(f"(i64){value.text} > {least + 1}LL - 1", "an overflow, of which NumPy warns")
    return b.new(kind, f"({ctype})({value.text} < 0 ? -{value.text} : {value.text})")
