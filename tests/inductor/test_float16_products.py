"""NumPy's products of float16: summed in float32 and rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp


def matmul(a, b):
    return a @ b


def dot(a, b):
    return np.dot(a[0], b[:, 0])


def tensordot(a, b):
    return np.tensordot(a, b, 1) + np.float16(1)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("function", [matmul, dot, tensordot])
@pytest.mark.parametrize("sizes", [(5, 6, 3), (40, 33, 100), (1, 64, 300), (64, 1, 300), (16, 170, 700)])
def test_is_rounded_once(function, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b = random(m, k), random(k, n, seed=1)
    found, expected = dyncomp.compile(function)(a, b), function(a, b)
    assert found.dtype == expected.dtype and np.shape(found) == np.shape(expected)
    # sums of the same products, in blocks: the last bit of a sum in float32 seldom matters
    assert np.mean(found == expected) > 0.98
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_sums_beyond_the_range() -> None:
    a = np.full((20, 20), 300, np.float16)
    b = np.full((20, 20), 300, np.float16)
    b[:, 1] = np.nan
    b[::2, 2] *= -1
    with np.errstate(over="ignore", invalid="ignore"):
        expected = a @ b
    np.testing.assert_array_equal(dyncomp.compile(matmul)(a, b), expected)
    assert np.isinf(expected[0, 0])
    assert expected[0, 2] == 0
