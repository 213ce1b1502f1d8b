"""Chains: a product, a kernel over whole rows of it, and the product of what that gives with another matrix.

Attention is one: ``softmax(q @ k.T * scale + mask) @ v``. A block of rows goes through all three steps while
it is in the cache; neither the scores nor the weights are written to memory. The kernel is the one that
lowering made, rewritten to cover a block of rows: any function of rows will do, masks and causality included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...dataclass import dataclass
from ...dtypes import float32, int64
from ...symbolic.integers import Dim, ShapeEnv, SymbolInfo, hint, same
from ..loops.loop_ir import Axis, Index, Kernel, Stmt
from ..lowering.contract import Product
from ..lowering.emit import Emitted
from ..lowering.values import Storage, place_of, storage_of
from ..schedule import SoftmaxRows
from .epilogue import (
    MAX_BUFFERS,
    SIMPLE,
    TILE_NUMBERS,
    Chained,
    Groups,
    Item,
    Rewriter,
    Steps,
    Tiled,
    find_reader,
    groups_of,
    has_own_type,
    target_of,
)
from .fuse import LibraryCall
from .softmax import find_softmax

ROW_OPS = SIMPLE | {"reduce", "axis"}


IsProduct = Callable[[Item | None], bool]


@dataclass(frozen=True)
class FoundChain:
    """Positions of the row kernel and of the second product, and the rewritten kernel."""

    kernel: int
    second: int
    tiled: Tiled


def fuse_chains(items: Sequence[Emitted | LibraryCall], env: ShapeEnv) -> list[Item]:
    """The steps, with products that only a kernel of rows and another product lie between made one step."""
    steps = Steps(items)
    for at, first in enumerate(items):
        if steps[at] is not first or not has_own_type(first):
            continue  # or it ends another chain
        assert isinstance(first, LibraryCall)
        found = find_chain(steps, at, first, env, has_own_type)
        if found is None:
            continue
        second = steps[found.second]
        assert isinstance(second, LibraryCall)
        steps[at] = steps[found.kernel] = None
        tiled = with_softmax(found.tiled, second, env) or seen_columns(found.tiled, env)
        steps[found.second] = Chained(first, tiled, second)
    return steps.left()


def find_chain(
    steps: Steps, at: int, first: LibraryCall, env: ShapeEnv, is_product: IsProduct
) -> FoundChain | None:
    """What follows the product at ``at``, where that is a kernel of rows and a product; ``is_product`` says
    of a step whether it is one that can be joined."""
    scores = target_of(first)
    reader = find_reader(steps, at, first)
    if reader is None or steps.is_read_later(scores, reader):
        return None
    kernel = steps[reader]
    if not isinstance(kernel, Emitted):
        return None
    outputs = [s for s, b in zip(kernel.storages, kernel.kernel.buffers) if b.mode != "in"]
    if len(outputs) != 1 or _in_two_buffers(kernel, scores):
        return None
    (weights,) = outputs
    needed = [*map(_storage, first.operands), *kernel.storages]
    taker = _taker(steps, reader, needed, weights, is_product)
    if taker is None or steps.is_read_later(weights, taker):
        return None
    second = steps[taker]
    assert isinstance(second, LibraryCall)
    if not _fits(first.detail, second.detail, weights):
        return None
    tiled = _rows(first.detail, kernel, scores, weights, env)
    return FoundChain(reader, taker, tiled) if tiled is not None else None


def _storage(value: object) -> Storage:
    return storage_of(value)  # type: ignore[arg-type]


def _in_two_buffers(kernel: Emitted, storage: Storage) -> bool:
    """Whether a kernel has two buffers in one storage."""
    return sum(s is storage for s in kernel.storages) != 1


def _taker(
    steps: Steps,
    reader: int,
    needed: list[Storage],
    weights: Storage,
    is_product: IsProduct,
) -> int | None:
    """The product that is first to touch ``weights``; ``None`` if the steps before cannot move there."""
    taker = next(steps.touching(weights, reader), None)
    if taker is None or not is_product(steps[taker]):
        return None
    return None if any(steps.writes(s, reader, taker) for s in needed) else taker


def _fits(first: Product, second: Product, weights: Storage) -> bool:
    """Whether the second product goes over rows and batches of the first, with the weights on its left."""
    a = second.a
    place = place_of(a.value)
    if place.storage is not weights or storage_of(second.b.value) is weights:
        return False
    if not same(place.offset, 0) or not same(a.row_stride, first.n) or not same(a.col_stride, 1):
        return False
    if not same(second.m, first.m) or not same(second.k, first.n) or len(first.batch) != len(second.batch):
        return False
    pairs = [*zip(first.batch, second.batch), *zip(first.c.batch_strides, a.batch_strides)]
    return all(same(x, y) for x, y in pairs)


# -- the kernel of a block of rows ------------------------------------------------------------
def _rows(detail: Product, item: Emitted, scores: Storage, weights: Storage, env: ShapeEnv) -> Tiled | None:
    """The kernel on a block of rows, where each row of its result comes from that row of the scores."""
    kernel = item.kernel
    if len(item.storages) > MAX_BUFFERS or item.raises or item.ordered:
        return None
    if any(s.op not in ROW_OPS or (s.op == "store" and len(s.axes) < len(kernel.axes)) for s in kernel.body):
        return None
    source = next(k for k, s in enumerate(item.storages) if s is scores)
    sink = next(k for k, s in enumerate(item.storages) if s is weights)
    groups = groups_of(detail, kernel, kernel.buffers[source].name)
    if groups is None or not _by_rows(kernel, groups):
        return None
    own = {name: SymbolInfo(name, usual, 0) for name, usual in TILE_NUMBERS.items()}
    env = ShapeEnv({**env.symbols, **own})
    names = (kernel.buffers[source].name, kernel.buffers[sink].name)
    if not _written_like(detail, kernel, groups, names[1]):
        return None
    rewriter = RowRewriter(groups, env, *names)
    body: list[Stmt] = []
    for stmt in kernel.body:
        made = rewriter.statements(stmt)
        if made is None:
            return None
        body += made
    axes = (Axis("r", env.symbol("rows")), Axis("c", detail.n, "reduce"))
    rewritten = Kernel(kernel.name, axes, kernel.buffers, tuple(body), kernel.origin)
    return Tiled(rewritten, item.storages, source, True, sink, _hidden_after(rewritten, sink))


def _hidden_after(kernel: Kernel, sink: int) -> int | None:
    """Which columns a causal mask makes zeros of, if it does."""
    softmax = find_softmax(kernel, sink)
    return None if softmax is None else softmax.hidden_after


def seen_columns(tiled: Tiled, env: ShapeEnv) -> Tiled:
    """The kernel for tiles of the columns only that some of their rows see."""
    rows, columns = tiled.kernel.axes
    if tiled.hidden_after is None or not isinstance(columns.size, int):
        return replace(tiled, hidden_after=None)
    own = {"cols": SymbolInfo("cols", columns.size, 0)}
    size = ShapeEnv({**env.symbols, **own}).symbol("cols")
    axes = (rows, Axis("c", size, "reduce", columns.size))
    return replace(tiled, kernel=replace(tiled.kernel, axes=axes))


def with_softmax(tiled: Tiled, second: LibraryCall, env: ShapeEnv) -> Tiled | None:
    """The kernel of what a softmax takes, where the runtime makes that."""
    softmax = find_softmax(tiled.kernel, tiled.sink, exact=True)
    if softmax is None or second.value.dtype is not float32:
        return None
    kernel = tiled.kernel
    rows, columns = kernel.axes
    size = columns.size
    own = {"cols": SymbolInfo("cols", hint(size), 0)}
    axes = (
        Axis("r", rows.size),
        Axis("c", ShapeEnv({**env.symbols, **own}).symbol("cols"), most=size if isinstance(size, int) else 0),
    )
    store = next(s for s in kernel.body if not s.out)
    effect = Stmt("", "store", (softmax.scores,), ("r", "c"), store.arg, float32)
    before = replace(kernel, axes=axes, body=(*softmax.before, effect))
    rows_made = SoftmaxRows(softmax.factor, softmax.empty_is_zero)
    return replace(tiled, kernel=before, softmax=rows_made)


def _by_rows(kernel: Kernel, groups: Groups) -> bool:
    """Whether what is reduced is one axis, the columns."""
    reduced = [a.name for a in kernel.axes if a.kind == "reduce"]
    return len(reduced) == 1 and [name for name, _ in groups[2].axes] == reduced


def is_own_place(detail: Product, groups: Groups, index: Index) -> bool:
    """Whether elements of a matrix that lies as a product's results do are met at their own places."""
    if not same(index.offset, 0):
        return False
    steps: tuple[Dim, ...] = (detail.m * detail.n, detail.n, 1)
    for group, step in zip(groups, steps):
        found = group.step(index)
        if found is None or (group.axes and not same(found, step)):
            return False
    return True


def _written_like(detail: Product, kernel: Kernel, groups: Groups, sink: str) -> bool:
    """Whether the result lies in memory as the products do, and nothing is read back from it."""
    touching = [s for s in kernel.body if s.op in ("load", "store") and s.arg[0] == sink]
    return all(s.op == "store" and is_own_place(detail, groups, s.arg[1]) for s in touching)


class RowRewriter(Rewriter):
    """Statements over a kernel's axes as statements over a block of rows."""

    def __init__(self, groups: Groups, env: ShapeEnv, source: str, sink: str) -> None:
        super().__init__(groups, env, source)
        self.sink = sink

    def statements(self, stmt: Stmt) -> list[Stmt] | None:
        if stmt.op == "axis":
            return self.position(stmt)
        if stmt.op == "reduce":
            return [Stmt(stmt.out, stmt.op, stmt.args, self.axes(stmt), (stmt.arg[0], ("c",)), stmt.dtype)]
        made = self.statement(stmt)
        return None if made is None else [made]

    def position(self, stmt: Stmt) -> list[Stmt] | None:
        """The position along a row or a column, where those are one axis each."""
        for name, symbol, group in zip("rc", ("row", "col"), self.groups[1:]):
            if len(group.axes) == 1 and group.axes[0][0] == stmt.arg:
                start, step = f"{stmt.out}_from", f"{stmt.out}_in"
                return [
                    Stmt(start, "symbol", (), (), self.env.symbol(symbol), int64),
                    Stmt(step, "axis", (), (name,), name, int64),
                    Stmt(stmt.out, "add", (start, step), (name,), None, int64),
                ]
        return None

    def index(self, buffer: str, index: Index) -> Index | None:
        return super().index(self.source if buffer == self.sink else buffer, index)
