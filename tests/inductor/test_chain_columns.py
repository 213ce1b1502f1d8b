"""Chains of products whose rows have few columns: reductions are unrolled over several rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.inductor.test_chain import data, softmax


def weighted(a, b, v):
    return softmax(a @ b) @ v


def shares(a, b, v):
    s = a @ b
    return s / np.sum(s, axis=-1, keepdims=True) @ v


def layer_norm(a, b, v):
    s = a @ b
    far = s - np.mean(s, axis=-1, keepdims=True)
    return far / np.sqrt(np.mean(far * far, axis=-1, keepdims=True) + 1e-5) @ v


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("program", "n"), [(weighted, 3), (shares, 7), (layer_norm, 7)])
def test_few_columns(program: Callable[..., Any], n: int, dtype: str) -> None:
    compiled = dyncomp.compile(program)
    a, b, v = data(64, 100), data(100, n), data(n, 100)
    a, b = (abs(a), abs(b)) if program is shares else (a, b)
    operands = [x.astype(dtype) for x in (a / 10, b / 10, v)]
    want = program(*(x.astype("float64") for x in operands))
    found = compiled(*operands)
    assert found.dtype == dtype
    tolerance = {"float16": 3e-2, "float32": 1e-4, "float64": 1e-11}[dtype]
    np.testing.assert_allclose(found, want, rtol=0, atol=tolerance * max(1.0, np.abs(want).max()))
