"""Systems of equations with one matrix share its factors."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...device import CPU
from ...dtypes import float64
from ..ir import Graph, Node, OpTable, Var
from ..rewrite import Transformer


def share_factors(graph: Graph, table: OpTable) -> Graph:
    """Factor a matrix of float64 once where several systems with it are solved, or where its factors are
    there anyway. NumPy's routine does the same two steps each time: the solutions have the same bits."""
    if not graph.functional:
        return graph
    systems = Counter(node.inputs[0].name for node in graph.nodes if node.op == "solve" and _fits(node))
    factored = {node.inputs[0].name for node in graph.nodes if node.op == "lu_factor"}
    wanted = {name for name, count in systems.items() if count > 1 or name in factored}
    return _Sharer(graph, table, wanted).run() if wanted else graph


def _fits(node: Node) -> bool:
    matrix = node.inputs[0]
    return matrix.ndim == 2 and matrix.dtype is float64 and matrix.type.device == CPU


class _Sharer(Transformer):
    def __init__(self, graph: Graph, table: OpTable, wanted: set[str]) -> None:
        super().__init__(graph, table)
        self.wanted = wanted
        self.factors: dict[str, Any] = {}

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if node.op not in ("solve", "lu_factor") or inputs[0].name not in self.wanted:
            return self.keep(node, inputs)
        matrix = inputs[0]
        if matrix.name not in self.factors:
            self.factors[matrix.name] = self.builder.emit("lu_factor", matrix)
        factors = self.factors[matrix.name]
        if node.op == "lu_factor":
            return factors
        return self.builder.emit("solve_factored", matrix, *factors, inputs[1], transposed=False)
