"""Memory-bound kernels, as NumPy functions, with the bytes that each has to move."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .micro import column_sum, exp_chain, gelu, jacobi, layernorm, softmax_rows, transpose_add


def clip_scale(x):
    return np.clip(x, -1.0, 1.0) * 2.0


def axpy(x, y):
    return 2.0 * x + y


def to_int8(x):
    return x.astype(np.int8)


def to_double(x):
    return x.astype(np.float64)


def choose(x, y):
    return np.where(x > 0.5, x * y, np.where(x < -0.5, y, x))


def row_sum(x):
    return np.sum(x, axis=1)


def row_max(x):
    return np.max(x, axis=1)


def row_statistics(x):
    return np.mean(x, axis=1), np.std(x, axis=1), np.max(x, axis=1), np.min(x, axis=1)


def rms_norm(x):
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6)


def logsumexp(x):
    top = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=1)) + top[:, 0]


def column_statistics(x):
    return np.mean(x, axis=0), np.max(x, axis=0)


def flat_sum(x):
    return np.sum(x)


def transpose(x):
    return x.T.copy()


@dataclass(frozen=True)
class Case:
    """``arrays``: how many arrays as large as ``x`` it is given; ``moved``: bytes to move for each byte of
    ``x``. ``square``: arrays are square. ``scales``: it has a weight and a bias besides."""

    name: str
    function: Callable[..., Any]
    arrays: int = 1
    moved: float = 2.0
    square: bool = False
    scales: bool = False

    def arguments(self, total: int) -> tuple[Any, ...]:
        """Arguments of a call that moves about ``total`` bytes."""
        elements = int(total / self.moved) // 4
        columns = 1024
        rows = max(elements // columns, 1)
        if self.square:
            rows = columns = max(math.isqrt(elements) // 64 * 64, 64)
        random = np.random.default_rng(0)
        block = random.standard_normal((min(rows, 512), columns)).astype(np.float32)
        arrays = [np.resize(block, (rows, columns)) for _ in range(self.arrays)]
        if not self.scales:
            return tuple(arrays)
        return *arrays, np.linspace(0.5, 1.5, columns, dtype=np.float32), np.zeros(columns, dtype=np.float32)

    def bytes_moved(self, arguments: tuple[Any, ...]) -> float:
        return self.moved * arguments[0].nbytes


CASES: tuple[Case, ...] = (
    Case("clip, times 2", clip_scale),
    Case("2 x + y", axpy, 2, 3.0),
    Case("to int8", to_int8, 1, 1.25),
    Case("to float64", to_double, 1, 3.0),
    Case("where of where", choose, 2, 3.0),
    Case("exp_chain", exp_chain),
    Case("gelu", gelu),
    Case("flat sum", flat_sum, 1, 1.0),
    Case("row sum", row_sum, 1, 1.0),
    Case("row max", row_max, 1, 1.0),
    Case("mean, std, max, min of rows", row_statistics, 1, 1.0),
    Case("logsumexp of rows", logsumexp, 1, 1.0),
    Case("softmax", softmax_rows),
    Case("layernorm", layernorm, 1, 2.0, scales=True),
    Case("rms norm", rms_norm),
    Case("column sum", column_sum, 1, 1.0),
    Case("mean, max of columns", column_statistics, 1, 1.0),
    Case("transpose", transpose, 1, 2.0, square=True),
    Case("transpose_add", transpose_add, 2, 3.0, square=True),
    Case("jacobi", jacobi, 1, 2.0, square=True),
)
