"""``python -m bench.small``: small programs, where a call's overhead counts, against plain Python and NumPy.

Both ways in turns, so that the ratios stand on a busy machine: the median of the ratios of many rounds.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dyncomp

WARM_UP = 40  # trials of functions captured in pieces are over by then
ROUNDS = 15
ROUND_SECONDS = 0.02

Function = Callable[..., Any]


def add_one(x: Any) -> Any:
    return x + 1


def put_twice(x: Any, i: Any, j: Any) -> None:
    x[i] = 1.0
    x[j] = 2.0


def put_before_inverse(x: Any, m: Any, i: Any) -> Any:
    x[i] = m[0]
    return np.linalg.inv(m)


def inverse(m: Any) -> Any:
    return np.linalg.inv(m)


def solve(m: Any, b: Any) -> Any:
    return np.linalg.solve(m, b)


def determinant(m: Any) -> Any:
    return np.linalg.det(m)


def qr_algorithm(m: Any) -> Any:
    for _ in range(30):
        q, r = np.linalg.qr(m)
        m = r @ q
    return np.sort(np.diag(m))


def primes(n: int) -> Any:
    good = np.ones(n, bool)
    good[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if good[i]:
            good[i * i :: i] = False
    return np.flatnonzero(good)


class Number:
    """A number that knows how to give its gradient to what it was made of."""

    def __init__(self, data: Any, parts: tuple[Number, ...] = ()) -> None:
        self.data = data
        self.grad = 0.0
        self.back: Callable[[], None] = lambda: None
        self.parts = set(parts)

    def __mul__(self, other: Number) -> Number:
        out = Number(self.data * other.data, (self, other))

        def back() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.back = back
        return out

    def backward(self) -> None:
        order: list[Number] = []
        seen = set()

        def visit(node: Number) -> None:
            if node not in seen:
                seen.add(node)
                for part in node.parts:
                    visit(part)
                order.append(node)

        visit(self)
        self.grad = np.ones_like(self.data)
        for node in reversed(order):
            node.back()


def gradients(a: Any, b: Any) -> Any:
    x, y = Number(a), Number(b)
    z = x * y * x * y
    z.backward()
    return z.data, x.grad, y.grad


_MATRIX = 2.0 * np.eye(3) + 0.1
_AT = np.array([3, 4])
CASES: tuple[tuple[Function, tuple[Any, ...]], ...] = (
    (add_one, (np.arange(10.0),)),
    (put_twice, (np.zeros(100_000), _AT, _AT + 5)),
    (put_before_inverse, (np.zeros((1000, 3)), _MATRIX, 7)),
    (inverse, (_MATRIX,)),
    (solve, (_MATRIX, np.ones(3))),
    (determinant, (_MATRIX,)),
    (qr_algorithm, (np.random.default_rng(0).random((20, 20)),)),
    (primes, (3000,)),
    (gradients, (np.arange(4.0), np.arange(4.0))),
)


def seconds(function: Function, arguments: tuple[Any, ...], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function(*arguments)
    return (time.perf_counter() - start) / count


def measure(function: Function, arguments: tuple[Any, ...]) -> tuple[float, float, float]:
    """Least microseconds of both ways, and the median ratio of the rounds."""
    compiled = dyncomp.compile(function)
    arguments = copy.deepcopy(arguments)
    seconds(compiled, arguments, WARM_UP)
    count = max(1, int(ROUND_SECONDS / seconds(function, arguments, 3)))
    rounds = [
        (seconds(function, arguments, count), seconds(compiled, arguments, count)) for _ in range(ROUNDS)
    ]
    ratio = statistics.median(plain / mine for plain, mine in rounds)
    return min(p for p, _ in rounds) * 1e6, min(m for _, m in rounds) * 1e6, ratio


def main() -> None:
    print("|  | plain µs | dyncomp µs | ratio |\n| --- | ---: | ---: | ---: |")
    for function, arguments in CASES:
        plain, mine, ratio = measure(function, arguments)
        print(f"| {function.__name__} | {plain:.2f} | {mine:.2f} | {ratio:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
