"""Sets of objects that are told by identity, made in captured code."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp


class Part:
    def __init__(self, weight):
        self.weight = weight


class Equal(Part):
    def __eq__(self, other):
        return isinstance(other, Equal)

    def __hash__(self):
        return 1


def distinct(x, parts):
    seen = set()
    for part in parts:
        if part not in seen:
            seen.add(part)
            x = x * part.weight
    return x, len(seen), bool(seen), 3 in seen, None in seen


def kept(x, parts):
    seen = set()
    seen.add(parts[0])
    return x + 1, seen


def walked(parts):
    memo = set()
    for part in parts:
        if part not in memo:
            memo.add(part)
            yield part


def by_generator(x, parts):
    for part in walked(parts):
        x = x + part.weight
    return x


def emptied(x, parts):
    seen = set()
    seen.add(parts[0])
    seen.discard(parts[0])
    return x + len(seen)


@pytest.mark.parametrize("function", [distinct, by_generator, emptied])
@pytest.mark.parametrize("cls", [Part, Equal])
def test_same_as_plain(function, cls):
    x = np.arange(3.0)
    a, b = cls(2.0), cls(3.0)
    compiled = dyncomp.compile(function, backend="eager")
    for parts in ([a, b, a], [a, b], [b, a, b], [a, a, a], [a, b, a]):
        expected, found = function(x, parts), compiled(x, parts)
        assert repr(expected) == repr(found)


def test_one_graph():
    x, a, b = np.arange(3.0), Part(2.0), Part(3.0)
    for function in (distinct, by_generator):
        report = dyncomp.explain(function, backend="eager")(x, [a, b, a])
        assert report.breaks == [] and report.skipped == []


def test_a_set_that_is_returned():
    x, a = np.arange(3.0), Part(2.0)
    report = dyncomp.explain(kept, backend="eager")(x, [a])
    assert report.result[1] == {a} and report.breaks == []


def test_a_class_that_defines_equality_later():
    x, a, b = np.arange(3.0), Part(2.0), Part(3.0)
    compiled = dyncomp.compile(distinct, backend="eager")
    assert compiled(x, [a, b])[1] == 2
    try:
        Part.__eq__ = lambda self, other: True
        Part.__hash__ = lambda self: 1
        assert compiled(x, [a, b])[1] == 1
    finally:
        del Part.__eq__, Part.__hash__
    assert compiled(x, [a, b])[1] == 2


def found_again(x, parts, others):
    seen = set()
    for part in parts:
        if part not in seen:
            seen.add(part)
            x = x + part.weight
    return x, [part in seen for part in others], len(seen)


@pytest.mark.parametrize("function", [distinct, by_generator])
def test_many_objects(function):
    """One guard says that they are distinct, and a call in which two are the same is captured anew."""
    dyncomp.reset()
    x = np.arange(3.0)
    parts = [Part(1.0 + k / 100) for k in range(60)]
    compiled = dyncomp.compile(function, backend="eager", options={"unroll_limit": 100, "unroll_ops": 4000})
    for order in (parts, parts[::-1], [*parts[:59], parts[3]], parts, [parts[0], *parts[:59]]):
        assert repr(compiled(x, order)) == repr(function(x, order))
    stats = dyncomp.stats()
    assert stats["breaks"] == {} and stats["frames_skipped"] == 0 and stats["graphs"] > 1


def test_many_objects_and_others():
    x = np.arange(3.0)
    parts, more = ([Part(1.0 + k / 100) for k in range(30)] for _ in range(2))
    options = {"unroll_limit": 100, "unroll_ops": 4000}
    compiled = dyncomp.compile(found_again, backend="eager", options=options)
    cases = [(parts, more[:3]), (parts, [parts[5], more[0]]), (parts, [more[0], more[0]]), (parts, more[:3])]
    cases += [([*parts[:29], more[1]], more[:3])]
    for order, others in cases:
        assert repr(compiled(x, order, others)) == repr(found_again(x, order, others))
