"""Loops over single numbers as generated C++: variables and functions of functions around."""

import math

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import check

OPTIONS = {"native_loop_us": 0, "debug_verify": True}


def compiled(function):
    dyncomp.reset()
    return dyncomp.compile(function, options=OPTIONS)


def native(function):
    """How many loops of ``function`` ran as generated code."""
    assert not function.config.records.internal_errors
    return sum(record.is_native for record in function.config.records.native_loops)


def make_scaled(factor, table):
    def scaled(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i] * factor + table[i % len(table)]
            if total > 1e6:
                total /= factor
        return total

    return scaled


@pytest.mark.parametrize("factor", [2.5, 3, True, np.float64(1.5), 0, 2**70])
def test_numbers_and_arrays(factor):
    x = np.arange(50.0)
    for table in (np.ones(4), [1, 2, 3]):
        function = make_scaled(factor, table)
        fast = compiled(function)
        for _ in range(3):
            assert fast(x) == function(x)
        assert native(fast) == (factor != 2**70)


def make_changing():
    count = 0

    def step(n):
        nonlocal count
        count += n
        total = 0
        for i in range(n):
            total = total * 3 % 1000003 + i * count
        return total

    return step


def test_contents_that_change():
    fast, plain = compiled(make_changing()), make_changing()
    for n in (10, 20, 0, 5, 1000, 2):
        assert fast(n) == plain(n)
    assert native(fast) == 1


def make_late():
    def late(n):
        found = 0
        for i in range(n):
            found += i if i < 5 else limit
        return found

    if n_is_known:
        limit = 3
    return late


n_is_known = False


def test_an_empty_cell():
    late = make_late()
    fast = compiled(late)
    assert fast(4) == late(4)
    for _ in range(2):
        with pytest.raises(NameError) as found:
            fast(9)
        with pytest.raises(NameError) as expected:
            late(9)
        assert str(found.value) == str(expected.value)


def make_solver(rate):
    def slope(t, y):
        return rate * y * (1.0 - y) - 0.1 * t

    def solve(y, h, steps):
        t = 0.0
        for _ in range(steps):
            k1 = slope(t, y)
            k2 = slope(t + h, y + h * k1)
            y += h * (k1 + k2) / 2
            t += h
        return y

    return solve


def test_functions_of_closures():
    for rate in (1.5, 2, 0.0):
        solve = make_solver(rate)
        fast = compiled(solve)
        assert fast(0.2, 0.01, 300) == solve(0.2, 0.01, 300)
        assert native(fast) == 1


def integrate(f, a, b, n):
    total = 0.0
    for i in range(n):
        total += f(a + (b - a) * (i + 0.5) / n)
    return total * (b - a) / n


def square(x):
    return x * x


def cubic(x):
    return x**3 - x


def test_functions_as_arguments():
    """The loop is compiled for a few of them."""
    fast = compiled(integrate)
    made = [lambda x, k=k: x * k for k in range(6)]
    for f in (square, cubic, math.sin, square, math.exp, abs, *made, square, float):
        assert fast(f, 0.0, 1.0, 40) == integrate(f, 0.0, 1.0, 40)
    assert native(fast) == 1


def test_replaced_code_of_a_function():
    def given(x):
        return x + 1

    fast = compiled(integrate)
    for _ in range(3):
        assert fast(given, 0.0, 1.0, 40) == integrate(given, 0.0, 1.0, 40)
    given.__code__ = square.__code__
    assert fast(given, 0.0, 1.0, 40) == integrate(square, 0.0, 1.0, 40)


def of_math(it, x, total):
    for i in it:
        total += (
            math.hypot(x[i], i) + math.comb(i, 3) + math.perm(i) + math.log(i + 2, 3) + math.isqrt(i * i + i)
        )
        total += math.degrees(x[i]) - math.radians(total) + math.gcd(i, 12, 18) + math.ldexp(x[i], i - 4)
    return total


def test_functions_of_math():
    x = np.random.default_rng(0).normal(size=25)
    check(of_math, range(15), x, 0.0, left=False)
    check(of_math, range(25), x, 0.0, left=True)  # the factorial of 21 has more than 60 bits
    check(of_math, range(-3, 5), x, 0.0, left=True)


def swapped(it, a, b):
    for i in it:
        a[i], a[-1 - i] = a[-1 - i], a[i]
        kept = a[i]
        a[i] = b[i]
        b[i] = kept
        a[0] = a[a[0] % len(a)] if type(a[0]) is int else a[0]
    return a, b


def test_items_that_change_places_stay_the_same():
    for make in (lambda k: 10**6 + k, lambda k: k + 0.5, lambda k: complex(k, 1)):
        a, b = [make(k) for k in range(8)], [make(-k) for k in range(8)]
        c, d = list(a), list(b)
        fast = compiled(swapped)
        for _ in range(3):
            fast(range(4), a, b)
            swapped(range(4), c, d)
            assert all(x is y for x, y in zip((*a, *b), (*c, *d)))
