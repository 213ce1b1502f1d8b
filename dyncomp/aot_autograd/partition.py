"""The cut of a joint graph into a forward and a backward graph.

The backward graph starts from *saved* values: inputs of the call and values that the forward graph gives as
further outputs. What lies between them and the gradients is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..dataclass import dataclass
from ..dtypes import int64
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, SymbolBinding, Var
from ..graph.passes.dce import may_raise
from ..graph.rewrite import Rebuilder
from ..symbolic.integers import SymInt
from .joint import Joint, Table


@dataclass(frozen=True)
class Saved:
    """Where an input of the backward graph comes from: ``kind`` ``"input"``: input number ``index`` of the
    call, ``"output"``: output number ``index`` of the forward graph (hidden ones count; it is not hidden
    itself)."""

    kind: str
    index: int


@dataclass(frozen=True)
class Halves:
    """A joint graph, cut.

    ``forward``: inputs and symbols of the original; its outputs and mutations, then the saved values that
    are neither inputs nor outputs of it. A hidden output that is saved is not hidden any more: visible
    outputs are those of the original, in order, and then more. ``backward``: the saved values in the order
    of ``saved``, then a cotangent for each of ``Joint.outputs``; a gradient for each of ``Joint.wrt``.
    ``integers``: what ``backward`` takes as integers after its inputs: ``"int"``, ``"dim"`` and
    ``"stride"`` are of the call of the original (see :class:`~dyncomp.graph.ir.SymbolBinding`),
    ``"output"`` is output number ``index`` of ``forward``, a Python int.
    """

    forward: Graph
    backward: Graph
    saved: tuple[Saved, ...]
    integers: tuple[SymbolBinding, ...]


def partition(joint: Joint, table: Table, *, memory_budget: float | None = None) -> Halves:
    """Cut a joint graph whose cotangents are inputs (not ``ones``)."""
    graph = joint.graph
    count = len(graph.inputs) - len(joint.outputs)
    if any(not i.label.startswith("cotangent") for i in graph.inputs[count:]):
        raise ValueError("the cotangents of a joint graph that is cut are its last inputs")
    given = {inp.var.name for inp in graph.inputs[:count]}
    return _Cut(joint, table, given).run()


class _Cut:
    """Makes the halves. ``saved``: names of the values that the backward graph may start from."""

    def __init__(self, joint: Joint, table: Table, saved: Iterable[str]) -> None:
        self.joint = joint
        self.graph = joint.graph
        self.table = table
        self.may_save = frozenset(saved)
        self.inputs = self.graph.inputs[: len(self.graph.inputs) - len(joint.outputs)]
        self.cotangents = self.graph.inputs[len(self.inputs) :]
        ends = len(self.graph.outputs) - len(joint.wrt)
        self.outputs, self.gradients = self.graph.outputs[:ends], self.graph.outputs[ends:]
        self.builder = Rebuilder(self.graph, table)  # for what the forward graph gives besides
        self.forward = list(self.outputs)
        self.integers: list[SymbolBinding] = []

    def run(self) -> Halves:
        nodes, read = self._backward()
        kept = [v for v in self._in_order() if v.name in read]
        saved = tuple(map(self._place, kept))
        inputs = (*map(self._input, kept, saved), *self.cotangents)
        symbols = tuple(self._symbols(inputs, nodes))
        backward = replace(
            self.graph,
            name=f"{self.graph.name}_backward",
            inputs=inputs,
            symbols=symbols,
            nodes=nodes,
            outputs=self.gradients,
            mutations=(),
        )
        return Halves(self._forward(), backward, saved, tuple(self.integers))

    def _in_order(self) -> Iterable[Var]:
        yield from (inp.var for inp in self.inputs)
        for node in self.graph.nodes:
            yield from node.outputs

    def _backward(self) -> tuple[tuple[Node, ...], set[str]]:
        """The nodes between what may be saved and the gradients, and the saved values that they read."""
        given = {inp.var.name for inp in self.cotangents}
        wanted = {out.var.name for out in self.gradients}
        nodes: list[Node] = []
        for node in reversed(self.graph.nodes):
            if any(v.name in wanted and v.name not in self.may_save for v in node.outputs):
                nodes.append(node)
                wanted.update(v.name for v in node.inputs)
        made = {v.name for node in nodes for v in node.outputs}
        nodes.reverse()
        return tuple(nodes), wanted - made - given

    def _place(self, var: Var) -> Saved:
        """Where a saved value is after the call of the forward graph, which gives it if need be."""
        written = {index for index, _ in self.graph.mutations}
        for index, inp in enumerate(self.inputs):
            if inp.var.name == var.name and index not in written:
                return Saved("input", index)
        for index, out in enumerate(self.forward):
            if out.var.name == var.name and out.kind in ("array", "scalar") and out.view is None:
                self.forward[index] = replace(out, hidden=False)
                return Saved("output", index)
        self.forward.append(GraphOutput(var))
        return Saved("output", len(self.forward) - 1)

    def _input(self, var: Var, place: Saved) -> GraphInput:
        if place.kind == "input":
            return self.inputs[place.index]
        return GraphInput(var, self.forward[place.index].kind, f"saved {var.name}")

    def _symbols(self, inputs: tuple[GraphInput, ...], nodes: tuple[Node, ...]) -> Iterable[SymbolBinding]:
        """Where the backward graph has its symbols from: sizes of its inputs, else integers."""
        found: set[str] = set()
        for inp in inputs:
            _collect((inp.var.shape, inp.var.type.strides), found)
        for node in nodes:
            _collect([value for _, value in node.params], found)
            _collect([(v.shape, v.type.strides) for v in node.outputs], found)
        defined: set[str] = set()
        for node in nodes:
            if self.table[node.op].defines:
                _collect([value for _, value in node.params], defined)
        sizes: dict[str, SymbolBinding] = {}
        for number, inp in enumerate(inputs):
            for axis, dim in enumerate(inp.var.shape):
                if isinstance(dim, SymInt) and dim.same(dim.env.symbol(str(dim))):
                    sizes.setdefault(str(dim), SymbolBinding(str(dim), "dim", number, axis))
        for binding in self.graph.symbols:
            if binding.name not in found:
                continue
            if binding.name in sizes:
                yield sizes[binding.name]
            elif binding.kind == "node" and binding.name in defined:
                yield binding
            else:
                self.integers.append(self._integer(binding))
                yield SymbolBinding(binding.name, "int", len(self.integers) - 1)

    def _integer(self, binding: SymbolBinding) -> SymbolBinding:
        if binding.kind != "node":
            return binding
        number: Var = self.builder.emit("symint", expr=self.graph.env.symbol(binding.name), dtype=int64)
        self.forward.append(GraphOutput(number, "python"))
        return SymbolBinding(binding.name, "output", len(self.forward) - 1)

    def _forward(self) -> Graph:
        """The forward graph: what the outputs need, and what may raise."""
        live = {out.var.name for out in self.forward} | {v.name for _, v in self.graph.mutations}
        nodes: list[Node] = []
        for number, node in reversed(list(enumerate(self.graph.nodes))):
            raises = number < self.joint.nodes and may_raise(node, self.table)
            if raises or any(v.name in live for v in node.outputs):
                nodes.append(node)
                live.update(v.name for v in node.inputs)
        kept = (*reversed(nodes), *self.builder.nodes)
        return replace(self.graph, inputs=self.inputs, nodes=kept, outputs=tuple(self.forward))


def _collect(value: object, found: set[str]) -> None:
    """Add the names of symbols in ``value``."""
    if isinstance(value, SymInt):
        found |= value.symbols()
    elif isinstance(value, (tuple, list)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        _collect(tuple(value.values()), found)
