"""Loops over single numbers as generated C++: lists of numbers, read and written in place."""

import numpy as np

from tests.capture.native_loop_runs import check

R = np.random.default_rng(0)


def lcs(it, a, b, dp, n):
    for i in it:
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                dp[i][j] = dp[i - 1][j - 1] + 1
            else:
                dp[i][j] = max(dp[i - 1][j], dp[i][j - 1])
    return dp


def test_lcs():
    check(
        lcs,
        range(1, 11),
        R.integers(0, 3, 10).tolist(),
        R.integers(0, 3, 12).tolist(),
        [[0] * 13 for _ in range(11)],
        12,
        left=False,
    )


def lsum(it, s):
    for x in it:
        s += x
    return s


def test_lsum():
    check(lsum, [1, 2, 3, 2**59, -5, -(2**59), 0], 0, left=False)
    check(lsum, [1, 2, 3, 2**62, -5, -(2**62), 0], 0, left=True)
    check(lsum, [1.5, 2, 3], 0, left=True)
    check(lsum, [True, False], 0, left=False)


def find(it, parent, edges, c):
    for k in it:
        x, y = edges[k]
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        while parent[y] != y:
            y = parent[y]
        if x != y:
            parent[x] = y
            c -= 1
    return c, parent


def test_find():
    check(find, range(20), list(range(15)), R.integers(0, 15, (20, 2)), 15)


def primes(it, ps):
    for n in it:
        ok = True
        for k in range(len(ps)):
            p = ps[k]
            if p * p > n:
                break
            if n % p == 0:
                ok = False
                break
        if ok:
            ps.append(n)
    return ps


def test_primes():
    check(primes, range(3, 300), [2], left=False)


def mixed(it, items):
    for i in it:
        items[i] = i / 2
        items[i - 1] += 1
    return items


def test_mixed():
    check(mixed, range(1, 5), [0] * 6)
    check(mixed, range(1, 9), [0.0] * 6, left=True)


def nest(it, g, s):
    for row in it:
        for x in row:
            s += x
        row[0] = s
    return s, g, row


def test_nest():
    check(nest, [[1, 2], [3, 4], [5, 6.5]], 1, 0, left=True)
    check(nest, [[1, 2], [3, 4], [5, 6]], 1, 0, left=False)
