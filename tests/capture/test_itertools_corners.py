"""Iterators of itertools in states that are rarely met."""

from __future__ import annotations

import copy
import itertools
import operator

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check


def accumulated_none(x):
    it = itertools.accumulate([None, None, None], operator.is_)
    first = next(it)
    return x + 1, first, list(copy.copy(it)), it


def accumulated_twice(x):
    it = itertools.accumulate([1, 2, 3, 4])
    next(it)
    next(it)
    return x + 1, it


def nothing_chosen(x):
    empty = list(itertools.combinations_with_replacement([], 0))
    return x + 1, empty, list(itertools.combinations_with_replacement([], 2))


def fails_at(n):
    if n == 2:
        raise ValueError(n)
    return n // 3


def key_that_raises(x):
    groups = itertools.groupby(range(4), fails_at)
    seen = []
    try:
        for key, group in groups:
            seen.append(key)
            seen.extend(group)
    except ValueError as error:
        seen.append(str(error))
    return x + 1, seen


@pytest.mark.parametrize("program", [nothing_chosen, key_that_raises])
def test_corner(program):
    check(program, lambda: (np.arange(3.0),))


@pytest.mark.parametrize("program", [accumulated_none, accumulated_twice])
def test_half_consumed(program):
    compiled = dyncomp.compile(program, backend="eager")
    for _ in range(2):
        *plain, left = program(np.arange(3.0))
        *found, rest = compiled(np.arange(3.0))
        assert repr(found) == repr(plain)
        assert list(rest) == list(left)
