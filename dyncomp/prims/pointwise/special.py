"""Special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import DType, float32, float64
from ..kit import FLOAT, Array, laid_out, pointwise_meta, quiet
from ..opdef import Extern, OpDef
from ..samples import pointwise_samples
from ..scalar_types import ScalarOp, Vector
from . import partials
from .kit import by_element, called, pointwise, unary

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


# Chebyshev series of exp(-x) I0(x) and exp(-x) I1(x) / x for x in [0, 8], in x/4 - 1, and of both functions
# times sqrt(x) exp(-x) for x in [8, inf), in 16/x - 1: interpolation at Chebyshev nodes with 50 digits
# (tools/fit_bessel.py prints them).
# fmt: off
_I0_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18,
)
_I0_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14,
    -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18,
    -7.233180487874754e-18,
)
_I1_NEAR = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
    0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
    0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08,
    9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14,
    7.600684294735408e-15, -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
    2.7779141127610464e-18,
)
_I1_FAR = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18,
)
_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
# B(2k) / (2k)! for k = 1, 2, ..., 12
_EULER_MACLAURIN = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812525e-19,
)
# fmt: on


def _bessel(order: int, near: tuple[float, ...], far: tuple[float, ...]) -> Callable[..., Any]:
    """Modified Bessel function of the first kind, by Clenshaw's recurrence for the series of both ranges."""

    def decomp(s: ScalarBuilder, x: Any) -> Any:
        dtype = s.dtype(x)

        def number(value: float) -> Any:
            return s.const(value, dtype)

        size = s.abs(x)
        is_near = s.less_equal(size, number(8.0))
        place = s.where(
            is_near,
            s.subtract(s.multiply(size, number(0.25)), number(1.0)),
            s.subtract(s.divide(number(16.0), size), number(1.0)),
        )
        twice = s.add(place, place)
        after, last = number(0.0), number(0.0)
        shortest = float(np.finfo(dtype.numpy).eps) / 16 if dtype.itemsize > 2 else 1e-6
        count = max(sum(abs(c) > shortest * max(series) for c in series) for series in (near, far))
        for k in range(count - 1, 0, -1):
            term = s.where(is_near, *(number(c[k] if k < len(c) else 0.0) for c in (near, far)))
            after, last = s.add(s.subtract(s.multiply(twice, after), last), term), after
        first = s.where(is_near, number(near[0]), number(far[0]))
        total = s.add(s.subtract(s.multiply(place, after), last), first)
        beside = number(1.0) if order == 0 else size
        total = s.multiply(total, s.where(is_near, beside, s.divide(number(1.0), s.sqrt(size))))
        total = s.multiply(total, s.exp(size))
        return total if order == 0 else s.copysign(total, x)

    return decomp


def _digamma(s: ScalarBuilder, x: Any) -> Any:
    """The asymptotic series beyond 10 (DLMF 5.11.2), which the recurrence leads to; reflection below zero."""
    given = s.dtype(x)
    x = s.cast(x, float64)  # it cancels near the poles and the root

    def number(value: float) -> Any:
        return s.const(value, float64)

    one, zero = number(1.0), number(0.0)
    reflected = s.less_equal(x, zero)
    y = s.where(reflected, s.subtract(one, x), x)
    total = zero
    for _ in range(10):
        is_low = s.less(y, number(10.0))
        total = s.subtract(total, s.where(is_low, s.divide(one, y), zero))
        y = s.where(is_low, s.add(y, one), y)
    inverse = s.divide(one, s.multiply(y, y))
    series = number(_BERNOULLI[-1])
    for c in _BERNOULLI[-2::-1]:
        series = s.add(s.multiply(series, inverse), number(c))
    half = s.divide(number(0.5), y)
    value = s.subtract(s.subtract(s.log(y), half), s.multiply(series, inverse))
    value = s.add(value, total)
    angle = s.multiply(s.subtract(x, s.trunc(x)), number(math.pi))
    turned = s.subtract(value, s.divide(number(math.pi), s.tan(angle)))
    at_pole = s.where(s.equal(x, zero), s.negative(s.copysign(number(math.inf), x)), number(math.nan))
    below = s.where(s.equal(x, s.floor(x)), at_pole, turned)
    return s.cast(s.where(reflected, below, value), given)


def _ndtri(s: ScalarBuilder, p: Any) -> Any:
    """Abramowitz and Stegun 26.2.23, which is right to 5e-4, and two of Halley's steps."""
    dtype = s.dtype(p)

    def number(value: float) -> Any:
        return s.const(value, dtype)

    one, half = number(1.0), number(0.5)
    is_upper = s.greater(p, half)
    tail = s.where(is_upper, s.subtract(one, p), p)
    log = s.log(tail)
    t = s.sqrt(s.multiply(number(-2.0), log))
    over = s.add(number(2.515517), s.multiply(t, s.add(number(0.802853), s.multiply(t, number(0.010328)))))
    under = s.add(number(0.189269), s.multiply(t, number(0.001308)))
    under = s.add(one, s.multiply(t, s.add(number(1.432788), s.multiply(t, under))))
    x = s.subtract(t, s.divide(over, under))
    for _ in range(2):
        scaled = s.multiply(x, number(math.sqrt(0.5)))
        square = s.multiply(s.multiply(x, x), half)
        # the tail beyond x less that wanted, over the density at x; near the centre by differences to 1/2
        ratio = s.subtract(s.divide(s.multiply(half, s.erfc(scaled)), tail), one)
        far = s.multiply(ratio, s.exp(s.add(log, square)))
        inner = s.subtract(s.subtract(half, tail), s.multiply(half, s.erf(scaled)))
        near = s.multiply(inner, s.exp(square))
        step = s.where(s.greater(tail, number(0.25)), near, far)
        step = s.multiply(step, number(math.sqrt(2 * math.pi)))
        x = s.add(x, s.divide(step, s.subtract(one, s.multiply(s.multiply(x, step), half))))
    x = s.where(s.equal(tail, number(0.0)), number(math.inf), x)
    x = s.where(is_upper, x, s.negative(x))
    return s.where(s.equal(tail, half), number(0.0), x)


def _hurwitz(s: ScalarBuilder, x: Any, q: Any) -> Any:
    """The sum of ``(q + k)**-x`` over ``k >= 0`` for positive ``q``: seven terms, the others by Euler and
    Maclaurin (DLMF 25.11.5)."""

    def number(value: float) -> Any:
        return s.const(value, float64)

    one, exponent = number(1.0), s.negative(x)
    total = s.power(q, exponent)
    for k in range(1, 7):
        total = s.add(total, s.power(s.add(q, number(k)), exponent))
    w = s.add(q, number(7.0))
    inverse = s.divide(one, w)
    square = s.multiply(inverse, inverse)
    series = number(_EULER_MACLAURIN[-1])
    for k in range(len(_EULER_MACLAURIN) - 1, 0, -1):
        rising = s.multiply(s.add(x, number(2 * k - 1)), s.add(x, number(2 * k)))
        series = s.multiply(series, s.multiply(rising, square))
        series = s.add(series, number(_EULER_MACLAURIN[k - 1]))
    rest = s.add(s.multiply(inverse, number(0.5)), s.multiply(series, s.multiply(x, square)))
    rest = s.add(rest, s.divide(one, s.subtract(x, one)))
    integral = s.power(w, s.subtract(one, x))
    is_nothing = s.equal(integral, number(0.0))  # the factor may be infinite then
    return s.add(total, s.where(is_nothing, number(0.0), s.multiply(integral, rest)))


def _zeta(s: ScalarBuilder, x: Any, q: Any) -> Any:
    """For ``q`` below zero and integers ``x``: the sum over all ``k``, which is periodic in ``q``, less that
    over ``k < 0``."""
    given = s.dtype(x)
    x, q = s.cast(x, float64), s.cast(q, float64)  # it cancels for odd x and q below zero

    def number(value: float) -> Any:
        return s.const(value, float64)

    one, zero = number(1.0), number(0.0)
    low = s.floor(q)
    reflected = s.less_equal(q, zero)
    found = _hurwitz(s, x, s.where(reflected, s.subtract(q, low), q))
    near, far = (s.where(reflected, s.subtract(top, q), one) for top in (s.ceil(q), one))
    below = s.subtract(_hurwitz(s, x, near), _hurwitz(s, x, far))
    half = s.multiply(x, number(0.5))
    below = s.where(s.equal(half, s.floor(half)), below, s.negative(below))
    below = s.where(s.equal(x, s.floor(x)), s.add(found, below), number(math.nan))
    below = s.where(s.equal(q, low), number(math.inf), below)
    found = s.where(reflected, below, found)
    # there SciPy's and torch's series overflow: NaN, not 0
    overflows = s.logical_and(s.greater(x, number(2.5e13)), s.less_equal(q, number(1e8)))
    overflows = s.logical_and(overflows, s.equal(found, zero))
    found = s.where(overflows, number(math.nan), found)
    found = s.where(s.equal(x, one), number(math.inf), found)
    return s.cast(s.where(s.less(x, one), number(math.nan), found), given)


def _betainc(a: Array, b: Array, x: Array) -> Array:
    from scipy import special

    return np.asarray(special.betainc(a, b, x))


def _parameters_and_share(position: int, x: Array) -> Array:
    return x if position < 2 else np.asarray(x / x.dtype.type(4))


def _beyond_one(position: int, x: Array) -> Array:
    return x if position else np.asarray(x + x.dtype.type(1))


_ITERATED = "only the derivative by x has a closed form"


class _OnArrays:
    """The functions that these decompositions call, on float64 arrays."""

    erf = staticmethod(by_element(math.erf))
    erfc = staticmethod(by_element(math.erfc))

    def dtype(self, value: Any) -> DType:
        return float64

    def const(self, value: float, dtype: DType) -> Any:
        return np.float64(value)

    def cast(self, value: Any, dtype: DType) -> Any:
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def by_decomposition(decomp: Callable[..., Any]) -> Callable[..., Array]:
    """The reference of a function that NumPy does not have: the decomposition in float64, rounded once."""

    def ref(*operands: Any) -> Array:
        arrays = [np.asarray(x) for x in operands]
        with np.errstate(all="ignore"):
            found = decomp(_OnArrays(), *(x.astype(np.float64) for x in arrays))
            return np.asarray(found).astype(arrays[0].dtype)

    return ref


def decomposed(
    name: str, closed: str, doc: str, decomp: Callable[..., Any], *, cost: int, arity: int = 1, **said: Any
) -> OpDef:
    """A row for a function that all targets have as a decomposition."""
    scalar = ScalarOp(decomp=decomp, cost=cost)
    ref = by_decomposition(decomp)
    return pointwise(arity, name, ref, WIDE, doc, scalar=scalar, own_order=True, closed=closed, **said)


# Decompositions are not for halves, of which every step would be rounded: frontends convert these.
WIDE = (float32, float64)


ROWS: tuple[OpDef, ...] = (
    unary(
        "erf",
        by_element(math.erf),
        FLOAT,
        "Error function.",
        own_order=True,
        scalar=called("erf", "dc_erf({0})", vector=Vector()),
        names=("scipy.special.erf", "torch.erf", "torch.special.erf", "math.erf"),
        partials=partials.gauss(1.0),
        closed="erf(x)",
    ),
    unary(
        "erfc",
        by_element(math.erfc),
        FLOAT,
        "Complementary error function.",
        own_order=True,
        scalar=called("erfc", cost=25, vector=Vector()),
        names=("scipy.special.erfc", "torch.erfc", "torch.special.erfc", "math.erfc"),
        partials=partials.gauss(-1.0),
        closed="erfc(x)",
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
        names=("torch.lgamma", "torch.special.gammaln", "math.lgamma"),
        partials=partials.of_x(lambda ops, x, out: ops.digamma(x)),
        closed="log(Abs(gamma(x)))",
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
        names=("scipy.special.expit", "torch.sigmoid", "torch.special.expit"),
        partials=partials.of_x(
            lambda ops, x, out: ops.multiply(out, ops.subtract(partials.scalar(ops, x, 1.0), out))
        ),
        closed="1 / (1 + exp(-x))",
    ),
    decomposed(
        "i0",
        "besseli(0, x)",
        "Modified Bessel function of the first kind, order 0.",
        _bessel(0, _I0_NEAR, _I0_FAR),
        cost=120,
        names=("numpy.i0", "scipy.special.i0", "torch.i0", "torch.special.i0"),
        partials=partials.of_x(lambda ops, x, out: ops.i1(x)),
    ),
    decomposed(
        "i1",
        "besseli(1, x)",
        "Modified Bessel function of the first kind, order 1.",
        _bessel(1, _I1_NEAR, _I1_FAR),
        cost=120,
        names=("scipy.special.i1", "torch.special.i1"),
        partials=partials.of_x(partials.bessel_i1),
    ),
    decomposed(
        "digamma",
        "polygamma(0, x)",
        "Logarithmic derivative of the gamma function; NaN at negative integers.",
        _digamma,
        cost=120,
        eps=64.0,
        absolute=16.0,
        names=("scipy.special.psi", "torch.digamma", "torch.special.digamma"),
        partials=partials.of_x(lambda ops, x, out: ops.zeta(partials.scalar(ops, x, 2.0), x)),
    ),
    decomposed(
        "zeta",
        "zeta(x, y)",
        "Hurwitz zeta function: the sum of (q + k)**-x over k >= 0. NaN for x < 1, and for q < 0 unless x is "
        "an integer; inf at x = 1 and at the poles.",
        _zeta,
        cost=1000,
        arity=2,
        low=0.1,
        operand=_beyond_one,
        absolute=16.0,
        names=("scipy.special._ufuncs._zeta", "torch.special.zeta"),
        partials=partials.zeta,
        no_derivative_by={0: "it has no closed form"},
    ),
    OpDef(
        "betainc",
        (),
        pointwise_meta("betainc", WIDE),
        laid_out(quiet(_betainc), pointwise_meta("betainc", WIDE), always=True),
        lower=Extern(package="scipy"),  # a continued fraction, and other expansions where it converges slowly
        samples=pointwise_samples(WIDE, 3, low=0.1, high=3.9, operand=_parameters_and_share),
        dtypes=WIDE,
        doc="Regularised incomplete beta function of the parameters a and b at x, by SciPy's routine.",
        closed="betainc(x, y, 0, z) / beta(x, y)",
        names=("scipy.special.betainc",),
        partials=partials.betainc,
        no_derivative_by={0: _ITERATED, 1: _ITERATED},
    ),
    decomposed(
        "ndtri",
        "sqrt(2) * erfinv(2*x - 1)",
        "Inverse of the normal distribution function; NaN outside of [0, 1].",
        _ndtri,
        cost=150,
        low=0.01,
        high=0.99,
        eps=32.0,
        names=("scipy.special.ndtri", "torch.special.ndtri"),
        partials=partials.of_x(
            lambda ops, x, out: ops.multiply(
                partials.scalar(ops, x, math.sqrt(2 * math.pi)),
                ops.exp(ops.multiply(ops.square(out), partials.scalar(ops, x, 0.5))),
            )
        ),
    ),
)
