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
