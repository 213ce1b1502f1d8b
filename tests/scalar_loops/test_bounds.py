"""Loops over single numbers as generated C++: accesses checked once, where an innermost loop begins."""

import numpy as np
import pytest

from dyncomp.scalar_loops.analysis.affine import Form, combine, is_linear, symbol
from tests.scalar_loops.runs import check

R = np.random.default_rng(0)
ROW, COLUMN, N = symbol(("item", 0)), symbol(("item", 1)), symbol(("held", "n", 1))


def constant(value):
    return Form((), value)


def test_forms():
    double = combine("+", ROW, ROW)
    assert double == combine("*", constant(2), ROW)
    assert combine("-", double, ROW) == ROW
    assert combine("-", ROW, ROW) == constant(0)
    flat = combine("+", combine("*", ROW, N), combine("+", COLUMN, constant(3)))
    assert (
        flat.degree == 2 and flat.offset == 3 and flat.symbols == {("item", 0), ("item", 1), ("held", "n", 1)}
    )
    assert is_linear(flat, ("item", 1)) and not is_linear(combine("*", COLUMN, COLUMN), ("item", 1))
    assert combine("*", combine("*", ROW, ROW), combine("*", ROW, ROW)) is None
    assert combine("*", constant(2**15), constant(2**15)) is None


def windows(it, x, w, out):
    for i in it:
        for j in range(out.shape[1]):
            s = 0.0
            for di in range(w.shape[0]):
                for dj in range(w.shape[1]):
                    s += x[i + di, j + dj] * w[di, dj]
            out[i, j] = s
    return out


def test_windows():
    check(windows, range(5), R.random((7, 9)), R.random((3, 4)), np.zeros((5, 6)), left=False)
    check(windows, range(-2, 3), R.random((7, 9)), R.random((3, 4)), np.zeros((5, 6)), left=False)
    check(windows, range(5), R.random((7, 8)), R.random((3, 4)), np.zeros((5, 6)), left=True)
    check(windows, range(7), R.random((7, 9)), R.random((3, 4)), np.zeros((7, 6)), left=True)


def flat(it, x, n, out):
    for i in it:
        for j in range(n):
            out[i] += x[i * n + j] - x[n * i + (n - 1 - j)] * 2
    return out


@pytest.mark.parametrize("n", [0, 1, 4, 5, 2**31, 2**62])
def test_flattened(n):
    steps = range(min(n, 6))
    check(flat, range(-3, 4), R.random(20), n if n < 9 else -n, np.zeros(4))
    check(flat, range(4), R.random(16), n if n < 9 else 3, np.zeros(4))
    check(flat, steps, R.random(30), n, np.zeros(6))


def strided(it, x, k, off, n, s):
    for _ in it:
        for j in range(n):
            s += x[off + k * j]
        for j in range(n - 1, -1, -2):
            s -= x[k * j + off] * x[j - off]
    return s


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 2, 2**40, -(2**63)])
@pytest.mark.parametrize("off", [-7, 0, 5, 14, 2**62])
def test_strided(k, off):
    check(strided, range(3), R.random(15), k, off, 5, 0.0)


def moving(it, a, b, n):
    for i in it:
        for j in range(n):
            k = i + j
            if 0 <= k < n:
                a[k] += b[j]
            n2 = n - j
            a[n2 - 1] += a[j]
            i -= 1
    return a


def test_what_the_loop_assigns_is_not_held():
    check(moving, range(-2, 9), R.random(8), R.random(8), 8, left=False)


def swapped(it, a, b, n):
    for i in it:
        for j in range(n):
            a[j + i] += b[j]
            a, b = b, a
    return a, b


def test_arrays_that_the_loop_exchanges():
    check(swapped, range(2), R.random(6), R.random(6), 5, left=False)
    check(swapped, range(3), R.random(6), R.random(7), 5, left=True)


def helper(a, i, k):
    s = 0.0
    for j in range(k):
        s += a[i + j]
    return s


def sums(it, a, k, out):
    for i in it:
        out[i] = helper(a, i, k) + helper(a, k - i, k)
    return out


def test_in_called_functions():
    check(sums, range(5), R.random(12), 6, np.zeros(5), left=False)
    check(sums, range(5), R.random(10), 6, np.zeros(5), left=True)
    check(sums, range(-5, 5), R.random(20), 6, np.zeros(5), left=False)


def early(it, a, n, found):
    for i in it:
        for j in range(n):
            if a[i + j] > 0.9:
                break
            found += 1
        else:
            found += 100
        for j in range(found % 5):
            found += a[j + i] > 0.5
    return found


def test_left_by_break():
    check(early, range(10), R.random(40), 20, 0, left=False)
    check(early, range(25), R.random(40), 20, 0)


def sort(it, a):
    for i in it:
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def test_versions_that_differ_in_facts_alone():
    run = check(sort, range(1, 50), R.random(50), left=False)
    assert run.record.versions == 1


def long(it, a, n, s):
    for i in it:
        for j in range(n):
            s += a[j & 3] + i
    return s


def test_more_steps_than_between_two_looks_at_signals():
    check(long, range(3), np.arange(4), 2**19, 0, left=False)


def recurrence(it, a, n, s, t):
    for i in it:
        for j in range(n):
            s = s + a[i + j]
            t = t + s * 0.5
    return s, t


def test_types_change_in_the_first_steps():
    check(recurrence, range(4), R.random(12), 8, 0, 0, left=False)
    check(recurrence, range(4), R.integers(0, 9, 12), 9, 0, 0, left=False)
    check(recurrence, range(4), R.integers(0, 9, 11).tolist(), 9, 0, 0, left=True)


def halves(it, x, n, out):
    for i in it:
        for j in range(n // 2):
            out[i] += x[i + j + n // 2] - x[j + (n >> 1)] * x[(i + n) // 4]
    return out


@pytest.mark.parametrize("n", [0, 1, 4, 7, -3, 2**31, 2**62])
def test_halves(n):
    size = n if abs(n) < 9 else 3
    check(halves, range(3), R.random(12), size, np.zeros(3), left=False)
    check(halves, range(-3, 4), R.random(7), size, np.zeros(4))
    if n > 9:
        check(halves, range(1), R.random(7), n, np.zeros(4))
