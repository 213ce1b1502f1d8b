"""Loads across the rows of an array: a tile is transposed in registers first, then read along its rows.

What is only copied is transposed from one array straight into the other (:func:`turned`).
"""

from __future__ import annotations

from ....symbolic.integers import Dim, hint
from ...loops.loop_ir import Index
from ..nest import (
    Blocks,
    LoopAxis,
    Nest,
    Node,
    Tile,
    Turn,
    coefficient,
    index_of,
    map_axes,
    map_indices,
    split,
)
from ..walk import Plan
from .stream import LINE_BYTES, touched_bytes

# Bytes along each side of a tile: it stays in the second-level cache; rows are long enough to fetch ahead.
SIDE_BYTES = 512
STAGED_MOST = 3
# Arrays of at least this many bytes are worth it in kernels that touch so many in all (Zen 4, without and
# with tiles: 29 and 25 GB/s at 12 MB in all, 11 and 20 at 16 MB, 9 and 13 at 24 MB); small ones where their
# rows are so far apart that the lines of a tile push each other out of the cache.
LARGE_BYTES = 1 << 22
TOUCHED_BYTES = 14 << 20
# Tiles below each other that come before those beside them: so many rows of a page each have addresses that
# are translated at once.
GROUP = 8
# Bytes of a row that a copy transposes at once: one cache line in each of so many rows of the result. Copies
# that touch more than so many bytes in all are made so (Zen 4, float32, before and after, GB/s: 15 and 19 at
# 8 MB, 11 and 33 at 14 MB, 14 and 21 at 32 MB with rows of 8 KB, 12 and 20 at 256 MB).
TURNED_BYTES = 4096
TURNED_FROM = 7 << 20
ALIASING = {4: 1024, 8: 4096}


def _side(nest: Nest, itemsize: int) -> int:
    return (nest.knobs.side or SIDE_BYTES) // itemsize


def is_staged(nest: Nest, vector: str, crossing: str) -> bool:
    """Whether the loads that jump along ``vector`` are worth tiles of their own; they are contiguous along
    ``crossing``. Stores that jump are left to the compiler."""
    for node in nest.nodes:
        index = index_of(node)
        if node.op == "store" and index is not None and abs(hint(coefficient(index, vector))) > 1:
            return False
    loads = [node for node in nest.nodes if _is_stageable(nest, node, vector, crossing)]
    if not 0 < len(loads) <= STAGED_MOST:
        return False
    if not (nest.knobs.staged or any(_is_slow(nest, node, vector, crossing) for node in loads)):
        return False
    side = max(_side(nest, node.dtype.itemsize) for node in loads)
    return all(nest.axes[axis].hint >= side for axis in (vector, crossing))


def turned(nest: Nest, vector: str, crossing: str, outer: list[str]) -> Plan | None:
    """The plan of a large copy that a function of the runtime transposes, past the caches; ``None`` for other
    nests."""
    copy = _copy(nest, vector, crossing)
    if copy is None:
        return None
    sizes = [nest.axes[axis].size for axis in (vector, crossing)]
    itemsize = copy[0].dtype.itemsize
    sides = LINE_BYTES // itemsize, TURNED_BYTES // itemsize
    column_block, column = split(nest, crossing, sides[1])
    row_block, row = split(nest, vector, sides[0])
    load, store = nest.nodes
    gone = frozenset((row_block, row, column_block, column))
    source = (load.arg[0], _without(load.arg[1], gone), coefficient(load.arg[1], row))
    target = (store.arg[0], _without(store.arg[1], gone), coefficient(store.arg[1], column))
    rows, columns = (Blocks(*b) for b in zip((row_block, column_block), sides, sizes))
    turn = Turn(source, target, rows, columns)
    nest.nodes = [Node("", "turn", (), store.axes - {column, row}, turn, load.dtype)]
    parallel = (*(a for a in outer if a != crossing), column_block, row_block)
    return Plan(parallel, parallel)


def _copy(nest: Nest, vector: str, crossing: str) -> tuple[Node, Node] | None:
    """The load and the store of a nest that only copies what is read across its rows."""
    if [node.op for node in nest.nodes] != ["load", "store"]:
        return None
    load, store = nest.nodes
    buffer = next(b for b in nest.kernel.buffers if b.name == store.arg[0])
    alone = buffer.mode == "out" and not buffer.aliases
    same = store.args == (load.out,) and buffer.dtype is load.dtype
    along = coefficient(store.arg[1], vector)
    if not (alone and same and isinstance(along, int) and along == 1):
        return None
    lines = hint(coefficient(store.arg[1], crossing)) * load.dtype.itemsize % LINE_BYTES == 0
    large = touched_bytes(nest.kernel) > TURNED_FROM if nest.knobs.staged is None else nest.knobs.staged
    return (load, store) if lines and large and _crosses(nest, load, vector, crossing) else None


def _is_slow(nest: Nest, node: Node, vector: str, crossing: str) -> bool:
    """Whether rows that are read across do not stay in the cache from column to column."""
    itemsize = node.dtype.itemsize
    size = nest.axes[vector].hint * nest.axes[crossing].hint * itemsize
    step = abs(hint(coefficient(node.arg[1], vector))) * itemsize
    large = size >= LARGE_BYTES and touched_bytes(nest.kernel) >= TOUCHED_BYTES
    return large or step % ALIASING[itemsize] == 0


def _is_stageable(nest: Nest, node: Node, vector: str, crossing: str) -> bool:
    return not node.dtype.is_complex and _crosses(nest, node, vector, crossing)


def _crosses(nest: Nest, node: Node, vector: str, crossing: str) -> bool:
    if node.op != "load" or node.dtype.itemsize not in ALIASING:
        return False
    buffer = next(b for b in nest.kernel.buffers if b.name == node.arg[0])
    if buffer.mode != "in" or buffer.aliases:
        return False
    along = coefficient(node.arg[1], crossing)
    return isinstance(along, int) and along == 1 and abs(hint(coefficient(node.arg[1], vector))) > 1


def staged_tiles(nest: Nest, vector: str, crossing: str, outer: list[str]) -> Plan:
    """Split both axes into tiles and let the crossing loads read transposed ones."""
    loads = [node.out for node in nest.nodes if _is_stageable(nest, node, vector, crossing)]
    side = min(_side(nest, node.dtype.itemsize) for node in nest.nodes if node.out in loads)
    rest = tuple(a for a in outer if a != crossing)
    column_block, column = split(nest, crossing, side)
    row_block, row = split(nest, vector, side)
    row_group = _group(nest, row_block, row)
    nodes: list[Node] = []
    for node in nest.nodes:
        nodes += _through_tile(node, column, row, side) if node.out in loads else [node]
    nest.nodes = nodes
    parallel = (*rest, row_group, column_block, row_block)
    return Plan((*parallel, column, row), parallel, row)


def _group(nest: Nest, block: str, inner: str) -> str:
    """Go through the blocks of an axis in groups; those behind the last one have fewer than 0 iterations."""
    group = f"{block}g"

    def change(index: Index) -> Index:
        factor = coefficient(index, block)
        return index if _is_zero(factor) else Index((*index.terms, (group, factor * GROUP)), index.offset)

    nest.nodes = map_axes(map_indices(nest.nodes, change), block, (group, block))
    count = nest.axes[block].size
    block_of = nest.axes[inner].block_of
    assert block_of is not None
    ((_, side), *_), size, total = block_of
    nest.axes[group] = LoopAxis(group, (count + GROUP - 1) // GROUP)
    nest.axes[block] = LoopAxis(block, GROUP)
    nest.axes[inner] = LoopAxis(inner, size, (((group, side * GROUP), (block, side)), size, total))
    return group


def _is_zero(value: Dim) -> bool:
    return isinstance(value, int) and value == 0


def _without(index: Index, axes: frozenset[str]) -> Index:
    return Index(tuple(t for t in index.terms if t[0] not in axes), index.offset)


def _through_tile(node: Node, column: str, row: str, side: int) -> list[Node]:
    buffer, index = node.arg
    tile = Tile(buffer, _without(index, frozenset((column, row))), column, row, coefficient(index, row), side)
    name = f"{node.out}_tile"
    return [
        Node(name, "stage", (), node.axes - {column, row}, tile, node.dtype),
        Node(node.out, "staged", (name,), node.axes, tile, node.dtype),
    ]
