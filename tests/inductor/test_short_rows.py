"""Reductions of many rows of a few elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor.render.arrange import is_short_row


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True), x.argmax(axis=1), (x > 0).sum(axis=1)


@pytest.mark.parametrize("length", [9, 10, 12, 16, 18, 19])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows(length: int, dtype: str) -> None:
    x = np.random.default_rng(length).normal(size=(501, length)).astype(dtype)
    x[7, 3], x[9, 0], x[11] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = softmax(x)
    for mine, theirs in zip(dyncomp.compile(softmax)(x), expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5 if dtype == "float32" else 1e-13)


def test_few_rows_are_summed_in_order() -> None:
    assert is_short_row(16, True)
    assert not is_short_row(16, False)
    assert is_short_row(19, False)
    assert is_short_row(8, False)
    assert is_short_row(10, False)
    assert not is_short_row(20, True)
