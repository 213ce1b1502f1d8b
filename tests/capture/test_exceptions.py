"""Exceptions: what is caught, kept, chained and seen in tracebacks is what plain Python gives."""

from __future__ import annotations

import contextlib
import io
import traceback

import numpy as np
import pytest

import dyncomp
from tests.capture import failing_programs, leaving_programs, raised_programs, with_programs
from tests.capture.comparing import Outcome, break_ids, differences

MODULES = (raised_programs, failing_programs, with_programs, leaving_programs)
FILES = [module.__file__ for module in MODULES]
EVERY = raised_programs.WHOLE + raised_programs.BROKEN


def user_frames(error):
    found = traceback.extract_tb(error.__traceback__)
    return [(f.name, f.lineno, f.end_lineno, f.colno, f.end_colno) for f in found if f.filename in FILES]


def chain(error, depth=6):
    """Everything that can be seen of an exception."""
    if error is None or not depth:
        return None
    return {
        "type": type(error),
        "text": str(error),
        "args": list(error.args),
        "attributes": {k: v for k, v in vars(error).items() if not isinstance(v, BaseException)},
        "frames": user_frames(error),
        "cause": chain(error.__cause__, depth - 1),
        "context": chain(error.__context__, depth - 1),
        "suppressed": error.__suppress_context__,
    }


def shown(world):
    """Exceptions in results, as far as they can be compared."""
    if isinstance(world, BaseException):
        return chain(world)
    if isinstance(world, (list, tuple)):
        return type(world)(shown(item) for item in world)
    return world


def outcome(function):
    x, log = np.linspace(0.5, 2.5, 5), []
    printed = io.StringIO()
    result = error = None
    with contextlib.redirect_stdout(printed):
        try:
            result = function(x, log)
        except BaseException as raised:
            error = chain(raised)
    kind = "returned" if error is None else "raised"
    return Outcome(kind, [x, shown(log), shown(result), error], None, printed.getvalue())


def compiled(function, backend="eager"):
    return dyncomp.compile(function, backend=backend, options={"debug_verify": True})


@pytest.mark.parametrize("program", EVERY, ids=[p.__name__ for p in EVERY])
def test_same_as_plain_python(program):
    expected = outcome(program)
    ours = compiled(program)
    for _ in range(2):
        problems = differences(expected, outcome(ours))
        assert not problems, "\n".join(problems)
    assert ours.config.records.counters["internal_errors"] == 0


@pytest.mark.parametrize("program", raised_programs.WHOLE, ids=[p.__name__ for p in raised_programs.WHOLE])
def test_captured_whole(program):
    ours = compiled(program)
    outcome(ours)
    assert break_ids(ours.config.records) == []
    assert not ours.config.records.skipped


@pytest.mark.parametrize("name", ["in_callee", "with_swallowed", "leaves_from_graph", "opaque_call_raises"])
def test_same_in_cpp(name):
    program = next(p for p in EVERY if p.__name__ == name)
    expected = outcome(program)
    ours = compiled(program, "inductor")
    for _ in range(2):
        assert not differences(expected, outcome(ours), 1e-9)


def test_names_are_unique():
    names = [p.__name__ for p in EVERY]
    assert len(set(names)) == len(names)
    assert len(names) >= 120


def test_context_of_an_exception_handled_outside():
    """What the caller is handling becomes the context, as it does in plain Python."""

    def fails(x, log):
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer")  # noqa: B904

    def under(function):
        try:
            raise OSError("outside")
        except OSError:
            return outcome(function)

    expected = under(fails)
    for _ in range(2):
        assert not differences(expected, under(compiled(fails)))


def test_capture_goes_on_behind_a_handler():
    ours = compiled(leaving_programs.opaque_call_raises)
    outcome(ours)
    entries = ours.config.records.entries
    assert sum(entry.graph is not None for entry in entries) == 2
