"""``options={"tier": "fast-first"}``: code built quickly serves until the optimised build takes its place.

Both are of the same source and compute the same bits: what is given up is optimisation, and contraction and
reassociation are forbidden at every level. Measured on graphs of models: without optimisation the compiler
needs a quarter of the time and the code ten to twenty times as long; at the first level three quarters, and a
tenth to a third longer. So the work of a call decides which of the two comes first.
"""

from __future__ import annotations

import logging
import time
import weakref
from typing import Any

from ... import faults
from ...build.background import builder
from ...build.kernel_cache import KernelCache
from ...build.library import Library
from ...build.toolchain import Runner, Toolchain
from ...dataclass import dataclass
from ...errors import ToolchainError
from ...symbolic.integers import hint
from ..launch import LaunchPlan, addresses
from ..schedule import Alternatives, CallBlas, CallChain, LaunchKernel, Module

log = logging.getLogger("dyncomp.inductor")

# Fewer kernels are built at once: the first form would come hardly sooner.
LEAST_KERNELS = 3
# Nanoseconds of the compiler for a kernel that are saved without optimisation.
SAVED_NS = 12e6
# How many times as long code takes without optimisation.
SLOWER = 15.0


@dataclass(eq=False)
class Tier:
    """Which build of a graph's code runs. ``seconds``: from its first to its best build."""

    fast: tuple[str, ...]
    state: str = "fast"
    seconds: float = 0.0
    reason: str = ""

    def describe(self) -> str:
        if self.state == "fast":
            return f"runs code built with {' '.join(self.fast)}; the optimised build is being made"
        if self.state == "best":
            return f"runs optimised code, {self.seconds:.2f} s after code built with {' '.join(self.fast)}"
        return f"runs code built with {' '.join(self.fast)}; the optimised build failed: {self.reason}"


@dataclass(eq=False)
class FirstBuild:
    """The library to begin with, and how to go on: ``tier`` is ``None`` where it is the best one already."""

    library: Library
    source: str
    toolchain: Toolchain
    cache: KernelCache
    tier: Tier | None = None

    def improve(self, call: Any, plan: LaunchPlan) -> None:
        """Have the optimised build take the place of the first one in ``call``."""
        if self.tier is None:
            return
        tier, source, toolchain, cache = self.tier, self.source, self.toolchain, self.cache
        begin = time.perf_counter()
        target = weakref.ref(call)

        def job(runner: Runner) -> None:
            if target() is None:
                return
            try:
                library = cache.load(source, toolchain, runner)
            except ToolchainError as error:
                if not runner.stopped:
                    if faults.is_fault(error):
                        faults.note(f"{plan.name} runs code that is not optimised", error, False)
                    tier.state, tier.reason = "failed", str(error).partition("\n")[0]
                    log.warning("%s keeps its first build: %s", plan.name, error)
                return
            graph = target()
            if graph is not None:
                graph.retarget(*addresses(plan, library))
                tier.state, tier.seconds = "best", time.perf_counter() - begin

        builder().submit(job)


def first_build(
    source: str,
    module: Module,
    toolchain: Toolchain,
    cache: KernelCache,
    fast: bool,
    runner: Runner | None = None,
) -> FirstBuild:
    """The library of ``source``: where ``fast``, and no optimised one is at hand, what is built soonest."""
    flags = fast_flags(module) if fast else ()
    library = cache.find(source, toolchain) if flags else None
    if not flags or library is not None:
        return FirstBuild(library or cache.load(source, toolchain, runner), source, toolchain, cache)
    library = cache.load(source, toolchain.with_flags(flags), runner)
    return FirstBuild(library, source, toolchain, cache, Tier(flags))


def fast_flags(module: Module) -> tuple[str, ...]:
    """How to build a module first; nothing: as it is to be in the end."""
    steps = [step for segment in module.segments for step in segment.flat]
    kernels = {_kernel_of(step) for step in steps} - {None}
    if len(kernels) < LEAST_KERNELS:
        return ()
    work = sum(_work_ns(step) for step in steps)
    return ("-O0",) if SLOWER * work < SAVED_NS * len(kernels) else ("-O1",)


def _tile_of(step: object) -> Any:
    if isinstance(step, CallChain):
        step = step.first
    return step.epilogue if isinstance(step, CallBlas) else None


def _kernel_of(step: object) -> Any:
    if isinstance(step, LaunchKernel):
        return step.kernel
    tile = _tile_of(step)
    return None if tile is None else tile.kernel


def _work_ns(step: object) -> float:
    """Estimated time of what the compiler makes of a step; products are the runtime's."""
    assert not isinstance(step, Alternatives)
    if isinstance(step, LaunchKernel):
        return step.point_ns * hint(step.points)
    tile = _tile_of(step)
    return 0.0 if tile is None else float(tile.work_ns)
