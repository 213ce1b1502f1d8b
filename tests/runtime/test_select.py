"""``select(x, mask)`` is ``x[mask]``: every width, pattern and length, and what it leaves to NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.runtime._launch import select

DTYPES = ("?", "i1", "u2", "f2", "i4", "f4", "f8", "u8", "c8", "c16", "g", "G")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", (0.0, 0.001, 0.02, 0.5, 0.98, 1.0))
def test_same_as_subscript(dtype, share):
    random = np.random.default_rng(0)
    for shape in (0, 1, 7, 8, 63, 64, 65, 127, 128, 1000, 9001, (5, 13), (30, 70), (0, 3)):
        x = (random.random(shape) * 1000).astype(dtype)
        mask = random.random(shape) < share
        found, expected = select(x, mask), x[mask]
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()
        assert found.base is None
        assert found.flags.c_contiguous and found.flags.writeable


def test_large():
    x = np.arange(300_001.0)
    mask = np.random.default_rng(1).random(len(x)) < 0.7
    np.testing.assert_array_equal(select(x, mask), x[mask])


def test_what_is_left_to_numpy():
    x = np.arange(24.0).reshape(4, 6)
    rows = np.array([True, False, True, True])
    swapped = x.astype(">f8")
    dates = x.astype("i8").astype("M8[s]")
    objects = x.astype(object)
    pairs = [(x.T, x.T > 3), (x[:, ::2], x[:, ::2] > 4), (x, rows), (x, np.array([1, 2])), (x, x[::-1] > 5)]
    pairs += [
        (swapped, x > 2),
        (dates, x > 2),
        (objects, x > 2),
        (x, (slice(1), 2)),
        (x[0, 0], np.array(True)),
    ]
    for array, mask in pairs:
        found, expected = select(array, mask), array[mask]
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(IndexError, match="boolean index did not match"):
        select(np.arange(3), np.array([True, False]))
    with pytest.raises(TypeError, match="2 arguments"):
        select(x)


@pytest.mark.parametrize("backend", ("eager", "inductor"))
def test_in_programs(backend):
    def f(x, y):
        near = x < y
        a = x[near] * 2.0
        return a, y[~near], np.sort(x[near])[:3], x[near][::2] + 1

    compiled = dyncomp.compile(f, backend=backend)
    random = np.random.default_rng(2)
    for size in (0, 1, 2, 100, 1000):
        x, y = random.random(size), random.random(size)
        for found, expected in zip(compiled(x, y), f(x, y), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert found.base is None or found.base.base is None
