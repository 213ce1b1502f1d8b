"""Matrix products whose tiles are finished by the kernel that reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp

RNG = np.random.default_rng(0)


def data(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def linear(x, w, b):
    return np.maximum(x @ w + b, 0)


def gelu(x, w, b):
    y = x @ w + b
    return 0.5 * y * (1 + np.tanh(0.79788456 * (y + 0.044715 * y**3)))


def residual(x, w, r):
    return np.exp(-np.abs(x @ w)) * 2 + r


def converted(x, w):
    return (x @ w).astype(np.float64) + 1


def compared(x, w):
    return (x @ w) > 0


def row_and_column(x, w, rows, cols):
    return (x @ w - rows[:, None]) / cols


def turned(x, w, b):
    return (x.T @ w.T) * 2 + b


def two_results(x, w, b):
    y = x @ w
    return np.tanh(y), y + b


def two_products(x, w, b):
    h = np.maximum(x @ w + b, 0)
    return (h @ w.T - 1.0) ** 2


def operand_needed_later(x, w):
    y = (x @ w) * 2
    return y, x + 1


def turned_result(x, w):
    return np.ascontiguousarray((x @ w).T) + 1


FUSED = [
    (linear, (data(128, 64), data(64, 300), data(300))),
    (linear, (data(2, 16, 64), data(64, 48), data(48))),
    (gelu, (data(37, 129), data(129, 65), data(65))),
    (gelu, (data(37, 129, dtype="float64"), data(129, 65, dtype="float64"), data(65, dtype="float64"))),
    (residual, (data(3, 4, 20, 30), data(3, 4, 30, 40), data(3, 4, 20, 40))),
    (residual, (data(3, 20, 30), data(30, 40), data(3, 20, 40))),
    (converted, (data(50, 60), data(60, 70))),
    (compared, (data(50, 60), data(60, 70))),
    (row_and_column, (data(50, 60), data(60, 70), data(50), data(70))),
    (turned, (data(40, 100), data(33, 40), data(100, 33))),
    (two_results, (data(50, 60), data(60, 70), data(70))),
    (two_products, (data(64, 50), data(50, 90), data(90))),
    (operand_needed_later, (data(50, 60), data(60, 70))),
    (turned_result, (data(50, 60), data(60, 70))),
    (linear, (data(10, 5000), data(5000, 70), data(70))),
    (linear, (data(1, 700), data(700, 5003), data(5003))),
    (residual, (data(3, 1, 80), data(3, 80, 400), data(3, 1, 400))),
    (linear, (data(7, 60).T.copy().T, data(70, 60).T, data(70))),
]


def same(program: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    expected, found = program(*arguments), dyncomp.compile(program)(*arguments)
    several = expected if isinstance(expected, tuple) else (expected,)
    for want, got in zip(several, found if isinstance(found, tuple) else (found,), strict=True):
        assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
        tolerance = 2e-4 if arguments[0].dtype == np.float32 else 1e-11
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("program", "arguments"), FUSED)
def test_fused(artifacts: list, program: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    same(program, arguments)
    (artifact,) = artifacts
    assert "each tile finished by" in artifact.describe()


def test_a_product_that_only_its_epilogue_reads_has_no_memory(artifacts: list) -> None:
    same(gelu, (data(37, 129), data(129, 65), data(65)))
    assert artifacts[0].temp_bytes == 0


def reduced(x, w):
    return (x @ w).sum(axis=1)


def written_between(x, w):
    y = x @ w
    x[:] = 0
    return y * 2


def returned(x, w):
    return x @ w


def softmax(x, w):
    y = x @ w
    e = np.exp(y - y.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_a_row_that_is_not_one_of_the_operand() -> None:
    """The rows of the product are those of two axes; the other operand has one of them."""
    same(residual, (data(3, 20, 30), data(30, 40), data(20, 40)))


@pytest.mark.parametrize("program", [reduced, written_between, returned, softmax])
def test_others_are_right_too(program: Callable[..., Any]) -> None:
    x, w = data(50, 60), data(60, 70)
    mine, theirs = x.copy(), x.copy()
    expected, found = program(theirs, w), dyncomp.compile(program)(mine, w)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)
    np.testing.assert_array_equal(mine, theirs)


def test_any_number_of_rows(artifacts: list) -> None:
    """Sizes that are symbols."""
    fast = dyncomp.compile(linear, dynamic=True)
    w, b = data(64, 300), data(300)
    for rows in (1, 2, 5, 90, 200):
        x = data(rows, 64)
        np.testing.assert_allclose(fast(x, w, b), linear(x, w, b), rtol=2e-4, atol=2e-4)
    assert any("each tile finished by" in artifact.describe() for artifact in artifacts)
