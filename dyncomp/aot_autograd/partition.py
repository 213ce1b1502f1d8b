"""The cut of a joint graph into a forward and a backward graph.

The backward graph starts from *saved* values: inputs of the call and values that the forward graph gives.
What lies between them and the gradients is computed again, just before it is needed. Which values these are
says ``saving.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..dataclass import dataclass
from ..dtypes import int64
from ..errors import NotDifferentiableError
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, SymbolBinding, Var
from ..graph.passes.cse import eliminate_common_subexpressions
from ..graph.passes.dce import eliminate_dead_code
from ..graph.passes.decompose import decompose
from ..graph.passes.factors import share_factors
from ..graph.passes.rewrite_rules import simplify
from ..graph.rewrite import Rebuilder
from ..prims.markers import FUNCTION
from ..symbolic.integers import SymInt
from .expand import without_markers
from .joint import Joint, Table
from .saving import Sides, bytes_of, choose, held, is_whole, read_by_rules, take_apart


@dataclass(frozen=True)
class Saved:
    """Where an input of the backward graph comes from. ``kind`` ``"input"``: it is input number ``index`` of
    the call; ``"output"``: output number ``index`` of the forward graph (hidden ones count; this one is not
    hidden)."""

    kind: str
    index: int


@dataclass(frozen=True)
class Halves:
    """A joint graph, cut.

    ``forward``: inputs and symbols of the original; its outputs and mutations, then the saved values that
    are neither inputs nor outputs of it. A hidden output that is saved is not hidden any more, so that the
    visible outputs are those of the original and then more. ``backward``: takes the saved values in the order
    of ``saved``, a cotangent for each of ``Joint.outputs`` in C order, and ``integers``; gives a gradient for
    each of ``Joint.wrt``. Saved values come as they are, with the strides that they have.

    ``integers``: where the sizes come from that no dimension of a backward input tells: ``"int"``, ``"dim"``
    and ``"stride"`` are of the original's call (see :class:`~dyncomp.graph.ir.SymbolBinding`), ``"output"``
    is output number ``index`` of ``forward``, a Python int.

    ``rewritten``: inputs of the original that the backward graph writes to; they are inputs behind its
    cotangents.
    """

    forward: Graph
    backward: Graph
    saved: tuple[Saved, ...]
    integers: tuple[SymbolBinding, ...]
    rewritten: tuple[int, ...] = ()

    @property
    def more(self) -> tuple[Var, ...]:
        """The saved values that are held for the backward graph only."""
        pairs = zip(self.saved, self.backward.inputs)
        return tuple(inp.var for place, inp in pairs if inp.label.startswith(_SAVED))

    @property
    def saved_bytes(self) -> int:
        """What :attr:`more` takes (symbolic sizes as they were at capture)."""
        return sum(map(bytes_of, self.more))

    @property
    def recomputed(self) -> tuple[Node, ...]:
        """Nodes of the forward graph that the backward graph runs again."""
        known = {v.name for node in self.forward.nodes for v in node.outputs}
        return tuple(node for node in self.backward.nodes if node.outputs[0].name in known)

    def describe(self) -> str:
        """What is saved, a line each with type, bytes, op and place of the program, and what is run again."""
        makers = {v.name: node for node in self.forward.nodes for v in node.outputs}
        lines = [f"{'saved':<34}{self.saved_bytes:>14,} bytes"]
        for var in self.more:
            node = makers.get(var.name)
            origin = "an input that is written" if node is None else node.op
            place = "" if node is None or node.loc is None else f"  {node.loc}"
            lines.append(f"  {var.type!s:<32}{bytes_of(var):>14,}  {origin}{place}")
        held = len(self.saved) - len(self.more)
        lines.append(f"{held} inputs and outputs are used as they are")
        lines.append(f"{len(self.recomputed)} of {len(self.backward.nodes)} backward nodes run again")
        return "\n".join(lines)


_SAVED = "saved "


def partition(
    joint: Joint,
    table: Table,
    *,
    memory_budget: float | None = None,
    seen: bool = False,
    written: Iterable[int] = (),
    saved: Sequence[Saved] | None = None,
) -> Halves:
    """Cut a joint graph whose cotangents are inputs (made without ``ones``; else ``ValueError``).

    The forward graph computes what the original does and nothing else. Views are never saved, but what they
    are views of; nor is what nothing needs. What may give another result a second time is always saved.

    ``memory_budget``: how many bytes the saved values may take that are neither inputs nor outputs, or (up to
    1) which part of what they would take; sizes as they were at capture. More is computed again then,
    products and library routines too. Only what must not run twice is saved beyond the budget. It does not
    bound what the backward graph allocates when it runs.

    ``seen``: the program may write to inputs and outputs before the backward graph runs. Of these, only what
    derivatives are written in is saved as it is: what other implementations save, too. ``written``: inputs
    that will be written to in any case. ``saved``: the backward graph starts from these values;
    ``NotDifferentiableError`` where they are not enough.
    """
    graph = joint.graph
    cotangents = len(joint.outputs) + len(joint.rewritten)
    first = len(graph.inputs) - cotangents
    ends = len(graph.inputs) - len(joint.rewritten)
    if any(not inp.label.startswith("cotangent of") for inp in graph.inputs[first:ends]):
        raise ValueError("a joint graph that is cut takes its cotangents as inputs")
    original = frozenset(v.name for node in graph.nodes[: joint.nodes] for v in node.outputs)
    # the halves may be differentiated in turn
    graph = without_markers(_without_gradients(graph, joint.nodes), (FUNCTION,))
    graph = simplify(decompose(graph, table), table, keeps_derivatives=True)
    for tidy in (eliminate_common_subexpressions, share_factors, eliminate_dead_code):
        graph = tidy(graph, table)
    sides = take_apart(graph, table, cotangents, len(joint.wrt) + len(joint.rewritten), original)
    if saved is not None:
        places = {_at(sides, place).name: place for place in saved}
        return _writing(_Cut(sides, table, frozenset(places), places).run(), joint.rewritten)
    kept = held(sides, written)
    sides = replace(sides, held=kept & read_by_rules(sides, table) if seen else kept)
    return _writing(_Cut(sides, table, choose(sides, table, memory_budget)).run(), joint.rewritten)


def _writing(halves: Halves, rewritten: tuple[int, ...]) -> Halves:
    """What the backward graph gives behind the gradients it writes to its last inputs."""
    graph = halves.backward
    ends = len(graph.outputs) - len(rewritten)
    first = len(graph.inputs) - len(rewritten)
    mutations = tuple((k, out.var) for k, out in enumerate(graph.outputs[ends:], first))
    backward = replace(graph, outputs=graph.outputs[:ends], mutations=mutations)
    return replace(halves, backward=backward, rewritten=rewritten)


def _without_gradients(graph: Graph, count: int) -> Graph:
    """Of the first ``count`` nodes functions with a backward of their own are names of what they give, which
    are saved: a second derivative asks the original for the derivative of that."""

    def reduced(node: Node) -> Node:
        return replace(node, inputs=node.inputs[: len(node.outputs)]) if node.op == FUNCTION else node

    return replace(graph, nodes=(*map(reduced, graph.nodes[:count]), *graph.nodes[count:]))


def _at(sides: Sides, place: Saved) -> Var:
    return sides.inputs[place.index].var if place.kind == "input" else sides.outputs[place.index].var


class _Cut:
    """Makes the halves. ``saved``: names of the values that the backward graph may start from; ``places``:
    where they are."""

    def __init__(
        self, sides: Sides, table: Table, saved: frozenset[str], places: Mapping[str, Saved] | None = None
    ) -> None:
        self.sides = sides
        self.graph = sides.graph
        self.table = table
        self.may_save = saved
        self.places = {} if places is None else places
        self.builder = Rebuilder(self.graph, table)  # for what the forward graph gives besides
        self.outputs = list(sides.outputs)
        self.integers: list[SymbolBinding] = []

    def run(self) -> Halves:
        nodes, read = self._backward()
        missing = [v for v in self.sides.inputs if v.var.name in read - self.may_save]
        if missing:
            raise NotDifferentiableError(f"{missing[0].label or 'an input'} was not saved")
        kept = [v for v in self.graph.values() if v.name in read]
        saved = tuple(map(self._place, kept))
        inputs = (*map(self._input, kept, saved), *self.sides.cotangents)
        backward = replace(
            self.graph,
            name=f"{self.graph.name}_backward",
            inputs=inputs,
            symbols=tuple(self._symbols(inputs, nodes)),
            nodes=nodes,
            outputs=self.sides.gradients,
            mutations=(),
        )
        first = (node for number, node in enumerate(self.graph.nodes) if number in self.sides.forward)
        forward = replace(
            self.graph,
            inputs=self.sides.inputs,
            nodes=(*first, *self.builder.nodes),
            outputs=tuple(self.outputs),
        )
        return Halves(forward, backward, saved, tuple(self.integers))

    def _backward(self) -> tuple[tuple[Node, ...], set[str]]:
        """The nodes between what may be saved and the gradients, and the saved values that they read."""
        wanted = {out.var.name for out in self.sides.gradients}
        made = {inp.var.name for inp in self.sides.cotangents}
        runs: list[int] = []
        for number, node in reversed(list(enumerate(self.graph.nodes))):
            if any(v.name in wanted and v.name not in self.may_save for v in node.outputs):
                runs.append(number)
                wanted.update(v.name for v in node.inputs)
                made.update(v.name for v in node.outputs)
        return self._in_time(reversed(runs)), wanted - made

    def _in_time(self, numbers: Iterable[int]) -> tuple[Node, ...]:
        """These nodes in order, but what does not depend on cotangents just before it is needed."""
        early: dict[str, Node] = {}
        ordered: list[Node] = []
        for number in numbers:
            node = self.graph.nodes[number]
            if number not in self.sides.late:
                early.update({v.name: node for v in node.outputs})
                continue
            ordered += _taken(early, node.inputs)
            ordered.append(node)
        ordered += _taken(early, [out.var for out in self.sides.gradients])
        return tuple(ordered)

    def _place(self, var: Var) -> Saved:
        """Where a saved value is after the call of the forward graph, which gives it if need be."""
        if var.name in self.places:
            return self.places[var.name]
        if var.name in self.sides.held:
            for index, inp in enumerate(self.sides.inputs):
                if inp.var.name == var.name:
                    return Saved("input", index)
            for index, out in enumerate(self.outputs):
                if out.var.name == var.name and is_whole(out):
                    self.outputs[index] = replace(out, hidden=False)
                    return Saved("output", index)
        self.outputs.append(GraphOutput(var))
        return Saved("output", len(self.outputs) - 1)

    def _input(self, var: Var, place: Saved) -> GraphInput:
        if place.kind == "input":
            return replace(self.sides.inputs[place.index], spare=True)
        number = place.index
        label = f"output {number}" if number < len(self.sides.outputs) else f"{_SAVED}{var.name}"
        return GraphInput(var, self.outputs[number].kind, label, spare=True)

    def _symbols(self, inputs: Sequence[GraphInput], nodes: Sequence[Node]) -> Iterator[SymbolBinding]:
        """Where the backward graph has its symbols from: sizes of its inputs, else integers."""
        found: set[str] = set()
        defined: set[str] = set()
        sizes: dict[str, SymbolBinding] = {}
        for number, inp in enumerate(inputs):
            _collect((inp.var.shape, inp.var.type.strides), found)
            for axis, dim in enumerate(inp.var.shape):
                if isinstance(dim, SymInt) and dim.same(dim.env.symbol(str(dim))):
                    sizes.setdefault(str(dim), SymbolBinding(str(dim), "dim", number, axis))
        for node in nodes:
            params = [value for _, value in node.params]
            types = [(v.shape, v.type.strides) for v in node.outputs]
            _collect([params, types], defined if self.table[node.op].defines else found)
        for binding in self.graph.symbols:
            if binding.name in sizes:
                yield sizes[binding.name]
            elif binding.kind == "node" and binding.name in defined:
                yield binding
            elif binding.name in found | defined:
                self.integers.append(self._integer(binding))
                yield SymbolBinding(binding.name, "int", len(self.integers) - 1)

    def _integer(self, binding: SymbolBinding) -> SymbolBinding:
        if binding.kind != "node":
            return binding
        symbol = self.graph.env.symbol(binding.name)
        number: Var = self.builder.emit("symint", expr=symbol, dtype=int64)
        self.outputs.append(GraphOutput(number, "python"))
        return SymbolBinding(binding.name, "output", len(self.outputs) - 1)


def _taken(makers: dict[str, Node], values: Iterable[Var]) -> list[Node]:
    """The nodes that these values need, in order; they are no longer in ``makers``."""
    found: list[Node] = []
    pending = [v.name for v in values]
    while pending:
        node = makers.get(pending[-1])
        missing = [] if node is None else [v.name for v in node.inputs if v.name in makers]
        pending += missing
        if not missing:
            pending.pop()
            if node is not None:
                found.append(node)
                for v in node.outputs:
                    del makers[v.name]
    return found


def _collect(value: object, found: set[str]) -> None:
    """Add the names of the symbols in ``value``."""
    if isinstance(value, SymInt):
        found |= value.symbols()
    elif isinstance(value, (tuple, list)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        _collect(tuple(value.values()), found)
