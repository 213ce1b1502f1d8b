"""Gradients of random programs; many more by ``python -m tests.aot_autograd.random_gradients`` and
``wide_gradients``."""

from __future__ import annotations

import pytest

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
