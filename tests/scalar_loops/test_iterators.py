"""Loops over single numbers as generated C++: functions that are inlined, and what loops go over."""

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import Run, check, shown
from tests.scalar_loops.test_loops import life

RANDOM = np.random.default_rng(2)


def point(cr, ci, maxit=50):
    zr = zi = 0.0
    for k in range(maxit):
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        if zr * zr + zi * zi > 4:
            return k
    return maxit


def mandel(it, out, w):
    for y in it:
        for x in range(w):
            out[y, x] = point(3.0 * x / w - 2, ci=y / 10 - 1)
    return out


def test_mandel():
    check(mandel, range(20), np.zeros((20, 30), int), 30, left=False)


def clamp(x, lo, hi):
    return lo if x < lo else hi if x > hi else x


def at(a, i, j):
    return a[clamp(i, 0, a.shape[0] - 1), clamp(j, 0, a.shape[1] - 1)]


def blur(it, a, o, w):
    for i in it:
        for j in range(w):
            o[i, j] = (at(a, i - 1, j) + at(a, i + 1, j) + at(a, i, j - 1) + at(a, i, j + 1)) / 4
    return o


def test_blur():
    check(blur, range(5), RANDOM.random((5, 6)), np.zeros((5, 6)), 6, left=False)


def is_prime(n):
    if n < 2:
        return False
    i = 2
    while i * i <= n:
        if n % i == 0:
            return False
        i += 1
    return True


def primes(it, c):
    for n in it:
        if is_prime(n):
            c += 1
    return c


def test_primes():
    check(primes, range(1000), 0, left=False)


def bad(x, a):
    return a[x] / x


def f(it, s, a):
    for i in it:
        s += bad(i, a) + 1
    return s, i


def test_f():
    check(f, range(5, -3, -1), 0, RANDOM.random(8), left=True)
    check(f, range(1, 10, 1), 0, RANDOM.random(8), left=True)


def test_life():
    check(life, range(5), RANDOM.integers(0, 2, (5, 6)), np.zeros((5, 6), int), 5, 6, left=False)


def s1(it, s):
    for x in it:
        s += x
    return s, x


def test_s1():
    check(s1, RANDOM.random(10), 0, left=False)
    check(s1, (1, 2, 3), 0, left=False)
    check(s1, RANDOM.integers(0, 9, 10), 0.0, left=False)


def s2(it, a, b, s):
    for k in it:
        for i, x in enumerate(a):
            b[i] += x * k
        for x, y in zip(a, b):
            s += x * y
        for i, (x, y) in enumerate(zip(a, b), 1):
            s += i * x * y
        for dx, dy in ((0, 1), (1, 0)):
            s += dx * 2 + dy
        for row in (a, b):
            s += row[0]
        for i, j in zip(range(10, 0, -3), a):
            s += i * j
    return s, b


def test_s2():
    check(s2, range(5), RANDOM.random(10), RANDOM.random(10), 0.0, left=False)


def s3(it, s):
    for i, x in it:
        s += i * x
        if i == 7:
            s = s / (i - 7)
    return s


def test_s3():
    check(s3, list(enumerate(RANDOM.random(5))), 0, left=False)


def s4(it, a, s):
    for i, x in it:
        s += i * x
        if i == 7:
            s += a[i]
    return s


class Enumerated:
    def __init__(self, a, start=0):
        self.a = a
        self.start = start

    def __repr__(self):
        return "Enumerated"

    def __iter__(self):
        return enumerate(self.a, self.start)


def test_E():
    check(s4, Enumerated(RANDOM.random(12)), np.zeros(3), 0, left=True)
    check(s4, Enumerated(RANDOM.random(12), 3), np.zeros(8), 0, left=False)


def rows(it, s):
    for r in it:
        for x in r:
            s += x
    return s, r


def test_rows():
    check(rows, RANDOM.random((3, 4)), 0, left=False)


def held(it, s):
    for i in it:
        s += i
        if s > 20:
            break
    return s, list(it)


ITERATORS = [
    lambda: iter(range(10)),
    lambda: iter(range(5, -5, -1)),
    lambda: iter(np.arange(10)),
    lambda: iter((1, 2, 3)),
    lambda: iter(range(3)),
]


@pytest.mark.parametrize("make", ITERATORS)
def test_an_iterator_that_the_program_holds_is_left_where_the_loop_left_it(make):
    run = Run(held)
    assert shown(held(make(), 0)) == shown(run(make(), 0))
    assert run.is_native


def held_enumerate(a, b, stop):
    e = enumerate(a)
    s = 0
    for i, v in e:
        s += v
        if i == stop:
            break
    return s, next(e, None)


def held_zip(a, b, stop):
    e = zip(a, b)
    s = n = 0
    for v, w in e:
        s += v * w
        n += 2
        if n == 2 * stop:
            break
    return s, next(e, None), next(e, None)


def fresh(a, b, stop):
    s = 0
    for i, v in enumerate(a):
        s += i * v
        if i == stop:
            break
    for v, w in zip(a[1:], b):
        s += v - w
        if w == stop:
            break
    return s


@pytest.mark.parametrize("function", [held_enumerate, held_zip, fresh])
def test_iterators_that_the_program_holds(function):
    compiled = dyncomp.compile(function, options={"native_loop_us": 0, "unroll_limit": 0})
    for a in (np.arange(40), np.arange(40).tolist()):
        for stop in (5, 38, 39, 40, 100):
            for _ in range(2):
                assert compiled(a, a[3:], stop) == function(a, a[3:], stop)
    assert any(record.runs for record in compiled.config.records.native_loops)
