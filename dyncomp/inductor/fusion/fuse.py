"""Which computations share a loop nest.

Steps (clusters and library calls) are in a total order, the order of execution. A new computation joins
an existing cluster or opens one at the end; it may join any cluster that does not come before what it
reads, so the order stays right without searching for cycles, and fusion is linear in the size of the
graph. Vertical: a reader joins its producer's cluster where it reads the producer at the producer's own
index. Horizontal: computations over equal axes that share memory, or are small, join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...device import CPU
from ...dtypes import bfloat16, bool_, float16
from ...graph.ir import Loc, same_shape
from ...symbolic.integers import Dim, SymInt, hint, product, same
from ..loops.dependences import Read
from ..loops.index import AxisVar, Expr, Index, at_most, axis_expr, value_range
from ..lowering.values import Place, Storage, Value, type_place

MAX_WEIGHT = 96
MAX_BUFFERS = 20
HORIZONTAL_CANDIDATES = 4
# Windows of one array are compared with one another up to so many.
MAX_WINDOWS = 32
# Below this many points a kernel's launch costs more than its work: fuse whatever fits.
SMALL_POINTS = 16384
# What costs more than this is not computed step by step behind a scan, but in vectors.
STEP_COST = 4.0
# Of so many rows of at most so many columns functions are computed in vectors, behind a reduction of each
# row, if that costs as much as an expensive one.
MANY_ROWS = 64
SHORT_ROW = 1024
VECTOR_COST = 10.0
# A kernel with fewer parallel iterations than this splits its reductions over the threads, and so
# cannot use their results in the same loop nest.
FEW_PARALLEL = 24


@dataclass(eq=False)
class Root:
    """One computation over the axes ``dims``.

    ``kind``: ``"compute"`` (of ``value``), ``"write"`` (of ``value`` at ``source_index`` to ``target`` at
    ``target_index``), ``"scatter"`` (``value`` is the update) or ``"check"`` (of the positions of
    ``value``, a gather or scatter to come).
    ``reduced``: names of the axes that are reduced or scanned.
    """

    kind: str
    value: Value
    dims: tuple[AxisVar, ...]
    reads: list[Read]
    reduced: frozenset[str] = frozenset()
    scan: bool = False
    target: Place | None = None
    target_index: Index = ()
    weight: int = 1
    cost: float = 1.0
    raises: bool = False
    loc: Loc | None = None
    mapping: dict[str, Expr] = field(default_factory=dict)
    parallel_level: bool = False
    rank: int = 0

    @property
    def leaves(self) -> frozenset[int]:
        """Identities of the values that are read, not computed."""
        return frozenset(id(r.root) for r in self.reads)


@dataclass(eq=False)
class Cluster:
    """A kernel in the making."""

    position: int
    axes: tuple[AxisVar, ...]
    reduced: frozenset[str] = frozenset()
    roots: list[Root] = field(default_factory=list)
    weight: int = 0
    buffers: set[int] = field(default_factory=set)
    exclusive: bool = False
    # runs along an axis in order: what reads its values, and does little with them, may join
    scans: bool = False
    raises: bool = False
    # reads what it overwrites, beside reductions: there must not be a second pass
    overwrites: bool = False

    @property
    def points(self) -> int:
        return hint(product(a.size for a in self.axes))

    @property
    def parallel_axes(self) -> tuple[AxisVar, ...]:
        return tuple(a for a in self.axes if a.name not in self.reduced)

    @property
    def is_split(self) -> bool:
        """Whether reductions run as blocks spread over the threads."""
        return splits(self.axes, self.reduced)


@dataclass(eq=False)
class LibraryCall:
    """A step that is not a loop nest: an extern op (``kind`` ``"extern"``) or a BLAS call (``"blas"``)."""

    position: int
    kind: str
    value: Value
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    detail: Any = None
    # what it reads or writes, once all places are known (``epilogue.touched``)
    storages: tuple[Storage, ...] | None = None


StepItem = Cluster | LibraryCall


def splits(axes: Sequence[AxisVar], reduced: frozenset[str]) -> bool:
    if not reduced:
        return False
    total = hint(product(a.size for a in axes))
    parallel = hint(product(a.size for a in axes if a.name not in reduced))
    return total > SMALL_POINTS and parallel < FEW_PARALLEL


def _size_key(size: Dim) -> Any:
    return size.key if isinstance(size, SymInt) else size


def proper(dims: Sequence[AxisVar]) -> list[AxisVar]:
    """The axes that are not of size 1."""
    return [d for d in dims if not (isinstance(d.size, int) and d.size == 1)]


class Fuser:
    """Owns the steps and puts roots into clusters."""

    def __init__(self) -> None:
        self.steps: list[StepItem] = []
        self._by_sizes: dict[Any, list[Cluster]] = {}
        self.input_writes: list[int] = []
        self.raising: list[int] = []

    # -- entry --------------------------------------------------------------------------------
    def place(self, root: Root) -> Cluster:
        """Put a root into a cluster; fills ``root.mapping`` (its axes in the cluster's)."""
        for cluster in self._candidates(root):
            mapping = self._try(cluster, root)
            if mapping is not None:
                self._join(cluster, root, mapping)
                return cluster
        return self._open(root)

    def cluster_of(self, value: Value) -> Cluster | None:
        """The cluster that computes a value."""
        if value.home is None:
            return None
        cluster = self.steps[value.home.position]
        assert isinstance(cluster, Cluster)
        return cluster

    def add_call(
        self, kind: str, value: Value, operands: Sequence[Value], results: Sequence[Value]
    ) -> LibraryCall:
        call = LibraryCall(len(self.steps), kind, value, tuple(operands), tuple(results))
        self.steps.append(call)
        for operand in operands:
            place = operand.root.place
            assert place is not None
            place.storage.reads.append((call.position, None))
        return call

    def store(self, value: Value, storage: Storage | None = None) -> None:
        """Have the home of a computed value write it to memory."""
        if value.place is not None:
            return
        assert value.home is not None
        if storage is None:
            storage = Storage(value.dtype, product(value.shape), "temp")
        storage.writes.append(value.home.position)
        value.place = type_place(value, storage)
        value.home.buffers.add(id(storage))

    def _provide(self, read: Read, reader: Root) -> None:
        """Have a value in memory where ``reader`` can read it: where its own kernel writes it as part of
        something else, if it is still there, before memory of its own."""
        value = read.root
        if value.place is None:
            window = written_window(value)
            if window is None or not _may_read_there(read, reader, window):
                self.store(value)
                return
            value.place = window
            value.borrowed = True
        elif value.borrowed and not _untouched(value, value.place.storage):
            self.own_memory(value)

    def own_memory(self, value: Value) -> None:
        """Give a value that is read in memory written for something else memory of its own."""
        value.borrowed = False
        value.place = None
        own = Storage(value.dtype, product(value.shape), "temp")
        # those who read it so far will read it here too
        own.reads = [(step.position, None) for step in self.steps if _reads(step, value)]
        self.store(value, own)

    # -- candidates ---------------------------------------------------------------------------
    def _earliest(self, root: Root) -> int:
        """The first step at which everything that is read exists (as values of that very step)."""
        first = 0
        for read in root.reads:
            first = max(first, read.since)
            if read.root.home is not None:
                first = max(first, read.root.home.position)
            elif read.root.place is not None:
                first = max(first, max(read.root.place.storage.writes, default=-1) + 1)
        if root.target is not None:
            storage = root.target.storage
            first = max(first, *self._other_writes(root), *(p for p, _ in storage.reads), 0)
            if storage.role == "input":
                first = max(first, max(self.raising, default=-1) + 1)
        if root.raises:
            first = max(first, max(self.input_writes, default=-1) + 1)
        return first

    def _other_writes(self, root: Root) -> list[int]:
        """The steps that may write what a root writes: not those that write elsewhere in the same array."""
        assert root.target is not None
        writes = root.target.storage.writes
        if len(writes) > MAX_WINDOWS:
            return writes
        steps = [self.steps[position] for position in writes]
        return [
            step.position
            for step in steps
            if not (isinstance(step, Cluster) and _disjoint_writes(step, root))
        ]

    def _candidates(self, root: Root) -> list[Cluster]:
        if root.kind in ("scatter", "check") or root.scan:
            return []
        first = self._earliest(root)
        found: list[Cluster] = []
        for read in root.reads:
            home = self.cluster_of(read.root)
            if home is not None and home.position >= first and home not in found:
                found.append(home)
        same_axes = self._by_sizes.get(tuple(_size_key(d.size) for d in proper(root.dims)), ())
        for cluster in reversed(same_axes[-HORIZONTAL_CANDIDATES:]):
            if cluster.position >= first and cluster not in found:
                found.append(cluster)
        return found

    # -- joining ------------------------------------------------------------------------------
    def _try(self, cluster: Cluster, root: Root) -> dict[str, Expr] | None:
        if cluster.exclusive or cluster.weight + root.weight > MAX_WEIGHT:
            return None
        if len(cluster.buffers | _buffers_of(root)) > MAX_BUFFERS:
            return None
        inside = [r for r in root.reads if r.root.home is cluster]
        if cluster.scans and not _may_follow_scan(cluster, root, inside):
            return None
        bound = _bind(inside, root.dims)
        if bound is None:
            return None
        mapping = self._complete(cluster, root, bound)
        if mapping is None:
            return None
        if not inside and not (_worthwhile(cluster, root) and _walk_alike(cluster, root)):
            return None
        if _is_row_by_row(cluster, root):
            return None
        if not _reads_match(inside, mapping) or not self._order_allows(cluster, root, mapping):
            return None
        return mapping if self._reductions_allow(cluster, root, mapping, inside) else None

    def _complete(self, cluster: Cluster, root: Root, bound: dict[str, AxisVar]) -> dict[str, Expr] | None:
        """Bind the remaining axes of the root, in order, to unused axes of equal size."""
        dims = proper(root.dims)
        if len(dims) == len(cluster.axes):
            targets = list(cluster.axes)
        elif cluster.reduced and len(dims) == len(cluster.parallel_axes) and not root.reduced:
            targets = list(cluster.parallel_axes)
        else:
            return None
        free = [a for a in targets if all(a.name != b.name for b in bound.values())]
        if len(free) + len(bound) != len(targets):
            return None
        complete: dict[str, Expr] = {}
        for d in dims:
            axis = bound.get(d.name)
            if axis is None:
                axis = free.pop(0)
            if not same(axis.size, d.size):
                return None
            complete[d.name] = axis_expr(axis)
        return complete

    def _order_allows(self, cluster: Cluster, root: Root, mapping: Mapping[str, Expr]) -> bool:
        here = cluster.position
        for read in root.reads:
            if read.root.home is not None:
                if read.root.home is not cluster and read.root.home.position >= here:
                    return False
            elif read.root.place is not None:
                if any(w >= here for w in read.root.place.storage.writes):
                    return False
        if root.raises and any(w >= here for w in self.input_writes):
            return False
        return root.target is None or self._write_allowed(cluster, root, mapping)

    def _write_allowed(self, cluster: Cluster, root: Root, mapping: Mapping[str, Expr]) -> bool:
        assert root.target is not None
        storage = root.target.storage
        here = cluster.position
        if any(w > here for w in self._other_writes(root)) or any(p > here for p, _ in storage.reads):
            return False
        if here in storage.writes and not _disjoint_writes(cluster, root):
            return False
        if storage.role == "input" and any(p >= here for p in self.raising):
            return False
        read_here = [address for p, address in storage.reads if p == here]
        read_here += [_mapped(r.address, mapping) for r in root.reads if _storage_of(r) is storage]
        if not read_here:
            return True
        if cluster.reduced and not _is_one_pass(cluster, root, mapping):
            return False
        address = root.target.address(root.target_index).substitute(mapping)
        return all(a is not None and a == address for a in read_here)

    def _reductions_allow(
        self, cluster: Cluster, root: Root, mapping: Mapping[str, Expr], inside: Sequence[Read]
    ) -> bool:
        reduced = _mapped_names(root.reduced, mapping)
        if reduced and cluster.reduced and reduced != cluster.reduced:
            return False
        if reduced and not cluster.reduced and not self._may_reduce(cluster, reduced):
            return False
        full = len(proper(root.dims)) == len(cluster.axes)
        rank = max((_rank_after(r.root) for r in inside), default=0)
        if full and rank and cluster.overwrites:
            return False
        merged = reduced or cluster.reduced
        return not (full and rank and splits(cluster.axes, merged))

    def _may_reduce(self, cluster: Cluster, reduced: frozenset[str]) -> bool:
        """Whether a cluster without reductions may get one: in-place writes stay with simple loops."""
        stored = {id(r.target.storage) for r in cluster.roots if r.target is not None}
        return not any(id(_storage_of(r)) in stored for root in cluster.roots for r in root.reads)

    def _join(self, cluster: Cluster, root: Root, mapping: dict[str, Expr]) -> None:
        root.mapping = mapping
        inside = [r for r in root.reads if r.root.home is cluster]
        root.parallel_level = len(proper(root.dims)) < len(cluster.axes)
        root.rank = max((_rank_after(r.root) for r in inside), default=0)
        reduced = _mapped_names(root.reduced, mapping)
        cluster.reduced = cluster.reduced | reduced
        self._enter(cluster, root)

    def _open(self, root: Root) -> Cluster:
        axes = tuple(AxisVar(f"i{k}", d.size) for k, d in enumerate(proper(root.dims)))
        cluster = Cluster(len(self.steps), axes)
        self.steps.append(cluster)
        root.mapping = {d.name: axis_expr(a) for d, a in zip(proper(root.dims), axes)}
        cluster.reduced = _mapped_names(root.reduced, root.mapping)
        cluster.exclusive = root.kind in ("scatter", "check")
        cluster.scans = root.scan
        self._enter(cluster, root)
        self._by_sizes.setdefault(tuple(_size_key(a.size) for a in axes), []).append(cluster)
        return cluster

    def _enter(self, cluster: Cluster, root: Root) -> None:
        """Record what joining means for memory and order."""
        cluster.roots.append(root)
        cluster.weight += root.weight
        for read in root.reads:
            if read.root.home is cluster:
                continue
            self._provide(read, root)
            place = read.root.place
            assert place is not None
            address = (
                place.address(read.index) if read.root.borrowed and read.index is not None else read.address
            )
            place.storage.reads.append((cluster.position, _mapped(address, root.mapping)))
            cluster.buffers.add(id(place.storage))
        if root.target is not None:
            storage = root.target.storage
            cluster.overwrites |= bool(cluster.reduced) and any(
                position == cluster.position for position, _ in storage.reads
            )
            storage.writes.append(cluster.position)
            cluster.buffers.add(id(storage))
            if storage.role == "input":
                self.input_writes.append(cluster.position)
        if root.raises:
            cluster.raises = True
            self.raising.append(cluster.position)


# -- pieces -----------------------------------------------------------------------------------
def _mapped(address: Expr | None, mapping: Mapping[str, Expr]) -> Expr | None:
    return None if address is None else address.substitute(mapping)


def _mapped_names(names: frozenset[str], mapping: Mapping[str, Expr]) -> frozenset[str]:
    found: set[str] = set()
    for name in names:
        if name in mapping:
            found |= mapping[name].axes()
    return frozenset(found)


def _storage_of(read: Read) -> Storage | None:
    return read.root.place.storage if read.root.place is not None else None


def _buffers_of(root: Root) -> set[int]:
    found = {id(_storage_of(r) or r.root) for r in root.reads}
    if root.target is not None:
        found.add(id(root.target.storage))
    return found


def _reads(step: StepItem, value: Value) -> bool:
    """Whether a step reads a value in memory."""
    if isinstance(step, LibraryCall):
        return any(operand.root is value for operand in step.operands)
    return step is not value.home and any(id(value) in root.leaves for root in step.roots)


def written_window(value: Value) -> Place | None:
    """The window that a value's own cluster writes it to, if nothing else has been written there since."""
    if not isinstance(value.home, Cluster):
        return None
    for root in value.home.roots:
        if root.kind != "write" or root.value is not value or root.target is None:
            continue
        address = root.target.address(root.target_index)
        storage = root.target.storage
        if address.is_affine and storage.dtype is value.dtype and _untouched(value, storage):
            return Place(storage, tuple(address.terms.get(d, 0) for d in root.dims), address.constant)
    return None


def _untouched(value: Value, storage: Storage) -> bool:
    """Whether nothing was written to memory after the cluster that computes a value."""
    assert value.home is not None
    return max(storage.writes, default=-1) <= value.home.position


def _may_read_there(read: Read, reader: Root, window: Place) -> bool:
    """Whether a root may read a value in a window: one that writes to the same memory only where it
    writes."""
    if read.index is None or not window.address(read.index).is_affine:
        return False
    if reader.target is None or reader.target.storage is not window.storage:
        return True
    return reader.kind == "write" and window.address(read.index) == reader.target.address(reader.target_index)


def _rank_after(value: Value) -> int:
    """How many reductions a reader of the value, in the value's own cluster, waits for."""
    return value.rank + 1 if value.kind in ("reduce", "contract") else value.rank


def _bind(inside: Sequence[Read], dims: Sequence[AxisVar]) -> dict[str, AxisVar] | None:
    """Which cluster axes the root's axes must be for its reads of values of that cluster to be at those
    values' own indices; ``None`` where they cannot be."""
    names = {d.name for d in dims}
    bound: dict[str, AxisVar] = {}
    for read in inside:
        if read.index is None:
            return None
        for mine, theirs in zip(read.index, read.root.canon):
            axis = theirs.single_axis
            if axis is None:
                continue
            d = mine.single_axis
            if d is None or d.name not in names:
                return None
            if bound.setdefault(d.name, axis) != axis:
                return None
    if len({a.name for a in bound.values()}) != len(bound):
        return None
    return bound


def _disjoint_writes(cluster: Cluster, root: Root) -> bool:
    """Whether a root writes elsewhere than every root of the cluster that writes to its storage."""
    assert root.target is not None
    for other in cluster.roots:
        value_place = other.value.place if other.kind == "compute" else other.target
        if value_place is None or value_place.storage is not root.target.storage:
            continue
        if other.target is None or not _disjoint(other, root):
            return False
    return True


def _disjoint(a: Root, b: Root) -> bool:
    """Whether two writes to windows of one array touch different elements, for certain."""
    assert a.target is not None
    assert b.target is not None
    same_array = same_shape(a.target.strides, b.target.strides) and same(a.target.offset, b.target.offset)
    if not same_array or len(a.target_index) != len(b.target_index):
        return False
    for x, y in zip(a.target_index, b.target_index):
        first, second = value_range(x), value_range(y)
        if first is None or second is None:
            continue
        if at_most(first[1] + 1, second[0]) or at_most(second[1] + 1, first[0]):
            return True
    return False


def _is_one_pass(cluster: Cluster, root: Root, mapping: Mapping[str, Expr]) -> bool:
    """Whether one pass over all axes computes everything that a cluster with reductions has and writes
    ``root`` too, so that nothing is read again after it was overwritten."""
    if len(proper(root.dims)) < len(cluster.axes):
        return False
    inside = [r.root for r in root.reads if r.root.home is cluster]
    whole = [r for r in cluster.roots if not r.parallel_level]
    return all(_rank_after(v) == 0 for v in inside) and all(r.rank == 0 for r in whole)


def _reads_match(inside: Sequence[Read], mapping: Mapping[str, Expr]) -> bool:
    for read in inside:
        assert read.index is not None
        at = tuple(e.substitute(mapping) for e in read.index)
        if at != tuple(read.root.canon):
            return False
    return True


# Types whose values in registers are others than those that a scan carries from step to step.
_NOT_AS_CARRIED = (float16, bfloat16, bool_)


def _may_follow_scan(cluster: Cluster, root: Root, inside: Sequence[Read]) -> bool:
    """Whether a root may be computed in the loop of a scan: at each of its steps, which are no vector where
    they are the innermost loop."""
    if not inside or root.reduced or len(proper(root.dims)) < len(cluster.axes):
        return False
    if any(r.root.dtype in _NOT_AS_CARRIED or r.root.type.device != CPU for r in inside):
        return False
    steps_are_lanes = bool(cluster.axes) and cluster.axes[-1].name not in cluster.reduced
    return steps_are_lanes or root.cost <= STEP_COST


def _is_row_by_row(cluster: Cluster, root: Root) -> bool:
    """Whether a root, in a cluster that reduces along rows, would be computed for one row at a time, where
    vectors of rows are faster: nothing that is made of it goes back to the rows' elements."""
    if not cluster.axes or cluster.axes[-1].name not in cluster.reduced or root.reduced or root.scan:
        return False
    rows = hint(product(a.size for a in root.dims))
    if len(proper(root.dims)) == len(cluster.axes) or rows < MANY_ROWS or root.value.widest > rows:
        return False
    short = cluster.points <= rows * SHORT_ROW
    return short and root.cost >= VECTOR_COST and root.value.type.device == CPU


def _worthwhile(cluster: Cluster, root: Root) -> bool:
    """Whether to fuse computations that do not feed each other: they share memory or are small."""
    if cluster.points <= SMALL_POINTS:
        return True
    return bool(cluster.buffers & _buffers_of(root))


def _walk_alike(cluster: Cluster, root: Root) -> bool:
    """Whether the innermost loop goes along memory, or across, in computations that do not feed each other:
    vectors of both would be put together element by element."""
    ways = {_goes_along(other) for other in (*cluster.roots, root)} - {None}
    return len(ways) < 2


def _goes_along(root: Root) -> bool | None:
    """Whether a root reads or writes neighbours in memory one after the other; ``None`` for neither."""
    dims = proper(root.dims)
    if not dims:
        return None
    addresses = [read.address for read in root.reads]
    if root.target is not None:
        addresses.append(root.target.address(root.target_index))
    steps = [a.terms.get(dims[-1], 0) for a in addresses if a is not None]
    steps = [step for step in steps if not same(step, 0)]
    return any(same(step, 1) or same(step, -1) for step in steps) if steps else None
