"""Gradients of random programs; many more by ``python -m tests.aot_autograd.random_gradients`` and
``wide_gradients``."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

from .random_gradients import difference
from .wide_gradients import differs


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    assert difference(seed) == ""


@pytest.mark.parametrize("seed", range(9000, 9012))
def test_programs_of_the_wide_grammar(seed):
    pytest.importorskip("scipy")
    found = differs(seed)
    assert not found or found.startswith("refused: ")


def test_a_row_takes_a_column_of_its_array_on_the_tape():
    def f(x):
        dyncomp.graph_break()
        made = x * 1.0
        made[1] = made[:, 2]
        return (made**2).sum()

    x = np.arange(1.0, 17.0).reshape(4, 4)
    wanted = 2 * x
    wanted[1] = 0.0
    wanted[:, 2] += 2 * x[:, 2]
    wanted[1, 2] = 2 * x[1, 2]
    np.testing.assert_allclose(dyncomp.grad(f)(x), wanted)
