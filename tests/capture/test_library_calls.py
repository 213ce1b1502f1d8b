"""NumPy functions written in Python that cannot be followed whole are called whole: one break each."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

X = np.random.default_rng(3).random((6, 3))
Y = np.arange(6.0)


def solved(x, y):
    z = x * 2
    return np.linalg.lstsq(z, y, rcond=None)[0] + 1


def counted(x, y):
    counts, edges = np.histogram(y * 3, bins=4)
    return counts * 2.0, edges + x[0, 0]


def applied(x, y):
    return np.apply_along_axis(lambda row: row - row.sum(), 1, x * 3) + 1


def fitted(x, y):
    return np.polyfit(y, y**2, 2) * 2


@pytest.mark.parametrize(
    ("program", "count"),
    [(solved, 0), (counted, 0), (applied, 0), (fitted, 0)],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_at_most_one_break(program, count):
    dyncomp.reset()
    compiled = dyncomp.compile(program, backend="eager")
    for _ in range(3):
        got, wanted = compiled(X, Y), program(X, Y)
        for a, b in zip(
            got if type(got) is tuple else (got,), wanted if type(wanted) is tuple else (wanted,)
        ):
            np.testing.assert_allclose(a, b, atol=1e-12)
    breaks = dyncomp.stats()["breaks"].values()
    assert sum(breaks) == count
