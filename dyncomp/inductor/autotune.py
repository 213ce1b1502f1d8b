"""``mode="max-autotune"``: the same C++ built in several ways, the fastest on the first call's inputs kept.

What is varied is what the compiler may do with a translation unit (optimisation level, vector width), and
whether elementary functions are inlined or called. Loops, tiles and results are the same, bit for bit, since
contraction and reassociation stay forbidden.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ToolchainError
from ..graph.ir import Graph
from ..runtime import num_threads
from .choices import Tuning, choices_in, key_of, machine_name
from .codecache import KernelCache
from .launch import LaunchPlan, Library, build
from .progress import Progress
from .toolchain import Toolchain, find_toolchain

VARIANTS: tuple[tuple[str, ...], ...] = (
    ("-O3",),
    ("-O2", "-mprefer-vector-width=256"),
    ("-O3", "-mprefer-vector-width=512", "-funroll-loops"),
)
REPEATS = 5
# Of one variant.
BUDGET_SECONDS = 2.0
# What a variant takes of the default one's time to be chosen: less would be noise.
CLEARLY = 0.97


def fastest(
    graph: Graph,
    plan: LaunchPlan,
    sources: Sequence[str],
    library: Library,
    cache: KernelCache,
    examples: Sequence[Any],
    tuning: Tuning,
) -> Callable[..., Any]:
    """The launch object of the fastest variant; the default one where inputs cannot be copied or no other
    variant is faster beyond noise. ``library`` is of the first of ``sources``, which compute the same bits.
    What was found is kept beside ``cache`` for equal sources."""
    default = build(plan, library)
    toolchain = find_toolchain()
    variants = {"default": (sources[0], toolchain)}
    variants |= {" ".join(extra): (sources[0], toolchain.with_flags(extra)) for extra in VARIANTS}
    variants |= {f"source {n}": (source, toolchain) for n, source in enumerate(sources[1:], 1)}
    names = [*variants]
    choices = choices_in(cache.directory)
    key = _key(sources, toolchain, examples)
    number = choices.get(key, names)
    if number is None:
        arguments = _arguments(graph, examples)
        if arguments is None:
            return default
        seconds = _measured(graph.name, variants, plan, cache, default, arguments, tuning)
        number = seconds.index(min(seconds))
        if seconds[number] > CLEARLY * seconds[0]:
            number = 0
        number = choices.put(key, names, number, [s * 1e3 for s in seconds])
    if number == 0:
        return default
    try:
        return build(plan, cache.load(*variants[names[number]]))
    except ToolchainError:
        return default


def _key(sources: Sequence[str], toolchain: Toolchain, examples: Sequence[Any]) -> str:
    """Equal where the same variant is the fastest."""
    shapes = [str(getattr(example, "shape", "")) for example in examples]
    return key_of([machine_name(), toolchain.fingerprint, str(num_threads()), *sources, *shapes])


def _measured(
    title: str,
    variants: Mapping[str, tuple[str, Toolchain]],
    plan: LaunchPlan,
    cache: KernelCache,
    default: Callable[..., Any],
    arguments: list[Any],
    tuning: Tuning,
) -> list[float]:
    """Seconds of a call in each variant; infinite for those that do not build, or come too late."""
    found: list[float] = []
    end = time.perf_counter() + tuning.seconds
    with Progress(f"tuning {title}", len(variants), tuning.progress) as bar:
        for name, variant in variants.items():
            bar.step(name)
            call = default if not found else _built(plan, variant, cache, end)
            if call is None:
                found.append(float("inf"))
                continue
            left = end - time.perf_counter()
            found.append(_time(call, arguments, min(max(left, 0.0), BUDGET_SECONDS)))
    return found


def _built(
    plan: LaunchPlan, variant: tuple[str, Toolchain], cache: KernelCache, end: float
) -> Callable[..., Any] | None:
    """A variant's launch object; ``None`` if it does not build, or not before ``end``."""
    if time.perf_counter() >= end:
        return None
    try:
        return build(plan, cache.load(*variant))
    except ToolchainError:
        return None


def _arguments(graph: Graph, examples: Sequence[Any]) -> list[Any] | None:
    """Copies of the example inputs, then the integers' values at capture."""
    copies: list[Any] = []
    for inp, example in zip(graph.inputs, examples):
        if inp.kind == "array" and type(example) is np.ndarray:
            copies.append(_like(example))
        elif inp.kind != "array" and isinstance(example, (bool, int, float, complex, np.generic)):
            copies.append(example)
        else:
            return None
    if len(copies) != len(graph.inputs):
        return None
    integers = sorted((s for s in graph.symbols if s.kind == "int"), key=lambda s: s.index)
    return copies + [graph.env.symbols[s.name].hint for s in integers]


def _like(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same strides where the array is dense, which is what kernels were made for."""
    copy = array.copy(order="K")
    if copy.strides == array.strides:
        return copy
    span = np.lib.array_utils.byte_bounds(array)
    memory = np.empty(span[1] - span[0], np.uint8)
    offset = array.__array_interface__["data"][0] - span[0]
    window: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, memory.data, offset, array.strides)
    window[...] = array
    return window


def _time(call: Callable[..., Any], arguments: list[Any], budget: float) -> float:
    """Smallest time of a few calls, within a budget in seconds."""
    best = float("inf")
    begin = time.perf_counter()
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        call(*arguments)
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begin > budget:
            break
    return best
