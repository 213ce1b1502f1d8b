"""Loops inside ``try`` and ``with``, what follows them, comprehensions, loops over keys."""

from __future__ import annotations

import logging
import traceback

import pytest

import dyncomp
from tests.capture import loop_exit_programs
from tests.capture.comparing import check, check_program, graphs
from tests.capture.programs import vec

PROGRAMS = loop_exit_programs.PROGRAMS
NAMES = [p.name for p in PROGRAMS]
IN_CPP = [
    p for p in PROGRAMS if p.name in ("loop_in_try", "handler_reads_what_the_loop_assigns", "many_keys")
]


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_same_as_plain_python(program, caplog):
    with caplog.at_level(logging.WARNING, logger="dyncomp"):
        records = check_program(program)
    assert graphs(records) >= loop_exit_programs.GRAPHS[program.name]
    assert not caplog.records  # no loop runs into the limit of recompilations


@pytest.mark.parametrize("program", IN_CPP, ids=[p.name for p in IN_CPP])
def test_same_in_cpp(program):
    check(program.function, *program.makers, backend="inductor")


def test_lines_of_an_exception_that_a_loop_body_gives_back():
    def program(x):
        try:
            for i in range(20):
                x = x + loop_exit_programs.fails_at(i, 12)
        except KeyError:
            return x
        return x * 2

    compiled = dyncomp.compile(program, backend="eager")
    lines = []
    for function in (program, compiled, compiled):
        with pytest.raises(ValueError, match="at 12") as caught:
            function(vec())
        frames = traceback.extract_tb(caught.value.__traceback__)
        lines.append([(f.name, f.lineno) for f in frames if f.name in ("program", "fails_at")])
    assert lines[1][-2:] == lines[2][-2:] == lines[0][-2:]
