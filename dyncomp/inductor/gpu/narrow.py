"""Products of half precision that a graph computes in float32: a GPU multiplies halves and sums in
float32."""

from __future__ import annotations

from typing import Any

from ...dtypes import DType, bfloat16, float16, float32
from ...graph.ir import Graph, Node, OpTable, Var, same_type
from ...graph.passes.dce import eliminate_dead_code
from ...graph.rewrite import Transformer
from ...prims.contract import free_dims
from ...prims.opdef import View
from ...prims.table import TABLE
from ...symint import product
from ..lower_contract import is_large

HALVES = (float16, bfloat16)
# Views on the way from a conversion to a product.
MOST_VIEWS = 8


def narrow_products(graph: Graph, table: OpTable) -> Graph:
    """``graph`` with ``dot_general(convert(a), convert(b))`` of halves as ``wide_dot_general(a, b)``, and as
    ``dot_general(a, b)`` where the result is only converted back."""
    if not any(node.op == "dot_general" for node in graph.nodes):
        return graph
    return eliminate_dead_code(_Narrower(graph, table).run(), table)


class _Narrower(Transformer):
    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(graph, table)
        self.uses = graph.uses()

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if node.op == "dot_general" and node.out.dtype is float32 and _is_large(node):
            made = self.wide(node, inputs)
            if made is not None:
                return made
        if node.op == "convert" and node.out.dtype in HALVES and self.uses[node.inputs[0].name] == 1:
            wide = self.builder.producer(inputs[0])
            if wide is not None and wide.op == "wide_dot_general" and _takes(wide, node.out.dtype):
                made = self.builder.emit("dot_general", *wide.inputs, **wide.kwargs)
                if same_type(made.type, node.out.type, strides=True):
                    return made
        return self.keep(node, inputs)

    def wide(self, node: Node, inputs: tuple[Var, ...]) -> Var | None:
        """The product of what halves were converted from."""
        dtypes = {_half_behind(self.builder.producer, v) for v in inputs}
        if len(dtypes) != 1 or None in dtypes:
            return None
        made: Var = self.builder.emit("wide_dot_general", *map(self.half, inputs), **node.kwargs)
        return made if same_type(made.type, node.out.type, strides=True) else None

    def half(self, var: Var) -> Var:
        """A value before its conversion, views of it made anew."""
        producer = self.builder.producer(var)
        assert producer is not None
        if producer.op == "convert":
            return producer.inputs[0]
        made: Var = self.builder.emit(producer.op, self.half(producer.inputs[0]), **producer.kwargs)
        return made


def _takes(node: Node, dtype: DType) -> bool:
    return all(v.dtype is dtype for v in node.inputs)


def _is_large(node: Node) -> bool:
    """As lowering decides: a small product is a loop nest."""
    x, y = node.inputs
    contract, batch = node.kwargs["contract"], node.kwargs["batch"]
    m = product(x.shape[k] for k in free_dims(x.ndim, contract[0], batch[0]))
    n = product(y.shape[k] for k in free_dims(y.ndim, contract[1], batch[1]))
    return is_large(m, n, product(x.shape[k] for k in contract[0]))


def _half_behind(producer: Any, var: Var) -> DType | None:
    """The half precision that ``var`` was converted from, if it was."""
    for _ in range(MOST_VIEWS):
        node = producer(var)
        if node is None or not node.inputs:
            return None
        if node.op == "convert":
            found = node.inputs[0].dtype
            return found if found in HALVES and node.out.dtype is float32 else None
        if not _is_view(node):
            return None
        var = node.inputs[0]
    return None


def _is_view(node: Node) -> bool:
    return len(node.inputs) == 1 and isinstance(TABLE[node.op].lower, View)
