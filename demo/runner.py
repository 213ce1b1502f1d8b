"""Runs one program with NumPy and with dyncomp: times, counters and the comparison."""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .catalog import Program
from .check import compare

MIN_REPEATS = 3
MAX_REPEATS = 50
WARM_UP_CALLS = 3


@dataclass
class Outcome:
    """What one program did. Times in milliseconds per call (the best of several), ``compile_s`` in seconds.

    ``graphs``, ``breaks`` and ``skipped`` (functions left to plain Python) are ``dyncomp.stats()`` of this
    program alone; ``fallbacks`` counts calls that ran the original because a graph raised, or because of an
    error inside dyncomp. ``problems`` is empty where dyncomp gave what NumPy gave.
    """

    name: str
    origin: str
    numpy_ms: float = float("nan")
    dyncomp_ms: float = float("nan")
    compile_s: float = float("nan")
    graphs: int = 0
    breaks: int = 0
    skipped: int = 0
    fallbacks: int = 0
    error: float = float("nan")
    problems: list[str] = field(default_factory=list)

    @property
    def speed_up(self) -> float:
        return self.numpy_ms / self.dyncomp_ms if self.dyncomp_ms else float("nan")

    @property
    def verdict(self) -> str:
        if self.problems:
            return "WRONG"
        return "right" if self.graphs else "not compiled"


def timed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, Any, tuple[Any, ...]]:
    """Seconds of one call on copies of the arguments, its result, and the copies as the call left them."""
    copies = copy.deepcopy(arguments)
    start = time.perf_counter()
    result = function(*copies)
    return time.perf_counter() - start, result, copies


def best_time(function: Callable[..., Any], arguments: tuple[Any, ...], budget: float) -> float:
    """Least seconds of at least three calls, more while ``budget`` seconds last."""
    best = float("inf")
    start = time.perf_counter()
    for repeat in range(MAX_REPEATS):
        best = min(best, timed(function, arguments)[0])
        if repeat + 1 >= MIN_REPEATS and time.perf_counter() - start > budget:
            break
    return best


def count(counters: Mapping[str, Any], name: str) -> int:
    """A counter of ``dyncomp.stats()``; one that is kept by kind is summed."""
    value = counters.get(name, 0)
    if isinstance(value, Mapping):
        return sum(value.values())
    return int(value)


def run(program: Program, quick: bool, budget: float) -> Outcome:
    """Run with both; what dyncomp raises is recorded as a problem, what NumPy raises is raised."""
    import dyncomp

    outcome = Outcome(program.name, program.origin)
    function = program.load()
    arguments = program.make_inputs(quick)
    _, expected, expected_arguments = timed(function, arguments)
    outcome.numpy_ms = 1e3 * best_time(function, arguments, budget)
    dyncomp.reset()
    compiled = dyncomp.compile(program.compiled_from())
    warm_up = []
    try:
        for _ in range(WARM_UP_CALLS):
            seconds, found, found_arguments = timed(compiled, arguments)
            warm_up.append(seconds)
            comparison = compare(program, expected, expected_arguments, found, found_arguments)
            outcome.problems += [p for p in comparison.problems if p not in outcome.problems]
            outcome.error = max(comparison.error, outcome.error if outcome.error >= 0 else 0.0)
        best = best_time(compiled, arguments, budget)
    except Exception as error:
        outcome.problems.append(f"raised {type(error).__name__}: {error}")
        outcome.problems += traceback.format_exc().splitlines()[-7:-1]
        return outcome
    outcome.dyncomp_ms = 1e3 * best
    outcome.compile_s = sum(max(seconds - best, 0.0) for seconds in warm_up)
    counters = dyncomp.stats()
    outcome.graphs = count(counters, "graphs")
    outcome.breaks = count(counters, "breaks")
    outcome.skipped = count(counters, "frames_skipped")
    outcome.fallbacks = count(counters, "fallbacks") + count(counters, "internal_errors")
    return outcome
