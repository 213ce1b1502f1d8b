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


def pythons_own(z, p):
    """CPython takes a float64 for a float: the result is its own complex number."""
    first = z * float(p[1, 0]) - 2
    return first, first / p[0, 2], -first, abs(first), first == z, first * p, first**2, (z - p[1, 1]).imag


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


def test_a_graph_has_complex_numbers_of_python():
    def turned(x):
        z = 1j * x[0] + 2.0
        w = (z - 1) * (0.5 - 1j) * z
        return z, w, np.exp(z) + z, z - np.exp(z), x * w, np.array([z, w * 1j, z / 3, w / (1 - 2j)])

    compiled = dyncomp.compile(turned, fullgraph=True)
    x = np.array([0.3, -1.5])
    for _ in range(2):
        for a, b in zip(turned(x), compiled(x), strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-15)


@pytest.mark.parametrize("function", [with_scalars, in_place, with_arrays, pythons_own])
def test_no_graph_breaks(function):
    compiled = dyncomp.compile(function, fullgraph=True)
    for p in (np.arange(6.0).reshape(2, 3), -np.arange(6.0).reshape(2, 3), np.full((2, 3), np.inf)):
        with np.errstate(all="ignore"):
            expected, found = function(1.5 - 1j, p), compiled(1.5 - 1j, p)
        pairs = zip(expected, found) if isinstance(expected, tuple) else [(expected, found)]
        for a, b in pairs:
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)


def test_division_by_zero_is_pythons_error():
    compiled = dyncomp.compile(lambda p: (1j * p[0]) / p[1])
    assert compiled(np.array([2.0, 4.0])) == 0.5j
    with pytest.raises(ZeroDivisionError):
        compiled(np.array([2.0, 0.0]))
