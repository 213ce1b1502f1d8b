"""Prologues: a pointwise kernel that makes an operand of a matrix product runs as the product packs it.

The kernel is rewritten to cover a block of the operand's rows and columns, as epilogues are, and called for
each block that the product is about to need: a weight stored as bytes or halves, or an activation that
is scaled first, is never written to memory. What is cheap beside the multiplications that each element takes
part in is made again by each block that needs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from ...symbolic.integers import Dim, ShapeEnv, SymbolInfo, hint, same
from ..loops.loop_ir import Axis, Kernel, Stmt
from ..loops.loop_text import kernel_text
from ..lowering.contract import Operand, Product
from ..lowering.emit import Emitted, work_of
from ..lowering.values import Storage, place_of, storage_of
from .epilogue import (
    MAX_BUFFERS,
    SIMPLE,
    TILE_NUMBERS,
    Chained,
    Filled,
    FusedProduct,
    Group,
    Groups,
    Item,
    Prepared,
    Rewriter,
    RowGroup,
    Steps,
    is_own_product,
    target_of,
    touched,
    written,
)
from .fuse import LibraryCall

# Nanoseconds that making four bytes may take more than once; bytes of a left operand from which on that is
# worth a call of a function for each few rows.
CHEAP_NS = 0.6
LARGE_LEFT = 1 << 19
# Rows shorter than this are no vectors: a kernel of its own goes through many at a time.
SHORT_ROW = 32
# What the runtime packs of the right operand at once (``kBlockBytes``, ``kTerms``).
BLOCK_BYTES = 256 << 10
BLOCK_TERMS = 1024
# Bytes beside the largest source of an operand that is kept: they are compared at each call. How many arrays.
SIDE_BYTES = 1 << 16
MOST_SIDES = 4


def fuse_prologues(items: Sequence[Item], env: ShapeEnv) -> list[Item]:
    """The steps, with the kernels that only make operands of products joined to these."""
    steps = Steps(items)
    for at, item in enumerate(items):
        if not isinstance(item, (LibraryCall, FusedProduct)):
            continue
        call = item.call if isinstance(item, FusedProduct) else item
        if not is_own_product(call) or call.detail.windows is not None:
            continue
        for letter in ("b", "a"):
            found = _find(steps, at, call.detail, letter, env)
            if found is not None:
                maker, filled, rest = found
                steps[maker] = rest
                steps[at] = _with_filled(steps[at], letter, filled)
    return steps.left()


def _with_filled(item: Item | None, letter: str, filled: Filled) -> Prepared:
    assert isinstance(item, (LibraryCall, FusedProduct, Prepared))
    prepared = item if isinstance(item, Prepared) else Prepared(item)
    if letter == "a":
        return replace(prepared, fill_a=filled)
    return replace(prepared, fill_b=filled)


def _find(
    steps: Steps, at: int, detail: Product, letter: str, env: ShapeEnv
) -> tuple[int, Filled, Emitted | None] | None:
    """Where the kernel is that makes an operand, the kernel for a block of it, what is left of the former."""
    operand: Operand = getattr(detail, letter)
    target = storage_of(operand.value)
    maker = _maker(steps, at, target)
    item = steps[maker] if maker is not None else None
    if maker is None or not isinstance(item, Emitted):
        return None
    split = _split(item, target)
    if split is None:
        return None
    own, rest = split
    filled = _filled(detail, operand, letter, own, target, env)
    if filled is None or not _pays(filled, detail, operand, letter):
        return None
    if rest is not None and any(_writes(rest, source) for source in filled.sources):
        return None
    if any(_is_written(steps, source, maker, at) for source in filled.sources):
        return None
    return maker, filled, rest


def _is_written(steps: Steps, storage: Storage, behind: int, last: int) -> bool:
    """Whether a step behind one place, up to another, writes ``storage``."""
    for at in steps.touching(storage, behind):
        if at > last:
            break
        item = steps[at]
        if item is not None and _writes(item, storage):
            return True
    return False


def _writes(item: Item, storage: Storage) -> bool:
    return any(s is storage for s in written_by(item))


def _maker(steps: Steps, at: int, target: Storage) -> int | None:
    """The one step that touches ``target`` besides the product at ``at``, which reads it once."""
    if target.role != "temp" or sum(s is target for s in touched_by(steps[at])) != 1:
        return None
    places = [k for k in steps.touching(target) if k != at]
    return places[0] if len(places) == 1 and places[0] < at else None


def touched_by(item: Item | None) -> Sequence[Storage]:
    return [] if item is None else touched(item)


def written_by(item: Item) -> Sequence[Storage]:
    """What a step writes."""
    if isinstance(item, (FusedProduct, Prepared)):
        found = [] if item.tiled is None else _outputs(item.tiled.kernel, item.tiled.storages)
        return [*found, target_of(item.call)]
    if isinstance(item, LibraryCall) and is_own_product(item):
        return [target_of(item)]
    if isinstance(item, Chained):
        return [target_of(item.second)]
    if isinstance(item, RowGroup):
        return item.written
    return written(item)


def _outputs(kernel: Kernel, storages: Sequence[Storage]) -> list[Storage]:
    return [s for s, b in zip(storages, kernel.buffers) if b.mode != "in"]


def _split(item: Emitted, target: Storage) -> tuple[Emitted, Emitted | None] | None:
    """The part of a kernel that makes one storage, and the part that makes the others."""
    kernel = item.kernel
    if item.raises or item.ordered or any(a.kind != "parallel" for a in kernel.axes):
        return None
    names = {b.name for b, s in zip(kernel.buffers, item.storages) if s is target}
    stores = [s for s in kernel.body if s.op == "store"]
    if (
        len(names) != 1
        or any(s.op not in SIMPLE for s in kernel.body)
        or any(not s.out and s.op != "store" for s in kernel.body)
    ):
        return None
    own = [s for s in stores if s.arg[0] in names]
    others = [s for s in stores if s.arg[0] not in names]
    buffer = next(b for b in kernel.buffers if b.name in names)
    if len(own) != 1 or buffer.mode != "out" or buffer.aliases or len(own[0].axes) < len(kernel.axes):
        return None
    if not others:
        return item, None
    return _part(item, own, f"{kernel.name}_made"), _part(item, others, f"{kernel.name}_rest")


def _part(item: Emitted, stores: Sequence[Stmt], name: str) -> Emitted:
    """The kernel that does some of a kernel's stores."""
    kernel = item.kernel
    wanted: set[str] = set()
    body: list[Stmt] = []
    for stmt in reversed(kernel.body):
        if any(stmt is s for s in stores) or stmt.out in wanted:
            wanted |= set(stmt.args)
            body.append(stmt)
    modes: dict[str, str] = {}
    for stmt in body:
        if stmt.op in ("load", "store"):
            mode = "in" if stmt.op == "load" else "out"
            before = modes.setdefault(stmt.arg[0], mode)
            modes[stmt.arg[0]] = mode if before == mode else "inout"
    kept = [(b, s) for b, s in zip(kernel.buffers, item.storages) if b.name in modes]
    buffers = tuple(replace(b, mode=modes[b.name]) for b, _ in kept)
    made = replace(kernel, name=name, buffers=buffers, body=tuple(reversed(body)))
    return replace(item, kernel=made, storages=tuple(s for _, s in kept))


# -- the kernel of a block --------------------------------------------------------------------
def _filled(
    detail: Product, operand: Operand, letter: str, item: Emitted, target: Storage, env: ShapeEnv
) -> Filled | None:
    kernel = item.kernel
    if len(item.storages) > MAX_BUFFERS:
        return None
    slot = next(k for k, s in enumerate(item.storages) if s is target)
    name = kernel.buffers[slot].name
    groups = _groups(detail, operand, letter, kernel, name)
    if groups is None:
        return None
    turned = is_turned(operand)
    if turned and letter == "a":
        return None
    if turned:
        number, row, col = groups
        groups = (number, col, row)
    own = {number: SymbolInfo(number, usual, 0) for number, usual in TILE_NUMBERS.items()}
    inner = ShapeEnv({**env.symbols, **own})
    rewriter = Rewriter(groups, inner, name)
    body = [rewriter.statement(stmt) for stmt in kernel.body]
    if any(stmt is None for stmt in body):
        return None
    axes = (Axis("r", inner.symbol("rows")), Axis("c", inner.symbol("cols")))
    made = Kernel(kernel.name, axes, kernel.buffers, tuple(s for s in body if s is not None), kernel.origin)
    known = isinstance(detail.k, int) and isinstance(
        detail.n, int
    )  # else copies of other sizes look the same
    main = _main(kernel, item.storages, slot) if known else -1
    return Filled(made, item.storages, slot, main, _tag(made, detail, turned))


def is_turned(operand: Operand) -> bool:
    """Whether an operand's columns lie together in memory and its rows do not."""
    return same(operand.row_stride, 1) and not same(operand.col_stride, 1)


def _groups(detail: Product, operand: Operand, letter: str, kernel: Kernel, buffer: str) -> Groups | None:
    """The axes of a kernel as the number of the product, row and column of the operand that it stores."""
    index = next(s.arg[1] for s in kernel.body if s.op == "store" and s.arg[0] == buffer)
    if not same(index.offset, place_of(operand.value).offset):
        return None
    rows, cols = (detail.m, detail.k) if letter == "a" else (detail.k, detail.n)
    terms = dict(index.terms)
    left = [(axis.name, axis.size) for axis in kernel.axes]
    number: list[tuple[str, Dim]] = []
    column = _take(left, terms, operand.col_stride, cols)
    row = _take(left, terms, operand.row_stride, rows)
    if column is None or row is None:
        return None
    for axis, (size, stride) in enumerate(zip(detail.batch, operand.batch_strides)):
        # what is the same for all products has no axis
        found = [(f"same{axis}", size)] if same(stride, 0) else _take(left, terms, stride, size)
        if found is None:
            return None
        number += found
    return None if left else (Group(tuple(number)), Group(tuple(row)), Group(tuple(column)))


def _take(
    left: list[tuple[str, Dim]], terms: dict[str, Dim], stride: Dim, extent: Dim
) -> list[tuple[str, Dim]] | None:
    """Takes the axes that step through ``extent`` elements, ``stride`` apart; outermost first."""
    found: list[tuple[str, Dim]] = []
    reached: Dim = 1
    while not same(reached, extent):
        axis = next((a for a in left if same(terms.get(a[0], 0), stride * reached)), None)
        if axis is None:
            return None
        left.remove(axis)
        found.insert(0, axis)
        reached = reached * axis[1]
    return found


# -- whether it is worth it -------------------------------------------------------------------
def _pays(filled: Filled, detail: Product, operand: Operand, letter: str) -> bool:
    """A right operand is made about once, a left one for each block of columns."""
    if hint(detail.k if letter == "a" else detail.n) < SHORT_ROW:
        return False
    size = operand.value.dtype.itemsize
    cost = work_of(filled.kernel) * 4 / max(size, 4)  # halves are made in float32
    if letter == "b":
        return cost <= CHEAP_NS
    blocks = -(-hint(detail.n) * min(hint(detail.k), BLOCK_TERMS) * size // BLOCK_BYTES)
    return hint(detail.m) * hint(detail.k) * size >= LARGE_LEFT and cost * (blocks - 1) <= CHEAP_NS


def _main(kernel: Kernel, storages: Sequence[Storage], target: int) -> int:
    """The largest source, where a copy of what is made can be kept: everything lies as it is said to."""
    sources = [k for k in range(len(storages)) if k != target]
    if not sources or len(sources) > MOST_SIDES + 1 or any(s.op == "symbol" for s in kernel.body):
        return -1
    sizes = {k: _bytes(storages[k]) for k in sources}
    if any(size is None for size in sizes.values()):
        return -1
    for stmt in kernel.body:
        if stmt.op == "load" and not _forward(stmt):
            return -1
    main = max(sources, key=lambda k: sizes[k] or 0)
    beside = sum(sizes[k] or 0 for k in sources if k != main)
    return main if beside <= SIDE_BYTES else -1


def _bytes(storage: Storage) -> int | None:
    return storage.size * storage.dtype.itemsize if isinstance(storage.size, int) else None


def _forward(stmt: Stmt) -> bool:
    """Whether a load goes up from a buffer's start, by steps that are known."""
    index = stmt.arg[1]
    return all(isinstance(step, int) and step >= 0 for step in (index.offset, *(t[1] for t in index.terms)))


def _tag(kernel: Kernel, detail: Product, turned: bool) -> int:
    """A number for what is made: equal only where that is the same, of the same place in memory."""
    text = kernel_text(replace(kernel, name="", origin=()))
    key = "\0".join([text, str(detail.k), str(detail.n), str(turned)])
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "little") | 1
