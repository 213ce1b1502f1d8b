"""Branches on whether there are numbers that are not finite: presumed, and checked by the graph."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

NAN, INF = float("nan"), float("inf")


def cleaned(x, log):
    y = x * 2
    if np.isnan(y).any() or np.isinf(y).any():
        y = np.nan_to_num(y)
    log.append(y.sum())
    return y + 1


def all_finite(x, log):
    if not np.isfinite(x).all():
        log.append("odd")
    return np.where(x > 0, x, -x)


def unequal_to_itself(x, log):
    if (x != x).any() & (x > 0).any():
        log.append("both")
        return x
    return x - 1


def told_twice(x, log):
    for k in range(3):
        x = x + 1
        if np.isinf(x).any():
            log.append(k)
            x = np.clip(x, -9, 9)
    return x


FUNCTIONS = [cleaned, all_finite, told_twice]
GOOD, BAD = np.linspace(-1, 2, 3), np.array([1.0, NAN, INF])


def same(compiled, function, x):
    ours, theirs = [], []
    np.testing.assert_array_equal(compiled(x.copy(), ours), function(x.copy(), theirs))
    assert str(ours) == str(theirs)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_one_graph_and_the_other_side(function, backend):
    compiled = dyncomp.compile(function, backend=backend)
    for x in (GOOD, GOOD, BAD, GOOD, BAD, GOOD):
        same(compiled, function, x)
    assert not any(entry.breaks for entry in compiled.config.records.entries)


def test_only_where_no_other_data_are_asked():
    compiled = dyncomp.compile(unequal_to_itself, backend="eager")
    same(compiled, unequal_to_itself, GOOD)
    assert any(entry.breaks for entry in compiled.config.records.entries)


@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_a_first_call_that_goes_otherwise(function):
    """The graph breaks from then on, in each piece of the function."""
    compiled = dyncomp.compile(function, backend="eager")
    before = dyncomp.stats()["fallbacks"]
    for x in (BAD, BAD, GOOD, BAD):
        same(compiled, function, x)
    assert dyncomp.stats()["fallbacks"] <= before + (2 if function is told_twice else 1)
    assert any(entry.breaks for entry in compiled.config.records.entries)


def test_many_that_go_otherwise():
    compiled = dyncomp.compile(cleaned, backend="eager")
    before = dyncomp.stats()["fallbacks"]
    for k in range(40):
        same(compiled, cleaned, BAD if k % 3 else GOOD)
    assert dyncomp.stats()["fallbacks"] < before + 9
    assert any(entry.breaks for entry in compiled.config.records.entries)


def test_nothing_is_written_before_the_check():
    def function(x):
        x += 1
        if np.isnan(x).any():
            x[:] = 0
        x *= 2
        return x.sum()

    compiled = dyncomp.compile(function, backend="inductor")
    for values in ([1.0, 2.0], [1.0, NAN], [3.0, 4.0]):
        ours, theirs = np.array(values), np.array(values)
        assert compiled(ours) == function(theirs)
        np.testing.assert_array_equal(ours, theirs)
