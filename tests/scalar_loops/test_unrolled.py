"""Short inner loops over constants are unrolled in generated C++: what they count are constants there."""

import numpy as np
import pytest

import dyncomp
from dyncomp.python_code.versions import decode
from dyncomp.scalar_loops.analysis.blocks import facts_of
from tests.scalar_loops.runs import check

R = np.random.default_rng(1)
IMAGE = R.random((7, 9))


def window_sums(it, x, out):
    for i in it:
        for j in range(1, x.shape[1] - 1):
            s = 0.0
            for a in range(-1, 2):
                for b in range(-1, 2):
                    s += x[i + a, j + b] * (a - 2 * b)
            out[i, j] = s / 9
    return out, s, a, b


def test_windows():
    run = check(window_sums, range(1, 6), IMAGE, np.zeros((7, 9)), left=False)
    assert "it3_stop" not in run.record.source, "the innermost loop should be unrolled"
    assert "it1_stop" in run.record.source, "the loop around should count in advance"
    check(window_sums, range(7), IMAGE, np.zeros((7, 9)), left=True)
    check(window_sums, range(-3, 0), IMAGE, np.zeros((7, 9)))
    check(window_sums, range(1, 6), IMAGE[:, :2], np.zeros((7, 9)))
    check(window_sums, range(1, 6), IMAGE[:, ::2], np.zeros((7, 9)))
    check(window_sums, range(5, 0, -1), IMAGE.astype(np.float32), np.zeros((7, 9), int))


def neighbours(it, grid, found):
    for i in it:
        for j in range(grid.shape[1]):
            for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                y = i + di
                x = j + dj
                if 0 <= y < grid.shape[0] and 0 <= x < grid.shape[1] and grid[y, x] > grid[i, j]:
                    found[i, j] += 1
    return found, di, dj


def test_tuples():
    check(neighbours, range(7), R.integers(0, 4, (7, 9)), np.zeros((7, 9), np.int64), left=False)


def first_match(it, x, limit, steps):
    for i in it:
        for k in range(0, 12, 2):
            steps += 1
            if x[i + k] > limit:
                break
            if x[i + k] < 0:
                continue
            steps += 100
        else:
            steps += 10_000
        steps += k
    return steps, k


@pytest.mark.parametrize("limit", [0.2, 0.9, 2.0])
def test_break_and_continue(limit):
    check(first_match, range(40), R.random(60) - 0.3, limit, 0, left=False)
    check(first_match, range(60), R.random(60) - 0.3, limit, 0)


def downwards(it, x, n):
    for i in it:
        for k in range(3, -4, -3):
            n = n * 3 + x[i] * k
            k = k + 50
        n += k
        n %= 100_003
    return n, k


def test_downwards_and_a_counter_that_is_assigned():
    check(downwards, range(9), R.integers(0, 5, 9).tolist(), 0, left=False)
    check(downwards, range(9), R.integers(0, 5, 9), 0)


def leaves_midway(it, x, d, out):
    for i in it:
        for k in range(4):
            out[i, k] = x[i] // (d[i] - k)
            for m in range(2):
                out[i, k] += m * out[i, k - m]
    return out


@pytest.mark.parametrize("at", range(5))
def test_leaves_in_the_midst(at):
    divisors = [9] * 6
    divisors[3] = at  # a division by zero at step ``at``
    check(leaves_midway, range(6), [5, 3, 2, 7, 1, 0], divisors, np.zeros((6, 4), np.int64), left=at < 4)


def overflows(it, x, out):
    for i in it:
        n = x[i]
        for k in range(5):
            n = n * (k + 1_000_000)
            out[k] = n % 97
        x[i] = n % 10
    return n


def test_large_numbers_midway():
    check(overflows, range(4), [1, 0, 2**40, 3], [0] * 5, left=True)


def inlined(x, i):
    s = 0.0
    for k in range(3):
        for m in (1, 3):
            s = s + x[i + k] * m
    return s


def calls(it, x, out):
    for i in it:
        out[i] = inlined(x, i) + inlined(x, i + 1)
    return out


def test_functions_called():
    check(calls, range(5), R.random(12), np.zeros(12), left=False)
    check(calls, range(10), R.random(12), np.zeros(12), left=True)


def large(it, x, s):
    for i in it:
        for a in range(8):
            for b in range(8):
                for c in range(8):
                    if (a ^ b) & c:
                        s += x[i]
                    elif b > c:
                        s -= 1
    return s


def test_a_nest_that_is_too_large_is_unrolled_in_part():
    facts = facts_of(decode(large.__code__), 3)
    assert len(facts.unrolled) == 1 and len(facts.leaves) == 1
    check(large, range(3), [1, 2, 3], 0, left=False)


def range_of_its_own(it, x, s):
    for i in it:
        for k in other(3):
            s += x[i] + k
    return s


other = range


def test_only_ranges_are_told_from_the_code():
    assert not facts_of(decode(range_of_its_own.__code__), 3).unrolled
    check(range_of_its_own, range(3), [1, 2, 3], 0)


def windows(it, image, kernel, kh, kw, out, s):
    for i in it:
        for j in range(image.shape[1] - kw + 1):
            s = 0.0
            for p in range(kh):
                for q in range(kw):
                    s += image[i + p, j + q] * kernel[p, q]
            out[i, j] = s
    return out, s, i


@pytest.mark.parametrize(
    "kh, kw", [(1, 1), (3, 3), (5, 5), (2, 8), (9, 3), (7, 7), (0, 2), (3, -1), (3, True)]
)
def test_limits_that_are_small_numbers(kh, kw):
    rng = np.random.default_rng(1)
    given = (rng.random((12, 11)), rng.random((9, 9)), kh, kw, np.zeros((12, 13)), 1.5)
    check(windows, range(12 - max(kh, 0) + 1), *given, left=None if kw != -1 else False)
    check(windows, range(12), *given)  # out of bounds at the end


def of_steps(a, n, m):
    total = 0.0
    for k in range(len(a)):
        part = 0.0
        for j in range(n):
            for i in range(1, m):
                part += a[k] * j + i
        total += part
    return total


def test_small_limits_that_change():
    compiled = dyncomp.compile(of_steps, options={"native_loop_us": 0, "debug_verify": True})
    a = np.arange(40.0)
    for n, m in [(3, 4), (3, 4), (2, 4), (3, 4), (4, 4), (300, 2), (3, 4), (0, 0), (True, 3), (2, 4)]:
        assert compiled(a, n, m) == of_steps(a, n, m)
    (record, *_) = [r for r in compiled.config.records.native_loops if r.versions]
    assert record.versions <= 6 and not record.bailed


def of_assigned(it, n, s):
    for i in it:
        for j in range(n):
            s += j + i
        n = 3 if n == 2 else 2
    return s, n


def test_limits_that_the_loop_assigns():
    check(of_assigned, range(30), 2, 0, left=False)
