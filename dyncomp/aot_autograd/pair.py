"""A graph and its gradient as two compiled graphs, for a library with a reverse mode of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..errors import NotDifferentiableError, Unsupported
from ..frontends.base import GradientPair, OutputView
from ..graph.ir import Graph, GraphOutput, OpTable, SymbolBinding
from ..prims.markers import STOP
from .joint import Table, joint
from .partition import partition

Compile = Callable[[Graph], Callable[..., Any]]


def depending(graph: Graph, wrt: Sequence[int]) -> frozenset[str]:
    """The values that depend on these inputs in a way that derivatives go."""
    found = {graph.inputs[k].var.name for k in wrt}
    for node in graph.nodes:
        if node.op != STOP and any(v.name in found for v in node.inputs):
            found.update(v.name for v in node.outputs if v.dtype.is_inexact)
    return frozenset(found)


def gradient_pair(
    graph: Graph, table: OpTable, wrt: Sequence[int], compile: Compile, memory_budget: float | None = None
) -> GradientPair | None:
    """The pair of a functional graph for gradients by the inputs ``wrt``; ``None`` where no result has one.

    ``compile`` makes a graph runnable; the backward graph is compiled when it is first asked for. Raises
    ``Unsupported`` for what has no derivative.
    """
    reached = depending(graph, wrt)
    results, places = _results(graph)
    kept = []
    written = []
    for index, value in graph.mutations:
        if value.name in reached or index in wrt:
            written.append((index, len(results)))
            results.append(GraphOutput(value))
        else:
            kept.append((index, value))
    differentiable = tuple(
        k
        for k, out in enumerate(results)
        if out.kind == "array" and out.var.dtype.is_inexact and out.var.name in reached
    )
    if not differentiable and not any(_is_view_of(view, wrt) for view in places) and not written:
        return None
    plain = replace(graph, outputs=tuple(results), mutations=tuple(kept))
    rules: Table = table  # type: ignore[assignment]
    try:
        whole = joint(plain, rules, wrt, differentiable)
    except NotDifferentiableError as error:
        raise Unsupported(str(error)) from error
    halves = partition(whole, rules, memory_budget=memory_budget)
    forward = compile(halves.forward)
    several = len(halves.forward.outputs) != 1

    def run(*args: Any) -> Sequence[Any]:
        found = forward(*args)
        return found if several else (found,)

    return GradientPair(
        forward=run,
        backward=_Lazy(halves.backward, compile),
        count=len(results),
        differentiable=differentiable,
        wrt=tuple(wrt),
        saved=tuple((place.kind == "input", place.index) for place in halves.saved),
        integers=halves.integers,
        returned=places,
        written=tuple(written),
        inputs=len(graph.inputs),
        symbols=_Symbols(graph.symbols, len(graph.inputs)),
    )


def _is_view_of(place: int | OutputView, inputs: Sequence[int]) -> bool:
    return isinstance(place, OutputView) and place.of_input and place.index in inputs


def _results(graph: Graph) -> tuple[list[GraphOutput], tuple[int | OutputView, ...]]:
    """Outputs that are values of their own, those hidden behind views included, and where each visible output
    is: one of these, or a view."""
    numbers: dict[int, int] = {}
    results: list[GraphOutput] = []
    for number, out in enumerate(graph.outputs):
        if out.view is None:
            numbers[number] = len(results)
            results.append(replace(out, hidden=False))
    places: list[int | OutputView] = []
    for number, out in enumerate(graph.outputs):
        view = out.view
        if out.hidden:
            continue
        if view is None:
            places.append(numbers[number])
            continue
        of_input = view.kind == "input"
        index = view.index if of_input else numbers[view.index]
        places.append(OutputView(of_input, index, view.shape, view.strides, view.offset))
    return results, tuple(places)


class _Lazy:
    """A graph that is compiled when it is first asked for, by one thread."""

    def __init__(self, graph: Graph, compile: Compile) -> None:
        self.graph = graph
        self.compile = compile
        self.lock = threading.Lock()
        self.made: Callable[..., Sequence[Any]] | None = None

    def __call__(self) -> Callable[..., Sequence[Any]]:
        with self.lock:
            if self.made is None:
                call = self.compile(self.graph)
                several = len(self.graph.outputs) != 1
                self.made = call if several else lambda *args: (call(*args),)
        return self.made


class _Symbols:
    """The values of a graph's symbols from the arguments of a call."""

    def __init__(self, bindings: Sequence[SymbolBinding], inputs: int) -> None:
        self.bindings = bindings
        self.inputs = inputs

    def __call__(self, *args: Any) -> dict[str, int]:
        found: dict[str, int] = {}
        for binding in self.bindings:
            if binding.kind == "int":
                found[binding.name] = args[self.inputs + binding.index]
            elif binding.kind == "dim":
                found[binding.name] = args[binding.index].shape[binding.axis]
            elif binding.kind == "stride":
                found[binding.name] = args[binding.index].stride(binding.axis)
        return found
