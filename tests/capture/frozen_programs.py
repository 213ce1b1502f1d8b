"""Small programs with immutable objects of the standard library; see ``programs.Program``."""

# ruff: noqa: DTZ001, DTZ007, FURB123
from __future__ import annotations

import datetime
import decimal
import fractions
import math
import pathlib
import re
import uuid
from typing import Any

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


def shown(*values):
    """Values as types and texts, which the comparison of outcomes looks into."""
    return [(type(value), repr(value)) for value in values]


UTC = datetime.UTC


@program(one)
def dates_made(x):
    d = datetime.date(2020, 1, 2)
    e = d + datetime.timedelta(days=3)
    later = e > d
    return x * e.day, shown(e, e - d, -(e - d), d.replace(year=3)), later, str(e), f"{e:%Y-%m}", d == 3


@program(
    lambda: (vec(), datetime.datetime(2020, 1, 2, 3), datetime.timedelta(hours=3)),
    lambda: (vec(), datetime.datetime(2021, 1, 2), datetime.timedelta(hours=5)),
    lambda: (vec(), datetime.datetime(2021, 1, 2, tzinfo=UTC), datetime.timedelta(0)),
    lambda: (vec(), datetime.datetime(2021, 1, 2, fold=1), datetime.timedelta(-1)),
)
def moments_given(x, moment, span):
    if not span:
        x = x + 1
    zone = moment.tzinfo.utcoffset(None).total_seconds() if moment.tzinfo is not None else 0.5
    return x * moment.year * zone + span.total_seconds(), shown(moment + span), moment.weekday(), moment.fold


@program(one)
def dates_caught(x):
    found = []
    for text in ("2020-02-30", "2020-02-03"):
        try:
            found.append(datetime.date.fromisoformat(text).day)
        except ValueError:
            found.append("bad")
    try:
        datetime.date(2020, 1, 1) < 3  # noqa: B015
    except TypeError:
        found.append("unlike")
    return x + 1, found


@program(lambda: (vec(), fractions.Fraction(1, 3)), lambda: (vec(), fractions.Fraction(-2, 7)))
def fractions_given(x, f):
    g = f + fractions.Fraction(1, 6)
    h = g * 2 - 1
    return x * float(g), shown(g, h, abs(h), g**2, round(g, 1)), g.numerator, math.floor(h), g < 1, f"{g}"


@program(lambda: (vec(), decimal.Decimal("1.50")), lambda: (vec(), decimal.Decimal("1.5")))
def decimals_given(x, d):
    e = d * 2 + decimal.Decimal("0.25")
    return x * float(e), shown(e, -e, e.quantize(decimal.Decimal("0.01"))), str(d), e > 3, int(e)


@program(
    lambda: (vec(), pathlib.PurePosixPath("/a/b.txt")),
    lambda: (vec(), pathlib.PureWindowsPath("c:/x/y.tar.gz")),
    lambda: (vec(), pathlib.Path("some/where")),
)
def paths_given(x, p):
    q = p / "c" / "d.e"
    return x * len(q.parts), shown(q, p.parent, q.with_suffix(".f")), p.name, p.suffix, str(p), q.stem, p == q


@program(lambda: (vec(), uuid.UUID(int=5)), lambda: (vec(), uuid.UUID(int=6)))
def uuids_given(x, u):
    v = uuid.UUID("12345678123456781234567812345678")
    return x * u.int, u.hex, str(u), shown(v), u < v


@program(lambda: (vec(), re.match("a(.)", "ab")), lambda: (vec(), re.match("a(.)", "ac")))
def matches_given(x, m):
    return x * m.end(), m.group(1), m[0], m.span()


@program(
    lambda: (vec(), np.datetime64("2020-01-01"), np.timedelta64(3, "D")),
    lambda: (vec(), np.datetime64("2020-01-01T10:00"), np.timedelta64(7, "h")),
)
def numpy_times_given(x, d, t):
    later = d + t
    return (
        x * 2,
        shown(later, later - d, np.datetime64("2020-02", "M"), -t, np.datetime64("NaT", "s")),
        later.item(),
    )


@program(lambda: (vec(), np.dtype([("a", "f8"), ("b", "i4")])))
def structured_dtype(x, d):
    return x * d.itemsize, d.names, d["a"], d[1], len(d.names)


@program(
    one, breaks=("unsupported-operation", "unsupported-call", "unsupported-attribute", "loop"), plain=True
)
def decimals_that_are_rounded(x):
    decimal.getcontext().clear_flags()
    y = x + 1
    third = decimal.Decimal(1) / decimal.Decimal(3)
    flags = [bool(decimal.getcontext().flags[f]) for f in (decimal.Inexact, decimal.InvalidOperation)]
    return y * float(third), shown(third), flags


@program(
    one, breaks=("unsupported-call", "unsupported-attribute", "unsupported-operation", "clock"), plain=True
)
def of_this_moment(x):
    now = datetime.datetime.now()
    return x + 1, now.year > 2000, uuid.uuid4() != uuid.uuid4(), np.datetime64("now") > np.datetime64("2000")
