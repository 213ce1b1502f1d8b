"""Operators on frozensets and sets from outside: the result is of the type of the left operand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dyncomp

SETS = [frozenset("abc"), {"b", "c", "d"}, frozenset(), set(), frozenset("cde")]


def operators(x, a, b):
    return x + 1, a & b, a | b, a - b, a ^ b


def methods(x, a, b):
    return x + 1, a.union(b), a.intersection(b), a.difference(b), a.symmetric_difference(b), a.copy()


def as_keys(x, a, b):
    return x + 1, {frozenset(a) - b: 1, frozenset(b) & a: 2}


@pytest.mark.parametrize("program", [operators, methods, as_keys], ids=lambda p: p.__name__)
@pytest.mark.parametrize("options", [{}, {"capture_plain": True}], ids=["arrays", "plain"])
def test_types(program, options):
    x = np.ones(2)
    for a, b in itertools.product(SETS, SETS):
        compiled = dyncomp.compile(program, backend="eager", options=options)
        for _ in range(2):
            got, wanted = compiled(x, a, b)[1:], program(x, a, b)[1:]
            assert [type(v) for v in got] == [type(v) for v in wanted]
            assert list(got) == list(wanted)
