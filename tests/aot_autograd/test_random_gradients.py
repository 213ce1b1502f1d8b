"""Gradients of random programs; many more by ``python -m tests.aot_autograd.random_gradients``."""

from __future__ import annotations

import pytest

from .random_gradients import difference


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    assert difference(seed) == ""
