"""Rebuilding graphs: a builder that continues from a graph, and a node-by-node transformer.

Passes keep the exact type of every value they replace (dtype, shape and strides), so that whatever was
inferred downstream stays true; :func:`match_type` inserts a copy where a replacement is laid out
differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import Unsupported, VerifyError
from ..symbolic.integers import Dim, SymInt, hint, product, same
from .ir import (
    COPY,
    ArrayType,
    Graph,
    GraphBuilder,
    GraphOutput,
    Node,
    OpTable,
    Var,
    ViewOf,
    contiguous_strides,
    same_shape,
    same_type,
)


class Rebuilder(GraphBuilder):
    """A builder with the inputs and symbols of ``graph``: keeps old nodes, appends new ones."""

    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(table, graph.env, graph.name)
        self.graph = graph
        self.inputs = list(graph.inputs)
        self.symbols = list(graph.symbols)
        self.device = graph.device
        self._counter = _next_number(graph)

    def keep(self, node: Node) -> None:
        """Append a node as it is; its inputs must have been kept or be inputs."""
        self.nodes.append(node)
        for var in node.outputs:
            self.producers[var.name] = node

    def rebuilt(
        self, outputs: Sequence[GraphOutput], mutations: Sequence[tuple[int, Var]], **changes: Any
    ) -> Graph:
        """The new graph."""
        return replace(
            self.graph,
            nodes=tuple(self.nodes),
            outputs=tuple(outputs),
            mutations=tuple(mutations),
            **changes,
        )


def _next_number(graph: Graph) -> int:
    """One more than the largest number in a generated value name."""
    numbers = [int(m.group(1)) for v in graph.values() if (m := re.fullmatch(r"v(\d+)", v.name))]
    return max(numbers, default=-1) + 1


class Transformer:
    """Rebuilds a functional graph node by node. Override :meth:`node`.

    ``node(node, inputs)`` returns what replaces the node's output: a value of the same type (a tuple for
    several outputs). The default keeps the node.
    """

    def __init__(self, graph: Graph, table: OpTable) -> None:
        self.graph = graph
        self.table = table
        self.builder = self.make_builder()
        self.replacement: dict[str, Var] = {v.name: v for v in graph.input_vars}

    def make_builder(self) -> Rebuilder:
        return Rebuilder(self.graph, self.table)

    def run(self) -> Graph:
        """The transformed graph."""
        for node in self.graph.nodes:
            self.builder.loc = node.loc
            inputs = tuple(self.replacement[v.name] for v in node.inputs)
            result = self.node(node, inputs)
            results = result if isinstance(result, tuple) else () if result is None else (result,)
            for old, new in zip(node.outputs, results, strict=True):
                self._check(node, old, new)
                self.replacement[old.name] = new
        return self.finish()

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        return self.keep(node, inputs)

    def keep(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        """Append ``node`` reading ``inputs`` (of the same types as its own)."""
        kept = node if inputs == node.inputs else replace(node, inputs=inputs)
        self.builder.keep(kept)
        return kept.outputs if len(kept.outputs) != 1 else kept.outputs[0]

    def finish(self) -> Graph:
        outputs = [replace(out, var=self.replacement[out.var.name]) for out in self.graph.outputs]
        mutations = [(index, self.replacement[var.name]) for index, var in self.graph.mutations]
        return self.builder.rebuilt(outputs, mutations)

    def _check(self, node: Node, old: Var, new: Var) -> None:
        if not same_type(old.type, new.type, strides=True):
            raise VerifyError(f"{type(self).__name__}: {node.op} of type {old.type} replaced by {new.type}")


def substitute(graph: Graph, replacement: dict[str, Var]) -> Graph:
    """``graph`` with uses of values replaced by other values of the same type (chains are followed)."""

    def resolve(var: Var) -> Var:
        while var.name in replacement:
            var = replacement[var.name]
        return var

    nodes = tuple(
        replace(node, inputs=tuple(map(resolve, node.inputs)))
        if any(v.name in replacement for v in node.inputs)
        else node
        for node in graph.nodes
    )
    outputs = tuple(replace(out, var=resolve(out.var)) for out in graph.outputs)
    mutations = tuple((index, resolve(var)) for index, var in graph.mutations)
    return replace(graph, nodes=nodes, outputs=outputs, mutations=mutations)


# -- layout -----------------------------------------------------------------------------------
def axis_order(shape: Sequence[Dim], strides: Sequence[Dim]) -> tuple[int, ...]:
    """Axes from the largest to the smallest stride at capture (C order among equals); axes of size 1
    are left out. Records no guard."""
    axes = [axis for axis, dim in enumerate(shape) if not same(dim, 1)]
    return tuple(sorted(axes, key=lambda axis: -abs(hint(strides[axis]))))


def with_strides(builder: GraphBuilder, value: Var, strides: Sequence[Dim]) -> Var:
    """A copy of ``value`` that lies in memory as dense ``strides`` say (``value`` itself if it does).

    Raises ``Unsupported`` where the strides are not those of a dense array.
    """
    if same_shape(value.type.strides, tuple(strides)):
        return value
    order = axis_order(value.shape, strides)
    ones = [axis for axis in range(value.ndim) if axis not in order]
    perm = (*ones, *order)
    if perm == tuple(range(value.ndim)):
        result = builder.emit("contiguous", value)
    else:
        turned = builder.emit("contiguous", builder.emit("transpose", value, perm=perm))
        back = tuple(sorted(range(value.ndim), key=perm.__getitem__))
        result = builder.emit("transpose", turned, perm=back)
    if not strides_agree(result.type, strides):
        raise Unsupported(f"a value of layout {value.type} is needed with strides {tuple(strides)}")
    return result


def strides_agree(type: ArrayType, strides: Sequence[Dim]) -> bool:
    """Equal strides wherever they matter: on axes of sizes other than 1, in arrays with elements."""
    if any(same(dim, 0) for dim in type.shape):
        return True
    return all(same(d, 1) or same(a, b) for d, a, b in zip(type.shape, type.strides, strides))


def match_type(builder: GraphBuilder, value: Var, type: ArrayType) -> Var | None:
    """``value`` or a copy of it that has exactly ``type``; ``None`` where there is none."""
    if same_type(value.type, type, strides=True):
        return value
    if value.dtype != type.dtype or not same_shape(value.shape, type.shape):
        return None
    meta = builder.table["copy"].meta(value.type)
    if same_type(meta, type, strides=True):
        return builder.emit("copy", value)
    try:
        result = with_strides(builder, value, type.strides)
    except Unsupported:
        return None
    return result if same_type(result.type, type, strides=True) else None


def emit_reshape(builder: GraphBuilder, value: Var, shape: tuple[Dim, ...]) -> Var:
    """``reshape`` by value: through a C-order copy where no view has that shape."""
    if same_shape(value.shape, shape):
        return value
    try:
        return builder.emit("reshape", value, shape=shape)
    except (ValueError, TypeError):
        return builder.emit("reshape", builder.emit("contiguous", value), shape=shape)


def emit_window(builder: GraphBuilder, base: Var, view: ViewOf) -> Var:
    """The value of an output that is a view of ``base``: by a reshape, slices and a transposition where these
    are known to do, else by ``as_strided``."""
    moving = [axis for axis, dim in enumerate(view.shape) if not same(dim, 1)]
    moving.sort(key=lambda axis: -abs(hint(view.strides[axis])))
    shape = tuple(view.shape[axis] for axis in moving)
    found: Var
    params = _slices(base.type, view, moving)
    dense = same_shape(contiguous_strides(shape), tuple(view.strides[axis] for axis in moving))
    if base.type.is_contiguous and dense:
        count = product(shape)
        if same(count, base.type.size):
            found = emit_reshape(builder, base, shape)
        else:
            flat = emit_reshape(builder, base, (base.type.size,))
            run = builder.emit("strided_slice", flat, starts=(view.offset,), sizes=(count,), steps=(1,))
            found = emit_reshape(builder, run, shape)
    elif params is not None:
        found = emit_reshape(builder, builder.emit("strided_slice", base, **params), shape)
    else:
        kept: dict[str, Any] = {"shape": view.shape, "strides": view.strides, "offset": view.offset}
        made: Var = builder.emit("as_strided", base, **kept)
        return made
    back = tuple(sorted(range(len(moving)), key=moving.__getitem__))
    if back != tuple(range(len(moving))):
        found = builder.emit("transpose", found, perm=back)
    return emit_reshape(builder, found, view.shape)


def _slices(base: ArrayType, view: ViewOf, moving: Sequence[int]) -> dict[str, Any] | None:
    """Of a base in C order and a view whose axes ``moving`` each go along another axis of the base, in order:
    the slices. ``None`` where there are none, or where it depends on symbolic sizes."""
    numbers = (*base.shape, *base.strides, view.offset, *view.strides)
    if not base.is_contiguous or not all(isinstance(n, int) for n in numbers):
        return None
    starts: list[Any] = []
    steps: list[Any] = []
    sizes: list[Any] = []
    rest: Any = view.offset
    left = list(moving)
    for size, stride in zip(base.shape, base.strides):
        start, rest = divmod(rest, stride)
        count, step = 1, 1
        if left and abs(hint(view.strides[left[0]])) >= hint(stride) and size != 1:
            axis = left.pop(0)
            step, odd = divmod(hint(view.strides[axis]), hint(stride))
            count = hint(view.shape[axis])
            if odd or not 0 <= start + (count - 1) * step < hint(size):
                return None
        starts.append(start)
        steps.append(step)
        sizes.append(count)
    whole = not left and rest == 0 and all(0 <= k < hint(n) for k, n in zip(starts, base.shape))
    return {"starts": tuple(starts), "sizes": tuple(sizes), "steps": tuple(steps)} if whole else None


def frozen_key(value: object) -> Any:
    """A hashable form of a parameter that tells ``0.0``, ``-0.0``, ``0``, ``False`` and NaNs apart."""
    kind = type(value)
    if kind is int or kind is float:
        return (kind, repr(value))
    if isinstance(value, (tuple, list)):
        return (kind, *map(frozen_key, value))
    if isinstance(value, dict):
        return (dict, *((k, frozen_key(v)) for k, v in value.items()))
    if isinstance(value, (bool, int, float, complex)):
        return (type(value), repr(value))
    if isinstance(value, SymInt):
        return value.key
    return value


def is_effect(node: Node) -> bool:
    """Whether the node does something besides giving values."""
    return node.op == COPY
