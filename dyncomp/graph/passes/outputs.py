"""The last pass before code generation: every output and mutation gets a value it can own."""

from __future__ import annotations

from dataclasses import replace

from ..ir import Graph, GraphOutput, Node, OpTable, Var
from ..rewrite import Rebuilder, match_type


def own_outputs(graph: Graph, table: OpTable) -> Graph:
    """Insert ``copy`` where two outputs would be one value, or an output or a mutation reads an input's
    memory at the end: an output must be memory of its own, and a written-back value must not change
    while inputs are being written."""
    if not graph.functional:
        return graph
    return _Owner(graph, table).run()


class _Owner:
    def __init__(self, graph: Graph, table: OpTable) -> None:
        self.graph = graph
        self.table = table
        self.builder = Rebuilder(graph, table)
        self.roots: dict[str, str] = {v.name: v.name for v in graph.input_vars}
        for node in graph.nodes:
            self.builder.keep(node)
            self._trace(node)

    def _trace(self, node: Node) -> None:
        """Follow views to the value whose memory they are."""
        view = bool(getattr(self.table[node.op], "is_view", False))
        for var in node.outputs:
            self.roots[var.name] = self.roots[node.inputs[0].name] if view else var.name

    def run(self) -> Graph:
        inputs = {v.name for v in self.graph.input_vars}
        written = {self.graph.inputs[index].var.name for index, _ in self.graph.mutations}
        taken = set(inputs)
        mutations: list[tuple[int, Var]] = []
        for index, var in self.graph.mutations:
            if self.roots[var.name] in written or self.roots[var.name] in taken - inputs:
                var = self._copied(var)
            taken.add(self.roots.get(var.name, var.name))
            mutations.append((index, var))
        owned: list[GraphOutput] = []
        for out in self.graph.outputs:
            if out.view is None and out.kind == "array":
                if self.roots[out.var.name] in taken:
                    out = replace(out, var=self._copied(out.var))
                taken.add(self.roots.get(out.var.name, out.var.name))
            owned.append(out)
        outputs = [self._rebased(out, owned) for out in owned]
        if len(self.builder.nodes) == len(self.graph.nodes):
            return self.graph
        return self.builder.rebuilt(outputs, mutations)

    def _copied(self, var: Var) -> Var:
        copy: Var = self.builder.emit("copy", var)
        return match_type(self.builder, copy, var.type) or copy

    def _rebased(self, out: GraphOutput, owned: list[GraphOutput]) -> GraphOutput:
        if out.view is not None and out.view.kind == "output":
            return replace(out, var=owned[out.view.index].var)
        return out
