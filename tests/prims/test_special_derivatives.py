"""Derivatives of scipy.special's functions, against finite differences; second derivatives, too."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import NotDifferentiableError
from dyncomp.prims.derivatives import special_functions as rules

special = pytest.importorskip("scipy.special")
linalg = pytest.importorskip("scipy.linalg")

POSITIVE = np.array([0.3, 0.7, 1.6, 2.4])
ANY = np.array([-1.3, -0.2, 0.0, 0.6, 1.9])
UNIT = np.array([0.1, 0.35, 0.6, 0.85])
AT = (
    (
        ANY,
        "ndtr log_ndtr expit log_expit erf erfc erfcx erfi dawsn exp10 exp2 expm1 cosm1 exprel j0 j1 i0 i1",
    ),
    (ANY[ANY != 0], "i0e i1e"),
    (np.append(POSITIVE, -0.4), "gammaln gamma rgamma psi expi"),
    (POSITIVE, "loggamma entr log1p cbrt exp1 y0 y1 k0 k1 k0e k1e"),
    (np.append(POSITIVE, 1.0), "spence"),
    (UNIT, "ndtri logit erfinv"),
    (2 * UNIT, "erfcinv"),
    (np.append(UNIT, 0.0), "ellipk ellipe"),
)
UNARY = {name: points for points, names in AT for name in names.split()}
SEVERAL = {
    "xlogy": (POSITIVE, UNIT),
    "xlog1py": (POSITIVE, UNIT),
    "rel_entr": (POSITIVE, UNIT),
    "kl_div": (POSITIVE, UNIT),
    "huber": (UNIT, POSITIVE - 0.9),
    "pseudo_huber": (UNIT, POSITIVE - 1.0),
    "boxcox": (POSITIVE, ANY[1:]),
    "boxcox1p": (POSITIVE, ANY[:4]),
    "inv_boxcox": (UNIT, ANY[1:]),
    "beta": (POSITIVE, UNIT),
    "betaln": (POSITIVE, UNIT),
    "poch": (POSITIVE, UNIT),
    "_zeta": (np.array([2.0, 3.0, 2.0, 4.0]), POSITIVE),
    "gammainc": (POSITIVE, UNIT),
    "gammaincc": (POSITIVE, UNIT),
    "betainc": (POSITIVE, POSITIVE[::-1].copy(), UNIT),
    "expn": (np.array([2.0, 3.0, 2.0, 4.0]), POSITIVE),
    "jv": (np.array([0.5, 1.0, 2.5, 3.0]), POSITIVE),
    "yv": (np.array([0.5, 1.0, 2.5, 3.0]), POSITIVE),
    "iv": (np.array([0.5, 1.0, 2.5, 3.0]), POSITIVE),
    "kv": (np.array([0.5, 1.0, 2.5, 3.0]), POSITIVE),
}
# by their last argument alone
LAST = {"_zeta", "gammainc", "gammaincc", "betainc", "expn", "jv", "yv", "iv", "kv"}
WEIGHTS = np.array([0.7, -1.2, 0.4, 1.1, 0.9])


def function(name):
    return getattr(special, name, None) or getattr(special._ufuncs, name)


def differences(f, x, step=1e-4):
    def at(k):
        return f(x + k * step)

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)


def test_every_rule_is_tested():
    assert set(UNARY) == set(rules._UNARY)
    assert set(SEVERAL) == set(rules._SEVERAL)


@pytest.mark.parametrize("name", [*UNARY, *SEVERAL])
def test_derivatives(name):
    ufunc = function(name)
    args = (UNARY[name],) if name in UNARY else SEVERAL[name]
    weights = WEIGHTS[: len(args[0])]
    for position in range(len(args) - 1 if name in LAST else 0, len(args)):

        def f(x, position=position):
            return (weights * ufunc(*args[:position], x, *args[position + 1 :])).sum()

        def plain(x, position=position):
            return weights * ufunc(*args[:position], x, *args[position + 1 :])

        x = args[position]
        np.testing.assert_allclose(dyncomp.grad(f)(x), differences(plain, x), rtol=1e-7, atol=1e-8)
        value, tangent = dyncomp.jvp(f, (x,), (weights,))
        np.testing.assert_allclose(tangent, (differences(plain, x) * weights).sum(), rtol=1e-7, atol=1e-8)
        second = dyncomp.grad(lambda x: dyncomp.grad(f)(x).sum())(x)
        twice = differences(lambda x: differences(plain, x, 1e-3), x, 1e-3)
        np.testing.assert_allclose(second, twice, rtol=1e-6, atol=1e-7)


def test_at_the_edges():
    x = np.array([0.0, 0.0, 2.0])
    y = np.array([0.0, 3.0, 0.5])
    np.testing.assert_array_equal(dyncomp.grad(lambda y: special.xlogy(x, y).sum())(y), [0.0, 0.0, 4.0])
    np.testing.assert_array_equal(dyncomp.grad(lambda y: special.rel_entr(x, y).sum())(y), [0.0, 0.0, -4.0])
    near = np.array([-1e-9, 0.0, 1e-5, 0.00999])
    wanted = 1 / 2 + near / 3 + near**2 / 8 + near**3 / 30 + near**4 / 144
    np.testing.assert_allclose(dyncomp.grad(lambda x: special.exprel(x).sum())(near), wanted, rtol=1e-11)
    zeros = np.zeros(2)
    for name, slope in (("ellipk", np.pi / 8), ("ellipe", -np.pi / 8), ("i1e", 0.5), ("j1", 0.5)):
        ufunc = function(name)
        found = dyncomp.grad(lambda x: ufunc(x).sum())(zeros)  # noqa: B023
        np.testing.assert_allclose(found, slope)


def test_what_is_not_known_is_refused_and_not_zero():
    with pytest.raises(NotDifferentiableError, match="first argument"):
        dyncomp.grad(lambda a: special.gammainc(a, POSITIVE).sum())(POSITIVE)
    with pytest.raises(NotDifferentiableError, match="order"):
        dyncomp.jvp(lambda v: special.jv(v, POSITIVE), (POSITIVE,), (POSITIVE,))
    with pytest.raises(NotDifferentiableError, match="not known"):
        dyncomp.grad(lambda x: special.owens_t(x, 0.5).sum())(POSITIVE)
    with pytest.raises(NotDifferentiableError, match="not known"):
        dyncomp.grad(lambda x: special.gamma(x).real.sum())(POSITIVE + 1j)


def test_functions_on_the_tape_are_one_operation():
    """Their own code makes arrays that it writes to, which are not the tape's."""

    def f(x, broken=True):
        if broken:
            dyncomp.graph_break()
        factor = linalg.cho_factor(x @ x.T + np.eye(len(x)), lower=True)
        return linalg.cho_solve(factor, x).sum() + (linalg.toeplitz(x[0]) ** 2).sum() + linalg.expm(x).sum()

    x = np.random.default_rng(0).standard_normal((3, 3))
    wanted = dyncomp.grad(lambda x: f(x, False))(x)
    np.testing.assert_allclose(dyncomp.grad(f)(x), wanted, rtol=1e-10)
