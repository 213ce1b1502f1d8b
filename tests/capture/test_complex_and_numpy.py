"""Python's complex numbers with NumPy's numbers: which of the two types comes out."""

import numpy as np
import pytest

import dyncomp


def with_scalars(z, p):
    x = p[1, -1]
    return z * x, x * z, z + x, x - z, z / (x + 1), z == x, [z * 2]


def in_place(z, p):
    z *= p[0, 1] * 1.5
    z += p[1, 2]
    return z


def with_arrays(z, p):
    return z * p, p[0] + z


@pytest.mark.parametrize("function", [with_scalars, in_place, with_arrays])
@pytest.mark.parametrize("dtype", ["float64", "int64", "float32", "complex128"])
def test_types(function, dtype):
    compiled = dyncomp.compile(function)
    p = np.arange(6).reshape(2, 3).astype(dtype)
    for z in (1j, 2.0 - 1j):
        expected, found = function(z, p), compiled(z, p)
        pairs = zip(expected, found) if isinstance(expected, tuple) else [(expected, found)]
        for a, b in pairs:
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)
