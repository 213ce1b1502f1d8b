"""Markers are replaced by the derivatives that they ask for, or by values for a whole batch.

A marker (``prims/markers.py``) asks for a derivative of values by variables, or for values for all elements
of a batch instead of one; all of them are defined before it. Markers are replaced in the order of the
program: what is between the variables and the values of an outer one holds no marker any more, so derivatives
of derivatives, and batches of them, need nothing of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..graph.ir import Graph, Node, Ops, OpTable, Var
from ..graph.passes.cse import eliminate_common_subexpressions
from ..graph.passes.decompose import PrimBuilder, decompose
from ..graph.rewrite import Transformer, substitute
from ..prims.markers import BATCH, BEGIN, CUSTOM, ELEMENT, END, FUNCTION, GRADIENT, PRESENT, TANGENT
from ..prims.opdef import Marker
from ..symbolic.integers import Dim
from .batching import Batching, without
from .joint import Reverse, Table
from .pushforward import Forward


def expand(graph: Graph, table: OpTable, late: bool = False) -> Graph:
    """A functional graph without markers. ``late``: the cotangents that ``backward()`` begins with are
    ``after`` its values (see ``again.py``).

    Raises ``NotDifferentiableError`` with the program's place for a node without a derivative on a way from a
    variable to a value, and ``NotBatchableError`` for one without a rule between an element of a batch and
    what is asked for of all of it.
    """
    if not has_markers(graph, table):
        return graph
    made = _Expander(_merged(decompose(graph, table), table), table, late).run()
    elements = [node.out for node in made.nodes if node.op == ELEMENT]
    return without_markers(without(made, elements) if elements else made)


def _merged(graph: Graph, table: OpTable) -> Graph:
    """Equal expressions made one before they are differentiated: so are their derivatives, and an array that
    is read in a hundred places of an unrolled loop gets few cotangents. Variables stand for themselves."""
    variables: set[str] = set()
    for node in graph.nodes:
        marker = getattr(table[node.op], "lower", None)
        if not isinstance(marker, Marker):
            continue
        if node.op not in (GRADIENT, PRESENT, TANGENT):
            return graph  # stand-ins and places in the order of nodes mean something
        first = len(node.inputs) - marker.variables(len(node.inputs), **node.kwargs)
        first = 2 * node.kwargs["outputs"] if node.op == PRESENT else first
        variables.update(v.name for v in node.inputs[first:])
    return eliminate_common_subexpressions(graph, table, variables)


def has_markers(graph: Graph, table: OpTable) -> bool:
    return any(getattr(table.get(node.op), "is_marker", False) for node in graph.nodes)


def with_gradients(graph: Graph, table: OpTable) -> Graph:
    """The graph with the gradients that it asks for; derivatives go through its other markers."""
    asks = any(node.op in _MARKERS for node in graph.nodes)
    return _Expander(decompose(graph, table), table).run() if asks else graph


def without_markers(graph: Graph, kept: Sequence[str] = ()) -> Graph:
    """Values that had a derivative of their own way are what they were, but for the ops ``kept``."""
    replacement: dict[str, Var] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op in _WAYS and node.op not in kept:
            replacement.update({out.name: value for out, value in zip(node.outputs, node.inputs)})
        else:
            nodes.append(node)
    return substitute(replace(graph, nodes=tuple(nodes)), replacement)


_WAYS = (CUSTOM, FUNCTION, BEGIN, END)


class _Expander(Transformer):
    def __init__(self, graph: Graph, table: OpTable, late: bool = False) -> None:
        super().__init__(graph, table)
        self.late = late
        self.ops = Ops(self.builder)
        self.rules: Table = table  # type: ignore[assignment]
        self.closed: set[str] = set()  # what is made of elements of batches that were made

    def make_builder(self) -> PrimBuilder:
        return PrimBuilder(self.graph, self.table)

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        make = _MARKERS.get(node.op)
        if make is None:
            return self.keep(node, inputs)
        found = make(self, inputs, **node.kwargs)
        return tuple(self.ops.contiguous(v) for v in found)

    def batch(self, inputs: Sequence[Var], outputs: int, size: Dim) -> list[Var]:
        values, elements = inputs[:outputs], inputs[outputs:]
        batching = Batching(self.builder, self.rules, size)
        for element in elements:
            made = self.builder.producer(element)
            assert made is not None
            batching.add(element, made.inputs[0])
        nodes = tuple(self.builder.nodes)
        batching.run(nodes, [*values, *self._raising(nodes)])
        self.closed.update(element.name for element in elements)
        return [batching.batched(v) for v in values]

    def _raising(self, nodes: Sequence[Node]) -> list[Var]:
        """Values that are computed also where nothing uses them."""
        found: list[Var] = []
        for node in nodes:
            if any(v.name in self.closed for v in node.inputs):
                self.closed.update(v.name for v in node.outputs)
            elif self.rules[node.op].may_raise:
                found += node.outputs
        return found

    def gradient(self, inputs: Sequence[Var], outputs: int) -> list[Var]:
        values, cotangents, variables = inputs[:outputs], inputs[outputs : 2 * outputs], inputs[2 * outputs :]
        reverse = Reverse(self.builder, self.rules, tuple(self.builder.nodes), variables, values)
        for value, cotangent in zip(values, cotangents):
            reverse.add(value, cotangent)
        reverse.run()
        return [reverse.gradient(v) for v in variables]

    def present(self, inputs: Sequence[Var], outputs: int) -> list[Var]:
        if not self.late:
            return self.gradient(inputs, outputs)
        pairs = zip(inputs[outputs : 2 * outputs], inputs[:outputs])
        cotangents = [self.ops.after(cotangent, value) for cotangent, value in pairs]
        return self.gradient((*inputs[:outputs], *cotangents, *inputs[2 * outputs :]), outputs)

    def tangent(self, inputs: Sequence[Var], outputs: int) -> list[Var]:
        values, rest = inputs[:outputs], inputs[outputs:]
        given, variables = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        nodes = tuple(self.builder.nodes)
        forward = Forward(self.builder, self.rules, nodes, dict(zip((v.name for v in variables), given)))
        forward.run()
        return [forward.tangent(v) for v in values]


_MARKERS: dict[str, Callable[..., list[Var]]] = {
    BATCH: _Expander.batch,
    GRADIENT: _Expander.gradient,
    PRESENT: _Expander.present,
    TANGENT: _Expander.tangent,
}
