"""Writes to inputs come after what may raise, where nothing reads what they wrote."""

from __future__ import annotations

from dataclasses import replace

from ..ir import Graph, Node, OpTable
from .dce import may_raise


def delay_updates(graph: Graph, table: OpTable) -> Graph:
    """Move updates of written inputs, in their order, behind all other nodes if one of those may raise, and
    what says at which positions later nodes look before the updates that stay.

    A graph that can raise writes to its inputs only after its last point that can raise, where looking at
    positions known by then is one: an update before that would be made in a copy of the whole input.
    """
    if not graph.functional or not graph.mutations:
        return graph
    delayed = _delayed(graph, table)
    if not _something_raises_after(graph, table):
        return graph
    early = _positions(graph, table)
    first = [node for node in graph.nodes if id(node) in early]
    middle = [node for node in graph.nodes if id(node) not in early and id(node) not in delayed]
    last = [node for node in graph.nodes if id(node) in delayed and id(node) not in early]
    return replace(graph, nodes=(*first, *middle, *last))


def _positions(graph: Graph, table: OpTable) -> set[int]:
    """Nodes that reckon positions for gathers and scatters of nothing that is written or may raise."""
    free = {var.name for var in graph.input_vars}
    wanted: set[str] = set()
    for node in graph.nodes:
        row = table[node.op]
        if not (may_raise(node, table) or getattr(row, "is_update", False)):
            if free.issuperset([var.name for var in node.inputs]):
                free.update([var.name for var in node.outputs])
        start = getattr(row, "first_position", None)
        if start is not None:
            wanted.update([var.name for var in node.inputs[start:]])
    early: set[int] = set()
    for node in reversed(graph.nodes):
        if wanted.intersection([var.name for var in node.outputs]) and node.out.name in free:
            early.add(id(node))
            wanted.update([var.name for var in node.inputs])
    return early


def _delayed(graph: Graph, table: OpTable) -> set[int]:
    """Updates of which only the final contents of written inputs are wanted, and views of them."""
    bases = _bases(graph, table)
    written = {graph.inputs[index].var.name for index, _ in graph.mutations}
    read = {out.var.name for out in graph.outputs}
    delayed: set[int] = set()
    for node in reversed(graph.nodes):
        moves = _is_part_of_update(node, table) and bases[node.out.name] in written
        if moves and node.out.name not in read:
            delayed.add(id(node))
            # the base may be an update that is delayed, too: it is not read before this one
            read.update(var.name for var in node.inputs[1:])
        else:
            read.update(var.name for var in node.inputs)
    return delayed


def _bases(graph: Graph, table: OpTable) -> dict[str, str]:
    """Which value each value is an updated form, or a view, of."""
    bases = {var.name: var.name for var in graph.input_vars}
    for node in graph.nodes:
        for var in node.outputs:
            bases[var.name] = bases[node.inputs[0].name] if _is_part_of_update(node, table) else var.name
    return bases


def _is_part_of_update(node: Node, table: OpTable) -> bool:
    row = table[node.op]
    return bool(getattr(row, "is_update", False) or getattr(row, "is_view", False))


def _something_raises_after(graph: Graph, table: OpTable) -> bool:
    """Whether a node may raise after an update."""
    seen = False
    for node in graph.nodes:
        if seen and may_raise(node, table):
            return True
        seen = seen or bool(getattr(table[node.op], "is_update", False))
    return False
