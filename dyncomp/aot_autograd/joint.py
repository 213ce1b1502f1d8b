"""The joint graph: a functional graph followed by the derivatives of its outputs.

Cotangents of outputs become inputs at the end; gradients of the inputs asked for become outputs at the end.
Only what lies on a way from such an input to such an output is differentiated, and what gets no cotangent
is zero and computed nowhere. Nodes of the backward pass have the places of the nodes that they come from.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..dataclass import dataclass
from ..errors import NotDifferentiableError
from ..graph.ir import Graph, GraphOutput, Node, Ops, Var, contiguous_strides
from ..graph.passes.decompose import decompose
from ..graph.rewrite import Rebuilder
from ..prims.opdef import OpDef
from ..prims.pointwise.partials import scalar, zeros
from ..prims.table import TABLE

Table = Mapping[str, OpDef]


@dataclass(frozen=True)
class Joint:
    """A graph with its backward pass.

    ``graph``: inputs of the original and a cotangent for each of ``outputs`` (unless they are ones); outputs
    of the original and a gradient for each of ``wrt`` (of an input that no output depends on: zeros).
    ``nodes``: how many of its nodes are the original's.
    """

    graph: Graph
    outputs: tuple[int, ...]
    wrt: tuple[int, ...]
    nodes: int


def joint(
    graph: Graph,
    table: Table,
    wrt: Sequence[int],
    outputs: Sequence[int] | None = None,
    *,
    ones: bool = False,
) -> Joint:
    """The joint graph of a functional graph for gradients by the inputs ``wrt`` of the outputs ``outputs``
    (numbers; all outputs of inexact dtypes if ``None``). ``ones``: cotangents are ones, not inputs.

    Raises :class:`NotDifferentiableError` with the program's place for a node on the way that has no
    derivative, and for an input or output that is not inexact.
    """
    graph = decompose(graph, table)
    numbers = range(len(graph.outputs)) if outputs is None else outputs
    chosen = tuple(k for k in numbers if outputs is not None or graph.outputs[k].var.dtype.is_inexact)
    for k in wrt:
        _check_inexact(graph.inputs[k].var, f"input {k}")
    for k in chosen:
        _check_inexact(graph.outputs[k].var, f"output {k}")
    return _Reverse(graph, table, tuple(wrt), chosen, ones).run()


def _check_inexact(var: Var, what: str) -> None:
    if not var.dtype.is_inexact:
        raise NotDifferentiableError(
            f"{what} has dtype {var.dtype}: derivatives are of floating-point numbers"
        )


class _Reverse:
    def __init__(
        self, graph: Graph, table: Table, wrt: tuple[int, ...], outputs: tuple[int, ...], ones: bool
    ) -> None:
        self.graph = graph
        self.table = table
        self.wrt = wrt
        self.outputs = outputs
        self.ones = ones
        self.builder = Rebuilder(graph, table)
        self.ops = Ops(self.builder)
        self.cotangents: dict[str, Var] = {}

    def run(self) -> Joint:
        graph = self.graph
        for node in graph.nodes:
            self.builder.keep(node)
        on_the_way = self._on_the_way()
        for k in self.outputs:
            var = graph.outputs[k].var
            given = scalar(self.ops, var, 1.0) if self.ones else self._cotangent(var, k)
            if var.name in on_the_way:
                self._add(var, given)
        for node in reversed(graph.nodes):
            if any(v.name in on_the_way for v in node.outputs):
                self._through(node, on_the_way)
        self.builder.loc = None
        gradients = [self._gradient(graph.inputs[k].var) for k in self.wrt]
        made = self.builder.finish((*graph.outputs, *map(GraphOutput, gradients)))
        made = replace(made, name=graph.name, mutations=graph.mutations, functional=True)
        return Joint(made, self.outputs, self.wrt, len(graph.nodes))

    def _cotangent(self, var: Var, number: int) -> Var:
        plain = replace(var.type, strides=contiguous_strides(var.shape))
        return self.builder.add_input(plain, label=f"cotangent of output {number}")

    def _on_the_way(self) -> frozenset[str]:
        """Values that depend on the inputs and that the outputs depend on, of inexact dtypes."""
        reached = {self.graph.inputs[k].var.name for k in self.wrt}
        for node in self.graph.nodes:
            if any(v.name in reached for v in node.inputs):
                reached.update(v.name for v in node.outputs if v.dtype.is_inexact)
        needed = {self.graph.outputs[k].var.name for k in self.outputs}
        for node in reversed(self.graph.nodes):
            if any(v.name in needed for v in node.outputs):
                needed.update(v.name for v in node.inputs)
        return frozenset(reached & needed)

    def _through(self, node: Node, on_the_way: frozenset[str]) -> None:
        """From the cotangents of a node's outputs to those of its inputs."""
        cotangents = tuple(self.cotangents.get(v.name) for v in node.outputs)
        if all(ct is None for ct in cotangents):
            return
        row, params = row_of(node, self.table)
        if row.vjp is None:
            raise refusal(node, row.no_derivative or "it has no derivative")
        check_inputs(node, row, [v.name in on_the_way for v in node.inputs])
        self.builder.loc = node.loc
        try:
            found = row.vjp(self.ops, cotangents, node.inputs, node.outputs, **params)
        except TypeError as error:
            raise refusal(node, str(error)) from error
        for var, cotangent in zip(node.inputs, found, strict=True):
            if cotangent is not None and var.name in on_the_way:
                self._add(var, cotangent)

    def _add(self, var: Var, cotangent: Var) -> None:
        known = self.cotangents.get(var.name)
        self.cotangents[var.name] = cotangent if known is None else self.ops.add(known, cotangent)

    def _gradient(self, var: Var) -> Var:
        found = self.cotangents.get(var.name)
        if found is None:
            return zeros(self.ops, var)
        # a cotangent that is an input, or is given twice, goes out as a value of its own
        made: Var = self.ops.copy(found)
        return made


def row_of(node: Node, table: Table) -> tuple[OpDef, dict[str, Any]]:
    """The row that says a node's derivatives, and their parameters: that of ``sin`` for ``math.sin``."""
    callee = node.kwargs.get("callee")
    named = _by_path().get(callee.path) if callee is not None and callee.path else None
    if named is None or named.scalar is None or named.scalar.arity != len(node.inputs):
        return table[node.op], node.kwargs
    return named, {}


def check_inputs(node: Node, row: OpDef, varies: Sequence[bool]) -> None:
    """Raise :class:`NotDifferentiableError` if there is no derivative by an input that varies."""
    for position, reason in row.no_derivative_by.items():
        if varies[position]:
            raise refusal(node, f"by argument {position}: {reason}")


@functools.cache
def _by_path() -> Mapping[str, OpDef]:
    return {path: row for row in TABLE.values() for path in row.names}


def refusal(node: Node, reason: str) -> NotDifferentiableError:
    """What says that a node has no derivative."""
    place = "" if node.loc is None else f" at {node.loc}"
    callee = node.kwargs.get("callee")
    name = node.op if callee is None else callee.path or callee.name
    return NotDifferentiableError(f"{name}{place} cannot be differentiated: {reason}")
