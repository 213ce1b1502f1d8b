"""Forward mode: a functional graph followed by the tangents of its outputs.

Tangents of the inputs asked for become inputs at the end, tangents of all outputs of inexact dtypes become
outputs at the end (zeros where an output depends on none of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..graph.ir import Graph, GraphOutput, Node, Ops, Var, contiguous_strides
from ..graph.passes.decompose import decompose
from ..graph.rewrite import Rebuilder
from ..prims.pointwise.partials import zeros
from .joint import Table, check_inputs, refusal, row_of, seen


def pushforward(graph: Graph, table: Table, wrt: Sequence[int]) -> Graph:
    """The graph with tangents.

    Raises :class:`NotDifferentiableError` with the program's place for a node without a derivative between an
    input of ``wrt`` and an output.
    """
    graph = decompose(graph, table)
    builder = Rebuilder(graph, table)
    for node in graph.nodes:
        builder.keep(node)
    tangents: dict[str, Var] = {}
    for k in wrt:
        var = graph.inputs[k].var
        plain = replace(var.type, strides=contiguous_strides(var.shape))
        tangents[var.name] = builder.add_input(plain, label=f"tangent of input {k}")
    values = [seen(builder, graph, out) for out in graph.outputs if out.var.dtype.is_inexact]
    forward = Forward(builder, table, tuple(builder.nodes), tangents)
    forward.run()
    ends = [GraphOutput(forward.tangent(value)) for value in values]
    made = builder.finish((*graph.outputs, *ends))
    return replace(made, name=graph.name, mutations=graph.mutations, functional=True)


class Forward:
    """The tangents of what nodes of a builder compute, from ``tangents`` of other values, by name."""

    def __init__(
        self, builder: Rebuilder, table: Table, nodes: Sequence[Node], tangents: Mapping[str, Var]
    ) -> None:
        self.builder = builder
        self.table = table
        self.nodes = nodes
        self.ops = Ops(builder)
        self.tangents = dict(tangents)

    def run(self) -> None:
        loc = self.builder.loc
        for node in self.nodes:
            given = [self.tangents.get(v.name) for v in node.inputs]
            if any(t is not None for t in given) and any(v.dtype.is_inexact for v in node.outputs):
                self._through(node, given)
        self.builder.loc = loc

    def _through(self, node: Node, given: Sequence[Var | None]) -> None:
        row, params = row_of(node, self.table)
        if row.jvp is None:
            raise refusal(node, row.no_derivative or "it has no derivative in forward mode")
        check_inputs(node, row, [t is not None for t in given])
        self.builder.loc = node.loc
        try:
            found = row.jvp(self.ops, given, node.inputs, node.outputs, **params)
        except TypeError as error:
            raise refusal(node, str(error)) from error
        made = found if isinstance(found, tuple) else (found,)
        named = zip(node.outputs, made, strict=True)
        self.tangents.update({v.name: t for v, t in named if t is not None})

    def tangent(self, var: Var) -> Var:
        found = self.tangents.get(var.name)
        made: Var = zeros(self.ops, var) if found is None else self.ops.copy(found)
        return made
