"""Programs of ``corner_programs``: compiled equals plain Python, wherever the graph breaks."""

from __future__ import annotations

import pytest

from tests.capture.comparing import check
from tests.capture.corner_programs import PROGRAMS

NAMES = [p.name for p in PROGRAMS]


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_same_as_plain_python(program):
    records = check(program.function, *program.makers)
    assert records.counters["internal_errors"] == 0
