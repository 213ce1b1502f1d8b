"""Sets of lengths: whether they agree is told without fixing them."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences


def consistent(x, y):
    lengths = [len(a) for a in (x, y)]
    uniques = set(lengths)
    if len(uniques) > 1:
        raise ValueError(f"lengths {sorted(uniques)} differ")
    return x + y


def counted(x, y):
    return x.sum() + len(frozenset((len(x), len(y), 3)))


def broken(x, y):
    lengths = [len(x), len(y)]
    found = set(lengths)
    print("lengths", sorted(found))
    return x.sum() + len(found)


def kept(x, y):
    lengths = (len(x), len(y), 5)
    return set(lengths), frozenset([len(x)])


def used(x, y):
    lengths = [len(x), len(y)]
    found = set(lengths)
    found.add(7)
    return x * (7 in found) * (len(x) in found) + sum(found), bool(found), list(found)


@pytest.fixture(autouse=True)
def own_counters():
    """These programs run into the limit: counters are the process's."""
    yield
    dyncomp.reset()


SIZES = [(5, 5), (6, 6), (9, 9), (7, 7), (30, 30), (5, 6), (8, 9), (3, 3), (12, 11), (2, 2)]


@pytest.mark.parametrize("program", [consistent, counted, broken, kept, used])
def test_sets_of_lengths(program):
    compiled = dyncomp.compile(program, backend="eager", options={"debug_verify": True})
    for n, m in SIZES:
        assert not differences(
            call(program, (np.ones(n), np.ones(m))), call(compiled, (np.ones(n), np.ones(m)))
        )


def test_few_entries():
    compiled = dyncomp.compile(consistent, backend="eager")
    for size in (5, 6, 7, 8, 100):
        compiled(np.ones(size), np.ones(size))
    assert len(compiled.config.records.entries) == 2
