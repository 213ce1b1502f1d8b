"""Dead code elimination."""

from __future__ import annotations

from dataclasses import replace

from ..ir import Graph, Node, OpTable
from ..rewrite import is_effect


def may_raise(node: Node, table: OpTable) -> bool:
    """Whether running the node can raise (an index out of bounds, a singular matrix): such a node stays
    even where its value is not used, because the program would have raised."""
    return bool(getattr(table[node.op], "may_raise", False))


def eliminate_dead_code(graph: Graph, table: OpTable) -> Graph:
    """Remove nodes whose values nothing uses, unless they have an effect or may raise."""
    live = {out.var.name for out in graph.outputs} | {var.name for _, var in graph.mutations}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        used = any(var.name in live for var in node.outputs)
        if used or is_effect(node) or may_raise(node, table):
            kept.append(node)
            live.update(var.name for var in node.inputs)
    if len(kept) == len(graph.nodes):
        return graph
    return replace(graph, nodes=tuple(reversed(kept)))
