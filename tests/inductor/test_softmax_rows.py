"""Softmax between two products, by the runtime: weights are divided by their sums after the second one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.inductor.test_chain import RNG, attention, biased, causal, data, masked, softmax, three


def found(artifacts: list, program: Any, arguments: tuple, by_runtime: bool = True) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = dyncomp.compile(program)(*arguments)
    assert ("first.softmax = " in artifacts[-1].source) == by_runtime
    return result


def plain(program: Any, arguments: tuple) -> np.ndarray:
    with np.errstate(all="ignore"):
        return program(*arguments)


def close_to_float64(got: np.ndarray, program: Any, arguments: tuple) -> None:
    wide = tuple(a.astype("float64") if a.dtype == np.float32 else a for a in arguments)
    want = plain(program, wide)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6 * max(1.0, float(np.nanmax(np.abs(want)))))


@pytest.mark.parametrize("n", [2, 15, 16, 17, 31, 33, 100, 527])
@pytest.mark.parametrize("m", [40, 130])
def test_lengths(artifacts: list, m: int, n: int) -> None:
    arguments = three(2, m=m, n=n, e=65, f=67)
    close_to_float64(found(artifacts, attention, arguments), attention, arguments)


@pytest.mark.parametrize("scale", [1e-3, 10.0, 100.0])
def test_weights_of_all_sizes(artifacts: list, scale: float) -> None:
    q, k, v = three(m=60, n=70)
    arguments = (q * np.float32(scale), k, v)
    wide = plain(attention, tuple(a.astype("float64") for a in arguments))
    got = found(artifacts, attention, arguments)
    np.testing.assert_allclose(got, wide, rtol=0, atol=2e-6 * max(1.0, scale))


def test_values_whose_sum_is_too_large(artifacts: list) -> None:
    q, k, v = three(2, m=40, n=300)
    v[0] = 3e38
    arguments = (q * np.float32(0.01), k, v)
    got = found(artifacts, attention, arguments)
    np.testing.assert_allclose(got[0], 3e38, rtol=1e-5)
    close_to_float64(got[1], attention, tuple(a[1] for a in arguments))


@pytest.mark.parametrize("place", [(0, 0), (5, 39)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_scores(artifacts: list, place: tuple[int, int], value: float) -> None:
    bias = data(40, 50)
    bias[place] = value
    bias[7] = value
    bias[9] = -np.inf
    bias[9, 30] = np.nan
    bias[11] = -np.inf
    arguments = (*three(2, 3), bias)
    close_to_float64(found(artifacts, biased, arguments), biased, arguments)


def test_masks(artifacts: list) -> None:
    for mask in (RNG.random((40, 50)) < 0.5, RNG.random((2, 1, 1, 50)) < 0.5):
        arguments = (*three(2, 3), mask)
        close_to_float64(found(artifacts, masked, arguments), masked, arguments)


def test_a_scale_after_the_product(artifacts: list) -> None:
    arguments = tuple(2 * a for a in three(3, m=50, n=60))
    close_to_float64(found(artifacts, attention, arguments), attention, arguments)
    assert "first.factor = 0.3" in artifacts[-1].source


def test_causal_sizes_that_change(artifacts: list) -> None:
    compiled = dyncomp.compile(causal, dynamic=True)
    for n in (40, 90, 300):
        arguments = three(2, m=n, n=n)
        close_to_float64(compiled(*arguments), causal, arguments)


def test_float64_has_its_own_rows(artifacts: list) -> None:
    arguments = three(2, dtype="float64")
    np.testing.assert_allclose(
        found(artifacts, attention, arguments, False), attention(*arguments), rtol=0, atol=1e-13
    )


def test_no_rows() -> None:
    arguments = three(2, m=0)
    assert dyncomp.compile(lambda q, k, v: softmax(q @ np.swapaxes(k, -1, -2)) @ v)(*arguments).shape == (
        2,
        0,
        24,
    )


def test_the_same_kernel_for_rows_that_are_no_softmax(artifacts: list) -> None:
    """What is before a softmax is written in place, other rows behind the product."""

    def program(q, k, v):
        s = q @ np.swapaxes(k, -1, -2) + np.float32(1.5)
        return softmax(s) @ v, (q @ np.swapaxes(v, -1, -2) + np.float32(1.5)) @ k

    q, k, v = three(2, n=50, e=32, f=32)
    got = dyncomp.compile(program)(q, k, v)
    want = program(*(a.astype("float64") for a in (q, k, v)))
    for x, y in zip(want, got, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-3)
