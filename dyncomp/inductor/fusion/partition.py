"""Loop partitioning: what reads a concatenation is computed part by part, each part by a loop of its own.

A *join* is a fresh array that is written region by region: ``update_slice`` on ``empty`` or ``full``, as
concatenations, stacks, rolls, pads and slices assigned to a new array become. Where elementwise operations
and reductions alone read a join, they are done for each box of the grid that the edges of all joins among
their operands make, on what the box holds of each part, and written to its place in the result: the join has
no memory, and no loop has a branch. The periodic neighbours of a grid (rolls) make a large box inside and
thin ones at the borders. What is expensive and read at several places stays in memory.

Loop partitioning is Halide's term (``PartitionLoops``), where a loop is split by the conditions in its body.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Unsupported
from ...graph.ir import Graph, Node, OpTable, Var, same_type
from ...graph.passes.dce import eliminate_dead_code
from ...graph.rewrite import Transformer, axis_order, match_type
from ...prims.shape import inverse
from ...symbolic.integers import Dim
from .partition_joins import MOST_NODES, Group, Joins
from .partition_windows import Undecided, Window, source_window, view_of_part

# Groups that cannot be done after all are left out one by one, at most so many.
MOST_REFUSED = 8


def partition_joins(graph: Graph, table: OpTable) -> Graph:
    """``graph`` with elementwise operations on joins done part by part, where that takes less memory
    traffic. Values and their types stay the same."""
    if not graph.functional or not any(node.op == "update_slice" for node in graph.nodes):
        return graph
    declined: set[str] = set()
    for _ in range(MOST_REFUSED + 1):
        joins = Joins(graph, table, declined)
        if not joins.groups:
            return graph
        try:
            return eliminate_dead_code(_Partitioner(graph, table, joins).run(), table)
        except _Declined as refused:
            declined.update(node.out.name for node in refused.group.members)
    return graph


class _Declined(Exception):
    """A group is not to be computed part by part."""

    def __init__(self, group: Group) -> None:
        super().__init__()
        self.group = group


class _Partitioner(Transformer):
    """Does the members of each group box by box; all else stays, and what nothing reads any more is dead."""

    def __init__(self, graph: Graph, table: OpTable, joins: Joins) -> None:
        super().__init__(graph, table)
        self.joins = joins
        self.boxes: dict[int, list[Window]] = {}
        self.pieces: dict[str, list[Var]] = {}
        self.windows: dict[Any, Var] = {}
        self.spent: dict[int, int] = {}

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        group = self.joins.groups.get(node.outputs[0].name) if len(node.outputs) == 1 else None
        if group is None:
            return self.keep(node, inputs)
        start = len(self.builder.nodes)
        try:
            result = self._computed(node, group)
        except (Undecided, Unsupported, ValueError, RecursionError) as error:
            raise _Declined(group) from error
        spent = self.spent.get(id(group), 0) + len(self.builder.nodes) - start
        self.spent[id(group)] = spent
        if group.boxes > 1 and spent > MOST_NODES:
            raise _Declined(group)
        return result

    def _computed(self, node: Node, group: Group) -> Var:
        """The value of a member, where anything but members reads it."""
        boxes = self._boxes_of(group)
        if self.joins.is_reduction(node):
            return self._reduced(node, group, boxes)
        if node.op == "update_slice":
            pieces = [self._part_of_update(node, box, False) for box in boxes]
        else:
            pieces = [self._piece(node, k, box) for k, box in enumerate(boxes)]
            self.pieces[node.out.name] = pieces
        if self.joins.is_read_within(group, node.out):
            return node.out
        return self._assembled(node.out, pieces, boxes)

    def _reduced(self, node: Node, group: Group, boxes: list[Window]) -> Var:
        """A reduction: of each box, then of the boxes along the reduced axes, in order."""
        axes = node.kwargs["axes"]
        kept = [axis for axis in range(len(group.shape)) if axis not in axes]
        found: dict[Any, tuple[Window, Var]] = {}
        for number, box in enumerate(boxes):
            piece = self._piece(node, number, box)
            window = Window(
                tuple(box.starts[a] for a in kept), tuple(box.sizes[a] for a in kept), (1,) * len(kept)
            )
            known = found.get(window.key)
            if known is not None:
                piece = self.builder.emit(self.joins.combining(node), known[1], piece)
            found[window.key] = (window, piece)
        return self._assembled(node.out, [p for _, p in found.values()], [w for w, _ in found.values()])

    def _boxes_of(self, group: Group) -> list[Window]:
        if id(group) not in self.boxes:
            sides = []
            for size, cuts in zip(group.shape, group.cuts):
                edges: tuple[Dim, ...] = (0, *cuts, size)
                sides.append(list(zip(edges, edges[1:])))
            self.boxes[id(group)] = [Window.box(edges) for edges in itertools.product(*sides)]
        return self.boxes[id(group)]

    # -- pieces -------------------------------------------------------------------------------
    def _piece(self, node: Node, number: int, box: Window) -> Var:
        """A member's value in one box."""
        parts = [self._operand(var, number, box) for var in node.inputs]
        made: Var = self.builder.emit(node.op, *parts, loc=node.loc, **node.kwargs)
        return made

    def _operand(self, var: Var, number: int, box: Window) -> Var:
        pieces = self.pieces.get(var.name)
        return pieces[number] if pieces is not None else self._part(var, box, self.joins.is_read_once(var))

    def _part(self, var: Var, window: Window, once: bool) -> Var:
        """A window of a value; ``once``: each element is asked for once, and by nobody else."""
        key = (var.name, window.key)
        if key not in self.windows:
            self.windows[key] = self._find_part(var, window, once)
        return self.windows[key]

    def _find_part(self, var: Var, window: Window, once: bool) -> Var:
        joins = self.joins
        node = joins.made_by.get(var.name)
        if node is None or window.is_whole(var.shape):
            if var.name not in joins.joined and not joins.sees_join(var):
                return self._slice(var, window)
        assert node is not None
        if var.name in joins.joined:
            return self._part_of_update(node, window, once)
        if joins.is_view(node):
            once = once and node.op != "broadcast_in_dim" and joins.is_read_once(node.inputs[0])
        if joins.is_view(node) and (once or joins.sees_join(var)):
            part = self._part(node.inputs[0], source_window(node, window), once)
            return view_of_part(node, part, window, self.builder.emit)
        if once and joins.is_pointwise(node) and var.name not in joins.groups:
            parts = [self._part(v, window, joins.is_read_once(v)) for v in node.inputs]
            made: Var = self.builder.emit(node.op, *parts, loc=node.loc, **node.kwargs)
            return made
        return self._slice(var, window)

    def _part_of_update(self, node: Node, window: Window, once: bool) -> Var:
        joins = self.joins
        while not self._is_written(node, window):
            base = node.inputs[0]
            once = once and joins.is_read_once(base)
            if base.name not in joins.joined:
                return self._part(base, window, once)
            node = joins.made_by[base.name]
        source = node.inputs[1]
        return self._part(source, window.moved(node.kwargs["starts"]), once and joins.is_read_once(source))

    def _is_written(self, node: Node, window: Window) -> bool:
        """Whether an update writes a window of its result, all of it."""
        starts, sizes = node.kwargs["starts"], node.kwargs["sizes"]
        return window.lies_in(starts, tuple(a + n for a, n in zip(starts, sizes)))

    def _slice(self, var: Var, window: Window) -> Var:
        value = self.replacement[var.name]
        if window.is_whole(var.shape):
            return value
        node = self.joins.made_by.get(var.name)
        made: Var
        if node is not None and node.op in ("full", "empty"):
            made = self.builder.emit(node.op, loc=node.loc, **{**node.kwargs, "shape": window.sizes})
        else:
            params: dict[str, Any] = {"starts": window.starts, "sizes": window.sizes, "steps": window.steps}
            made = self.builder.emit("strided_slice", value, **params)
        return made

    # -- results ------------------------------------------------------------------------------
    def _assembled(self, var: Var, pieces: list[Var], boxes: Sequence[Window]) -> Var:
        """A member's value in memory, of its type."""
        if len(pieces) == 1:
            result = match_type(self.builder, pieces[0], var.type)
        else:
            result = self._written(var, pieces, boxes)
        if result is None or not same_type(result.type, var.type, strides=True):
            raise Undecided
        return result

    def _written(self, var: Var, pieces: Sequence[Var], boxes: Sequence[Window]) -> Var:
        """All pieces, each written to its box of a fresh array in the memory order of ``var``."""
        emit: Callable[..., Var] = self.builder.emit
        order = axis_order(var.shape, var.type.strides)
        perm = (*(axis for axis in range(var.ndim) if axis not in order), *order)
        turned = perm != tuple(range(var.ndim))
        shape = tuple(var.shape[axis] for axis in perm)
        out = emit("empty", shape=shape, dtype=var.dtype, device=var.type.device)
        for piece, box in zip(pieces, boxes):
            starts = tuple(box.starts[axis] for axis in perm)
            sizes = tuple(box.sizes[axis] for axis in perm)
            part = emit("transpose", piece, perm=perm) if turned else piece
            out = emit("update_slice", out, part, starts=starts, sizes=sizes, steps=(1,) * var.ndim)
        return emit("transpose", out, perm=inverse(perm)) if turned else out
