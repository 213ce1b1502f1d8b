"""Batching: what nodes compute for a whole batch at once.

A batched value has the batch as axis 0. Only nodes that depend on a batched value are made anew, by the rules
of their rows (``prims/batching``); all else is computed once, as it was. Nodes keep the program's places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import NotBatchableError
from ..graph.ir import ArrayType, Graph, GraphInput, GraphOutput, Node, Ops, Var
from ..graph.passes.decompose import PrimBuilder
from ..graph.rewrite import Rebuilder
from ..prims.batching.operands import Operands, repeated
from ..prims.markers import BEGIN, CUSTOM, END
from ..symbolic.integers import Dim
from .joint import Table, described


class Batching:
    """Batched forms of values of a builder: :meth:`add` those that are known, then :meth:`run`."""

    def __init__(self, builder: Rebuilder, table: Table, size: Dim) -> None:
        self.builder = builder
        self.table = table
        self.size = size
        self.ops = Ops(builder)
        self.values: dict[str, Var] = {}  # by the names of what they stand for

    def add(self, var: Var, value: Var) -> None:
        """``value`` stands for ``var``: it is ``var`` for each element of the batch, or for all of them."""
        self.values[var.name] = value

    def is_batched(self, var: Var) -> bool:
        found = self.values.get(var.name)
        return found is not None and found.ndim > var.ndim

    def batched(self, var: Var) -> Var:
        """``var`` for each element of the batch, repeated where it is the same for all."""
        found = self.values.get(var.name, var)
        return found if self.is_batched(var) else repeated(self.ops, found, self.size)

    def run(self, nodes: Sequence[Node], needed: Sequence[Var]) -> None:
        """Append the batched forms of those of ``nodes`` that depend on a batched value and that ``needed``
        depend on. Raises :class:`NotBatchableError` with the program's place where a row has no rule."""
        loc = self.builder.loc
        found = self._with_stand_ins(nodes, needed)
        for node in found:
            if node.op == BEGIN:
                self.builder.emit(BEGIN, **node.kwargs)
            else:
                self._node(node)
        self.builder.loc = loc

    def _with_stand_ins(self, nodes: Sequence[Node], needed: Sequence[Var]) -> list[Node]:
        """The nodes to make anew. A cotangent of a batched value is batched, so its stand-in is: what is made
        of stand-ins belongs to them, too."""
        while True:
            found = self._on_the_way(nodes, needed)
            stand_ins = [
                v for n in found if n.op == CUSTOM for v in n.inputs[len(n.outputs) : 2 * len(n.outputs)]
            ]
            missing = [v for v in stand_ins if not self.is_batched(v)]
            if not missing:
                return found
            for var in missing:
                self.add(var, repeated(self.ops, var, self.size))

    def _on_the_way(self, nodes: Sequence[Node], needed: Sequence[Var]) -> list[Node]:
        wanted = {v.name for v in needed}
        for node in reversed(nodes):
            if any(v.name in wanted for v in node.outputs):
                wanted.update(v.name for v in node.inputs)
        found = []
        reached = set(self.values)
        ends = {node.params for node in nodes if node.op == END}
        for node in nodes:
            if node.op == BEGIN and node.params in ends:
                found.append(node)
            elif any(v.name in reached for v in node.inputs) and any(v.name in wanted for v in node.outputs):
                reached.update(v.name for v in node.outputs)
                found.append(node)
        return found

    def _node(self, node: Node) -> None:
        row = self.table[node.op]
        if row.batch is None:
            raise refusal(node, row.not_batchable or "it has no batching rule")
        self.builder.loc = node.loc
        types = tuple(v.type for v in node.inputs)
        values = tuple(self.values.get(v.name, v) for v in node.inputs)
        try:
            found = row.batch(Operands(self.ops, self.size, values, types), **node.kwargs)
        except TypeError as error:
            raise refusal(node, str(error)) from error
        made = found if isinstance(found, tuple) else (found,)
        for var, value in zip(node.outputs, made, strict=True):
            self.add(var, value)


def batched(
    graph: Graph, table: Table, inputs: Mapping[int, ArrayType], size: Dim
) -> tuple[Graph, tuple[bool, ...]]:
    """A functional graph of prims for a batch of ``size``, and which of its outputs are batched. ``inputs``:
    the batched ones by number, and their types with the batch in front.

    No input is written, and outputs are no views. Raises as :meth:`Batching.run`.
    """
    builder = PrimBuilder(graph, table)
    for node in graph.nodes:
        builder.keep(node)
    batching = Batching(builder, table, size)
    for number, type in inputs.items():
        given = graph.inputs[number]
        value = builder.fresh(type, "batch")
        builder.inputs[number] = GraphInput(value, "array", given.label)
        batching.add(given.var, value)
    batching.run(graph.nodes, [out.var for out in graph.outputs])
    is_batched = tuple(batching.is_batched(out.var) for out in graph.outputs)
    outputs = [
        GraphOutput(batching.batched(out.var))
        if flag
        else replace(out, var=batching.values.get(out.var.name, out.var))
        for out, flag in zip(graph.outputs, is_batched)
    ]
    made = builder.rebuilt(outputs, (), inputs=tuple(builder.inputs))
    return without(made, [graph.inputs[number].var for number in inputs]), is_batched


def without(graph: Graph, variables: Sequence[Var]) -> Graph:
    """The graph without what depends on these values of a single element of a batch, which nothing is to use
    any more. Raises :class:`NotBatchableError` where something is."""
    single = {v.name for v in variables}
    kept = []
    producers: dict[str, Node] = {}
    for node in graph.nodes:
        if any(v.name in single for v in (*node.inputs, *node.outputs)):
            single.update(v.name for v in node.outputs)
            producers.update((v.name, node) for v in node.outputs)
        else:
            kept.append(node)
    for var in (*(out.var for out in graph.outputs), *(var for _, var in graph.mutations)):
        if var.name in single:
            node = producers[var.name]
            raise NotBatchableError(
                f"a value of one element of a batch is used outside of the function under vmap, or is its "
                f"result for out_axes=None: that of {described(node)}"
            )
    return replace(graph, nodes=tuple(kept))


def refusal(node: Node, reason: str) -> NotBatchableError:
    """What says that a node cannot be batched."""
    return NotBatchableError(f"{described(node)} cannot be batched: {reason}")
