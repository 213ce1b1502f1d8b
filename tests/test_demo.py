"""The demo: its comparison sees what is wrong, and every program gives under dyncomp what NumPy gives."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pytest

import dyncomp
from demo.catalog import LIBRARY, PROGRAMS, Program, installed, select
from demo.check import Comparison, compare
from demo.runner import WARM_UP_CALLS, count, run, timed

PROGRAM = Program("same", "math", "sin", lambda quick: (), rtol=1e-12)
EVERYTHING = (*PROGRAMS, *LIBRARY)


def problems(expected, found, rtol=1e-12, differing=0.0):
    comparison = Comparison(rtol, differing)
    comparison.same(expected, found, "result")
    return comparison.problems


def test_catalogue_holds_what_was_promised():
    names = [program.name for program in EVERYTHING]
    assert len(set(names)) == len(names)
    assert len(PROGRAMS) >= 8
    assert len(LIBRARY) >= 6
    assert [p.name for p in select(["heat", "kmeans"])] == ["kmeans", "heat"]
    with pytest.raises(KeyError, match="no_such"):
        select(["heat", "no_such"])


def test_programs_know_nothing_of_dyncomp():
    for program in PROGRAMS:
        program.load()
        with open(sys.modules[program.module].__file__, encoding="utf-8") as source:
            assert "dyncomp" not in source.read()


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (np.ones(3), np.ones(3, np.float32)),
        (np.ones(3), np.ones((3, 1))),
        (np.ones(3), np.array([1.0, 1.0, 1.0 + 1e-9])),
        (np.ones(3), np.array([1.0, 1.0, np.nan])),
        (np.array([1.0, np.nan]), np.ones(2)),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf])),
        (np.arange(3), np.array([0, 1, 3])),
        (np.float64(1.0), 1.0),
        (1.0, np.float64(1.0)),
        ((1, 2), [1, 2]),
        ((1, 2), (1, 2, 3)),
        ({"a": 1}, {"a": 2}),
        ("yes", "no"),
        (np.random.default_rng(1), np.random.default_rng(2)),
    ],
)
def test_comparison_sees_a_difference(expected, found):
    assert problems(expected, found)


def test_comparison_passes_what_is_near_enough():
    assert not problems(np.array([1.0, 1e-9, np.nan]), np.array([1.0, 1e-9 + 1e-14, np.nan]))
    assert not problems(np.arange(1000), np.arange(1000) + (np.arange(1000) == 7), differing=1e-3)
    assert not problems((np.zeros(0), None, "a", True), (np.zeros(0), None, "a", True))


def test_comparison_sees_mutation_and_aliases():
    x = np.ones(3)
    changed = np.zeros(3)
    assert not compare(PROGRAM, 1, (x,), 1, (x.copy(),)).problems
    assert compare(PROGRAM, 1, (x,), 1, (changed,)).problems
    assert compare(PROGRAM, x, (x,), x.copy(), (x.copy(),)).problems


def test_wrong_results_end_in_a_complaint_and_a_status(monkeypatch, capsys):
    pytest.importorskip("rich")
    from demo.__main__ import main

    def wrong(function):
        return lambda *arguments: tuple(part + 1e-6 for part in function(*arguments))

    def raising(function):
        def call(*arguments):
            raise ArithmeticError("no luck")

        return call

    flags = ["--quick", "--budget", "0", "--explain", "none", "black_scholes"]
    for compiler, text in ((wrong, "relative error"), (raising, "no luck")):
        monkeypatch.setattr(dyncomp, "compile", compiler)
        assert main(flags) == 1
        printed = capsys.readouterr().out
        assert text in printed
        assert "WRONG" in printed
    monkeypatch.setattr(dyncomp, "compile", lambda function: function)
    assert main(flags) == 1
    assert "nothing was compiled" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(flags) == 0
    assert "right" in capsys.readouterr().out


def test_runs_work_on_copies():
    x = np.zeros(3)

    def fill(array):
        array += 1.0

    _, _, (left,) = timed(fill, (x,))
    assert x.sum() == 0.0
    assert left.sum() == 3.0
    assert count({"breaks": {"a": 2, "b": 3}, "graphs": 4}, "breaks") == 5
    assert count({"graphs": 4}, "graphs") == 4


@pytest.mark.parametrize("program", EVERYTHING, ids=lambda program: program.name)
def test_program_is_right_and_captured(program):
    if not installed(program):
        pytest.skip("its package is not installed")
    dyncomp.reset()
    arguments = program.make_inputs(True)
    _, expected, expected_arguments = timed(program.load(), arguments)
    compiled = dyncomp.compile(program.compiled_from())
    for _ in range(WARM_UP_CALLS):
        _, found, found_arguments = timed(compiled, copy.deepcopy(arguments))
        comparison = compare(program, expected, expected_arguments, found, found_arguments)
        assert not comparison.problems, comparison.problems
    assert dyncomp.stats()["graphs"] >= 1
    assert dyncomp.stats()["floating_point_reruns"] == 0  # none of them warns


def test_outcome_of_a_right_program():
    outcome = run(select(["black_scholes"])[0], quick=True, budget=0.0)
    assert not outcome.problems
    assert outcome.graphs >= 1
    assert 0.0 <= outcome.error <= 1e-12
    assert outcome.numpy_ms > 0
    assert outcome.dyncomp_ms > 0
