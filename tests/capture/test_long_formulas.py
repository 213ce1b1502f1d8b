"""Integers whose formulas would double with each operation."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.errors import Unsupported
from dyncomp.symbolic.integers import ShapeEnv
from tests.capture.comparing import check


def digits_of(x, n):
    total = 0
    for d in (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47):
        q = n // d
        n = n - q * d + n % (d + 1) + q
        total += n
    return x + total, n


def test_divisions_of_divisions():
    check(digits_of, *[lambda n=n: (np.arange(2.0), n) for n in (10**6, 10**6 + 7, 5, 123456)])


def test_formulas_have_a_largest_size():
    n = ShapeEnv().new_symbol(10**6, low=0, high=10**9)
    with pytest.raises(Unsupported, match="formula grows"):
        for d in range(3, 40):
            n = n - n // d * d + n % (d + 1)
            assert n.bounds() is not None


def test_products_are_divided_by_their_factors():
    env = ShapeEnv()
    n, m = (env.new_symbol(hint, low=2, high=10**6) for hint in (6, 4))
    assert (64 * n) // n == 64 and type((64 * n) // n) is int
    assert ((4 * n * m + 2 * n) // (2 * n)).same(2 * m + 1)
    assert (n * n * m) % (n * m) == 0 and type((n * n * m) % (n * m)) is int
    for rest in (n + 1, 3 * m, 2 * n * m + m):  # no multiples as far as one can see
        assert rest // (2 * n) == rest.hint // 12 and isinstance(rest // (2 * n), type(n))
