"""Context managers: generator-based ones, and those of ``contextlib``."""

from __future__ import annotations

import pytest

from tests.capture import context_programs
from tests.capture.comparing import check_program

PROGRAMS = context_programs.PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_same_as_plain_python(program):
    check_program(program)
