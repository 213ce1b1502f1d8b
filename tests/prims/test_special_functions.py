"""Slopes of functions of ``scipy.special`` against differences of the functions themselves."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import NotDifferentiableError
from dyncomp.prims.derivatives.special_functions import SLOPES

special = pytest.importorskip("scipy.special")

COUNT = 9
# ranges of operands where they are not (0.3, 0.9) for the first, (1.3, 1.9) for the second and so on;
# a list: integers
RANGES: dict[str, tuple[object, ...]] = {
    "gammaln": ((-2.9, -2.1),),
    "loggamma": ((0.5, 5.0),),
    "binom": ((4.0, 5.0), (1.2, 1.9)),
    "gammaincinv": ((1.0, 2.0), (0.2, 0.8)),
    "gammainccinv": ((1.0, 2.0), (0.2, 0.8)),
    "betainc": ((1.0, 2.0), (1.0, 2.0), (0.2, 0.8)),
    "betaincinv": ((1.0, 2.0), (1.0, 2.0), (0.2, 0.8)),
    "stdtrit": ((2.0, 5.0), (0.2, 0.8)),
    "_zeta": ((1.5, 3.0), (0.5, 2.0)),
    "erfinv": ((-0.9, 0.9),),
    "log_ndtr": ((-30.0, 3.0),),
    "huber": ((0.5, 1.0), (-2.0, 2.0)),
    "pseudo_huber": ((0.5, 1.0), (-2.0, 2.0)),
    "boxcox": ((0.5, 2.0), (-1.0, 1.0)),
    "boxcox1p": ((0.5, 2.0), (-1.0, 1.0)),
    "inv_boxcox": ((0.5, 2.0), (0.2, 1.0)),
    "inv_boxcox1p": ((0.5, 2.0), (0.2, 1.0)),
    "exprel": ((-2.0, 2.0),),
    "tandg": ((-80.0, 80.0),),
    "j1": ((-9.0, 9.0),),
    "i0e": ((-9.0, 9.0),),
    "i1e": ((-9.0, 9.0),),
    "jv": ((0.5, 2.0), (0.5, 9.0)),
    "yv": ((0.5, 2.0), (0.5, 9.0)),
    "kn": ([0, 1, 2], (0.5, 5.0)),
    "yn": ([0, 1, 2], (0.5, 5.0)),
    "expn": ([1, 2, 3], (0.5, 5.0)),
    "ellipk": ((-1.0, 0.9),),
    "ellipe": ((-1.0, 0.9),),
    "ellipkinc": ((0.2, 1.2), (0.1, 0.9)),
    "ellipeinc": ((0.2, 1.2), (0.1, 0.9)),
    "_lambertw": ((0.2, 5.0), [0], [1e-12]),
    "hyp2f1": ((0.5, 1.0), (0.5, 1.0), (2.0, 3.0), (-0.5, 0.5)),
    "eval_hermite": ([0, 1, 4], (-1.5, 1.5)),
    "eval_hermitenorm": ([0, 1, 4], (-1.5, 1.5)),
    "eval_chebyt": ([0.0, 1.0, 4.0], (-0.9, 0.9)),
    "wofz": ((-2.0, 2.0),),
    "hankel1": ((0.5, 2.0), (0.5, 9.0)),
    "hankel2": ((0.5, 2.0), (0.5, 9.0)),
}
COMPLEX = {"wofz"}


def operands(name, count):
    rng = np.random.default_rng(3)
    found = []
    for k in range(count):
        given = RANGES.get(name, ())
        limits = given[k] if k < len(given) else (k + 0.3, k + 0.9)
        if isinstance(limits, list):
            values = np.resize(np.array(limits), COUNT)
        else:
            values = rng.uniform(*limits, COUNT)
            if name in COMPLEX:
                values = values + 1j * rng.uniform(0.2, 1.0, COUNT)
        found.append(values)
    return found


def function_of(name):
    return getattr(special._ufuncs, name)


def difference(f, x, direction, step=1e-3):
    ends = {k: f(x + k * step * direction) for k in (-2, -1, 1, 2)}
    return (ends[-2] - 8 * ends[-1] + 8 * ends[1] - ends[2]) / (12 * step)


PAIRS = [
    (name, k)
    for name, slopes in SLOPES.items()
    for k, slope in enumerate(slopes)
    if slope is not None and not isinstance(slope, str)
]


@pytest.mark.parametrize(("name", "place"), PAIRS, ids=[f"{name}-{place}" for name, place in PAIRS])
def test_slope(name, place):
    function = function_of(name)
    args = operands(name, function.nin)
    weights = np.linspace(1.0, 2.0, COUNT)

    def total(x):
        value = function(*args[:place], x, *args[place + 1 :])
        return (np.real(value) * weights).sum() + np.imag(value).sum()

    x = args[place]
    direction = np.cos(np.arange(COUNT)) * (1 + 0.5j if name in COMPLEX else 1.0)
    wanted = difference(total, x, direction)
    gradient = dyncomp.grad(total)(x)
    found = (np.conj(gradient) * direction).real.sum()
    assert found == pytest.approx(wanted, rel=1e-7, abs=1e-8)
    _, tangent = dyncomp.jvp(total, (x,), (direction,))
    assert tangent == pytest.approx(wanted, rel=1e-7, abs=1e-8)


def test_orders_and_parameters_are_refused_where_they_are_asked_for():
    x = np.linspace(0.5, 2.0, 5)
    with pytest.raises(NotDifferentiableError, match=r"gammainc at .*its order or parameter"):
        dyncomp.grad(lambda a: special.gammainc(a, x).sum())(x)
    with pytest.raises(NotDifferentiableError, match=r"gammainc at .*its order or parameter"):
        dyncomp.jvp(lambda a: special.gammainc(a, x).sum(), (x,), (x,))
    # by the other operand of the same call
    found = dyncomp.grad(lambda y: special.gammainc(x, y).sum())(x)
    np.testing.assert_allclose(found, np.exp((x - 1) * np.log(x) - x - special.gammaln(x)))


def test_slopes_where_a_formula_has_a_hole():
    """0/0 in a formula is no NaN in a gradient."""
    zeros = np.zeros(2)
    for name, at, wanted in [
        ("j1", 0.0, 0.5),
        ("i1e", 0.0, 0.5),
        ("ellipk", 0.0, np.pi / 8),
        ("ellipe", 0.0, -np.pi / 8),
        ("exprel", 0.0, 0.5),
        ("spence", 1.0, -1.0),
    ]:
        function = getattr(special, name)
        found = dyncomp.grad(lambda x, function=function: function(x).sum())(zeros + at)
        np.testing.assert_allclose(found, wanted, atol=1e-12, err_msg=name)
    counts, p = np.array([0.0, 2.0]), np.array([0.0, 0.5])
    np.testing.assert_array_equal(dyncomp.grad(lambda p: special.xlogy(counts, p).sum())(p), [0.0, 4.0])
    found = dyncomp.grad(lambda q: special.kl_div(counts, q).sum())(np.array([0.3, 0.5]))
    np.testing.assert_array_equal(found, [1.0, 1.0 - 4.0])
    found = dyncomp.grad(lambda power: special.boxcox(2.0, power).sum())(zeros)
    np.testing.assert_allclose(found, np.log(2.0) ** 2 / 2)


def test_second_derivatives_of_the_gamma_function():
    x = np.array([0.7, 2.5, -1.3])
    found = dyncomp.hessian(lambda x: special.gammaln(x).sum())(x)
    np.testing.assert_allclose(np.diag(found), special.polygamma(1, x), rtol=1e-12)


def test_functions_with_rows_are_ops():
    """SciPy's errors are ignored by default, but for lack of memory."""
    assert special.geterr()["singular"] == "ignore"
    special_report = dyncomp.explain(lambda x: special.erf(x) + special.expit(x))(np.linspace(0.0, 1.0, 64))
    assert "ufunc_call" not in str(special_report)
