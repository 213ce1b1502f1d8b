"""Small kernels, as NumPy functions; one idea each. ``MOVED`` says how many bytes a perfect kernel moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def exp_chain(x):
    return np.exp(-np.sqrt(np.abs(x) + 1.0)) * np.tanh(x) + 0.5 * x


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def softmax_rows(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def layernorm(x, weight, bias):
    mean = np.mean(x, axis=1, keepdims=True)
    centered = x - mean
    variance = np.mean(centered * centered, axis=1, keepdims=True)
    return centered / np.sqrt(variance + 1e-5) * weight + bias


def column_sum(x):
    return np.sum(x, axis=0)


def transpose_add(x, y):
    return x.T + y


def jacobi(u):
    return 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])


def two_arrays(a, b):
    return a * b + 1.0


@dataclass(frozen=True)
class Micro:
    """A kernel, its arguments, and the bytes that must move between memory and the processor."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    bytes_moved: int


ROWS = 4096
COLUMNS = 1024


def _x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)


def _square(n: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, n)).astype(np.float32)


def _affine() -> tuple[Any, ...]:
    return _x(), np.linspace(0.5, 1.5, COLUMNS, dtype=np.float32), np.zeros(COLUMNS, dtype=np.float32)


def _tiny() -> tuple[Any, ...]:
    return np.linspace(0.0, 1.0, 8), np.linspace(1.0, 2.0, 8)


_X = 4 * ROWS * COLUMNS
_S = 4 * 2048 * 2048

MICRO: tuple[Micro, ...] = (
    Micro("exp_chain", exp_chain, lambda: (_x(),), 2 * _X),
    Micro("gelu", gelu, lambda: (_x(),), 2 * _X),
    Micro("softmax_rows", softmax_rows, lambda: (_x(),), 2 * _X),
    Micro("layernorm", layernorm, _affine, 2 * _X),
    Micro("column_sum", column_sum, lambda: (_x(),), _X),
    Micro("transpose_add", transpose_add, lambda: (_square(2048), _square(2048)), 3 * _S),
    Micro("jacobi", jacobi, lambda: (_square(2048),), 2 * _S),
    Micro("call_overhead", two_arrays, _tiny, 0),
)
