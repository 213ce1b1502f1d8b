"""Products and convolutions of half precision that a graph computes in float32: a GPU multiplies halves and
sums in float32."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...dtypes import DType, float32
from ...graph.ir import Graph, Node, OpTable, Var, same_type
from ...graph.passes.dce import eliminate_dead_code
from ..fusion.half_operands import HALVES, ProductNarrower, half_behind, is_wide_product


def narrow_products(graph: Graph, table: OpTable) -> Graph:
    """``graph`` with ``dot_general(convert(a), convert(b))`` of halves as ``wide_dot_general(a, b)``, and as
    ``dot_general(a, b)`` where the result is only converted back."""
    if not any(node.op in ("dot_general", "convolution") for node in graph.nodes):
        return graph
    narrower = _Narrower(graph, table)
    made = eliminate_dead_code(narrower.run(), table)
    # convolutions stay where nothing reads them, since they may raise; these are done in half precision
    kept = [node for node in made.nodes if not narrower.replaced & {v.name for v in node.outputs}]
    return eliminate_dead_code(replace(made, nodes=tuple(kept)), table)


class _Narrower(ProductNarrower):
    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(graph, table)
        self.uses = graph.uses()
        self.replaced: set[str] = set()

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if is_wide_product(node):
            made = self.wide(node, inputs)
            if made is not None:
                return made
        if node.op == "convert" and node.out.dtype in HALVES and self.uses[node.inputs[0].name] == 1:
            wide = self.builder.producer(inputs[0])
            if wide is not None and wide.op == "wide_dot_general" and _takes(wide, node.out.dtype):
                made = self.builder.emit("dot_general", *wide.inputs, **wide.kwargs)
                if same_type(made.type, node.out.type, strides=True):
                    return made
        if node.op == "convert" and node.out.dtype in HALVES:
            made = self.convolution(node.out.dtype, node, inputs[0])
            if made is not None:
                return made
        return self.keep(node, inputs)

    def convolution(self, dtype: DType, node: Node, wide: Var) -> Var | None:
        """A convolution of halves that is converted back, maybe after something (a bias) is added: the
        library rounds before it adds, too."""
        producer = self.builder.producer(wide)
        if producer is None or self.uses.get(wide.name) != 1:
            return None
        if producer.op == "convolution":
            made = self.half_convolution(producer, dtype)
            return self.instead(producer, made, node)
        if producer.op != "add":
            return None
        found = self.builder.producer(producer.inputs[0])
        if found is None or found.op != "convolution" or self.uses.get(found.out.name) != 1:
            return None
        made = self.half_convolution(found, dtype)
        if made is None:
            return None
        total = self.builder.emit(
            "add", self.builder.emit("convert", made, dtype=float32), producer.inputs[1]
        )
        return self.instead(found, self.builder.emit("convert", total, dtype=dtype), node)

    def instead(self, old: Node, made: Var | None, node: Node) -> Var | None:
        """``made`` for ``node``, which makes the convolution ``old`` superfluous, if types allow it."""
        if made is None or not same_type(made.type, node.out.type, strides=True):
            return None
        self.replaced.add(old.out.name)
        return made

    def half_convolution(self, node: Node, dtype: DType) -> Var | None:
        if {half_behind(self.builder.producer, v) for v in node.inputs} != {dtype}:
            return None
        made: Var = self.builder.emit("convolution", *map(self.half, node.inputs), **node.kwargs)
        return made if made.type.strides == node.out.type.strides else None


def _takes(node: Node, dtype: DType) -> bool:
    return all(v.dtype is dtype for v in node.inputs)
