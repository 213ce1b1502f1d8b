"""Constant folding: nodes whose inputs are all constants are computed once, by their references."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interp import has_symbols
from ..ir import ArrayType, Graph, Literal, Node, OpTable, Var, same_type
from ..noted import noting
from ..rewrite import Rebuilder, Transformer

MAX_ELEMENTS = 256

_CREATION = ("full", "constant")


def fold_constants(graph: Graph, table: OpTable) -> Graph:
    """Fold nodes of constants with up to ``MAX_ELEMENTS`` elements, and elementwise functions of uniform
    values of any size."""
    if not graph.functional or not any(node.op in _CREATION for node in graph.nodes):
        return graph
    return _Folder(graph, table).run()


class _Folder(Transformer):
    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(graph, table)
        self.values: dict[str, np.ndarray[Any, Any]] = {}
        # creation nodes, evaluated when first needed
        self.sources: dict[str, Node] = {}
        # values whose elements are all the same number
        self.uniform: dict[str, np.ndarray[Any, Any]] = {}

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        number = self._number(node, inputs)
        if number is not None and number.dtype == node.out.dtype.numpy:
            folded = emit_uniform(self.builder, node.out.type, number) if node.op not in _CREATION else None
            result = self.keep(node, inputs) if folded is None else folded
            self.uniform[result.name] = number
            if node.op in _CREATION and _is_small(node.out.type) and not has_symbols(node.params):
                self.sources[node.out.name] = node
            return result
        return self._folded(node, inputs)

    def _number(self, node: Node, inputs: tuple[Var, ...]) -> np.ndarray[Any, Any] | None:
        """The number, without dimensions, that all elements of a node's value are, if that is known."""
        row: Any = self.table[node.op]
        if node.op == "full":
            value = node.kwargs["value"]
            number = isinstance(value, (bool, int, float, complex)) and node.out.dtype.name != "bfloat16"
            return np.asarray(value).astype(node.out.dtype.numpy) if number else None
        if not inputs or any(v.name not in self.uniform for v in inputs):
            return None
        numbers = [self.uniform[v.name] for v in inputs]
        if row.is_view:
            return numbers[0]
        if getattr(row, "scalar", None) is None and node.op not in ("convert", "copy", "contiguous"):
            return None
        try:
            with noting():
                return np.asarray(row.ref(*numbers, **node.kwargs))
        except Exception:  # whatever the reference raises, it shall raise at run time
            return None

    def _folded(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if node.op in _CREATION or not self._foldable(node, inputs):
            result = self.keep(node, inputs)
            if node.op in _CREATION and _is_small(node.out.type) and not has_symbols(node.params):
                self.sources[node.out.name] = node
            return result
        try:
            with noting():
                value = self._evaluate(node, inputs)
        except Exception:  # whatever the reference raises, it shall raise at run time
            return self.keep(node, inputs)
        folded = emit_constant(self.builder, node.out.type, value)
        if folded is None:
            return self.keep(node, inputs)
        self.values[folded.name] = value
        return folded

    def _foldable(self, node: Node, inputs: tuple[Var, ...]) -> bool:
        row = self.table[node.op]
        return (
            bool(inputs)
            and len(node.outputs) == 1
            and _is_small(node.out.type)
            and all(v.name in self.values or v.name in self.sources for v in inputs)
            and not getattr(row, "may_raise", False)
            and not has_symbols(node.params)
        )

    def _value(self, var: Var) -> np.ndarray[Any, Any]:
        if var.name not in self.values:
            self.values[var.name] = self._evaluate(self.sources[var.name], ())
        return self.values[var.name]

    def _evaluate(self, node: Node, inputs: tuple[Var, ...]) -> np.ndarray[Any, Any]:
        arrays = [self._value(v) for v in inputs]
        return np.asarray(self.table[node.op].ref(*arrays, **node.kwargs))


def _is_small(type: ArrayType) -> bool:
    return isinstance(type.size, int) and 0 < type.size <= MAX_ELEMENTS


def emit_constant(builder: Rebuilder, type: ArrayType, value: np.ndarray[Any, Any]) -> Var | None:
    """``full`` where all elements are the same, else ``constant``; ``None`` where neither has ``type``."""
    if value.dtype != type.dtype.numpy or value.dtype.name == "bfloat16":
        return None
    data = np.ascontiguousarray(value).tobytes()
    item = value.itemsize
    uniform = data == data[:item] * value.size
    # NaNs keep their sign and payload only as literals
    if uniform and not np.isnan(value).any():
        return emit_uniform(builder, type, value.reshape(-1)[0])
    return _emit_if(builder, type, "constant", {"literal": Literal.of(value, type.dtype)})


def emit_uniform(builder: Rebuilder, type: ArrayType, number: Any) -> Var | None:
    """``full`` where that has exactly ``type`` and keeps the number as it is."""
    if np.isnan(number):
        return None
    params: dict[str, Any] = {"shape": type.shape, "value": number.item(), "dtype": type.dtype}
    return _emit_if(builder, type, "full", {**params, "device": type.device})


def _emit_if(builder: Rebuilder, type: ArrayType, op: str, params: dict[str, Any]) -> Var | None:
    """Emit a creation op where that gives exactly ``type``."""
    if not same_type(builder.table[op].meta(**params), type, strides=True):
        return None
    result: Var = builder.emit(op, **params)
    return result
