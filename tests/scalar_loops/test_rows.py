"""Arithmetic on short rows of arrays in loops as generated code."""

import numpy as np
import pytest

from tests.scalar_loops.runs import Run, check, outcome

R = np.random.default_rng(1)


def forces(it, x, v, m, n, s):
    for i in it:
        for j in range(i + 1, n):
            d = x[i] - x[j]
            r = np.dot(d, d) + 0.01
            f = d / (r * np.sqrt(r))
            v[i] -= f * m[j]
            v[j] += m[i] * f
            s += d[0] * d[-1] + np.linalg.norm(d) + d.sum() + np.sum(x[i])
        x[i] += v[i] * 0.5
    return x, v, s, d


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_forces(size):
    x, v = R.normal(size=(2, 9, size))
    check(forces, range(9), x, v, R.random(9), 9, 0.0, left=False)


def test_views():
    x, v = R.normal(size=(2, 9, 6))
    both = R.normal(size=(9, 8))
    x[4] = 0.0
    check(forces, range(9), x[:, 1:4], v[:, :3], R.random(9), 9, 0.0, left=False)
    check(forces, range(9), both[:, :3], both[:, 2:5], R.random(9), 9, 0.0, left=False)
    check(forces, range(9), x[:, ::2], v[:, ::-2], R.random(9), 9, 0.0, left=False)
    check(forces, range(9), x, v, R.random(9), 9, 0.0, native=False)
    check(forces, range(9), x[:, :3].astype(np.float32), v[:, :3], R.random(9), 9, 0.0, native=False)


def in_place(it, x, k):
    for i in it:
        d = x[i] * 2
        d += x[i - 1]
        d[0] = k
        d[-1] *= 3
        d -= d
        d += k
        x[i] = d
        x[i - 1] = 7
        a, b, c = d
        x[i, 0] += a - b * c
        e = -d
        d = x[i]
        e *= 2
    return x, d, e


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16"])
def test_in_place(dtype):
    x = (R.normal(size=(7, 3)) * 9).astype(dtype)
    check(in_place, range(7), x, 4, left=False)
    check(in_place, range(7), x, 4.5, native=dtype.startswith("float"))
    check(in_place, range(7), x[:, ::-1], 4, left=False)


def two_names(it, x, n):
    for i in it:
        d = x[i] + 1.0
        e = d
        e[0] = 5.0
        d[1] += n
        e = d = x[i] - 1.0
        e[2] = 9.0
        pair = (d, i)
        pair[0][0] = 1.0
    return d, e, d is e, pair


def kept_row(it, x, n):
    for i in it:
        d = x[i]
        d += 1.0
        x[i, 0] = n
        d[1] = d[0]
    return d, x


def helper(u, w):
    t = u - w
    return t * 2.0


def same(u):
    return u


def through_functions(it, x, s):
    for i in it:
        d = helper(x[i], x[i - 1])
        e = same(d)
        e += 1.0
        s += d[0]
    return d, e, s


def while_on_stack(it, x, s):
    for i in it:
        d = x[i] + 1.0
        s += d[0] * (d + (1.0 if s > i else 2.0))[1]
        d = d + d
        d[0] = s if s < 3 else 2.0
    return d, s


@pytest.mark.parametrize("function", [two_names, kept_row, through_functions, while_on_stack])
def test_names(function):
    run, given = Run(function), (range(6), R.normal(size=(6, 3)), 2.0)
    assert outcome(run, given) == outcome(function, given)
    assert run.is_native == (function in (kept_row, while_on_stack))


def left_amid(it, x, d, n):
    for i in it:
        d = x[i] * 1.0
        d[0] = 10 // (n - i)
        d += x[i]
    return d


def other_lengths(it, x, y):
    for i in it:
        x[i] += y[i]
    return x


def zero_vectors(it, x, s):
    for i in it:
        d = np.zeros(3)
        for k in range(2):
            d += x[i] * k
        s += d[1]
    return s, d


def test_ends():
    x = R.normal(size=(6, 3))
    check(left_amid, range(6), x, None, 3, left=True)
    check(other_lengths, range(3), x, R.normal(size=(6, 2)), native=False)
    check(other_lengths, range(3), x, R.normal(size=(6, 1)), native=False)
    check(zero_vectors, range(6), x, 0.0, left=False)
    fixed = x.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        Run(other_lengths)(range(3), fixed, x)
    check(other_lengths, range(3), x.astype(np.int64), x, native=False)
    check(other_lengths, range(3), np.full((6, 3), 2**62), np.full((6, 3), 2**62), left=True)


def test_lengths_are_part_of_the_kind():
    run = Run(other_lengths)
    for size in (3, 2, 5, 3):
        given = (range(4), R.normal(size=(4, size)), R.normal(size=(4, size)))
        assert outcome(run, given) == outcome(other_lengths, given)
        assert run.is_native == (size <= 4)


def second_name(it, x):
    for i in it:
        r = x[i]
        s = r
        s[0] += 1
    return s is r


def named_at_once(it, x):
    for i in it:
        s = r = x[i]
        s[0] += 1
    return s is r


def named_amid(it, x, k):
    for i in it:
        r = x[i, 1:]
        k, s = i, r
        s[0] += k
    return s is r


def named_in_a_tuple(it, x):
    for i in it:
        r = x[i]
        t = (r, i)
        r[0] += 1
    return t[0] is r


def chosen_name(it, x, q):
    for i in it:
        r, q = x[i], x[0]
        s = r if i % 2 else q
        s[0] += 1
    return s is r, s is q


def one_name(it, x):
    for i in it:
        r = x[i]
        r += 1 if i % 2 else 3
        r[0] *= 2
        x[i][1] += 3
    return r


def test_names_of_views():
    x = np.arange(12.0).reshape(4, 3)
    for function, args in (
        (second_name, (x,)),
        (named_at_once, (x,)),
        (named_amid, (x, 0)),
        (named_in_a_tuple, (x,)),
        (chosen_name, (x, 0)),
    ):
        assert outcome(Run(function), (range(4), *args)) == outcome(function, (range(4), *args))
    check(one_name, range(4), x, left=False)
