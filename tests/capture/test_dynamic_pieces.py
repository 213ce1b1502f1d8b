"""Sizes stay symbolic in sets of shapes, and in what follows a graph break."""

from __future__ import annotations

from collections import Counter

import numpy as np

import dyncomp
from tests.capture.comparing import check


def by_name(records):
    return Counter(entry.name for entry in records.entries)


def shapes_agree(x, y):
    shapes = {a.shape for a in (x, y)}
    if len(shapes) != 1:
        raise ValueError("shapes differ")
    sizes = set()
    for a in (x, y):
        sizes.add(a.shape[0])
    return x * len(sizes) + y, len(shapes)


def shapes_seen(x, y):
    shapes = {a.shape for a in (x, y)}
    shapes.add((1, 2))
    return x + 1, sorted(shapes), (1, 2) in shapes, shapes


def goes_on(x, k):
    y = x[1:] * 2
    n = y.shape[0]
    dyncomp.graph_break()
    y = y + n
    dyncomp.graph_break()
    return y * k, n


def pairs(*sizes):
    return [lambda n=n: (np.linspace(0, 1, n), np.ones(n)) for n in sizes]


def test_a_set_of_shapes_fixes_none():
    records = check(shapes_agree, *pairs(3, 5, 7, 8, 11, 20))
    assert by_name(records) == {"shapes_agree": 2}


def test_sets_of_shapes_that_are_looked_at():
    check(shapes_seen, *pairs(3, 5, 3, 8))
    check(shapes_seen, lambda: (np.ones(2), np.ones(3)), lambda: (np.ones(4), np.ones(4)))
    check(shapes_agree, *pairs(3, 5), lambda: (np.ones(2), np.ones(3)), lambda: (np.ones(6), np.ones(3)))


def test_sizes_of_named_arguments_go_through_breaks():
    makers = [lambda n=n: (np.linspace(0, 1, n), 2.0) for n in (5, 7, 4, 9)]
    records = check(goes_on, *makers, dynamic={"x": 0})
    assert by_name(records) == {"goes_on": 3}


def test_sizes_seen_to_change_go_through_breaks():
    makers = [lambda n=n: (np.linspace(0, 1, n), 2.0) for n in (5, 7, 4, 9)]
    records = check(goes_on, *makers)
    assert by_name(records) == {"goes_on": 6}
