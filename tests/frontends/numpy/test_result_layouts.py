"""Results that are an argument itself, and the order of axes in memory of results of broadcast arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp


def powers(x: Any) -> Any:
    first, third = np.linalg.matrix_power(x, 1), np.linalg.matrix_power(x, 3)
    first += 1
    return first, third


def test_the_first_power_is_the_matrix() -> None:
    wanted, got = np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3)
    first, third = dyncomp.compile(powers, fullgraph=True)(got)
    assert first is got
    np.testing.assert_allclose(third, powers(wanted)[1])
    np.testing.assert_array_equal(got, wanted)


def ufuncs(x: Any) -> Any:
    return np.conjugate(x), np.positive(x), np.floor(x), np.fabs(x), np.sqrt(x), x**1.0, x / 2, -x


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8"])
def test_ufuncs_of_broadcast_arrays(dtype: str) -> None:
    compiled = dyncomp.compile(ufuncs, fullgraph=True)
    numbers = np.arange(6).astype(dtype)
    for x in (
        np.broadcast_to(numbers, (4, 6)),
        np.broadcast_to(numbers.reshape(2, 1, 3), (2, 4, 3)),
        np.broadcast_to(numbers.reshape(2, 3, 1).transpose(1, 0, 2), (3, 2, 4)),
    ):
        for wanted, got in zip(ufuncs(x), compiled(x), strict=True):
            assert (got.dtype, got.strides) == (wanted.dtype, wanted.strides)
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_arrays_of_the_common_shape_are_given_as_they_are() -> None:
    """Also where sizes became symbols: NumPy's ``broadcast_arrays`` broadcasts the others only."""
    compiled = dyncomp.compile(np.broadcast_arrays, backend="eager")
    for size in (3, 3, 5, 8):
        x, y, z = np.ones(size), np.zeros(size), np.ones(1)
        found = compiled(x, y, z)
        assert found[0] is x and found[1] is y
        assert found[2].shape == (size,) and np.shares_memory(found[2], z)


def halves_of_extremes(x, y):
    return np.fmin(x, np.float16(2)), np.fmax(x, y), np.fmin.outer(x, y), np.maximum(x, np.float16(2))


def union_with_a_number(x, y):
    return np.union1d(x, 2.5), np.union1d(x, y)


@pytest.mark.parametrize("function", [halves_of_extremes, union_with_a_number])
def test_types_and_layouts(function):
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3).astype(np.float16))
    y = np.ascontiguousarray(x[::-1])
    for found, expected in zip(dyncomp.compile(function)(x, y), function(x, y), strict=True):
        assert (found.dtype, found.strides) == (expected.dtype, expected.strides)
        np.testing.assert_array_equal(found, expected)
