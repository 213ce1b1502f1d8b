"""Which part of dyncomp is at fault: a graph is taken through it step by step, and compared after each.

Whatever runs here may crash or never end, so all of it runs in forked children
(:mod:`dyncomp.verification.isolated`). The steps, in order:

1. every pass of :data:`dyncomp.pipeline.PASSES`, after which the graph is interpreted;
2. the inductor's passes from graph to graph, likewise;
3. ``lowering``: the kernels, run by the reference of the loop IR. A fault is of the ``memory plan`` if it is
   gone when temporaries do not share memory, of ``fusion`` if every operation alone is right;
4. ``code``: the generated code, with products and kernels apart;
5. ``joins``: the same with products joined with the kernels around them;
6. ``launch``: the graph as the program runs it. For a backend of the user's: ``backend``.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..errors import RejectedCode, ToolchainError, Unsupported, VerifyError
from ..frontends.base import ArrayOwner
from ..graph.interp import Interpreter
from ..graph.ir import Graph
from ..inductor.compile import GRAPH_STEPS, Maker
from ..inductor.reference import PlanReference
from ..inductor.schedule import LaunchKernel
from ..inductor.tuning.forms import DEFAULT, NOTHING, Form
from ..pipeline import PASSES, run_pipeline
from ..verification import isolated
from ..verification.observe import Array, apart
from .case import Case, expected, names_of, results_of, values_of
from .shrink import single

LOWERING, CODE, JOINS, LAUNCH, BACKEND = "lowering", "code", "joins", "launch", "backend"
WRONG, RAISES, CRASHES, HANGS, REJECTED = "wrong", "raises", "crashes", "hangs", "rejected"
ABOUT = {
    WRONG: "gives wrong results",
    RAISES: "raises",
    CRASHES: "crashes",
    HANGS: "does not come to an end",
    REJECTED: "makes code that the compiler rejects",
}

# How long results may run: at least, and times what the references take.
_LEAST_RUN, _LONGER = 2.0, 20.0


@dataclass(frozen=True)
class Fault:
    """``layer``: the step that is at fault; ``kind``: what it does (a key of :data:`ABOUT`); ``text``: how
    that showed; ``detail``: what of the step, where that is known."""

    layer: str
    kind: str
    text: str = ""
    detail: str = ""

    def describe(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{name_of(self.layer)}{detail} {ABOUT[self.kind]}: {self.text}"

    def is_like(self, other: Fault | None) -> bool:
        return other is not None and (self.layer, self.kind) == (other.layer, other.kind)


def name_of(layer: str) -> str:
    """A layer in words."""
    words = {
        LOWERING: "lowering to loops",
        "memory plan": "the memory plan",
        "fusion": "fusion",
        CODE: "generated code",
        JOINS: "joining products with kernels",
        LAUNCH: "the launch",
        BACKEND: "the backend",
        "capture": "capture",
        "guards": "guards",
        "derivatives": "the derivatives",
    }
    return words.get(layer, f"the pass {layer!r}")


class _Place:
    """Where a child is, for its parent to know when it crashes or hangs."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 256)

    def set(self, name: str, runs_for: float = 0.0) -> None:
        """The child is at a step; ``runs_for``: its result is being run, which should take no longer."""
        self.memory[:256] = f"{name}|{runs_for}".encode()[:256].ljust(256, b"\0")

    @property
    def name(self) -> str:
        return self._parts()[0]

    @property
    def runs_for(self) -> float:
        return float(self._parts()[1] or 0)

    def _parts(self) -> tuple[str, str]:
        name, _, seconds = self.memory[:256].rstrip(b"\0").decode().partition("|")
        return name, seconds


def examine(case: Case, seconds: float, only: str = "") -> Fault | None:
    """The first step at which ``case`` fails; ``None`` where it does not, or where the references themselves
    fail. ``only``: the one step that is compared; those before it are taken to be right. ``seconds``: what a
    child may take."""
    place = _Place()
    child = isolated.Child(lambda: _examine(case, place, only))
    try:
        _wait(child, place, seconds)
        ending = child.result(0.0)
    finally:
        child.kill()
    layer = place.name
    if ending.kind == isolated.RETURNED:
        found = ending.value
        assert found is None or isinstance(found, Fault)
        return found
    if not layer or (only and layer != only):
        return None  # the references failed
    if ending.kind == isolated.CRASHED:
        return Fault(layer, CRASHES, ending.text)
    if ending.kind == isolated.HANGS:
        return Fault(layer, HANGS, ending.text)
    return Fault(layer, RAISES, ending.text.strip().rpartition("\n")[2])


def _wait(child: isolated.Child, place: _Place, seconds: float) -> None:
    """Wait for the end of a child, or until it has run one result for much longer than it should."""
    end = time.monotonic() + seconds
    running, since = "", 0.0
    while not child.wait(0.1 if running else 0.3) and time.monotonic() < end:
        if place.runs_for and running != place.name:
            running, since = place.name, time.monotonic()
        elif not place.runs_for:
            running = ""
        elif time.monotonic() - since > place.runs_for:
            return


def _examine(case: Case, place: _Place, only: str) -> Fault | None:
    start = time.monotonic()
    try:
        wanted = expected(case)
    except Exception:
        return None
    most = _LEAST_RUN + _LONGER * (time.monotonic() - start)
    graph = case.graph
    for layer, step in _steps(case):
        place.set(layer)
        skipped = bool(only) and layer != only
        try:
            graph, run = step(graph)
            if skipped or run is None:
                continue
            place.set(layer, most)
            with np.errstate(all="ignore"):
                found = results_of(case, run)
            place.set(layer)
        except Unsupported:
            if skipped or layer == LOWERING:
                continue
            raise
        except RejectedCode as error:
            return Fault(layer, REJECTED, _first_error(str(error)))
        except ToolchainError:
            raise
        except Exception as error:
            if skipped and layer in (LOWERING, CODE, JOINS):
                continue
            return Fault(layer, RAISES, f"{type(error).__name__}: {error}".partition("\n")[0])
        problem = compare(case, wanted, found)
        if problem:
            return Fault(layer, WRONG, problem)
        if layer == only:
            return None
    return None


Step = Callable[[Graph], tuple[Graph, Callable[..., Any] | None]]


def _steps(case: Case) -> Iterator[tuple[str, Step]]:
    """The steps with their names: each gives the graph for the next, and what to call."""
    table = case.table
    backend = case.settings.get("backend", "inductor")
    if callable(backend):
        yield BACKEND, lambda graph: (graph, _whole(case, graph))
        return

    def interpreted(graph: Graph) -> tuple[Graph, Callable[..., Any]]:
        return graph, Interpreter(graph, table).run

    for step in PASSES:
        yield step.name, lambda graph, step=step: interpreted(step.run(graph, table))  # type: ignore[misc]
    if backend != "inductor":
        return
    for name, transform in GRAPH_STEPS:
        yield name, lambda graph, transform=transform: interpreted(transform(graph, table))  # type: ignore[misc]
    yield LOWERING, lambda graph: (graph, PlanReference(graph, _maker(case, graph).planned(_APART)).run)
    yield CODE, lambda graph: (graph, _with_library(case, _maker(case, graph).make(_APART).call))
    yield JOINS, lambda graph: (graph, _with_library(case, _maker(case, graph).make(DEFAULT).call))
    yield LAUNCH, lambda graph: (graph, _whole(case, case.graph))


_APART = Form(joined=NOTHING)


def _maker(case: Case, graph: Graph) -> Maker:
    return Maker(graph, case.options(), case.owner)


def _whole(case: Case, graph: Graph) -> Callable[..., Any]:
    """The graph as the program runs it."""
    inputs = [replace(inp, differentiated=False) for inp in graph.inputs]
    plain = replace(graph, inputs=tuple(inputs))
    owner, examples = case.owner, case.arguments()
    given = examples if owner is None else _given(case, owner, examples)
    compiled = run_pipeline(plain, case.options(), given, owner)
    return _with_library(case, compiled.call)


def _given(case: Case, owner: ArrayOwner, arguments: Sequence[Any]) -> list[Any]:
    """Arguments as the library's arrays, on the same memory."""
    kinds = [inp.kind for inp in case.graph.inputs]
    arrays = [
        owner.from_numpy(a) if isinstance(a, np.ndarray) and kind == "array" else a
        for a, kind in zip(arguments, kinds)
    ]
    return [*arrays, *arguments[len(kinds) :]]


def _with_library(case: Case, call: Callable[..., Any]) -> Callable[..., Any]:
    owner = case.owner
    if owner is None:
        return call
    library = owner

    def run(*arguments: Any) -> list[Any]:
        found = call(*_given(case, library, arguments))
        several = found if isinstance(found, (list, tuple)) else (found,)
        return [library.to_numpy(value) for value in several]

    return run


def compare(case: Case, wanted: list[Array], found: list[Array]) -> str:
    """What differs by more than rounding, in words."""
    if len(wanted) != len(found):
        return f"{len(found)} results instead of {len(wanted)}"
    scale = max((_largest(value) for value in [*wanted, *filter(_is_array, case.inputs)]), default=0.0)
    for name, mine, other in zip(names_of(case, wanted), wanted, found):
        if mine.shape != other.shape or mine.dtype != other.dtype:
            return f"{name}: expected {mine.dtype}{mine.shape}, found {other.dtype}{other.shape}"
        text = apart(mine, other, scale, False, str(mine.dtype))
        if text:
            return f"{name} {text}".replace("plain", "expected").replace("compiled", "found")
    return ""


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _largest(value: Array) -> float:
    if value.dtype.kind not in "fc" or not value.size:
        return 0.0
    finite = np.abs(value[np.isfinite(value)])
    return float(finite.max(initial=0.0))


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
    return found[found.index("error:") :] if "error:" in found else found  # not where the file was


def refine(case: Case, fault: Fault, seconds: float) -> Fault:
    """What of the step is at fault, for a shrunk case."""
    ending = isolated.run_isolated(lambda: _refine(case, fault), seconds)
    return ending.value if ending.kind == isolated.RETURNED else fault


def _refine(case: Case, fault: Fault) -> Fault:
    ops = ", ".join(dict.fromkeys(node.op for node in case.graph.nodes))
    if fault.layer == LOWERING:
        return _refine_lowering(case, fault, ops)
    if fault.layer == CODE and fault.kind in (WRONG, REJECTED, CRASHES, HANGS):
        final = final_graph(case)
        steps = [s for segment in _maker(case, final).planned(_APART).module.segments for s in segment.flat]
        kernels = [step.kernel.name for step in steps if isinstance(step, LaunchKernel)]
        words = f"of {ops}"
        if kernels:
            words += f", in the kernel{'s' if len(kernels) > 1 else ''} {', '.join(kernels)}"
        return replace(fault, detail=words)
    return replace(fault, detail=f"of {ops}")


def passed_graph(case: Case) -> Graph:
    """The graph after all graph passes."""
    graph = case.graph
    for step in PASSES:
        graph = step.run(graph, case.table)
    return graph


def final_graph(case: Case) -> Graph:
    """The graph that the inductor lowers."""
    graph = passed_graph(case)
    for _, transform in GRAPH_STEPS:
        graph = transform(graph, case.table)
    return graph


def _refine_lowering(case: Case, fault: Fault, ops: str) -> Fault:
    final = final_graph(case)
    wanted = expected(case)
    if fault.kind == WRONG:
        planned = _maker(case, final).planned(_APART)
        if not compare(case, wanted, results_of(case, PlanReference(final, planned, apart=True).run)):
            return replace(fault, layer="memory plan", detail=f"of {ops}")
    alone = list(_single_nodes(case, final))
    for part in alone:
        try:
            planned = _maker(case, part.graph).planned(_APART)
            found = results_of(part, PlanReference(part.graph, planned).run)
            problem = compare(part, expected(part), found)
        except Exception as error:
            problem = str(error)
        if problem:
            return replace(fault, detail=f"of {part.graph.nodes[0].op}")
    if len(alone) > 1:
        return replace(fault, layer="fusion", detail=f"of {ops}")
    return replace(fault, detail=f"of {ops}")


def _single_nodes(case: Case, graph: Graph) -> Iterator[Case]:
    whole = replace(case, graph=graph)
    values = {**values_of(whole), **{inp.var.name: v for inp, v in zip(graph.inputs, case.inputs)}}
    for node in graph.nodes:
        try:
            yield single(whole, node, values)
        except (Unsupported, VerifyError):
            continue
