"""Reductions over random shapes, axes, memory orders and dtypes, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.errors import Unsupported

from .harness import check

DTYPES = "? b u1 i2 i4 u4 i8 u8 f2 f4 f8 F D".replace(" b ", " i1 ").split()
NAMES = [
    "sum",
    "prod",
    "max",
    "min",
    "any",
    "all",
    "mean",
    "var",
    "std",
    "argmax",
    "argmin",
    "ptp",
    "median",
    "cumsum",
    "cumprod",
    "count_nonzero",
]


def _array(shape: tuple[int, ...], dtype: str, order: str, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    values = (
        rng.integers(0, 5, shape).astype(dtype) if dtype[0] in "?iu" else rng.normal(size=shape).astype(dtype)
    )
    values = np.asarray(values, order="F" if order == "F" else "C")
    return values[..., ::-1] if order == "flipped" and shape else values


def _numpy_refuses(name: str, x: Any, kwargs: dict[str, Any]) -> bool:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            getattr(np, name)(x, **kwargs)
    except (TypeError, ValueError, RuntimeWarning, np.exceptions.ComplexWarning):
        return True
    return False


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_reduction(data: Any) -> None:
    shape = data.draw(st.sampled_from([(5,), (3, 4), (2, 3, 4), (1, 3), (2, 1, 2), (0, 3), (3, 0), ()]))
    name = data.draw(st.sampled_from(NAMES))
    dtype = data.draw(st.sampled_from(DTYPES))
    x = _array(shape, dtype, data.draw(st.sampled_from(["C", "F", "flipped"])), data.draw(st.integers(0, 99)))
    kwargs: dict[str, Any] = {}
    single = name in ("argmax", "argmin", "cumsum", "cumprod")
    if shape and data.draw(st.booleans()):
        axis: Any = data.draw(st.integers(-len(shape), len(shape) - 1))
        if not single and data.draw(st.booleans()):
            count = data.draw(st.integers(1, len(shape)))
            axis = tuple(data.draw(st.permutations(range(len(shape))))[:count])
        kwargs["axis"] = axis
    if name not in ("cumsum", "cumprod") and data.draw(st.booleans()):
        kwargs["keepdims"] = True
    if name in ("sum", "prod", "cumsum", "mean") and data.draw(st.booleans()):
        kwargs["dtype"] = data.draw(st.sampled_from(["f4", "f8", "i4", "D"]))
    refused = _numpy_refuses(name, x, kwargs)
    try:
        check(lambda np, x: getattr(np, name)(x, **kwargs), x, rtol=1e-6 if dtype in ("f4", "F") else 1e-10)
    except Unsupported as reason:
        assert refused or _known_limit(name, x, kwargs, str(reason)), reason


def _known_limit(name: str, x: Any, kwargs: dict[str, Any], reason: str) -> bool:
    if name == "median":
        return x.dtype.kind == "c" or not x.ndim or not x.size
    if x.dtype.kind == "c":
        return (
            name in ("max", "min", "ptp", "argmax", "argmin", "mean", "var", "std")
            or "complex" in reason.lower()
        )
    return name == "mean" and kwargs.get("dtype") == "i4"


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
def test_where(name: str) -> None:
    x = np.random.default_rng(1).normal(size=(4, 5))
    mask = x > -0.5
    extra = {"initial": -9.0} if name in ("max", "min") else {}
    check(lambda np, x, m: getattr(np, name)(x, axis=1, where=m, **extra), x, mask)
    check(lambda np, x, m: getattr(np, name)(x, where=m, keepdims=True, **extra), x, mask)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "ptp", "cumsum"])
def test_out(name: str) -> None:
    x = np.random.default_rng(1).normal(size=(4, 4))
    axis = 0
    out = np.zeros((4, 4) if name == "cumsum" else 4)
    check(lambda np, x, out: getattr(np, name)(x, axis=axis, out=out), x, out)
    with pytest.raises(Unsupported):
        check(lambda np, x, out: getattr(np, name)(x, axis=axis, out=out), x, np.zeros(3))


def test_empty() -> None:
    e = np.zeros((0, 3))
    check(lambda np, e: (e.sum(), e.sum(0), e.prod(0), e.any(), e.all(0), e.max(1), np.cumsum(e)), e)
    for program in (
        lambda np, e: e.max(),
        lambda np, e: e.mean(0),
        lambda np, e: e.argmax(),
        lambda np, e: e.min(0),
    ):
        with pytest.raises(Unsupported):
            check(program, e)


def test_nan_propagates() -> None:
    x = np.array([[1.0, np.nan, 2.0], [3.0, 0.5, -1.0]])
    check(lambda np, x: (x.max(), x.min(1), x.argmax(), x.argmin(1), np.median(x, 1), x.sum(0)), x)


def test_large_sum_is_accurate() -> None:
    x = np.random.default_rng(0).normal(size=100_003).astype("f4")
    check(lambda np, x: (x.sum(), x.mean(), x.var()), x, rtol=1e-5)
