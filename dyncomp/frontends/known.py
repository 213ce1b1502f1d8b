"""Small arrays made in the captured code from constants alone: what they hold is known at capture."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device import CPU
from ..dtypes import int64
from ..graph.ir import COPY, GraphBuilder, Node, Var
from ..graph.noted import NOTED, noting
from ..signals import is_from_handler
from .base import ArrayRef

_MOST = 4096  # elements
_DEEPEST = 100
_UNDERFLOW = 4  # as NumPy numbers its errors
_CALLS = frozenset(("library_call", "python_call", "ufunc_call", "routine_call", "item", "symint", COPY))


def known_array(builder: GraphBuilder, var: Var) -> Any:
    """What ``var`` holds, computed by the references of its ops; ``None`` where that depends on an input."""
    made = {out.name: node for node in builder.nodes for out in node.outputs}
    seen: dict[str, Any] = {}
    found = _value(builder, made, var, seen, 0)
    if found is None or written(builder, made) & seen.keys():
        return None
    return found


def with_integers(builder: GraphBuilder, value: object) -> Any:
    """An argument with numbers in place of arrays of integers that are known; the same object where there is
    none."""
    if isinstance(value, (tuple, list)):
        parts = [with_integers(builder, part) for part in value]
        same = all(a is b for a, b in zip(parts, value))
        return value if same else type(value)(parts) if type(value) in (tuple, list) else value
    if not isinstance(value, ArrayRef) or value.ndim > 1 or value.dtype != int64 or value.kind == "masked":
        return value
    array = known_array(builder, value.var)
    if array is None:
        return value
    return array.tolist() if array.ndim else np.int64(array)


def _value(builder: GraphBuilder, made: dict[str, Node], var: Var, seen: dict[str, Any], depth: int) -> Any:
    if var.name not in seen:
        node = made.get(var.name)
        seen[var.name] = None
        if node is not None and depth < _DEEPEST and _is_small(node):
            _run(builder, made, node, seen, depth)
    return seen[var.name]


def _is_small(node: Node) -> bool:
    if node.op in _CALLS:
        return False
    return all(
        var.type.device == CPU
        and all(isinstance(n, int) for n in var.shape)
        and var.type.size <= _MOST
        and var.dtype.name != "bfloat16"
        for var in (*node.inputs, *node.outputs)
    )


def _run(builder: GraphBuilder, made: dict[str, Node], node: Node, seen: dict[str, Any], depth: int) -> None:
    arrays = [_value(builder, made, var, seen, depth + 1) for var in node.inputs]
    row: Any = builder.table.get(node.op)
    if row is None or any(array is None for array in arrays):
        return
    try:
        errors, NOTED.errors = NOTED.errors, 0
        with noting():
            result = row.ref(*arrays, **node.kwargs)
        found_errors, NOTED.errors = NOTED.errors, errors
        if found_errors & ~_UNDERFLOW:
            return  # NumPy reports it, which is for the graph to find when it runs
    except Exception as error:
        if is_from_handler(error):
            raise
        return  # it will be raised when the graph runs
    results = result if isinstance(result, tuple) else (result,)
    for var, array in zip(node.outputs, results):
        array = np.asarray(array)
        if array.dtype == var.dtype.numpy and array.shape == var.shape:
            seen[var.name] = array


def written(builder: GraphBuilder, made: dict[str, Node]) -> set[str]:
    """What is written to, and what such is a view of."""
    found: set[str] = set()
    for node in builder.nodes:
        if node.op != COPY:
            continue
        var: Var | None = node.inputs[0]
        while var is not None and var.name not in found:
            found.add(var.name)
            maker = made.get(var.name)
            row: Any = None if maker is None else builder.table.get(maker.op)
            var = maker.inputs[0] if maker is not None and row is not None and row.is_view else None
    return found
