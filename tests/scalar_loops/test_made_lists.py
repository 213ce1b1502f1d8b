"""Lists made within compiled loops."""

import sys

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import Run, check, outcome


def stacks(it, s, stack):
    for i in it:
        stack = [(i, i + 1), (2 * i, 3)]
        while stack:
            x, y = stack.pop()
            s += x * y
            if x > 3 and s < 10**6:
                stack.append((x - 2, y))
    return s, stack


def test_lists_of_tuples():
    check(stacks, range(30), 0, None, left=False)
    check(stacks, range(30), 0, [(1, 2)], left=False)


def rows(it, n, previous, row, best):
    for i in it:
        row = [0] * (n + 1)
        for j in range(n):
            row[j + 1] = max(previous[j] + (i + j) % 3, row[j] - 1)
            best = max(best, row[j + 1])
        previous = row
    return previous, row, best, previous is row


@pytest.mark.parametrize("n", [0, 1, 6, -3])
def test_rows_and_second_names(n):
    check(rows, range(12), n, [0] * 9, None, 0)


def grown(it, out, s):
    for i in it:
        out = []
        for k in range(i):
            out.append(k * 0.5)
        s += len(out)
        for v in out:
            s += v
    return out, s


def test_lists_that_begin_empty():
    check(grown, range(10), None, 0.0)


def odd_items(it, x, s, t):
    for _ in it:
        t = [x, x]
        t[0] = t[1]
        s += len(t) + (t[0] == x)
    return t, s


@pytest.mark.parametrize(
    "x", [1.5, float("nan"), True, None, "a", 2j, np.float64(2.0), np.int32(3), 2**70, [1], (1, 2)], ids=repr
)
def test_items(x):
    run = Run(odd_items)
    try:
        expected = odd_items(range(4), x, 0, None)
    except Exception:
        return
    found = run(range(4), x, 0, None)
    assert repr(found) == repr(expected) and [*map(type, found[0])] == [*map(type, expected[0])]
    if x != x:
        assert found[0][0] is found[0][1] is x


def held_by_a_tuple(it, pair, a, s):
    for i in it:
        a = [i, i + 1]
        pair = (a, i)
        a = [7, 8]
        s += pair[0][1] + a[0]
    return pair, a, s


def of_a_list_that_goes(it, t, stack, s):
    for i in it:
        stack = [(i, 1), (i, 2)]
        t = stack[-1]
        stack = [(0, 0)]
        s += t[0] + stack[0][0]
    return t, stack, s


def gone_under_an_iterator(it, a, s):
    for _ in it:
        a = [1, 2, 3]
        for v in a:
            a = [v, v, 4]
            s += v
    return a, s


def method_of_one_that_goes(it, put, a, s):
    for i in it:
        a = [i]
        put = a.append
        a = [5]
        put(6)
        s += len(a)
    return a, s, put.__self__


@pytest.mark.parametrize(
    "function", [held_by_a_tuple, of_a_list_that_goes, gone_under_an_iterator, method_of_one_that_goes]
)
def test_what_is_read_is_not_let_go(function):
    count = function.__code__.co_argcount
    args = (range(40), None, None, 0)[-count:] if count == 4 else (range(40), None, 0)
    run = Run(function)
    found, expected = run(*args), function(*args)
    assert found == expected


def test_references():
    run = Run(rows)
    previous, row, _, _ = run(range(5), 4, [0] * 9, None, 0)
    assert previous is row
    del previous
    assert sys.getrefcount(row) == 2


def components(grid):
    h, w = grid.shape
    seen = np.zeros((h, w), dtype=np.bool_)
    sizes = []
    for y0 in range(h):
        for x0 in range(w):
            if grid[y0, x0] and not seen[y0, x0]:
                size = 0
                stack = [(y0, x0)]
                seen[y0, x0] = True
                while stack:
                    y, x = stack.pop()
                    size += 1
                    for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                        v, u = y + dy, x + dx
                        if 0 <= v < h and 0 <= u < w and grid[v, u] and not seen[v, u]:
                            seen[v, u] = True
                            stack.append((v, u))
                sizes.append(size)
    return sizes


def test_as_a_program():
    compiled = dyncomp.compile(components, options={"native_loop_us": 0, "debug_verify": True})
    for seed in range(4):
        grid = np.random.default_rng(seed).random((20, 17)) < 0.6
        assert compiled(grid) == components(grid)
    assert compiled.config.records.native_loops[0].runs


def searched(it, values, k, s):
    for i in it:
        if i * k in values:
            s += i
        if i + k not in values:
            s += 100
            values.append(i + k)
    return s, values


@pytest.mark.parametrize(
    "values", [[1, 2, 3], [1, 2.0, 3], [2**70, 3], [True, 4], [5, float("nan"), 7], [np.int64(3), 3]]
)
@pytest.mark.parametrize("k", [1, 2, 2**40])
def test_search_for_an_int(values, k):
    args = (range(12), values, k, 0)
    assert outcome(Run(searched), args) == outcome(searched, args)
