"""Doubles rounded to floats and back in pairs: gcc 12 leaves the rounding out of short vectors."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp


def pairs(a, b, t):
    return np.stack((a.astype("f4"), b.astype("f4")), -1).astype("f8")


def turned(a, b, t):
    return a.T.astype("f4") + t, a.T.astype("f4").astype("f8") * 3


def complexes(a, b, t):
    z = (a + 1j * b).T.astype("c8")
    return z + t, z.astype("c16") * 2


def halves(a, b, t):
    return a.T.astype("f2") + t, np.stack((a.astype("f2"), b.astype("f2")), -1).astype("f8")


def integers(a, b, t):
    return (a * 1e12).astype("i8").T.astype("i4") + t.astype("i8")


@pytest.mark.parametrize("f", [pairs, turned, complexes, halves, integers], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(6, 5), (3, 2), (2, 7)], ids=str)
def test_rounded_pairs(f, shape):
    draw = np.random.default_rng(0).standard_normal
    args = draw(shape), draw(shape), draw(shape[::-1])
    found, wanted = dyncomp.compile(f, fullgraph=True, dynamic=False)(*args), f(*args)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
