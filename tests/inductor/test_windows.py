"""Values that are read where they were written as a part of something else, and inputs that are overwritten
beside reductions of what is written."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp

ROWS, COLUMNS = 7, 9
STATEMENTS = 9


def check(function: Callable[..., Any], *arguments: np.ndarray) -> Any:
    """Compile, run twice and compare results and arguments; returns the compiled function."""
    compiled = dyncomp.compile(function)
    for _ in range(2):
        wanted_arguments = [a.copy() for a in arguments]
        found_arguments = [a.copy() for a in arguments]
        wanted = function(*wanted_arguments)
        found = compiled(*found_arguments)
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)
        for x, y in zip(found_arguments, wanted_arguments, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)
    return compiled


def grid(rows: int = ROWS, columns: int = COLUMNS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, (rows, columns))


def updated_twice(u, h):
    u[:, 1:-1] -= 0.5 * (h[:, 2:] - h[:, :-2])
    corner = u[:-1, :-1] + u[1:, 1:]
    u[:, 1:-1] += 0.25 * h[:, 1:-1]
    return (corner,)


def overwritten_before_the_last_read(u, h):
    inner = u[1:-1, 1:-1]
    inner = inner * 2.0 + h[1:-1, 1:-1]
    u[1:-1, 1:-1] = inner
    total = u.sum(axis=0)
    u[1:-1, 1:-1] = 0.0
    return inner[:, ::-1] * total[1:-1], u + 1.0


def read_elsewhere(u, h):
    new = u[1:, :] + h[1:, :]
    u[1:, :] = new
    mixed = u[:-1, :] * 3.0
    u[1:-1, :] = new[1:, :] + mixed[:-1, :]
    return (mixed,)


def reshaped(u, h):
    new = h[2:5, :] - u[2:5, :]
    u[2:5, :] = new
    flat = np.cumsum(u, axis=0)
    return flat, new.reshape(-1) * 2.0, new.T @ new


def crest(h, flow):
    h -= 0.1 * flow
    return h.max(), h.sum(axis=0), h.sum(axis=1)


def centred(h, flow):
    h -= flow
    return (h - h.mean(),)


def scaled_rows(h, flow):
    total = h.sum(axis=1, keepdims=True)
    h /= total
    return h.max(axis=1), flow * total


PROGRAMS = (
    updated_twice,
    overwritten_before_the_last_read,
    read_elsewhere,
    reshaped,
    crest,
    centred,
    scaled_rows,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    check(program, grid(), grid(seed=1))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (300, 257), (40, 2000)])
def test_overwriting_beside_reductions(shape):
    for program in (crest, centred, scaled_rows):
        check(program, grid(*shape), grid(*shape, seed=1))


def shallow(u, h):
    for _ in range(3):
        u[:, 1:-1] -= 0.5 * (h[:, 1:] - h[:, :-1])
        u[:, 1:-1] += 0.25 * h[:, 1:]
        h -= u[:, 1:] - u[:, :-1]
    return (h.max(),)


def steps(function: Callable[..., Any], *arguments: np.ndarray) -> int:
    """How many kernels run, and that no temporary memory is used."""
    report = dyncomp.explain(function)(*arguments)
    (entry,) = report.entries
    artifact = entry.compiled.artifact
    assert artifact.temp_bytes == 0
    return sum(len(segment.steps) for segment in artifact.module.segments)


def test_nothing_is_copied():
    check(shallow, grid(200, 301), grid(200, 300))
    steps(updated_in_place, grid(200, 302), grid(200, 302))
    # one for each set of reduced axes, none to copy
    assert steps(crest, grid(200, 300), grid(200, 300)) == 3


def updated_in_place(u, h):
    u[:, 1:-1] -= 0.5 * (h[:, 2:] - h[:, :-2])
    h[1:, :] += u[:-1, :] - u[1:, :]
    u[:, 1:-1] += 0.25 * h[:, 1:-1]
    return ()


# -- random programs --------------------------------------------------------------------------
class Maker:
    """Writes functions of two arrays that update windows of them in place."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values: list[tuple[str, int, int]] = [("a", ROWS, COLUMNS), ("b", ROWS, COLUMNS)]

    def window(self, rows: int, columns: int, shape: tuple[int, int] | None = None) -> tuple[str, int, int]:
        m, n = shape or (self.random.randint(1, rows), self.random.randint(1, columns))
        i, j = self.random.randint(0, rows - m), self.random.randint(0, columns - n)
        return f"[{i}:{i + m}, {j}:{j + n}]", m, n

    def term(self, m: int, n: int) -> str:
        fitting = [v for v in self.values if v[1] >= m and v[2] >= n]
        name, rows, columns = self.random.choice(fitting)
        text = name + self.window(rows, columns, (m, n))[0]
        return f"{text}[::-1]" if self.random.random() < 0.1 else text

    def expression(self, m: int, n: int) -> str:
        terms = [self.term(m, n) for _ in range(self.random.randint(1, 3))]
        return f" {self.random.choice('+-')} ".join(terms) + f" * {self.random.choice((0.5, 0.25))}"

    def statement(self, k: int) -> str:
        kind = self.random.random()
        if 0.5 <= kind < 0.6:
            return f"{self.random.choice('ab')} -= {self.expression(ROWS, COLUMNS)}"
        where, m, n = self.window(ROWS, COLUMNS)
        text = f"v{k} = {self.expression(m, n)}"
        self.values.append((f"v{k}", m, n))
        if kind < 0.5:
            array, sign = self.random.choice("ab"), self.random.choice(("=", "+=", "-="))
            return f"{text}; {array}{where} {sign} v{k}"
        if kind < 0.75:
            total = self.random.choice(("", ", axis=0", ", axis=1, keepdims=True"))
            return f"{text}; v{k} = v{k} + np.max(v{k}{total})"
        return text

    def function(self) -> Callable[..., Any]:
        lines = [f"    {self.statement(k)}" for k in range(STATEMENTS)]
        kept = ", ".join(name for name, _, _ in self.values[2:][-3:])
        sums = "a.max(), b.sum(axis=0)"
        source = "\n".join(["def program(a, b):", *lines, f"    return {sums}, {kept}"])
        space: dict[str, Any] = {"np": np}
        exec(source, space)
        made: Callable[..., Any] = space["program"]
        made.__doc__ = source
        return made


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed):
    check(Maker(seed).function(), grid(), grid(seed=1))
