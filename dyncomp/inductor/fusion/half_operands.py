"""Products and convolutions of half precision: those that a graph computes in float32 are done on halves,
summed in float32.

A GPU does so with both kinds of halves, the runtime with bfloat16 (``gemm_bf16``): operands are half as much
memory, and some processors have instructions for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dtypes import DType, bfloat16, float16, float32
from ...graph.ir import Graph, Node, OpTable, Var, same_type
from ...graph.passes.dce import eliminate_dead_code
from ...graph.rewrite import Transformer
from ...prims.contract import free_dims
from ...prims.opdef import View
from ...prims.table import TABLE
from ...symbolic.integers import Dim, hint, product
from ..lowering.contract import is_large, is_long_matrix
from ..lowering.convolve import runs_own

HALVES = (float16, bfloat16)
# Views on the way from a conversion to a product.
MOST_VIEWS = 8


def narrow_products(graph: Graph, table: OpTable) -> Graph:
    """``graph`` with ``dot_general(convert(a), convert(b))`` of bfloat16 as ``wide_dot_general(a, b)``, but
    for products that reach another one in float32: these are joined (see ``chain`` and ``row_groups``);
    convolutions likewise. A product of halves with a result of halves is summed in float32 and rounded once,
    as NumPy does it."""
    if not any(_makes_wide(node) or _is_half_product(node) for node in graph.nodes):
        return graph
    return eliminate_dead_code(_Narrower(graph, table).run(), table)


def _makes_wide(node: Node) -> bool:
    return node.op == "convert" and node.out.dtype is float32 and node.inputs[0].dtype is bfloat16


def _is_half_product(node: Node) -> bool:
    return node.op == "dot_general" and node.out.dtype in HALVES


class ProductNarrower(Transformer):
    """Products of what ``dtypes`` were converted from, in place of products of float32."""

    dtypes: tuple[DType, ...] = HALVES

    def wide(self, node: Node, inputs: tuple[Var, ...], op: str = "wide_dot_general") -> Var | None:
        """The product of what halves were converted from."""
        dtypes = {half_behind(self.builder.producer, v) for v in inputs}
        if len(dtypes) != 1 or not dtypes.issubset(self.dtypes):
            return None
        made: Var = self.builder.emit(op, *map(self.half, inputs), **node.kwargs)
        return made if same_type(made.type, node.out.type, strides=True) else None

    def half(self, var: Var) -> Var:
        """A value before its conversion, views of it made anew."""
        producer = self.builder.producer(var)
        assert producer is not None
        if producer.op == "convert":
            return producer.inputs[0]
        made: Var = self.builder.emit(producer.op, self.half(producer.inputs[0]), **producer.kwargs)
        return made


class _Narrower(ProductNarrower):
    dtypes = (bfloat16,)

    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(graph, table)
        self.joined = _that_reach_products(graph)

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if (is_wide_product(node) or _is_vector(node)) and node.out.name not in self.joined:
            made = self.wide(node, inputs)
            if made is not None:
                return made
        if _is_convolution_of_pairs(node):
            made = self.wide(node, inputs, "wide_convolution")
            if made is not None:
                return made
        if _is_half_product(node):
            left, right = (self.builder.emit("convert", v, dtype=float32) for v in inputs)
            sums = self.builder.emit("dot_general", left, right, **node.kwargs)
            return self.builder.emit("convert", sums, dtype=node.out.dtype)
        return self.keep(node, inputs)


def _that_reach_products(graph: Graph) -> set[str]:
    """Names of float32 values that a product is made of, with no rounding to half precision on the way."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        wide = [v.name for v in node.inputs if v.dtype is float32]
        if node.op == "dot_general" or any(v.name in found for v in node.outputs):
            found.update(wide)
    return found


def is_wide_product(node: Node) -> bool:
    """Whether a node is a product of float32 that lowering gives to a routine: a small one is a loop nest."""
    return node.op == "dot_general" and node.out.dtype is float32 and is_large(*sizes_of(node))


def _is_convolution_of_pairs(node: Node) -> bool:
    """Whether the runtime does a convolution of float32 whose places see several channels each."""
    if node.op != "convolution" or node.out.dtype is not float32 or not runs_own(node):
        return False
    return bool(hint(node.inputs[1].shape[1]) > 1)


def _is_vector(node: Node) -> bool:
    """Whether a product of float32 is one of a vector with a large matrix."""
    if node.op != "dot_general" or node.out.dtype is not float32:
        return False
    m, n, k = sizes_of(node)
    return hint(m) == 1 and is_long_matrix(n, k, bfloat16)


def sizes_of(node: Node) -> tuple[Dim, Dim, Dim]:
    x, y = node.inputs
    contract, batch = node.kwargs["contract"], node.kwargs["batch"]
    m = product(x.shape[k] for k in free_dims(x.ndim, contract[0], batch[0]))
    n = product(y.shape[k] for k in free_dims(y.ndim, contract[1], batch[1]))
    return m, n, product(x.shape[k] for k in contract[0])


def half_behind(producer: Callable[..., Any], var: Var) -> DType | None:
    """The half precision that ``var`` was converted from, if it was."""
    return converted_from(producer, var, HALVES, float32)


def converted_from(
    producer: Callable[..., Any], var: Var, narrow: Sequence[DType], wide: DType
) -> DType | None:
    """The one of the dtypes ``narrow`` that ``var`` was converted to ``wide`` from, if it was."""
    for _ in range(MOST_VIEWS):
        node = producer(var)
        if node is None or not node.inputs:
            return None
        if node.op == "convert":
            found = node.inputs[0].dtype
            return found if found in narrow and node.out.dtype is wide else None
        if not _is_view(node):
            return None
        var = node.inputs[0]
    return None


def _is_view(node: Node) -> bool:
    return len(node.inputs) == 1 and isinstance(TABLE[node.op].lower, View)
