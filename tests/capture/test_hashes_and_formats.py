"""What is hashed by its identity or by the program, formats that are no strings, equal times that differ."""

from __future__ import annotations

import datetime
import decimal
import fractions

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check


class Hashed:
    def __hash__(self):
        return 42


class Late(float, Hashed):
    """Hashed as ``float`` says."""


class Number(float):
    pass


class Pair(complex):
    pass


def made_inside(x):
    values = Late("nan"), Number("nan"), Pair(1, float("nan")), float("nan")
    return [hash(v) == object.__hash__(v) for v in values], x + 1


def decimals_made_inside(x):
    a = decimal.Decimal("nan")
    b = decimal.Decimal("inf") - decimal.Decimal(1)
    return hash(a) == object.__hash__(a), hash(b) == hash(float("inf")), a == a, x + 1


def given(x, value):
    return hash(value) == object.__hash__(value), value == value, x * 2


@pytest.mark.parametrize("program", [made_inside, decimals_made_inside])
def test_hashes_of_what_is_made_inside(program):
    check(program, lambda: (np.ones(2),), repeats=3)


@pytest.mark.filterwarnings("ignore:The 'generic' unit")
@pytest.mark.parametrize("make", [float, Number, Late, decimal.Decimal, np.float64, np.datetime64])
def test_hashes_of_arguments(make):
    compiled = dyncomp.compile(given, backend="eager")
    x = np.ones(2)
    for text in ["nat"] * 3 if make is np.datetime64 else ["nan", "nan", "1.5", "nan"]:
        value = make(text)
        assert compiled(x, value)[:2] == given(x, value)[:2]


class Told:
    def __format__(self, spec):
        return f"<{spec!r}>"


class Silent:
    pass


FORMATTED = [
    Told(),
    Silent(),
    fractions.Fraction(1, 2),
    1.5,
    "a",
    [1],
    ValueError("v"),
    np.ones(2),
    np.float32(2),
]


def formatted(x, value, spec):
    return format(value, spec), x + 1


@pytest.mark.parametrize("value", FORMATTED, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("spec", [None, 3, b"", [], ""], ids=repr)
def test_formats(value, spec):
    check(formatted, lambda: (np.ones(2), value, spec))


ZONES = [None, *(datetime.timezone(datetime.timedelta(hours=1), *name) for name in ([], ["A"], ["B"]))]
MOMENTS = [datetime.datetime(2020, 1, 1, tzinfo=zone, fold=fold) for zone in ZONES for fold in (0, 1)]
MOMENTS += [datetime.time(3, tzinfo=zone, fold=fold) for zone in ZONES for fold in (0, 1)]


def asked_of_moments(x, moment):
    return moment.fold, moment.tzname(), moment.tzinfo, str(moment), repr(moment), x + 1


def moments_made(x, moment):
    made = datetime.datetime(2021, 5, 1, fold=1, tzinfo=moment.tzinfo)
    return repr(made), made, moment.replace(hour=4), x + 1


@pytest.mark.parametrize("program", [asked_of_moments, moments_made])
def test_equal_moments_that_differ(program):
    compiled = dyncomp.compile(program, backend="eager", options={"recompile_limit": 64})
    x = np.ones(2)
    for moment in MOMENTS:
        plain = program(x, moment)[:-1]
        found = compiled(x, moment)[:-1]
        assert repr(found) == repr(plain)
        assert found[2] is plain[2] or program is moments_made


class Loud(str):
    """Equal to what it holds, and says when it is asked."""

    asked: list[object] = []

    def __eq__(self, other):
        Loud.asked.append(other)
        return str.__eq__(self, other)

    def __hash__(self):
        return str.__hash__(self)


def looked_up(x, d):
    return "a" in d, d.get("b"), "c" in d, x + 1


def test_keys_are_compared_when_the_program_says_so():
    compiled = dyncomp.compile(looked_up, backend="eager")
    for d in ({Loud("a"): 1, "b": 2}, {Loud("b"): 3}, {"a": 1}, {Loud("c"): 1}):
        outcomes = []
        for function in (looked_up, compiled):
            Loud.asked.clear()
            found = function(np.ones(2), d)[:-1]
            outcomes.append((found, list(Loud.asked)))
        assert outcomes[0] == outcomes[1]
