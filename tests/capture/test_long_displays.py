"""Long lists whose items repeat: they are written as repetitions."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.replacement.displays import display_items
from tests.capture.comparing import call, differences


@pytest.mark.parametrize(
    "texts, expected",
    [
        (["a", "b"] * 3, "a, b, a, b, a, b"),
        (["a"] * 100, "*[a] * 100"),
        (["x", *["a", "b"] * 50, "y"], "x, *[a, b] * 50, y"),
        ([str(n) for n in range(30)] * 3 + ["0"], f"*[{', '.join(map(str, range(30)))}] * 3, 0"),
        ([str(n) for n in range(100)], ", ".join(map(str, range(100)))),
    ],
)
def test_items_that_repeat_are_a_repetition(texts, expected):
    assert display_items(texts) == expected


@pytest.mark.parametrize("seed", range(20))
def test_repetitions_are_the_items(seed):
    rng = np.random.default_rng(seed)
    values: list[int] = []
    while len(values) < 300:
        values += rng.integers(0, 4, rng.integers(1, 12)).tolist() * int(rng.integers(1, 60))
    assert eval(f"[{display_items([str(v) for v in values])}]") == values


def repeated(x, out):
    row = [0.5, x, x + 1] * 400
    row[7] = None
    out += [out] * 200
    pairs = ("a", x) * 100 + (x,)
    found = collections.deque([x, row] * 90)
    assert row[1] is row[4] and pairs[1] is pairs[-1]
    return row, pairs, (1, 2) * 70, found, row[2]


def test_long_lists_hold_the_same_objects():
    compiled = dyncomp.compile(repeated, backend="eager", fullgraph=True)
    for _ in range(2):
        expected = call(repeated, (np.ones(3), [1]))
        assert not differences(expected, call(compiled, (np.ones(3), [1])))


def test_a_long_list_is_few_instructions():
    def blank(x):
        slots = [None] * 50_000
        slots[3] = x
        return slots

    compiled = dyncomp.compile(blank, backend="eager")
    assert compiled(1.0) == blank(1.0)
    (record,) = dyncomp.explain(blank)(1.0).entries
    assert len(record.source) < 5000
