"""Complex numbers in loops as generated code."""

import cmath
import math

import numpy as np
import pytest

from tests.scalar_loops.runs import Run, outcome

VALUES = [
    1.5 - 2j, -0.25 + 0.75j, 3j, -2.0 + 0j, complex(-0.0, 1.0), complex(2.0, -0.0), complex(0.0, -0.0),
    1e200 + 1e-200j, 1e-310 + 3e-320j, 7.25 - 1e16j, complex(math.inf, 1.0), 0j,
]  # fmt: skip
"""Among them such that make results overflow, and numbers by which none divides."""


def python_pairs(it, xs, ys, out, n):
    for i in it:
        z, w = xs[i % n], ys[i // n]
        out.append(z + w)
        out.append(z - w)
        out.append(z * w)
        out.append(-z)
        out.append(z.conjugate())
        if w != 0:
            out.append(z / w)
    return out, z, w


def python_mixed(it, xs, out, n):
    for i in it:
        z = xs[i % n]
        out.append(z * 2.5 + 1)
        out.append(3 - z * 2)
        out.append(True + z)
        out.append(z**2 + z**3 - z**0)
        out.append(complex(z.real, i) + complex(i) + complex(z))
        if z == 3j or z != z or z == 2 or z == 1.5:
            out.append(1j)
        if z:
            out.append(1.0 / z)
            out.append(z ** (i // n))
    return out, z


def python_functions(it, xs, n, s):
    for i in it:
        z = xs[i % n]
        s += abs(z) + cmath.phase(z)
        w = cmath.sqrt(z) + cmath.exp(z * 1j)
        s += w.real - w.imag
    return s, w


def array_pairs(it, a, b, out, n):
    for i in it:
        z, w = a[i % n], b[i // n]
        out[i, 0] = z + w
        out[i, 1] = z - w
        out[i, 2] = z * w
        out[i, 3] = -z + 1.5
        out[i, 4] = z.conjugate() * 2
        out[i, 5] = z * 1j
        out[i, 6] = z.real * w
        out[i, 7] = i
    return z, w, z.real


def array_others(it, a, b, out, n, s):
    for i in it:
        z, w = a[i % n], b[i // n]
        out[i, 0] = z / w
        out[i, 1] = 1j / w
        out[i, 2] = z**2
        s += abs(z)
        out[i, 3] = np.complex128(s) + np.float64(2) * 1j
        out[i, 4] += 2
        if z == w or z != 1:
            out[i, 5] -= 1
    return z, w, s


def steps(count):
    return range(count)


@pytest.mark.parametrize("values", [VALUES, VALUES[:6]], ids=["all", "plain"])
@pytest.mark.parametrize("function", [python_pairs, python_mixed, python_functions])
def test_python_complex(function, values):
    values = [*values, complex(1.0, math.nan)] if len(values) > 6 else values
    n = len(values)
    given = {
        python_pairs: (steps(n * n), values, values[::-1], [], n),
        python_mixed: (steps(4 * n), values, [], n),
        python_functions: (steps(n), values, n, 0.0),
    }[function]
    run = Run(function)
    assert outcome(run, given) == outcome(function, given)
    assert run.is_native
    if len(values) == 6:
        assert not run.record.bailed


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("function", [array_pairs, array_others])
@pytest.mark.filterwarnings("ignore")
def test_numpy_complex(function, is_plain):
    values = np.array(VALUES[:6] if is_plain else VALUES)
    n = len(values)
    out = np.zeros((n * n, 8), complex)
    given = (steps(n * n), values, values[::-1].copy(), out, n, *([0.0] if function is array_others else []))
    run = Run(function)
    assert outcome(run, given) == outcome(function, given)
    assert run.is_native
    if is_plain:
        assert not run.record.bailed


def test_random_numbers():
    """Bits of products and quotients of many magnitudes."""
    rng = np.random.default_rng(3)
    a, b = (
        rng.normal(size=400) * 10.0 ** rng.integers(-60, 60, 400)
        + 1j * rng.normal(size=400) * 10.0 ** rng.integers(-60, 60, 400)
        for _ in range(2)
    )
    out = np.zeros((400, 8), complex)
    for function in (array_pairs, array_others):
        given = (steps(400), a, b, out, 400, *([0.0] if function is array_others else []))
        run = Run(function)
        assert outcome(run, given) == outcome(function, given)
    for function in (python_pairs, python_mixed):
        lists = [a.tolist(), b.tolist()] if function is python_pairs else [a.tolist()]
        given = (steps(400), *lists, [], 400)
        assert outcome(Run(function), given) == outcome(function, given)


def put_in_floats(it, a, z):
    for i in it:
        a[i] = z
    return a


def ordered(it, a, n):
    for i in it:
        if a[i] < a[i + 1]:
            n += 1
    return n


@pytest.mark.parametrize("given", [(put_in_floats, np.zeros(3), 1j), (ordered, [1j, 2j, 3j], 0)])
def test_errors_are_pythons(given):
    function, *rest = given
    assert outcome(Run(function), (range(2), *rest)) == outcome(function, (range(2), *rest))


def rotations(it, a, c, s):
    for i in it:
        x, y = a[i, 0], a[i, 1]
        a[i, 0] = x * c - y * s
        a[i, 1] = y * c + x * s
    return a


def test_no_product_is_joined_to_a_sum():
    """As vectors of sums and differences in turn are in gcc 12, whatever it is told of contraction."""
    given = (range(64), np.random.default_rng(5).normal(size=(64, 2)), math.cos(0.3), math.sin(0.3))
    assert outcome(Run(rotations), given) == outcome(rotations, given)


def compared(it, z, a, b):
    for i in it:
        found = z == a[i], a[i] != z, z != b[i], b[i] == z, z == 1.5
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_types_of_comparisons(dtype):
    args = range(3), 1.5 + 0j, np.full(3, 1.5, dtype), np.ones(3)
    run = Run(compared)
    assert outcome(run, args) == outcome(compared, args)
    assert run.is_native
