"""Random small programs have NumPy's bits under ``numerics="strict"``, whatever they compute with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dyncomp

from .bits import bits, strictly

_ONE = "exp sin tanh sqrt square abs rint negative sign cbrt reciprocal log1p"
_TWO = "add subtract multiply divide maximum minimum hypot arctan2 fmod copysign"
_UNARY = [
    *(getattr(np, name) for name in _ONE.split()),
    lambda x: x * 0.1 - 1,
    lambda x: x / 3,
    lambda x: x**3,
    lambda x: x.T.copy().T,
    lambda x: x[::-1],
    lambda x: np.where(x > 0, x, -0.0),
    lambda x: x.astype(np.float16).astype(x.dtype),
    lambda x: np.round(x, 2),
    lambda x: x.cumsum(axis=1),
    lambda x: x - x.mean(axis=0),
    lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    lambda x: x - x.max(axis=1, keepdims=True),
    lambda x: x * np.arange(x.shape[1]),
    lambda x: np.sort(x, axis=0),
    lambda x: x @ np.ones((x.shape[1], x.shape[1]), x.dtype),
    lambda x: np.clip(x, 0, 1),
    lambda x: (x * (1 + 1j)).real + np.abs(x * 1j),
    lambda x: x.var(axis=1, keepdims=True) + x,
]  # fmt: skip
_BINARY = [
    *(getattr(np, name) for name in _TWO.split()),
    lambda x, y: x @ y.T @ y / 8,
    lambda x, y: np.einsum("ij,ij->j", x, y) + x,
    lambda x, y: np.where(x > y, x, y),
    lambda x, y: x * y + y,
    lambda x, y: x[:, :1] * y,
]  # fmt: skip


def program(steps: list[tuple[int, int, int]]) -> Callable[..., Any]:
    """Each step applies a function to the last value, or to it and an earlier one."""

    def run(x: Any) -> Any:
        values = [x]
        for kind, number, other in steps:
            if kind:
                values.append(_BINARY[number % len(_BINARY)](values[-1], values[other % len(values)]))
            else:
                values.append(_UNARY[number % len(_UNARY)](values[-1]))
        return values[-1], values[-1].sum(axis=0), values[len(values) // 2]

    return run


def check(steps: list[tuple[int, int, int]], dtype: str, special: bool, backend: str) -> None:
    x = np.random.default_rng(len(steps)).normal(size=(5, 7)).astype(dtype)
    if special:
        x[0, :5] = [-0.0, 0.0, np.inf, np.nan, -1e-40]
    run = program(steps)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # else the original runs to warn
        warnings.simplefilter("ignore")
        wanted = run(x)
        got = strictly(run, backend=backend)(x)
    dyncomp.reset()
    assert not bits(wanted, got)


_STEPS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 9)), min_size=1, max_size=7)


@settings(max_examples=60)
@given(_STEPS, st.sampled_from(["float32", "float64"]), st.booleans())
def test_random_programs(steps: list[tuple[int, int, int]], dtype: str, special: bool) -> None:
    check(steps, dtype, special, "eager")


@pytest.mark.slow
@settings(max_examples=150)
@given(_STEPS, st.sampled_from(["float32", "float64"]), st.booleans())
def test_random_programs_in_kernels(steps: list[tuple[int, int, int]], dtype: str, special: bool) -> None:
    check(steps, dtype, special, "inductor")
