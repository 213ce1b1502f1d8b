"""Arrays made within compiled loops, and who holds them."""

import gc
import sys
import weakref

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import Run, check

MAKERS = [
    "np.zeros(n)", "np.zeros((n, m))", "np.zeros((n, 3), dtype=np.int32)", "np.zeros(n, bool)",
    "np.zeros(shape=n, dtype='float32')", "np.ones(n, np.int64)", "np.ones((m, n))", "np.full(n, 7)",
    "np.full((n, m), 0.5)", "np.full(n, 3.7, dtype=np.int16)", "np.zeros_like(a)", "np.ones_like(a)",
    "a.copy()", "np.zeros(a.shape)", "np.zeros(a.shape, a.dtype)", "np.zeros(n, dtype=complex)",
    "np.full(n, True)", "np.zeros((n, m, 2))",
]  # fmt: skip
ARRAYS = {
    "plain": lambda: np.arange(12.0).reshape(3, 4),
    "transposed": lambda: np.arange(12.0).reshape(3, 4).T,
    "strided": lambda: np.arange(48).reshape(6, 8)[::2, ::2],
    "empty": lambda: np.zeros((0, 3)),
}


def function_of(maker):
    space = {"np": np}
    exec(
        f"def f(it, a, n, m, s, b):\n    for i in it:\n        b = {maker}\n"
        "        s += b.size + i\n    return b, s, b.strides, b.flags.owndata\n",
        space,
    )
    return space["f"]


@pytest.mark.parametrize("maker", MAKERS)
def test_makers(maker):
    function = function_of(maker)
    run = check(function, range(5), ARRAYS["plain"](), 3, 4, 0, None)
    if "a" in maker.replace("np.zeros", "").replace("dtype", "").replace("shape", ""):
        for make in ARRAYS.values():
            check(function, range(5), make(), 3, 4, 0, None)
    assert "array" in run.record.source


@pytest.mark.parametrize("bad", [("np.zeros(n)", -1), ("np.ones((m, n))", -3), ("np.zeros(n)", 2**50)])
def test_bad_sizes(bad):
    maker, n = bad
    check(function_of(maker), range(5), np.zeros(2), n, 4, 0, None, left=True)


def swapped(it, a, b, total, after):
    for i in it:
        after = np.zeros(len(a))
        for k in range(len(a)):
            after[k] = a[k] * 0.5 + i
        b = a
        a = after
        total += b[0]
    return a, b, total, a is after, b is after


def test_names_of_arrays():
    check(swapped, range(5), np.arange(6.0), np.arange(6.0), 0.0, None, left=False)
    check(swapped, range(1), np.arange(6.0), np.arange(6.0), 0.0, None, left=False)


def left_amid(it, a, limit, b, k):
    for i in it:
        b = a.copy()
        b[0] += i
        k = 2**40 * (2**40 if i >= limit else 1)
        a = b
    return a, b, a is b, k


@pytest.mark.parametrize("limit", [0, 3, 99])
def test_left_amid(limit):
    check(left_amid, range(6), np.arange(4.0), limit, None, 0)


def test_identity_and_references():
    run = Run(swapped)
    for _ in range(3):
        a, b, *_ = run(range(5), np.arange(6.0), np.arange(6.0), 0.0, None)
        assert sys.getrefcount(a) == sys.getrefcount(b) == 2
        died = weakref.ref(a)
        del a, b
        gc.collect()
        assert died() is None


def under_iteration(it, a, s):
    for _ in it:
        for v in a:
            a = np.ones(len(a))
            s += v
    return s, a


def test_arrays_that_are_iterated_over_are_not_let_go():
    check(under_iteration, range(3), np.arange(6.0), 0.0, left=True)


def views(it, n, s, row, grid):
    for i in it:
        grid = np.full((n, n), 2.0)
        grid[1, 1] = i
        row = grid[1]
        grid = np.zeros((n, n))
        s += row[1] + grid[0, 0]
    return s, row, grid


def test_views_hold_what_they_are_of():
    check(views, range(50), 6, 0.0, None, None)


def heat(u, steps):
    n = len(u)
    for _ in range(steps):
        before = u.copy()
        for i in range(1, n - 1):
            u[i] = before[i] + 0.1 * (before[i - 1] - 2.0 * before[i] + before[i + 1])
    return u


def test_as_a_program():
    compiled = dyncomp.compile(heat, options={"native_loop_us": 0, "debug_verify": True})
    for _ in range(4):
        made = compiled(np.arange(30.0) ** 2 % 17, 20)
        assert made.tolist() == heat(np.arange(30.0) ** 2 % 17, 20).tolist()
    (outer, *_) = compiled.config.records.native_loops
    assert outer.runs == 4 and not outer.bailed


def deep(it, n, big):
    for i in it:
        big = np.zeros(n)
        big[0] = i
    return big[0]


def test_memory_goes_back():
    import resource

    run = Run(deep)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run(range(3000), 1 << 17, None) == 2999.0  # 3 GiB, if all were kept
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
