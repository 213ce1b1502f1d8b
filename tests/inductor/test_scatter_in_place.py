"""Writes at positions go straight into the argument: all positions are looked at before the first write."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences


def put(x, i, v):
    x[i] = v


def put_two(x, y, i, j, v):
    x[i, j] = v
    y[i, j] = v * 2


def add(x, i, v):
    x[i] += v


def add_at(x, i, v):
    np.add.at(x, i, v)


def add_then_read(x, i, v):
    x[i] += v
    return x[i] * 2, x.sum()


def put_and_add(x, y, i, v):
    total = x[i] @ v
    x[i] = v
    np.add.at(y, i, total)
    return total


def put_elsewhere(x, y, i, j, v):
    x[i] = v
    y[j] = v


def put_what_is_read(x, i, j):
    x[i] = x[j]


def put_after_a_window(x, i, v):
    x[1:] = 3.0
    x[i] = v


def put_half(x, i, v):
    x[::2][i] = v


def put_columns(x, i, j, v):
    x[:, i] = v[:2, None]
    x[j] = 0.0


RANDOM = np.random.default_rng(0)


def line(size=40):
    return RANDOM.random(size)


def matrix():
    return RANDOM.random((2, 2)) + 3 * np.eye(2)


def at(size, count=6):
    return RANDOM.integers(-size, size, count)


def put_in_sequence(x, i, j, k, v):
    x[i] = v
    x[j] += v
    x[k + 1] = 0.0


def put_before_a_routine(x, m, i):
    x[i] = np.linalg.inv(m)[0, 0]
    x[1] = 2.0
    return np.linalg.det(m)


def put_and_read_before_a_routine(x, m, i):
    x[i] = 2.0
    return np.linalg.solve(m, x[:2])


def put_between(x, y, i, j, v):
    x[i] = v
    total = y[j]
    y[i] = x[j]
    return total


CASES = {
    put: lambda: (line(), at(40), line(6)),
    put_two: lambda: (line(35).reshape(5, 7), line(35).reshape(5, 7), at(5), at(7), line(6)),
    add: lambda: (line(), at(40), line(6)),
    add_at: lambda: (line(), at(40), line(6)),
    add_then_read: lambda: (line(), at(40), line(6)),
    put_and_add: lambda: (line(), line(), at(40), line(6)),
    put_elsewhere: lambda: (line(), line(), at(40), at(40), line(6)),
    put_what_is_read: lambda: (line(), at(40), at(40)),
    put_after_a_window: lambda: (line(), at(40), line(6)),
    put_half: lambda: (line(), at(20), line(6)),
    put_columns: lambda: (line(20).reshape(2, 10), at(10, 3), at(2, 2), line(6)),
    put_in_sequence: lambda: (line(), at(40), at(40), at(39), line(6)),
    put_before_a_routine: lambda: (line(), matrix(), at(40)),
    put_and_read_before_a_routine: lambda: (line(), matrix(), at(40)),
    put_between: lambda: (line(), line(), at(40), at(40), line(6)),
}
IN_PLACE = (
    put,
    put_two,
    add,
    add_at,
    put_elsewhere,
    put_after_a_window,
    put_in_sequence,
    put_before_a_routine,
    put_between,
)


def copies(arguments):
    return tuple(a.copy() for a in arguments)


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dynamic", (False, True))
def test_values_and_what_is_left_when_it_raises(function, dynamic):
    compiled = dyncomp.compile(function, dynamic=dynamic, options={"debug_verify": True})
    for _ in range(3):
        arguments = CASES[function]()
        expected = call(function, copies(arguments))
        assert not differences(expected, call(compiled, copies(arguments)), 1e-12)
        for number, argument in enumerate(arguments):
            if argument.dtype.kind == "i":
                bad = copies(arguments)
                bad[number][-1] = -5000
                expected = call(function, copies(bad))
                assert not differences(expected, call(compiled, copies(bad)), 1e-12), number


@pytest.mark.parametrize("function", IN_PLACE, ids=lambda f: f.__name__)
def test_nothing_is_copied(function):
    arguments = CASES[function]()
    report = dyncomp.explain(function)(*arguments)
    kernels = [k for e in report.entries if e.graph is not None for k in e.compiled.artifact.kernels]
    size = arguments[0].size
    whole = [k for k in kernels if math.prod(axis.size for axis in k.axes) >= size]
    assert not any(b.mode != "in" and b.size == size for k in whole for b in k.buffers)


@pytest.mark.parametrize("function", (put_before_a_routine, put_and_read_before_a_routine))
def test_a_singular_matrix_leaves_the_argument(function):
    compiled = dyncomp.compile(function)
    for singular in (False, True):
        x, m, i = CASES[function]()
        if singular:
            m[:] = 1.0
        mine, plain = x.copy(), x.copy()
        expected = call(function, (plain, m, i))
        assert not differences(expected, call(compiled, (mine, m, i)), 1e-12)
        assert np.array_equal(mine, plain)


@pytest.mark.parametrize("count", (0, 1))
def test_few_positions(count):
    for function in (put, add, add_at):
        arguments = (line(), np.arange(count), line(count))
        compiled = dyncomp.compile(function)
        expected = call(function, copies(arguments))
        assert not differences(expected, call(compiled, copies(arguments)), 0.0)
