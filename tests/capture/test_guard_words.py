"""Guards on sizes and integers as people read them, and what is said when recompilation ends."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import dyncomp
from dyncomp.symbolic.assumptions import in_words
from dyncomp.symbolic.integers import ShapeEnv, SymGuard


@pytest.fixture(autouse=True)
def own_counters():
    yield
    dyncomp.reset()


def guards_of(function, *args):
    compiled = dyncomp.compile(function, backend="eager", dynamic=True)
    compiled(*args)
    return [str(guard) for entry in compiled.config.records.entries for guard in entry.guards]


def program(x, y, k):
    if len(x) > 3 and len(y) % 2 == 0 and k < 10:
        return x + y[: len(x)]
    return x


def test_ranges():
    found = guards_of(program, np.ones(5), np.ones(6), 4)
    for wanted in ("x.shape[0] >= 2", "x.shape[0] > 3", "(y.shape[0] % 2) == 0", "k < 10"):
        assert wanted in found
    assert "x.shape[0] <= y.shape[0]" in found


def test_places():
    compiled = dyncomp.compile(program, backend="eager", dynamic=True)
    compiled(np.ones(5), np.ones(6), 4)
    (guard,) = [g for g in compiled.config.records.entries[0].guards if str(g) == "k < 10"]
    assert guard.loc.line == program.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("make", "relation", "words"),
    [
        (lambda a, b: a - b, "==", "n == m"),
        (lambda a, b: b - a, "<", "m < n"),
        (lambda a, b: -a - b + 3, "<=", "n + m >= 3"),
        (lambda a, b: 2 * a + 3, "!=", "2*n != -3"),
        (lambda a, b: a * b - 6, "==", "n*m == 6"),
        (lambda a, b: a // 2 - b % 3, "<", "(n // 2) < (m % 3)"),
        (lambda a, b: -a, "<=", "n >= 0"),
        (lambda a, b: a - b + 1, "<=", "n + 1 <= m"),
        (lambda a, b: b - a - 1, "<=", "m <= n + 1"),
    ],
)
def test_relations(make, relation, words):
    env = ShapeEnv()
    guard = SymGuard(make(env.new_symbol(5), env.new_symbol(7)), relation)
    found = in_words(guard, {"s0": "n", "s1": "m"})
    assert found == words
    for n in range(-3, 5):
        for m in range(-3, 5):
            assert eval(found, {"n": n, "m": m}) == guard.holds({"s0": n, "s1": m})


def test_the_limit_names_the_integer(caplog):
    def reduced(x, axis):
        return x.sum(axis=axis)

    compiled = dyncomp.compile(reduced, backend="eager")
    x = np.ones((1,) * 11)
    with caplog.at_level(logging.WARNING):
        for axis in range(11):
            assert np.array_equal(compiled(x, axis), reduced(x, axis))
    assert "axis == 8" in caplog.text
    assert "the program uses axis as a constant" in caplog.text


def test_alternating_forms_stay_compiled():
    """Eight forms are kept and used in turn, whatever their order."""

    def scaled(x, flag, mode):
        return x * len(mode) if flag else x + len(mode)

    compiled = dyncomp.compile(scaled, backend="eager")
    x = np.ones(3)
    forms = [(flag, mode) for flag in (True, False) for mode in ("a", "bb", "ccc", "dddd")]
    for _ in range(3):
        for form in forms:
            assert np.array_equal(compiled(x, *form), scaled(x, *form))
    assert len(compiled.config.records.entries) == 8
    assert not any("limit" in str(skip) for skip in compiled.config.records.skipped)
