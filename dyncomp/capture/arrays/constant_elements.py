"""Arrays made in the captured code whose elements are one known number: branches on them depend on no data
(``torch.ones(n, m).all()``), and so do those on one element of small arrays of constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...frontends.known import known_array, relied_array, written
from ...graph.ir import Node, Var
from ...prims.opdef import OpDef
from ...symbolic.integers import SymInt, product
from ..values.base import Tracer


def number_of(tracer: Tracer, var: Var, relying: bool = False) -> Any:
    """The number that every element of ``var`` is, as a NumPy scalar; ``None`` where that is not known.
    ``relying``: what objects of the program hold is known, too (``relied_array``)."""
    made = {out.name: node for node in tracer.builder.nodes for out in node.outputs}
    known: dict[str, Any] = {}
    found = _number(tracer, var, made, known)
    if found is None or written(tracer.builder, made) & known.keys():
        array = (relied_array if relying else known_array)(tracer.builder, var)
        return array.reshape(-1)[0] if array is not None and array.size == 1 else None
    return found


def _number(tracer: Tracer, var: Var, made: dict[str, Node], known: dict[str, Any]) -> Any:
    if var.name not in known:
        known[var.name] = None  # while it is looked for
        node = made.get(var.name)
        if node is not None:
            known[var.name] = _result(tracer, node, var, made, known)
    return known[var.name]


def _result(tracer: Tracer, node: Node, var: Var, made: dict[str, Node], known: dict[str, Any]) -> Any:
    dtype = var.dtype.numpy
    if node.op == "full":
        value = node.kwargs["value"]
        return None if isinstance(value, SymInt) else np.asarray(value, dtype)[()]
    if node.op == "symint":
        return node.kwargs["expr"] if var.dtype.name == "int64" else None
    row = tracer.config.table.get(node.op)
    if row is None or len(node.outputs) != 1 or not node.inputs:
        return None
    if not (
        row.is_view
        or row.exact
        or row.free
        or (row.is_idempotent and _has_elements(tracer, node))
        or (node.op == "reduce_sum" and var.dtype.name == "int64")
    ):
        return None
    numbers = [_number(tracer, v, made, known) for v in node.inputs]
    if any(n is None for n in numbers):
        return None
    if node.op == "reduce_sum":
        return _sum(node, numbers[0], dtype)
    if any(isinstance(n, SymInt) for n in numbers):
        return _of_sizes(node, row, numbers)
    if not row.exact:
        return np.asarray(numbers[0], dtype)[()]
    result = np.asarray(row.ref(*map(np.asarray, numbers), **node.kwargs))
    return result[()] if result.dtype == dtype and not result.ndim else None


def _sum(node: Node, number: Any, dtype: Any) -> Any:
    """The sum of equal int64 numbers."""
    if isinstance(number, SymInt) or not -(2**20) < number < 2**20:
        return None
    count = product(node.inputs[0].shape[axis] for axis in node.kwargs["axes"])
    total = int(number) * count
    return total if isinstance(total, SymInt) else np.asarray(total, dtype)[()]


def _of_sizes(node: Node, row: OpDef, numbers: list[Any]) -> Any:
    """Numbers made of symbolic sizes are handed on, and found equal where they are the same formula."""
    if not row.exact or (node.op == "convert" and node.outputs[0].dtype.name == "int64"):
        return numbers[0]
    same = len(numbers) == 2 and all(isinstance(n, SymInt) for n in numbers) and numbers[0].same(numbers[1])
    return np.bool_(True) if same and node.op == "equal" else None


def _has_elements(tracer: Tracer, node: Node) -> bool:
    """Whether what is reduced certainly has elements."""
    return all(
        n > 0 if isinstance(n, int) else tracer.env.known(1 - n, "<=") is True for n in node.inputs[0].shape
    )
