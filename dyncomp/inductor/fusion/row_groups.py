"""Groups of steps over the rows of the same matrices, run together block of rows by block of rows.

The backward pass of attention is one: scores, weights and their gradients are matrices that only products and
kernels of whole rows read. For some rows at a time they are made in the cache, multiplied there, and have no
memory. Members are products that make rows of such a matrix, kernels of rows, products with such rows on the
left, and products with the transposed matrix, whose sums over all rows grow block by block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...dataclass import dataclass, field
from ...symbolic.integers import ShapeEnv, SymbolInfo, SymInt, hint, product, same
from ..loops.loop_ir import Axis, Index, Kernel, Stmt
from ..lowering.contract import Product
from ..lowering.emit import Emitted
from ..lowering.values import Storage, place_of, storage_of
from .chain import ROW_OPS, RowRewriter, is_own_place
from .epilogue import (
    MAX_BUFFERS,
    TILE_NUMBERS,
    Groups,
    Item,
    RowGroup,
    RowMember,
    groups_of,
    has_own_type,
    target_of,
    touched,
    written,
)
from .fuse import LibraryCall

# Steps after the first product that are looked at.
REACH = 40
# Columns of operands.
WIDEST = 256


IsProduct = Callable[[Item | None], bool]
Accepts = Callable[[RowGroup], bool]


def fuse_row_groups(
    items: Sequence[Item],
    env: ShapeEnv,
    is_product: IsProduct = has_own_type,
    accepts: Accepts | None = None,
) -> list[Item]:
    """The steps, with those that go over rows of the same matrices made one. ``is_product``: which steps are
    products that can be joined; ``accepts``: which groups there is a form for that takes several element
    types (by default all of one type)."""
    left: list[Item | None] = list(items)
    users: Counter[int] = Counter()
    known: dict[int, _Traffic] = {}
    for item in items:
        users.update(_ids(touched(item)))
    at = -1
    while at + 1 < len(left):
        at += 1
        first = left[at]
        if not is_product(first):
            continue
        assert isinstance(first, LibraryCall)
        group = _Group(left, users, known, at, first.detail, env, is_product, accepts, placed=at)
        if not group.starts() or not group.may_pay():
            continue
        group.grow()
        if group.pays():
            group.replace_steps()
    return [item for item in left if item is not None]


@dataclass(eq=False)
class _Member:
    """A step of the group: its position, the kind of ``RowStep``, the matrix on its left, its kernel; the
    storages that it reads and writes, by identity."""

    at: int
    kind: str
    matrix: Storage | None = None
    kernel: Kernel | None = None
    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _Traffic:
    """The storages that a step touches and writes, by identity."""

    touched: frozenset[int]
    written: frozenset[int]


@dataclass(eq=False)
class _Group:
    """``users``: how many steps touch a storage, by its identity. ``known``: by that of steps.
    ``placed``: the position behind which the members so far can run. ``touched``, ``written``: by the
    identity of storages, the positions of steps that are no members and touch or write them."""

    left: list[Item | None]
    users: Counter[int]
    known: dict[int, _Traffic]
    first: int
    space: Product
    env: ShapeEnv
    is_product: IsProduct
    accepts: Accepts | None
    members: list[_Member] = field(default_factory=list)
    matrices: list[Storage] = field(default_factory=list)
    placed: int = -1
    touched: dict[int, list[int]] = field(default_factory=dict)
    written: dict[int, list[int]] = field(default_factory=dict)

    def starts(self) -> bool:
        """Whether the first product makes a matrix that a group may be about."""
        return self.adopt(self.first, _Member(self.first, "scores"), [target_of(self.call(self.first))])

    def may_pay(self) -> bool:
        """Whether a group that begins here could be more than epilogues, and narrow: asked before it is
        looked for, which takes time where there are many products. What is read elsewhere needs memory."""
        if not self.matrices or not self.is_narrow():
            return False
        end = min(len(self.left), self.first + 1 + REACH)
        target = id(self.matrices[0])
        places = [at for at in range(self.first + 1, end) if self.left[at] is not None]
        near = sum(target in self.traffic(at).touched for at in places)
        if near + 1 < self.users[target]:
            return False
        reachable = self.left[self.first + 1 : end]
        details = [i.detail for i in reachable if isinstance(i, LibraryCall) and self.is_product(i)]
        if not any(self.kind_of(detail) for detail in details if self.same_batch(detail)):
            return False
        if hint(product(self.space.batch)) > 1:
            return True
        return any(self.reduces_rows(item.kernel) for item in reachable if isinstance(item, Emitted))

    def reduces_rows(self, kernel: Kernel) -> bool:
        """Whether a kernel reduces what may be rows of the first product."""
        reduced = [a.size for a in kernel.axes if a.kind == "reduce"]
        if not reduced or not same(product(reduced), self.space.n):
            return False
        others = [a.size for a in kernel.axes if a.kind != "reduce"]
        return same(product(others), product((*self.space.batch, self.space.m)))

    def grow(self) -> None:
        """Take every later step in that belongs here and can run at the group's place."""
        for at in range(self.first + 1, min(len(self.left), self.first + 1 + REACH)):
            item = self.left[at]
            taken = False
            if isinstance(item, Emitted):
                taken = self.take_kernel(at, item)
            elif self.is_product(item):
                taken = self.take_product(at)
            if item is not None and not taken:
                self.stay(at)

    def call(self, at: int) -> LibraryCall:
        item = self.left[at]
        assert isinstance(item, LibraryCall)
        return item

    # -- products -----------------------------------------------------------------------------
    def take_product(self, at: int) -> bool:
        call = self.call(at)
        detail = call.detail
        if self.accepts is None and call.value.dtype is not self.call(self.first).value.dtype:
            return False
        place = place_of(detail.a.value)
        if self.is_matrix(place.storage) and same(place.offset, 0) and self.same_batch(detail):
            kind = self.kind_of(detail)
            if kind and not self.is_matrix(storage_of(detail.b.value)):
                return self.adopt(at, _Member(at, kind, place.storage), [])
            return False
        others = (detail.m, detail.n)
        if self.same_batch(detail) and same(others[0], self.space.m) and same(others[1], self.space.n):
            if not any(self.is_matrix(storage_of(o.value)) for o in (detail.a, detail.b)):
                return self.adopt(at, _Member(at, "scores"), [target_of(call)])
        return False

    def is_matrix(self, storage: Storage) -> bool:
        return any(s is storage for s in self.matrices)

    def same_batch(self, detail: Product) -> bool:
        own = self.space.batch
        return len(own) == len(detail.batch) and all(same(x, y) for x, y in zip(own, detail.batch))

    def kind_of(self, detail: Product) -> str:
        """How a product reads the matrix on its left; "" for in another way."""
        a, m, n = detail.a, self.space.m, self.space.n
        steps = zip(self.space.batch, a.batch_strides, self.space.c.batch_strides)
        if not all(same(size, 1) or same(x, y) for size, x, y in steps):
            return ""
        if same(detail.m, m) and same(detail.k, n) and same(a.row_stride, n) and same(a.col_stride, 1):
            return "out"
        if same(detail.m, n) and same(detail.k, m) and same(a.row_stride, 1) and same(a.col_stride, n):
            return "sum"
        return ""

    # -- kernels ------------------------------------------------------------------------------
    def take_kernel(self, at: int, item: Emitted) -> bool:
        if not any(self.is_matrix(s) for s in touched(item)):
            return False
        outputs = [s for s, b in zip(item.storages, item.kernel.buffers) if b.mode != "in"]
        distinct = len({id(s) for s in item.storages}) == len(item.storages)
        if any(self.is_matrix(s) for s in outputs) or not distinct:
            return False
        made = rows_of(self.space, item, self.matrices, self.env)
        if made is None:
            return False
        kernel, dense = made
        return self.adopt(
            at, _Member(at, "kernel", None, kernel), [s for s in outputs if any(s is d for d in dense)]
        )

    # -- order --------------------------------------------------------------------------------
    def adopt(self, at: int, member: _Member, made: list[Storage]) -> bool:
        """Take a step in if all members can still run at one place, and it reads nothing that others of them
        finish only with their last block of rows."""
        item = self.item(member)
        member.inputs, member.outputs = _ids(_inputs(item)), _ids(_outputs(item))
        if not member.inputs.isdisjoint(self.finished_last()):
            return False
        self.members.append(member)
        place = self.place_with(member)
        if place is None:
            self.members.pop()
            return False
        self.placed = place
        self.matrices += [s for s in made if s.role == "temp"]
        return True

    def finished_last(self) -> frozenset[int]:
        """What members write, except for their matrices, of whose rows each reads its own."""
        return frozenset().union(*[m.outputs for m in self.members]) - _ids(self.matrices)

    def traffic(self, at: int) -> _Traffic:
        """What a step touches (asked again and again: kept)."""
        item = self.left[at]
        assert item is not None
        found = self.known.get(id(item))
        if found is None:
            found = self.known[id(item)] = _Traffic(_ids(touched(item)), _ids(written(item)))
        return found

    def stay(self, at: int) -> None:
        """Note a step that is no member, which members may have to pass."""
        step = self.traffic(at)
        for storage in step.touched:
            self.touched.setdefault(storage, []).append(at)
        for storage in step.written:
            self.written.setdefault(storage, []).append(at)

    def place_with(self, last: _Member) -> int | None:
        """As :meth:`place`, where that of the members before the last is known."""
        place = self.behind_inputs(last, self.placed)
        if place > self.placed:
            return place if self.may_run_behind(place) else None
        return None if _lies_between(self.touched, last.outputs, place, last.at) else place

    def place(self) -> int | None:
        """The position behind which all members can run: what they read has been written there, and no step
        that they pass touches what they write, or writes what they read."""
        place = self.first
        for member in self.members:
            place = self.behind_inputs(member, place)
        return place if self.may_run_behind(place) else None

    def behind_inputs(self, member: _Member, place: int) -> int:
        """The place, or that of the last step behind it that writes what a member reads."""
        written = [at for s in member.inputs for at in self.written.get(s, ()) if place < at < member.at]
        return max(written, default=place)

    def may_run_behind(self, place: int) -> bool:
        """Whether members that pass other steps on their way there may do so."""
        for member in self.members:
            low, high = sorted((member.at, place))
            if _lies_between(self.touched, member.outputs, low, high):
                return False
            if _lies_between(self.written, member.inputs, low, high):
                return False
        return True

    def item(self, member: _Member) -> Item:
        item = self.left[member.at]
        assert item is not None
        return item

    # -- the result ---------------------------------------------------------------------------
    def private(self) -> list[Storage]:
        """Matrices that only members touch."""
        own: Counter[int] = Counter()
        for member in self.members:
            own.update(_ids(touched(self.item(member))))
        return [s for s in self.matrices if own[id(s)] == self.users[id(s)]]

    def pays(self) -> bool:
        """Whether what the products make has no memory then, and rows go through kernels to products."""
        self.drop_unread()
        kinds = [m.kind for m in self.members]
        if "kernel" not in kinds or "scores" not in kinds or not {"out", "sum"} & {*kinds}:
            return False
        if not self.is_narrow() or not self.is_more_than_epilogues():
            return False
        scores = [target_of(self.call(m.at)) for m in self.members if m.kind == "scores"]
        private = self.private()
        return all(any(s is p for p in private) for s in scores) and self.place() is not None

    def is_narrow(self) -> bool:
        """Whether what the rows are made of and multiplied by stays in the cache, as heads do."""
        products = [(m.kind, self.call(m.at).detail) for m in self.members if m.kind != "kernel"]
        return all(hint(d.k if kind == "scores" else d.n) <= WIDEST for kind, d in products)

    def is_more_than_epilogues(self) -> bool:
        """Whether kernels need whole rows, or matrices of a batch are read more than once: what else there is
        runs as well on tiles of a product."""
        kernels = [m.kernel for m in self.members if m.kernel is not None]
        if any(a.kind == "reduce" for kernel in kernels for a in kernel.axes):
            return True
        reads = [s for m in self.members for s in _inputs(self.item(m))]
        twice = any(sum(s is r for r in reads) > 1 for s in self.matrices)
        return twice and hint(product(self.space.batch)) > 1

    def drop_unread(self) -> None:
        """Leave out products whose rows no member reads."""
        for member in list(self.members):
            if member.kind != "scores":
                continue
            target = target_of(self.call(member.at))
            kernels = [self.item(m) for m in self.members if m.kind == "kernel"]
            read = any(m.matrix is target for m in self.members)
            if not read and not any(_share(_inputs(k), [target]) for k in kernels):
                self.members.remove(member)
                self.stay(member.at)
                self.matrices = [s for s in self.matrices if s is not target]

    def replace_steps(self) -> None:
        place = self.place()
        assert place is not None
        group = self.made()
        if self.accepts is not None and not self.accepts(group):
            return
        for member in self.members:
            self.users.subtract(_ids(touched(self.item(member))))
            self.left[member.at] = None
        self.users.update(_ids(touched(group)))
        if self.left[place] is None:
            self.left[place] = group
        else:
            # behind a step that stays: what it writes is read here
            self.left.insert(place + 1, group)

    def made(self) -> RowGroup:
        private = self.private()
        steps = []
        for member in self.members:
            item = self.item(member)
            if isinstance(item, Emitted):
                assert member.kernel is not None
                kernel = _held_kernel(member.kernel, item, private)
                held = tuple(
                    (k, _number(private, s)) for k, s in enumerate(item.storages) if _share(private, [s])
                )
                steps.append(RowMember("kernel", replace(item, kernel=kernel), -1, held, item))
                continue
            assert isinstance(item, LibraryCall)
            matrix = target_of(item) if member.kind == "scores" else member.matrix
            assert matrix is not None
            steps.append(RowMember(member.kind, item, _number(private, matrix)))
        return RowGroup(tuple(steps), tuple(private))


def _number(storages: Sequence[Storage], storage: Storage) -> int:
    return next((k for k, s in enumerate(storages) if s is storage), -1)


def _share(one: Sequence[Storage], other: Sequence[Storage]) -> bool:
    return any(s is t for s in one for t in other)


def _lies_between(places: dict[int, list[int]], storages: frozenset[int], low: int, high: int) -> bool:
    return any(low < at <= high for s in storages if s in places for at in places[s])


def _ids(storages: Sequence[Storage]) -> frozenset[int]:
    return frozenset(map(id, storages))


def _inputs(item: Item) -> list[Storage]:
    if isinstance(item, LibraryCall):
        return list(touched(item)[: len(item.operands)])
    assert isinstance(item, Emitted)
    return [s for s, b in zip(item.storages, item.kernel.buffers) if b.mode != "out"]


def _outputs(item: Item) -> list[Storage]:
    return [target_of(item)] if isinstance(item, LibraryCall) else list(written(item))


# -- the kernel of a block of rows ------------------------------------------------------------
def rows_of(
    space: Product, item: Emitted, matrices: Sequence[Storage], env: ShapeEnv
) -> tuple[Kernel, list[Storage]] | None:
    """The kernel on a block of rows, each result from that row of the matrices; and the storages that it
    reads and writes at its own place only, as the matrices lie. Those are still read as memory."""
    kernel = item.kernel
    if len(item.storages) > MAX_BUFFERS or item.raises or item.ordered:
        return None
    if any(s.op not in ROW_OPS or (s.op == "store" and len(s.axes) < len(kernel.axes)) for s in kernel.body):
        return None
    source = next(k for k, s in enumerate(item.storages) if any(s is m for m in matrices))
    if kernel.buffers[source].mode != "in":
        return None
    groups = groups_of(space, kernel, kernel.buffers[source].name)
    if groups is None or not groups[1].axes or not groups[2].axes or any(b.aliases for b in kernel.buffers):
        return None
    reduced = [a.name for a in kernel.axes if a.kind == "reduce"]
    if reduced and [name for name, _ in groups[2].axes] != reduced:
        return None
    dense = [s for s, b in zip(item.storages, kernel.buffers) if _in_place(space, kernel, groups, b.name)]
    if any(not _share(dense, [s]) for s in item.storages if any(s is m for m in matrices)):
        return None
    own = {name: SymbolInfo(name, usual, 0) for name, usual in TILE_NUMBERS.items()}
    env = ShapeEnv({**env.symbols, **own})
    rewriter = RowRewriter(groups, env, "", "")
    body: list[Stmt] = []
    for stmt in kernel.body:
        made = rewriter.statements(stmt)
        if made is None:
            return None
        body += made
    kind = "reduce" if reduced else "parallel"
    axes = (Axis("r", env.symbol("rows")), Axis("c", space.n, kind))
    return Kernel(kernel.name, axes, kernel.buffers, tuple(body), kernel.origin), dense


def _in_place(space: Product, kernel: Kernel, groups: Groups, buffer: str) -> bool:
    """Whether a buffer is read and written at a row's own place alone, and lies as the matrices do."""
    touching = [s for s in kernel.body if s.op in ("load", "store") and s.arg[0] == buffer]
    return all(is_own_place(space, groups, s.arg[1]) for s in touching)


def _held_kernel(kernel: Kernel, item: Emitted, private: Sequence[Storage]) -> Kernel:
    """The kernel with the buffers of matrices without memory read and written where their rows are held."""
    names = {b.name for s, b in zip(item.storages, kernel.buffers) if _share(private, [s])}
    size = kernel.axes[0].size
    assert isinstance(size, SymInt)
    step = size.env.symbol("tile_row")
    index = Index((("c", 1), ("r", step)), 0)
    body = [
        replace(s, arg=(s.arg[0], index)) if s.op in ("load", "store") and s.arg[0] in names else s
        for s in kernel.body
    ]
    return replace(kernel, body=tuple(body))
