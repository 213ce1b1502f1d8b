"""Products of half precision that a graph computes in float32: a GPU multiplies halves and sums in
float32."""

from __future__ import annotations

from dataclasses import replace
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
    if not any(node.op in ("dot_general", "convolution") for node in graph.nodes):
        return graph
    narrower = _Narrower(graph, table)
    made = eliminate_dead_code(narrower.run(), table)
    # convolutions stay where nothing reads them, since they may raise; these are done in half precision
    kept = [node for node in made.nodes if not narrower.replaced & {v.name for v in node.outputs}]
    return eliminate_dead_code(replace(made, nodes=tuple(kept)), table)


class _Narrower(Transformer):
    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(graph, table)
        self.uses = graph.uses()
        self.replaced: set[str] = set()

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
        if {_half_behind(self.builder.producer, v) for v in node.inputs} != {dtype}:
            return None
        made: Var = self.builder.emit("convolution", *map(self.half, node.inputs), **node.kwargs)
        return made if made.type.strides == node.out.type.strides else None

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
