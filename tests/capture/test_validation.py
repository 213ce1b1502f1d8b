"""Branches on data one side of which always raises: no break, and the program's own exception.

The programs' own assertions are not to be rewritten: PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences


def negative(x):
    if (x < 0).any():
        raise ValueError(f"negative {x.min()}")
    return np.sqrt(x) * 2


def writes_first(x):
    x[0] += 5.0
    if not np.isfinite(x).all():
        raise ValueError("nan")
    x[1] = x[0]
    return x * 2


def asserts(x):
    assert x.max() < 10, "too large"
    y = x + 1
    assert np.all(y > 0)
    return y


def only_checked(x):
    np.asarray_chkfinite(x)


def _twice(x):
    if x.sum() > 100 or x[0] == 3:
        raise RuntimeError("a", float(x[0]))
    return x * 2


def inlined(x):
    return _twice(x) + _twice(x + 1)


def several_ways(x):
    if x[1] > 50:
        message = "big"
        if x[2] > 3:
            raise ValueError(message)
        raise TypeError(message + "!")
    return x - 1


def in_loop(x):
    total = 0
    for i in range(len(x)):
        if x[i] > 50:
            raise ValueError(i)
        total = total + x[i] * 2
    return total


def nothing_found(x):
    i = np.flatnonzero(x > 4)
    if i.size == 0:
        raise ValueError("none")
    return x[i] * 2


def too_few(x):
    y = x[x > 4]
    if len(y) < 2:
        raise ValueError(f"few {len(y)}")
    return y - 2, y + 1


def not_unique(x):
    found = np.unique(x)
    if not found.size:
        raise ValueError("none")
    if found.shape != x.shape:
        raise ValueError("several", found.shape)
    return found


def between(x):
    found = np.unique(x)
    if not 2 < found.shape[0] <= 1000:
        raise ValueError("none")
    return found + 1


PROGRAMS = [
    *(negative, writes_first, asserts, only_checked, inlined, several_ways, in_loop),
    *(nothing_found, too_few, not_unique, between),
]
GOOD = np.arange(1.0, 9.0)
INPUTS = [
    *(GOOD, GOOD - 5, GOOD * 100, GOOD * -100, GOOD + 2, GOOD),
    *(np.where(GOOD == 4, np.nan, GOOD), np.full(8, 5.0), np.zeros(8), np.empty(0), GOOD),
]


def own_frames(outcome):
    return [frame for frame in outcome.frames if frame[0] == __file__]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_plain_python(program, backend):
    compiled = dyncomp.compile(program, backend=backend)
    for given in INPUTS:
        expected, found = call(program, (given.copy(),)), call(compiled, (given.copy(),))
        assert not differences(expected, found, 1e-14)
        assert own_frames(found) == own_frames(expected)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_one_graph(program):
    dyncomp.compile(program, backend="eager", fullgraph=True)(GOOD.copy())


def test_what_is_caught_breaks():
    def caught(x):
        try:
            if x.sum() > 3:
                raise KeyError
        except KeyError:
            return x - 1
        return x + 1

    report = dyncomp.explain(caught, backend="eager")(GOOD)
    assert [record.id for record in report.breaks] == ["data-dependent-branch"]
    assert np.array_equal(report.result, GOOD - 1)


def test_both_sides_raise():
    def raises(x):
        if x.sum() > 3:
            raise KeyError("large")
        raise ValueError("small")

    compiled = dyncomp.compile(raises, backend="eager")
    for given in (GOOD, -GOOD):
        expected, found = call(raises, (given,)), call(compiled, (given,))
        assert expected.error == found.error


def test_lengths_of_slices_of_a_selection():
    """That a part of a selection has one element is not what is taken to be usual."""

    def runs(x):
        places = np.arange(x.size)[np.concatenate([np.ones(1, bool), x[:-1] != x[1:]])]
        counts = np.diff(places, append=np.asarray([x.size]))
        return np.repeat(places + (counts - 1) / 2, counts)

    compiled = dyncomp.compile(runs, backend="eager", fullgraph=True)
    before = dyncomp.stats()["fallbacks"]
    for given in (GOOD, np.array([1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 4.0])):
        assert np.array_equal(compiled(given), runs(given))
    assert dyncomp.stats()["fallbacks"] == before
