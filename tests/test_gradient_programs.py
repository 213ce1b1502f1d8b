"""Gradients of objective functions as they are written in practice, against differences of fourth order."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import dyncomp

from .gradient_programs import CASES as NUMPY

CASES = list(NUMPY)
if importlib.util.find_spec("scipy") is not None:
    from .gradient_programs_scipy import CASES as SCIPY

    CASES += SCIPY


def differences(case, number):
    """The gradient by one argument, an element at a time."""
    x = case.args[number]
    found = np.zeros(x.size)
    for place in range(x.size):
        step = 3e-4 * max(1.0, abs(x.flat[place]))

        def at(k, place=place, step=step):
            moved = x.copy()
            moved.flat[place] += k * step
            return case.function(*case.args[:number], moved, *case.args[number + 1 :])

        found[place] = (at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * step)
    return found.reshape(x.shape)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function.__name__)
def test_gradient(case):
    by = dyncomp.value_and_grad(case.function, argnums=tuple(range(case.by)))
    value, gradients = by(*case.args)
    assert value == pytest.approx(case.function(*case.args), rel=1e-10)
    for number, gradient in enumerate(gradients):
        wanted = differences(case, number)
        assert gradient.shape == wanted.shape
        np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-6 * max(1e-3, np.abs(wanted).max()))


def test_there_are_enough():
    assert len({case.function.__name__ for case in CASES}) == len(CASES)
    assert len(NUMPY) >= 60
