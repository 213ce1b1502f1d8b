"""A matrix times its transpose: half is computed, the other half copied; the bits are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp import compile as compile_function
from dyncomp.runtime import num_threads, set_num_threads
from tests.runtime.test_gemm import SETS, matrix, multiply


def product(a, b, name=None):
    out = np.full((a.shape[0], b.shape[1] + 3), np.nan, a.dtype)[:, : b.shape[1]]
    multiply(name, a, b, out)
    return out


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns", "padded", "strided", "backwards"])
@pytest.mark.parametrize("sizes", [(64, 1), (77, 300), (150, 40), (301, 700)])
def test_same_bits_as_of_two_matrices(name, dtype, layout, sizes) -> None:
    a = matrix(*sizes, dtype, layout, np.random.default_rng(2))
    other = matrix(*sizes, dtype, layout, np.random.default_rng(2))
    found = product(a, a.T, name)
    assert np.array_equal(found, product(a, other.T, name))
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(threads) -> None:
    a = np.random.default_rng(3).standard_normal((700, 200)).astype(np.float32)
    before = num_threads()
    expected = product(a, a.T.copy())
    try:
        set_num_threads(threads)
        assert np.array_equal(product(a, a.T), product(a, a.copy().T))
        assert np.allclose(product(a, a.T), expected, rtol=1e-5, atol=1e-4)
    finally:
        set_num_threads(before)


def test_values_that_are_not_numbers() -> None:
    a = np.random.default_rng(4).standard_normal((90, 80))
    a[7, 3], a[80, 1] = np.nan, np.inf
    assert np.array_equal(product(a, a.T), product(a, a.copy().T), equal_nan=True)


def grams(a):
    return a @ a.T, a.T @ a, a @ a.T + 1


def batched(a):
    return a @ np.swapaxes(a, -1, -2), a @ a[::-1].swapaxes(-1, -2)


@pytest.mark.parametrize(("program", "shape"), [(grams, (130, 90)), (batched, (3, 100, 70))])
def test_programs(program, shape) -> None:
    a = np.random.default_rng(5).standard_normal(shape)
    for found, expected in zip(compile_function(program)(a), program(a), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)
