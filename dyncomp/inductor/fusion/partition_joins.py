"""Which joins need no memory, and which operations are then computed part by part: for ``partition``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import suppress

from ...dataclass import dataclass, field
from ...dtypes import bfloat16, float16
from ...graph.ir import Graph, Node, OpTable, Var
from ...prims.opdef import Pointwise, Reduce, Scan, Update, View
from ...prims.scalar import REDUCERS
from ...symbolic.integers import Dim, hint, product, same
from ..lowering.state import is_expensive
from .partition_windows import COPIES, MOST_BOXES, Cuts, Undecided, cuts_of_view, has_windows, merged

# Elementwise operations whose expression asks where an element is.
POSITIONAL = frozenset(("tril", "triu"))
# What the memory of a join is before its regions are written.
_FRESH = frozenset(("empty", "full"))
# A reduction is made of at most so many parts: each is a loop to compile.
MOST_PARTS = 4
# Rows of fewer elements are short; of expensive functions one part in so many may be in such.
SHORT_ROW = 32
MOST_SHORT = 16
# Borders of expensive functions cost more than memory where there is no more than that inside of them.
FEW_BOXES = 2
SMALL_POINTS = 16384
# A group's members times its boxes: about the nodes that it is computed by.
MOST_NODES = 600
# Joins of joins of joins are looked through to this depth; those below stay in memory.
MOST_DEPTH = 12
# What is to be computed part by part is sought in so many rounds, each over all nodes.
MOST_ROUNDS = 16
# Each box is a loop to compile. More than a few of fewer elements than these on average are not worth it.
MANY_BOXES = 4
LEAST_POINTS = 64
# Boxes of fewer elements than these save little of a call: of those a graph has at most so many.
FEW_POINTS = 2048
MOST_SMALL_BOXES = MOST_BOXES
# ... and of all boxes.
MOST_BOXES_OF_GRAPH = 1024
# Sums of up to so many floats are in the order of the elements (``unroll.is_in_order``).
_IN_ORDER = 4096


@dataclass(eq=False)
class Group:
    """Operations on one shape that are computed box by box; ``cuts``: the edges of the joins they read.
    Reductions are members, too, and updates that write to memory what is read of other joins."""

    shape: tuple[Dim, ...]
    members: list[Node] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    cuts: Cuts = ()

    def add(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.members.append(node)
            self.names.add(node.out.name)

    @property
    def boxes(self) -> int:
        count = 1
        for cuts in self.cuts:
            count *= len(cuts) + 1
        return count


class Joins:
    """Looks at one graph. ``joined``: names of the updates without memory of their own; ``groups``: by the
    name of each member's value; ``declined``: names of members that are to stay as they are."""

    def __init__(self, graph: Graph, table: OpTable, declined: set[str]) -> None:
        self.graph = graph
        self.table = table
        self.declined = declined
        self.nodes = [node for node in graph.nodes if len(node.outputs) == 1]
        self.made_by = {node.out.name: node for node in self.nodes}
        self.readers: dict[str, list[Node | None]] = {v.name: [] for v in graph.values()}
        self._count_readers()
        self.joined: set[str] = set()
        self.written: set[str] = set()  # joins in memory that are made of others
        self.groups: dict[str, Group] = {}
        self.rounds = 0
        self._known_cuts: dict[str, Cuts | None] = {}
        self._find()

    def _count_readers(self) -> None:
        for node in self.graph.nodes:
            for var in node.inputs:
                self.readers[var.name].append(node)
        for out in self.graph.outputs:
            self.readers[out.var.name].append(None)
        for _, var in self.graph.mutations:
            self.readers[var.name].append(None)

    def is_read_once(self, var: Var) -> bool:
        return len(self.readers[var.name]) == 1

    def is_read_within(self, group: Group, var: Var) -> bool:
        """Whether members of a group alone read a value."""
        return _is_read_by(self.readers[var.name], group.names)

    # -- kinds of operations ------------------------------------------------------------------
    def _kind(self, node: Node) -> object:
        return getattr(self.table[node.op], "lower", None)

    def is_pointwise(self, node: Node) -> bool:
        """Whether an operation may be done on windows of its operands."""
        return isinstance(self._kind(node), Pointwise) and bool(node.inputs) and node.op not in POSITIONAL

    def is_view(self, node: Node) -> bool:
        """Whether windows are seen through a value: a view, or a copy of which only views are read."""
        if node.op in COPIES:
            readers = self.readers[node.out.name]
            return bool(readers) and all(r is not None and isinstance(self._kind(r), View) for r in readers)
        return isinstance(self._kind(node), View) and has_windows(node)

    def is_reduction(self, node: Node) -> bool:
        """Whether what is reduced of parts can be combined. Sums of halves are rounded once."""
        kind = self._kind(node)
        if not isinstance(kind, Reduce) or not REDUCERS[kind.combine].combine:
            return False
        return node.out.dtype not in (float16, bfloat16) or kind.combine not in ("sum", "prod")

    def combining(self, node: Node) -> str:
        """The operation that makes of what was reduced of two parts that of both."""
        kind = self._kind(node)
        assert isinstance(kind, Reduce)
        return REDUCERS[kind.combine].combine

    # -- what may be done ---------------------------------------------------------------------
    def _find(self) -> None:
        self._find_joins()
        while self.joined and self.rounds < MOST_ROUNDS:
            self.rounds += 1
            self._known_cuts = {}
            self._group()
            left = {name for name in self.joined if not self._vanishes(name)}
            self.joined -= left
            self.written |= {name for name in left if name not in self.declined}
            idle = {name for name in self.written if not self._has_joins(self.made_by[name])}
            self._keep_in_memory(idle)
            self._keep_in_memory(left & self.declined)
            if not left and not idle and self._all_fit():
                return
        self.groups = {}

    def _find_joins(self) -> None:
        """The updates of chains that are not long, of whose sources none is a join of great depth."""
        chains: dict[str, list[Node]] = {}
        for node in self.nodes:
            if self._is_join(node):
                before = chains.pop(node.inputs[0].name, [])
                chains[node.out.name] = [*before[:MOST_BOXES], node]
                self.joined.add(node.out.name)
        self.joined.clear()
        depths: dict[str, int] = {}
        for last, chain in chains.items():
            tops = [self._top(node.inputs[1]) for node in chain]
            depth = max((depths[top.name] + 1 for top in tops if top is not None), default=0)
            if len(chain) <= MOST_BOXES and depth <= MOST_DEPTH:
                self.joined.update(node.out.name for node in chain)
                depths[last] = depth

    def _keep_in_memory(self, names: Iterable[str]) -> None:
        """No update of the chains that end in these is to be without memory, nor made of others."""
        for name in names:
            self.written.discard(name)
            self.declined.add(name)
            node = self.made_by[name]
            while node.op == "update_slice" and node.inputs[0].name in self.joined:
                node = self.made_by[node.inputs[0].name]
                self.joined.discard(node.out.name)

    def _is_join(self, node: Node) -> bool:
        """Whether a node writes a region of an array that is fresh, or of a join that nothing else reads."""
        if node.op != "update_slice" or not all(same(step, 1) for step in node.kwargs["steps"]):
            return False
        base = node.inputs[0]
        maker = self.made_by.get(base.name)
        if maker is None:
            return False
        return maker.op in _FRESH or (self.is_read_once(base) and base.name in self.joined)

    def _has_joins(self, node: Node) -> bool:
        """Whether an update, or one that it goes on from, writes what is read of a join."""
        while node.op == "update_slice":
            if self.sees_join(node.inputs[1]):
                return True
            node = self.made_by[node.inputs[0].name]
        return False

    def _vanishes(self, name: str) -> bool:
        """Whether all that reads a value is computed part by part."""
        return all(reader is not None and self._reads_parts(reader) for reader in self.readers[name])

    def _reads_parts(self, reader: Node) -> bool:
        if len(reader.outputs) != 1:
            return False
        out = reader.out.name
        if out in self.groups:
            return True
        if reader.op == "update_slice":
            return out in self.joined or out in self.written
        return self.is_view(reader) and bool(self.readers[out]) and self._vanishes(out)

    def _all_fit(self) -> bool:
        """Decline groups of too many boxes, with cuts in no certain order, or that save nothing."""
        self._find_all_cuts()
        groups = list({id(g): g for g in self.groups.values()}.values())
        wrong = {name for group in groups for name in self._wrong(group)}
        if not wrong:
            wrong = _too_many(groups)
        self._keep_in_memory([name for name in wrong if name in self.written])
        self.declined |= wrong
        return not wrong

    def _wrong(self, group: Group) -> set[str]:
        """The members of a group that are to stay as they are."""
        try:
            group.cuts = self._cuts_of(group)
        except Undecided:
            return group.names
        wrong = {n.out.name for n in group.members if not self._may_combine(n, group.cuts)}
        return wrong if wrong or (_is_worth(group) and self._pays(group)) else group.names

    def _may_combine(self, node: Node, cuts: Cuts) -> bool:
        """Whether a reduction of parts is within what a reduction may round: sums of few floats are in the
        order of the elements."""
        kind = self._kind(node)
        if not isinstance(kind, Reduce):
            return True
        parts = 1
        for axis in node.kwargs["axes"]:
            parts *= len(cuts[axis]) + 1
        if parts > MOST_PARTS:
            return False
        if not node.out.dtype.is_inexact or kind.combine not in ("sum", "prod"):
            return True
        shape = node.inputs[0].shape
        axes = [axis for axis in node.kwargs["axes"] if cuts[axis]]
        if not axes:
            return True
        if len(node.kwargs["axes"]) == 1 and all(same(len(cuts[a]) + 1, shape[a]) for a in axes):
            return True  # each element is a part, and they are added in order
        return all(isinstance(d, int) for d in shape) and hint(product(shape)) > _IN_ORDER * hint(
            product(node.out.shape)
        )

    # -- groups -------------------------------------------------------------------------------
    def sees_join(self, var: Var) -> bool:
        """Whether a value is a join, or a view of one."""
        return self._top(var) is not None

    def _top(self, var: Var) -> Var | None:
        """The join that a value is, or is a view of."""
        while var.name not in self.joined:
            node = self.made_by.get(var.name)
            if node is None or not self.is_view(node):
                return None
            var = node.inputs[0]
        return var

    def _group(self) -> None:
        """Operations that read joins, what reads them at the same place, what they alone read, reductions of
        them; joins in memory that are made of others."""
        members = self._readers_of_joins()
        for node in reversed(self.nodes):
            if self._may_join(node) and _is_read_by(self.readers[node.out.name], members):
                members.add(node.out.name)
        self._trim(members)
        self.groups = {}
        for node in self.nodes:
            if node.out.name in members:
                self._enter(node)
        self._add_reductions()
        for name in self.written:
            self._found(self.made_by[name], self.made_by[name].out)

    def _may_join(self, node: Node) -> bool:
        return (
            node.out.name not in self.declined and self.is_pointwise(node) and not self._is_seen_through(node)
        )

    def _is_seen_through(self, node: Node) -> bool:
        return node.op in COPIES and self.is_view(node)

    def _readers_of_joins(self) -> set[str]:
        members: set[str] = set()
        for node in self.nodes:
            if self._may_join(node) and any(v.name in members or self.sees_join(v) for v in node.inputs):
                members.add(node.out.name)
        return members

    def _trim(self, members: set[str]) -> None:
        """Leave what a loop elsewhere computes as it reads it, where its operands are in memory anyway."""
        for node in reversed(self.nodes):
            if node.out.name not in members or any(self.sees_join(v) for v in node.inputs):
                continue
            inside = [v for v in node.inputs if v.name in members]
            if not self._is_left_to_readers(node.out) or any(
                r in members for r in self._names_of_readers(node)
            ):
                continue
            if all(None in self.readers[v.name] for v in inside) and not self._reader_may_reduce(node):
                members.discard(node.out.name)

    def _names_of_readers(self, node: Node) -> list[str]:
        return [r.outputs[0].name for r in self.readers[node.out.name] if r is not None and r.outputs]

    def _reader_may_reduce(self, node: Node) -> bool:
        readers = self.readers[node.out.name]
        return all(r is not None and self._may_be_reduced(r) for r in readers)

    def _may_be_reduced(self, node: Node) -> bool:
        return len(node.outputs) == 1 and node.out.name not in self.declined and self.is_reduction(node)

    def _enter(self, node: Node) -> None:
        """Put a member into the group of those that it reads."""
        own = Group(node.out.shape)
        for var in node.inputs:
            other = self.groups.get(var.name)
            if other is not None and other is not own:
                own = self._united(own, other)
        own.add((node,))
        self.groups[node.out.name] = own

    def _united(self, one: Group, other: Group) -> Group:
        small, large = sorted((one, other), key=lambda group: len(group.members))
        large.add(small.members)
        for node in small.members:
            self.groups[node.out.name] = large
        return large

    def _add_reductions(self) -> None:
        found = [node for node in self.nodes if self._may_be_reduced(node)]
        inside = [(node, self.groups.get(node.inputs[0].name)) for node in found]
        for node, group in inside:
            if group is not None:
                group.add((node,))
                self.groups[node.out.name] = group
            elif self.sees_join(node.inputs[0]):
                self._found(node, node.inputs[0])

    def _found(self, node: Node, over: Var) -> None:
        """A group of one member."""
        group = Group(over.shape)
        group.add((node,))
        self.groups[node.out.name] = group

    # -- cuts ---------------------------------------------------------------------------------
    def _cuts_of(self, group: Group) -> Cuts:
        if group.members[0].out.name in self.written:
            return self._cuts_of_update(group.members[0])
        operands = {v.name: v for node in group.members for v in node.inputs if v.name not in group.names}
        found = [self.cuts(var) for var in operands.values()]
        return tuple(merged(size, *(cuts[axis] for cuts in found)) for axis, size in enumerate(group.shape))

    def cuts(self, var: Var) -> Cuts:
        """Where the parts of a value meet that is seen through joins and views."""
        if var.name not in self._known_cuts:
            try:
                self._known_cuts[var.name] = self._find_cuts(var)
            except Undecided:
                self._known_cuts[var.name] = None
        known = self._known_cuts[var.name]
        if known is None:
            raise Undecided
        return known

    def _find_all_cuts(self) -> None:
        """From the innermost joins on, so that none is far to seek."""
        for node in self.nodes:
            if node.out.name in self.joined:
                with suppress(Undecided):
                    self.cuts(node.out)

    def _find_cuts(self, var: Var) -> Cuts:
        if var.name in self.joined:
            return self._cuts_of_update(self.made_by[var.name])
        if self.sees_join(var):
            node = self.made_by[var.name]
            return cuts_of_view(node, self.cuts(node.inputs[0]))
        return ((),) * var.ndim

    def _cuts_of_update(self, node: Node) -> Cuts:
        base, source = map(self.cuts, node.inputs)
        found: list[tuple[Dim, ...]] = []
        for axis, start in enumerate(node.kwargs["starts"]):
            edges = (start, start + node.kwargs["sizes"][axis])
            inside = (start + cut for cut in source[axis])
            found.append(merged(node.out.shape[axis], base[axis], edges, inside))
        return tuple(found)

    # -- what it saves ------------------------------------------------------------------------
    def _pays(self, group: Group) -> bool:
        """Whether the joins that a group reads are larger than those of its results that would be computed
        where they are read."""
        if group.members[0].out.name in self.written:
            return True
        if any(is_expensive(node.op) for node in group.members) and (_is_narrow(group) or _is_small(group)):
            return False
        operands = {v.name: v for node in group.members for v in node.inputs if v.name not in group.names}
        tops = [top for top in map(self._top, operands.values()) if top is not None]
        saved = sum(_bytes(top) for top in {top.name: top for top in tops}.values())
        sinks = [n.out for n in group.members if not self.is_read_within(group, n.out)]
        return saved > sum(_bytes(var) for var in sinks if self._is_left_to_readers(var))

    def _is_left_to_readers(self, var: Var) -> bool:
        """Whether one loop would compute a value as it reads it."""
        readers = self.readers[var.name]
        if len(readers) != 1 or readers[0] is None:
            return False
        kind = self._kind(readers[0])
        if isinstance(kind, View):
            return self._is_left_to_readers(readers[0].out)
        return isinstance(kind, Pointwise | Reduce | Scan | Update)


def _is_narrow(group: Group) -> bool:
    """Whether much of a group is in boxes with short rows, of which vectors are never full."""
    size = hint(group.shape[-1]) if group.shape else 1
    edges = [0, *map(hint, group.cuts[-1]), size] if group.shape else [0, 1]
    short = sum(b - a for a, b in itertools.pairwise(edges) if b - a < SHORT_ROW)
    return len(edges) > 2 and short * MOST_SHORT > size


def _is_worth(group: Group) -> bool:
    """Whether there is something to compute, by not too many loops for what it is."""
    points = hint(product(group.shape))
    boxes = group.boxes
    if not 0 < boxes <= MOST_BOXES or not points:
        return False
    if boxes > 1 and boxes * len(group.members) > MOST_NODES:
        return False
    return boxes <= MANY_BOXES or points >= boxes * LEAST_POINTS


def _too_many(groups: list[Group]) -> set[str]:
    """The members of groups with borders that are too many for a graph: small ones, or all."""
    borders = [group for group in groups if group.boxes > FEW_BOXES]
    small = [group for group in borders if hint(product(group.shape)) < group.boxes * FEW_POINTS]
    for some, most in ((small, MOST_SMALL_BOXES), (borders, MOST_BOXES_OF_GRAPH)):
        if sum(group.boxes for group in some) > most:
            return {name for group in some for name in group.names}
    return set()


def _is_small(group: Group) -> bool:
    """Whether a group has borders, and little inside."""
    return group.boxes > FEW_BOXES and hint(product(group.shape)) < SMALL_POINTS


def _is_read_by(readers: list[Node | None], names: set[str]) -> bool:
    return bool(readers) and all(
        r is not None and len(r.outputs) == 1 and r.out.name in names for r in readers
    )


def _bytes(var: Var) -> int:
    return hint(product(var.shape)) * var.dtype.itemsize
