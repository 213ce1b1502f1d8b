"""Members of classes written in C, slots by any name, integers of derived classes as indices."""

from __future__ import annotations

import enum
import operator
import time

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check


def read_only_member(x):
    t = time.gmtime(0)
    try:
        t.tm_zone = "elsewhere"
    except AttributeError as error:
        return x + 1, str(error), t.tm_year
    return x


def read_only_deleted(x):
    t = time.gmtime(0)
    try:
        del t.tm_zone
    except (AttributeError, TypeError) as error:
        return x + 1, type(error), t.tm_zone
    return x


class _Private:
    __slots__ = ("__hidden", "seen")

    def __init__(self, value):
        self.__hidden = value

    def hidden(self):
        return self.__hidden

    def forget(self):
        del self.__hidden


class Single:
    __slots__ = "only"


def private_slots(x):
    a = _Private(3)
    a.seen = a.hidden() + 1
    single = Single()
    single.only = x + a.seen
    a.forget()
    return single.only, a.seen, hasattr(a, "_Private__hidden")


class Odd(int):
    def __index__(self):
        return int(str(self)) + 1


class Level(enum.IntEnum):
    LOW = 1

    def __index__(self):
        return 7


def odd_indices(x):
    odd = Odd(2)
    index = operator.index(odd)
    level = operator.index(Level.LOW)
    return x[index] + index, type(index), odd.__index__(), level, [10, 11, 12][Level.LOW]


@pytest.mark.parametrize("program", [read_only_member, read_only_deleted, private_slots, odd_indices])
def test_program(program):
    check(program, lambda: (np.arange(4.0),), options={"capture_plain": True})


def kind_of(obj, x):
    return x + 1, type(obj).__name__


def test_cells_are_known_by_their_type():
    compiled = dyncomp.compile(kind_of, backend="eager")
    inner = (lambda y: lambda: y)(1)
    for obj in (inner.__closure__[0], (1,), inner.__closure__[0], object()):
        assert compiled(obj, np.zeros(1))[1] == type(obj).__name__
