"""Programs of ``derived_programs``: compiled equals plain Python; what the class defines decides."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import break_ids, check
from tests.capture.derived_programs import PROGRAMS, Plain, Stack

NAMES = [p.name for p in PROGRAMS]


def test_program_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_same_as_plain_python(program):
    records = check(program.function, *program.makers, repeats=3, options={"recompile_limit": 64})
    assert records.counters["internal_errors"] == 0
    assert set(break_ids(records)) <= set(program.breaks), [
        b.reason for e in records.entries for b in e.breaks
    ]
    assert program.plain or not records.skipped, records.skipped


def reads(d, x):
    return x + d["a"] + len(d)


def test_guards_see_what_changes():
    compiled = dyncomp.compile(reads, backend="eager")
    x = np.ones(2)
    for d in (Plain(a=1), Plain(a=2), Plain(a=1, b=3), {"a": 1}, Plain(a=np.ones(2)), Plain(b=1, a=1)):
        np.testing.assert_array_equal(compiled(d, x), reads(d, x))


def test_a_method_that_a_class_gets_later(monkeypatch):
    compiled = dyncomp.compile(reads, backend="eager")
    x = np.ones(2)
    np.testing.assert_array_equal(compiled(Plain(a=1), x), x + 2)
    monkeypatch.setattr(Plain, "__getitem__", lambda self, key: 50, raising=False)
    np.testing.assert_array_equal(compiled(Plain(a=1), x), x + 51)
    monkeypatch.setattr(Plain, "__len__", lambda self: 7, raising=False)
    np.testing.assert_array_equal(compiled(Plain(a=1), x), x + 57)


def total(s, x):
    for v in s:
        x = x + v
    return x


def test_a_list_of_another_length():
    compiled = dyncomp.compile(total, backend="eager")
    x = np.ones(2)
    for s in (Stack([1, 2]), Stack([1, 2, 3]), [1, 2], Stack([]), Stack([1, 3])):
        np.testing.assert_array_equal(compiled(s, x), total(s, x))


def test_backend_inductor():
    check(reads, lambda: (Plain(a=1.5), np.ones(3)), backend="inductor")


class Keyed:
    """Says itself what its keys and items are."""

    def __init__(self, scale):
        self.scale = scale

    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return {"a": 1, "b": 2}[key] * self.scale


class Tenfold(collections.OrderedDict):
    def __getitem__(self, key):
        return super().__getitem__(key) * 10


class Hiding(dict):
    def __iter__(self):
        return iter(["b"])

    def keys(self):
        return ["a"]


def unpacks(given, x):
    return dict(**given), {**given, "z": 1}, x + sum({**given}.values())


@pytest.mark.parametrize("make", [lambda: Keyed(3), lambda: Tenfold(a=1, b=2), lambda: Hiding(a=1, b=2)])
def test_unpacking_asks_the_object(make):
    x = np.ones(2)
    found = dyncomp.compile(unpacks, backend="eager", fullgraph=True)(make(), x)
    expected = unpacks(make(), x)
    assert found[:2] == expected[:2] and list(found[1]) == list(expected[1])
    np.testing.assert_array_equal(found[2], expected[2])
