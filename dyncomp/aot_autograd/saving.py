"""Which values a forward graph saves for its backward graph: a minimum cut.

Of each value it is decided whether the backward graph has it, of each node whether it runs there again.
What this costs is time, reckoned in bytes moved: a saved value is written (its memory is read before) and
read again; ``OPERATIONS`` scalar operations take as long as moving a number; a node that no loop takes in
reads its operands from memory and writes its result. Inputs and outputs are held anyway.

The network has a node for each value (is it *had*?) and one for each node of the graph (does it *run*
again?), on the side of the sinks if so. A node that runs has its inputs: arcs without limit. A value that is
had though its node does not run is saved: an arc with what that costs. To run again costs the supply.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ..dataclass import dataclass
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, Var
from ..graph.passes.dce import may_raise
from ..prims.opdef import Contract, Convolve, OpDef, Pointwise, Reduce
from ..symbolic.integers import hint
from .min_cut import Network

Table = Mapping[str, OpDef]

OPERATIONS = 32  # scalar operations that take as long as moving a number to or from memory
MOVES = 3  # of a value that is written and read again
EACH = 1024  # bytes that could be moved while an array is made and handed over
LIBRARY = 64  # operations of a library's routine for each number of its operands
_INFINITE = 1 << 62
_HEAVIEST = 32  # the logarithm of a weight of bytes that outweighs whatever can be computed again


@dataclass(frozen=True)
class Sides:
    """A joint graph, taken apart: ``inputs`` and ``outputs`` of the original, ``cotangents``, ``gradients``;
    numbers of the nodes that the original runs (``forward``), and of those that depend on cotangents
    (``late``). ``held``: values that the caller has after the forward graph and keeps as they are. ``once``:
    values whose nodes must not run again."""

    graph: Graph
    inputs: tuple[GraphInput, ...]
    cotangents: tuple[GraphInput, ...]
    outputs: tuple[GraphOutput, ...]
    gradients: tuple[GraphOutput, ...]
    forward: frozenset[int]
    late: frozenset[int]
    held: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()


def is_whole(out: GraphOutput) -> bool:
    """Whether an output is its value as an array or scalar."""
    return out.view is None and out.kind in ("array", "scalar")


def take_apart(
    graph: Graph, table: Table, cotangents: int, gradients: int, original: frozenset[str]
) -> Sides:
    """``original``: names of the values of the original graph: what may raise there runs in any case."""
    first, ends = len(graph.inputs) - cotangents, len(graph.outputs) - gradients
    live = {out.var.name for out in graph.outputs[:ends]} | {var.name for _, var in graph.mutations}
    forward: set[int] = set()
    for number, node in reversed(list(enumerate(graph.nodes))):
        raises = may_raise(node, table) and node.outputs[0].name in original
        if raises or any(v.name in live for v in node.outputs):
            forward.add(number)
            live.update(v.name for v in node.inputs)
    reached = {inp.var.name for inp in graph.inputs[first:]}
    late: set[int] = set()
    for number, node in enumerate(graph.nodes):
        if any(v.name in reached for v in node.inputs):
            late.add(number)
            reached.update(v.name for v in node.outputs)
    inputs, outputs = graph.inputs, graph.outputs
    parts = inputs[:first], inputs[first:], outputs[:ends], outputs[ends:]
    return Sides(graph, *parts, frozenset(forward), frozenset(late))


def held(sides: Sides, written: Iterable[int] = ()) -> frozenset[str]:
    """Inputs that are not written to (the graph's mutations and the inputs ``written``), and outputs."""
    lost = {index for index, _ in sides.graph.mutations}.union(written)
    found = {inp.var.name for index, inp in enumerate(sides.inputs) if index not in lost}
    return frozenset(found | {out.var.name for out in sides.outputs if is_whole(out)})


def read_by_rules(sides: Sides, table: Table) -> frozenset[str]:
    """Values that derivatives are written in, and what those are views of."""
    viewed: dict[str, str] = {}
    found: set[str] = set()
    for number, node in enumerate(sides.graph.nodes):
        if table[node.op].is_view:
            viewed[node.out.name] = node.inputs[0].name
        elif number not in sides.forward:
            found.update(v.name for v in node.inputs)
    for name in [*found]:
        while name in viewed:
            name = viewed[name]
            found.add(name)
    return frozenset(found)


def reductions_compared(graph: Graph, table: Table) -> frozenset[str]:
    """Reductions that are compared for equality with what they are of, as the rule of a maximum does. They
    are computed again where that is: what another kernel computes again may differ in the last bit, and would
    be equal to nothing."""
    makers = {v.name: node for node in graph.nodes for v in node.outputs}

    def base(name: str) -> str:
        while name in makers and table[makers[name].op].is_view:
            name = makers[name].inputs[0].name
        return name

    found: set[str] = set()
    for node in graph.nodes:
        if node.op != "equal":
            continue
        first, second = (base(v.name) for v in node.inputs)
        for value, reduced in ((first, second), (second, first)):
            maker = makers.get(reduced)
            is_reduction = maker is not None and isinstance(table[maker.op].lower, Reduce)
            if is_reduction and maker is not None and base(maker.inputs[0].name) == value:
                found.add(reduced)
    return frozenset(found)


def bytes_of(var: Var) -> int:
    """What a value takes (symbolic sizes are as at capture)."""
    return hint(var.type.size) * var.dtype.itemsize


def choose(sides: Sides, table: Table, memory_budget: float | None = None) -> frozenset[str]:
    """Names of the values to save, inputs among them. See :func:`~.partition.partition`."""
    choice = Choice(sides, table)
    free = choice.saved(0)
    if memory_budget is None:
        return free
    limit = memory_budget * choice.bytes(free) if memory_budget <= 1 else memory_budget
    if choice.bytes(free) <= limit:
        return free
    light, heavy = -1.0, float(_HEAVIEST)
    fits, more = choice.saved(1 << _HEAVIEST), free
    for _ in range(10):  # the lightest weight of bytes at which they fit
        middle = (light + heavy) / 2
        tried = choice.saved(int(2**middle))
        if choice.bytes(tried) <= limit:
            fits, heavy = tried, middle
        else:
            more, light = tried, middle
    return choice.filled(fits, more, limit)


class Choice:
    """The network of one joint graph."""

    def __init__(self, sides: Sides, table: Table) -> None:
        self.sides = sides
        self.table = table
        self.held = sides.held
        self.steps = 0  # of the solver so far
        self.compared = reductions_compared(sides.graph, table)
        wanted, self.nodes = self._wanted()
        inputs = {inp.var.name: inp.var for inp in sides.inputs}
        read = {v.name for node, _ in self.nodes for v in node.inputs} | wanted
        self.inputs = [var for name, var in inputs.items() if name in read]
        made = [v for node, _ in self.nodes for v in node.outputs]
        self.values = {v.name: v for v in (*self.inputs, *made)}
        self.wanted = wanted & self.values.keys()

    def _wanted(self) -> tuple[set[str], list[tuple[Node, bool]]]:
        """Values that what depends on cotangents reads, and gradients that depend on none; nodes that lead to
        those, and whether the original runs them."""
        sides = self.sides
        wanted = {out.var.name for out in sides.gradients}
        live = set(wanted)
        nodes: list[tuple[Node, bool]] = []
        for number, node in reversed(list(enumerate(sides.graph.nodes))):
            if any(v.name in live for v in node.outputs):
                live.update(v.name for v in node.inputs)
                if number in sides.late:
                    wanted.update(v.name for v in node.inputs)
                else:
                    nodes.append((node, number in sides.forward))
        nodes.reverse()
        return wanted, nodes

    def saved(self, weight: int) -> frozenset[str]:
        """What the minimum cut saves where a byte of it costs ``weight`` more."""
        count = len(self.values)
        had = {name: place for place, name in enumerate(self.values)}
        network = Network(count + len(self.nodes))
        for var in self.inputs:
            network.add_supply(had[var.name], self._to_save(var, weight))
        for run, (node, forward) in enumerate(self.nodes, count):
            view = self.table[node.op].is_view
            network.add_supply(run, self._to_run(node) if forward else 0)
            for var in node.inputs:
                network.add_arc(had[var.name], run, _INFINITE)
            for var in node.outputs:
                savable = forward and not view and var.name not in self.compared
                network.add_arc(run, had[var.name], self._to_save(var, weight) if savable else _INFINITE)
        for name in self.wanted:
            network.add_sink(had[name])
        sides = network.cut()
        self.steps += network.steps
        runs = {v.name for run, (node, _) in enumerate(self.nodes, count) if sides[run] for v in node.outputs}
        return frozenset(name for name, place in had.items() if sides[place] and name not in runs)

    def bytes(self, saved: frozenset[str]) -> int:
        """What values take that are saved besides those that the caller has."""
        return sum(bytes_of(self.values[name]) for name in saved - self.held)

    def filled(self, fits: frozenset[str], more: frozenset[str], limit: float) -> frozenset[str]:
        """``fits``, and of ``more`` as much as there is room for, from the beginning of the program."""
        room = limit - self.bytes(fits)
        found = set(fits)
        for name, var in self.values.items():
            if name in more and name not in found and bytes_of(var) <= room:
                found.add(name)
                room -= bytes_of(var)
        return frozenset(found)

    def _to_save(self, var: Var, weight: int) -> int:
        if var.name in self.held:
            return 1
        return OPERATIONS * (MOVES * bytes_of(var) + EACH) + weight * bytes_of(var)

    def _to_run(self, node: Node) -> int:
        """In ``1/OPERATIONS`` bytes."""
        row = self.table[node.op]
        if row.is_view or row.never_saved or not node.inputs:
            return 0
        again = row.is_repeatable and node.outputs[0].name not in self.sides.once
        if not again or row.defines or row.is_marker:
            return _INFINITE
        results = sum(map(bytes_of, node.outputs))
        if isinstance(row.lower, Pointwise):
            return results * (1 if row.scalar is None else row.scalar.cost)
        read = sum(map(bytes_of, node.inputs))
        moved = OPERATIONS * (read + MOVES * results + EACH)
        if isinstance(row.lower, (Contract, Convolve)):
            # n*k by k*m gives n*m numbers in n*k*m operations: the root of their product
            work = math.isqrt(math.prod(hint(v.type.size) for v in (*node.inputs[:2], node.outputs[0])))
            return moved + work * node.outputs[0].dtype.itemsize
        return moved + read * (LIBRARY if row.is_extern else 1)
