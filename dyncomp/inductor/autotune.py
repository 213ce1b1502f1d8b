"""``mode="max-autotune"``: the same C++ built in several ways, the fastest on the first call's inputs kept.

What is varied is what the compiler may do with a translation unit (optimisation level, vector width), and
whether elementary functions are inlined or called. Loops, tiles and results are the same, bit for bit, since
contraction and reassociation stay forbidden.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ToolchainError
from ..graph.ir import Graph
from .codecache import KernelCache
from .launch import LaunchPlan, Library, build
from .toolchain import Toolchain, find_toolchain

VARIANTS: tuple[tuple[str, ...], ...] = (
    ("-O3",),
    ("-O2", "-mprefer-vector-width=256"),
    ("-O3", "-mprefer-vector-width=512", "-funroll-loops"),
)
REPEATS = 5
BUDGET_SECONDS = 2.0


def fastest(
    graph: Graph,
    plan: LaunchPlan,
    sources: Sequence[str],
    library: Library,
    cache: KernelCache,
    examples: Sequence[Any],
) -> Callable[..., Any]:
    """The launch object of the fastest variant; the default one where inputs cannot be copied or no other
    variant builds. ``library`` is of the first of ``sources``, which compute the same bits."""
    default = build(plan, library)
    arguments = _arguments(graph, examples)
    if arguments is None:
        return default
    candidates = [default]
    toolchain = find_toolchain()
    variants = [(sources[0], _with_flags(toolchain, extra)) for extra in VARIANTS]
    variants += [(source, toolchain) for source in sources[1:]]
    for source, variant in variants:
        try:
            candidates.append(build(plan, cache.load(source, variant)))
        except ToolchainError:
            continue
    seconds = [_time(call, arguments) for call in candidates]
    return candidates[seconds.index(min(seconds))]


def _with_flags(toolchain: Toolchain, extra: tuple[str, ...]) -> Toolchain:
    return dataclasses.replace(
        toolchain,
        flags=(*toolchain.flags, *extra),
        fingerprint=f"{toolchain.fingerprint} {' '.join(extra)}",
    )


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


def _time(call: Callable[..., Any], arguments: list[Any]) -> float:
    """Smallest time of a few calls, within a budget."""
    best = float("inf")
    begin = time.perf_counter()
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        call(*arguments)
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begin > BUDGET_SECONDS:
            break
    return best
