"""How long each step of a compiled graph takes: the same kernels, built once more with a clock between steps.

The launch plan calls the clock as a step of its own (about 100 ns), and each step of the schedule becomes a
function of its own. So every step runs on the data that the graph itself would give it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...build.kernel_cache import open_cache
from ...build.library import load_vector_math
from ...build.toolchain import Toolchain
from ...dataclass import dataclass
from ..launch import KernelStep, LaunchPlan, PyCallStep, build
from ..launch import Step as PlanStep
from ..render.cpp.unit import render_module
from ..schedule import Module, PlainStep, Segment
from .forms import Form

# Rounds of all steps that are timed, within so many seconds.
MOST_ROUNDS, LEAST_ROUNDS = 30, 3


@dataclass
class StepClock:
    """A graph with a clock between its ``steps``. ``call`` takes what the graph takes and returns nothing."""

    steps: tuple[PlainStep | PyCallStep, ...]
    call: Callable[..., Any]
    stamps: list[int]

    def seconds(self, arguments: Sequence[Any], at_most: float) -> list[float]:
        """The best time of each step in seconds, over some calls with ``arguments``, which are written to
        as the graph does. Raises what the graph raises."""
        self.call(*arguments)  # pages are touched, copies of weights packed
        end = time.perf_counter() + at_most
        rounds: list[list[int]] = []
        while len(rounds) < LEAST_ROUNDS or (len(rounds) < MOST_ROUNDS and time.perf_counter() < end):
            self.stamps.clear()
            self.call(*arguments)
            rounds.append([after - before for before, after in zip(self.stamps, self.stamps[1:])])
        return [min(of_step) * 1e-9 for of_step in zip(*rounds, strict=True)]


def steps_of(module: Module, plan: LaunchPlan) -> list[PlainStep | PyCallStep]:
    """The steps of a graph in order, those of the schedule and calls of library routines."""
    segments = {segment.symbol: segment for segment in module.segments}
    found: list[PlainStep | PyCallStep] = []
    for step in plan.steps:
        found += segments[step.symbol].flat if isinstance(step, KernelStep) else [step]
    return found


def with_clock(
    module: Module, plan: LaunchPlan, form: Form, toolchain: Toolchain | None, serial_ns: float
) -> StepClock:
    """Build ``module`` (for the CPU) with a clock between its steps. ``serial_ns``: kernels below so much
    work run on the calling thread. Raises ``ToolchainError`` where it cannot be built."""
    stamps: list[int] = []

    def tick() -> tuple[()]:
        stamps.append(time.perf_counter_ns())
        return ()

    clock = PyCallStep(tick, (), ())
    steps = steps_of(module, plan)
    segments: list[Segment] = []
    timed: list[PlanStep] = [clock]
    for number, step in enumerate(steps):
        if isinstance(step, PyCallStep):
            timed += [replace(step, together=1), clock]
            continue
        segments.append(Segment(f"step_{number}", (step,)))
        timed += [KernelStep(f"step_{number}"), clock]
    library = None
    if segments or module.sizes:
        assert toolchain is not None
        vector_calls = toolchain.calls_vectors and load_vector_math() and not form.inlined
        apart = replace(module, segments=tuple(segments))
        source = render_module(apart, serial_ns, vector_calls, form.knobs)
        library = open_cache(os.environ).load(source, toolchain)
    timed_plan = replace(plan, steps=tuple(timed), results=(), single=False, on_status=None, first_write=None)
    return StepClock(tuple(steps), build(timed_plan, library), stamps)
