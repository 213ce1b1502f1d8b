"""Context managers: generator-based ones, and those of ``contextlib``."""

from __future__ import annotations

import pytest

from tests.capture import context_programs
from tests.capture.comparing import break_ids, check

PROGRAMS = context_programs.PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_same_as_plain_python(program):
    records = check(program.function, *program.makers)
    assert set(break_ids(records)) <= set(program.breaks)
    assert program.plain or not records.skipped, records.skipped
    assert records.counters["internal_errors"] == 0
