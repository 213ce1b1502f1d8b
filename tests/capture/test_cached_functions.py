"""Functions under ``lru_cache``: the cache sees the calls of plain Python, and capture goes through."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import dyncomp

LOG: list[int] = []


@functools.lru_cache
def large(n, kind="a"):
    return n > 2


@functools.lru_cache
def logged(n):
    LOG.append(n)
    return n + 1


@functools.lru_cache
def table(n):
    return np.arange(n)


def branches(x, n):
    y = x * 2
    if large(n):
        y = y + 1
    if large(n, kind="b"):
        y = y * 3
    return y - 1


def with_effect(x, n):
    y = x * 2
    return y + logged(n)


def of_arrays(x, n):
    return x + table(3)


def observed(function, calls):
    for cached in (large, logged, table):
        cached.cache_clear()
    LOG.clear()
    results = [function(np.ones(3), n) for n in calls]
    infos = [cached.cache_info() for cached in (large, logged, table)]
    return results, infos, list(LOG)


@pytest.mark.parametrize("program", [branches, with_effect, of_arrays])
def test_cache_is_used_as_in_plain_python(program):
    compiled = dyncomp.compile(program, backend="eager")
    for calls in ([3, 3], [1, 3, 1], [3, 5, 3]):
        np.testing.assert_equal(observed(compiled, calls), observed(program, calls))


def test_no_break_for_a_pure_function():
    report = dyncomp.explain(branches)(np.ones(3), 3)
    assert not report.breaks


def test_cached_result_that_is_no_longer_what_the_function_gives():
    limit = [2]

    @functools.lru_cache
    def beyond(n):
        return n > limit[0]

    def program(x, n):
        return x + 1 if beyond(n) else x - 1

    compiled = dyncomp.compile(program, backend="eager")
    x = np.zeros(2)
    assert compiled(x, 3)[0] == 1
    limit[0] = 10
    assert compiled(x, 3)[0] == program(x, 3)[0] == 1  # the cache remembers
    beyond.cache_clear()
    assert compiled(x, 3)[0] == program(x, 3)[0] == -1


LIMIT = [2]


@functools.lru_cache
def above_the_limit(n):
    return n > LIMIT[0]


def written_before(x, n):
    above_the_limit.cache_clear()
    x = x + 1
    LIMIT[0] = n
    answers = above_the_limit(3), above_the_limit(5)
    return x, answers, above_the_limit.cache_info()


def made_in_a_loop(x, n):
    found = []
    for _ in range(n % 8):

        @functools.lru_cache
        def fib(k):
            return k if k < 2 else fib(k - 1) + fib(k - 2)

        x = x + fib(7)
        found.append(fib.cache_info())
    return x, found


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", [written_before, made_in_a_loop])
def test_cached_function_that_reads_what_the_frame_has_written(program, dynamic):
    compiled = dyncomp.compile(program, backend="eager", dynamic=dynamic)
    for n in (4, 4, 2, 6):
        np.testing.assert_equal(compiled(np.ones(3), n), program(np.ones(3), n))


@functools.lru_cache
def said_once(text):
    LOG.append(len(LOG))


def chosen():
    """A break in here cannot be resumed in the caller, which holds the result in an expression."""
    for _ in range(1):
        with np.errstate():
            said_once("a notice")
    return 2.0


def says_once(x):
    return np.sin(x) * chosen() + np.cos(x)


def test_no_break_once_the_cache_holds_the_result():
    """As ``warning_once`` of a logger: the first call breaks the graph, later ones do not."""
    dyncomp.reset()
    said_once.cache_clear()
    LOG.clear()
    x, compiled = np.arange(3.0), dyncomp.compile(says_once, backend="eager")
    for call in range(6):
        if call == 4:
            said_once.cache_clear()
        np.testing.assert_array_equal(compiled(x), np.sin(x) * 2 + np.cos(x))
        assert [0, 1][: 1 + (call >= 4)] == LOG
        if call == 1:
            breaks = dyncomp.stats()["breaks"]
    info = said_once.cache_info()
    assert (info.hits, info.misses) == (1, 1)  # since it was cleared
    assert dyncomp.stats()["breaks"] == breaks
    report = dyncomp.explain(says_once, backend="eager")(x)
    assert report.breaks == [] and report.skipped == []
