"""Many pieces of small arrays: some wait with their capture, and answers stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.capture import convert
from dyncomp.capture.policy import cost_model
from dyncomp.errors import RecompileError


def _unknown(values):
    """What breaks the graph: capture does not know what it gives."""
    return np.asarray(sorted(values, key=repr))


def pieces(x, log):
    x = x + 1.0
    a = _unknown(x * 2)
    log.append("a")
    b = _unknown(a - x[0])
    log.append("b")
    if len(log) > 2:
        raise ValueError(f"{a[0]:.3f} after {log}")
    c = _unknown(b * a)
    return a + b, c.sum()


def loop_behind(x, log):
    a = _unknown(x)
    for _ in range(1000):
        a = np.sqrt(a * a + x) / 2
    return a, log


def _waits(compiled):
    return [name for name, _, reason in compiled.config.records.waiting.values() if "waits" in reason]


def _graphs(compiled):
    return [record for record in compiled.config.records.entries if record.graph is not None]


@pytest.fixture
def impatient(monkeypatch):
    """No captures are free of charge but the first, as after those of a large program."""
    monkeypatch.setattr(cost_model, "FREE_MS", 1)


@pytest.mark.parametrize("patience_us", [0, 1, 300, 10**9])
def test_results_effects_and_exceptions_are_the_same(impatient, patience_us):
    compiled = dyncomp.compile(pieces, options={"patience_us": patience_us})
    for seed in range(8):
        x = np.random.default_rng(seed).random(5 + seed % 2)
        log: list[str] = []
        plain_log: list[str] = []
        found, wanted = compiled(x, log), pieces(x, plain_log)
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_allclose(found[1], wanted[1])
        with pytest.raises(ValueError) as plain:
            pieces(x, plain_log)
        with pytest.raises(ValueError) as raised:
            compiled(x, log)
        assert str(raised.value) == str(plain.value)
        assert raised.traceback[-1].lineno == plain.traceback[-1].lineno
        assert log == plain_log


def test_pieces_wait_and_are_captured_in_time(impatient, monkeypatch):
    monkeypatch.setattr(convert, "trial_of", lambda *_: None)  # what is plain again no longer runs
    compiled = dyncomp.compile(pieces, options={"patience_us": 10_000})
    compiled(np.ones(5), [])
    assert "pieces" in _waits(compiled)  # what is behind the first break
    shown = dyncomp.explain(compiled)(np.ones(5), [])
    assert any("waits" in reason for _, _, reason in shown.skipped)
    assert len(shown.graphs) > 1  # what is explained does not wait
    assert len(_graphs(compiled)) == 1
    for _ in range(20_000):
        compiled(np.ones(5), [])
        if "pieces" not in _waits(compiled):
            break
    assert len(_graphs(compiled)) > 1
    assert "pieces" not in _waits(compiled)


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (5, {"patience_us": 0}),
        (5, {"measure": False}),
        (5, {"patience_us": 10**9, "capture_plain": True}),
        (cost_model.MUCH + 1, {"patience_us": 10**9}),
    ],
)
def test_what_does_not_wait(impatient, size, options):
    compiled = dyncomp.compile(pieces, options=options)
    compiled(np.ones(size), [])
    assert "pieces" not in _waits(compiled)
    assert len(_graphs(compiled)) > 1


def test_a_large_array_of_a_piece_does_not_wait(impatient):
    def function(x, y):
        a = _unknown(x)
        b = _unknown(a + 1)
        return y + b[0], y * a[1]

    compiled = dyncomp.compile(function, options={"patience_us": 10**9})
    y = np.ones(cost_model.MUCH + 1)
    np.testing.assert_array_equal(compiled(np.ones(3), y), function(np.ones(3), y))
    assert not any("function" in name for name in _waits(compiled))


def test_a_loop_is_compiled_within_the_call_that_runs_it(impatient):
    compiled = dyncomp.compile(loop_behind, options={"patience_us": 1000})
    x = np.linspace(0.5, 2, 7)
    np.testing.assert_allclose(compiled(x, 1)[0], loop_behind(x, 1)[0])
    assert [record for record in _graphs(compiled) if "loop_behind" in record.name]


def test_functions_behind_a_break_wait_one_by_one(impatient):
    def inner(x):
        total = np.zeros_like(x)
        for k in range(20):
            total = total + np.sin(x) * k
        return total

    def function(x):
        a = _unknown(x * 3)
        print(end="")
        return inner(a) + inner(a + 1)

    compiled = dyncomp.compile(function, options={"patience_us": 10**9})
    x = np.linspace(0.5, 2, 7)
    np.testing.assert_allclose(compiled(x), function(x))
    assert any("function" in name for name in _waits(compiled))
    # its loop may be the program's work: captured within the function that waits
    assert any("inner" in record.name for record in _graphs(compiled))


def test_a_stance_that_forbids_compilation_is_heard(impatient):
    compiled = dyncomp.compile(pieces, options={"patience_us": 10**9})
    compiled(np.ones(5), [])
    with dyncomp.set_stance("force_eager"):
        compiled(np.ones(5), [])
    with dyncomp.set_stance("fail_on_recompile"), pytest.raises(RecompileError):
        compiled(np.ones(5, np.float32), [])


@pytest.mark.parametrize("value", [-1, 1.5, "long"])
def test_bad_patience(value):
    with pytest.raises((TypeError, ValueError)):
        dyncomp.compile(pieces, options={"patience_us": value})


def test_code_that_died_is_forgotten(impatient):
    compiled = dyncomp.compile(pieces, options={"patience_us": 10**9})
    waiting = compiled.config.records.waiting

    def made(count):
        return compile(f"x + {count}", "<made>", "eval")

    first, twin = made(1), made(1)
    waiting[first] = ("first", None, "waits")
    assert first in waiting and first == twin and twin not in waiting
    del first
    assert not waiting.values()
    waiting[twin] = ("twin", None, "waits")
    waiting.discard(twin)
    assert twin not in waiting


def _objective(k):
    def objective(x):
        return ((x - k) ** 2).sum()

    return objective


def _compiled_objectives(x, **options):
    """Twelve, each compiled by itself; what they give must be right."""
    made = [dyncomp.compile(_objective(k), options=options) for k in range(12)]
    for k, compiled in enumerate(made):
        assert compiled(x) == _objective(k)(x)
    return made


def test_what_is_compiled_anew_many_times_waits():
    dyncomp.reset()
    made = _compiled_objectives(np.ones(4), patience_us=10_000)
    waiting = [compiled for compiled in made if _waits(compiled)]
    assert 0 < len(waiting) < len(made) and _waits(waiting[-1]) == [_objective(0).__qualname__]
    (reason,) = (reason for _, _, reason in waiting[-1].config.records.waiting.values())
    assert "compiled anew" in reason
    for _ in range(100_000):
        waiting[-1](np.ones(4))
        if _graphs(waiting[-1]):
            break
    assert _graphs(waiting[-1])  # once it has run for long
    dyncomp.reset()
    assert not _waits(_compiled_objectives(np.ones(4), patience_us=10_000)[0])


@pytest.mark.parametrize("options", [{"patience_us": 0}, {"measure": False}])
def test_what_is_compiled_anew_on_demand_does_not_wait(options):
    dyncomp.reset()
    assert all(_graphs(compiled) for compiled in _compiled_objectives(np.ones(4), **options))


def test_what_is_compiled_anew_for_large_arrays_does_not_wait():
    dyncomp.reset()
    assert all(_graphs(compiled) for compiled in _compiled_objectives(np.ones(cost_model.MUCH + 1)))
