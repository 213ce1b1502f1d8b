"""Forward mode: a functional graph followed by the tangents of its outputs.

Tangents of the inputs asked for become inputs at the end, tangents of all outputs of inexact dtypes become
outputs at the end (zeros where an output depends on none of them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph.ir import Graph, GraphOutput, Ops, Var, contiguous_strides
from ..graph.passes.decompose import decompose
from ..graph.rewrite import Rebuilder
from ..prims.pointwise.partials import zeros
from .joint import Table, check_inputs, refusal, row_of


def pushforward(graph: Graph, table: Table, wrt: Sequence[int]) -> Graph:
    """The graph with tangents.

    Raises :class:`NotDifferentiableError` with the program's place for a node without a derivative between an
    input of ``wrt`` and an output.
    """
    graph = decompose(graph, table)
    builder = Rebuilder(graph, table)
    ops = Ops(builder)
    for node in graph.nodes:
        builder.keep(node)
    tangents: dict[str, Var] = {}
    for k in wrt:
        var = graph.inputs[k].var
        plain = replace(var.type, strides=contiguous_strides(var.shape))
        tangents[var.name] = builder.add_input(plain, label=f"tangent of input {k}")
    for node in graph.nodes:
        given = [tangents.get(v.name) for v in node.inputs]
        if all(t is None for t in given) or not any(v.dtype.is_inexact for v in node.outputs):
            continue
        row, params = row_of(node, table)
        if row.jvp is None:
            raise refusal(node, row.no_derivative or "it has no derivative in forward mode")
        check_inputs(node, row, [t is not None for t in given])
        builder.loc = node.loc
        try:
            found = row.jvp(ops, given, node.inputs, node.outputs, **params)
        except TypeError as error:
            raise refusal(node, str(error)) from error
        made = found if isinstance(found, tuple) else (found,)
        tangents.update({v.name: t for v, t in zip(node.outputs, made, strict=True) if t is not None})
    builder.loc = None
    ends = []
    for out in graph.outputs:
        var = out.var
        if not var.dtype.is_inexact:
            continue
        tangent = tangents.get(var.name)
        ends.append(GraphOutput(zeros(ops, var) if tangent is None else ops.copy(tangent)))
    made_graph = builder.finish((*graph.outputs, *ends))
    return replace(made_graph, name=graph.name, mutations=graph.mutations, functional=True)
