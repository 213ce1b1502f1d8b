"""Programs of ``functools_programs``: compiled equals plain Python, with the known breaks only."""

from __future__ import annotations

import pytest

from tests.capture.comparing import check_program
from tests.capture.functools_programs import PROGRAMS

NAMES = [p.name for p in PROGRAMS]


def test_program_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_same_as_plain_python(program):
    check_program(program, options={"recompile_limit": 64})
