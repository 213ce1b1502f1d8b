"""Loops over single numbers as generated C++: between which numbers ints are."""

import numpy as np
import pytest

import dyncomp
from dyncomp.scalar_loops.analysis.ranges import ALL, GREATEST, LEAST, Ranges, compared, narrowed
from tests.scalar_loops.runs import Run, check, outcome

R = np.random.default_rng(0)
SMALL = [(-2, 1), (0, 0), (1, 3), (-3, -1), (2, 2)]
OPERATORS = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS)
def test_comparisons(op):
    for x in SMALL:
        for y in SMALL:
            pairs = [(a, b) for a in range(x[0], x[1] + 1) for b in range(y[0], y[1] + 1)]
            answers = {OPERATORS[op](a, b) for a, b in pairs}
            assert compared(op, x, y) in ({None} if len(answers) > 1 else {None, *answers})
            if len(answers) == 1 and op not in ("==", "!="):
                assert compared(op, x, y) == answers.pop()
            for holds in (True, False):
                u, v = narrowed(op, x, y, holds)
                left = [(a, b) for a, b in pairs if OPERATORS[op](a, b) == holds]
                assert all(u[0] <= a <= u[1] and v[0] <= b <= v[1] for a, b in left)
                assert x[0] <= u[0] <= u[1] <= x[1] and y[0] <= v[0] <= v[1] <= y[1]


def test_intervals_grow_to_an_end():
    ranges = Ranges()
    assert ranges.begin("a", [((0, 0), {"n": 1}), ((5, 5), {})]) == (((0, 255), {"n": 1}), ((1, 255), {}))
    assert not ranges.grow("a", [((3, 17), {"n": 0, "m": 4}), ((1, 2), {"n": 0})])
    steps = 0
    while ranges.grow("a", [((0, min(ranges.known("a")[0][0][1] + 1, GREATEST)), {"n": 0}), ((1, 1), {})]):
        steps += 1
    assert ranges.known("a") == (((0, GREATEST), {"n": 1}), ((1, 255), {})) and steps < 10
    assert not ranges.has_failed
    ranges.is_final = True
    assert ranges.grow("a", [((0, 0), {"n": 2}), ((1, 1), {})]) and ranges.has_failed
    assert ranges.grow("a", [(ALL, {}), (ALL, {})])
    assert ranges.known("a")[0] == ((LEAST, GREATEST), {})


def counted(it, a, n, k, found):
    for i in it:
        j = i - 1
        while j >= 0 and j < n:
            found += a[j] if j % n < k else a[j - n]
            j -= k
        if 0 <= j + k < len(a):
            found += (j + k) * (j + k)
    return found, j


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 5, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**70])
def test_limits(n):
    for k in (1, 2, 2**31 - 1, 2**62):
        check(counted, range(1, 6), R.integers(0, 9, 5), n, k, 0)


def grown(it, x, y, n):
    for _ in it:
        if x < n:
            x = x * 2 + 1
        else:
            y -= x
        y = y * 3 if y > -n else y + n
        x, y = (x, y) if x < 2**61 else (y, x)
    return x, y


def test_growth():
    for x in (0, 1, -5, 2**40, 2**62):
        for n in (1, 7, 2**31, 2**62, 2**63 - 1):
            check(grown, range(200), x, -x, n)


def wrapped(it, a, h, total):
    for i in it:
        for d in (-1, 0, 1):
            total += a[(i + d) % h] * (i % h) + (i + d) // h
    return total


def test_remainders():
    for h in (1, 3, 5, -3, -1, 2**31, 2**62, 0, -(2**63)):
        check(wrapped, range(-4, 9), R.integers(0, 9, 6), h, 0)


def test_programs_for_positive_numbers():
    """What is not positive and small gets a program of its own, and then all have one."""
    run = Run(counted)
    a = R.integers(0, 9, 5)
    for n, k in ((4, 1), (5, 2), (0, 1), (-3, 2), (3, 2**35)):
        assert run(range(1, 6), a, n, k, 0) == counted(range(1, 6), a, n, k, 0)
    assert run.record.versions <= 3


def emptied(it, x, n):
    while n:
        x += it[n - 1] if n > 0 else 1
        n -= 1 if n > 0 else -1
    return x


def test_truth_of_ints():
    for n in (4, 1, -3):
        check(emptied, [1, 2, 3, 4], 0, n, native=True)


def two_ends(it, a, n, out):
    for i in it:
        j, k = i, n - 1
        while j <= k and k >= 0:
            if a[j] > a[k]:
                a[j], a[k] = a[k], a[j]
            out[(j + k) % n] += a[(j + 1) % n] - a[k - j]
            j += 1
            k -= 1
        while j < n:
            out[j] += a[j]
            j += 2
    return j, k


def test_positions_told_from_comparisons():
    """Whether ``n`` is more than the arrays' sizes is looked at before the loop runs."""
    run = Run(two_ends)
    a = R.integers(0, 9, 8)
    for size, other, n in ((8, 8, 8), (8, 9, 7), (8, 5, 8), (5, 8, 8), (8, 8, 1), (8, 8, 9), (8, 8, 8)):
        args = (range(3), a[:size].copy(), n, np.zeros(other, np.int64))
        assert outcome(run, args) == outcome(two_ends, args)
    assert run.record.versions <= 3


def shorter(n, a, out):
    for i in range(3):
        j = n - i
        while j >= 0:
            j -= 1
            out[j] = a[j] + a[j + 1 - n]
    return out


def test_plans_look_at_sizes():
    dyncomp.reset()
    fast = dyncomp.compile(shorter, options={"native_loop_us": 0, "debug_verify": True})
    for size, other, n in (
        (8, 8, 7),
        (8, 8, 7),
        (9, 9, 8),
        (8, 8, 7),
        (3, 8, 7),
        (8, 3, 7),
        (8, 8, 8),
        (4, 4, 3),
    ):
        args = (n, R.random(size), np.zeros(other))
        assert outcome(fast, args) == outcome(shorter, args)
    assert not fast.config.records.internal_errors
