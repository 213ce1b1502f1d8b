"""Batching: a functional graph for a whole batch of inputs at once.

A batched value has the batch as axis 0. Only nodes that depend on a batched input change, by the rules of
their rows (``prims/batching``); all else is computed once, as it was. Nodes keep the program's places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import NotBatchableError
from ..graph.ir import ArrayType, Graph, GraphInput, GraphOutput, Node, Ops, Var
from ..graph.passes.decompose import decompose
from ..graph.rewrite import Rebuilder
from ..prims.batching.operands import Operands, repeated
from ..symbolic.integers import Dim
from .joint import Table, described


def batch_type(type: ArrayType, size: Dim, apart: Dim | None = None) -> ArrayType:
    """The type of ``size`` values of ``type``, each in memory as ``type`` says. ``apart``: the stride of the
    batch; as much as a value in C order spans if ``None``."""
    stride = type.size if apart is None else apart
    return replace(type, shape=(size, *type.shape), strides=(stride, *type.strides))


class Batching:
    """The pass over nodes one by one, into a builder: :meth:`add` says which values are batched, and
    :meth:`node` appends what stands for a node. ``values``: the batched ones by the names of those that they
    stand for."""

    def __init__(self, builder: Rebuilder, table: Table, size: Dim) -> None:
        self.builder = builder
        self.table = table
        self.size = size
        self.ops = Ops(builder)
        self.values: dict[str, Var] = {}

    def add(self, var: Var, value: Var) -> None:
        """``value`` is ``var`` for each element of the batch."""
        self.values[var.name] = value

    def is_batched(self, var: Var) -> bool:
        return var.name in self.values

    def batched(self, var: Var) -> Var:
        """``var`` for each element of the batch, repeated where it is the same for all."""
        found = self.values.get(var.name)
        return repeated(self.ops, var, self.size) if found is None else found

    def run(self, nodes: Sequence[Node]) -> None:
        loc = self.builder.loc
        for node in nodes:
            self.node(node)
        self.builder.loc = loc

    def node(self, node: Node) -> None:
        """Raises :class:`NotBatchableError` with the program's place where a row has no rule."""
        if not any(v.name in self.values for v in node.inputs):
            self.builder.keep(node)
            return
        row = self.table[node.op]
        if row.batch is None:
            raise refusal(node, row.not_batchable or "it has no batching rule")
        self.builder.loc = node.loc
        given = Operands(
            self.ops,
            self.size,
            tuple(self.values.get(v.name, v) for v in node.inputs),
            tuple(v.type for v in node.inputs),
        )
        try:
            found = row.batch(given, **node.kwargs)
        except TypeError as error:
            raise refusal(node, str(error)) from error
        made = found if isinstance(found, tuple) else (found,)
        for var, value in zip(node.outputs, made, strict=True):
            self.add(var, value)


def batched(
    graph: Graph, table: Table, inputs: Mapping[int, ArrayType], size: Dim
) -> tuple[Graph, tuple[bool, ...]]:
    """The graph for a batch of ``size``, and which of its outputs are batched. ``inputs``: the batched ones by
    number, and their types with the batch in front (see :func:`batch_type`).

    The graph is functional, and its outputs are no views (see :func:`own_outputs`). An input that is written
    is batched, or what is written is not. Raises :class:`NotBatchableError` with the program's place for what
    cannot be batched.
    """
    graph = decompose(graph, table)
    builder = Rebuilder(graph, table)
    batching = Batching(builder, table, size)
    for number, type in inputs.items():
        old = graph.inputs[number]
        value = builder.fresh(type, "batch")
        builder.inputs[number] = GraphInput(value, "array", old.label)
        batching.add(old.var, value)
    batching.run(graph.nodes)
    outputs = []
    for out in graph.outputs:
        assert out.view is None, "an output that is a view"
        value = batching.values.get(out.var.name)
        outputs.append(out if value is None else GraphOutput(value))
    mutations = []
    for number, var in graph.mutations:
        if number in inputs:
            var = batching.batched(var)
        elif batching.is_batched(var):
            label = graph.inputs[number].label
            raise NotBatchableError(f"batched data are written into {label}, which is the same for the batch")
        mutations.append((number, var))
    made = replace(
        builder.finish(tuple(outputs)),
        symbols=graph.symbols,
        mutations=tuple(mutations),
        functional=True,
    )
    return made, tuple(batching.is_batched(out.var) for out in graph.outputs)


def own_outputs(graph: Graph, table: Table) -> Graph:
    """A captured graph whose outputs are memory of their own, whatever they were views of."""
    builder = Rebuilder(graph, table)
    for node in graph.nodes:
        builder.keep(node)
    outputs = [
        GraphOutput(builder.emit("copy", out.var)) if out.kind == "array" else out for out in graph.outputs
    ]
    return builder.rebuilt(outputs, graph.mutations)


def refusal(node: Node, reason: str) -> NotBatchableError:
    """What says that a node cannot be batched."""
    return NotBatchableError(f"{described(node)} cannot be batched: {reason}")
