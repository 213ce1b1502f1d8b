"""Memory orders of joined arrays: NumPy's, whatever the parts' orders, dtypes and sizes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import dyncomp

DTYPES = ("int8", "float32", "int64", None)


def with_layout(rng: random.Random, shape: list[int]) -> np.ndarray:
    """A part of an array, which has its axes in memory in some order, or one that is broadcast."""
    order = rng.sample(range(len(shape)), len(shape))
    base = np.arange(np.prod([n + 1 for n in shape])).reshape([shape[axis] + 1 for axis in order])
    part = base.transpose(np.argsort(order))[tuple(slice(0, n) for n in shape)]
    if rng.random() < 0.2:
        part = part[tuple(slice(None, None, rng.choice((1, -1))) for _ in shape)]
    axis = rng.randrange(len(shape))
    if rng.random() < 0.2 and shape[axis]:
        part = np.broadcast_to(part.take([0], axis), shape)
    if rng.random() < 0.3:
        part = part.astype(rng.choice(DTYPES))
    return part


def case(seed: int) -> tuple[Any, list[np.ndarray]]:
    """A function that joins its arguments, some of them converted or cut, and these."""
    rng = random.Random(seed)
    shape = [rng.randrange(1, 4) for _ in range(rng.choice((2, 3)))]
    axis = rng.randrange(len(shape))
    parts = []
    for _ in range(rng.choice((2, 3))):
        shape[axis] = rng.choice((0, 0, 1, 2, 3))
        parts.append(with_layout(rng, shape))
    dtypes = [rng.choice(DTYPES) for _ in parts]
    cuts = [rng.random() < 0.3 for _ in parts]
    none = (slice(None),) * axis + (slice(2, 1),)

    def joined(*arrays):
        made = [x if dtype is None else x.astype(dtype) for x, dtype in zip(arrays, dtypes)]
        return np.concatenate([x[none] if cut else x for x, cut in zip(made, cuts)], axis=axis)

    return joined, parts


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_orders_of_converted_and_empty_parts(seed: int) -> None:
    for number in range(seed, seed + 10):
        function, parts = case(number)
        found, expected = dyncomp.compile(function, fullgraph=True)(*parts), function(*parts)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.strides == expected.strides, number
        np.testing.assert_array_equal(found, expected)


def with_empty_part(a):
    none = a.astype("int8")[3:1]
    return np.concatenate([a, none]), np.concatenate([a * 2, -a, none])


def test_an_empty_part_of_another_dtype_has_its_say() -> None:
    a = np.asfortranarray(np.arange(42).reshape(7, 6))
    for found, expected in zip(
        dyncomp.compile(with_empty_part, fullgraph=True)(a), with_empty_part(a), strict=True
    ):
        assert found.strides == expected.strides
        np.testing.assert_array_equal(found, expected)
