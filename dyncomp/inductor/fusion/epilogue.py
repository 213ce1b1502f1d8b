"""Epilogues: a pointwise kernel that reads a matrix product runs on each tile of it, still in the cache.

The product moves down to the first kernel that reads it. That kernel is rewritten to cover one tile: its axes
become the tile's rows and columns, and what it reads of the product comes from the tile. Where nothing else
reads the product, it is never written to memory. Sizes must be known.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from ...dataclass import dataclass
from ...prims.scalar import SCALARS
from ...symbolic.integers import Dim, ShapeEnv, SymbolInfo, hint, product, same
from ..loops.loop_ir import Axis, Index, Kernel, Stmt
from ..lowering.contract import Product
from ..lowering.emit import Emitted
from ..lowering.values import Storage, storage_of
from ..schedule import SoftmaxRows
from .fuse import LibraryCall

SIMPLE = frozenset(("const", "load", "cast", "store", *SCALARS))
# Pointers that the function of a tile gets at most.
MAX_BUFFERS = 24
# Rows of a product of fewer elements than this are no vectors: a kernel of its own makes vectors of
# several rows.
NARROW = 8
NARROW_COST = 8
# The numbers of a tile, as the rewritten kernel's sizes and indices name them, with what is usual.
TILE_NUMBERS = {"number": 0, "row": 0, "rows": 6, "col": 0, "cols": 256, "tile_row": 256}


@dataclass(frozen=True)
class Tiled:
    """A kernel rewritten to cover a tile; its buffer ``source`` is the tile. ``private``: nothing else reads
    the product, so that it needs no memory. ``sink``: the buffer for what is made of rows (in a chain).
    ``hidden_after``: what is made of column ``row + hidden_after + 1`` and those behind it is 0. ``softmax``:
    the kernel makes only the scores of a softmax, in place, that the runtime makes."""

    kernel: Kernel
    storages: tuple[Storage, ...]
    source: int
    private: bool
    sink: int = -1
    hidden_after: int | None = None
    softmax: SoftmaxRows | None = None


@dataclass(eq=False)
class FusedProduct:
    """A matrix product with the kernel that finishes its tiles."""

    call: LibraryCall
    tiled: Tiled

    @property
    def storages(self) -> list[Storage]:
        """What the step reads or writes."""
        found = [storage_of(v) for v in self.call.operands]
        found += [s for k, s in enumerate(self.tiled.storages) if k != self.tiled.source]
        return found if self.tiled.private else [*found, target_of(self.call)]


@dataclass(eq=False)
class Chained:
    """A product, a kernel over its rows, and the product with what that makes of them (see ``chain``)."""

    first: LibraryCall
    tiled: Tiled
    second: LibraryCall

    @property
    def storages(self) -> list[Storage]:
        """What the step reads or writes."""
        held = [self.tiled.storages[self.tiled.source], self.tiled.storages[self.tiled.sink]]
        found = [storage_of(v) for v in (*self.first.operands, *self.second.operands)]
        found += [*self.tiled.storages, target_of(self.second)]
        return [s for s in found if not any(s is h for h in held)]


@dataclass(frozen=True)
class Filled:
    """A kernel rewritten to make a block of an operand, which is its buffer ``target`` (see ``prologue``);
    ``main``: the buffer that the operand is mostly made of, -1 where its packed copy cannot be kept. ``tag``
    tells what is made of it from other things made of the same place."""

    kernel: Kernel
    storages: tuple[Storage, ...]
    target: int
    main: int
    tag: int

    @property
    def sources(self) -> list[Storage]:
        """What the operand is made of."""
        return [s for k, s in enumerate(self.storages) if k != self.target]


@dataclass(eq=False)
class Prepared:
    """A matrix product, maybe with an epilogue, and the kernels that make its operands as it packs them."""

    item: LibraryCall | FusedProduct
    fill_a: Filled | None = None
    fill_b: Filled | None = None

    @property
    def call(self) -> LibraryCall:
        return self.item.call if isinstance(self.item, FusedProduct) else self.item

    @property
    def tiled(self) -> Tiled | None:
        return self.item.tiled if isinstance(self.item, FusedProduct) else None

    @property
    def fills(self) -> list[Filled]:
        return [fill for fill in (self.fill_a, self.fill_b) if fill is not None]

    @property
    def storages(self) -> list[Storage]:
        """What the step reads or writes."""
        made = [fill.storages[fill.target] for fill in self.fills]
        found = [s for s in touched(self.item) if not any(s is m for m in made)]
        return found + [s for fill in self.fills for s in fill.sources]


@dataclass(frozen=True)
class RowMember:
    """A step of a group (see ``row_groups``): its kind, and the number of the matrix that a product makes or
    has on its left (-1: it is in memory). ``held``: which buffers of a kernel are which matrices; ``whole``:
    that kernel over all rows."""

    kind: str
    item: Emitted | LibraryCall
    matrix: int
    held: tuple[tuple[int, int], ...] = ()
    whole: Emitted | None = None


@dataclass(eq=False)
class RowGroup:
    """Steps over the rows of ``matrices``, which have no memory."""

    members: tuple[RowMember, ...]
    matrices: tuple[Storage, ...]

    @property
    def storages(self) -> list[Storage]:
        """What the step reads or writes."""
        found = [s for member in self.members for s in touched(member.item)]
        return [s for s in found if not any(s is m for m in self.matrices)]

    @property
    def written(self) -> list[Storage]:
        """What the step writes."""
        items = [member.item for member in self.members]
        found = [s for i in items for s in ([target_of(i)] if isinstance(i, LibraryCall) else written(i))]
        return [s for s in found if not any(s is m for m in self.matrices)]


Item = Emitted | LibraryCall | FusedProduct | Chained | Prepared | RowGroup


class Steps:
    """Steps that are being joined, by place; ``None`` for what has become part of another step. Knows which
    touch a storage: who asks for each product does not go through all steps behind it."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items: list[Item | None] = [*items]
        self._places: dict[int, list[int]] = {}
        for at, item in enumerate(items):
            self._note(at, item)

    def __getitem__(self, at: int) -> Item | None:
        return self._items[at]

    def __setitem__(self, at: int, item: Item | None) -> None:
        self._items[at] = item
        if item is not None:
            self._note(at, item)

    def left(self) -> list[Item]:
        """What there is now, in order."""
        return [item for item in self._items if item is not None]

    def touching(self, storage: Storage, behind: int = -1) -> Iterator[int]:
        """The places behind ``behind`` of steps that touch ``storage``, in order."""
        places = self._places.get(id(storage), [])
        for at in places[bisect_right(places, behind) :]:
            item = self._items[at]
            if item is not None and any(s is storage for s in touched(item)):
                yield at

    def is_read_later(self, storage: Storage, behind: int) -> bool:
        """Whether something behind a place may need what is in ``storage``."""
        return storage.role != "temp" or next(self.touching(storage, behind), None) is not None

    def writes(self, storage: Storage, behind: int, end: int) -> bool:
        """Whether a step between two places may write ``storage``."""
        for at in self.touching(storage, behind):
            if at >= end:
                break
            item = self._items[at]
            if item is not None and any(s is storage for s in written(item)):
                return True
        return False

    def _note(self, at: int, item: Item) -> None:
        for storage in touched(item):
            places = self._places.setdefault(id(storage), [])
            where = bisect_left(places, at)
            if where == len(places) or places[where] != at:
                places.insert(where, at)


def fuse_epilogues(items: Sequence[Item], env: ShapeEnv) -> list[Item]:
    """The steps, with every product joined to the first kernel that reads it where that can be."""
    steps = Steps(items)
    for at, item in enumerate(items):
        if not is_own_product(item):
            continue
        assert isinstance(item, LibraryCall)
        found = find_epilogue(steps, at, item, item.detail, env)
        if found is not None:
            reader, tiled = found
            steps[at], steps[reader] = None, FusedProduct(item, tiled)
    return steps.left()


def is_own_product(item: Item | None) -> bool:
    """Whether the runtime multiplies here."""
    return isinstance(item, LibraryCall) and item.kind == "blas" and bool(item.detail.own)


def has_own_type(item: Item | None) -> bool:
    """Whether the runtime multiplies operands of the result's type here."""
    if not is_own_product(item):
        return False
    assert isinstance(item, LibraryCall)
    return all(v.dtype is item.value.dtype for v in item.operands)


def find_epilogue(
    steps: Steps, at: int, call: LibraryCall, detail: Product, env: ShapeEnv
) -> tuple[int, Tiled] | None:
    """The place of the kernel that can finish the tiles of the product at ``at``, and that kernel."""
    reader = find_reader(steps, at, call)
    kernel = steps[reader] if reader is not None else None
    if reader is None or not isinstance(kernel, Emitted):
        return None
    private = not steps.is_read_later(target_of(call), reader)
    tiled = _tile(detail, kernel, target_of(call), private, env)
    return None if tiled is None else (reader, tiled)


# -- order ------------------------------------------------------------------------------------
def target_of(call: LibraryCall) -> Storage:
    return storage_of(call.value)


def touched(item: Item) -> Sequence[Storage]:
    """The storages that a step reads or writes. Asked of all steps behind each product: kept."""
    if item.storages is None:
        assert isinstance(item, LibraryCall)
        item.storages = tuple([storage_of(v) for v in (*item.operands, *item.results)])
    return item.storages


def written(item: Item) -> Sequence[Storage]:
    """What a step writes: everything, for a step that does not say."""
    if isinstance(item, Emitted):
        return [s for s, b in zip(item.storages, item.kernel.buffers) if b.mode != "in"]
    return touched(item)


def find_reader(steps: Steps, at: int, call: LibraryCall) -> int | None:
    """The first step after ``at`` that touches the product; ``None`` if the product cannot move there."""
    target = target_of(call)
    reader = next(steps.touching(target, at), None)
    if reader is None or steps.writes(target, at, reader + 1):
        return None
    if any(steps.writes(storage_of(v), at, reader + 1) for v in call.operands):
        return None
    return reader


# -- the kernel of a tile ---------------------------------------------------------------------
def _tile(detail: Product, item: Emitted, target: Storage, private: bool, env: ShapeEnv) -> Tiled | None:
    """The kernel on a tile of the product, where it is simple and goes by rows and columns."""
    kernel = item.kernel
    if len(item.storages) > MAX_BUFFERS:
        return None
    if item.raises or item.ordered or any(a.kind != "parallel" for a in kernel.axes):
        return None
    if any(s.op not in SIMPLE or (s.op == "store" and len(s.axes) < len(kernel.axes)) for s in kernel.body):
        return None
    cost = sum(SCALARS[s.op].cost for s in kernel.body if s.op in SCALARS)
    if hint(detail.n) < NARROW and cost >= NARROW_COST:
        return None
    source = next(k for k, s in enumerate(item.storages) if s is target)
    groups = groups_of(detail, kernel, kernel.buffers[source].name)
    if groups is None:
        return None
    own = {name: SymbolInfo(name, usual, 0) for name, usual in TILE_NUMBERS.items()}
    env = ShapeEnv({**env.symbols, **own})
    rewriter = Rewriter(groups, env, kernel.buffers[source].name)
    body = []
    for stmt in kernel.body:
        made = rewriter.statement(stmt)
        if made is None:
            return None
        body.append(made)
    axes = (Axis("r", env.symbol("rows")), Axis("c", env.symbol("cols")))
    return Tiled(
        Kernel(kernel.name, axes, kernel.buffers, tuple(body), kernel.origin), item.storages, source, private
    )


@dataclass(frozen=True)
class Group:
    """Axes of a kernel that are together one dimension of the products: (name, size), outermost first."""

    axes: tuple[tuple[str, Dim], ...]

    def step(self, index: Index) -> Dim | None:
        """The coefficient of the dimension in an index; ``None`` if the axes do not go together in it."""
        terms = dict(index.terms)
        if not self.axes:
            return 0
        step = terms.get(self.axes[-1][0], 0)
        expected = step
        for name, size in reversed(self.axes):
            if not same(terms.get(name, 0), expected):
                return None
            expected = expected * size
        return step


# Number of the product, row and column.
Groups = tuple[Group, Group, Group]


def groups_of(detail: Product, kernel: Kernel, buffer: str) -> Groups | None:
    """The kernel's axes as number of the product, row and column: those that step through them in turn, from
    the innermost, where the product is read."""
    reads = {s.arg[1] for s in kernel.body if s.op == "load" and s.arg[0] == buffer}
    if len(reads) != 1:
        return None
    (index,) = reads
    if not same(index.offset, 0):
        return None
    terms = dict(index.terms)
    left = [(axis.name, axis.size) for axis in kernel.axes]
    found: list[Group] = []
    reached: Dim = 1
    for extent in (detail.n, detail.m, product(detail.batch)):
        end = reached * extent
        taken: list[tuple[str, Dim]] = []
        while not same(reached, end):
            axis = next((a for a in left if same(terms.get(a[0], 0), reached)), None)
            if axis is None:
                return None
            left.remove(axis)
            taken.insert(0, axis)
            reached = reached * axis[1]
        found.append(Group(tuple(taken)))
    column, row, number = found
    return (number, row, column) if not left else None


class Rewriter:
    """Statements over a kernel's axes as statements over a tile's rows ``r`` and columns ``c``."""

    def __init__(self, groups: Groups, env: ShapeEnv, source: str) -> None:
        self.groups = groups
        self.env = env
        self.source = source
        self.names = [{name for name, _ in group.axes} for group in groups]
        self.made: dict[str, set[str]] = {}

    def statement(self, stmt: Stmt) -> Stmt | None:
        """The statement on a tile; ``None`` where an index does not go by rows and columns."""
        arg = stmt.arg
        if stmt.op in ("load", "store"):
            index = self.index(*stmt.arg)
            if index is None:
                return None
            arg = (stmt.arg[0], index)
        return Stmt(stmt.out, stmt.op, stmt.args, self.axes(stmt), arg, stmt.dtype)

    def axes(self, stmt: Stmt) -> tuple[str, ...]:
        if stmt.op == "store":
            return ("r", "c")
        used = set(stmt.axes)
        found = {tile for tile, names in zip(("r", "c"), self.names[1:]) if used & names}
        # a product of one column has no axis of columns, but its tile has
        missing = {tile for tile, names in zip(("r", "c"), self.names[1:]) if not names}
        if stmt.op == "load" and stmt.arg[0] == self.source:
            found |= missing
        for arg in stmt.args:
            found |= self.made.get(arg, set()) & missing
        self.made[stmt.out] = found
        return tuple(tile for tile in ("r", "c") if tile in found)

    def index(self, buffer: str, index: Index) -> Index | None:
        if buffer == self.source:
            return Index((("c", 1), ("r", self.env.symbol("tile_row"))), 0)
        offset: Dim = index.offset
        terms: list[tuple[str, Dim]] = []
        for name, axis, group in zip(("number", "row", "col"), ("", "r", "c"), self.groups):
            step = group.step(index)
            if step is None and not axis:
                offset = self._number(group, index) + offset
                continue
            if step is None:
                return None
            if same(step, 0):
                continue
            # tile numbers on the left: the result belongs to the environment that knows them
            offset = self.env.symbol(name) * step + offset
            if axis:
                terms.append((axis, step))
        return Index(tuple(reversed(terms)), offset)

    def _number(self, group: Group, index: Index) -> Dim:
        """Where an index is by the number of the product, each of whose axes steps on its own."""
        terms = dict(index.terms)
        inner: Dim = 1
        total: Dim = 0
        for name, size in reversed(group.axes):
            step = terms.get(name, 0)
            if not same(step, 0):
                total = self.env.symbol("number") // inner % size * step + total
            inner = inner * size
        return total
