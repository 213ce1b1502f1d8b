"""Complex numbers in generated code: Python's, and NumPy's of 128 bits.

Each operation is CPython's (``Objects/complexobject.c``, ``Modules/cmathmodule.c``) or that of NumPy's
scalars (``scalarmath.c.src``), term by term; where these raise, warn, or treat infinities and NaN in ways of
their own, generated code leaves before the instruction.
"""

from __future__ import annotations

import cmath
import operator
from collections.abc import Callable

from ..code.arithmetic import OPERATORS, as_double, check_exact, is_number, result_kind
from ..code.block import Block
from ..code.walk import Stop
from .kinds import COMPLEX, FLOAT, INT, NP_COMPLEX, NP_FLOAT, Kind, Value, method_kind

Pair = tuple[str, str]


def is_complex(value: Value) -> bool:
    return value.kind.family == "complex"


def _pair(value: Value) -> Pair:
    """Real and imaginary part of a number in C."""
    if is_complex(value):
        return value.parts[0], value.parts[1]
    if not is_number(value):
        raise Stop(f"{value.kind} as a complex number")
    return (value.text if value.kind == FLOAT else f"(double){value.text}"), "0.0"


def _made(b: Block, kind: Kind, real: str, imaginary: str) -> Value:
    return Value(kind, (b.temp("double", real), b.temp("double", imaginary)))


def _filled(b: Block, kind: Kind, call: str, reason: str) -> Value:
    """What a function of the prelude writes to two variables; ``call`` has a place for them."""
    real, imaginary = b.walker.temp("double"), b.walker.temp("double")
    b.check(call.format(f"&{real}, &{imaginary}"), reason)
    return Value(kind, (real, imaginary))


# -- operators ----------------------------------------------------------------------------------------------
def binary(b: Block, op: str, left: Value, right: Value) -> Value:
    """``left op right`` where one of them is complex."""
    x, y = _pair(left), _pair(right)
    if op not in ("+", "-", "*", "/", "**"):
        raise Stop(f"{left.kind} {op} {right.kind}")
    kind = result_kind(OPERATORS[op], left.kind, right.kind)
    if kind not in (COMPLEX, NP_COMPLEX):
        raise Stop(f"{left.kind} {op} {right.kind}")
    if op in ("+", "-"):
        return _made(b, kind, f"{x[0]} {op} {y[0]}", f"{x[1]} {op} {y[1]}")
    if op == "*":
        return product(b, kind, x, y)
    both = ", ".join((*x, *y))
    if op == "/":
        divide = "complex_quotient" if kind == COMPLEX else "numpy_quotient"
        return _filled(b, kind, f"{divide}({both}, {{}})", "a division of complex numbers that is not plain")
    if kind == NP_COMPLEX:
        if right.kind.family not in ("int", "float") or right.constant != 2:
            raise Stop(f"{left.kind} ** {right.kind}")
        b.check(f"is_finite({x[0]}) && is_finite({x[1]}) && ({x[0]} != 0 || {x[1]} != 0)", "a power")
        return product(b, kind, x, x)
    return _filled(b, kind, f"complex_power({both}, {{}})", "a power of complex numbers that is not plain")


def product(b: Block, kind: Kind, x: Pair, y: Pair) -> Value:
    return _made(
        b,
        kind,
        f"{_times(x[0], y[0])} - {_times(x[1], y[1])}",
        f"{_times(x[0], y[1])} + {_times(x[1], y[0])}",
    )


def _times(x: str, y: str) -> str:
    return f"PRODUCT({x}, {y})"


def unary(b: Block, op: str, value: Value) -> Value:
    """A sign."""
    if op == "UNARY_POSITIVE":
        return value
    if op != "UNARY_NEGATIVE":
        raise Stop(f"{op} of {value.kind}")
    return _made(b, value.kind, f"-{value.parts[0]}", f"-{value.parts[1]}")


def compare(b: Block, op: str, left: Value, right: Value) -> Value:
    """``left == right`` or ``!=`` where one of them is complex."""
    x, y = _pair(left), _pair(right)
    if op not in ("==", "!="):
        raise Stop(f"an order of {left.kind} and {right.kind}")
    for value in (left, right):
        if value.kind == INT:
            check_exact(b, value)
        elif value.kind.family == "numpy" and value.kind.detail.kind in "iu":
            raise Stop(f"{left.kind} {op} {right.kind}")
    kind = result_kind(operator.eq if op == "==" else operator.ne, left.kind, right.kind)
    same = f"{x[0]} == {y[0]} && {x[1]} == {y[1]}"
    return b.new(kind, same if op == "==" else f"!({same})", 0, 1)


# -- parts and functions ------------------------------------------------------------------------------------
def attribute(b: Block, value: Value, name: str) -> Value:
    """``value.real``, ``value.imag`` and the method ``conjugate``."""
    if name in ("real", "imag"):
        kind = FLOAT if value.kind == COMPLEX else NP_FLOAT
        return Value(kind, (value.parts[name == "imag"],))
    if name in ("conjugate", "conj") and (name == "conjugate" or value.kind == NP_COMPLEX):
        return Value(method_kind(value.kind, name), value.parts)
    raise Stop(f"the attribute {name} of a complex number")


def conjugate(b: Block, value: Value) -> Value:
    return _made(b, value.kind, value.parts[0], f"-{value.parts[1]}")


def magnitude(b: Block, value: Value) -> Value:
    """``abs(value)``."""
    found = b.temp("double", f"hypot({value.parts[0]}, {value.parts[1]})")
    b.check(f"is_finite({found})", "a magnitude that is not finite")
    return Value(FLOAT if value.kind == COMPLEX else NP_FLOAT, (found,))


def make(b: Block, args: list[Value]) -> Value:
    """``complex(x)`` and ``complex(x, y)``."""
    if len(args) == 1 and is_complex(args[0]):
        return Value(COMPLEX, args[0].parts)
    if not 1 <= len(args) <= 2 or not all(map(is_number, args)):
        raise Stop("a call of complex")
    return Value(COMPLEX, (*(as_double(b, value) for value in args), "0.0")[:2])


def make_numpy(b: Block, args: list[Value]) -> Value:
    """``np.complex128(x)``."""
    if len(args) != 1:
        raise Stop("a call of complex128")
    return Value(NP_COMPLEX, _pair(args[0]))


def _routine(name: str) -> Callable[[Block, list[Value]], Value]:
    def answer(b: Block, args: list[Value]) -> Value:
        if len(args) != 1:
            raise Stop(f"cmath.{name}")
        x = _pair(args[0])
        return _filled(b, COMPLEX, f"complex_{name}({x[0]}, {x[1]}, {{}})", f"cmath.{name}")

    return answer


def _phase(b: Block, args: list[Value]) -> Value:
    if len(args) != 1:
        raise Stop("cmath.phase")
    real, imaginary = _pair(args[0])
    b.check(f"is_finite({real}) && is_finite({imaginary})", "cmath.phase")
    return b.new(FLOAT, f"atan2({imaginary}, {real})")


FUNCTIONS = {cmath.exp: _routine("exp"), cmath.sqrt: _routine("sqrt"), cmath.phase: _phase}


# -- places -------------------------------------------------------------------------------------------------
def load(b: Block, at: str) -> Value:
    """An element of an array."""
    place = b.temp("char*", at)
    return _made(b, NP_COMPLEX, f"LOAD(double, {place})", f"LOAD(double, {place} + 8)")


def store(b: Block, at: str, value: Value) -> None:
    """Put a number into an array of complex numbers."""
    real, imaginary = _pair(value)
    place = b.temp("char*", at)
    b.line(f"STORE(double, {place}, {real});")
    b.line(f"STORE(double, {place} + 8, {imaginary});")


DEFINED = ("complex_quotient(", "numpy_quotient(", "complex_power(", "complex_exp(", "complex_sqrt(")
PRELUDE = """\
static inline bool complex_quotient(double a, double b, double c, double d, double* re, double* im) {
  double size = __builtin_fabs(c), other = __builtin_fabs(d);
  if (!is_finite(c) || !is_finite(d) || (size == 0 && other == 0)) return false;
  if (size >= other) {
    double ratio = d / c, denominator = c + PRODUCT(d, ratio);
    *re = (a + PRODUCT(b, ratio)) / denominator;
    *im = (b - PRODUCT(a, ratio)) / denominator;
  } else {
    double ratio = c / d, denominator = PRODUCT(c, ratio) + d;
    *re = (PRODUCT(a, ratio) + b) / denominator;
    *im = (PRODUCT(b, ratio) - a) / denominator;
  }
  return is_finite(*re) && is_finite(*im);
}
static inline bool numpy_quotient(double a, double b, double c, double d, double* re, double* im) {
  double size = __builtin_fabs(c), other = __builtin_fabs(d);
  if (!is_finite(c) || !is_finite(d) || (size == 0 && other == 0)) return false;
  if (size >= other) {
    double ratio = d / c, scale = 1.0 / (c + PRODUCT(d, ratio));
    *re = (a + PRODUCT(b, ratio)) * scale;
    *im = (b - PRODUCT(a, ratio)) * scale;
  } else {
    double ratio = c / d, scale = 1.0 / (d + PRODUCT(c, ratio));
    *re = (PRODUCT(a, ratio) + b) * scale;
    *im = (PRODUCT(b, ratio) - a) * scale;
  }
  return is_finite(*re) && is_finite(*im);
}
/* Powers with a whole exponent up to 100 by squaring. */
static inline bool complex_power(double a, double b, double c, double d, double* re, double* im) {
  if (d != 0 || !(c >= 0 && c <= 100) || c != __builtin_floor(c)) return false;
  double x = 1.0, y = 0.0, t;
  for (int n = (int)c; n; n >>= 1) {
    if (n & 1) { t = PRODUCT(x, a) - PRODUCT(y, b); y = PRODUCT(x, b) + PRODUCT(y, a); x = t; }
    t = PRODUCT(a, a) - PRODUCT(b, b); b = PRODUCT(a, b) + PRODUCT(b, a); a = t;
  }
  *re = x;
  *im = y;
  return is_finite(x) && is_finite(y);
}
static inline bool complex_exp(double a, double b, double* re, double* im) {
  if (!is_finite(a) || !is_finite(b) || a > 700) return false;
  double size = exp(a);
  *re = size * cos(b);
  *im = size * sin(b);
  return is_finite(*re) && is_finite(*im);
}
static inline bool complex_sqrt(double a, double b, double* re, double* im) {
  if (!is_finite(a) || !is_finite(b)) return false;
  double x = __builtin_fabs(a), y = __builtin_fabs(b), s, d;
  if (x == 0 && y == 0) { *re = 0.0; *im = b; return true; }
  if (x < 1e-300 && y < 1e-300) return false;
  x /= 8.0;
  s = 2.0 * __builtin_sqrt(x + hypot(x, y / 8.0));
  d = y / (2.0 * s);
  *re = a >= 0 ? s : d;
  *im = __builtin_copysign(a >= 0 ? d : s, b);
  return true;
}
"""
