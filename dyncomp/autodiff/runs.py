"""Runs of compiled graphs on the tape, and how they keep within a memory budget.

A run saves what its backward graph needs. Where that exceeds the budget, the runs so far become a
:class:`Segment`, which holds no more than what came into it from before: its graphs run again in the backward
pass, under the same budget. Where there are too many segments, neighbours become one, so that memory grows
with the logarithm of the number of runs at the least, and so does time (recursive checkpointing: A. Griewank
and A. Walther, "Algorithm 799: revolve", 2000).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..frontends.base import GradientPair, PairBackward
from .operations import Layout
from .tape import Array, Kept, Node, Slot, WriteNode, array_of, settle

FEW = 4  # runs that are worth a segment


@dataclass(frozen=True)
class DifferentiableGraph:
    """A graph with a backward graph for each pattern of results with cotangents and inputs that
    want gradients. ``visible``: its results with derivatives. ``is_pure``: it writes to no input."""

    pair: GradientPair
    backward: Callable[[tuple[bool, ...], tuple[bool, ...]], PairBackward | None]
    visible: tuple[int, ...]
    is_pure: bool
    layout: Layout  # of its inputs

    def saved(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        return [inputs[k] if of_input else results[k] for of_input, k in self.pair.saved]


class RunNode:
    """A run of a graph. ``saved`` is ``None`` where it is part of a segment. ``inputs``: where there is a
    budget, those to run it again, ``None`` for each that comes from its segment."""

    __slots__ = ("graph", "slots", "outs", "saved", "inputs", "symbols", "bytes")

    def __init__(
        self,
        graph: DifferentiableGraph,
        slots: list[Slot | None],
        outs: dict[int, Slot],
        saved: list[Array | Kept],
        inputs: list[Array | Kept | None] | None,
        symbols: dict[str, int] | None,
    ) -> None:
        self.graph = graph
        self.slots = slots
        self.outs = outs
        self.saved: list[Array | Kept] | None = saved
        self.inputs = inputs
        self.symbols = symbols
        self.bytes = 0

    def backward(self) -> None:
        given = [False] * (max(self.outs) + 1)
        cotangents = {}
        for k, out in self.outs.items():
            if out.cotangent is not None:
                given[k] = True
                cotangents[k], out.cotangent = out.cotangent, None
        if not cotangents:
            return
        given += [False] * (max(self.graph.pair.differentiable) + 1 - len(given))
        slots, saved = self.slots, self.saved
        assert saved is not None
        found = self.graph.backward(tuple(given), tuple([slot is not None for slot in slots]))
        if found is None:
            return
        inputs = [array_of(saved[k]) for k in found.saved]
        for k in found.given:
            cotangent = cotangents[k]
            inputs.append(cotangent if cotangent.flags.c_contiguous else cotangent.copy())
        if found.integers:
            assert self.symbols is not None
            inputs += [self.symbols[name] for name in found.integers]
        for k, gradient in zip(found.wrt, found.run(*inputs)):
            slot = slots[k]
            if slot is not None:
                slot.add(gradient, own=True)

    def settle(self) -> None:
        """Copy what the program may write to from now on."""
        settle((*(self.saved or ()), *(self.inputs or ())))

    def again(self, values: dict[Slot, Array]) -> RunNode:
        """Another run of the graph on the same inputs; ``values``: those of the segment so far."""
        assert self.inputs is not None
        inputs = [
            values[slot] if x is None and slot is not None else x for x, slot in zip(self.inputs, self.slots)
        ]
        given = [array_of(x) for x in inputs]
        results = self.graph.pair.forward(*self.graph.layout(given))
        for k, out in self.outs.items():
            values[out] = results[k]
        made = RunNode(
            self.graph, self.slots, self.outs, self.graph.saved(given, results), inputs, self.symbols
        )
        made.bytes = size(results)
        return made


def size(results: Sequence[Any]) -> int:
    return sum([r.nbytes for r in results if isinstance(r, np.ndarray)])


class Segment:
    """Runs, and writes of their results to whole arrays, that hold only what came into the segment."""

    __slots__ = ("nodes", "budget", "uses", "bytes")

    def __init__(self, nodes: list[RunNode | WriteNode], budget: int) -> None:
        self.nodes = nodes
        self.budget = budget
        made: set[Slot] = set()
        self.bytes = 0  # of what came into it, but for arrays that are constants to it
        seen: set[Slot] = set()
        for node in nodes:
            if type(node) is WriteNode:
                made.add(node.out)
                continue
            assert isinstance(node, RunNode) and node.inputs is not None
            node.saved = None
            for k, slot in enumerate(node.slots):
                if slot in made:
                    node.inputs[k] = None
                elif slot is not None and slot not in seen:
                    seen.add(slot)
                    self.bytes += getattr(array_of(node.inputs[k]), "nbytes", 0)
            made.update(node.outs.values())

    def backward(self) -> None:
        values: dict[Slot, Array] = {}
        uses = Counter(slot for node in self.nodes for slot in _read(node))
        opened: list[Node] = []
        budget = Budget(self.budget)
        for node in self.nodes:
            if isinstance(node, RunNode):
                again = node.again(values)
                opened.append(again)
                budget.add(opened, again)
            else:
                assert node.value is not None
                values[node.out] = values[node.value]
                opened.append(node)
            for slot in _read(node):
                uses[slot] -= 1
                if not uses[slot]:
                    values.pop(slot, None)
        values.clear()
        while opened:
            opened.pop().backward()

    def settle(self) -> None:
        for node in self.nodes:
            node.settle()


def _read(node: RunNode | WriteNode) -> list[Slot]:
    slots = node.slots if isinstance(node, RunNode) else [node.value]
    return [slot for slot in slots if slot is not None]


class Budget:
    """Keeps nodes within ``limit`` bytes of saved values: half for runs, half for what segments hold."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open = 0
        self.begin = 0  # of the nodes that are in no segment yet

    def add(self, nodes: list[Node], node: RunNode) -> None:
        """``node`` was appended to ``nodes``."""
        if self.open + node.bytes > self.limit // 2:
            nodes[self.begin : -1] = _segments(nodes[self.begin : -1], self.limit)
            self._merge(nodes)
            self.begin, self.open = len(nodes) - 1, 0
        self.open += node.bytes

    def describe(self, nodes: list[Node]) -> str:
        segments = [node for node in nodes if isinstance(node, Segment)]
        again = sum([isinstance(node, RunNode) for segment in segments for node in segment.nodes])
        held = sum([segment.bytes for segment in segments])
        return (
            f"memory budget of {self.limit:,} bytes: {again} iterations in {len(segments)} segments "
            f"run again, for which {held:,} bytes are held"
        )

    def _merge(self, nodes: list[Node]) -> None:
        held = [n for n in nodes if isinstance(n, Segment)]
        if len(held) < 3 or sum([s.bytes for s in held]) <= self.limit // 2:
            return
        made: list[Node] = []
        for node in nodes:
            before = made[-1] if made else None
            if (
                isinstance(node, Segment)
                and isinstance(before, Segment)
                and len(before.nodes) <= len(node.nodes)
            ):
                made[-1] = Segment([*before.nodes, *node.nodes], self.limit)
            else:
                made.append(node)
        nodes[:] = made


def _segments(nodes: Sequence[Node], limit: int) -> list[Node]:
    """The nodes, with runs in a row as segments."""
    made: list[Node] = []
    row: list[RunNode | WriteNode] = []
    known: set[Slot] = set()

    def close() -> None:
        if len(row) >= FEW:
            made.append(Segment(row.copy(), limit))
        else:
            made.extend(row)
        row.clear()
        known.clear()

    for node in nodes:
        if isinstance(node, RunNode) and node.graph.is_pure and node.inputs is not None:
            row.append(node)
            known.update(node.outs.values())
        elif isinstance(node, WriteNode) and node.window is node.storage.whole and node.value in known:
            row.append(node)
            known.add(node.out)
        else:
            close()
            made.append(node)
    close()
    return made
