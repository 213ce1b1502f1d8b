"""Graphs whose sizes depend on the data either work or break: they do not fall back again and again."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.policy.fallback import _ENOUGH, _OFTEN
from tests.capture.comparing import call, differences
from tests.capture.random_sizes import Made, N

LINES = 10
CALLS = 24
SETTLED = 16  # calls after which nothing falls back any more


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    dyncomp.reset()


def run(made: Made, numbers, backend: str) -> list[int]:
    """Fallbacks so far after each call; results are those of plain Python."""
    dyncomp.reset()
    compiled = dyncomp.compile(made.function, backend=backend)
    counts = []
    for number in numbers:
        arguments = made.arguments(number)
        expected = call(made.function, made.arguments(number))
        found = call(compiled, arguments)
        problems = differences(expected, found, 1e-9)
        assert not problems, f"{made.text}\ncall {number}: {problems}"
        counts.append(dyncomp.stats()["fallbacks"])
    assert not dyncomp.stats()["internal_errors"]
    return counts


def check(seed: int, backend: str, few: bool) -> None:
    made = Made(seed, LINES, few)
    counts = run(made, range(CALLS), backend)
    most = _ENOUGH * (1 + sum(dyncomp.stats()["breaks"].values())) + CALLS // _OFTEN
    assert counts[-1] <= most and not dyncomp.stats()["resting"], f"{made.text}\nfallbacks: {counts}"
    # the same data again and again
    for number in (0, 1) if few else (0,):
        counts = run(made, [number] * CALLS, backend)
        settled = counts[-1] == counts[SETTLED] and not dyncomp.stats()["resting"]
        assert settled, f"{made.text}\nfallbacks of call {number}: {counts}"


@pytest.mark.parametrize("seed", range(15))
def test_graphs_work_or_break(seed):
    check(seed, "eager", few=seed % 3 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15, 200))
def test_more_graphs_work_or_break(seed):
    check(seed, "eager", few=seed % 3 == 0)


@pytest.mark.parametrize("seed", range(6))
def test_kernels(seed):
    check(1000 + seed, "inductor", few=seed % 3 == 0)


# What routines in C do between the kernels of a graph: some import modules when they are called.
ROUTINES = (
    "np.sort(s), s[:5]",
    "np.argsort(s), s + 1",
    "np.partition(s, 1), s",
    "np.cumsum(s), np.unique(s)",
    "np.searchsorted(np.sort(s), s)",
    "np.bincount(np.flatnonzero(x > 0)), np.sort(s)",
    "np.argmax(s), np.trapezoid(s)",
    "np.linalg.norm(s), np.dot(s, s)",
    "np.fft.fft(s), np.convolve(s, s)",
    "np.isin(s, s[:3]), np.interp(s, [0, 1], [2, 3])",
)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("expression", ROUTINES)
def test_routines_between_kernels(expression, backend):
    space = {"np": np}
    exec(f"def program(x):\n    s = x[x > 0]\n    return {expression}", space)
    compiled = dyncomp.compile(space["program"], backend=backend, options={"strict": True})
    dyncomp.reset()
    for seed in (0, 0, 1, 2, 3):
        x = np.random.default_rng(seed).standard_normal(N)
        assert not differences(call(space["program"], (x,)), call(compiled, (x,)), 1e-9)
    assert not dyncomp.stats()["fallbacks"]


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many(block):
    for seed in range(block * 100, block * 100 + 100):
        check(10_000 + seed, "eager", few=seed % 3 == 0)
