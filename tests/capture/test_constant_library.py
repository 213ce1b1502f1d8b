"""Library functions and objects of constants that are answered at capture; enums; simple namespaces."""

from __future__ import annotations

import contextvars
import enum
import functools
import inspect
import json
import os.path
import re
import textwrap
import types

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import break_ids, check

PATTERN = re.compile(r"(?P<name>\w+)=(?P<value>\d+)")


def one():
    return (np.arange(1.0, 5.0),)


def matches(x):
    m = PATTERN.match("lr=3")
    if m and not PATTERN.search("nothing"):
        x = x * int(m["value"]) + m.start("name")
    return x, m.group(1), m.groups(), m.groupdict(), m.span(), PATTERN.pattern, m.string, m.lastgroup


def searches(x):
    found = re.search(r"(\d+)x(\d+)", "a 3x4")
    pieces = re.split(r"[,;]", "a,b;c")
    return (
        x * int(found.group(2)),
        pieces,
        re.sub("a", "b", "banana"),
        re.findall("n", "banana"),
        re.escape("a.b"),
    )


def keeps_a_match(x):
    return re.match("a", "abc"), PATTERN.match("a=1"), re.compile("b"), x + 1


def patterns_are_kept(x):
    return re.compile("b") is re.compile("b"), x + 1


def flags(x):
    return x + bool(re.match("A", "a", re.IGNORECASE)), re.compile("x", flags=re.I).flags


def with_a_function(x):
    return x + 1, re.sub("a", lambda m: m.group().upper(), "banana")


def wrong_pattern(x):
    try:
        re.match("(", "a")
    except re.error as error:
        return x + 1, str(error)
    return x


def paths_and_texts(x):
    name, extension = os.path.splitext("data/file.npy")
    made = json.loads('{"a": [1, 2, {"b": null}]}')
    made["a"].append(x)
    return (
        os.path.join("a", "b", "c"),
        os.path.basename(name),
        extension,
        textwrap.dedent("  a\n  b"),
        json.dumps({"k": [1, 2.5, "s"]}),
        made,
        x * len(name),
    )


def kinds(x):
    def inner():
        return 1

    return (
        x + inspect.isfunction(inner),
        inspect.isfunction(one),
        inspect.isclass(dict),
        inspect.isclass(3),
        inspect.ismodule(np),
        inspect.isbuiltin(len),
        inspect.ismethod(x.sum),
    )


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


class Parts(enum.Flag):
    A = 1
    B = 2
    C = 4


FACTORS = {Mode.FAST: 2.0, Mode.SLOW: 0.5}
BY_COLOR = {Color.RED: "r", 2: "b"}
MODES = frozenset({Mode.FAST})


def enums_in_arithmetic(x):
    small = x.astype(np.int8)
    return (
        x + Color.RED,
        small + Color.BLUE,
        Color.BLUE * x.astype(np.float32),
        x[Color.RED],
        np.maximum(x, Color.BLUE),
    )


def enum_keys(x, mode):
    return (
        x * FACTORS[mode],
        BY_COLOR[Color.RED],
        BY_COLOR[Color.BLUE],
        BY_COLOR.get(Color.BLUE),
        mode in MODES,
        len(FACTORS),
    )


def enum_flags(x):
    chosen = Parts.A | Parts.B
    if Parts.C in chosen or not chosen & Parts.A:
        x = x * 100
    return x + 1, chosen, ~Parts.A, Parts.B in chosen, chosen.value, chosen ^ Parts.A


def namespaces(x):
    n = types.SimpleNamespace(a=1, b=x)
    n.c = 3
    same = types.SimpleNamespace(a=1) == types.SimpleNamespace(a=1)
    names = list(vars(n))
    vars(n)["d"] = 4
    return (
        n.b + n.a + n.d,
        n,
        names,
        same,
        types.SimpleNamespace(a=1) != types.SimpleNamespace(),
        n.__dict__["a"],
    )


class Shape:
    @functools.singledispatchmethod
    def size(self, of):
        return of + 1

    @size.register
    def _(self, of: int):
        return of + 2

    @size.register(list)
    def _(self, of):
        return len(of)


def dispatching_methods(x):
    s = Shape()
    return s.size(x) + s.size(3) + s.size([1, 2])


WHOLE = [
    matches,
    searches,
    keeps_a_match,
    flags,
    paths_and_texts,
    kinds,
    enums_in_arithmetic,
    enum_flags,
    namespaces,
]


@pytest.mark.parametrize("function", WHOLE)
def test_without_a_break(function):
    records = check(function, one, repeats=3)
    assert not break_ids(records), [b.reason for e in records.entries for b in e.breaks]
    assert not records.skipped, records.skipped


def test_with_breaks():
    for function in (with_a_function, wrong_pattern, patterns_are_kept, dispatching_methods):
        check(function, one)


def test_another_object_each_time():
    compiled = dyncomp.compile(keeps_a_match, backend="eager")
    first, second = compiled(*one()), compiled(*one())
    assert first[0] is not second[0]
    assert first[1].groups() == second[1].groups() == ("a", "1")


def test_enum_keys():
    records = check(enum_keys, lambda: (*one(), Mode.FAST), lambda: (*one(), Mode.SLOW), repeats=3)
    assert not break_ids(records)
    compiled = dyncomp.compile(enum_keys, backend="eager")
    compiled(*one(), Mode.FAST)
    FACTORS[Mode.FAST] = 7.0
    try:
        np.testing.assert_array_equal(compiled(*one(), Mode.FAST)[0], one()[0] * 7)
    finally:
        FACTORS[Mode.FAST] = 2.0


VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE", default=1)


def calls_methods_of_the_class(x):
    token = contextvars.ContextVar.set(VARIABLE, 5)
    y = x + VARIABLE.get()
    VARIABLE.reset(token)
    return y, VARIABLE.get()


def test_nothing_is_changed_at_capture():
    check(calls_methods_of_the_class, one, repeats=3)
