"""Programs of loops over single numbers, as people write them for Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """``function`` is called with ``arguments()``."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


def mandelbrot(height, width, limit):
    out = np.zeros((height, width), dtype=np.int64)
    for y in range(height):
        ci = -1.0 + 2.0 * y / height
        for x in range(width):
            cr = -2.0 + 3.0 * x / width
            zr = zi = 0.0
            n = 0
            while n < limit and zr * zr + zi * zi <= 4.0:
                zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
                n += 1
            out[y, x] = n
    return out


def collatz(n):
    best = 0
    for i in range(1, n):
        k, steps = i, 0
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
        if steps > best:
            best = steps
    return best


def sieve(n):
    flags = np.ones(n, dtype=np.bool_)
    count = 0
    for i in range(2, n):
        if flags[i]:
            count += 1
            j = i * i
            while j < n:
                flags[j] = False
                j += i
    return count


def matrix_product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    return c


def scalar_kalman(z, q, r):
    x, p = 0.0, 1.0
    out = np.empty_like(z)
    for i in range(len(z)):
        p = p + q
        k = p / (p + r)
        x = x + k * (z[i] - x)
        p = (1.0 - k) * p
        out[i] = x
    return out


def edit_distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


def floyd_warshall(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def jacobi(u, steps):
    v = u.copy()
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    return u


def checksum(data):
    crc = 0xFFFF
    for i in range(len(data)):
        crc ^= int(data[i])
        for _ in range(8):
            crc = (crc >> 1) ^ 0x8408 if crc & 1 else crc >> 1
    return crc


def insertion_sort(a):
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def knapsack(values, weights, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for i in range(len(values)):
        for w in range(capacity, weights[i] - 1, -1):
            taken = best[w - weights[i]] + values[i]
            if taken > best[w]:
                best[w] = taken
    return best[capacity]


def filtered(x, b0, b1, a1):
    y = np.zeros_like(x)
    before_x = before_y = 0.0
    for i in range(len(x)):
        before_y = b0 * x[i] + b1 * before_x - a1 * before_y
        before_x = x[i]
        y[i] = before_y
    return y


def _random(*shape, seed=0):
    return np.random.default_rng(seed).random(shape)


def _letters(count, seed):
    return np.random.default_rng(seed).integers(0, 4, count)


CASES = (
    Case("mandelbrot", mandelbrot, lambda: (120, 160, 100)),
    Case("collatz", collatz, lambda: (10_000,)),
    Case("sieve", sieve, lambda: (300_000,)),
    Case("matrix product", matrix_product, lambda: (_random(80, 80), _random(80, 80, seed=1))),
    Case("Kalman of a number", scalar_kalman, lambda: (_random(200_000), 1e-3, 0.1)),
    Case("edit distance", edit_distance, lambda: (_letters(400, 0), _letters(420, 1))),
    Case("Floyd-Warshall", floyd_warshall, lambda: (_random(80, 80) * 10,)),
    Case("Jacobi", jacobi, lambda: (_random(100, 100), 20)),
    Case("CRC", checksum, lambda: (_letters(50_000, 2).astype(np.uint8),)),
    Case("insertion sort", insertion_sort, lambda: (_random(1000),)),
    Case("knapsack", knapsack, lambda: (_letters(100, 3) + 5, _letters(100, 4) + 3, 2000)),
    Case("IIR filter", filtered, lambda: (_random(200_000), 0.2, 0.1, -0.7)),
)
