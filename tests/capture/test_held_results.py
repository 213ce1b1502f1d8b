"""Cached functions asked for what their caches hold: after changes, with objects; attributes of tensors."""

from __future__ import annotations

import functools
import logging

import numpy as np
import pytest

import dyncomp

X = np.arange(4.0)
calls = []
logger = logging.getLogger("dyncomp.tests.held")


@functools.lru_cache
def limit(name, scale=1):
    calls.append(name)
    return len(name) * scale


@functools.lru_cache(None)
def told_once(who, text):
    calls.append(text)


class Box:
    def __init__(self):
        self.seen = 0


box = Box()


def after_a_change(x, box):
    box.seen = box.seen + 1
    return x * limit("abc", scale=2) + box.seen


def of_an_object(x):
    told_once(logger, "slow")
    return x + 1


def compiled_once(program):
    return dyncomp.compile(program, backend="eager", fullgraph=True)


def test_after_a_change():
    limit.cache_clear()
    calls.clear()
    limit("abc", scale=2)
    fast = compiled_once(after_a_change)
    mine, theirs = Box(), Box()
    for _ in range(3):
        assert np.array_equal(fast(X, mine), after_a_change(X, theirs))
    assert mine.seen == theirs.seen == 3 and calls == ["abc"]
    limit.cache_clear()
    assert np.array_equal(fast(X, mine), after_a_change(X, theirs))
    assert mine.seen == theirs.seen == 4 and calls == ["abc", "abc"]
    assert fast(X, mine)[0] == 5


def test_hits_are_counted():
    limit.cache_clear()
    limit("abc", scale=2)
    fast = compiled_once(after_a_change)
    fast(X, box)
    hits = limit.cache_info().hits
    fast(X, box)
    assert limit.cache_info().hits == hits + 1


def test_of_an_object(monkeypatch):
    told_once.cache_clear()
    calls.clear()
    of_an_object(X)
    fast = compiled_once(of_an_object)
    for _ in range(2):
        assert np.array_equal(fast(X), X + 1)
    assert calls == ["slow"]
    told_once.cache_clear()
    assert np.array_equal(fast(X), X + 1) and calls == ["slow", "slow"]
    monkeypatch.setitem(globals(), "logger", logging.getLogger("dyncomp.tests.another"))
    again = dyncomp.compile(of_an_object, backend="eager")
    for function in (fast, again):
        told_once.cache_clear()
        try:
            assert np.array_equal(function(X), X + 1)
        except dyncomp.errors.GraphBreakError:
            assert function is fast  # not held for this logger
            continue
        assert calls[-1] == "slow"


def test_not_held():
    told_once.cache_clear()
    calls.clear()
    fast = dyncomp.compile(of_an_object, backend="eager")
    for _ in range(3):
        assert np.array_equal(fast(X), X + 1)
    assert calls == ["slow"]


def test_attributes_of_tensors():
    torch = pytest.importorskip("torch")

    def marks(x, kept):
        y = x * 2
        y._mark = "fixed"
        x._mark = "given"
        kept["y"] = y
        return y + 1, x._mark, hasattr(y, "_mark"), hasattr(y, "_other")

    fast = compiled_once(marks)
    for _ in range(2):
        x, kept = torch.ones(3), {}
        result = fast(x, kept)
        assert torch.equal(result[0], torch.full((3,), 3.0)) and result[1:] == ("given", True, False)
        assert x._mark == "given" and kept["y"]._mark == "fixed"


def test_routine_that_refuses_without_memory():
    torch = pytest.importorskip("torch")
    if not hasattr(torch, "_grouped_mm"):
        pytest.skip("this torch has no grouped product")

    def groups(x, w, ends):
        return torch._grouped_mm(x * 2, w, offs=ends) + 1

    x, w = torch.randn(8, 16), torch.randn(2, 16, 16)
    ends = torch.tensor([3, 8], dtype=torch.int32)
    try:
        expected = groups(x, w, ends)
    except RuntimeError as error:
        pytest.skip(str(error))
    assert torch.allclose(compiled_once(groups)(x, w, ends), expected)
