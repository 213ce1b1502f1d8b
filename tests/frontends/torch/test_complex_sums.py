"""Sums and differences of complex numbers, which torch makes with ``alpha`` times the second."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402  (torch may be missing)

VALUES = (0.0, -0.0, 1.0, -2.0, float("inf"), float("-inf"), float("nan"))


def sums(z, w, r):
    own = z.clone()
    own += w
    return (
        *(z + w, z - w, z + r, r + z, z - r, r - z, own),
        *(z + 1, 1 + z, z - 1, 1 - z, r + 1j, (2 - 1j) - z),
        *(torch.add(z, w, alpha=2), torch.sub(z, w, alpha=2), torch.sub(z, w, alpha=1.0)),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_sums(dtype):
    parts = [torch.tensor(column, dtype=dtype) for column in zip(*itertools.product(VALUES, repeat=4))]
    args = torch.complex(*parts[:2]), torch.complex(*parts[2:]), parts[2]
    for found, wanted in zip(dyncomp.compile(sums, fullgraph=True)(*args), sums(*args), strict=True):
        mine, theirs = (torch.view_as_real(t).numpy() for t in (found, wanted))
        np.testing.assert_array_equal(mine, theirs)
        kept = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(mine[kept]), np.signbit(theirs[kept]))
