"""``**`` in calls: a name given twice, keys that are no strings."""

from __future__ import annotations

import types

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, check, differences


def target(a=0, b=0, **rest):
    return a, b, rest


def twice(first, second):
    return target(**first, **second)


def twice_by_name(given):
    return target(a=1, **given)


def caught(first, second):
    try:
        return target(**first, **second)
    except TypeError as error:
        return str(error)


def of_a_namespace(given):
    return vars(types.SimpleNamespace(**given))


def as_a_dict(first, second):
    return {**first, **second}


@pytest.mark.parametrize("function", [twice, caught, as_a_dict])
@pytest.mark.parametrize("second", [{"b": 3}, {"a": 2}, {1: 2}, {}])
def test_two_mappings(function, second):
    check(function, lambda: ({"a": 1}, dict(second)), options={"capture_plain": True})


@pytest.mark.parametrize("function", [twice_by_name, of_a_namespace])
@pytest.mark.parametrize("given", [{"b": 3}, {"a": 2}, {1: 2}, {}])
def test_one_mapping(function, given):
    check(function, lambda: (dict(given),), options={"capture_plain": True})


def counter(start, held):
    count = start

    def add(v, *more, k=1, by=2, **named):
        nonlocal count
        count += k
        return held * count + v * by, more, named

    return add


@pytest.mark.parametrize("given", [{}, {"k": 3}, {"by": 4, "z": 1}])
def test_keyword_only_parameters_where_the_graph_raises(given):
    """The original runs with what the call gave, beside ``*`` and ``**``."""
    array = np.arange(3.0)
    function = dyncomp.compile(counter(2**70, array), backend="eager", dynamic=True)
    for _ in range(2):
        plain = call(counter(2**70, array), (array, 5), given)
        mine = dyncomp.compile(counter(2**70, array), backend="eager", dynamic=True)
        assert not differences(plain, call(mine, (array, 5), given))
    call(function, (array,))
    assert function.config.records.counters["fallbacks"]
