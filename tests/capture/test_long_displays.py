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


WORDS = " ".join(f"w{n}" for n in range(200))


def different(x, out):
    words = WORDS.split()
    numbers = [n * 7 for n in range(200)]
    by_word = dict(zip(words, numbers))
    found = {n * 1.5 for n in range(200)}
    out += [words, tuple(words), by_word, numbers]
    numbers[3] = x
    return x + 1, words, by_word, found, [*words, x, *words], numbers


def test_many_different_constants_are_one():
    compiled = dyncomp.compile(different, backend="eager", options={"unroll_limit": 300})
    for _ in range(2):
        expected = call(different, (np.ones(3), [1]))
        assert not differences(expected, call(compiled, (np.ones(3), [1])))
    first, second = compiled(np.ones(3), []), compiled(np.ones(3), [])
    assert first[1] is not second[1] and first[2] is not second[2]
    first[1].clear()
    first[2].clear()
    assert len(compiled(np.ones(3), [])[1]) == 200 == len(compiled(np.ones(3), [])[2])
    assert all(len(entry.source) < 4000 for entry in compiled.config.records.entries)


def copied(x, items):
    same = list(items)
    items.reverse()
    items[5] = "changed"
    rest = [*same[100:200], x, *same[:3]]
    return x + 1, same, rest, tuple(same[10:150])


@pytest.mark.parametrize(
    "item", [float, str, lambda n: n + 1000, lambda n: None if n % 2 else n * 0.5, lambda n: [n]]
)
def test_items_of_a_list_are_taken_as_a_slice(item):
    compiled = dyncomp.compile(copied, backend="eager")
    items = [item(n) for n in range(200)]
    for _ in range(2):
        given = list(items)
        _, same, rest, part = compiled(np.ones(3), given)
        assert given[5] == "changed" and given[0] is items[-1]
        assert all(a is b for a, b in zip(same, items, strict=True))
        assert all(a is b for a, b in zip(rest[:100], items[100:], strict=True))
        assert all(a is b for a, b in zip(part, items[10:150], strict=True))
