"""Immutable objects of the standard library: constants by guards on their values."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check_program
from tests.capture.frozen_programs import PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_same_as_plain_python(program):
    check_program(program)


def test_objects_from_outside_are_kept():
    def keeps(x, d):
        later = d + datetime.timedelta(1)
        return x + d.year, d, later, later

    compiled = dyncomp.compile(keeps, backend="eager")
    d = datetime.date(2020, 1, 1)
    for day in (d, datetime.date(2020, 1, 1), datetime.date(2020, 1, 1)):
        _, same, later, again = compiled(np.ones(3), day)
        assert same is day
        assert later is again


def test_a_date_that_changes_at_each_call():
    def year(x, d):
        return x * 2, d.toordinal()

    compiled = dyncomp.compile(year, backend="eager")
    for k in range(30):
        d = datetime.date(2020, 1, 1) + datetime.timedelta(k)
        found, number = compiled(np.ones(3), d)
        assert number == d.toordinal()
        assert found.tolist() == [2.0] * 3
    records = compiled.config.records
    assert sum(entry.name == "year" for entry in records.entries) < 12
    assert any(entry.graph is not None for entry in records.entries)


def test_decimal_context_is_guarded():
    def halves(x, d):
        e = d * decimal.Decimal("1.25")
        return x + 1, str(e), e

    compiled = dyncomp.compile(halves, backend="eager")
    d = decimal.Decimal("1.2345")
    for precision in (28, 3, 28, 4):
        with decimal.localcontext() as context:
            context.prec = precision
            context.clear_flags()
            expected = halves(np.ones(3), d)
            flags = dict(context.flags)
            context.clear_flags()
            found = compiled(np.ones(3), d)
            assert found[1:] == expected[1:]
            assert dict(context.flags) == flags


def test_the_same_value_of_another_form():
    def text(x, d):
        return x * 2, str(d), repr(d)

    compiled = dyncomp.compile(text, backend="eager")
    utc = datetime.UTC
    for values in (
        [decimal.Decimal(t) for t in ("1.0", "1.00", "-0", "0", "NaN", "sNaN", "1E+1", "10")],
        [datetime.datetime(2020, 1, 1, tzinfo=zone, fold=f) for zone in (None, utc) for f in (0, 1)],
        [datetime.timezone(datetime.timedelta(0), name) for name in ("UTC", "GMT")],
    ):
        for d in values:
            assert compiled(np.ones(3), d)[1:] == (str(d), repr(d))
