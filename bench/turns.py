"""Engines measured in turn in one process, so that what else the machine does meets all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any


def _seconds(call: Callable[[], Any], clock: Callable[[], float], times: int) -> float:
    start = clock()
    for _ in range(times):
        call()
    return (clock() - start) / times


def measure_in_turn(
    calls: dict[str, Callable[[], Any]],
    clock: Callable[[], float],
    rounds: int,
    seconds: float,
    pause: float = 0.0,
) -> dict[str, float]:
    """The best seconds per call of each engine by ``clock``, called in turn for ``rounds`` of ``seconds``.

    ``pause``: seconds of sleep before each turn. An engine's idle threads spin for some time (OpenBLAS's for
    tens of milliseconds) and would take cores from the next one.
    """
    times = {}
    for name, call in calls.items():
        call()
        times[name] = max(1, min(1000, int(0.002 / max(_seconds(call, time.perf_counter, 2), 1e-9))))
    best = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(pause)
            begin = time.perf_counter()
            while time.perf_counter() - begin < seconds:
                best[name] = min(best[name], _seconds(call, clock, times[name]))
    return best
