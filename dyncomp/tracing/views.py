"""Nodes and values of a graph as users see them, with their producers and users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..dtypes import DType
from ..graph.ir import ArrayType, Graph, GraphInput, Node, Var
from ..graph.text import print_node
from ..symbolic.integers import Dim
from .normal import place_of


class Index:
    """Who makes and who reads each value of a graph. ``constants``: names of constants by input."""

    def __init__(self, graph: Graph, constants: Mapping[str, str]) -> None:
        self.graph = graph
        self.constants = dict(constants)
        self.vars = {var.name: var for var in graph.values()}
        self.inputs = {inp.var.name: inp for inp in graph.inputs}
        self.producers: dict[str, Node] = {}
        self.users: dict[str, list[Node]] = {name: [] for name in self.vars}
        for node in graph.nodes:
            for var in node.outputs:
                self.producers[var.name] = node
            for name in dict.fromkeys(var.name for var in node.inputs):
                self.users[name].append(node)
        self.returned = {out.var.name for out in graph.outputs} | {var.name for _, var in graph.mutations}


class GraphValue:
    """A value of a graph: an input, a constant, or a result of a node."""

    __slots__ = ("_index", "_var")

    def __init__(self, index: Index, var: Var) -> None:
        self._index = index
        self._var = var

    @property
    def name(self) -> str:
        return self._var.name

    @property
    def type(self) -> ArrayType:
        return self._var.type

    @property
    def dtype(self) -> DType:
        return self._var.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self._var.shape

    @property
    def producer(self) -> GraphNode | None:
        """The node that makes it; ``None`` for inputs and constants."""
        node = self._index.producers.get(self.name)
        return None if node is None else GraphNode(self._index, node)

    @property
    def users(self) -> tuple[GraphNode, ...]:
        """The nodes that read it."""
        return tuple(GraphNode(self._index, node) for node in self._index.users[self.name])

    @property
    def constant(self) -> str:
        """The name of the constant that it is; empty for other values."""
        return self._index.constants.get(self.name, "")

    @property
    def is_input(self) -> bool:
        """Whether it is an argument of the function."""
        return self.name in self._index.inputs and not self.constant

    @property
    def is_returned(self) -> bool:
        """Whether it is among the results, or written into an argument."""
        return self.name in self._index.returned

    @property
    def label(self) -> str:
        """The program's name of an input: ``"args[0]"``."""
        inp: GraphInput | None = self._index.inputs.get(self.name)
        return "" if inp is None else inp.label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphValue) and self._var is other._var

    def __hash__(self) -> int:
        return id(self._var)

    def __repr__(self) -> str:
        return f"<value {self.name}: {self.type}>"


class GraphNode:
    """One operation: ``outputs = op(*inputs, **params)``."""

    __slots__ = ("_index", "_node")

    def __init__(self, index: Index, node: Node) -> None:
        self._index = index
        self._node = node

    @property
    def op(self) -> str:
        """The name of its row in the table of ops (docs/prims.md)."""
        return self._node.op

    @property
    def name(self) -> str:
        """The name of its (first) result, by which editors find it."""
        return self._node.outputs[0].name

    @property
    def inputs(self) -> tuple[GraphValue, ...]:
        return tuple(GraphValue(self._index, var) for var in self._node.inputs)

    @property
    def outputs(self) -> tuple[GraphValue, ...]:
        return tuple(GraphValue(self._index, var) for var in self._node.outputs)

    @property
    def output(self) -> GraphValue:
        """Its only result."""
        return GraphValue(self._index, self._node.out)

    @property
    def params(self) -> dict[str, Any]:
        """What it is given besides arrays: ``{"axes": (1,)}``."""
        return self._node.kwargs

    @property
    def dtype(self) -> DType:
        return self._node.outputs[0].dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self._node.outputs[0].shape

    @property
    def producers(self) -> tuple[GraphNode, ...]:
        """The nodes that make its inputs, without inputs and constants of the graph."""
        found = dict.fromkeys(value.producer for value in self.inputs)
        return tuple(node for node in found if node is not None)

    @property
    def users(self) -> tuple[GraphNode, ...]:
        """The nodes that read its results."""
        return tuple(dict.fromkeys(node for value in self.outputs for node in value.users))

    @property
    def file(self) -> str:
        """The program's file; empty where it is unknown."""
        return "" if self._node.loc is None else self._node.loc.file

    @property
    def line(self) -> int:
        """The program's line; 0 where it is unknown."""
        return 0 if self._node.loc is None else self._node.loc.line

    @property
    def function(self) -> str:
        """The name of the program's function."""
        return "" if self._node.loc is None else self._node.loc.function

    @property
    def place(self) -> str:
        """``relu (v3) at net.py:7 in forward``."""
        return place_of(self._node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphNode) and self._node is other._node

    def __hash__(self) -> int:
        return id(self._node)

    def __repr__(self) -> str:
        return f"<node {print_node(self._node)}>"


class Nodes:
    """The nodes of a graph in the order in which they run: a sequence, also by name."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __len__(self) -> int:
        return len(self._index.graph.nodes)

    def __iter__(self) -> Iterator[GraphNode]:
        for node in self._index.graph.nodes:
            yield GraphNode(self._index, node)

    def __getitem__(self, key: int | str) -> GraphNode:
        """By position, or by the name of a result. Raises ``IndexError`` or ``KeyError``."""
        if isinstance(key, str):
            return GraphNode(self._index, self._index.producers[key])
        return GraphNode(self._index, self._index.graph.nodes[key])

    def find(self, op: str) -> list[GraphNode]:
        """Those of one op."""
        return [node for node in self if node.op == op]

    def __repr__(self) -> str:
        return f"<{len(self)} nodes>"
