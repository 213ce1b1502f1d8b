"""Independent branches of one graph at the same time: the same bits, memory apart, errors and status
flags."""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.dtypes import float64
from dyncomp.inductor.lowering.values import Storage
from dyncomp.inductor.memory import bytes_of, plan_memory
from dyncomp.runtime import _launch


def step(x: Any, w: Any, k: float) -> Any:
    x = np.tanh(x @ w) + k
    return x / (1 + np.abs(x).sum(axis=1, keepdims=True))


def chain(x: Any, w: Any, k: float) -> Any:
    x = step(step(step(step(x, w, k), w, k), w, k), w, k)
    x = step(step(step(step(x, w, k), w, k), w, k), w, k)
    return step(step(step(step(x, w, k), w, k), w, k), w, k)


def two_by_two(x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Two branches, a join, and two branches of that."""
    first, second = chain(x, a, 1.0), chain(x, b, 2.0)
    third, fourth = chain(first + second, c, 3.0), chain(first - second, d, 4.0)
    return first + 2 * second + 3 * third + fourth


def forked(x: Any, a: Any, b: Any) -> Any:
    futures = [dyncomp.fork(chain, x, w, 1.0) for w in (a, b)]
    return dyncomp.wait(futures[0]) - dyncomp.wait(futures[1])


@pytest.fixture
def four_threads() -> Iterator[None]:
    before = _launch.num_threads()
    _launch.set_num_threads(4)
    yield
    _launch.set_num_threads(before)


def arguments(count: int, n: int = 72) -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal((n, n)) / 8 for _ in range(count)]


def run_both(function: Any, args: list[Any]) -> Any:
    """With branches and without: of the same bits, in all calls and for any number of threads."""
    together = dyncomp.compile(function)
    apart = dyncomp.compile(function, options={"parallel_branches": False})
    want = apart(*args)
    before = _launch.num_threads()
    try:
        for threads in (before, 1, 2, 3, 8):
            together(*args)
            _launch.set_num_threads(threads)
            for _ in range(5):
                np.testing.assert_array_equal(together(*args), want)
    finally:
        _launch.set_num_threads(before)
    np.testing.assert_allclose(want, function(*args), rtol=1e-9, atol=1e-12)
    return together


def source_of(function: Any, args: list[Any], **options: Any) -> str:
    """The C++ of its only graph."""
    (entry,) = [e for e in dyncomp.explain(function, **options)(*args).entries if e.graph is not None]
    return str(entry.compiled.artifact.source)


def test_branches_of_a_graph(four_threads: None) -> None:
    args = arguments(5)
    run_both(two_by_two, args)
    assert source_of(two_by_two, args).count("rt->branches(") == 2
    assert "rt->branches(" not in source_of(two_by_two, args, options={"parallel_branches": False})


def test_forked_functions_are_branches(four_threads: None) -> None:
    args = arguments(3)
    run_both(forked, args)
    assert source_of(forked, args).count("rt->branches(") == 1


def test_small_and_large_graphs_have_no_branches(four_threads: None) -> None:
    assert "rt->branches(" not in source_of(forked, arguments(3, 8))

    def large(x: Any) -> Any:
        return np.sin(x).sum() + np.cos(x).sum()

    assert "rt->branches(" not in source_of(large, [np.ones(2_000_000)])


def test_one_thread_has_no_branches() -> None:
    before = _launch.num_threads()
    _launch.set_num_threads(1)
    try:
        assert "rt->branches(" not in source_of(forked, arguments(3))
    finally:
        _launch.set_num_threads(before)


def test_calls_in_several_threads(four_threads: None) -> None:
    args = arguments(5)
    fast = dyncomp.compile(two_by_two)
    want = fast(*args)
    equal: list[bool] = []

    def calls() -> None:
        for _ in range(20):
            equal.append(bool(np.array_equal(fast(*args), want)))

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert equal == [True] * 80
    futures = [dyncomp.fork(fast, *args) for _ in range(12)]
    assert all(np.array_equal(dyncomp.wait(f), want) for f in futures)


def test_errors_in_branches(four_threads: None) -> None:
    def f(x: Any, a: Any, b: Any, at: Any) -> Any:
        return chain(x, a, 1.0)[at] + chain(x, b, 2.0)[at]

    args = arguments(3)
    fast = dyncomp.compile(f)
    good, bad = np.array([1, 5]), np.array([1, 500])
    want = f(*args, good)
    for _ in range(3):
        np.testing.assert_allclose(fast(*args, good), want, rtol=1e-9)
        with pytest.raises(IndexError):
            fast(*args, bad)


def test_status_flags_of_branches(four_threads: None) -> None:
    """Whichever thread sees a division by zero, the warning is NumPy's."""

    def f(x: Any, a: Any, b: Any, y: Any) -> Any:
        return chain(x, a, 1.0) + (1 / y), chain(x, b, 2.0)

    args = arguments(3)
    fast = dyncomp.compile(f)
    ones = np.ones_like(args[0])
    zeros = ones.copy()
    zeros[40, 40] = 0
    for y, count in ((ones, 0), (zeros, 1), (ones, 0), (zeros, 1)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            fast(*args, y)
        assert [w.category for w in seen] == [RuntimeWarning] * count


def test_writes_stay_behind_what_they_follow(four_threads: None) -> None:
    def f(x: Any, a: Any, b: Any) -> Any:
        first, second = chain(x, a, 1.0), chain(x, b, 2.0)
        x += first
        return first - second

    one, two = arguments(3), arguments(3)
    want = f(*one)
    np.testing.assert_allclose(dyncomp.compile(f)(*two), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(two[0], one[0], rtol=1e-9)


def test_branches_share_no_memory() -> None:
    """Temporaries of one branch share memory with each other, not with those of another branch."""
    names: dict[str, Storage] = defaultdict(lambda: Storage(float64, 100, "temp"))

    def steps(*used: str) -> list[list[Storage]]:
        return [[names[name] for name in each.split()] for each in used]

    rows = [
        steps("before a0", "a0 a1", "a1 a2", "a2 both"),
        steps("before b0", "b0 b1", "b1"),
    ]
    union = list({id(s): s for row in rows for used in row for s in used}.values())
    touched = [[names["before"]], union, [names["both"], names["after"]]]
    plan = plan_memory(touched, {1: rows})

    def place(name: str) -> range:
        start = plan.offset(names[name])
        assert isinstance(start, int)
        return range(start, start + int(bytes_of(names[name])))

    def overlap(one: str, other: str) -> bool:
        return bool(set(place(one)) & set(place(other)))

    for a in ("a0", "a1", "a2"):
        assert not any(overlap(a, other) for other in ("b0", "b1", "before", "both"))
    assert overlap("a0", "a2")
    assert not overlap("both", "before") and not overlap("both", "after")
    assert len(plan.order) == 8 and all(id(s) in plan.offsets for s in plan.order)


def test_the_runtime_runs_each_branch_once() -> None:
    """Directly: more and fewer branches than threads, loops inside of branches."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_longlong)
    # the last entry of `Runtime` (abi.h)
    pointers = ctypes.cast(_launch.runtime_address(), ctypes.POINTER(ctypes.c_void_p))
    entry = 1 + 1 + 16 + 1 + 8 + 2
    run = ctypes.CFUNCTYPE(None, kind, ctypes.c_void_p, ctypes.c_longlong)(pointers[entry])
    before = _launch.num_threads()
    try:
        for threads in (1, 2, 4, 9):
            _launch.set_num_threads(threads)
            for count in (0, 1, 2, 5, 16, 40):
                seen: list[int] = []
                ranges: list[tuple[int, int]] = []

                @kind
                def body(_: Any, branch: int, seen: Any = seen, ranges: Any = ranges) -> None:
                    seen.append(branch)
                    _launch.parallel_for(lambda *lo_hi_tid: ranges.append(lo_hi_tid[:2]), 64, 4)

                for _ in range(5):
                    seen.clear()
                    ranges.clear()
                    run(body, None, count)
                    assert sorted(seen) == list(range(count))
                    assert sum(hi - lo for lo, hi in ranges) == 64 * count
    finally:
        _launch.set_num_threads(before)
