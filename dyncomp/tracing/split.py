"""A graph in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import GraphError
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, Var, verify
from .base import GraphBase
from .front import Front, PlainFront, inputs_in
from .views import GraphNode

G = TypeVar("G", bound=GraphBase)


def split(function: G, at: Any) -> tuple[G, ...]:
    """See ``GraphFunction.split``."""
    name, graph = function.__name__, function.graph
    if graph.symbols:
        raise GraphError(f"{name} has symbolic sizes: trace it without dynamic= to split it")
    if graph.mutations:
        written = graph.inputs[graph.mutations[0][0]]
        raise GraphError(f"{name} writes to {written.label or written.var.name}: it cannot be split")
    if any(out.view is not None for out in graph.outputs):
        raise GraphError(f"{name} returns views: it cannot be split")
    groups = _groups(function, at)
    parts: list[G] = []
    available = [value.name for value in function.inputs]
    for number, nodes in enumerate(groups[:-1]):
        later = {var.name for group in groups[number + 1 :] for node in group for var in node.inputs}
        later |= {out.var.name for out in graph.outputs} | inputs_in(function._front.tree)
        made = [var for node in nodes for var in node.outputs]
        given = {var.name: var for var in graph.values()}
        before = [given[known] for known in available]
        passed = [var for var in (*before, *made) if var.name in later]
        outputs = tuple(_output(graph, var) for var in passed if var.name not in available)
        part = _part(function, number, nodes, available, outputs, not number)
        front = part._front
        front.tree = _handed_on([var.name for var in passed], available)
        part._front = front
        parts.append(part)
        available = [var.name for var in passed]
    parts.append(_part(function, len(parts), groups[-1], available, graph.outputs, not parts))
    return tuple(parts)


def tap(function: G, values: Sequence[Any]) -> G:
    """See ``GraphFunction.tap``."""
    known = {var.name: var for var in function.graph.values()}
    names = [named if isinstance(named, str) else named.name for named in values]
    for name in names:
        if name not in known:
            raise GraphError(f"{function.__name__} has no value {name}")
    made = function.copy()
    outputs = tuple(_output(function.graph, known[name]) for name in names)
    made._front = _Beginning(function, PlainFront((), len(outputs), several=True))
    needed, nodes = set(names), []
    for node in reversed(function.graph.nodes):
        if any(var.name in needed for var in node.outputs):
            needed.update(var.name for var in node.inputs)
            nodes.append(node)
    graph = replace(function.graph, nodes=tuple(nodes[::-1]), outputs=outputs, mutations=())
    made._take(graph, {})
    return made


def _groups(function: GraphBase, at: Any) -> list[list[Node]]:
    """The nodes of each part."""
    nodes = list(function.graph.nodes)
    ends = _ends(function, at)
    if not ends:
        raise GraphError(f"{function.__name__}: nothing says where to split")
    groups: list[list[Node]] = [[]]
    for position, node in enumerate(nodes):
        groups[-1].append(node)
        if position in ends:
            groups.append([])
    if not all(groups):
        raise GraphError(f"{function.__name__}: nothing is left for the part after {nodes[-1].op}")
    return groups


def _ends(function: GraphBase, at: Any) -> set[int]:
    if callable(at) and not isinstance(at, GraphNode):
        says: Callable[[GraphNode], bool] = at
        return {position for position, node in enumerate(function.nodes) if says(node)}
    several = isinstance(at, Sequence) and not isinstance(at, str)
    found = set()
    for named in at if several else [at]:
        name = named if isinstance(named, str) else named.name
        positions = [
            position
            for position, node in enumerate(function.graph.nodes)
            if any(var.name == name for var in node.outputs)
        ]
        if not positions:
            raise GraphError(f"{function.__name__} has no node {name}")
        found.update(positions)
    return found


def _handed_on(names: Sequence[str], given: Sequence[str]) -> list[Any]:
    """The tuple of what a part computes and of the arguments that it hands on as they are."""
    tree: list[Any] = ["tuple"]
    made = 0
    for name in names:
        tree.append(["input", name] if name in given else ["output", made])
        made += name not in given
    return tree


def _output(graph: Graph, var: Var) -> GraphOutput:
    """A value that one part gives to the next, as it was given to the whole."""
    kind = next((inp.kind for inp in graph.inputs if inp.var.name == var.name), "array")
    return GraphOutput(var, kind if kind in ("array", "scalar") else "array")


def _part(
    function: G,
    number: int,
    nodes: Sequence[Node],
    given: Sequence[str],
    outputs: tuple[GraphOutput, ...],
    is_first: bool,
) -> G:
    graph = function.graph
    last = outputs is graph.outputs
    read = {var.name for node in nodes for var in node.inputs} | {out.var.name for out in outputs}
    known = {var.name: var for var in graph.values()}
    inputs = {inp.var.name: inp for inp in graph.inputs}
    constants = {
        var: (name, function.constants[name])
        for var, name in function.index.constants.items()
        if var in read or (last and var in inputs_in(function._front.tree))
    }
    takes = [inputs.get(name) or GraphInput(known[name], "array", name) for name in given]
    takes += [inputs[name] for name in constants]
    name = f"{function.__name__}_{number}"
    part = verify(
        replace(graph, name=name, inputs=tuple(takes), nodes=tuple(nodes), outputs=outputs), function.table
    )
    front = PlainFront(given, len(outputs), several=True)
    if last:
        front.tree = function._front.tree
    made = type(function)(name, part, front, constants, function.owner)
    if is_first:
        made._front = _Beginning(function, front)
        made._lifted = dict(function._lifted)
    return made


class _Beginning(Front):
    """The arguments of the whole, the results of a part."""

    def __init__(self, function: GraphBase, front: Front) -> None:
        self.whole = function._front
        self.given, self.parameters, self.tree = self.whole.given, self.whole.parameters, front.tree

    def read(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
        return self.whole.read(arguments)
