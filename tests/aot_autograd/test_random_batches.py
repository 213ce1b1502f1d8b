"""Random programs under vmap; many more by ``python -m tests.aot_autograd.random_batches``."""

from __future__ import annotations

import pytest

from .random_batches import difference


@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed):
    assert difference(seed) == ""
