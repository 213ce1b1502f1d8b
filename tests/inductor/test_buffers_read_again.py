"""A buffer that is updated in place and read again by a later pass over the same loop: the pass computes the
new value again from the old one, so the store comes after it."""

import numpy as np
import pytest

import dyncomp


def average(x, c):
    y = x + 1
    c *= 0.9
    c += y.sum(0) * 0.1
    return y / c


def centred(x, c):
    c -= c.mean()
    return c / c.std() + x


def both(x, c):
    c *= 0.5
    c += x.sum(0)
    x *= c
    return x.sum(0) / c, x - c


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("program", [average, centred, both])
@pytest.mark.parametrize("size", [4, 70])
def test_a_store_does_not_reach_what_is_computed_again(program, size):
    rng = np.random.default_rng(0)
    mine = [rng.random((size, size), np.float32), rng.random(size, np.float32)]
    theirs = [each.copy() for each in mine]
    found, expected = dyncomp.compile(program)(*mine), program(*theirs)
    for a, b in zip((*as_tuple(found), *mine), (*as_tuple(expected), *theirs)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)
