"""Views by slices in loops as generated code."""

import numpy as np
import pytest

from tests.scalar_loops.runs import Run, check, outcome

R = np.random.default_rng(2)


def sums(it, a, out, s):
    for i in it:
        out[i] = a[i, :].sum() + a[i].sum() + np.sum(a[i, :])
        w = a[i]
        s += w[1:].sum() - w[:i].sum() + w[-3:-1].sum() + w[i::2].sum()
        for v in w[2:5]:
            s += v
    return out, s, w


@pytest.mark.parametrize("size", [5, 7, 8, 20, 129, 1000])
def test_sums(size):
    a = R.normal(size=(6, size)) * 10.0 ** R.integers(-5, 5, (6, size))
    check(sums, range(6), a, np.zeros(6), 0.0, left=False)
    check(sums, range(5), a[:, ::-1], np.zeros(6), 0.0, left=False)
    check(sums, range(5), np.asfortranarray(a)[1:], np.zeros(6), 0.0, left=False)
    check(sums, range(6), -np.zeros((6, size)), np.zeros(6), 0.0, left=False)


def fills(it, a, b, n):
    for i in it:
        a[i:n] = i
        a[:2] = -i
        a[-4::3] = n
        a[i * 2 :: i + 1] = 7
        b[1:] = b[:-1]
        b[0] = a[i]
        b[3:5] = a[i : i + 2]
        a[i + 3 : 2] = 1
    return a, b


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float32", "float64"])
def test_fills(dtype):
    a, b = (R.random(12) * 9).astype(dtype), (R.random(9) * 9).astype(dtype)
    check(fills, range(1, 8), a, b, 6)
    check(fills, range(1, 8), a[::-1], b, 6)


def views(it, a, s):
    w = a
    for i in it:
        v = a[i : i + 4]
        w = v[1:][::2]
        s += w[0] + len(v) + v.size
        v[0] = i
        for x, y in zip(v, v[1:]):
            s += y - x
        row = a[i:][0]
    return s, v, w, row


def test_views():
    check(views, range(6), R.normal(size=12), 0.0, left=False)
    check(views, range(15), R.normal(size=12), 0.0, left=True)
    run = Run(views)
    a = R.normal(size=12)
    _, v, w, _ = run(range(6), a, 0.0)
    v[1] = 5.0
    assert w[0] == a[6] == 5.0


def rows_of_views(it, a, s):
    for i in it:
        for d in a[i:]:
            s += d[0]
        block = a[: i + 1]
        block[i, 1] += s
        block[0] *= 0.5
    return s, d, block


def test_rows_of_views():
    check(rows_of_views, range(6), R.normal(size=(7, 3)), 0.0, left=False)


def steps(it, a, k, s):
    for i in it:
        s += a[i :: k - i].sum()
    return s


def kept_slice(it, a, s):
    for i in it:
        cut = slice(i, None)
        s += a[cut].sum()
    return s


def other_lengths(it, a, b):
    for i in it:
        a[i:] = b[1:]
    return a


def test_not_plain():
    check(steps, range(4), R.normal(size=9), 3, 0.0, left=True)
    check(other_lengths, range(4), R.normal(size=9), R.normal(size=9), left=True)
    for function, given in [(kept_slice, (range(4), R.normal(size=9), 0.0))]:
        assert outcome(Run(function), given) == outcome(function, given)
