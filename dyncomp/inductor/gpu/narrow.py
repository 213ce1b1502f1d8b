"""Products of half precision that a graph computes in float32 and rounds once: as a GPU does itself."""

from __future__ import annotations

from typing import Any

from ...dtypes import bfloat16, float16
from ...graph.ir import Graph, Node, OpTable, Var, same_type
from ...graph.passes.dce import eliminate_dead_code
from ...graph.rewrite import Transformer

HALVES = (float16, bfloat16)


def narrow_products(graph: Graph, table: OpTable) -> Graph:
    """``graph`` with ``convert(dot_general(convert(a), convert(b)))`` as ``dot_general(a, b)`` where ``a``,
    ``b`` and the result are of one half precision: sums are of float32 there, too."""
    if not any(node.op == "dot_general" for node in graph.nodes):
        return graph
    return eliminate_dead_code(_Narrower(graph, table).run(), table)


class _Narrower(Transformer):
    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(graph, table)
        self.uses = graph.uses()

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if node.op == "convert" and node.out.dtype in HALVES and self.uses[node.inputs[0].name] == 1:
            product = self.builder.producer(inputs[0])
            if product is not None and product.op == "dot_general":
                operands = [v for v in map(self.source, product.inputs) if v is not None]
                if len(operands) == 2 and all(v.dtype == node.out.dtype for v in operands):
                    made = self.builder.emit("dot_general", *operands, **product.kwargs)
                    if same_type(made.type, node.out.type, strides=True):
                        return made
        return self.keep(node, inputs)

    def source(self, var: Var) -> Var | None:
        """What a value was converted from."""
        producer = self.builder.producer(var)
        return producer.inputs[0] if producer is not None and producer.op == "convert" else None
