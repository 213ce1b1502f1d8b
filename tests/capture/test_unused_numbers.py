"""Numbers that nobody uses, of which making may raise: the program sees the exception all the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences


def divided(x, n):
    1 // (n - 3)
    return x + 1


def remainder(x, n):
    7 % (n - 3)
    return x + 1


def true_division(x, n):
    try:
        1.5 / (n - 3)
    except ZeroDivisionError:
        return x - 1
    return x + n


def power(x, n):
    (n - 3) ** -1
    return x + 1


def shifted(x, n):
    1 << (3 - n)
    return x + 1


def called(x, n):
    math.sqrt(3 - n)
    return x + 1


def whole(x, n):
    try:
        int(1 / (n - 3) if n != 3 else math.inf)
    except OverflowError:
        return x * 5
    return x + 1


def before_a_break(x, n):
    try:
        1 // (n - 3)
        x = x + 1
        dyncomp.graph_break()
    except ZeroDivisionError:
        x = x - 1
    return x * 2


def character(x, n):
    chr(n - 4)
    return x + 1


PROGRAMS = [divided, remainder, true_division, power, shifted, called, whole, before_a_break, character]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("order", [(5, 6, 7, 3, 2, 3.0), (3, 5, 3, 6, 3, 4), (2, 1, 0, 4, 3, 5)])
def test_exceptions_of_unused_numbers(program, order):
    compiled = dyncomp.compile(program, backend="eager")
    for n in order:
        for _ in range(2):
            expected = call(program, (np.ones(3), n))
            assert not differences(expected, call(compiled, (np.ones(3), n))), n
