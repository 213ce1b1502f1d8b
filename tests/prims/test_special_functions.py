"""The zeta function, and derivatives made of it, where samples do not lead: poles, signs, sizes."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import NotDifferentiableError
from dyncomp.prims.table import TABLE

mpmath = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")

EPS = float(np.finfo(np.float64).eps)
RNG = np.random.default_rng(5)


def _exact(x, q):
    """zeta(x, q) for one pair: terms up to a ``q`` for which mpmath is right, and mpmath's."""
    with mpmath.workdps(50):
        x, q, found = mpmath.mpf(x), mpmath.mpf(q), mpmath.mpf(0)
        size = mpmath.mpf(0)
        while q < 30:
            term = q ** (-int(x)) if x == int(x) else q**-x
            found, size, q = found + term, size + abs(term), q + 1
        rest = mpmath.zeta(x, q)
        return float(found + rest), float(size + rest)


RANGES = {
    "ordinary": (1 + RNG.uniform(0.001, 4, 60), RNG.uniform(0.01, 4, 60)),
    "near the pole": (1 + 10.0 ** RNG.uniform(-12, -1, 30), 10.0 ** RNG.uniform(-2, 3, 30)),
    "large x": (10.0 ** RNG.uniform(0.1, 2, 30), 10.0 ** RNG.uniform(-2, 1, 30)),
    "large and small q": (1 + 10.0 ** RNG.uniform(-3, 1, 60), 10.0 ** RNG.uniform(-8, 8, 60)),
    "negative q": (RNG.integers(2, 9, 60).astype(float), RNG.uniform(-4, 0, 60)),
    "far below": (RNG.integers(2, 5, 30).astype(float), RNG.uniform(-300, 0, 30)),
    "just below a pole": (RNG.integers(2, 5, 30).astype(float), -(10.0 ** RNG.uniform(-20, 0, 30))),
}


@pytest.mark.parametrize("name", RANGES)
def test_zeta_is_right(name):
    x, q = RANGES[name]
    exact, size = map(np.array, zip(*map(_exact, x, q)))
    # an error of x**-y is y times that of the logarithm
    allowed = EPS * (8 + x) * size
    compiled = dyncomp.compile(lambda x, q: special.zeta(x, q))
    for found in (TABLE["zeta"].ref(x, q), compiled(x, q)):
        assert (np.abs(found - exact) <= allowed).all(), (found - exact) / size / EPS


def test_zeta_has_scipys_special_values():
    values = [0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, -0.5, -1.0, -1.5, -3.0, 1e3, 1e20, 1e-200, -1e-200]
    grid = np.array([*values, np.inf, -np.inf, np.nan])
    x, q = map(np.ravel, np.meshgrid(grid, grid))
    found = dyncomp.compile(lambda x, q: special.zeta(x, q))(x, q)
    np.testing.assert_allclose(found, special.zeta(x, q), rtol=1e-14)


def test_derivatives_of_digamma():
    x = np.array([-299.7, -3.2, -0.5, -1e-8, 1e-300, 1e-8, 0.3, 1.4616321449683623, 5.0, 1e6, 1e300])
    slope = dyncomp.grad(lambda x: special.psi(x).sum())
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(slope(x), special.polygamma(1, x), rtol=1e-13)
    x = x[np.abs(x) > 1e-100]
    curve = np.diag(dyncomp.hessian(lambda x: special.psi(x).sum())(x))
    np.testing.assert_allclose(curve, special.polygamma(2, x), rtol=1e-12)


def test_derivatives_of_betainc():
    a, b = np.array([0.5, 1.0, 1.0, 3.0, 400.0, 2.0, 1.0]), np.array([0.5, 1.0, 4.0, 2.5, 300.0, 1.0, 1.0])
    x = np.array([0.3, 0.0, 0.0, 0.75, 0.6, 1.0, 1.0])
    found = dyncomp.grad(lambda x: special.betainc(a, b, x).sum())(x)
    exact = [float(mpmath.mpf(s) ** (p - 1) * (1 - mpmath.mpf(s)) ** (q - 1) / mpmath.beta(p, q))
             for p, q, s in zip(a, b, x)]  # fmt: skip
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    t = np.array([0.3, 0.75])
    curve = np.diag(dyncomp.hessian(lambda x: special.betainc(3.0, 2.5, x).sum())(t))
    slope = t**2 * (1 - t) ** 1.5 / special.beta(3.0, 2.5)
    np.testing.assert_allclose(curve, slope * (2 / t - 1.5 / (1 - t)), rtol=1e-12)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: special.zeta(x, 2.0).sum(), "zeta at .* by argument 0: .*closed form"),
        (lambda x: special.betainc(x, 2.0, 0.5).sum(), "betainc at .* by argument 0: .*closed form"),
        (lambda x: special.betainc(2.0, x, x / 9).sum(), "betainc at .* by argument 1: .*closed form"),
    ],
)
def test_derivatives_that_there_are_not_are_refused(program, message):
    x = np.array([1.5, 2.5])
    with pytest.raises(NotDifferentiableError, match=message):
        dyncomp.grad(program)(x)
    with pytest.raises(NotDifferentiableError, match=message):
        dyncomp.jvp(program, (x,), (x,))
