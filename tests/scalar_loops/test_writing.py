"""Functions in compiled loops that write to arrays: where they are left, that is taken back."""

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import Run, check, outcome


def swap(a, i, j):
    held = a[i]
    a[i] = a[j]
    a[j] = held


def swaps(it, a, k):
    for i in it:
        swap(a, i, i // 2)
        swap(a, k, -i - 1)
    return a


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "u1", "?"])
def test_swaps(dtype):
    a = np.arange(20).astype(dtype)
    check(swaps, range(20), a, 3, left=False)
    check(swaps, range(23), a, 3, left=True)  # out of bounds
    check(swaps, range(20), a[::-2], -2, left=True)
    check(swaps, range(20), a, 20, left=True)


def scaled(a, i, b, j):
    a[i] = a[i] * 2
    b[j] += a[i] / b[i]  # what may fail comes behind a write
    return a[i]


def scales(it, a, b, s):
    for i in it:
        s = s + scaled(a, i, b, i % 3) + scaled(b, i % 5, a, i)
    return s, a, b


@pytest.mark.parametrize("zero", [None, 0, 7])
def test_failing_behind_writes(zero):
    a, b = np.arange(12.0) + 1, np.arange(12.0) - 20.5
    if zero is not None:
        b[zero] = 0
    check(scales, range(12), a, b, 0.0, left=zero is not None)
    check(scales, range(12), a, a, 0.0)
    check(scales, range(14), a, b, 0.0, left=True)
    check(scales, range(12), a, b.astype("f4"), 0.0)
    whole = np.arange(12) + 1
    check(scales, range(12), a, whole, 0.0)
    whole[2] = 2**62
    check(scales, range(12), whole, a, 0)


def sifted(a, root, end):
    while 2 * root + 1 <= end:
        child = 2 * root + 1
        if child + 1 <= end and a[child] < a[child + 1]:
            child += 1
        if a[root] >= a[child]:
            return root
        a[root], a[child] = a[child], a[root]
        root = child
    return root


def sorted_in_place(it, a, s):
    for end in it:
        a[0], a[end] = a[end], a[0]
        s += sifted(a, 0, end - 1)
    return a, s


def test_loops_that_write():
    a = np.sort(np.random.default_rng(2).random(80))[::-1].copy()
    check(sorted_in_place, range(79, 0, -1), a, 0, left=False)
    check(sorted_in_place, range(99, 0, -1), a, 0, left=True)


def filled(a, n, value):
    for k in range(n):
        a[k] = value + k


def fills(it, a, s):
    for i in it:
        filled(a, i * 100, i)
        s += a[i]
    return a, s


def test_much_that_is_written():
    check(fills, range(9), np.zeros(1000), 0.0, left=True)


def stepped(a, i):
    a[i % 5] += 1
    return a[i % 5] < 6


def conditions(it, a, i, s):
    for _ in it:
        while stepped(a, i):
            i += 2
        if stepped(a, i) and stepped(a, i + 1) or not stepped(a, i + 2):
            s += 1
        swap(a, 0, 1) if i % 2 else swap(a, 2, 3)
    return a, i, s


def test_writes_in_conditions():
    check(conditions, range(30), np.zeros(5), 0, 0)
    check(conditions, range(30), np.zeros(4), 0, 0)


def test_read_only_arrays_and_objects():
    a = np.arange(20.0)
    a.flags.writeable = False
    assert outcome(Run(swaps), (range(20), a, 3)) == outcome(swaps, (range(20), a, 3))
    check(swaps, range(9), list(range(20)), 3, native=None)
    check(swaps, range(9), np.zeros((20, 3)), 3, native=None)


def heap_sort(a):
    for start in range((len(a) - 2) // 2, -1, -1):
        sifted(a, start, len(a) - 1)
    for end in range(len(a) - 1, 0, -1):
        swap(a, 0, end)
        sifted(a, 0, end - 1)
    return a


def test_whole_functions():
    compiled = dyncomp.compile(heap_sort, options={"native_loop_us": 0})
    values = np.random.default_rng(3).random(300)
    for _ in range(2):
        assert np.array_equal(compiled(values.copy()), np.sort(values))
    records = compiled.config.records.native_loops
    assert any(record.runs for record in records) and not any(record.bailed for record in records)
