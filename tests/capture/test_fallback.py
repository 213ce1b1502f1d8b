"""Graphs that raise: the original runs, soon at once, and compiled code again when it can."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.policy.fallback import _ENOUGH, _FIRST_REST
from dyncomp.graph.interp import as_callable
from dyncomp.pipeline import op_table


class Backend:
    """Runs graphs by the reference; counts calls, and raises while ``bad``."""

    def __init__(self) -> None:
        self.calls = 0
        self.bad = True

    def __call__(self, graph: Any, examples: Any) -> Any:

        call = as_callable(graph, op_table())

        def run(*args: Any) -> Any:
            self.calls += 1
            if self.bad:
                raise RuntimeError("from the kernel")
            return call(*args)

        return run


def doubled(x):
    return x * 2 + 1


def inner_break(x):
    y = x + 1
    dyncomp.graph_break("here")
    return y * 3


def counted(compiled, backend: Backend, calls: int) -> int:
    """How many of so many calls ran a graph; all give what plain Python gives."""
    before = backend.calls
    for k in range(calls):
        x = np.arange(4.0) + k
        assert np.array_equal(compiled(x), doubled(x))
    return backend.calls - before


@pytest.fixture(autouse=True)
def fresh():
    dyncomp.reset()


def test_a_graph_that_raises_at_every_call_rests():
    backend = Backend()
    compiled = dyncomp.compile(doubled, backend=backend)
    assert counted(compiled, backend, _ENOUGH) == _ENOUGH
    assert dyncomp.stats()["resting"] == 1
    assert counted(compiled, backend, _FIRST_REST) == 0
    assert counted(compiled, backend, 1) == 1  # tried again
    assert counted(compiled, backend, 2 * _FIRST_REST) == 0
    assert dyncomp.stats()["fallbacks"] == _ENOUGH + 1
    tried = counted(compiled, backend, 5000)
    assert 1 <= tried <= 10  # ever more seldom


def test_a_graph_that_can_run_again_does():
    backend = Backend()
    compiled = dyncomp.compile(doubled, backend=backend)
    counted(compiled, backend, _ENOUGH)
    backend.bad = False
    assert counted(compiled, backend, _FIRST_REST) == 0
    assert counted(compiled, backend, 20) == 20
    assert dyncomp.stats()["resting"] == 0
    backend.bad = True  # anew: as many calls as at first
    assert counted(compiled, backend, _ENOUGH + _FIRST_REST + 1) == _ENOUGH + 1


def test_calls_that_raise_now_and_then_never_rest():
    backend = Backend()
    compiled = dyncomp.compile(doubled, backend=backend)
    for k in range(60):
        backend.bad = k % _ENOUGH != 0
        assert counted(compiled, backend, 1) == 1
    assert dyncomp.stats()["resting"] == 0


def test_exceptions_of_the_program_stay_the_same_at_rest():
    def picked(x, i):
        return x[i] * 2.0

    compiled = dyncomp.compile(picked)
    x = np.arange(5.0)
    for _ in range(3 * _FIRST_REST):
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            compiled(x, np.array([0, 9]))
    for _ in range(3 * _FIRST_REST):
        assert np.array_equal(compiled(x, np.array([0, 4])), [0.0, 8.0])
    assert dyncomp.stats()["resting"] == 0


def test_frames_below_a_break_rest_too():
    """Found by the frame hook, and continuations."""
    backend = Backend()
    compiled = dyncomp.compile(inner_break, backend=backend, options={"measure": False})
    x = np.arange(3.0)
    for _ in range(8 * _ENOUGH):
        assert np.array_equal(compiled(x), inner_break(x))
    calls = backend.calls
    assert dyncomp.stats()["resting"] >= 1
    assert calls < 8 * _ENOUGH


def test_reports_say_so():
    backend = Backend()
    compiled = dyncomp.compile(doubled, backend=backend)
    counted(compiled, backend, _ENOUGH)
    report = dyncomp.explain(compiled)(np.arange(3.0)).details()
    assert f"its graph raised in {_ENOUGH} calls in a row: the original runs" in report


def test_nothing_is_kept_alive():
    import gc
    import weakref

    class Held:
        pass

    def make():
        held = Held()

        def f(x):
            return x * 2 + len(vars(held))

        backend = Backend()
        compiled = dyncomp.compile(f, backend=backend)
        for _ in range(2 * _ENOUGH):
            compiled(np.arange(3.0))
        return weakref.ref(held)

    found = make()
    gc.collect()
    assert found() is None
