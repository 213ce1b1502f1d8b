"""Small arrays made in the captured code from constants alone: what they hold is known at capture. Made from
symbolic sizes, too, it is known for the sizes of this call, which can be guarded (``pinned_array``); so it is
with small arrays that objects of the program hold (``relied_array``)."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..device import CPU
from ..dtypes import int64
from ..graph.ir import COPY, GraphBuilder, HeldArrays, Node, Var
from ..graph.noted import NOTED, noting
from ..signals import is_from_handler
from ..symbolic.integers import Dim, SymInt, depends_on_data, hint
from .base import ArrayRef

_MOST = 4096  # elements
_DEEPEST = 100
_UNDERFLOW = 4  # as NumPy numbers its errors
_CALLS = frozenset(("library_call", "python_call", "ufunc_call", "routine_call", "item", "symint", COPY))
_SELECTIONS = frozenset(("select", "nonzero", "positions", "argwhere", "flatnonzero"))  # library calls


def known_array(builder: GraphBuilder, var: Var) -> Any:
    """What ``var`` holds, computed by the references of its ops; ``None`` where that depends on an input."""
    return _Known(builder, at_hints=False).array(var)


def pinned_array(builder: GraphBuilder, var: Var) -> Any:
    """As ``known_array``, and where it depends on symbolic sizes, what it is for those of this call: they are
    constants from then on."""
    known = _Known(builder, at_hints=True)
    found = known.array(var)
    if found is not None:
        for size in known.sizes:
            operator.index(size)
    return found


def relied_array(builder: GraphBuilder, var: Var) -> Any:
    """As ``known_array``, and where it depends on what objects of the program hold, what it is for that: the
    capture guards it."""
    known = _Known(builder, at_hints=False, held=builder.held)
    found = known.array(var)
    if found is not None and builder.held is not None:
        for held in known.inputs:
            builder.held.rely(held)
    return found


def with_integers(builder: GraphBuilder, value: object) -> Any:
    """An argument with numbers in place of arrays of integers that are known (``relied_array``); the same
    object where there is none."""
    if isinstance(value, slice):
        parts = [with_integers(builder, part) for part in (value.start, value.stop, value.step)]
        same = all(a is b for a, b in zip(parts, (value.start, value.stop, value.step)))
        return value if same else slice(*parts)
    if isinstance(value, (tuple, list)):
        parts = [with_integers(builder, part) for part in value]
        same = all(a is b for a, b in zip(parts, value))
        return value if same else type(value)(parts) if type(value) in (tuple, list) else value
    if not isinstance(value, ArrayRef) or value.ndim > 1 or value.dtype != int64 or value.kind == "masked":
        return value
    array = relied_array(builder, value.var)
    if array is None:
        return value
    return array.tolist() if array.ndim else np.int64(array)


class _Known:
    """``at_hints``: symbolic sizes are those of this call; ``sizes`` says which. ``held``: what inputs are;
    ``inputs`` says which."""

    def __init__(self, builder: GraphBuilder, at_hints: bool, held: HeldArrays | None = None) -> None:
        self.builder = builder
        self.at_hints = at_hints
        self.held = held
        self.inputs: list[Var] = []
        self.made = {out.name: node for node in builder.nodes for out in node.outputs}
        self.seen: dict[str, Any] = {}
        self.sizes: list[SymInt] = []

    def array(self, var: Var) -> Any:
        found = self._value(var, 0)
        if found is None or written(self.builder, self.made) & self.seen.keys():
            return None
        return found

    def _value(self, var: Var, depth: int) -> Any:
        if var.name not in self.seen:
            node = self.made.get(var.name)
            self.seen[var.name] = None
            if node is not None and depth < _DEEPEST and self._is_small(node):
                self._run(node, depth)
            elif node is None and self.held is not None:
                self.seen[var.name] = self.held.elements(var)
                self.inputs += [var] if self.seen[var.name] is not None else []
        return self.seen[var.name]

    def _is_small(self, node: Node) -> bool:
        if node.op in _CALLS and node.kwargs.get("function") not in _SELECTIONS:
            return False
        return all(
            var.type.device == CPU
            and all(self._is_known(n) for n in var.shape)
            and math.prod(map(hint, var.shape)) <= _MOST
            and var.dtype.name != "bfloat16"
            for var in (*node.inputs, *node.outputs)
        )

    def _is_known(self, size: Dim) -> bool:
        return isinstance(size, int) or (self.at_hints and not depends_on_data(size))

    def _run(self, node: Node, depth: int) -> None:
        arrays = [self._value(var, depth + 1) for var in node.inputs]
        row: Any = self.builder.table.get(node.op)
        if row is None or any(array is None for array in arrays):
            return
        try:
            errors, NOTED.errors = NOTED.errors, 0
            with noting():
                result = row.ref(*arrays, **{k: self._now(v) for k, v in node.kwargs.items()})
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
            if array.dtype == var.dtype.numpy and array.shape == self._now(var.shape):
                self.seen[var.name] = array

    def _now(self, value: Any) -> Any:
        """A parameter of a node at the sizes of this call."""
        if isinstance(value, SymInt):
            if not self._is_known(value):
                raise ValueError("a size that is not known")
            self.sizes.append(value)
            return value.hint
        return tuple(map(self._now, value)) if type(value) is tuple else value


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
