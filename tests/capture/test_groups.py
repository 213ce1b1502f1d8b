"""Exception groups and ``except*``: as in plain Python, and without a graph break where nothing escapes."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check_program
from tests.capture.group_programs import PROGRAMS, made_outside, shape


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_same_as_plain_python(program):
    check_program(program)


def test_groups_that_are_returned():
    compiled = dyncomp.compile(made_outside, backend="eager")
    for _ in range(2):
        whole, half, _ = compiled(np.ones(3))
        expected, expected_half, _ = made_outside(np.ones(3))
        assert shape(whole) == shape(expected)
        assert shape(half) == shape(expected_half)
        assert whole.exceptions[0] is half.exceptions[0]
        assert half.__cause__ is whole.__cause__
        assert whole.args[1] == list(whole.exceptions)
        for one, other in ((whole, expected), (half, expected_half)):
            assert one.__suppress_context__ == other.__suppress_context__
            assert one.__traceback__ is other.__traceback__ is None


def test_what_escapes_has_its_traceback():
    def raises(x):
        y = x + 1
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            y = y * 2
        return y

    compiled = dyncomp.compile(raises, backend="eager")
    lines = []
    for function in (raises, compiled, compiled):
        with pytest.raises(ExceptionGroup) as caught:
            function(np.ones(3))
        assert shape(caught.value) == ["ExceptionGroup", "g", [["KeyError", 2]]]
        frames = caught.value.__traceback__
        lines.append([])
        while frames is not None:
            if frames.tb_frame.f_code.co_name == "raises":
                lines[-1].append(frames.tb_lineno)
            frames = frames.tb_next
    assert lines[0] == lines[1] == lines[2]


def raised_again(x, kind):
    count = 0
    while count < 3:
        count += 1
        try:
            try:
                if kind == "naked":
                    raise ValueError(3)
                raise ExceptionGroup("g", [ValueError(1), OSError(2)])
            except* (KeyError, ValueError):
                if kind == "other":
                    raise RuntimeError(kind)  # noqa: B904
                raise
        except TypeError:
            pass
        x = x + 1
    return x


@pytest.mark.parametrize("kind", ["naked", "group", "other"])
def test_groups_raised_again_have_the_frames_of_plain_python(kind):
    def frames(error):
        found = [(f.f_code.co_name, line) for f, line in traceback.walk_tb(error.__traceback__)]
        return found[1:], [frames(member) for member in getattr(error, "exceptions", ())]

    compiled = dyncomp.compile(raised_again, backend="eager")
    found = []
    for function in (raised_again, compiled, compiled):
        with pytest.raises((ExceptionGroup, RuntimeError)) as caught:
            function(np.ones(3), kind)
        found.append(frames(caught.value))
    assert found[0] == found[1] == found[2]
