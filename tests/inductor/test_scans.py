"""What reads a running sum joins its loop: one pass, the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp

X = np.random.default_rng(0).normal(size=(37, 53))


def scaled(x: Any, axis: int) -> Any:
    return np.cumsum(x * 2.0, axis) + 1.0


def both(x: Any, axis: int) -> Any:
    total = np.cumsum(x, axis)
    return total, total * x


def heavy(x: Any, axis: int) -> Any:
    return np.exp(np.cumsum(x, axis) * 0.1) + np.sin(np.cumsum(x, axis))


def in_place(x: Any, axis: int) -> Any:
    x = x + 0.0
    x[...] = np.cumsum(x, axis) - x
    return x


def last(x: Any, axis: int) -> Any:
    return np.cumsum(x, axis).take(-1, axis) * 2.0


def twice(x: Any, axis: int) -> Any:
    return np.cumsum(np.cumsum(x, axis) + 1.0, axis) - 1.0


def reduced(x: Any, axis: int) -> Any:
    return (np.cumsum(x, axis) * x).max(axis)


def reversed_rows(x: Any, axis: int) -> Any:
    return np.cumsum(x, axis)[::-1] + x


def shifted(x: Any, axis: int) -> Any:
    total = np.cumsum(x, axis)
    return total[1:] - total[:-1]


PROGRAMS = (scaled, both, heavy, in_place, last, twice, reduced, reversed_rows, shifted)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_same_values(program: Any, axis: int) -> None:
    wanted = program(X.copy(), axis)
    report = dyncomp.explain(program)(X.copy(), axis)
    assert not report.breaks
    assert not report.skipped
    for mine, theirs in zip(
        report.result if isinstance(wanted, tuple) else (report.result,),
        wanted if isinstance(wanted, tuple) else (wanted,),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "complex64", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_dtypes(dtype: str, axis: int) -> None:
    x = (X * 3).astype(dtype)
    wanted = both(x, axis)
    for mine, theirs in zip(dyncomp.compile(both)(x, axis), wanted):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "program, axis, kernels", [(scaled, 0, 1), (scaled, 1, 1), (both, 0, 1), (both, 1, 1)]
)
def test_one_pass(program: Any, axis: int, kernels: int) -> None:
    assert len(dyncomp.explain(program)(X, axis).kernels) == kernels


def test_special_values() -> None:
    x = X.copy()
    x[3, 5], x[20, 9], x[30, 1] = np.inf, np.nan, -0.0
    for axis in (0, 1):
        np.testing.assert_allclose(dyncomp.compile(scaled)(x, axis), scaled(x, axis), rtol=1e-12)
