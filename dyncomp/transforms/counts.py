"""What a graph computes: operations, floating-point operations and bytes, by node, by op and by line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..dataclass import dataclass
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, OpTable, Var
from ..graph.passes.decompose import decompose
from ..prims.opdef import Contract, Convolve, Pointwise, Reduce, Scan, View
from ..symbolic.integers import Dim, hint
from ..tracing.function import GraphFunction


@dataclass(frozen=True)
class NodeCost:
    """One node: ``flops`` are operations on elements (a multiplication and an addition are two; a function
    such as ``exp`` counts as one), ``product_flops`` those of them in matrix products and convolutions;
    ``bytes`` is what it reads and writes, if every node ran for itself. ``line``: its place in the
    program."""

    name: str
    op: str
    line: str
    dtype: str
    shape: tuple[Dim, ...]
    flops: int
    product_flops: int
    bytes: int


@dataclass(frozen=True)
class Counts:
    """The nodes of a graph with what they cost. ``str()`` is a table by op."""

    nodes: tuple[NodeCost, ...]

    @property
    def flops(self) -> int:
        """Of the whole graph."""
        return sum(node.flops for node in self.nodes)

    @property
    def product_flops(self) -> int:
        """Of matrix products and convolutions alone, as ``torch.utils.flop_counter`` counts."""
        return sum(node.product_flops for node in self.nodes)

    @property
    def bytes(self) -> int:
        """What all nodes read and write together, each for itself. Compiled code fuses most of it away."""
        return sum(node.bytes for node in self.nodes)

    def by_op(self) -> dict[str, int]:
        """How many nodes there are of each op, the most frequent first."""
        return _counted(node.op for node in self.nodes)

    def by_line(self) -> dict[str, int]:
        """How many nodes come from each line of the program (``"net.py:7"``), in order."""
        found: dict[str, int] = {}
        for node in self.nodes:
            found[node.line] = found.get(node.line, 0) + 1
        return found

    def table(self, by: str = "op") -> str:
        """Text: a row for each ``"op"``, ``"line"`` or ``"node"``, with its part of the whole."""
        keys: dict[str, Callable[[NodeCost], str]] = {
            "op": lambda node: node.op,
            "line": lambda node: node.line or "(unknown)",
            "node": lambda node: f"{node.name} = {node.op}: {node.dtype}{list(node.shape)}  {node.line}",
        }
        if by not in keys:
            raise ValueError(f"by={by!r}: one of {', '.join(map(repr, keys))}")
        groups: dict[str, list[NodeCost]] = {}
        for node in self.nodes:
            groups.setdefault(keys[by](node), []).append(node)
        rows = [(name, *_sums(nodes)) for name, nodes in groups.items()]
        if by == "op":
            rows.sort(key=lambda row: -row[2])
        rows.append(("all", *_sums(self.nodes)))
        return _text((by, "nodes", "flops", "bytes"), rows)

    def __str__(self) -> str:
        return self.table()


def count(function: GraphFunction) -> Counts:
    """What the nodes of a graph compute. Symbolic sizes count as they were at capture."""
    table = function.table
    return Counts(tuple(_cost(node, function.graph, table) for node in function.graph.nodes))


def _counted(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _sums(nodes: Sequence[NodeCost]) -> tuple[int, int, int]:
    return len(nodes), sum(n.flops for n in nodes), sum(n.bytes for n in nodes)


def _text(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = [list(head)] + [[str(row[0]), *(f"{number:,}" for number in row[1:])] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def _cost(node: Node, graph: Graph, table: OpTable) -> NodeCost:
    flops, products = _flops(node, graph, table)
    row: Any = table[node.op]
    moved = 0 if isinstance(row.lower, View) else sum(map(_read, node.inputs)) + sum(map(_held, node.outputs))
    out = node.outputs[0]
    line = "" if node.loc is None else str(node.loc)
    return NodeCost(out.name, node.op, line, out.dtype.name, out.shape, flops, products, moved)


def _flops(node: Node, graph: Graph, table: OpTable) -> tuple[int, int]:
    """All operations, and those in products."""
    row: Any = table[node.op]
    if row.decomp is not None:
        return _of_parts(node, graph, table)
    kind = row.lower
    made = sum(_size(var) for var in node.outputs)
    if isinstance(kind, Contract):
        (x, _), (dims, _) = node.inputs, node.kwargs["contract"]
        found = 2 * made * math.prod(hint(x.shape[axis]) for axis in dims)
        return found, found
    if isinstance(kind, Convolve) or _is_transposed(node):
        found = 2 * _convolved(node)
        return found, found
    if row.free:
        return 0, 0
    if isinstance(kind, Pointwise):
        return (made, 0) if node.inputs else (0, 0)
    if isinstance(kind, (Reduce, Scan)):
        return _size(node.inputs[0]), 0
    return 0, 0


def _convolved(node: Node) -> int:
    """Multiplications of a convolution."""
    x, w = node.inputs[:2]
    kernel = math.prod(hint(size) for size in w.shape[1:])
    return _size(x if _is_transposed(node) else node.out) * kernel


def _is_transposed(node: Node) -> bool:
    """Whether it is a transposed convolution, of which every element of the input meets one kernel."""
    return "output_padding" in node.kwargs


def _of_parts(node: Node, graph: Graph, table: OpTable) -> tuple[int, int]:
    """Of a composite: of the prims that it is."""
    inputs = {var.name: GraphInput(var) for var in node.inputs}
    outputs = tuple(GraphOutput(var) for var in node.outputs)
    alone = replace(graph, inputs=tuple(inputs.values()), nodes=(node,), outputs=outputs, mutations=())
    parts = [_flops(part, graph, table) for part in decompose(alone, table).nodes]
    return sum(flops for flops, _ in parts), sum(products for _, products in parts)


def _size(var: Var) -> int:
    return math.prod(hint(size) for size in var.shape)


def _held(var: Var) -> int:
    return _size(var) * var.dtype.itemsize


def _read(var: Var) -> int:
    """Bytes of an operand: elements that a broadcast repeats count once."""
    sizes = [hint(n) for n, step in zip(var.shape, var.type.strides) if hint(step) != 0]
    return math.prod(sizes) * var.dtype.itemsize
