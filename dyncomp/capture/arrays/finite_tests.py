"""Questions whether there are numbers that are not finite (``torch.isinf(x).any()``): the answer is nearly
always no, so branches on them are presumed and checked by the graph."""

from __future__ import annotations

from ...graph.ir import GraphBuilder, OpTable, Var

_DEEPEST = 16
_REDUCTIONS = ("reduce_any", "reduce_all")
_OR = ("logical_or", "bitwise_or")
_AND = ("logical_and", "bitwise_and")


def usual_truth(builder: GraphBuilder, table: OpTable, var: Var, depth: int = _DEEPEST) -> bool | None:
    """The truth of ``var``, or of each of its elements, where all that its operands are asked for is finite;
    ``None`` if it is no such question."""
    node = builder.producer(var)
    if node is None or depth < 1:
        return None
    if node.op in ("isnan", "isinf"):
        return False
    if node.op == "isfinite":
        return True
    if node.op == "not_equal" and node.inputs[0] is node.inputs[1]:
        return False
    keeps = table[node.op].is_view or node.op in _REDUCTIONS or node.op in ("convert", "logical_not")
    if not (keeps or node.op in _OR or node.op in _AND) or not var.dtype.is_bool:
        return None
    operands = [usual_truth(builder, table, operand, depth - 1) for operand in node.inputs]
    if not operands or None in operands:
        return None
    if node.op == "logical_not":
        return not operands[0]
    return any(operands) if node.op in _OR else all(operands)
