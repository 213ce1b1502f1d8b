"""What lowering of every kind shares: when a value is computed, and where it is kept."""

from __future__ import annotations

from typing import Any

from ...graph.ir import Graph, Node, Var, array_type
from ...prims.scalar import SCALARS
from ...prims.table import TABLE
from ...symbolic.integers import Dim, hint, product
from ..fusion.fuse import Cluster, Fuser, Root
from ..loops.dependences import reads_at, reads_inside
from ..loops.index import Index, axis_vars, canonical
from .values import Place, Storage, Table, Value, type_place

# A value whose readers repeat it in inner loops is computed once if it costs more than this.
REPEAT_COST = 1.5
# A value with several readers is computed by each if it costs at most this and reads at most one value.
SHARE_COST = 1.0
SCALAR_COST = 24.0
MAX_INLINE_WEIGHT = 64
# Costs of rows from which a function counts as such.
EXPENSIVE = 12
MODERATE = 4


class State:
    """The state of lowering one graph, and what every kind of op needs of it: putting values into clusters
    and into memory. ``fuser.steps`` are the steps so far, ``values`` the values by name, ``constants`` the
    arrays of constant storages, ``library`` the names of products and convolutions that a library makes."""

    def __init__(self, graph: Graph, table: Table, library: frozenset[str] = frozenset()) -> None:
        self.library = library
        self.graph = graph
        self.table = table
        self.fuser = Fuser()
        self.values: dict[str, Value] = {}
        self.constants: list[object] = []
        # values left to their readers, by what they read of memory; those that may raise
        self.waiting: dict[Value, list[Value]] = {}
        self.waiting_to_raise: list[Value] = []
        self.inputs: list[Storage] = []
        self.outputs: dict[int, Storage] = {}
        self.mutated = {index for index, _ in graph.mutations}
        # the last node that can raise: positions that were looked at before are known to be good
        self.last_raise = -1
        self.raisers: list[Value] = []  # all of these nodes, in order
        self.checked: set[tuple[Any, ...]] = set()

    def is_static(self, value: Value) -> bool:
        """Whether the shape is known."""
        return all(isinstance(d, int) for d in value.shape)

    def point(self, value: Value) -> None:
        """Leave a pointwise value to its readers, or give it a home."""
        _sum_up(value)
        if self._keeps_home(value):
            self.home_point(value)
        else:
            for leaf in value.leaves:
                self.waiting.setdefault(leaf, []).append(value)
            if value.raises:
                self.waiting_to_raise.append(value)

    def _keeps_home(self, value: Value) -> bool:
        if value.forced or value.weight > MAX_INLINE_WEIGHT:
            return True
        if value.raises and any(use.partial for use in value.uses):
            return True  # what nobody reads can still be out of bounds
        if value.points <= 1:
            return len(value.uses) > 1 and value.cost > SCALAR_COST
        if len(value.uses) == 1:
            (use,) = value.uses
            return use.repeats and use.points > 1.5 * value.points and value.cost > REPEAT_COST
        return not (value.cost <= SHARE_COST and value.loads <= 1)

    def home_point(self, value: Value) -> None:
        """Give a pointwise or gathered value a cluster of its own or of others."""
        dims = value.axes
        reads = reads_inside(self, value, canonical(dims))
        root = Root("compute", value, dims, reads, weight=value.weight, cost=value.cost, raises=value.raises)
        self.enter(root, value, canonical(dims))

    def enter(self, root: Root, value: Value, index: Index) -> Cluster:
        """Place a computing root; ``index``: the value's own index in the root's axes."""
        root.loc = value.node.loc if value.node is not None else None
        cluster = self.fuser.place(root)
        value.home = cluster
        value.canon = tuple(e.substitute(root.mapping) for e in index)
        value.rank = root.rank
        value.leaves = frozenset()
        if value.output is not None:
            self.fuser.store(value, self.output_storage(value, value.output))
        elif value.forced:
            self.fuser.store(value)
        return cluster

    def constant(self, value: Value, number: object) -> None:
        """Make of a value an array of one number."""
        params = (("shape", value.shape), ("value", number), ("dtype", value.dtype))
        value.node = Node(
            "full", (), params, (value.var,), value.node.loc if value.node is not None else None
        )
        value.row = self.table["full"]
        value.kind = "point"
        value.inputs = ()
        self.point(value)

    # -- memory -------------------------------------------------------------------------------
    def output_storage(self, value: Value, number: int) -> Storage:
        storage = Storage(value.dtype, product(value.shape), "output", number)
        self.outputs[number] = storage
        return storage

    def give_memory(self, value: Value) -> Place:
        """Memory for a value that is not computed by a cluster."""
        if value.output is not None:
            storage = self.output_storage(value, value.output)
        else:
            storage = Storage(value.dtype, product(value.shape), "temp")
        value.kind = "memory" if value.kind != "update" else value.kind
        value.place = type_place(value, storage)
        return value.place

    def materialise(self, value: Value) -> None:
        """Put a value that readers would compute into memory."""
        if value.inline:
            if not value.weight:
                _sum_up(value)
            self.home_point(value)
        if value.place is None:
            self.fuser.store(value)

    def need_memory(self, value: Value) -> None:
        """Have a value's root in memory."""
        root = value.root
        if root.place is None:
            self.materialise(root)
        elif root.borrowed:
            self.fuser.own_memory(root)

    def return_borrowed(self, value: Value) -> None:
        """Give a value that is read as part of something else memory of its own."""
        self.fuser.own_memory(value)

    def snapshot(self, value: Value) -> Value:
        """The same values in memory of their own, read now."""
        if value.inline and value.root is value:
            self.materialise(value)
            return value
        type = array_type(value.dtype, value.shape)
        copy = Value(
            Var(f"{value.var.name}_copy{len(self.fuser.steps)}", type), None, value.position, "point"
        )
        copy.inputs = (value,)
        copy.forced = True
        self.point(copy)
        return copy

    def write(self, value: Value, target: Place, shape: tuple[Dim, ...]) -> None:
        """Write all of a value to memory."""
        if hint(product(shape)) == 0 and all(isinstance(d, int) for d in shape):
            return
        dims = axis_vars(shape)
        index = canonical(dims)
        reads = reads_at(self, (value, index))
        weight, cost, raises = tree_of((value,))
        root = Root("write", value, dims, reads, target=target, target_index=index)
        root.weight = weight + 1
        root.cost = cost + 1
        root.raises = raises
        self.fuser.place(root)


def _function_cost(op: str) -> int:
    return SCALARS[op].cost if op in SCALARS else 0


def is_expensive(op: str) -> bool:
    """Whether an op takes a function of elements that is computed once rather than by each reader."""
    return _function_cost(op) >= EXPENSIVE


def own_cost(value: Value) -> float:
    """Rough scalar operations per element of the op itself."""
    name = value.node.op if value.node is not None else "copy"
    if is_expensive(name):
        return 10.0
    if _function_cost(name) >= MODERATE:
        return 3.0
    if value.kind == "gather":
        return 4.0
    if name in TABLE and TABLE[name].free:
        return 0.0
    return 4.0 if value.dtype.is_complex else 1.0


def _sum_up(value: Value) -> None:
    """Fill in the cost figures and leaves of a pointwise value."""
    weight, cost, raises = tree_of(value.inputs)
    value.weight = weight + 1
    value.cost = cost + own_cost(value)
    value.raises = raises or value.kind == "gather"
    loads = 0
    leaves: set[Value] = set()
    for source in {id(v.root): v.root for v in value.inputs}.values():
        if source.inline:
            loads += source.loads
            leaves |= source.leaves
        else:
            loads += 1
            leaves.add(source)
    value.loads = loads
    value.leaves = frozenset(leaves)


def tree_of(inputs: tuple[Value, ...]) -> tuple[int, float, bool]:
    """Weight, cost and whether it may raise, of what reading these values computes."""
    weight = 0
    cost = 0.0
    raises = False
    for root in {id(v.root): v.root for v in inputs}.values():
        if root.inline:
            weight += root.weight
            cost += root.cost
            raises = raises or root.raises
        else:
            weight += 1
    return weight, cost, raises
