"""What a captured ``backward()`` computes again: in one graph with what it is the backward pass of.

Left alone, all that derivatives read would stay in memory from where the forward pass makes it. Instead a
minimum cut says what does (``saving.py``), and what lies between that and the derivatives is computed again
just before it is needed. It is made of ``late`` views of what is kept, so that it becomes neither equal to
the first computation nor part of its kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..device import CPU
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, OpTable, Var, same_type
from ..graph.passes.cse import eliminate_common_subexpressions
from ..graph.passes.dce import eliminate_dead_code, may_raise
from ..graph.passes.decompose import decompose
from ..graph.passes.fold import fold_constants
from ..graph.passes.rewrite_rules import simplify
from ..graph.rewrite import Rebuilder, substitute
from ..prims.markers import AFTER, LATE
from .expand import expand
from .joint import Table
from .saving import Sides, bytes_of, choose, is_whole

# What a backward pass reads stays in memory up to so many bytes: they fit into caches.
ENOUGH = 4 << 20


def expand_in_time(graph: Graph, table: OpTable) -> Graph:
    """:func:`~.expand.expand`, and cheap values computed again where a ``backward()`` needs them."""
    graph = expand(graph, table, late=True)
    if not _begins(graph):
        return graph
    rules: Table = table  # type: ignore[assignment]
    if graph.device == CPU:
        tidy = decompose(graph, table)
        for step in (fold_constants, simplify, eliminate_common_subexpressions, eliminate_dead_code):
            tidy = step(tidy, table)
        sides = _sides(tidy, rules)
        if sum(map(bytes_of, _read_late(sides))) > ENOUGH:
            return _without_begins(_Again(sides, rules, choose(sides, rules)).run())
    return _without_begins(graph)


def _begins(graph: Graph) -> dict[str, Node]:
    """The nodes where backward passes begin, by their values: what is after values that depend on none of
    them. Other such nodes are of what is computed again within one."""
    begins: dict[str, Node] = {}
    reached: set[str] = set()
    for node in graph.nodes:
        if any(v.name in reached for v in node.inputs):
            reached.update(v.name for v in node.outputs)
        elif node.op == AFTER:
            begins[node.out.name] = node
            reached.add(node.out.name)
    return begins


def _without_begins(graph: Graph) -> Graph:
    begins = _begins(graph)
    copied, found = [], {}
    for node in graph.nodes:
        if not node.outputs or node.outputs[0].name not in begins:
            copied.append(node)
        elif same_type(node.out.type, node.inputs[0].type, strides=True):
            found[node.out.name] = node.inputs[0]
        else:
            copied.append(Node("copy", node.inputs[:1], (), node.outputs, node.loc))
    return substitute(replace(graph, nodes=tuple(copied)), found)


def _sides(graph: Graph, table: Table) -> Sides:
    """The graph, taken apart where backward passes begin: they are what depends on their cotangents."""
    begins = _begins(graph)
    reached: set[str] = set()
    late: set[int] = set()
    for number, node in enumerate(graph.nodes):
        if node.op == AFTER or any(v.name in reached for v in node.inputs):
            late.add(number)
            reached.update(v.name for v in node.outputs)
    ends = [*graph.outputs, *(GraphOutput(var) for _, var in graph.mutations)]
    outputs = tuple(out for out in ends if out.var.name not in reached)
    gradients = tuple(out for out in ends if out.var.name in reached)
    live = {out.var.name for out in outputs}
    forward: set[int] = set()
    for number, node in reversed(list(enumerate(graph.nodes))):
        if number in late:
            if node.outputs[0].name in begins:
                live.update(v.name for v in node.inputs)
        elif may_raise(node, table) or any(v.name in live for v in node.outputs):
            forward.add(number)
            live.update(v.name for v in node.inputs)
    written = {index for index, _ in graph.mutations}
    held = {inp.var.name for k, inp in enumerate(graph.inputs) if k not in written}
    held.update(out.var.name for out in outputs if is_whole(out))
    once = {n.outputs[0].name for k, n in enumerate(graph.nodes) if k in forward and may_raise(n, table)}
    no: tuple[GraphInput, ...] = ()
    sets = (frozenset(forward), frozenset(late), frozenset(held), frozenset(once))
    return Sides(graph, graph.inputs, no, outputs, gradients, *sets)


def _read_late(sides: Sides) -> list[Var]:
    """What the forward pass makes and the backward pass reads."""
    nodes = sides.graph.nodes
    made = {v.name for number in sides.forward for v in nodes[number].outputs} - sides.held
    read = {v.name: v for k, node in enumerate(nodes) if k not in sides.forward for v in node.inputs}
    return [var for name, var in read.items() if name in made]


class _Again:
    """Makes the graph. ``kept``: names of the values that the backward pass may read as they are."""

    def __init__(self, sides: Sides, table: Table, kept: frozenset[str]) -> None:
        self.sides = sides
        self.table = table
        self.builder = Rebuilder(sides.graph, table)
        self.makers = {v.name: node for node in sides.graph.nodes for v in node.outputs}
        self.late = {v.name for k in sides.late for v in sides.graph.nodes[k].outputs}
        self.kept = kept
        self.again: dict[str, Var] = {}  # what was made again, and views of what is kept

    def run(self) -> Graph:
        graph = self.sides.graph
        for number, node in enumerate(graph.nodes):
            self.builder.loc = node.loc
            if number in self.sides.forward:
                self.builder.keep(node)
            elif number in self.sides.late:
                self.builder.keep(replace(node, inputs=self._inputs(node)))
        ends = [self._value(out.var, None) for out in graph.outputs]
        outputs = [replace(out, var=var) for out, var in zip(graph.outputs, ends)]
        return self.builder.rebuilt(outputs, graph.mutations)

    def _inputs(self, node: Node) -> tuple[Var, ...]:
        """What a node of the backward pass reads instead of its inputs."""
        there = next((v for v in node.inputs if v.name in self.late), None)
        return tuple(self._value(v, there) for v in node.inputs)

    def _value(self, var: Var, there: Var | None) -> Var:
        """A value as the backward pass reads it, once ``there`` is there."""
        if there is None or var.name in self.late or self._is_there(var):
            return var
        self._make(var, there)
        return self.again[var.name]

    def _is_there(self, var: Var) -> bool:
        """Whether a value is kept, or a view of one."""
        while var.name not in self.kept:
            node = self.makers.get(var.name)
            if node is None:
                return True
            if not self.table[node.op].is_view or var.name not in self.builder.producers:
                return False
            var = node.inputs[0]
        return True

    def _make(self, wanted: Var, there: Var) -> None:
        pending = [wanted]
        while pending:
            var = pending[-1]
            node = self.makers.get(var.name)
            if var.name in self.again:
                pending.pop()
            elif node is None or var.name in self.kept:
                self.again[var.name] = self.builder.emit(LATE, var, there)
                pending.pop()
            else:
                missing = [v for v in node.inputs if v.name not in self.again]
                pending += missing
                if not missing:
                    self._run_again(node)
                    pending.pop()

    def _run_again(self, node: Node) -> None:
        inputs: Sequence[Var] = [self.again[v.name] for v in node.inputs]
        made = self.builder.emit(node.op, *inputs, loc=node.loc, **node.kwargs)
        values = made if isinstance(made, tuple) else (made,)
        self.again.update((v.name, new) for v, new in zip(node.outputs, values))
