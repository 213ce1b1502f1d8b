"""Recompilation: guards that miss, what becomes symbolic, limits, loops of any trip count."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check, graphs
from tests.capture.programs import vec


def scale(x, k):
    return x * k + x.sum()


def capture(function, **settings):
    return dyncomp.compile(function, backend="eager", options={"debug_verify": True}, **settings)


def fresh_stats():
    dyncomp.reset()


def shapes_of(compiled):
    """The shapes of the first input of each graph, as text."""
    return [
        str(e.graph.inputs[0].var.type.shape) for e in compiled.config.records.entries if e.graph is not None
    ]


# -- sizes --------------------------------------------------------------------------------------------
def test_second_size_becomes_symbolic():
    fresh_stats()
    compiled = capture(scale)
    for n in (5, 6, 7, 100, 3, 2):
        assert np.array_equal(compiled(vec(n), 2.0), scale(vec(n), 2.0))
    assert shapes_of(compiled)[0] == "(5,)"
    assert "s" in shapes_of(compiled)[1]
    assert len(shapes_of(compiled)) == 2
    assert dyncomp.stats()["recompiles"] == 1


def test_only_the_size_that_changes_becomes_symbolic():
    compiled = capture(lambda x: (x + 1).sum(axis=1))
    for n in (4, 5, 6):
        compiled(np.ones((n, 3)))
    first, second = compiled.config.records.entries
    assert str(first.graph.inputs[0].var.type.shape) == "(4, 3)"
    rows, columns = second.graph.inputs[0].var.type.shape
    assert columns == 3 and not isinstance(rows, int)


def test_sizes_zero_and_one_are_entries_of_their_own():
    def add(x, y):
        return x + y

    compiled = capture(add)
    for n in (5, 6, 1, 0, 7, 1, 0):
        assert np.array_equal(compiled(np.ones(n), np.ones(n)), np.full(n, 2.0))
    assert np.array_equal(compiled(np.ones(1), np.ones(6)), np.full(6, 2.0))
    assert compiled.config.records.counters["internal_errors"] == 0


def test_dynamic_true_from_the_start():
    compiled = capture(scale, dynamic=True)
    for n in (5, 6, 50):
        assert np.array_equal(compiled(vec(n), n), scale(vec(n), n))
    assert len(shapes_of(compiled)) == 1


def test_dynamic_false_never():
    compiled = capture(scale, dynamic=False)
    for n in (5, 6, 7):
        compiled(vec(n), 2.0)
    assert shapes_of(compiled) == ["(5,)", "(6,)", "(7,)"]


def test_a_condition_on_a_symbolic_size_is_a_guard():
    def choose(x):
        if x.shape[0] > 10:
            return x * 2
        return x + 1

    compiled = capture(choose, dynamic=True)
    for n in (5, 8, 11, 30, 10):
        assert np.array_equal(compiled(vec(n)), choose(vec(n)))
    assert len(shapes_of(compiled)) == 2


def test_sizes_that_must_agree():
    def add(x, y):
        return x + y

    compiled = capture(add, dynamic=True)
    for n in (5, 6, 9):
        assert np.array_equal(compiled(vec(n), vec(n)), vec(n) + vec(n))
    with pytest.raises(ValueError, match="could not be broadcast"):
        compiled(vec(5), vec(6))
    assert np.array_equal(compiled(vec(5), vec(1)), vec(5) + vec(1))


def test_sizes_in_python_arithmetic():
    def halves(x):
        n = len(x) // 2
        return x[:n].sum() - x[n:].sum(), n, f"{n}" if n < 0 else n * 2, np.zeros(n + 1), x.reshape(2, -1)

    check(halves, *[lambda n=n: (vec(n),) for n in (6, 8, 10, 20)])


@pytest.mark.parametrize("order", ["C", "F", "strided", "reversed"])
def test_layouts(order):
    def make(n):
        base = np.arange(float(4 * n * n)).reshape(2 * n, 2 * n)
        views = {
            "C": base[:n, :n].copy(),
            "F": base[:n, :n].copy("F"),
            "strided": base[::2, ::2],
            "reversed": base[::-1, :],
        }
        return views[order]

    def f(x):
        return x.T @ x + x.sum(axis=0), x.ravel(), x[1:]

    records = check(f, *[lambda n=n: (make(n),) for n in (3, 4, 5)])
    assert graphs(records) <= 3


# -- numbers ------------------------------------------------------------------------------------------
def test_a_number_that_changes_becomes_symbolic():
    fresh_stats()
    compiled = capture(scale)
    for k in (1.5, 2.5, -0.0, float("inf"), 1e300):
        expected = scale(vec(), k)
        assert np.array_equal(compiled(vec(), k), expected, equal_nan=True)
    assert dyncomp.stats()["recompiles"] == 1


def test_integers_and_their_branches():
    def f(x, n):
        return x[:n] if n % 2 == 0 else x * n

    check(f, *[lambda n=n: (vec(9), n) for n in (1, 2, 3, 4, 7, 8, -1, -2, 0)])


def test_types_are_entries_of_their_own():
    compiled = capture(scale)
    for k in (1, 2, 3.0, True, np.float32(2), np.int64(2), 2j, 4, 5):
        expected = scale(vec(), k)
        found = compiled(vec(), k)
        assert found.dtype == expected.dtype and np.array_equal(found, expected)


def test_dtypes_are_entries_of_their_own():
    compiled = capture(scale)
    for dtype in ("f8", "f4", "i4", "u1", "?", "c8", "f2", "i8"):
        x = np.ones(5, dtype)
        expected = scale(x, 2)
        found = compiled(x, 2)
        assert found.dtype == expected.dtype and np.array_equal(found, expected)
    assert compiled.config.records.counters["internal_errors"] == 0


# -- what is said about it ------------------------------------------------------------------------------
def test_a_recompilation_names_the_guard():
    compiled = capture(scale)
    compiled(vec(5), 2.0)
    compiled(vec(6), 2.0)
    compiled(vec(6).astype("f4"), 2.0)
    missed = [e.missed for e in compiled.config.records.entries]
    assert missed[0] == ""
    assert "x" in missed[1] and "5" in missed[1] and "6" in missed[1]
    assert "float32" in missed[2]


def test_guards_print_with_the_users_line():
    compiled = capture(scale)
    compiled(vec(5), 2.0)
    (entry,) = compiled.config.records.entries
    texts = [str(g) for g in entry.guards]
    assert any("x" in t and "float64" in t for t in texts)
    assert all(g.loc is None or g.loc.file == __file__ for g in entry.guards)


def test_recompile_limit_runs_the_original(caplog):
    def kinds(x, word):
        return x * len(word)

    compiled = dyncomp.compile(kinds, backend="eager", options={"recompile_limit": 3})
    with caplog.at_level(logging.WARNING, logger="dyncomp.capture"):
        for word in ["a", "bb", "ccc", "dddd", "eeeee", "ffffff", "ggggggg"]:
            assert np.array_equal(compiled(vec(), word), kinds(vec(), word))
    assert "recompilation limit (3)" in caplog.text
    assert "word" in caplog.text
    assert graphs(compiled.config.records) == 4
    assert np.array_equal(compiled(vec(), "a"), kinds(vec(), "a"))


def test_globals_and_cells_are_guarded():
    factor = 2.0

    def f(x):
        return x * factor + OFFSET

    global OFFSET
    compiled = capture(f)
    for factor, OFFSET in ((2.0, 1.0), (3.0, 1.0), (3.0, 5.0), (2.0, 1)):  # noqa: B007 - f reads it
        assert np.array_equal(compiled(vec()), f(vec()))
    OFFSET = 0.0


OFFSET = 0.0


def helper(x):
    return x + 1


def test_a_redefined_function_is_noticed(monkeypatch):
    def f(x):
        return helper(x) * 2

    compiled = capture(f)
    assert np.array_equal(compiled(vec()), (vec() + 1) * 2)
    monkeypatch.setitem(globals(), "helper", lambda x: x - 1)
    assert np.array_equal(compiled(vec()), (vec() - 1) * 2)
    monkeypatch.undo()
    assert np.array_equal(compiled(vec()), (vec() + 1) * 2)


def test_a_changed_method_and_class_attribute_are_noticed():
    class Model:
        gain = 2.0

        def run(self, x):
            return x * self.gain

    def f(model, x):
        return model.run(x)

    compiled = capture(f)
    model = Model()
    assert np.array_equal(compiled(model, vec()), vec() * 2)
    Model.gain = 3.0
    assert np.array_equal(compiled(model, vec()), vec() * 3)
    model.gain = 4.0
    assert np.array_equal(compiled(model, vec()), vec() * 4)
    Model.run = lambda self, x: x + 100
    assert np.array_equal(compiled(model, vec()), vec() + 100)
    model.run = lambda x: x - 1
    assert np.array_equal(compiled(model, vec()), vec() - 1)


def test_changed_defaults_are_noticed():
    def inner(x, k=2):
        return x * k

    def f(x):
        return inner(x)

    compiled = capture(f)
    assert np.array_equal(compiled(vec()), vec() * 2)
    inner.__defaults__ = (5,)
    assert np.array_equal(compiled(vec()), vec() * 5)


# -- loops --------------------------------------------------------------------------------------------
def heat(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def prefix_sums(x):
    out = []
    for i in range(1, len(x)):
        out.append(x[:i].sum() + x[i:].sum() * i)
    return out


def cost(compiled, *args):
    """Entries made and instructions executed symbolically for a call."""
    compiled(*args)
    entries = compiled.config.records.entries
    return (
        len(entries),
        sum(e.instructions for e in entries),
        sum(len(e.graph.nodes) for e in entries if e.graph),
    )


def test_compile_work_does_not_depend_on_the_trip_count():
    assert cost(capture(heat), vec(30), 20) == cost(capture(heat), vec(30), 2000)


def test_changing_integers_in_slices_do_not_recompile():
    fresh_stats()
    compiled = capture(prefix_sums)
    expected = prefix_sums(vec(60))
    assert np.allclose(compiled(vec(60)), expected, rtol=1e-13)
    assert dyncomp.stats()["recompiles"] <= 2
    before = len(compiled.config.records.entries)
    compiled(vec(60))
    assert len(compiled.config.records.entries) == before
    bodies = cost(capture(prefix_sums), vec(300))
    assert bodies[0] == before


def test_a_new_trip_count_does_not_recompile_the_body():
    compiled = capture(heat)
    compiled(vec(30), 20)
    compiled(vec(30), 21)
    before = len(compiled.config.records.entries)
    for steps in (22, 100, 400):
        compiled(vec(30), steps)
    assert len(compiled.config.records.entries) == before


def test_unroll_limit():
    short = capture(heat)
    assert cost(short, vec(30), 8)[0] == 1
    longer = dyncomp.compile(heat, backend="eager", options={"unroll_limit": 20})
    assert cost(longer, vec(30), 20)[0] == 1
    assert cost(capture(heat), vec(30), 9)[0] > 1


def test_while_loops_compile_once():
    def iterate(x, tolerance):
        count = 0
        while np.abs(x).max() > tolerance:
            x = x * 0.9
            count += 1
        return x, count

    few = cost(capture(iterate), vec(), 0.5)
    many = cost(capture(iterate), vec(), 1e-12)
    assert few == many
