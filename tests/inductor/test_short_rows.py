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


def by_rows(x: Any, w: Any) -> Any:
    return (x * w).sum(axis=1), x.sum(axis=1), x.max(axis=1), abs(x - w).min(axis=1), (x * x).sum()


@pytest.mark.parametrize("length", [22, 31, 45, 50, 61, 79, 100, 255])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rests_of_rows(length: int, dtype: str) -> None:
    """Of small integers, which are exact in every order; at the ends what would show in other lanes."""
    rng = np.random.default_rng(length)
    x, w = (rng.integers(-9, 10, shape).astype(dtype) for shape in ((41, length), (length,)))
    x[3, -1], x[5, -2], x[6], x[7, 0] = np.nan, np.inf, -0.0, -np.inf
    expected = by_rows(x, w)
    for mine, theirs in zip(dyncomp.compile(by_rows)(x, w), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(np.signbit(mine[6:7]), np.signbit(theirs[6:7])) if mine.ndim else None


def test_the_end_of_a_row_may_be_the_end_of_the_memory() -> None:
    """What is masked out is not read: the page behind the array is not there to be read."""
    import ctypes
    import mmap

    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address + page), page, 0):
        pytest.skip("no mprotect")
    try:
        x = np.frombuffer(memory, "float64", 3 * 50, page - 3 * 50 * 8).reshape(3, 50)
        x[:] = np.arange(150).reshape(3, 50)
        np.testing.assert_array_equal(dyncomp.compile(lambda x: x.sum(axis=1) * 1.0)(x), x.sum(axis=1))
    finally:
        libc.mprotect(ctypes.c_void_p(address + page), page, 3)
