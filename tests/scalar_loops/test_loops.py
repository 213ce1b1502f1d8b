"""Loops over single numbers as generated C++: whole programs."""

import math

import numpy as np

from tests.scalar_loops.runs import check

RANDOM = np.random.default_rng(1)


def sieve(it, p, n):
    for i in it:
        if p[i]:
            for j in range(i * i, n, i):
                p[j] = False
    return p.sum()


def test_sieve():
    check(sieve, range(2, 40), np.ones(1000, bool), 1000, left=False)


def tot(it, s, a):
    for i in it:
        s += a[i]
    return s


def test_tot():
    check(tot, range(100), 0, RANDOM.random(100), left=False)
    check(tot, range(101), 0, RANDOM.random(100), left=True)
    check(tot, range(-50, 50), 0, RANDOM.random(100), left=False)
    check(tot, range(100), 0, np.arange(100), left=False)
    check(tot, range(100), 2**62, [1] * 100, left=False)
    check(tot, range(100), 2**63 - 100, np.arange(100), left=True)


def coll(it, best, arg):
    for n in it:
        x = n
        steps = 0
        while x != 1:
            if x % 2:
                x = 3 * x + 1
            else:
                x //= 2
            steps += 1
        if steps > best:
            best, arg = steps, n
    return best, arg


def test_coll():
    check(coll, range(1, 1000), 0, 0, left=False)


def bubble(it, a, n):
    for i in it:
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swapped = True
        if not swapped:
            break
    return a


def test_bubble():
    check(bubble, range(100), RANDOM.random(100), 100, left=False)
    check(bubble, range(100), RANDOM.integers(0, 100, 100).astype(np.int16), 100, left=False)


def mandel(it, out, w, h, maxit):
    for y in it:
        for x in range(w):
            cr = 3.0 * x / w - 2
            ci = 2.0 * y / h - 1
            zr = zi = 0.0
            k = 0
            while zr * zr + zi * zi <= 4 and k < maxit:
                zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
                k += 1
            out[y, x] = k
    return out


def test_mandel():
    check(mandel, range(20), np.zeros((20, 30), int), 30, 20, 50, left=False)


def life(it, g, new, h, w):
    for i in it:
        for j in range(w):
            n = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di or dj:
                        n += g[(i + di) % h, (j + dj) % w]
            new[i, j] = 1 if n == 3 or (g[i, j] and n == 2) else 0
    return new


def fw(it, d, n):
    for k in it:
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def test_fw():
    check(fw, range(20), RANDOM.random((20, 20)), 20, left=False)


def lev(it, a, b, prev, cur):
    for i in it:
        cur[0] = i
        for j in range(1, len(b) + 1):
            c = 0 if a[i - 1] == b[j - 1] else 1
            cur[j] = min(cur[j - 1] + 1, prev[j] + 1, prev[j - 1] + c)
        prev, cur = cur, prev
    return prev[len(b)]


def test_lev():
    check(
        lev,
        range(1, 11),
        RANDOM.integers(0, 3, 10),
        RANDOM.integers(0, 3, 12),
        np.arange(13),
        np.zeros(13, int),
        left=False,
    )


def horner(it, x, c, y):
    for i in it:
        y = y * x + c[-1 - i] if i else math.sin(x) + abs(c[0])
    return y, i


def test_horner():
    check(horner, range(10), 0.5, RANDOM.random(10), 0)
    check(life, range(5), RANDOM.integers(0, 2, (5, 6)), np.zeros((5, 6), int), 5, 6, native=True)


def nested(it, a):
    for i in it:
        for row in range(3):
            r = a[row]
            r[i] = r[i] * 2 + 1
    return r


def test_nested():
    check(nested, range(4), RANDOM.random((3, 4)), left=False)


def w(n, s):
    while n > 0:
        n -= 1
        s += 1 / n
    return s


def test_w():
    check(w, 10, 0, left=True)
