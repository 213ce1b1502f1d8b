"""Comprehensions whose variable is called like one that functions share: from 3.12 on they have one place."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check


@dyncomp.disable
def unknown(n):
    return n


def breaks_in_it(x, n):
    for i in range(n):
        x = x + sum((lambda: i)() for _ in range(2))
    found = [unknown(i) + 1 for i in range(3)]
    return x + i, found, (lambda: i)()


def long_one(x, n):
    i = 5

    def get():
        return i

    found = [x * unknown(i) for i in range(n * 40)]
    return x + i, len(found), get(), [i * 2 for i in range(3)]


def raises_in_it(x, n):
    i = 7

    def get():
        return i

    try:
        found = [1 // unknown(i) for i in (1, 0)]
    except ZeroDivisionError:
        found = [i]
    return x + get(), found


def nested_ones(x, n):
    i = 1
    j = 2
    found = [[unknown(i + j) for j in range(i)] for i in range(3)]
    return x + (lambda: i + j)(), found, [unknown(j) for j in range(2)]


@pytest.mark.parametrize("program", [breaks_in_it, long_one, raises_in_it, nested_ones])
@pytest.mark.parametrize("plain", [False, True])
def test_program(program, plain):
    options = {"capture_plain": plain, "inline_depth": 0 if plain else 8}
    assert not check(program, lambda: (np.arange(3.0), 3), options=options).internal_errors
