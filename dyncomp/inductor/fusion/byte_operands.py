"""Products of 8-bit integers that a graph computes in int32, and of float32 by 8-bit integers.

The runtime widens these in registers or as it packs them (``gemm_i8``; ``gemm_f32`` with ``b_bytes``).
"""

from __future__ import annotations

from typing import Any

from ...dtypes import DType, float32, int8, int32, int64
from ...graph.ir import Graph, Node, OpTable, Var, same_type
from ...graph.passes.dce import eliminate_dead_code
from ...prims.contract import BYTES, free_dims, wide_dtype
from ...symbolic.integers import hint
from ..lowering.contract import MAX_BATCH_AXES, is_large, is_long_matrix
from .half_operands import ProductNarrower, converted_from, sizes_of

# Rows of float32 for which a matrix of bytes is read as it lies. For more it pays to pack it widened, which
# the kernel that converts it does as a prologue.
FEW_ROWS = 4
# Sums of fewer products of bytes fit int32.
SHORT_SUM = 2**31 // 255**2


def narrow_bytes(graph: Graph, table: OpTable) -> Graph:
    """``graph`` with ``dot_general(convert(a), convert(b))`` of 8-bit integers in int32 as
    ``wide_dot_general(a, b)`` (in int64 too, where sums fit int32), and ``dot_general(x, convert(b))`` of a
    few rows of float32 as ``wide_dot_general(x, b)``."""
    if not any(node.op == "convert" and node.inputs[0].dtype in BYTES for node in graph.nodes):
        return graph
    return eliminate_dead_code(_Narrower(graph, table).run(), table)


class _Narrower(ProductNarrower):
    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if node.op != "dot_general" or len(node.kwargs["batch"][0]) > MAX_BATCH_AXES:
            return self.keep(node, inputs)
        wide = node.out.dtype
        if wide is int32 or (wide is int64 and _is_short(node)):
            made = self.product(node, inputs, tuple(self.behind(v, wide) for v in inputs))
        elif wide is float32:
            found = tuple(self.behind(v, wide) for v in inputs)
            made = self.product(node, inputs, tuple(dtype or float32 for dtype in found))
        else:
            made = None
        if made is None:
            return self.keep(node, inputs)
        return self.builder.emit("convert", made, dtype=int64) if wide is int64 else made

    def behind(self, var: Var, wide: DType) -> DType | None:
        """The 8-bit integers that a value was converted from."""
        return converted_from(self.builder.producer, var, BYTES, wide)

    def product(self, node: Node, inputs: tuple[Var, ...], dtypes: tuple[DType | None, ...]) -> Var | None:
        """The product of what 8-bit integers were converted from; of a matrix and a vector turned round."""
        x, y = inputs
        left, right = dtypes
        contract, batch = node.kwargs["contract"], node.kwargs["batch"]
        m, n, k = sizes_of(node)
        if not free_dims(y.ndim, contract[1], batch[1]):
            x, y, left, right, m, n = y, x, right, left, n, m
            contract, batch = (contract[1], contract[0]), (batch[1], batch[0])
        wide = wide_dtype(left, right) if left is not None and right is not None else None
        if wide is None or not _pays(wide, hint(m), hint(n), hint(k)):
            return None
        operands = [v if dtype is float32 else self.half(v) for v, dtype in ((x, left), (y, right))]
        made: Var = self.builder.emit("wide_dot_general", *operands, contract=contract, batch=batch)
        is_as_before = wide is not node.out.dtype or same_type(made.type, node.out.type, strides=True)
        return made if is_as_before else None


def _is_short(node: Node) -> bool:
    terms = sizes_of(node)[2]
    return isinstance(terms, int) and terms <= SHORT_SUM


def _pays(wide: DType, m: int, n: int, k: int) -> bool:
    long = is_long_matrix(n, k, int8) and n > 1
    if wide is float32:
        return m <= FEW_ROWS and long
    return is_large(m, n, k) or (m == 1 and long)
