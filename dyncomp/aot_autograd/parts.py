"""A backward graph in consecutive parts, for callers that use gradients while others are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..dataclass import dataclass
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, SymbolBinding, Var
from .joint import Table
from .saving import bytes_of


@dataclass(frozen=True)
class Part:
    """``graph`` gives the gradients that are the outputs ``gradients`` of the whole, then values for the
    parts behind it. ``reads``: what it takes, by number: the inputs of the whole, then what parts before it
    gave for others. All symbols are integers that it takes behind these, in the order of the whole."""

    graph: Graph
    gradients: tuple[int, ...]
    reads: tuple[int, ...]


def in_parts(graph: Graph, table: Table, limits: Sequence[int]) -> list[Part]:
    """Parts in the order in which they run. Gradients are taken in the order in which the graph makes them; a
    part ends where they have these bytes (the last limit holds for all that follow). One part, where sizes
    depend on data."""
    groups = _groups(graph, limits)
    if len(groups) < 2 or any(binding.kind == "node" for binding in graph.symbols):
        groups = [tuple(range(len(graph.outputs)))]
    known: dict[str, int | None] = {inp.var.name: number for number, inp in enumerate(graph.inputs)}
    pieces: list[tuple[list[Node], list[Var]]] = []
    given: list[list[Var]] = [[] for _ in groups]
    made_in: dict[str, int] = {}
    for place, group in enumerate(groups):
        nodes, reads = _needed(graph, [graph.outputs[k].var for k in group], known)
        pieces.append((nodes, reads))
        for var in reads:
            if known[var.name] is None and var not in given[made_in[var.name]]:
                given[made_in[var.name]].append(var)
        for node in nodes:
            if node.inputs and not table[node.op].is_view:  # the others cost nothing to make again
                known.update((v.name, None) for v in node.outputs)
                made_in.update((v.name, place) for v in node.outputs)
    for more in given:
        for var in more:
            known[var.name] = sum(number is not None for number in known.values())
    symbols = tuple(SymbolBinding(b.name, "int", number) for number, b in enumerate(graph.symbols))
    inputs = {inp.var.name: inp for inp in graph.inputs}
    parts = []
    for place, (group, (nodes, reads), more) in enumerate(zip(groups, pieces, given)):
        made = replace(
            graph,
            name=f"{graph.name}_{place}",
            inputs=tuple(inputs.get(v.name) or GraphInput(v) for v in reads),
            symbols=symbols,
            nodes=tuple(nodes),
            outputs=(*(graph.outputs[k] for k in group), *map(GraphOutput, more)),
        )
        numbers = [known[v.name] for v in reads]
        parts.append(Part(made, group, tuple(number for number in numbers if number is not None)))
    return parts


def _groups(graph: Graph, limits: Sequence[int]) -> list[tuple[int, ...]]:
    """The outputs in the order in which they are made, as many together as the limits say."""
    made = {v.name: number for number, node in enumerate(graph.nodes) for v in node.outputs}
    order = sorted(range(len(graph.outputs)), key=lambda k: made.get(graph.outputs[k].var.name, -1))
    groups: list[tuple[int, ...]] = []
    group: list[int] = []
    size = 0
    for k in order:
        group.append(k)
        size += bytes_of(graph.outputs[k].var)
        if size >= limits[min(len(groups), len(limits) - 1)]:
            groups.append(tuple(group))
            group, size = [], 0
    return [*groups, tuple(group)] if group else groups


def _needed(
    graph: Graph, values: Sequence[Var], known: dict[str, int | None]
) -> tuple[list[Node], list[Var]]:
    """The nodes between what is known and these values, and what they read of it."""
    wanted = {v.name: v for v in values}
    nodes = []
    for node in reversed(graph.nodes):
        if any(v.name in wanted and v.name not in known for v in node.outputs):
            nodes.append(node)
            wanted.update((v.name, v) for v in node.inputs)
    return nodes[::-1], [v for name, v in wanted.items() if name in known]
