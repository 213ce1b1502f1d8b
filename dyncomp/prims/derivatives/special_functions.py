"""Derivatives of ``scipy.special``'s functions that have no op: by name, as formulas of ops and of other such
functions, whose derivatives are here in turn. The functions themselves are the library's.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType
from ...graph.ir import Callee, Ops, Var
from ..pointwise.partials import Unknown, scalar, total

Vars = Sequence[Var]
Partials = Callable[..., Sequence[Any]]


class Formula:
    """A real value with operators, each emitting an op."""

    def __init__(self, ops: Ops, var: Var) -> None:
        self.ops = ops
        self.var = var

    def _with(self, op: str, other: Formula | float, turned: bool = False) -> Formula:
        pair = self.var, self.like(other).var
        return Formula(self.ops, getattr(self.ops, op)(*(pair[::-1] if turned else pair)))

    def like(self, value: Formula | float) -> Formula:
        return value if isinstance(value, Formula) else Formula(self.ops, scalar(self.ops, self.var, value))

    def __add__(self, other: Formula | float) -> Formula:
        return self._with("add", other)

    def __sub__(self, other: Formula | float) -> Formula:
        return self._with("subtract", other)

    def __mul__(self, other: Formula | float) -> Formula:
        return self._with("multiply", other)

    def __truediv__(self, other: Formula | float) -> Formula:
        return self._with("divide", other)

    def __pow__(self, other: Formula | float) -> Formula:
        return self._with("power", other)

    def __rsub__(self, other: float) -> Formula:
        return self._with("subtract", other, True)

    def __rtruediv__(self, other: float) -> Formula:
        return self._with("divide", other, True)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Formula:
        return self.op("negative")

    def op(self, name: str) -> Formula:
        return Formula(self.ops, getattr(self.ops, name)(self.var))


def choose(x: Formula, relation: str, bound: Formula | float, then: Any, otherwise: Any) -> Formula:
    """``then`` where ``x`` is in this relation to ``bound``."""
    is_so = getattr(x.ops, relation)(x.var, x.like(bound).var)
    return Formula(x.ops, x.ops.where(is_so, x.like(then).var, x.like(otherwise).var))


def near(
    x: Formula, bound: float, series: Sequence[float], away: Callable[[Formula], Formula], size: float = 1.0
) -> Formula:
    """A formula that loses its digits around zero, and its power series there, times ``size``."""
    found = x.like(series[-1])
    for coefficient in reversed(series[:-1]):
        found = found * x + coefficient
    apart = x.op("abs")
    safe = choose(apart, "less", bound, 1.0, x)
    return choose(apart, "less", bound, found * size if size != 1.0 else found, away(safe))


def _ufunc(name: str) -> np.ufunc | None:
    special = sys.modules.get("scipy.special")
    found = getattr(special, name, None) or getattr(getattr(special, "_ufuncs", None), name, None)
    return found if isinstance(found, np.ufunc) else None


def library(name: str, *inputs: Formula) -> Formula:
    """``scipy.special.<name>`` of real values."""
    ufunc = _ufunc(name)
    if ufunc is None:
        raise TypeError(f"its derivative is made of scipy.special.{name}, which is not there")
    ops = inputs[0].ops
    callee = Callee(ufunc, ufunc.__name__, (), ())
    dtype: DType = inputs[0].var.dtype
    return Formula(ops, ops.ufunc_call(*(x.var for x in inputs), callee=callee, dtypes=(dtype,)))


def psi(x: Formula) -> Formula:
    return x.op("digamma")


def _gauss(x: Formula) -> Formula:
    """The density of the normal distribution."""
    return (x * x * -0.5).op("exp") * (1 / math.sqrt(2 * math.pi))


def _order(name: str) -> Unknown:
    return Unknown(f"its derivative by {name} is not known")


# -- one argument ---------------------------------------------------------------------------------
_ROOT = math.sqrt(math.pi)


def _exprel(x: Formula, out: Formula | None = None) -> Formula:
    """The slope of ``(exp(x) - 1) / x``."""
    series = (1 / 2, 1 / 3, 1 / 8, 1 / 30, 1 / 144, 1 / 840, 1 / 5760)
    return near(x, 0.01, series, lambda y: (y.op("exp") - library("exprel", y)) / y)


def _log_ratio(x: Formula) -> Formula:
    """``log1p(x) / x``."""
    series = (1.0, -1 / 2, 1 / 3, -1 / 4, 1 / 5, -1 / 6, 1 / 7, -1 / 8)
    return near(x, 0.01, series, lambda y: y.op("log1p") / y)


def _log_ratio_slope(x: Formula) -> Formula:
    series = (-1 / 2, 2 / 3, -3 / 4, 4 / 5, -5 / 6, 6 / 7, -7 / 8, 8 / 9)
    return near(x, 0.01, series, lambda y: (1.0 / (y + 1.0) - y.op("log1p") / y) / y)


def _bessel_ratio(sign: float, name: str) -> Callable[[Formula], Formula]:
    """A Bessel function of order 1 over its argument, of the first kind (and modified: ``sign`` is 1)."""
    series = (1 / 2, 0.0, sign / 16, 0.0, 1 / 384, 0.0, sign / 18432)
    return lambda x: near(x, 0.05, series, lambda y: library(name, y) / y)


_J1_RATIO, _I1_RATIO = _bessel_ratio(-1.0, "j1"), _bessel_ratio(1.0, "i1")
# of the elliptic integrals, over pi / 2
_OF_K = (1 / 4, 9 / 32, 75 / 256, 1225 / 4096, 19845 / 65536)
_OF_E = (-1 / 4, -3 / 32, -15 / 256, -175 / 4096, -2205 / 65536)


def _ellipk(m: Formula, out: Formula) -> Formula:
    def away(n: Formula) -> Formula:
        return (library("ellipe", n) - (1.0 - n) * library("ellipk", n)) / (n * (1.0 - n) * 2.0)

    return near(m, 1e-3, _OF_K, away, math.pi / 2)


def _ellipe(m: Formula, out: Formula) -> Formula:
    def away(n: Formula) -> Formula:
        return (library("ellipe", n) - library("ellipk", n)) / (n * 2.0)

    return near(m, 1e-3, _OF_E, away, math.pi / 2)


_UNARY: Mapping[str, Callable[[Formula, Formula], Formula]] = {
    "gammaln": lambda x, out: psi(x),
    "loggamma": lambda x, out: psi(x),
    "gamma": lambda x, out: out * psi(x),
    "rgamma": lambda x, out: -out * psi(x),
    "psi": lambda x, out: library("_zeta", x.like(2.0), x),
    "entr": lambda x, out: -x.op("log") - 1.0,
    "ndtr": lambda x, out: _gauss(x),
    "log_ndtr": lambda x, out: (x * x * -0.5 - out).op("exp") * (1 / math.sqrt(2 * math.pi)),
    "ndtri": lambda x, out: (out * out * 0.5).op("exp") * math.sqrt(2 * math.pi),
    "expit": lambda x, out: out * (1.0 - out),
    "log_expit": lambda x, out: (-x).op("sigmoid"),
    "logit": lambda x, out: 1.0 / (x * (1.0 - x)),
    "erf": lambda x, out: (-x * x).op("exp") * (2 / _ROOT),
    "erfc": lambda x, out: (-x * x).op("exp") * (-2 / _ROOT),
    "erfcx": lambda x, out: x * out * 2.0 - 2 / _ROOT,
    "erfi": lambda x, out: (x * x).op("exp") * (2 / _ROOT),
    "erfinv": lambda x, out: (out * out).op("exp") * (_ROOT / 2),
    "erfcinv": lambda x, out: (out * out).op("exp") * (-_ROOT / 2),
    "dawsn": lambda x, out: 1.0 - x * out * 2.0,
    "exp10": lambda x, out: out * math.log(10),
    "exp2": lambda x, out: out * math.log(2),
    "expm1": lambda x, out: out + 1.0,
    "log1p": lambda x, out: 1.0 / (x + 1.0),
    "cbrt": lambda x, out: 1.0 / (out * out * 3.0),
    "cosm1": lambda x, out: -x.op("sin"),
    "exprel": _exprel,
    "expi": lambda x, out: x.op("exp") / x,
    "exp1": lambda x, out: -(-x).op("exp") / x,
    "spence": lambda x, out: -_log_ratio(x - 1.0),
    "j0": lambda x, out: -library("j1", x),
    "j1": lambda x, out: library("j0", x) - _J1_RATIO(x),
    "y0": lambda x, out: -library("y1", x),
    "y1": lambda x, out: library("y0", x) - out / x,
    "i0": lambda x, out: library("i1", x),
    "i1": lambda x, out: library("i0", x) - _I1_RATIO(x),
    "i0e": lambda x, out: library("i1e", x) - x.op("sign") * out,
    "i1e": lambda x, out: library("i0e", x) - x.op("sign") * out - _I1_RATIO(x) * (-x.op("abs")).op("exp"),
    "k0": lambda x, out: -library("k1", x),
    "k1": lambda x, out: -library("k0", x) - out / x,
    "k0e": lambda x, out: out - library("k1e", x),
    "k1e": lambda x, out: out - library("k0e", x) - out / x,
    "ellipk": _ellipk,
    "ellipe": _ellipe,
}


# -- several arguments ----------------------------------------------------------------------------
def _over(x: Formula, y: Formula) -> Formula:
    """``x / y``, and zero where ``x`` is."""
    return choose(x, "equal", 0.0, 0.0, x / choose(x, "equal", 0.0, 1.0, y))


def _huber(d: Formula, r: Formula, out: Formula) -> Sequence[Any]:
    size = r.op("abs")
    bounded = Formula(r.ops, r.ops.minimum(size.var, d.var))
    return choose(size, "less_equal", d, 0.0, size - d), bounded * r.op("sign")


def _pseudo_huber(d: Formula, r: Formula, out: Formula) -> Sequence[Any]:
    ratio = r / d
    root = (ratio * ratio + 1.0).op("sqrt")
    return d * (root - 1.0) * 2.0 - r * ratio / root, r / root


def _boxcox(shift: float) -> Partials:
    def partials(x: Formula, power: Formula, out: Formula) -> Sequence[Any]:
        y = x + shift if shift else x
        log = x.op("log1p") if shift else x.op("log")
        exponent = power * log
        return exponent.op("exp") / y, log * log * _exprel(exponent)

    return partials


def _inv_boxcox(y: Formula, power: Formula, out: Formula) -> Sequence[Any]:
    inner = power * y
    return out / (inner + 1.0), out * y * y * _log_ratio_slope(inner)


def _beta(scale: Callable[[Formula], Formula | float]) -> Partials:
    def partials(a: Formula, b: Formula, out: Formula) -> Sequence[Any]:
        both = psi(a + b)
        return (psi(a) - both) * scale(out), (psi(b) - both) * scale(out)

    return partials


def _gammainc(sign: float) -> Partials:
    def partials(a: Formula, x: Formula, out: Formula) -> Sequence[Any]:
        log = (a - 1.0) * x.op("log") - x - a.op("lgamma")
        return _order("its first argument"), log.op("exp") * sign

    return partials


def _betainc(a: Formula, b: Formula, x: Formula, out: Formula) -> Sequence[Any]:
    log = (a - 1.0) * x.op("log") + (b - 1.0) * (-x).op("log1p") - library("betaln", a, b)
    return _order("its first arguments"), _order("its first arguments"), log.op("exp")


def _bessel(name: str, before: float, after: float) -> Partials:
    """``before`` times the function of the order before, and so on."""

    def partials(order: Formula, x: Formula, out: Formula) -> Sequence[Any]:
        lower, higher = library(name, order - 1.0, x), library(name, order + 1.0, x)
        return _order("the order"), lower * before + higher * after

    return partials


_SEVERAL: Mapping[str, Partials] = {
    "xlogy": lambda x, y, out: (y.op("log"), _over(x, y)),
    "xlog1py": lambda x, y, out: (y.op("log1p"), _over(x, y + 1.0)),
    "rel_entr": lambda x, y, out: ((x / y).op("log") + 1.0, -_over(x, y)),
    "kl_div": lambda x, y, out: ((x / y).op("log"), 1.0 - _over(x, y)),
    "huber": _huber,
    "pseudo_huber": _pseudo_huber,
    "boxcox": _boxcox(0.0),
    "boxcox1p": _boxcox(1.0),
    "inv_boxcox": _inv_boxcox,
    "beta": _beta(lambda out: out),
    "betaln": _beta(lambda out: 1.0),
    "poch": lambda z, m, out: (out * (psi(z + m) - psi(z)), out * psi(z + m)),
    "_zeta": lambda s, q, out: (_order("its first argument"), -s * library("_zeta", s + 1.0, q)),
    "gammainc": _gammainc(1.0),
    "gammaincc": _gammainc(-1.0),
    "betainc": _betainc,
    "expn": lambda n, x, out: (_order("the order"), -library("expn", n - 1.0, x)),
    "jv": _bessel("jv", 0.5, -0.5),
    "yv": _bessel("yv", 0.5, -0.5),
    "iv": _bessel("iv", 0.5, 0.5),
    "kv": _bessel("kv", -0.5, -0.5),
}


def _slopes(ops: Ops, callee: Callee, inputs: Vars, outputs: Vars) -> Sequence[Any]:
    """Partial derivatives: values, or ``Unknown``."""
    name, values = callee.name, [Formula(ops, v) for v in (*inputs, *outputs)]
    is_real = all(v.dtype.is_float for v in (*inputs, *outputs))
    if not is_real or _ufunc(name) is not callee.function:
        raise TypeError("what it calls is not known to dyncomp")
    if name in _UNARY:
        return (_UNARY[name](values[0], values[1]).var,)
    if name not in _SEVERAL:
        raise TypeError("what it calls is not known to dyncomp")
    return [s.var if isinstance(s, Formula) else s for s in _SEVERAL[name](*values)]


def ufunc_vjp(
    ops: Ops, cotangents: Vars, inputs: Vars, outputs: Vars, *, callee: Callee, dtypes: tuple[DType, ...]
) -> Sequence[Var | Unknown | None]:
    slopes = _slopes(ops, callee, inputs, outputs)
    return [s if isinstance(s, Unknown) else ops.multiply(cotangents[0], s) for s in slopes]


def ufunc_jvp(
    ops: Ops,
    tangents: Sequence[Var | None],
    inputs: Vars,
    outputs: Vars,
    *,
    callee: Callee,
    dtypes: tuple[DType, ...],
) -> Var | None:
    terms: list[Var | None] = []
    for tangent, slope in zip(tangents, _slopes(ops, callee, inputs, outputs)):
        if tangent is None:
            continue
        if isinstance(slope, Unknown):
            raise TypeError(slope.reason)
        terms.append(ops.multiply(tangent, slope))
    return total(ops, terms)
