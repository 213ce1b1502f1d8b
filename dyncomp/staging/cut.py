"""Cutting a graph where sizes depend on the data.

A node that defines symbols (``OpDef.defines``) has to run before memory can be allocated for what is made of
its results; library routines with symbolic parameters are called in the same way. A functional graph is cut
into *stages*: each is a graph of its own without such nodes, and between two of them the separate nodes run
that the first one's values are enough for. Later stages take the values of earlier ones as further inputs,
and all symbols as integers; the last one has all of the whole graph's outputs and mutations, so that nothing
is written before everything that can fail has run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..dataclass import dataclass
from ..graph.interp import has_symbols
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, OpTable, SymbolBinding, Var
from ..symbolic.integers import SymInt


@dataclass(frozen=True)
class Stage:
    """``graph`` takes the whole graph's inputs, then the values named ``taken``, then the integers named
    ``symbols``; its outputs are the values named ``given`` (the last stage's are the whole graph's), Python
    ints where they are to be symbols and nothing else. After it ``defining`` run."""

    graph: Graph
    taken: tuple[str, ...]
    symbols: tuple[str, ...]
    given: tuple[str, ...]
    defining: tuple[Node, ...]


def has_stages(graph: Graph, table: OpTable) -> bool:
    """Whether a size depends on the data, or a library routine wants to be told a symbolic number."""
    return any(_is_separate(node, table) for node in graph.nodes)


def _is_separate(node: Node, table: OpTable) -> bool:
    row: Any = table.get(node.op)
    if row is None:
        return False  # copy_
    return bool(row.defines) or (row.is_extern and has_symbols(node.params))


def split(graph: Graph, table: OpTable) -> tuple[Stage, ...]:
    """The stages of a functional graph, in order."""
    levels = _Levels(graph, table)
    return tuple(_stage(levels, number) for number in range(levels.last + 1))


class _Levels:
    """For every node the stage in which it runs: as late as those that use it allow."""

    def __init__(self, graph: Graph, table: OpTable) -> None:
        self.graph = graph
        self.table = table
        self.defining = [_is_separate(node, table) for node in graph.nodes]
        self.values = {v.name: 0 for v in graph.input_vars}
        self.symbols = {s.name: 0 for s in graph.symbols if s.kind != "node"}
        self.nodes = [self._earliest(node, new) for node, new in zip(graph.nodes, self.defining)]
        self.last = max(self.values.values(), default=0)
        self._delay()
        self.anew = self._find_views()
        self.stages = [self._nodes_of(number) for number in range(self.last + 1)]

    def _earliest(self, node: Node, defining: bool) -> int:
        own = _symbols_of(node)
        level = max((self.values[v.name] for v in node.inputs), default=0)
        level = max([level, *(self.symbols[s] for s in own if s in self.symbols)])
        given = level + 1 if defining else level
        for var in node.outputs:
            self.values[var.name] = given
        for name in own - self.symbols.keys():
            self.symbols[name] = given
        return level

    def _delay(self) -> None:
        latest = {v.name: self.last for v in self.graph.values()}
        for position in reversed(range(len(self.graph.nodes))):
            node = self.graph.nodes[position]
            if not self.defining[position]:
                self.nodes[position] = min((latest[v.name] for v in node.outputs), default=self.last)
                for var in node.outputs:
                    self.values[var.name] = self.nodes[position]
            for var in node.inputs:
                latest[var.name] = min(latest[var.name], self.nodes[position])

    def _find_views(self) -> dict[str, int]:
        """Views, with the positions of the nodes that make them: an array that a stage gives would have other
        strides, so each stage makes its own."""
        found: dict[str, int] = {}
        for position, node in enumerate(self.graph.nodes):
            row: Any = self.table.get(node.op)
            if row is not None and row.is_view and not self.defining[position]:
                found.update({v.name: position for v in node.outputs})
        return found

    def _nodes_of(self, number: int) -> tuple[Node, ...]:
        """The nodes of a stage, with those that make the views that it reads."""
        nodes = self.of_stage(number, False)
        pending = [v for node in nodes for v in node.inputs]
        if number == self.last:
            pending += _final_values(self.graph)
        more: set[int] = set()
        while pending:
            position = self.anew.get(pending.pop().name)
            if position is not None and position not in more:
                more.add(position)
                pending += self.graph.nodes[position].inputs
        own = {id(node) for node in nodes}
        return tuple(node for k, node in enumerate(self.graph.nodes) if k in more or id(node) in own)

    def of_stage(self, number: int, defining: bool) -> tuple[Node, ...]:
        rows = zip(self.graph.nodes, self.nodes, self.defining)
        return tuple(node for node, level, new in rows if level == number and new == defining)


def _symbols_of(node: Node) -> set[str]:
    found: set[str] = set()
    for _, value in node.params:
        _collect(value, found)
    for var in node.outputs:
        _collect((var.type.shape, var.type.strides), found)
    return found


def _collect(value: object, found: set[str]) -> None:
    if isinstance(value, SymInt):
        found |= value.symbols()
    elif isinstance(value, (tuple, list)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        _collect(tuple(value.values()), found)


def _stage(levels: _Levels, number: int) -> Stage:
    graph = levels.graph
    last = number == levels.last
    nodes = levels.stages[number]
    inputs = {v.name for v in graph.input_vars}
    made = {v.name for node in nodes for v in node.outputs}
    wanted = {v.name: v for node in nodes for v in node.inputs}
    if last:
        wanted.update({v.name: v for v in _final_values(graph)})
    taken = [v for name, v in wanted.items() if name not in made | inputs]
    given = [] if last else _given(levels, number, made)
    symbols = tuple(sorted(name for name, level in levels.symbols.items() if level <= number))
    outputs = graph.outputs if last else tuple(_output(levels, v) for v in given)
    cut = replace(
        graph,
        name=f"{graph.name}_{number}",
        inputs=(*graph.inputs, *(GraphInput(v, "array", v.name) for v in taken)),
        symbols=tuple(SymbolBinding(name, "int", k) for k, name in enumerate(symbols)),
        nodes=nodes,
        outputs=outputs,
        mutations=graph.mutations if last else (),
    )
    names = tuple(v.name for v in taken)
    return Stage(cut, names, symbols, tuple(v.name for v in given), levels.of_stage(number, True))


def _final_values(graph: Graph) -> list[Var]:
    return [out.var for out in graph.outputs] + [var for _, var in graph.mutations]


def _output(levels: _Levels, var: Var) -> GraphOutput:
    """A value that an earlier stage gives: a number where it is only wanted as a symbol."""
    readers = [node for node in levels.graph.nodes if any(v.name == var.name for v in node.inputs)]
    rows: list[Any] = [levels.table.get(node.op) for node in readers]
    wanted = any(v.name == var.name for v in _final_values(levels.graph))
    is_number = not wanted and all(row is not None and row.defines == "value" for row in rows)
    return GraphOutput(var, "python" if is_number else "array")


def _given(levels: _Levels, number: int, made: set[str]) -> list[Var]:
    """What later stages, and the nodes that run after this one, use of it."""
    found: dict[str, Var] = {}
    for stage in range(number, levels.last + 1):
        nodes = levels.stages[stage] if stage > number else ()
        own = {v.name for node in nodes for v in node.outputs}
        used = [v for node in (*nodes, *levels.of_stage(stage, True)) for v in node.inputs]
        if stage == levels.last:
            used += _final_values(levels.graph)
        found.update({v.name: v for v in used if v.name in made - own})
    return list(found.values())
