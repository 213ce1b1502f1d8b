"""Derivatives of NumPy's routines that pick elements of an array, and of others that graphs call."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 4))
Z = X + 1j * RNG.standard_normal((3, 4))
V = RNG.standard_normal(5)
MASK = X > 0
COUNTS = np.array([2, 0, 1, 3])
PLACES = np.array([2, 0, 2])
BINS = np.array([0, 3, 1, 1, 0])
FUNCTIONS = {
    "delete": (lambda x, i: np.delete(x, i), X, PLACES),
    "delete rows": (lambda x, i: np.delete(x, i, axis=0), X, PLACES),
    "compress": (lambda x, mask: np.compress(mask, x, axis=1), X, MASK[0]),
    "extract": (lambda x, mask: np.extract(mask, x), X, MASK),
    "repeat": (lambda x, counts: np.repeat(x, counts, axis=1), X, COUNTS),
    "repeat a vector": (lambda x, counts: np.repeat(x, counts), X[0], COUNTS),
    "bincount": (lambda x, bins: np.bincount(bins, weights=x), V, BINS),
    "bincount with more bins": (lambda x, bins: np.bincount(bins, x, minlength=7), V, BINS),
    "running products": (lambda x, _: np.cumprod(x, axis=1), Z, MASK),
    "ldexp": (lambda x, counts: np.ldexp(x, counts), X, COUNTS),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    f, x, other = FUNCTIONS[name]

    def total(x, other):
        found = f(x, other)
        return np.sin(found.real).sum() + (np.abs(found) ** 2).sum()

    direction = RNG.standard_normal(x.shape) * (1.0 + 0.5j if np.iscomplexobj(x) else 1.0)
    step = 1e-6
    wanted = (total(x + step * direction, other) - total(x - step * direction, other)) / (2 * step)
    gradient = dyncomp.grad(total)(x, other)
    np.testing.assert_allclose(np.vdot(gradient, direction).real, wanted, rtol=1e-7)
    pushed = dyncomp.jvp(lambda x: total(x, other), (x,), (direction,))[1]
    np.testing.assert_allclose(pushed, wanted, rtol=1e-7)


def test_what_has_no_derivative_says_so():
    with pytest.raises(dyncomp.NotDifferentiableError, match="logaddexp.accumulate has no derivative"):
        dyncomp.grad(lambda x: np.logaddexp.accumulate(x).sum())(V)
