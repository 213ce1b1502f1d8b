"""Functions of ``math`` and operators that may raise, on floats that the graph computes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call


def roots(x):
    return math.sqrt(x.sum()) + math.log(x.max()), x * math.hypot(x[0], x[1])


def powers(x):
    s = float(x.sum())
    return s**0.5, s / 3, 2 / s, s // 2, s % 3, 3 * s, s - 1, x / s, s**2 > 4


def questions(x):
    return math.isnan(x.sum()), math.isfinite(x[0]), math.isinf(x[1]), x + 1


def caught(x):
    try:
        y = math.sqrt(x.sum())
    except ValueError as error:
        y = str(error)
    return y, x * 2


def only_checked(x):
    math.log(x.sum())
    return x * 2


def changes_first(x):
    x[0] += 1
    y = x[1] ** -0.5 + math.sqrt(x[1])
    x[2] += y
    return y


def negative_power(x):
    return float(x[0]) ** 0.5, x + 1


def divides(x):
    return 1 / float(x[0]), x + 1


PROGRAMS = [roots, powers, questions, caught, only_checked, changes_first, negative_power, divides]


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return type(a) is type(b) and (a == b or abs(a - b) <= 1e-15 * abs(a) or (a != a and b != b))
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return np.allclose(a, b, rtol=1e-15, atol=0, equal_nan=True)
    return type(a) is type(b) and (a == b)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_they_are_computed_in_the_graph_and_raise_as_they_do(program, backend):
    compiled = dyncomp.compile(program, backend=backend, fullgraph=True)
    fine = np.array([2.0, 3.0, 4.5])
    for x in (fine, fine * 2, -fine, fine * 0, np.array([np.inf, 1.0, 2.0]), np.append(fine, 1.0)):
        plain, found = call(program, (x.copy(),)), call(compiled, (x.copy(),))
        assert found.error == plain.error
        assert same(plain.world, found.world)


def test_what_cannot_be_a_float_is_left_to_python():
    def program(x, n):
        return math.sqrt(n), math.floor(x.sum()), math.sqrt(x.astype(int).sum()), x + 1

    compiled = dyncomp.compile(program, backend="eager")
    for n in (4, 9.0, True, 16):
        x = np.arange(4.0) + n
        assert same(list(program(x, n)), list(compiled(x, n)))
