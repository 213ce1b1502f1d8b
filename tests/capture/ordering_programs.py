"""Small programs that sort by comparisons, and with caches made in the frame; see ``programs.Program``."""

# ruff: noqa: C408, C416
from __future__ import annotations

import datetime
import functools
from typing import Any

import numpy as np

from tests.capture.programs import Program, one

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


class Card:
    def __init__(self, rank, log):
        self.rank = rank
        self.log = log

    def __lt__(self, other):
        self.log.append((self.rank, other.rank))
        return self.rank < other.rank


class Named(str):
    def __lt__(self, other):
        return len(self) < len(other)


@program(one)
def sorted_by_comparison(x):
    key = functools.cmp_to_key(lambda a, b: b - a)
    return sorted([3, 1, 2], key=key), x + 1, sorted([3, 1, 2], key=key, reverse=True)


@program(one)
def list_sorted_by_comparison(x):
    log = []

    def compare(a, b):
        log.append((a, b))
        return (a > b) - (a < b)

    items = [5, 3, 8, 1, 9, 2]
    items.sort(key=functools.cmp_to_key(compare))
    most = max([1, 5, 2], key=functools.cmp_to_key(compare))
    return items, most, log, x * 2


@program(one)
def keys_compared(x):
    key = functools.cmp_to_key(lambda a, b: a - b)
    a, b = key(3), key(4)
    return a < b, a == b, a >= b, a != b, a.obj, x + 1


@program(one)
def objects_sorted(x):
    log = []
    cards = [Card(rank, log) for rank in (5, 2, 9, 2, 7, 1)]
    found = sorted(cards)
    cards.sort(reverse=True)
    return (
        [card.rank for card in found],
        [card.rank for card in cards],
        log,
        x * len(log),
        found[0] is cards[-1],
    )


@program(one)
def derived_strings_sorted(x):
    return sorted([Named("ccc"), Named("a"), Named("bb")]), x + 1


@program(one)
def dates_sorted(x):
    days = [datetime.date(2020, 1, d) for d in (5, 2, 9)]
    return x * sorted(days)[0].day, max(days).day, [d.day for d in sorted(days, reverse=True)]


@program(one)
def comparison_raises(x):
    def compare(a, b):
        if 2 in (a, b):
            raise ValueError("two")
        return a - b

    try:
        sorted([3, 1, 2], key=functools.cmp_to_key(compare))
    except ValueError as error:
        return str(error), x + 1
    return None, x


@program(one)
def arrays_sorted_by_size(x):
    parts = [x[:3], x[:1], x[:2]]
    key = functools.cmp_to_key(lambda a, b: a.size - b.size)
    return np.concatenate(sorted(parts, key=key))


@program(one)
def cached_recursion(x):
    @functools.cache
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    return x * fibonacci(12), tuple(fibonacci.cache_info()), fibonacci.__name__


@program(one)
def cached_arrays(x):
    calls = []

    @functools.cache
    def scaled(n, *, by=1):
        calls.append((n, by))
        return x * n * by

    a, b = scaled(2), scaled(2)
    total = a + b + scaled(3) + scaled(2, by=2) + scaled(2.0)
    return total, calls, a is b, scaled.cache_info().hits


@program(one)
def small_cache(x):
    calls = []

    @functools.lru_cache(2)
    def f(n):
        calls.append(n)
        return n * 2

    found = [f(n) for n in (1, 2, 1, 3, 2, 1, 3, 3)]
    info = f.cache_info()
    f.cache_clear()
    return x * sum(found), calls, tuple(info), tuple(f.cache_info()), f(3), calls


@program(one)
def typed_cache(x):
    @functools.lru_cache(maxsize=8, typed=True)
    def kind(n):
        return type(n).__name__

    return kind(1), kind(1.0), kind(True), kind.cache_info().currsize, x + 1


@program(one)
def nothing_is_kept(x):
    @functools.lru_cache(0)
    def f(n):
        return n + 1

    return f(1) + f(1), tuple(f.cache_info()), x + 1


@program(one)
def cache_of_what_raises(x):
    @functools.cache
    def f(n):
        if n == 1:
            raise KeyError(n)
        return n

    found = []
    for n in (0, 1, 1, 0):
        try:
            found.append(f(n))
        except KeyError as error:
            found.append(error.args)
    return found, tuple(f.cache_info()), x + 1


@program(one, breaks=("unsupported-call", "graph-break"), plain=True)
def cache_over_a_break(x):
    import dyncomp

    @functools.cache
    def f(n):
        return n + 1

    y = x * f(1)
    dyncomp.graph_break()
    return y + f(1) + f(2), tuple(f.cache_info())


@program(one, breaks=("unsupported-call", "graph-break", "inline-refused"), plain=True)
def cache_is_returned(x):
    @functools.lru_cache(maxsize=3)
    def f(n):
        return n + 1

    y = x * f(1)
    return y, f.cache_info()[:3], f(1), f.cache_parameters()


def gives_cached(x):
    @functools.lru_cache(maxsize=3)
    def f(n):
        """Adds one."""
        return n + 1

    return x * 2, f
