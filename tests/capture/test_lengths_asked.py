"""How often iterables of the program are asked for their length and their iterator."""

from __future__ import annotations

import collections
import functools
import itertools

import pytest

import dyncomp

LOG = []


class Own:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        LOG.append("iter")
        self.i = 0
        return self

    def __next__(self):
        self.i += 1
        if self.i > self.n:
            raise StopIteration
        return self.i

    def __len__(self):
        LOG.append("len")
        return self.n


class Hinting:
    def __iter__(self):
        LOG.append("iter")
        return iter((1, 2))

    def __length_hint__(self):
        LOG.append("hint")
        return 2


class Sequence:
    def __getitem__(self, i):
        LOG.append(("get", i))
        if i > 2:
            raise IndexError
        return i

    def __len__(self):
        LOG.append("slen")
        return 3


def program_1():
    return list(Own(2))


def program_2():
    return tuple(Own(2))


def program_3():
    a = []
    a.extend(Own(2))
    a += Own(2)
    return a


def program_4():
    return [*Own(2)], (*Own(2),), {*Own(2)}


def program_5():
    return sorted(Own(2)), sum(Own(2)), max(Own(2)), set(Own(2))


def program_6():
    return list(Hinting()), tuple(Hinting()), [*Hinting()]


def program_7():
    a, *b = Own(3)
    return a, b


def program_8():
    a, b = Own(2)
    return a, b


def program_9():
    return (
        list(Sequence()),
        tuple(Sequence()),
        1 in Sequence(),
        sum(Sequence()),
        [*Sequence()],
        list(reversed(Sequence())),
    )


def program_10():
    return (
        list(map(str, Own(2))),
        list(zip(Own(2), Own(2))),
        list(enumerate(Own(2))),
        list(filter(None, Own(2))),
    )


def program_11():
    a = [0]
    a[1:] = Own(2)
    return a, ",".join(map(str, Own(2))), dict.fromkeys(Own(2)), bytes(Own(2))


def program_12():
    return any(Own(2)), all(Own(2)), min(Own(2)), bool(Own(0)), list(iter(Own(2)))


def program_13():
    a, *b, c = Hinting()
    return a, b, c


def program_14():
    def f(*a):
        return a

    return f(*Own(2)), f(*Hinting()), f(1, *Own(1), *Sequence())


def program_15():
    return (
        functools.reduce(lambda a, b: a + b, Own(3)),
        list(itertools.chain(Own(1), Hinting())),
        collections.deque(Own(2)),
        collections.Counter(Own(2)),
        frozenset(Hinting()),
    )


PROGRAMS = [found for name, found in list(globals().items()) if name.startswith("program_")]


def outcome(function):
    LOG.clear()
    return str(function()), list(LOG)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_lengths_asked(program):
    compiled = dyncomp.compile(program, backend="eager", options={"capture_plain": True})
    expected = outcome(program)
    assert outcome(compiled) == expected
    assert outcome(compiled) == expected
