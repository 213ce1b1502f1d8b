"""How a kernel's axes become the dimensions of a Triton program's blocks, and how large these are.

A program works on a block of one or two dimensions, each a :class:`Group` of axes seen as one: the parallel
axes flattened (``x``; with ``y`` outside of it where accesses disagree on which axis is contiguous) and the
reduced ones (``r``), which are held at once where they fit (*persistent*), else stepped through.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ....dataclass import dataclass, field
from ....symbolic.integers import Dim, hint, product
from ..nest import Nest, Node, index_of, map_axes

# Elements of a program's block, by what the program does.
POINTWISE_ELEMENTS = 1024
TILE = (32, 64)
# Where accesses disagree, those along another axis count from this share of the bytes on (a bias is read
# from the cache).
CROSSING = 1 / 8
# A reduced axis up to this long is held in registers of one program: of all arrays that run along it so many
# elements, of each so many.
PERSISTENT_ELEMENTS = 65536
PERSISTENT_LENGTH = 32768
# A block of columns that one program holds.
PERSISTENT_BLOCK = 8192
# What a program takes at a time of a longer one, if it shares it with others; of a row of its own, so much
# that few rows are in work and the second-level cache holds them, for they are read more than once.
PART_ELEMENTS = 2048
LOOP_ELEMENTS = 8192
# Columns that a program reduces at once (a warp's lines are 128 bytes), and its rows per step.
COLUMNS = 64
COLUMN_ROWS = 64
# Fewer programs than this leave processors of a large GPU idle.
BUSY = 264
# Bytes that a warp reads of one array at a time: some loads of 16 bytes for each thread are in flight.
BYTES_PER_WARP = 1024
COLUMN_BYTES_PER_WARP = 2048
LEAST_ITEMSIZE = 2
MOST_WARPS = 32
# A reduction is split over programs where it is at least this long, into parts of at least this size.
SPLIT_FROM = 32768
PART = 8192
# The same where it reads at positions known at run time, one wait for memory after another.
GATHERED_SPLIT_FROM = 4096
GATHERED_PART = 1024
FLAT = "r"


@dataclass(frozen=True)
class Group:
    """Axes that one block dimension runs over, outermost first. ``block``: its length, a power of two."""

    name: str
    axes: tuple[str, ...]
    size: Dim
    block: int

    @property
    def is_masked(self) -> bool:
        """Whether some block reaches past the end."""
        return not isinstance(self.size, int) or self.size % self.block != 0

    @property
    def blocks(self) -> Dim:
        """How many blocks there are."""
        return (self.size + (self.block - 1)) // self.block


@dataclass(frozen=True)
class Layout:
    """``kept``: the groups of parallel axes, ``reduced``: that of the reduced ones. ``parts``: how many
    programs share one reduction."""

    kept: tuple[Group, ...]
    reduced: Group | None
    persistent: bool
    warps: int
    parts: int = 1

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.kept if self.reduced is None else (*self.kept, self.reduced)

    @property
    def rank(self) -> int:
        return len(self.groups)

    def groups_of(self, axes: Iterable[str]) -> list[Group]:
        """The groups that some of ``axes`` are in, outermost first."""
        wanted = set(axes)
        return [g for g in self.groups if wanted & {*g.axes, g.name}]


def power_of_two(value: int) -> int:
    """The smallest power of two that is not less."""
    return 1 << max(value - 1, 0).bit_length()


@dataclass
class _Accesses:
    """Bytes read and written per point, by the axis along which they are contiguous. ``itemsize``: of the
    widest elements; ``rows``: how many arrays run along each axis; ``gathers``: some are read at
    positions known at run time."""

    of_axis: dict[str, float] = field(default_factory=dict)
    itemsize: int = LEAST_ITEMSIZE
    rows: dict[str, int] = field(default_factory=dict)
    gathers: bool = False

    @staticmethod
    def of(nest: Nest) -> _Accesses:
        found = _Accesses(gathers=any(node.op == "gather" for node in nest.nodes))
        for node in nest.nodes:
            index = index_of(node) if node.op in ("load", "store") else None
            if index is None:
                continue
            found.itemsize = max(found.itemsize, node.dtype.itemsize)
            share = node.dtype.itemsize * _share(nest, node)
            for axis, step in index.terms:
                if axis not in nest.axes:
                    continue
                if node.op == "load":
                    found.rows[axis] = found.rows.get(axis, 0) + 1
                if abs(hint(step)) == 1 and nest.axes[axis].hint > 1:
                    found.of_axis[axis] = found.of_axis.get(axis, 0.0) + share
        return found

    def along(self, axes: Iterable[str]) -> float:
        return sum(self.of_axis.get(a, 0.0) for a in axes)

    def held(self, axes: Iterable[str]) -> int:
        """How many arrays a program that holds ``axes`` has in registers."""
        return max((self.rows.get(a, 0) for a in axes), default=1) or 1


def _share(nest: Nest, node: Node) -> float:
    """At how many of the points a node is done, as a share of all."""
    share = 1.0
    for name, axis in nest.axes.items():
        if name not in node.axes:
            share /= max(axis.hint, 1)
    return share


def flatten_reduced(nest: Nest) -> tuple[str, ...]:
    """Make one loop of all reduced axes, as far as statements go (indices keep the axes). Returns them."""
    reduced = nest.reduced()
    axes = tuple(a for a in nest.axes if a in reduced)
    if len(axes) > 1:
        for axis in axes:
            nest.nodes = map_axes(nest.nodes, axis, (FLAT,))
        for place, node in enumerate(nest.nodes):
            if node.op == "accumulate" or node.op == "finish":
                nest.nodes[place] = replace(node, arg=replace(node.arg, reduced=(FLAT,)))
    return axes


def choose_layout(nest: Nest, reduced: tuple[str, ...], can_split: bool) -> Layout:
    """Blocks for ``nest``, whose reduced axes are ``reduced``; ``can_split``: reductions may be shared by
    several programs."""
    accesses = _Accesses.of(nest)
    kept = _ordered(nest, [a for a in nest.axes if a not in reduced], accesses)
    if not reduced:
        return _pointwise(nest, kept, accesses)
    points = product(nest.axes[a].size for a in kept)
    length = product(nest.axes[a].size for a in reduced)
    if accesses.along(kept) > accesses.along(reduced) and hint(points) > 1:
        return _columns(kept, points, reduced, length, can_split, accesses)
    return _rows(kept, points, reduced, length, can_split, accesses)


def _ordered(nest: Nest, kept: list[str], accesses: _Accesses) -> tuple[str, ...]:
    """Parallel axes with the one that most accesses are contiguous along innermost."""
    if nest.ordered() or len(kept) < 2:
        return tuple(kept)
    best = max(kept, key=lambda a: (accesses.of_axis.get(a, 0), kept.index(a)))
    if not accesses.of_axis.get(best):
        return tuple(kept)
    return (*[a for a in kept if a != best], best)


def _pointwise(nest: Nest, kept: tuple[str, ...], accesses: _Accesses) -> Layout:
    sizes = {a: nest.axes[a].size for a in kept}
    points = product(sizes.values())
    least = accesses.along(kept[-1:]) * CROSSING
    crossing = [a for a in kept[:-1] if accesses.of_axis.get(a, 0) > least and nest.axes[a].hint >= TILE[0]]
    if crossing and nest.axes[kept[-1]].hint >= TILE[0]:
        other = max(crossing, key=lambda a: accesses.of_axis[a])
        outside = tuple(a for a in kept[:-1] if a != other)
        tall, wide = TILE
        y = Group("y", (*outside, other), product(sizes[a] for a in (*outside, other)), tall)
        x = Group("x", kept[-1:], sizes[kept[-1]], wide)
        return Layout((y, x), None, True, 4)
    block = min(POINTWISE_ELEMENTS, power_of_two(max(hint(points), 1)))
    while block > 256 and hint(points) // block < BUSY:
        block //= 2
    warps = min(_warps(block, accesses), 8)
    return Layout((Group("x", kept, points, block),), None, True, warps)


def _warps(elements: int, accesses: _Accesses, bytes_per_warp: int = BYTES_PER_WARP) -> int:
    return min(max(power_of_two(elements * min(accesses.itemsize, 4) // bytes_per_warp), 1), MOST_WARPS)


def _rows(
    kept: tuple[str, ...],
    points: Dim,
    reduced: tuple[str, ...],
    length: Dim,
    can_split: bool,
    accesses: _Accesses,
) -> Layout:
    """Reduced axes contiguous in memory: whole rows, several of them where they are short."""
    whole = power_of_two(max(hint(length), 1))
    parts = _parts(hint(points), hint(length), can_split, accesses)
    fits = whole <= PERSISTENT_LENGTH and whole * accesses.held(reduced) <= PERSISTENT_ELEMENTS
    persistent = isinstance(length, int) and fits and parts == 1
    block = whole if persistent else min(whole, PART_ELEMENTS if parts > 1 else LOOP_ELEMENTS)
    rows = min(max(POINTWISE_ELEMENTS // block, 1), power_of_two(max(hint(points), 1)))
    while rows > 1 and hint(points) // rows < BUSY:
        rows //= 2
    groups = (Group("x", kept, points, rows),)
    warps = _warps(rows * block, accesses)
    return Layout(groups, Group("r", reduced, length, block), persistent, warps, parts)


def _columns(
    kept: tuple[str, ...],
    points: Dim,
    reduced: tuple[str, ...],
    length: Dim,
    can_split: bool,
    accesses: _Accesses,
) -> Layout:
    """Parallel axes contiguous in memory: several columns at once, a few of their rows at a time."""
    columns = min(COLUMNS, power_of_two(max(hint(points), 1)))
    whole = power_of_two(max(hint(length), 1))
    programs = -(-hint(points) // columns)
    parts = _parts(programs, hint(length) * columns, can_split, accesses)
    while columns > 16 and hint(points) // columns < BUSY and parts == 1:
        columns //= 2
    persistent = isinstance(length, int) and whole * columns <= PERSISTENT_BLOCK and parts == 1
    block = whole if persistent else min(whole, COLUMN_ROWS)
    groups = (Group("x", kept, points, columns),)
    warps = _warps(columns * block, accesses, COLUMN_BYTES_PER_WARP)
    return Layout(groups, Group("r", reduced, length, block), persistent, warps, parts)


def _parts(programs: int, length: int, can_split: bool, accesses: _Accesses) -> int:
    """Into how many parts to cut a reduction of ``length`` elements per program."""
    least, part = (GATHERED_SPLIT_FROM, GATHERED_PART) if accesses.gathers else (SPLIT_FROM, PART)
    if not can_split or programs >= BUSY // 2 or length < least:
        return 1
    return max(min(BUSY * 2 // max(programs, 1), length // part), 1)
