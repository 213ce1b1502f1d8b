"""Updates: writing a region of a value's memory, in place where the old contents are not needed again.

A graph that can raise writes nothing to its inputs before the last point that can raise, and a value that
has later readers is never overwritten: both are decided here, in the order of the graph.
"""

from __future__ import annotations

from ...device import CPU
from ...errors import LoweringError
from ...graph.ir import same_shape
from ...prims import opdef
from ...symbolic.integers import Dim, hint, product
from ..fusion.fuse import Cluster, Root
from ..loops.dependences import Read, ReadWalker, positions_of, read_all, walk_address
from ..loops.index import AxisVar, Index, axis_vars, canonical
from .state import State
from .values import Place, Storage, Value, place_of, span, type_place

# Views of a base through which it may be written in place.
_DENSE_VIEWS = frozenset(("transpose", "reshape", "strided_slice"))


class Updates:
    """Lowers ``Update`` and ``Scatter`` nodes and the graph's mutations."""

    def __init__(self, lowering: State) -> None:
        self.lowering = lowering

    # -- nodes --------------------------------------------------------------------------------
    def lower(self, value: Value) -> None:
        """Memory holding the base with the update applied."""
        base, source = value.inputs[:2]
        scatter = value.row is not None and isinstance(value.row.lower, opdef.Scatter)
        if self._may_overwrite(value, base):
            self._force_pending(base.root, value.position)
            value.place = place_of(base)
        else:
            self._copy_base(value, base)
        assert value.place is not None
        if hint(product(source.shape)) == 0 and all(isinstance(d, int) for d in source.shape):
            return
        if scatter:
            self._scatter(value, source, value.place)
        else:
            self._region(value, source, value.place)

    def _may_overwrite(self, value: Value, base: Value) -> bool:
        root = base.root
        # uses are in the order of the graph
        if (root.uses and root.uses[-1].position > value.position) or root.output is not None:
            return False
        if not self._dense(base):
            return False
        self.lowering.need_memory(base)
        assert root.place is not None
        storage = root.place.storage
        if storage.role in ("constant", "output") or root.borrowed:
            return False
        if storage.role != "input":
            return True
        # a scatter itself looks at all positions before it writes
        return storage.number in self.lowering.mutated and self._nothing_raises_after(value)

    def _nothing_raises_after(self, value: Value) -> bool:
        """Whether no node after an update can raise; positions that are known by now are looked at now."""
        lowering = self.lowering
        if value.position >= lowering.last_raise:
            return True
        later = [other for other in lowering.raisers if other.position > value.position]
        if not all(_positions_known(other, value.position) for other in later):
            return False
        if lowering.graph.device == CPU:  # a GPU's positions are device assertions
            for other in later:
                self._check_positions(other)
        lowering.last_raise = value.position
        return True

    def _check_positions(self, value: Value) -> None:
        """Look at the positions of a gather or scatter that comes later."""
        dims = axis_vars(_over(value).shape)
        indices = positions_of(value)

        def visit(walker: ReadWalker) -> None:
            walk_address(value, indices, canonical(dims), walker.walk)

        root = Root("check", value, dims, read_all(self.lowering, visit), raises=True)
        root.loc = value.node.loc if value.node is not None else None
        self.lowering.fuser.place(root)

    def _dense(self, base: Value) -> bool:
        while base.kind == "view":
            if base.row is None or base.row.name not in _DENSE_VIEWS:
                return False
            base = base.inputs[0]
        return True

    def _force_pending(self, root: Value, position: int) -> None:
        """Compute now what would read the old contents later, or raise after the overwriting."""
        lowering = self.lowering
        lowering.waiting_to_raise[:] = [value for value in lowering.waiting_to_raise if value.inline]
        found = {*lowering.waiting.get(root, ()), *lowering.waiting_to_raise}
        for value in sorted(found, key=lambda value: value.position):
            if value.inline and any(u.position > position for u in value.uses):
                lowering.materialise(value)

    def _copy_base(self, value: Value, base: Value) -> None:
        if value.row is not None and value.row.name == "update_strided":
            place = self._same_memory(value, base)
        else:
            place = self.lowering.give_memory(value)
        if not _is_empty(base.root):
            self.lowering.write(base, place, value.shape)

    def _same_memory(self, value: Value, base: Value) -> Place:
        """Memory in the base's own layout, which the strides of the window refer to."""
        strides = base.type.strides
        first: Dim = 0
        for size, stride in zip(base.shape, strides):
            if hint(stride) < 0:
                first = first - (size - 1) * stride
        storage = Storage(value.dtype, span(base.shape, strides), "temp")
        value.place = Place(storage, strides, first)
        return value.place

    def _region(self, value: Value, source: Value, place: Place) -> None:
        dims = axis_vars(source.shape)
        target, index = self._window(value, place, dims)
        root = self._write_root(source, dims, target, index)
        if self._overlaps(root) or (root.raises and target.storage.role == "input"):
            root = self._write_root(self.lowering.snapshot(source), dims, target, index)
        root.loc = value.node.loc if value.node is not None else None
        self.lowering.fuser.place(root)

    def _write_root(self, source: Value, dims: tuple[AxisVar, ...], target: Place, index: Index) -> Root:
        reads = read_all(self.lowering, lambda walker: walker.walk(source, canonical(dims)))
        root = Root("write", source, dims, reads, target=target, target_index=index)
        inner = source.root
        if inner.inline:
            root.weight = inner.weight + 1
            root.cost = inner.cost + 1
            root.raises = inner.raises
        return root

    def _window(self, value: Value, place: Place, dims: tuple[AxisVar, ...]) -> tuple[Place, Index]:
        """The region as a place and the index there of the region's element ``dims``."""
        assert value.row is not None
        assert isinstance(value.row.lower, opdef.Update)
        params = value.params
        if value.row.name == "update_strided":
            if not same_shape(place.strides, value.inputs[0].type.strides):
                raise LoweringError("update_strided of a base in another layout")
            window = Place(place.storage, tuple(params["strides"]), place.offset + params["offset"])
            return window, canonical(dims)
        view = self.lowering.table[value.row.lower.view]
        assert isinstance(view.lower, opdef.View)
        assert view.lower.index_map is not None
        base_type = value.inputs[0].type
        return place, tuple(view.lower.index_map(base_type, canonical(dims), **params))

    def _overlaps(self, root: Root) -> bool:
        """Whether the update reads what it overwrites, elsewhere than at the same position."""
        assert root.target is not None
        address = root.target.address(root.target_index)
        return any(r.address != address for r in root.reads if _same_storage(r, root.target.storage))

    def _scatter(self, value: Value, source: Value, place: Place) -> None:
        dims = axis_vars(source.shape)
        index = canonical(dims)

        def visit(walker: ReadWalker) -> None:
            walker.walk(source, index)
            walk_address(value, positions_of(value), index, walker.walk)

        reads = read_all(self.lowering, visit)
        if any(_same_storage(r, place.storage) for r in reads):
            # read what is about to be overwritten first
            source, *indices = (self.lowering.snapshot(v) for v in value.inputs[1:])
            value.inputs = (value.inputs[0], source, *indices)
            reads = read_all(self.lowering, visit)
        root = Root("scatter", value, dims, reads, target=place, raises=True)
        root.loc = value.node.loc if value.node is not None else None
        self.lowering.fuser.place(root)

    # -- mutations ----------------------------------------------------------------------------
    def finish_mutations(self) -> None:
        """Bring every mutated input's new value into its memory, last."""
        lowering = self.lowering
        left: list[tuple[int, Value]] = []
        for number, var in lowering.graph.mutations:
            value = lowering.values[var.name]
            if not self._in_place_already(value, lowering.inputs[number], number):
                left.append((number, self._detach(value)))
        copies = [(n, v) for n, v in left if not self._write_directly(n, v)]
        for number, value in copies:
            target = type_place(
                lowering.values[lowering.graph.inputs[number].var.name], lowering.inputs[number]
            )
            lowering.write(value, target, value.shape)

    def _in_place_already(self, value: Value, storage: Storage, number: int) -> bool:
        if value.root.place is None or value.root.place.storage is not storage or value.root.borrowed:
            return False
        place = place_of(value)
        own = self.lowering.graph.inputs[number].var.type
        at_start = isinstance(place.offset, int) and place.offset == 0
        return at_start and same_shape(place.strides, own.strides)

    def _detach(self, value: Value) -> Value:
        """The value, or a snapshot of it where it reads an input that is to be overwritten or may raise."""
        lowering = self.lowering
        if value.root is value and value.home is not None:
            return value
        reads = read_all(lowering, lambda walker: walker.walk(value, canonical(value.axes)))
        storages = [lowering.inputs[k] for k in lowering.mutated]
        touches = any(_same_storage(r, s) for r in reads for s in storages)
        return lowering.snapshot(value) if touches or value.root.raises else value

    def _write_directly(self, number: int, value: Value) -> bool:
        """Let the cluster that computes the new value write it to the input's memory, if nothing reads
        the old contents afterwards and nothing can raise afterwards."""
        storage = self.lowering.inputs[number]
        home = self.lowering.fuser.cluster_of(value)
        if home is None or value.root is not value or value.place is None:
            return False
        temp = value.place.storage
        own = self.lowering.graph.inputs[number].var.type
        if temp.role != "temp" or len(temp.writes) != 1 or not self._clear_after(storage, home):
            return False
        if temp.reads and not same_shape(own.strides, value.type.strides):
            return False
        place = Place(storage, own.strides, 0)
        if not self._same_positions(storage, home, place.address(value.canon), value):
            return False
        value.place = place
        storage.writes.append(home.position)
        storage.reads.extend(temp.reads)
        home.buffers.add(id(storage))
        home.overwrites |= bool(home.reduced)
        self.lowering.fuser.input_writes.append(home.position)
        return True

    def _clear_after(self, storage: Storage, home: Cluster) -> bool:
        here = home.position
        raising = any(p >= here for p in self.lowering.fuser.raising)
        read_later = any(p > here for p, _ in storage.reads)
        return not raising and not read_later and not storage.writes

    def _same_positions(self, storage: Storage, home: Cluster, address: object, value: Value) -> bool:
        here = [a for p, a in storage.reads if p == home.position]
        if not here:
            return True
        if home.reduced:
            full = value.kind not in ("reduce", "contract")
            # in the last pass, or the only one
            last = value.rank == max(r.rank for r in home.roots)
            return full and (last or _is_only_pass(home, value)) and all(a == address for a in here)
        return all(a == address for a in here)


def _is_only_pass(home: Cluster, value: Value) -> bool:
    """Whether everything over all axes of a cluster, ``value`` too, is computed in one pass."""
    whole = [root for root in home.roots if not root.parallel_level]
    return any(root.value is value for root in whole) and all(root.rank == 0 for root in whole)


def _same_storage(read: Read, storage: Storage) -> bool:
    return read.root.place is not None and read.root.place.storage is storage


def _over(value: Value) -> Value:
    """What a gather's or scatter's address function runs over."""
    return value.inputs[1] if value.kind == "update" else value


def _positions_known(value: Value, position: int) -> bool:
    """Whether what a node looks at is known before ``position``."""
    if value.row is None or not isinstance(value.row.lower, opdef.Gather | opdef.Scatter):
        return False
    return all(index.root.position < position for index in positions_of(value))


def _is_empty(value: Value) -> bool:
    return value.node is not None and value.node.op == "empty"
