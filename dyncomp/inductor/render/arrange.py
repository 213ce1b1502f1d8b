"""Loop order, tiling and parallel loops for the CPU: from a :class:`Nest` to a :class:`Plan`.

The innermost loop is the axis along which most bytes are contiguous. If a reduction runs over it, it
accumulates in vector lanes; if not, the reduction's loops go outside it and accumulate into a short array
(columns are summed by streaming rows). Large reductions are cut into blocks whose number and bounds depend
on sizes only, and their partial results are combined in order: the bits do not depend on threads.
"""

from __future__ import annotations

from dataclasses import replace

from ... import dtypes
from ...dtypes import DType
from ...symbolic.integers import Dim, hint, sym_max
from .cpp.stage import is_staged, staged_tiles, turned
from .nest import Accumulator, LocalArray, LoopAxis, Nest, Node, coefficient, index_of, split
from .unroll import is_in_order, unroll_short_axes
from .walk import Plan

# Bytes of accumulators when rows are streamed into an array of them, and the least elements of the loop.
COLUMN_BYTES = 16384
COLUMN_TILE = 512
# Rows of a block of them, at least.
LEAST_ROWS = 16
# A reduction is cut into blocks of at least this many elements, and at most this many blocks.
REDUCE_BLOCK = 8192
REDUCE_BLOCKS = 256
# Fewer parallel iterations than this are worth splitting further.
ENOUGH_PARALLEL = 8
# Points of a kernel below which it runs serially whatever its ops.
SERIAL_POINTS = 16384
VECTOR_BLOCK = 16384
# Partial results of one reduction: they live on the stack.
PARTIAL_ELEMENTS = 32768
TRANSPOSE_TILE = 16
# Rows shorter than this are reduced many at a time, ROW_TILE of them.
SHORT_ROW = 20
# But for whole vectors of any type: many rows at a time are read at places an even distance apart. On Zen 4
# sums of 10 to 16 elements are 2 to 4 times as fast row after row, but a softmax of 10 takes twice as long,
# since the functions of its last elements are computed one by one.
VECTOR_ROW = 16
ROW_TILE = 64


def arrange(nest: Nest, stages: bool = False) -> Plan:
    """Choose loop order and splits; ``nest`` is changed in place. ``stages``: the target can transpose tiles
    of what is read across its rows."""
    if nest.ordered():
        return Plan(tuple(nest.axes))
    unroll_short_axes(nest, _most_contiguous)
    if not nest.axes:
        return Plan(())
    if nest.reduced():
        return _arrange_reduction(nest)
    return _arrange_pointwise(nest, stages)


# -- scores -----------------------------------------------------------------------------------
def _contiguity(nest: Nest, axis: str) -> float:
    """Bytes per point that are contiguous along ``axis``, minus those that jump."""
    score = 0.0
    points = _points(nest, tuple(nest.axes))
    for node in nest.nodes:
        index = index_of(node)
        if index is None or node.op == "axis":
            continue
        step = abs(hint(coefficient(index, axis)))
        weight = node.dtype.itemsize * (1.5 if node.op == "store" else 1.0)
        weight *= _points(nest, tuple(node.axes)) / points
        if step == 1:
            score += weight
        elif step > 1:
            score -= weight
    return score


def _span(nest: Nest, axis: str) -> int:
    """The longest step that any access takes along ``axis``: outer loops have long ones."""
    steps = [abs(hint(coefficient(i, axis))) for n in nest.nodes if (i := index_of(n)) is not None]
    return max(steps, default=0)


def _outer_first(nest: Nest, names: list[str]) -> list[str]:
    place = {name: k for k, name in enumerate(nest.axes)}
    return sorted(names, key=lambda a: (-_span(nest, a), place[a]))


def _innermost(nest: Nest, names: list[str]) -> str:
    place = {name: k for k, name in enumerate(nest.axes)}
    reduced = nest.reduced()
    reduction = bool(reduced)
    in_order = is_in_order(nest)

    def key(name: str) -> tuple[bool, float, int]:
        score = _contiguity(nest, name)
        # a handful of iterations is no vector, however contiguous
        length = nest.axes[name].hint
        short = is_short_row(length, in_order) if name in reduced else length < (1 if in_order else 8)
        return (short and reduction, -(min(score, 0.0) / 4 if short else score), -place[name])

    return min(names, key=key)


def is_short_row(length: int, in_order: bool) -> bool:
    """Whether rows are reduced many at a time, one element of each after the other."""
    return length < SHORT_ROW and (in_order or length != VECTOR_ROW)


def _most_contiguous(nest: Nest) -> str:
    place = {name: k for k, name in enumerate(nest.axes)}
    return min(nest.axes, key=lambda name: (-_contiguity(nest, name), -place[name]))


def _points(nest: Nest, names: list[str] | tuple[str, ...]) -> int:
    total = 1
    for name in names:
        total *= max(nest.axes[name].hint, 1)
    return total


# -- pointwise --------------------------------------------------------------------------------
def _arrange_pointwise(nest: Nest, stages: bool) -> Plan:
    names = list(nest.axes)
    vector = _innermost(nest, names)
    outer = _outer_first(nest, [n for n in names if n != vector])
    if not outer:
        return Plan((vector,), (vector,), vector)
    crossing = _crossing_axis(nest, vector, outer)
    stages = stages and nest.knobs.staged is not False
    if crossing:
        plan = turned(nest, vector, crossing, outer) if stages else None
        if plan is not None:
            return plan
        if stages and is_staged(nest, vector, crossing):
            return staged_tiles(nest, vector, crossing, outer)
        return _tiled(nest, vector, crossing, outer)
    if _points(nest, outer) < ENOUGH_PARALLEL and nest.axes[vector].hint > 2 * VECTOR_BLOCK:
        block, inner = split(nest, vector, VECTOR_BLOCK)
        return Plan((*outer, block, inner), (*outer, block), inner)
    return Plan((*outer, vector), tuple(outer), vector)


def _crossing_axis(nest: Nest, vector: str, outer: list[str]) -> str:
    """An axis along which some access is contiguous that jumps along ``vector`` (a transpose)."""
    for node in nest.nodes:
        index = index_of(node)
        if index is None or node.op not in ("load", "store"):
            continue
        if abs(hint(coefficient(index, vector))) <= 1 or nest.axes[vector].hint < TRANSPOSE_TILE:
            continue
        for axis in outer:
            long_enough = nest.axes[axis].hint >= TRANSPOSE_TILE
            if abs(hint(coefficient(index, axis))) == 1 and long_enough:
                return axis
    return ""


def _tiled(nest: Nest, vector: str, crossing: str, outer: list[str]) -> Plan:
    rest = [a for a in outer if a != crossing]
    side = nest.knobs.block or TRANSPOSE_TILE
    crossing_block, crossing_inner = split(nest, crossing, side)
    vector_block, vector_inner = split(nest, vector, side)
    parallel = (*rest, crossing_block, vector_block)
    return Plan((*parallel, crossing_inner, vector_inner), parallel, vector_inner)


# -- reductions and scans ---------------------------------------------------------------------
def _scanned(nest: Nest) -> set[str]:
    return {node.arg[1] for node in nest.nodes if node.op == "scan"}


def _arrange_reduction(nest: Nest) -> Plan:
    reduced = nest.reduced()
    scanned = _scanned(nest)
    names = list(nest.axes)
    kept = [n for n in names if n not in reduced]
    vector = _innermost(nest, names)
    inner_order = _outer_first(nest, [n for n in reduced if n != vector])
    if vector in scanned:
        # steps of a scan are not lanes: the loop is serial
        order = (*_outer_first(nest, kept), *inner_order, vector)
        return Plan(order, _parallel_prefix(nest, _outer_first(nest, kept)), "")
    if vector in reduced:
        return _rows(nest, _outer_first(nest, kept), inner_order, vector, scanned)
    return _columns(nest, _outer_first(nest, [n for n in kept if n != vector]), inner_order, vector, scanned)


def _rows(nest: Nest, kept: list[str], inner: list[str], vector: str, scanned: set[str]) -> Plan:
    """The reduction runs along the vector loop."""
    parallel = _parallel_prefix(nest, kept)
    after = [n for n in kept if n not in parallel]
    total = _points(nest, tuple(nest.axes))
    if _points(nest, parallel) < ENOUGH_PARALLEL and total > 2 * SERIAL_POINTS and not scanned:
        victim = inner[0] if inner else vector
        others = max(total // max(nest.axes[victim].hint * _points(nest, parallel), 1), 1)
        blocked = _block_reduction(nest, victim, REDUCE_BLOCK // others, REDUCE_BLOCKS)
        if blocked is not None:
            block, serial, remaining = blocked
            inner = [remaining if n == victim else n for n in inner]
            vector = remaining if vector == victim else vector
            order = (*parallel, block, serial, *after, *inner, vector)
            return Plan(order, (*parallel, block), vector)
    size = nest.axes[vector]
    if size.hint > 2 * REDUCE_BLOCK and not scanned and not _has_position(nest):
        chunk, vector = _chunk_reduction(nest, vector, REDUCE_BLOCK)
        inner = [*inner, chunk]
    return Plan((*parallel, *after, *inner, vector), parallel, vector)


def _columns(nest: Nest, kept: list[str], inner: list[str], vector: str, scanned: set[str]) -> Plan:
    """The reduction's loops go outside the vector loop, which becomes a tile."""
    parallel = list(_parallel_prefix(nest, kept))
    after = [n for n in kept if n not in parallel]
    tile = _column_tile(nest, vector, inner, _points(nest, parallel))
    size = nest.axes[vector]
    if size.static is None or size.static > tile:
        block, vector = split(nest, vector, tile)
        if not after:
            parallel.append(block)
        else:
            after.append(block)
    total = _points(nest, tuple(nest.axes))
    if _points(nest, parallel) < ENOUGH_PARALLEL and total > 4 * SERIAL_POINTS and inner and not scanned:
        victim = inner[0]
        others = max(total // max(nest.axes[victim].hint * _points(nest, parallel), 1), 1)
        blocked = _block_reduction(nest, victim, max(REDUCE_BLOCK // others, LEAST_ROWS), 64)
        if blocked is not None:
            rows, serial, remaining = blocked
            inner = [remaining if n == victim else n for n in inner]
            order = (*parallel, rows, serial, *after, *inner, vector)
            return Plan(order, (*parallel, rows), vector)
    return Plan((*parallel, *after, *inner, vector), tuple(parallel), vector)


def _column_tile(nest: Nest, vector: str, inner: list[str], parallel: int) -> int:
    """Elements of the vector loop under a reduction: rows as long as their accumulators stay in the cache,
    but enough pieces for the threads where the matrix is wide."""
    if all(nest.axes[n].hint < SHORT_ROW for n in inner):
        return ROW_TILE
    held = sum(node.arg.dtype.itemsize for node in nest.nodes if node.op == "accumulate")
    longest = max(COLUMN_BYTES // max(held, 4), COLUMN_TILE)
    size = nest.axes[vector].hint
    if parallel >= ENOUGH_PARALLEL or size < ENOUGH_PARALLEL * COLUMN_TILE:
        return longest
    if size <= PARTIAL_ELEMENTS // 2 and _points(nest, inner) >= ENOUGH_PARALLEL * LEAST_ROWS:
        return longest  # blocks of rows are pieces, too, and memory is read fastest along long rows
    return min(longest, max(size // ENOUGH_PARALLEL // 64 * 64, COLUMN_TILE))


def _parallel_prefix(nest: Nest, kept: list[str]) -> tuple[str, ...]:
    """Leading axes that every accumulation has: others would repeat it per iteration."""
    chosen: list[str] = []
    for name in kept:
        held = all(name in n.axes for n in nest.nodes if n.op in ("accumulate", "scan"))
        if not held:
            break
        chosen.append(name)
    return tuple(chosen)


def _has_position(nest: Nest) -> bool:
    return any(node.op == "accumulate" and node.arg.position for node in nest.nodes)


# -- reductions in blocks ---------------------------------------------------------------------
def _block_reduction(nest: Nest, name: str, least: int, most: int) -> tuple[str, str, str] | None:
    """Cut reduced axis ``name`` into blocks whose partial results go to memory; returns the block axis, the
    axis that combines them in order and the axis inside a block. ``None`` if there is no use in it."""
    size = nest.axes[name].size
    least = max(least, 1)
    if hint(size) < 2 * least or _has_position(nest):
        return None
    users = [n for n in nest.nodes if n.op == "accumulate" and name in n.axes]
    if any(name not in n.arg.reduced for n in users):
        return None
    if any(nest.axes[a].static is None and not nest.axes[a].most for n in users for a in n.arg.axes):
        return None  # memory for the partial results must be known when compiling
    most = min(most, PARTIAL_ELEMENTS // _points(nest, tuple({a for n in users for a in n.arg.axes})))
    if most < 2:
        return None
    block: Dim = (size + most - 1) // most
    block = max(block, least) if isinstance(block, int) else sym_max(block, least)
    if isinstance(block, int) and block > 64:
        block = (block + 63) // 64 * 64
    outer, inner = split(nest, name, block)
    serial = f"{name}p"
    nest.axes[serial] = LoopAxis(serial, nest.axes[outer].size)
    if not isinstance(nest.axes[outer].size, int):
        # memory for the partial results must be known when compiling
        nest.axes[outer] = replace(nest.axes[outer], most=most)
    nest.nodes = [made for node in nest.nodes for made in _two_steps(nest, node, outer, inner, serial)]
    return outer, serial, inner


def _chunk_reduction(nest: Nest, name: str, block: int) -> tuple[str, str]:
    """Sum a long row as a sum of sums over chunks: as accurate as pairwise summation."""
    outer, inner = split(nest, name, block)
    nest.nodes = [made for node in nest.nodes for made in _two_steps(nest, node, outer, inner)]
    return outer, inner


def _two_steps(nest: Nest, node: Node, outer: str, inner: str, serial: str = "") -> list[Node]:
    """``serial``: the loop that combines partial results, where these are kept in memory."""
    acc = node.arg
    keep = bool(serial)
    if not isinstance(acc, Accumulator) or outer not in acc.reduced:
        return [node]
    partial = f"{acc.value}_p"
    # in memory: of all other loops; else of one chunk, which is added to the total at once
    held = {outer} if keep else {a for a in acc.reduced if a != inner}
    first = replace(
        acc, value=partial, reduced=tuple(a for a in acc.reduced if a not in held), axes=acc.axes | held
    )
    wide = wide_dtype(acc)
    rest = (serial,) if keep else tuple(a for a in acc.reduced if a in held)
    second = replace(acc, dtype=wide, reduced=rest)
    if node.op == "accumulate":
        finished = Node(partial, "finish", (), first.axes, first, wide)
        made = [replace(node, arg=first), finished]
        if keep:
            made += _through_memory(nest, acc, partial, wide, outer, serial)
        source = f"{partial}f" if keep else partial
        made.append(Node("", "accumulate", (source,), acc.axes | {*second.reduced}, second, wide))
        return made
    return [replace(node, arg=second)]


def _through_memory(
    nest: Nest, acc: Accumulator, partial: str, wide: DType, outer: str, serial: str
) -> list[Node]:
    order = [a for a in nest.axes if a in acc.axes]
    saved = LocalArray(f"part_{acc.value}", wide, (outer, *order))
    fetched = replace(saved, axes=(serial, *order))
    nest.arrays.append(saved)
    return [
        Node("", "save", (partial,), acc.axes | {outer}, saved, wide),
        Node(f"{partial}f", "fetch", (), acc.axes | {serial}, fetched, wide),
    ]


def wide_dtype(acc: Accumulator) -> DType:
    """The dtype in which partial results of an accumulation are combined."""
    if acc.combiner in ("sum", "prod") and acc.dtype.is_float and acc.dtype.itemsize <= 4:
        return dtypes.float64
    return acc.dtype
