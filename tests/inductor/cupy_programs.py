"""NumPy-style programs over an array module ``xp``, for CuPy: with their inputs as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[..., Any]
Make = Callable[[], tuple[Any, ...]]
CASES: list[tuple[Program, Make]] = []


def r(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    generator = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        return generator.integers(0, 9, shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


def case(*arrays: Any) -> Callable[[Program], Program]:
    """Register a program with the arrays that it takes; ``arrays`` may be one function that makes them."""

    def register(program: Program) -> Program:
        CASES.append((program, arrays[0] if callable(arrays[0]) else lambda: arrays))
        return program

    return register


@case(lambda: (r(5, 7), r(7)))
def chain(xp: Any, x: Any, y: Any) -> Any:
    return xp.exp(-xp.abs(x)) * y + xp.sqrt(x * x + 1.0) / 2


@case(lambda: (r(5, 7, dtype="float32"), r(5, 7, dtype="int32")))
def promotes(xp: Any, x: Any, n: Any) -> Any:
    return x * 2, x + n, n / 2, n * 2.5, n + np.float32(1), x * np.float64(2), n > 3, ~(x > 0)


@case(lambda: (r(3, 4, 5), r(3, 4, 5, dtype="float32")))
def reduces(xp: Any, x: Any, y: Any) -> Any:
    parts = [x.sum(), y.sum(axis=1), x.mean(axis=(0, 2)), xp.max(y, axis=-1, keepdims=True), y.min()]
    parts += [x.std(axis=0), xp.var(y, axis=1, ddof=1), x.argmax(axis=1), xp.argmin(y), (x > 0).any(axis=0)]
    return (*parts, xp.all(y < 10), xp.prod(x, axis=2), (x > 0).sum(axis=1), xp.sum(y, dtype="float64"))


@case(lambda: (r(40, 30),))
def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@case(lambda: (r(6, 5), r(5, 4), r(4)))
def layer(xp: Any, x: Any, w: Any, b: Any) -> Any:
    return xp.maximum(x @ w + b, 0), xp.dot(x, w).T, xp.matmul(w.T, x.T), x.dot(w)


@case(lambda: (r(4, 6),))
def views(xp: Any, x: Any) -> Any:
    y = x * 2
    parts = y[1:, ::2], x.T, x[0], x[1, 2], y.reshape(3, 8)
    return *parts, x[::-1], x[None, :, 3], xp.transpose(x), y[2].ravel()


@case(lambda: (r(4, 6),))
def written(xp: Any, x: Any) -> Any:
    x[0] = 1.5
    x[1:, 2] += 3
    x *= 2
    x[x > 4] = -1
    x[3, 3] = x[0, 0]
    return x.sum()


@case(lambda: (r(5, 6),))
def one_element(xp: Any, x: Any) -> Any:
    """What an integer selects shares memory with the array."""
    first = x[0, 0, ...] if xp is np else x[0, 0]
    x += 1
    total = x.sum()
    total += first
    return first, total, x.max() - x.min()


@case(lambda: (r(8, 3), np.array([0, 3, 7, 3]), np.array([[2, 1], [0, 0]])))
def gathers(xp: Any, x: Any, rows: Any, more: Any) -> Any:
    return x[rows], x[rows, 1], x[:, more], xp.take(x, rows, axis=0), x[[0, 2]], x[more, 0]


@case(lambda: (r(8, 3), np.array([0, 3, 7])))
def scatters(xp: Any, x: Any, rows: Any) -> Any:
    x[rows] = 2.0
    x[rows, 1] += 5
    return x


@case(lambda: (r(5, 7), r(5, 7, dtype="float32"), r(7, 5)))
def chooses(xp: Any, x: Any, y: Any, z: Any) -> Any:
    clipped = xp.clip(x, -1, 1), x.clip(0, None), xp.minimum(x, y)
    return xp.where(x > 0, x, 0.0), xp.where(y > 0, y, z.T), *clipped


@case(lambda: (r(4, 5, seed=1), r(4, 5, seed=2)))
def joins(xp: Any, x: Any, y: Any) -> Any:
    a, b = xp.split(x, 2)
    return xp.concatenate([x, y]), xp.stack((x, y), axis=1), xp.vstack([a, b]), xp.hstack([x, y]), a + b


@case(lambda: (r(6),))
def creates(xp: Any, x: Any) -> Any:
    grid = xp.arange(6, dtype="float64") / 6
    total = xp.zeros(6) + xp.ones((2, 6)) * xp.linspace(0, 1, 6) + grid * x
    like = xp.zeros_like(x), xp.full_like(x, 2.0)
    return total, *like, xp.full((2, 3), 7), xp.eye(3), xp.array([1, 2, 3]) + 1


@case(lambda: (r(30), r(30, dtype="float32", seed=3)))
def scans(xp: Any, x: Any, y: Any) -> Any:
    return x.cumsum(), xp.cumsum(y), xp.diff(x), xp.roll(y, 3), xp.flip(x), xp.tile(y, 2)


@case(lambda: (np.array([1 + 2j, -0.5j, 3.0]), np.array([0.5, 1.5, -1.0])))
def complexes(xp: Any, z: Any, x: Any) -> Any:
    return z * x, z + 1j, z / (z + 2), xp.conj(z), xp.abs(z), z.sum(), -z


@case(lambda: (r(40), r(40, seed=1)))
def numpys_names(xp: Any, x: Any, y: Any) -> Any:
    """NumPy's functions call CuPy's for its arrays."""
    return np.sin(x) + np.maximum(x, y), np.sum(x), np.concatenate([x, y]), np.zeros_like(x)


@case(lambda: (r(12, dtype="int64"), r(12, dtype="uint8")))
def integers(xp: Any, n: Any, m: Any) -> Any:
    bits = n & 3, n << 1, -n, xp.sign(n - 4)
    return n // 3, n % 4, n**2, m * 2, m + m, *bits, n.mean(), m.sum(), n.astype("float32")


@case(lambda: (r(20),))
def python_numbers(xp: Any, x: Any) -> Any:
    return x * float(x.sum()), int(x.argmax()), x.max().item()


@case(lambda: (r(6, 7)[:, ::-1], r(7, 6).T, r(12, 14)[::2, ::2]))
def layouts(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return a + b * c, a.copy(), b + 1, xp.sqrt(abs(b)), c.sum(axis=0), a.astype("float32")
