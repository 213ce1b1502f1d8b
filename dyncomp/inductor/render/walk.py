"""From statements over axes to a loop tree, shared by the renderers.

:class:`Plan` says in which order loops are opened, which of them run in parallel and which one is the
vector loop; :func:`build` opens them one after another. A value that a reduction over a loop needs is
computed inside it; one that needs the reduction's result goes into a later pass over the same loop, and
what both need is computed again in each pass, or kept in a :class:`LocalArray` where that is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...dataclass import dataclass, field
from ...dtypes import bfloat16, float16
from ...errors import LoweringFault
from ...prims.scalar import SCALARS
from .nest import EFFECTS, Accumulator, LocalArray, Nest, Node

# A value that costs more operations than this is kept between passes rather than computed again.
RECOMPUTE_COST = 10
# The same where it would be computed again in every iteration of a loop.
OUTSIDE_COST = 4
# What an operation on halves costs besides, since its result is rounded, and what else makes a half.
ROUNDING_COST = 6
WIDENING_COST = 2
_HALVES = (float16, bfloat16)
_CHEAP = ("load", "const", "axis", "symbol", "fetch", "finish")
# Elements of a local array: small enough for the first-level cache and any thread's stack.
LOCAL_ELEMENTS = 4096


@dataclass(frozen=True)
class Plan:
    """``order``: loops from outermost to innermost; ``parallel``: a prefix of it that runs as one flat
    parallel loop; ``vector``: the innermost loop if its iterations may run as vector lanes; ``keep``: values
    may be kept in memory between passes."""

    order: tuple[str, ...]
    parallel: tuple[str, ...] = ()
    vector: str = ""
    keep: bool = True


@dataclass(frozen=True)
class Compute:
    """One node, once."""

    node: Node


@dataclass(frozen=True)
class Declare:
    """An accumulator starts: a scalar, or an array over ``axes``."""

    acc: Accumulator
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """All contributions to an accumulator have been made."""

    acc: Accumulator


@dataclass(frozen=True)
class DeclareArray:
    """Memory for a value kept between passes."""

    array: LocalArray


@dataclass(frozen=True)
class Loop:
    """``kind``: ``"parallel"`` (flat over ``axes``), ``"vector"`` or ``"serial"``. ``carries``: scans whose
    state starts before the loop, with the axes of that state."""

    axes: tuple[str, ...]
    kind: str
    items: tuple[Item, ...]
    carries: tuple[tuple[Node, tuple[str, ...]], ...] = ()


Item = Compute | Declare | Done | DeclareArray | Loop


def _done_mark(acc: Accumulator) -> str:
    return f"#done:{acc.value}"


@dataclass
class _Builder:
    nest: Nest
    plan: Plan
    by_name: dict[str, Node] = field(default_factory=dict)
    accumulate_of: dict[str, Node] = field(default_factory=dict)
    save_of: dict[str, Node] = field(default_factory=dict)
    position: dict[int, tuple[int, ...]] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    extra: list[Node] = field(default_factory=list)
    arrays: int = 0

    def __post_init__(self) -> None:
        for place, node in enumerate(self.nest.nodes):
            self.position[id(node)] = (place,)
            if node.out:
                self.by_name[node.out] = node
            if node.op == "accumulate":
                self.accumulate_of[node.arg.value] = node
            if node.op == "save":
                self.save_of[node.arg.name] = node

    # -- dependencies -------------------------------------------------------------------------
    def dependencies(self, node: Node, available: Iterable[str]) -> list[Node]:
        """Nodes that must come first and have not."""
        needed = [self.by_name[name] for name in node.args if name not in available]
        if node.op == "finish" and _done_mark(node.arg) not in available:
            needed.append(self.accumulate_of[node.arg.value])
        if node.op == "fetch":
            save = self.save_of.get(node.arg.name)
            if save is not None and f"#saved:{node.arg.name}" not in available:
                needed.append(save)
        return needed

    def closure(self, roots: Iterable[Node], available: frozenset[str]) -> list[Node]:
        """``roots`` and all they need that is not available, in program order."""
        found: dict[int, Node] = {}
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if id(node) in found:
                continue
            found[id(node)] = node
            waiting.extend(self.dependencies(node, available))
        return sorted(found.values(), key=lambda n: self.position[id(n)])

    # -- the recursion ------------------------------------------------------------------------
    def build(
        self, opened: frozenset[str], order: tuple[str, ...], roots: Sequence[Node], available: frozenset[str]
    ) -> tuple[list[Item], frozenset[str]]:
        """Items that perform ``roots`` with the axes ``opened`` in scope, and what is available after."""
        if not order:
            return self.straight(roots, available)
        group = self.plan.parallel if order[0] in self.plan.parallel else order[:1]
        rest = order[len(group) :]
        members = frozenset(group)
        needed = self.closure(roots, available)
        if not any(node.axes & members for node in needed):
            return self.build(opened, rest, roots, available)
        items, outside_kept = self.keep_outside(needed, opened, members, rest, available)
        if outside_kept:
            needed = self.closure(roots, available)
        stages = self.stages(needed, members, available)
        passes = self.passes(needed, stages, members, roots)
        late = self.last_stores(needed, stages, passes, members, available)
        declarations, overridden = self.keep_between_passes(passes, opened, members, rest, available)
        items += declarations
        for stage in range(max(stages.values()) + 1):
            outside = [n for n in needed if stages[id(n)] == stage and not n.axes & members and n not in late]
            wanted = [n for n in outside if n.op in EFFECTS or n.axes <= opened]
            if wanted:
                more, available = self.build(opened, rest, wanted, available)
                items += more
            if passes.get(stage):
                more, available = self.loops(opened, group, rest, passes[stage], available)
                items += more
        within = [n for n in late if n.axes & members]
        if within:
            more, available = self.loops(opened, group, rest, within, available)
            items += more
        behind = [n for n in late if not n.axes & members]
        if behind:
            more, available = self.build(opened, rest, behind, available)
            items += more
        self.by_name.update(overridden)
        self.by_name.update(outside_kept)
        return items, available

    def straight(self, roots: Sequence[Node], available: frozenset[str]) -> tuple[list[Item], frozenset[str]]:
        needed = self.closure(roots, available)
        items: list[Item] = [Compute(node) for node in needed]
        return items, available | {node.out for node in needed if node.out}

    def stages(
        self, needed: list[Node], members: frozenset[str], available: frozenset[str]
    ) -> dict[int, int]:
        """In which pass over the loop each node runs (inside), or after how many passes (outside)."""
        stages: dict[int, int] = {}
        for node in needed:
            inside = bool(node.axes & members)
            stage = 0
            for dependency in self.dependencies(node, available):
                before = stages[id(dependency)]
                if dependency.axes & members and (not inside or self.is_barrier(node, members)):
                    before += 1
                stage = max(stage, before)
            stages[id(node)] = stage
        return stages

    def is_barrier(self, node: Node, members: frozenset[str]) -> bool:
        """A fetch of what other iterations of this loop saved."""
        return node.op == "fetch" and not members <= node.axes

    def passes(
        self, needed: list[Node], stages: Mapping[int, int], members: frozenset[str], roots: Sequence[Node]
    ) -> dict[int, list[Node]]:
        """Per stage, the nodes for whose sake there is a pass over the loop."""
        wanted = {id(r) for r in roots}
        passes: dict[int, list[Node]] = {}
        for node in needed:
            if not node.axes & members or node.op not in EFFECTS:
                continue
            finished_inside = node.op == "accumulate" and not members & set(node.arg.reduced)
            if finished_inside and id(node) not in wanted:
                continue
            passes.setdefault(stages[id(node)], []).append(node)
        return passes

    def last_stores(
        self,
        needed: list[Node],
        stages: Mapping[int, int],
        passes: dict[int, list[Node]],
        members: frozenset[str],
        available: frozenset[str],
    ) -> list[Node]:
        """Stores to a buffer that a pass after them reads, to compute again what was made of it: they come
        last. Takes those inside the loop from their passes."""
        late: list[Node] = []
        loaded = {n.arg[0] for n in needed if n.op == "load"}
        for node in needed:
            if node.op != "store" or node.arg[0] not in loaded:
                continue
            inside = bool(node.axes & members)
            for stage, roots in passes.items():
                if stage < stages[id(node)] + inside:
                    continue
                behind = self.closure(roots, available)
                if any(n.op == "load" and n.arg[0] == node.arg[0] for n in behind):
                    late.append(node)
                    break
        for roots in passes.values():
            roots[:] = [node for node in roots if node not in late]
        return late

    def loops(
        self,
        opened: frozenset[str],
        group: tuple[str, ...],
        rest: tuple[str, ...],
        roots: list[Node],
        available: frozenset[str],
    ) -> tuple[list[Item], frozenset[str]]:
        """One pass: a loop for each subset of the group's axes that its roots use."""
        subsets: dict[tuple[str, ...], list[Node]] = {}
        for node in roots:
            used = tuple(a for a in group if a in node.axes)
            subsets.setdefault(used, []).append(node)
        items: list[Item] = []
        finished: set[str] = set()
        for used, members in subsets.items():
            more, marks = self.one_loop(opened, used, rest, members, available)
            items += more
            finished |= marks
        return items, available | finished

    def one_loop(
        self,
        opened: frozenset[str],
        used: tuple[str, ...],
        rest: tuple[str, ...],
        roots: list[Node],
        available: frozenset[str],
    ) -> tuple[list[Item], set[str]]:
        items: list[Item] = []
        here: list[Accumulator] = []
        for node in roots:
            if node.op == "accumulate" and node.arg.value not in self.declared:
                axes = tuple(a for a in rest if a in node.arg.axes)
                items.append(Declare(node.arg, axes))
                here.append(node.arg)
                self.declared.add(node.arg.value)
        inner, _ = self.build(opened | set(used), rest, roots, available)
        carries = tuple(
            (node, tuple(a for a in rest if a in node.axes))
            for node in self.closure(roots, available)
            if node.op == "scan" and node.arg[1] in used
        )
        items.append(Loop(used, self.kind(used), tuple(inner), carries))
        marks = {_done_mark(acc) for acc in here}
        marks |= {f"#saved:{n.arg.name}" for n in roots if n.op == "save"}
        items += [Done(acc) for acc in here]
        self.declared -= {acc.value for acc in here}
        return items, marks

    def kind(self, used: tuple[str, ...]) -> str:
        if used[0] in self.plan.parallel:
            return "parallel"
        return "vector" if used == (self.plan.vector,) else "serial"

    # -- values kept between passes -----------------------------------------------------------
    def keep_between_passes(
        self,
        passes: dict[int, list[Node]],
        opened: frozenset[str],
        members: frozenset[str],
        rest: tuple[str, ...],
        available: frozenset[str],
    ) -> tuple[list[Item], dict[str, Node]]:
        """Choose expensive values that several passes need; save each in the first and fetch it in the
        later ones. Returns declarations and the nodes to restore in ``by_name`` afterwards."""
        declarations: list[Item] = []
        overridden: dict[str, Node] = {}
        if len(passes) < 2 or members & set(self.plan.parallel) or not self.plan.keep:
            return declarations, overridden
        seen: dict[str, int] = {}
        for stage in sorted(passes):
            while True:
                again = [
                    node
                    for node in self.computed_in_pass(passes[stage], members, available)
                    if node.out in seen and self.worth_keeping(node, opened, members, rest, available)
                ]
                if not again:
                    break
                # the last one: what it is made of may not be needed any more
                node = again[-1]
                declarations.append(self.keep(node, passes[seen[node.out]], members, rest))
                overridden[node.out] = node
            for node in self.computed_in_pass(passes[stage], members, available):
                if node.out and node.op not in ("fetch", "finish"):
                    seen.setdefault(node.out, stage)
        return declarations, overridden

    def computed_in_pass(
        self, roots: list[Node], members: frozenset[str], available: frozenset[str]
    ) -> list[Node]:
        """What a pass computes in program order: not what the reductions that it reads the results of have
        computed in earlier passes."""
        values = [self.by_name[node.args[0]] if node.op == "save" else node for node in roots]
        inside = self.closure_inside(values, members, available)
        return sorted(inside, key=lambda n: self.position[id(n)])

    def keep_outside(
        self,
        needed: list[Node],
        opened: frozenset[str],
        members: frozenset[str],
        rest: tuple[str, ...],
        available: frozenset[str],
    ) -> tuple[list[Item], dict[str, Node]]:
        """Choose expensive values that do not change in this loop but over a loop inside it: each is computed
        before, in a loop of its own. Returns as :meth:`keep_between_passes` does."""
        declarations: list[Item] = []
        overridden: dict[str, Node] = {}
        if members & set(self.plan.parallel) or not self.plan.keep or not self.nest.reduced():
            return declarations, overridden
        used = {name for node in needed if node.axes & members for name in node.args}
        for node in needed:
            if node.out not in used or node.axes & members or node.axes <= opened:
                continue
            if node.op in _CHEAP or not self.fits(node, opened, rest):
                continue
            if self.cost_outside(node, opened, available) > OUTSIDE_COST:
                declarations.append(self.keep(node, [], members, rest))
                overridden[node.out] = node
        return declarations, overridden

    def cost_outside(self, node: Node, opened: frozenset[str], available: frozenset[str]) -> int:
        """Operations of a node that its loops repeat, up to finished reductions."""
        cost = 0
        seen: set[str] = set()
        waiting = [node]
        while waiting:
            current = waiting.pop()
            if current.out in seen or current.op in _CHEAP or current.axes <= opened:
                continue
            seen.add(current.out)
            row = SCALARS.get(current.op)
            cost += row.cost if row is not None else 1
            waiting += [self.by_name[name] for name in current.args if name not in available]
        return cost

    def fits(self, node: Node, opened: frozenset[str], rest: tuple[str, ...]) -> bool:
        """Whether a node's values over the loops not opened yet fit into a local array."""
        if not node.axes <= opened | set(rest):
            return False
        total = 1
        for name in node.axes - opened:
            axis = self.nest.axes[name]
            size = axis.most if axis.static is None else axis.static
            if not size and axis.static is None:
                return False
            total *= size
        return total <= LOCAL_ELEMENTS

    def keep(
        self, node: Node, first_pass: list[Node], members: frozenset[str], rest: tuple[str, ...]
    ) -> DeclareArray:
        axes = tuple(a for a in (*sorted(members), *rest) if a in node.axes)
        array = LocalArray(f"kept{self.arrays}_{node.out}", node.dtype, axes)
        self.arrays += 1
        place = self.position[id(node)]
        # in the first pass: compute under another name, save, fetch (which the C compiler forwards)
        source = Node(f"{node.out}_c", node.op, node.args, node.axes, node.arg, node.dtype)
        save = Node("", "save", (source.out,), node.axes, array, node.dtype)
        fetch = Node(node.out, "fetch", (), node.axes, array, node.dtype)
        for later, made in enumerate((source, save, fetch)):
            self.extra.append(made)  # alive as long as positions are keyed by id
            self.position[id(made)] = (*place, later)
        first_pass.append(save)
        self.by_name[source.out] = source
        self.by_name[node.out] = fetch
        self.save_of[array.name] = save
        return DeclareArray(array)

    def worth_keeping(
        self,
        node: Node,
        opened: frozenset[str],
        members: frozenset[str],
        rest: tuple[str, ...],
        available: frozenset[str],
    ) -> bool:
        if not node.out or node.op in _CHEAP or not node.axes & members:
            return False
        if not self.fits(node, opened, (*members, *rest)):
            return False
        cost = 0
        for needed in self.closure_inside([node], members, available):
            if needed.op in ("accumulate", "finish", "scan", "gather", "scatter"):
                return False
            row = SCALARS.get(needed.op)
            cost += row.cost if row is not None else 1
            if needed.dtype in _HALVES:
                cost += ROUNDING_COST if row is not None else WIDENING_COST
        return cost > RECOMPUTE_COST

    def closure_inside(
        self, roots: Iterable[Node], members: frozenset[str], available: frozenset[str]
    ) -> list[Node]:
        """The part of the closure that is computed in the loop over ``members``."""
        found: dict[int, Node] = {}
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if id(node) in found or not node.axes & members or node.op == "save":
                continue
            found[id(node)] = node
            waiting.extend(self.dependencies(node, available))
        return list(found.values())


def build(nest: Nest, plan: Plan, roots: Sequence[Node] | None = None) -> list[Item]:
    """The loop tree that performs every store, scatter and turn of ``nest`` (or just ``roots``)."""
    builder = _Builder(nest, plan)
    if roots is None:
        roots = [node for node in nest.nodes if node.op in ("store", "scatter", "turn")]
    missing = {axis for node in nest.nodes for axis in node.axes} - set(plan.order)
    if missing:
        raise LoweringFault(f"no loop is planned for axes {sorted(missing)}")
    items, _ = builder.build(frozenset(), plan.order, roots, frozenset())
    return items


def all_items(items: Iterable[Item]) -> Iterator[Item]:
    """Those in loops, too."""
    for item in items:
        yield item
        if isinstance(item, Loop):
            yield from all_items(item.items)


def nodes_behind(items: Iterable[Item], targets: list[Node]) -> list[Node]:
    """The nodes of a loop that the arguments of ``targets`` need, in order."""
    nodes = [i.node for i in items if isinstance(i, Compute)]
    saves = {n.arg.name: n for n in nodes if n.op == "save"}
    wanted = {a for t in targets for a in t.args}
    chosen: list[Node] = []
    for node in reversed(nodes):
        is_source = node.op == "save" and node.arg.name in wanted
        if node.out in wanted or is_source:
            chosen.append(node)
            wanted |= set(node.args)
            if node.op == "fetch" and node.arg.name in saves:
                wanted.add(node.arg.name)
    return chosen[::-1]


def nodes_filling(acc: Accumulator, items: list[Item]) -> list[Node]:
    """The nodes of the innermost loop that adds to ``acc``."""
    for item in items:
        if not isinstance(item, Loop):
            continue
        nodes = [i.node for i in item.items if isinstance(i, Compute)]
        if any(n.op == "accumulate" and n.arg.value == acc.value for n in nodes):
            return nodes
        below = nodes_filling(acc, list(item.items))
        if below:
            return below
    return []


def used_names(item: Item) -> tuple[str, ...]:
    """The values that an item reads."""
    return item.node.args if isinstance(item, Compute) else ()
