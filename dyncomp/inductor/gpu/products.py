"""Matrix products by a Triton template, with the pointwise kernel that finishes each tile.

Three forms: *plain* (a program per tile), *persistent* (as many programs as processors, each going from tile
to tile, so that loads of the next overlap with the end of the last) and *descriptor* (persistent, operands
copied by the hardware's tensor descriptors: Hopper and later). Sums are of float32; float32 operands are
multiplied as such (no tf32).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dataclass import dataclass
from ...dtypes import DType, bfloat16, float16, float32
from ...symbolic.integers import Dim, SymInt, hint, product, same
from ..render.triton.layout import Group, power_of_two
from ..render.triton.statements import identifier, pointer_type
from ..render.triton.tile import (
    POSITIONS,
    TilePrinter,
    in_registers,
    masks,
    outer_symbols,
    pointers_of,
    symbols_of,
    text_of,
    tile_printer,
)
from ..render.triton.unit import TritonKernel
from ..schedule import CallBlas, Matrix
from .jit import jit_kernel

HALVES = (float16, bfloat16)
TEMPLATE_DTYPES = (*HALVES, float32)
# Rows of tiles whose programs run side by side, to share columns of b in the cache.
GROUP = 8
# Offsets from a pointer beyond this take 64 bits.
NARROW = 2**31 - 2**16
# What a tensor descriptor asks of addresses and of strides, in bytes.
DESCRIPTOR_BYTES = 16


@dataclass(frozen=True)
class Tile:
    """What one program computes at a time, in steps of ``depth`` along the contracted dimension."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int

    @property
    def text(self) -> str:
        return f"{self.rows}x{self.columns}x{self.depth}_{self.warps}_{self.stages}"


HALF_TILES = (
    Tile(128, 256, 64, 8, 3),
    Tile(256, 128, 64, 8, 3),
    Tile(128, 128, 64, 4, 3),
    Tile(128, 64, 64, 4, 4),
    Tile(64, 128, 64, 4, 4),
    Tile(64, 64, 64, 4, 4),
    Tile(16, 128, 128, 4, 4),
    Tile(16, 64, 128, 4, 5),
)
FLOAT_TILES = (
    Tile(128, 64, 16, 8, 3),
    Tile(64, 64, 32, 4, 3),
    Tile(64, 32, 32, 4, 3),
    Tile(16, 64, 64, 4, 3),
)
# Those that go from tile to tile.
PERSISTENT_TILES = (Tile(128, 256, 64, 8, 3), Tile(128, 128, 64, 8, 4), Tile(128, 128, 64, 4, 3))
DESCRIPTOR_TILES = (Tile(128, 256, 64, 8, 3), Tile(128, 128, 64, 8, 4), Tile(128, 128, 128, 8, 2))


@dataclass(frozen=True)
class Processor:
    """What is asked of a GPU: how many multiprocessors it has, and whether it copies by tensor
    descriptors."""

    count: int = 132
    descriptors: bool = False


# -- which ------------------------------------------------------------------------------------
def has_template(step: CallBlas) -> bool:
    """Whether the template computes a product: of halves or float32. Sizes may be known at the call only."""
    if (
        source_of(step) not in TEMPLATE_DTYPES
        or step.dtype not in TEMPLATE_DTYPES
        or step.windows is not None
    ):
        return False
    return not any(same(d, 0) for d in (step.m, step.n, step.k))


def is_sized(step: CallBlas) -> bool:
    """Whether all sizes and strides are known now."""
    return all(isinstance(d, int) for d in sizes_of(step))


def symbols_in(step: CallBlas) -> tuple[str, ...]:
    """The sizes that are known at the call only."""
    outer = outer_symbols(step.epilogue.kernel) if step.epilogue is not None else ()
    return tuple(sorted({*symbols_of(sizes_of(step)), *outer}))


def extents(step: CallBlas) -> list[Dim]:
    """What has to fit into 32 bits, of what is known at the call only."""
    return [d for d in (*spans_of(step), *sizes_of(step)) if isinstance(d, SymInt)]


def candidates(step: CallBlas, processor: Processor) -> list[TritonKernel]:
    """The template in the forms and tiles that suit a product, the likeliest first."""
    half = source_of(step) in HALVES
    tiles = suitable(step, HALF_TILES if half else FLOAT_TILES)
    found = [render_product(step, tile) for tile in tiles]
    if half and is_sized(step) and hint(count_tiles(step, Tile(128, 128, 64, 8, 3))) > processor.count:
        persistent = suitable(step, PERSISTENT_TILES)
        found += [render_product(step, t, "persistent", processor.count) for t in persistent]
        if processor.descriptors and has_descriptors(step):
            described = suitable(step, DESCRIPTOR_TILES)
            found += [render_product(step, t, "descriptor", processor.count) for t in described]
    return found


def preferred(step: CallBlas, processor: Processor) -> int:
    """The number of the candidate to take unmeasured: the largest tile that leaves no processor idle."""
    tiles = suitable(step, HALF_TILES if source_of(step) in HALVES else FLOAT_TILES)
    for number, tile in enumerate(tiles):
        if hint(count_tiles(step, tile)) >= processor.count:
            return number
    counts = [hint(count_tiles(step, tile)) for tile in tiles]
    return counts.index(max(counts))


def suitable(step: CallBlas, tiles: Sequence[Tile]) -> list[Tile]:
    """Tiles of which a product fills more than half, or the one that it fills most of."""
    m, n = power_of_two(hint(step.m)), power_of_two(hint(step.n))
    found = [t for t in tiles if t.rows <= max(m, 16) and t.columns <= max(n, 32)]
    return found or [min(tiles, key=lambda t: t.rows * t.columns)]


def count_tiles(step: CallBlas, tile: Tile) -> Dim:
    high = (step.m + (tile.rows - 1)) // tile.rows
    broad = (step.n + (tile.columns - 1)) // tile.columns
    return high * broad * product(step.batch)


def source_of(step: CallBlas) -> DType:
    return step.source or step.dtype


def sizes_of(step: CallBlas) -> list[Dim]:
    """Sizes, and strides of what the product reads and writes."""
    dims: list[Dim] = [step.m, step.n, step.k, *step.batch]
    for matrix in (step.a, step.b, step.c):
        if matrix is not None:
            dims += [matrix.row_stride, matrix.col_stride, *matrix.batch_strides]
    return dims


def has_descriptors(step: CallBlas) -> bool:
    """Whether both operands are what a tensor descriptor can describe."""
    if len(step.batch) > 1:
        return False
    size = source_of(step).itemsize
    for matrix in (step.a, step.b):
        inner, outer = sorted((int(matrix.row_stride), int(matrix.col_stride)))
        steps = [outer, *map(int, matrix.batch_strides), matrix.offset]
        if inner != 1 or outer <= 0:
            return False
        if any(not isinstance(s, int) or s * size % DESCRIPTOR_BYTES for s in steps):
            return False
    return True


# -- the text ---------------------------------------------------------------------------------
def render_product(step: CallBlas, tile: Tile, form: str = "plain", processors: int = 132) -> TritonKernel:
    """The template for one product and tile. Pointers are to the first elements of a, b and (where it is
    written) c, then to the epilogue's buffers. Forms other than plain are of known sizes."""
    writer = ProductWriter(step, tile, form, processors)
    body = writer.text()
    title = identifier(f"product_{step.m}x{step.n}x{step.k}_{tile.text}_{form}")
    return writer.kernel(title, body, writer.total if form == "plain" else writer.programs)


class ProductWriter:
    """Writes the body of a product's kernel. ``form``: see the module."""

    def __init__(self, step: CallBlas, tile: Tile, form: str, processors: int) -> None:
        self.step = step
        self.tile = tile
        self.form = form
        self.m, self.n, self.k = step.m, step.n, step.k
        self.rows = Group("r", ("r",), self.m, tile.rows)
        self.columns = Group("c", ("c",), self.n, tile.columns)
        self.total = count_tiles(step, tile)
        self.programs = min(hint(self.total), processors)
        self.wide = is_wide(step)
        self.lines: list[str] = []
        self.depth = 1

    def kernel(self, title: str, body: str, programs: Dim) -> TritonKernel:
        tile = self.tile
        blocks = {"ROWS": tile.rows, "COLUMNS": tile.columns, "DEPTH": tile.depth}
        work = (programs, tile.warps, tile.stages)
        return jit_kernel(title, body, self.pointers(), blocks, *work, symbols_in(self.step))

    def line(self, text: str) -> None:
        self.lines += ["    " * self.depth + part for part in text.splitlines()]

    def pointers(self) -> dict[str, str]:
        step = self.step
        found = dict.fromkeys(("p_left", "p_right"), pointer_type(source_of(step)))
        if step.c is not None:
            found["p_target"] = pointer_type(step.dtype)
        if step.epilogue is not None:
            kernel = step.epilogue.kernel
            for name, number in pointers_of(kernel, [step.epilogue.source]).items():
                found[name] = pointer_type(kernel.buffers[number].dtype)
        return found

    def text(self) -> str:
        if self.form == "descriptor":
            self.descriptors()
        if self.form == "plain":
            self.line("place = tl.program_id(0)")
        else:
            self.line(f"for place in tl.range(tl.program_id(0), {self.total}, {self.programs}):")
            self.depth += 1
        self.numbers()
        self.product()
        self.finish()
        return "\n".join(self.lines) + "\n"

    def numbers(self) -> None:
        """The tile's place; tiles of a group of rows follow one another, to share columns in the cache."""
        high, broad = self.rows.blocks, self.columns.blocks
        tiles, in_group = at_least_one(high * broad), at_least_one(broad * GROUP)
        wide = ".to(tl.int64)" if self.wide else ""
        self.line(f"number = (place // {tiles}){wide}" if self.step.batch else "number = 0")
        self.line(f"tile = place % {tiles}" if self.step.batch else "tile = place")
        self.line(f"group = tile // {in_group}")
        self.line(f"height = tl.minimum({at_least_one(high)} - group * {GROUP}, {GROUP})")
        self.line(f"inside = tile % {in_group}")
        self.line(f"row = ((group * {GROUP} + inside % height) * ROWS){wide}")
        self.line(f"col = ((inside // height) * COLUMNS){wide}")
        self.line(POSITIONS)
        for mask in masks(self.rows, self.columns):
            self.line(mask)

    # -- operands -----------------------------------------------------------------------------
    def start(self, matrix: Matrix) -> str:
        return starts(self.step.batch, matrix.batch_strides)

    def product(self) -> None:
        precision = ', input_precision="ieee"' if source_of(self.step) is float32 else ""
        self.line("total = tl.zeros((ROWS, COLUMNS), tl.float32)")
        if self.form == "descriptor":
            self.line(f"for start in range(0, {self.k}, DEPTH):")
            self.line(f"    left = {self.described('left', self.step.a, 'row', 'start')}")
            self.line(f"    right = {self.described('right', self.step.b, 'start', 'col')}")
            self.line("    total = tl.dot(left, right, total)")
            return
        step = self.step
        self.line("i_k = tl.arange(0, DEPTH)")
        a_row, a_col, b_row, b_col = (
            text_of(s) for s in (step.a.row_stride, step.a.col_stride, step.b.row_stride, step.b.col_stride)
        )
        depth = text_of(self.k)
        left = f"(row + i_r) * {a_row} + i_k[None, :] * {a_col}"
        right = f"i_k[:, None] * {b_row} + (col + i_c) * {b_col}"
        self.line(f"at_left = p_left + {self.start(step.a)} + {left}")
        self.line(f"at_right = p_right + {self.start(step.b)} + {right}")
        self.line(f"for start in range(0, {depth}, DEPTH):")
        ends = not isinstance(self.k, int) or self.k % self.tile.depth != 0
        left_masks = ["r_mask"] if self.rows.is_masked else []
        right_masks = ["c_mask"] if self.columns.is_masked else []
        if ends:
            left_masks.append(f"(i_k[None, :] < {depth} - start)")
            right_masks.append(f"(i_k[:, None] < {depth} - start)")
        self.line(f"    left = tl.load(at_left{_masked(left_masks)})")
        self.line(f"    right = tl.load(at_right{_masked(right_masks)})")
        self.line(f"    total = tl.dot(left, right, total{precision})")
        self.line(f"    at_left += DEPTH * {a_col}")
        self.line(f"    at_right += DEPTH * {b_row}")

    def descriptors(self) -> None:
        shapes = {"left": (self.m, self.k, "ROWS", "DEPTH"), "right": (self.k, self.n, "DEPTH", "COLUMNS")}
        for name, matrix in (("left", self.step.a), ("right", self.step.b)):
            high, broad, rows, columns = shapes[name]
            steps = [int(matrix.row_stride), int(matrix.col_stride)]
            extents, blocks = [high, broad], [rows, columns]
            if _is_turned(matrix):
                steps, extents, blocks = steps[::-1], extents[::-1], blocks[::-1]
            lead = [int(e) for e in self.step.batch]
            shape = ", ".join(map(str, [*lead, *extents]))
            strides = ", ".join(map(str, [*map(int, matrix.batch_strides), *steps]))
            block = ", ".join([*(["1"] * len(lead)), *blocks])
            made = f"tl.make_tensor_descriptor(p_{name}, [{shape}], [{strides}], [{block}])"
            self.line(f"all_{name} = {made}")

    def described(self, name: str, matrix: Matrix, row: str, col: str) -> str:
        blocks = ["ROWS", "DEPTH"] if name == "left" else ["DEPTH", "COLUMNS"]
        places = [row, col]
        if _is_turned(matrix):
            places, blocks = places[::-1], blocks[::-1]
        lead = ["number"] if self.step.batch else []
        text = f"all_{name}.load([{', '.join([*lead, *places])}])"
        if lead:
            text += f".reshape({', '.join(blocks)})"
        return f"{text}.T" if _is_turned(matrix) else text

    # -- results ------------------------------------------------------------------------------
    def finish(self) -> None:
        step = self.step
        if step.c is not None:
            down, across = text_of(step.c.row_stride), text_of(step.c.col_stride)
            at = f"(row + i_r) * {down} + (col + i_c) * {across}"
            conditions = [g.name + "_mask" for g in (self.rows, self.columns) if g.is_masked]
            mask = f", mask={' & '.join(conditions)}" if conditions else ""
            self.line(
                f"tl.store(p_target + {self.start(step.c)} + {at}, total.to(tl.{step.dtype.name}){mask})"
            )
        if step.epilogue is None:
            return
        self.line(f"sums = {in_registers('total', step.dtype.name)}")
        self.lines += self.epilogue().body()

    def epilogue(self) -> TilePrinter:
        tiled = self.step.epilogue
        assert tiled is not None
        printer = tile_printer(tiled.kernel, tiled.source, self.rows, self.columns, self.depth, self.wide)
        printer.tile = "sums"
        return printer


def _masked(conditions: list[str]) -> str:
    return f", mask={' & '.join(conditions)}, other=0" if conditions else ""


def at_least_one(count: Dim) -> str:
    """A number of tiles as text, by which positions are divided though there may be none at a call."""
    return str(count) if isinstance(count, int) else f"tl.maximum({text_of(count)}, 1)"


def _is_turned(matrix: Matrix) -> bool:
    """Whether a matrix lies in memory column by column."""
    return int(matrix.col_stride) != 1


def starts(batch: Sequence[Dim], strides: Sequence[Dim]) -> str:
    """Where the matrix of product number ``number`` begins."""
    parts: list[str] = []
    inner: Dim = 1
    for size, stride in reversed(list(zip(batch, strides))):
        parts.append(f"(number // {text_of(inner)} % {text_of(size)}).to(tl.int64) * {text_of(stride)}")
        inner = inner * size
    return " + ".join(parts) or "0"


def is_wide(step: CallBlas) -> bool:
    """Whether positions within one product need 64 bits (sizes known at the call are compared there)."""
    return any(isinstance(s, int) and s >= NARROW for s in spans_of(step))


def spans_of(step: CallBlas) -> list[Dim]:
    """How far positions within one product reach."""
    spans: list[Dim] = [step.m * step.n]
    for matrix, rows, columns in (
        (step.a, step.m, step.k),
        (step.b, step.k, step.n),
        (step.c, step.m, step.n),
    ):
        if matrix is not None:
            spans.append(rows * _length(matrix.row_stride) + columns * _length(matrix.col_stride))
    if step.epilogue is not None:
        held = (step.epilogue.source, step.epilogue.sink)
        spans += [b.size for k, b in enumerate(step.epilogue.kernel.buffers) if k not in held]
    return spans


def _length(stride: Dim) -> Dim:
    return abs(stride) if isinstance(stride, int) else stride
