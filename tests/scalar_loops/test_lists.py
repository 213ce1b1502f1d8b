"""Loops over single numbers as generated C++: lists of numbers, read and written in place."""

import copy

import numpy as np

from tests.scalar_loops.runs import Run, check

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


def stack_of_ints(it, stack, total):
    for i in it:
        stack.append(i * i)
        stack.append(-i)
        if i % 3:
            total += stack.pop() * 2
        if i % 7 == 6:
            while stack:
                total -= stack.pop(-1)
    return stack, total


def test_stack():
    check(stack_of_ints, range(40), [7, 8], 0, left=False)
    check(stack_of_ints, range(40), [], 0, left=False)
    check(stack_of_ints, range(40), [1.5, "a", 7], 0, left=True)
    check(stack_of_ints, range(4000), [7, 8], 0, left=False)


def pops_all(it, stack, total):
    for _ in it:
        total += stack.pop()
    return total


def test_pop_from_an_empty_list():
    check(pops_all, range(40), list(range(30)), 0, left=True)
    check(pops_all, range(3), [[1], [2], 3, 4, 5], 0, left=False)
    check(pops_all, range(4), [[1], [2], 3, 4, 5], 0, left=True)


def stack_of_tuples(it, stack, seen, n):
    while stack:
        y, x, w = stack.pop()
        n += 1
        for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            v, u = y + dy, x + dx
            if 0 <= v < len(seen) and 0 <= u < len(seen[0]) and not seen[v][u]:
                seen[v][u] = True
                stack.append((v, u, w + 0.5))
    return n, stack, seen


def test_stack_of_tuples():
    seen = (R.random((9, 9)) < 0.3).tolist()
    check(stack_of_tuples, 0, [(4, 4, 1.0)], seen, 0, left=False)
    check(stack_of_tuples, 0, [(4, 4), (4, 4, 1.0)], seen, 0, left=True)


def replaced(it, items):
    for i in it:
        y, x = items[i]
        items[i] = (x, y + i)
    return items


def test_items_that_are_tuples():
    check(replaced, range(3), [(1, 2), (3, 4), (5, 6)], left=False)
    check(replaced, range(3), [(1, 2), [3, 4], (5, 6)], left=True)
    check(replaced, range(3), [(1, 2), (3, 4, 5), (5, 6)], left=True)


def of_arrays(it, a, queue, out, s):
    for i in it:
        queue.append(a[i])
        if len(queue) > 4:
            v = queue.pop()
            s = s + v
            queue[0] = v
            out[i] = queue[1]
    return queue, out, s


def test_numpy_numbers():
    for dtype in ("int64", "float64", "uint8", "float32", "int16"):
        a = R.integers(0, 9, 30).astype(dtype)
        check(of_arrays, range(30), a, [a[0], a[1]], np.zeros(30), 0, left=False)
        check(of_arrays, range(30), a, [1, 2, 3.5], np.zeros(30), 0, left=True)


def found_nan(it, items):
    for _ in it:
        y = items.pop()
        items.append(y)
    return y in items, items.count(y), len(items)


def test_a_nan_keeps_its_identity():
    for nan in (np.float64("nan"), float("nan"), complex(float("nan"), 1)):
        items = [nan * 0 + 1, nan]
        items[0] = type(nan)(1)
        run = Run(found_nan)
        assert run(range(3), items) == (True, 1, 2)
        assert items[-1] is nan and run.record.bailed
    check(found_nan, range(3), [1.0, 2.0], left=False)


def best_of(it, ts, best):
    for _ in it:
        for t in ts:
            if t[0] > best[0]:
                best = t
    return best is ts[1], t is ts[-1]


def appended(it, out, given):
    for i in it:
        t = (i, i + 1)
        out.append(t)
        out.append(given)
        out.append((1, 2))
    return out[-3] is t, out[-2] is given, out[-1] is out[2], t


def two_names(it, n):
    for i in it:
        n, t = n + 1, (i, n)
        s = t
    return s is t, s


def chained(it, n):
    for i in it:
        s = t = (i, n)
        u = v = ((i, n), 1)
    return s is t, u is v, v[0] is u[0]


def moved(it, ts, us, keep):
    for _ in it:
        us.append(ts.pop())
    return us[-1] is keep, us


def popped(it, ts, keep):
    for _ in it:
        t = ts.pop()
    return t is keep, t


def held_and_popped(it, ts, n):
    for _ in it:
        t = ts[0]
        ts.pop()
        ts.append((n, n))
        ts[0] = (n, 1)
    return t, ts, t is ts[0]


def swapped(it, ts, first):
    for i in it:
        ts[i], ts[i + 1] = ts[i + 1], ts[i]
    return ts[-1] is first, ts


def in_the_midst(it, out, n):
    for i in it:
        t = (i, n)
        n, s = n + 1, t
        out[0], s = n, t
    return s is t, out


def of_function(pair):
    return pair


def through_functions(it, n):
    for i in it:
        t = (i, n)
        s = of_function(t)
    return s is t, s


def chosen_constant(it, d):
    for i in it:
        e = d
        d = (0, 1) if i % 2 else (1, 0)
        for f in ((1, 2), (3, 4)):
            g = f
    return d, e is d, g is f, g


def test_tuples_keep_their_identity():
    def runs(function, *args):
        found = []
        for call in (function, Run(function)):
            given = copy.deepcopy(args)
            found.append((call(*given), given))
        assert found[0] == found[1], (function, found)

    pairs = [(1.0, 2), (5.0, 3), (2.0, 1)]
    runs(best_of, range(3), pairs, pairs[0])
    runs(best_of, range(3), pairs, (0.5, 1))
    runs(appended, range(3), [], (7, 8))
    runs(two_names, range(3), 0)
    runs(chained, range(3), 0)
    runs(moved, range(2), list(pairs), [], pairs[1])
    runs(popped, range(2), list(pairs), pairs[1])
    runs(held_and_popped, range(3), [(1, 2), (3, 4), (5, 6)], 0)
    runs(swapped, range(2), list(pairs), pairs[0])
    runs(in_the_midst, range(3), [0, 1], 0)
    runs(through_functions, range(3), 0)
    runs(chosen_constant, range(5), (0, 1))


def test_tuples_that_need_no_identity():
    pairs = [(1.0, 2), (5.0, 3), (2.0, 1)]
    check(best_of, range(3), pairs, (0.5, 1), left=False)
    run = Run(popped)  # of tuples that nobody else holds
    assert run(range(2), [(float(k), k) for k in range(3)], 0) == (False, (1.0, 1))
    assert run.is_native and not run.record.bailed
    check(chosen_constant, range(5), (0, 1), left=False)
