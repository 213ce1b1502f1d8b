"""``x[:, i]`` where ``i`` is a number of the data: a view in the program, whose place only the run knows."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check

X = np.arange(12.0).reshape(3, 4)
PLACES = np.array([2, 0, 1, -1])


def columns(x, places):
    total = np.zeros(3)
    for place in places:
        total += x[:, place] * 2
    return total, x[places[0]].sum(), x[1:, places[1]] @ x[1:, places[2]]


def written_later(x, places):
    row = x[places[1]]
    x[0] = 7.0
    return row.sum()


def written_through(x, places):
    x = x * 1.0
    row = x[places[0]]
    row += 5.0
    column = x[:, places[1]]
    column[:] = 1.0
    return x


def given_out(x, places):
    y = x + 1.0
    row = y[places[1]]
    y[0, 0] = 99.0
    return row, y


def kept_in_a_list(x, places):
    rows = [x[p] for p in places[:2]]
    return rows, x


@pytest.mark.parametrize("function", [columns, written_later, written_through, given_out, kept_in_a_list])
def test_same_as_plain(function):
    check(function, *[lambda: (X.copy(), PLACES.copy()) for _ in range(3)])


def test_a_view_that_leaves_the_graph_is_one():
    x = X.copy()
    rows, same = dyncomp.compile(kept_in_a_list)(x, PLACES)
    assert same is x and all(np.shares_memory(row, x) for row in rows)


def test_columns_are_one_graph():
    compiled = dyncomp.compile(columns, fullgraph=True)
    for found, wanted in zip(compiled(X, PLACES), columns(X, PLACES), strict=True):
        np.testing.assert_allclose(found, wanted)
    by_x = dyncomp.grad(lambda x: columns(x, PLACES)[0] @ np.array([1.0, 2.0, 3.0]))(X)
    np.testing.assert_allclose(by_x, np.outer([2.0, 4.0, 6.0], [1.0, 1.0, 1.0, 1.0]))


def test_places_outside_raise():
    with pytest.raises(IndexError):
        dyncomp.compile(columns)(X, np.array([0, 1, 9]))
