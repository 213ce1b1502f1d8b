"""Variables of the program whose names are those that compiled code gives to sizes and numbers."""

from __future__ import annotations

import numpy as np

import dyncomp

s2 = 100


def helper(k):
    return k + s2


def sizes(x, s0, s1, n):
    total = x.sum() * s0
    y = x[:n] * s1 + helper(n)
    return total, y, s0, s1, n + s0, s2


def numbers(s0, s1, s2, s3, n):
    return s0 * n, s1, s2, s3, n * s1


def a_loop(items, s0, s1):
    found = []
    for s2, s3 in items:
        if s2 & s1:
            found.append((s2, s3, s0, s1))
        else:
            found.append((s2 * s0, s3))
    return found


def test_sizes():
    compiled = dyncomp.compile(sizes, backend="eager", dynamic=True)
    for n in (3, 4, 5, 6):
        x = np.arange(n + 4.0)
        assert repr(compiled(x, n, n * 10, n - 1)) == repr(sizes(x, n, n * 10, n - 1))


def test_numbers():
    compiled = dyncomp.compile(numbers, backend="eager", options={"capture_plain": True})
    for n in (3, 4, 5, 6):
        assert compiled(1, n, 3, n + 1, n) == numbers(1, n, 3, n + 1, n)


def test_a_loop():
    compiled = dyncomp.compile(a_loop, backend="eager", options={"capture_plain": True, "unroll_limit": 1})
    for n in (3, 4, 5, 6):
        items = [(k, k * n) for k in range(n + 5)]
        assert compiled(items, n, n + 1) == a_loop(items, n, n + 1)
