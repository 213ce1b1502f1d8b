"""Slopes of SciPy's special functions that are no ops: graphs call the ufuncs themselves (``ufunc_call``).

``SLOPES`` has for each a slope per operand: a function of :class:`At` and the operands, ``None`` (the result
does not depend on it smoothly: an integer), or the reason why there is none. Formulas: DLMF.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dtypes import DType
from ...graph.ir import Ops, Var
from ..pointwise.partials import Unknown, conjugate, scalar, total
from ..python_call import ufunc_callee

LIBRARY = "scipy.special"
_ROOT_PI = math.sqrt(math.pi)
_ROOT_2PI = math.sqrt(2 * math.pi)


class Term:
    """A value with operators."""

    def __init__(self, ops: Ops, var: Var) -> None:
        self.ops = ops
        self.var = var

    @property
    def dtype(self) -> DType:
        return self.var.dtype

    def _with(self, op: str, other: Term | float, swapped: bool = False) -> Term:
        right = other.var if isinstance(other, Term) else scalar(self.ops, self.var, other)
        if right.dtype != self.dtype and not self.dtype.is_inexact:
            return Term(self.ops, self.ops.convert(self.var, dtype=right.dtype))._with(op, other, swapped)
        if right.dtype != self.dtype:
            right = self.ops.convert(right, dtype=self.dtype)
        pair = (right, self.var) if swapped else (self.var, right)
        return Term(self.ops, getattr(self.ops, op)(*pair))

    def __add__(self, other: Term | float) -> Term:
        return self._with("add", other)

    def __radd__(self, other: float) -> Term:
        return self._with("add", other)

    def __sub__(self, other: Term | float) -> Term:
        return self._with("subtract", other)

    def __rsub__(self, other: float) -> Term:
        return self._with("subtract", other, swapped=True)

    def __mul__(self, other: Term | float) -> Term:
        return self._with("multiply", other)

    def __rmul__(self, other: float) -> Term:
        return self._with("multiply", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self._with("divide", other)

    def __rtruediv__(self, other: float) -> Term:
        return self._with("divide", other, swapped=True)

    def __pow__(self, other: Term | float) -> Term:
        return self._with("power", other)

    def __neg__(self) -> Term:
        return Term(self.ops, self.ops.negative(self.var))

    def is_zero(self) -> Term:
        return self._with("equal", 0.0)


class At:
    """Where a slope is taken: the function's value ``out``, and functions of terms."""

    def __init__(self, ops: Ops, out: Var) -> None:
        self.ops = ops
        self.out = Term(ops, out)

    def call(self, name: str, *terms: Term) -> Term:
        """A function of SciPy: one result."""
        ufunc = getattr(sys.modules[f"{LIBRARY}._ufuncs"], name)
        wide = next(t.dtype for t in reversed(terms) if t.dtype.is_inexact)
        made = self.ops.ufunc_call(*[t.var for t in terms], callee=ufunc_callee(ufunc), dtypes=(wide,))
        return Term(self.ops, made)

    def op(self, name: str, *terms: Term) -> Term:
        return Term(self.ops, getattr(self.ops, name)(*[t.var for t in terms]))

    def exp(self, x: Term) -> Term:
        return self.op("exp", x)

    def log(self, x: Term) -> Term:
        return self.op("log", x)

    def sqrt(self, x: Term) -> Term:
        return self.op("sqrt", x)

    def psi(self, x: Term) -> Term:
        return self.call("psi", x) if x.dtype.is_complex else self.op("digamma", x)

    def lgamma(self, x: Term) -> Term:
        return self.op("lgamma", x)

    def lower(self, name: str, n: Term, x: Term) -> Term:
        """``n`` times the polynomial of degree ``n - 1``."""
        below = self.op("maximum", n - 1, 0 * n)
        return self.call(name, below, x) * n

    def where(self, condition: Term, x: Term | float, y: Term) -> Term:
        first = x.var if isinstance(x, Term) else scalar(self.ops, y.var, x)
        return Term(self.ops, self.ops.where(condition.var, first, y.var))


Slope = Callable[..., Term] | str | None
Rule = Callable[..., Any]
Vars = Sequence[Var]
Found = Var | None | Unknown


def _ratio(f: At, x: Term, y: Term, at_zero: float) -> Term:
    """``x / y``, and ``at_zero`` where ``y`` is zero."""
    zero = y.is_zero()
    return f.where(zero, at_zero, x / f.where(zero, 1.0, y))


def _bessel(name: str, below: float, above: float) -> Slope:
    """``below`` times the function of order v - 1 and ``above`` times that of v + 1."""
    return lambda f, v, z: below * f.call(name, v - 1.0, z) + above * f.call(name, v + 1.0, z)


def _by_product(f: At, x: Term, y: Term) -> Term:
    """``x / y`` that is 0 where ``x`` is: of ``x log y``."""
    return f.where(x.is_zero(), 0.0, x / y)


def _sinusoid(f: At, x: Term, function: str) -> Term:
    return f.op(function, x * (math.pi / 180))


def _gamma_density(f: At, a: Term, x: Term) -> Term:
    return f.exp((a - 1.0) * f.log(x) - x - f.lgamma(a))


def _beta_density(f: At, a: Term, b: Term, x: Term) -> Term:
    size = f.lgamma(a + b) - f.lgamma(a) - f.lgamma(b)
    return f.exp(size + (a - 1.0) * f.log(x) + (b - 1.0) * f.op("log1p", -x))


def _student_density(f: At, df: Term, t: Term) -> Term:
    size = f.lgamma((df + 1.0) / 2.0) - f.lgamma(df / 2.0) - 0.5 * f.log(df * math.pi)
    return f.exp(size - (df + 1.0) / 2.0 * f.op("log1p", t * t / df))


def _ellipk_slope(f: At, m: Term) -> Term:
    inside = f.call("ellipe", m) - (1.0 - m) * f.out
    zero = m.is_zero()
    return f.where(zero, math.pi / 8, inside / f.where(zero, 1.0, 2.0 * m * (1.0 - m)))


def _box_cox(f: At, x: Term, power: Term, log: Term) -> Term:
    """Of ``(x**p - 1) / p`` by ``p``."""
    zero = power.is_zero()
    away = ((1.0 + power * f.out) * log - f.out) / f.where(zero, 1.0, power)
    return f.where(zero, log * log * 0.5, away)


def _root(f: At, delta: Term, r: Term) -> Term:
    return f.sqrt(1.0 + (r / delta) * (r / delta))


def _faddeeva(f: At, x: Term, width: Term, gamma: Term) -> tuple[Term, Term, Term]:
    """Real and imaginary part of the slope of the Faddeeva function at ``(x + i gamma) / (width sqrt(2))``,
    and what they are multiplied by."""
    scale = width * math.sqrt(2.0)
    z = f.op("complex", x / scale, gamma / scale)
    w = f.call("wofz", z)
    real, imag = (f.op("real", w), f.op("imag", w))
    a, b = x / scale, gamma / scale
    slope_real = -2.0 * (a * real - b * imag)
    slope_imag = -2.0 * (a * imag + b * real) + 2.0 / _ROOT_PI
    return slope_real, slope_imag, 1.0 / (width * _ROOT_2PI) / scale


def _voigt_by_x(f: At, x: Term, width: Term, gamma: Term) -> Term:
    real, _, density = _faddeeva(f, x, width, gamma)
    return real * density


def _voigt_by_gamma(f: At, x: Term, width: Term, gamma: Term) -> Term:
    _, imag, density = _faddeeva(f, x, width, gamma)
    return -imag * density


def _voigt_by_width(f: At, x: Term, width: Term, gamma: Term) -> Term:
    real, imag, density = _faddeeva(f, x, width, gamma)
    return (-f.out - (real * x - imag * gamma) * density) / width


def _lambert(f: At, z: Term, branch: Term, tolerance: Term) -> Term:
    return 1.0 / (f.exp(f.out) * (1.0 + f.out))


ORDER = "there is no closed form for the derivative by its order or parameter"

SLOPES: dict[str, tuple[Slope, ...]] = {
    # gamma functions
    "gammaln": (lambda f, x: f.psi(x),),
    "loggamma": (lambda f, x: f.psi(x),),
    "gamma": (lambda f, x: f.out * f.psi(x),),
    "rgamma": (lambda f, x: -f.out * f.psi(x),),
    "gammasgn": (None,),
    "betaln": (lambda f, a, b: f.psi(a) - f.psi(a + b), lambda f, a, b: f.psi(b) - f.psi(a + b)),
    "beta": (
        lambda f, a, b: f.out * (f.psi(a) - f.psi(a + b)),
        lambda f, a, b: f.out * (f.psi(b) - f.psi(a + b)),
    ),
    "poch": (
        lambda f, a, m: f.out * (f.psi(a + m) - f.psi(a)),
        lambda f, a, m: f.out * f.psi(a + m),
    ),
    "binom": (
        lambda f, n, k: f.out * (f.psi(n + 1.0) - f.psi(n - k + 1.0)),
        lambda f, n, k: f.out * (f.psi(n - k + 1.0) - f.psi(k + 1.0)),
    ),
    "gammainc": (ORDER, _gamma_density),
    "gammaincc": (ORDER, lambda f, a, x: -_gamma_density(f, a, x)),
    "gammaincinv": (ORDER, lambda f, a, y: 1.0 / _gamma_density(f, a, f.out)),
    "gammainccinv": (ORDER, lambda f, a, y: -1.0 / _gamma_density(f, a, f.out)),
    "betainc": (ORDER, ORDER, _beta_density),
    "betaincinv": (ORDER, ORDER, lambda f, a, b, y: 1.0 / _beta_density(f, a, b, f.out)),
    "stdtr": (ORDER, _student_density),
    "stdtrit": (ORDER, lambda f, df, p: 1.0 / _student_density(f, df, f.out)),
    "_zeta": (ORDER, lambda f, s, q: -s * f.call("_zeta", s + 1.0, q)),
    # error functions and the normal distribution
    "erfcx": (lambda f, x: 2.0 * x * f.out - 2.0 / _ROOT_PI,),
    "erfi": (lambda f, x: f.exp(x * x) * (2.0 / _ROOT_PI),),
    "erfinv": (lambda f, x: f.exp(f.out * f.out) * (_ROOT_PI / 2),),
    "erfcinv": (lambda f, x: f.exp(f.out * f.out) * (-_ROOT_PI / 2),),
    "dawsn": (lambda f, x: 1.0 - 2.0 * x * f.out,),
    "ndtr": (lambda f, x: f.exp(x * x * -0.5) * (1.0 / _ROOT_2PI),),
    "log_ndtr": (lambda f, x: f.exp(x * x * -0.5 - f.out) * (1.0 / _ROOT_2PI),),
    "wofz": (
        lambda f, z: (
            -2.0 * z * f.out
            + Term(
                f.ops,
                f.ops.complex(
                    scalar(f.ops, f.ops.real(z.var), 0.0), scalar(f.ops, f.ops.real(z.var), 2 / _ROOT_PI)
                ),
            )
        ),
    ),
    "voigt_profile": (_voigt_by_x, _voigt_by_width, _voigt_by_gamma),
    # logistic functions, entropies, losses
    "logit": (lambda f, x: 1.0 / (x * (1.0 - x)),),
    "log_expit": (lambda f, x: f.op("sigmoid", -x),),
    "xlogy": (lambda f, x, y: f.log(y), _by_product),
    "xlog1py": (lambda f, x, y: f.op("log1p", y), lambda f, x, y: _by_product(f, x, 1.0 + y)),
    "entr": (lambda f, x: -f.log(x) - 1.0,),
    "rel_entr": (lambda f, x, y: f.log(x / y) + 1.0, lambda f, x, y: -_by_product(f, x, y)),
    "kl_div": (lambda f, x, y: f.log(x / y), lambda f, x, y: 1.0 - _by_product(f, x, y)),
    "huber": (
        lambda f, d, r: f.where(f.op("less_equal", f.op("abs", r), d), 0.0, f.op("abs", r) - d),
        lambda f, d, r: f.op("clip", r, -d, d),
    ),
    "pseudo_huber": (
        lambda f, d, r: 2.0 * d * (_root(f, d, r) - 1.0) - r * r / d / _root(f, d, r),
        lambda f, d, r: r / _root(f, d, r),
    ),
    "boxcox": (
        lambda f, x, p: x ** (p - 1.0),
        lambda f, x, p: _box_cox(f, x, p, f.log(x)),
    ),
    "boxcox1p": (
        lambda f, x, p: (1.0 + x) ** (p - 1.0),
        lambda f, x, p: _box_cox(f, x, p, f.op("log1p", x)),
    ),
    "inv_boxcox": (lambda f, y, p: f.out ** (1.0 - p), ORDER),
    "inv_boxcox1p": (lambda f, y, p: (1.0 + f.out) ** (1.0 - p), ORDER),
    # elementary functions
    "exp10": (lambda f, x: f.out * math.log(10.0),),
    "exprel": (lambda f, x: f.where(x.is_zero(), 0.5, _ratio(f, f.exp(x) - f.out, x, 0.5)),),
    "cosm1": (lambda f, x: -f.op("sin", x),),
    "powm1": (
        lambda f, x, y: y * x ** (y - 1.0),
        lambda f, x, y: (1.0 + f.out) * f.log(x),
    ),
    "sindg": (lambda f, x: _sinusoid(f, x, "cos") * (math.pi / 180),),
    "cosdg": (lambda f, x: _sinusoid(f, x, "sin") * (-math.pi / 180),),
    "tandg": (lambda f, x: (1.0 + f.out * f.out) * (math.pi / 180),),
    "round": (None,),
    # Bessel functions
    "j0": (lambda f, x: -f.call("j1", x),),
    "j1": (lambda f, x: f.call("j0", x) - _ratio(f, f.out, x, 0.5),),
    "y0": (lambda f, x: -f.call("y1", x),),
    "y1": (lambda f, x: f.call("y0", x) - f.out / x,),
    "k0": (lambda f, x: -f.call("k1", x),),
    "k1": (lambda f, x: -f.call("k0", x) - f.out / x,),
    "i0e": (lambda f, x: f.call("i1e", x) - f.op("sign", x) * f.out,),
    "i1e": (lambda f, x: f.call("i0e", x) - f.op("sign", x) * f.out - _ratio(f, f.out, x, 0.5),),
    "k0e": (lambda f, x: f.out - f.call("k1e", x),),
    "k1e": (lambda f, x: f.out - f.call("k0e", x) - f.out / x,),
    "jv": (ORDER, _bessel("jv", 0.5, -0.5)),
    "yv": (ORDER, _bessel("yv", 0.5, -0.5)),
    "iv": (ORDER, _bessel("iv", 0.5, 0.5)),
    "kv": (ORDER, _bessel("kv", -0.5, -0.5)),
    "hankel1": (ORDER, _bessel("hankel1", 0.5, -0.5)),
    "hankel2": (ORDER, _bessel("hankel2", 0.5, -0.5)),
    "kn": (None, lambda f, n, x: -0.5 * (f.call("kn", n - 1, x) + f.call("kn", n + 1, x))),
    "yn": (None, lambda f, n, x: 0.5 * (f.call("yn", n - 1, x) - f.call("yn", n + 1, x))),
    # integrals
    "exp1": (lambda f, x: -f.exp(-x) / x,),
    "expi": (lambda f, x: f.exp(x) / x,),
    "expn": (None, lambda f, n, x: -f.call("expn", n - 1, x)),
    "spence": (lambda f, x: f.where((x - 1.0).is_zero(), -1.0, f.log(x) / _away_from_one(f, x)),),
    "ellipk": (_ellipk_slope,),
    "ellipe": (lambda f, m: _ratio(f, f.out - f.call("ellipk", m), 2.0 * m, -math.pi / 8),),
    "ellipkinc": (lambda f, p, m: 1.0 / f.sqrt(1.0 - m * _squared_sine(f, p)), ORDER),
    "ellipeinc": (lambda f, p, m: f.sqrt(1.0 - m * _squared_sine(f, p)), ORDER),
    # others
    "_lambertw": (_lambert, None, None),
    "hyp0f1": (ORDER, lambda f, v, z: f.call("hyp0f1", v + 1.0, z) / v),
    "hyp1f1": (ORDER, ORDER, lambda f, a, b, x: a / b * f.call("hyp1f1", a + 1.0, b + 1.0, x)),
    "hyp2f1": (
        ORDER,
        ORDER,
        ORDER,
        lambda f, a, b, c, x: a * b / c * f.call("hyp2f1", a + 1.0, b + 1.0, c + 1.0, x),
    ),
    "eval_hermite": (None, lambda f, n, x: 2.0 * f.lower("eval_hermite", n, x)),
    "eval_hermitenorm": (None, lambda f, n, x: f.lower("eval_hermitenorm", n, x)),
    "eval_chebyt": (ORDER, lambda f, n, x: n * f.call("eval_chebyu", n - 1, x)),
}


def _away_from_one(f: At, x: Term) -> Term:
    return f.where((x - 1.0).is_zero(), 1.0, 1.0 - x)


def _squared_sine(f: At, x: Term) -> Term:
    sine = f.op("sin", x)
    return sine * sine


def _slope(at: At, slope: Slope, var: Var, terms: Sequence[Term]) -> Var | None | Unknown:
    if slope is None or not var.dtype.is_inexact:
        return None
    return Unknown(slope) if isinstance(slope, str) else slope(at, *terms).var


def _vjp(slopes: Sequence[Slope]) -> Rule:
    def vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **params: object) -> Sequence[Found]:
        at, terms = At(ops, outputs[0]), [Term(ops, v) for v in inputs]
        found: list[Found] = []
        for slope, var in zip(slopes, inputs, strict=True):
            by = _slope(at, slope, var, terms)
            found.append(ops.multiply(cts[0], conjugate(ops, by)) if isinstance(by, Var) else by)
        return found

    return vjp


def _jvp(slopes: Sequence[Slope]) -> Rule:
    def jvp(
        ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
    ) -> Var | None:
        at, terms = At(ops, outputs[0]), [Term(ops, v) for v in inputs]
        found: list[Var | None] = []
        for slope, var, tangent in zip(slopes, inputs, tangents, strict=True):
            by = None if tangent is None else _slope(at, slope, var, terms)
            if isinstance(by, Unknown):
                raise TypeError(by.reason)
            found.append(None if by is None else ops.multiply(tangent, by))
        return total(ops, found)

    return jvp


RULES: Mapping[str, tuple[Rule, Rule]] = {
    f"{LIBRARY}.{name}": (_vjp(slopes), _jvp(slopes)) for name, slopes in SLOPES.items()
}
