"""Two ways to do the same, timed in turn, so that what else the machine does meets both. Where one thread
does all of the work the time of its processor counts: other work on a busy machine changes that less."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...runtime import num_threads

# What a form takes of another one's time to be called faster: less would be noise.
CLEARLY = 0.97
ROUNDS = 15
LEAST_ROUNDS = 3
# Calls go on for so long in a round.
ROUND_SECONDS = 2e-4


def in_turn(
    first: Callable[..., Any],
    second: Callable[..., Any],
    arguments: Sequence[Any],
    seconds: float,
    least_rounds: int = LEAST_ROUNDS,
    alone: bool = False,
) -> tuple[list[float], list[float]]:
    """Seconds of a call of both, round by round, for about so many ``seconds`` (but some rounds at least).
    ``alone``: no library, which may have threads of its own, takes part."""
    clock = time.thread_time if alone and num_threads() == 1 else time.perf_counter
    end = time.perf_counter() + seconds
    count = 1
    for call in (first, second):
        call(*arguments)
        count = max(count, int(ROUND_SECONDS / max(_seconds(call, arguments, 1, clock), 1e-7)))
    times: tuple[list[float], list[float]] = ([], [])
    for done in range(ROUNDS):
        if done >= least_rounds and time.perf_counter() >= end:
            break
        for call, found in zip((first, second), times):
            found.append(_seconds(call, arguments, count, clock))
    return times


def is_faster(these: Sequence[float], those: Sequence[float]) -> bool:
    """Whether one's rounds are faster than those of another beyond noise: the best one, and in most turns."""
    ratio = statistics.median(a / b for a, b in zip(these, those))
    return ratio < CLEARLY and min(these) < CLEARLY * min(those)


def _seconds(
    call: Callable[..., Any], arguments: Sequence[Any], count: int, clock: Callable[[], float]
) -> float:
    start = clock()
    for _ in range(count):
        call(*arguments)
    return (clock() - start) / count
