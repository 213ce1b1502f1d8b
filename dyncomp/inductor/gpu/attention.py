"""Attention by a Triton template: ``softmax(f(q @ k)) @ v`` without the scores in memory.

Keys are gone through a block at a time, with the largest score and the sum so far of each row (Milakov and
Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). ``f`` is
any pointwise function of a score, its place and what is read there: scale, additive and boolean masks,
causality, a soft cap. Blocks of keys that a causal mask hides from all rows of a program are left out, and
only those that it cuts are masked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass
from ...dtypes import float32
from ...symbolic.integers import Dim, SymInt, hint, product, same
from ..fusion.softmax import find_softmax
from ..loops.loop_ir import Axis, Kernel, Stmt
from ..render.triton.layout import Group, power_of_two
from ..render.triton.statements import identifier, pointer_type
from ..render.triton.tile import (
    POSITIONS,
    in_registers,
    masks,
    outer_symbols,
    pointers_of,
    symbols_of,
    text_of,
    tile_printer,
)
from ..render.triton.unit import TritonKernel
from ..schedule import CallChain, Matrix, TileKernel
from .jit import jit_kernel
from .products import DESCRIPTOR_BYTES, HALVES, Processor, is_wide, spans_of, starts

# Heads wider than this leave no registers for a block of keys.
WIDEST = 256
LEAST = 16


@dataclass(frozen=True)
class Block:
    """Rows (queries) of a program, and columns (keys) that it takes at a time; ``described``: these are
    copied by the hardware's tensor descriptors (Hopper and later)."""

    rows: int
    columns: int
    warps: int
    stages: int
    described: bool = False


# By the width of heads: up to 64, up to 128, wider.
NARROW_BLOCKS = (Block(128, 64, 4, 3), Block(128, 128, 8, 2), Block(64, 64, 4, 3), Block(64, 32, 4, 3))
HALF_BLOCKS = (Block(128, 64, 8, 3), Block(64, 64, 4, 2), Block(64, 32, 4, 3))
WIDE_BLOCKS = (Block(64, 32, 4, 2), Block(64, 64, 8, 2), Block(32, 32, 4, 2))
# The same where operands of products are read from shared memory, not registers, and there is more of it.
HOPPER_NARROW_BLOCKS = (
    Block(64, 64, 4, 3),
    Block(128, 64, 4, 3),
    Block(128, 64, 8, 3),
    Block(64, 128, 4, 2, described=True),
    Block(128, 128, 8, 2, described=True),
)
HOPPER_HALF_BLOCKS = (
    Block(128, 64, 8, 2, described=True),
    Block(128, 128, 8, 2, described=True),
    Block(128, 128, 8, 3),
    Block(64, 64, 4, 3),
    Block(128, 64, 8, 3),
)
FLOAT_BLOCKS = (Block(32, 32, 4, 2), Block(64, 32, 8, 2))
SHORT_BLOCKS = (Block(16, 64, 4, 3), Block(16, 128, 4, 3))


# -- which ------------------------------------------------------------------------------------
def has_template(step: CallChain) -> bool:
    """Whether the template computes a chain: halves or float32 throughout, narrow heads. The numbers of
    heads, queries and keys may be known at the call only."""
    first, second = step.first, step.second
    tiled = first.epilogue
    if tiled is None or second.c is None:
        return False
    dtypes = {first.source or first.dtype, second.source or second.dtype}
    if len(dtypes) != 1 or not dtypes <= {*HALVES, float32}:
        return False
    if first.dtype not in (*HALVES, float32) or second.dtype not in (*HALVES, float32):
        return False
    within = [first.k, second.n, *(s for m in _matrices(step) for s in (m.row_stride, m.col_stride))]
    if not all(isinstance(d, int) for d in within) or same(first.n, 0):
        return False
    return 0 < int(first.k) <= WIDEST and 0 < int(second.n) <= WIDEST


def _matrices(step: CallChain) -> list[Matrix]:
    found = (step.first.a, step.first.b, step.second.b, step.second.c)
    return [matrix for matrix in found if matrix is not None]


def _dims(step: CallChain) -> list[Dim]:
    """What may be known at the call only."""
    strides = [s for matrix in _matrices(step) for s in matrix.batch_strides]
    return [step.first.m, step.first.n, *step.first.batch, *strides]


def extents(step: CallChain) -> list[Dim]:
    """What has to fit into 32 bits."""
    dims = [*spans_of(step.first), *spans_of(step.second), *_dims(step)]
    return [d for d in dims if isinstance(d, SymInt)]


def candidates(step: CallChain, processor: Processor) -> list[TritonKernel]:
    """The template with the blocks that suit, the likeliest first."""
    return [render_attention(step, block) for block in _blocks(step, processor)]


def _blocks(step: CallChain, processor: Processor) -> Sequence[Block]:
    first = step.first
    if hint(first.m) <= LEAST:
        return SHORT_BLOCKS
    if (first.source or first.dtype) is float32:
        return FLOAT_BLOCKS
    width = max(int(first.k), int(step.second.n))
    if width > 128:
        return WIDE_BLOCKS
    blocks: Sequence[Block] = HALF_BLOCKS if width > 64 else NARROW_BLOCKS
    if processor.descriptors:
        blocks = HOPPER_HALF_BLOCKS if width > 64 else HOPPER_NARROW_BLOCKS
    number = 1
    for extent in first.batch:
        number *= hint(extent)
    fits = [b for b in blocks if b.rows <= power_of_two(hint(first.m))] or [SHORT_BLOCKS[0]]
    fits = [b for b in fits if not b.described or has_descriptors(step)]
    busy = [b for b in fits if -(-hint(first.m) // b.rows) * number >= processor.count]
    idle = [b for b in fits if b not in busy]
    return [*busy, *sorted(idle, key=lambda b: b.rows)]


# -- the text ---------------------------------------------------------------------------------
def render_attention(step: CallChain, block: Block) -> TritonKernel:
    """The template. Pointers are to the first elements of q, k, v and the result, then to what the scores'
    function reads."""
    writer = _Writer(step, block)
    body = writer.text()
    first, second = step.first, step.second
    sizes = f"{first.m}x{first.n}x{first.k}x{second.n}_{block.rows}x{block.columns}"
    form = "_descriptor" if block.described else ""
    title = identifier(f"attention_{sizes}_{block.warps}_{block.stages}{form}")
    blocks = {"ROWS": block.rows, "COLUMNS": block.columns, "WIDTH": writer.width, "VALUES": writer.values}
    work = (writer.programs, block.warps, block.stages)
    return jit_kernel(title, body, writer.pointers(), blocks, *work, _symbols_in(step))


def _symbols_in(step: CallChain) -> tuple[str, ...]:
    """The sizes that are known at the call only."""
    assert step.first.epilogue is not None
    return tuple(sorted({*symbols_of(_dims(step)), *outer_symbols(step.first.epilogue.kernel)}))


class _Writer:
    def __init__(self, step: CallChain, block: Block) -> None:
        self.first, self.second = step.first, step.second
        tiled = step.first.epilogue
        assert tiled is not None
        self.tiled: TileKernel = tiled
        softmax = find_softmax(tiled.kernel, tiled.sink)
        assert softmax is not None
        self.softmax = softmax
        self.block = block
        self.rows = Group("r", ("r",), step.first.m, block.rows)
        self.columns = Group("c", ("c",), step.first.n, block.columns)
        self.width = max(power_of_two(int(step.first.k)), LEAST)
        self.values = max(power_of_two(int(step.second.n)), LEAST)
        self.wide = is_wide(step.first) or is_wide(step.second)
        self.programs = self.rows.blocks * product(step.first.batch)
        self.high = text_of(self.rows.blocks)
        self.lines: list[str] = []

    def line(self, text: str, depth: int = 1) -> None:
        self.lines += ["    " * depth + part for part in text.splitlines()]

    def pointers(self) -> dict[str, str]:
        first, second = self.first, self.second
        found = dict.fromkeys(("p_q", "p_k"), pointer_type(first.source or first.dtype))
        found["p_v"] = pointer_type(second.source or second.dtype)
        found["p_out"] = pointer_type(second.dtype)
        kernel = self.tiled.kernel
        for name, number in pointers_of(kernel, [self.tiled.source, self.tiled.sink]).items():
            found[name] = pointer_type(kernel.buffers[number].dtype)
        return found

    def text(self) -> str:
        self.numbers()
        self.queries()
        self.loop()
        self.result()
        return "\n".join(self.lines) + "\n"

    def numbers(self) -> None:
        wide = ".to(tl.int64)" if self.wide else ""
        self.line("place = tl.program_id(0)")
        # with causality the last rows take longest: they begin first
        block = f"place % {self.high}"
        if self.softmax.hidden_after is not None:
            block = f"{self.high} - 1 - {block}"
        self.line(f"row = (({block}) * ROWS){wide}")
        self.line(f"number = (place // {self.high}){wide}" if self.first.batch else "number = 0")
        self.line(POSITIONS)
        self.line("i_w = tl.arange(0, WIDTH)")
        self.line("i_v = tl.arange(0, VALUES)")
        self.lines += ["    " + m for m in masks(self.rows, Group("c", ("c",), 1, 1))]

    def queries(self) -> None:
        a = self.first.a
        at = f"(row + i_r) * {a.row_stride} + i_w[None, :] * {a.col_stride}"
        conditions = ["r_mask"] if self.rows.is_masked else []
        if self.width != int(self.first.k):
            conditions.append(f"(i_w[None, :] < {self.first.k})")
        self.line(f"q = tl.load(p_q + {self.start(a)} + {at}{_masked(conditions)})")

    def start(self, matrix: Any) -> str:
        return starts(self.first.batch, matrix.batch_strides)

    def loop(self) -> None:
        self.line('best = tl.full((ROWS,), float("-inf"), tl.float32)')
        self.line("mass = tl.zeros((ROWS,), tl.float32)")
        self.line("sums = tl.zeros((ROWS, VALUES), tl.float32)")
        self.keys_and_values()
        n = self.first.n
        whole, end = text_of(n // self.block.columns * self.block.columns), text_of(n)
        hidden_after = self.softmax.hidden_after
        if hidden_after is not None:
            self.line(f"seen = tl.maximum(row + {hidden_after + 1}, 0)  # by the first row")
            self.line(f"end = tl.minimum({end}, tl.maximum(row + ROWS + {hidden_after}, 0))")
            self.line(f"whole = tl.minimum({whole}, seen // COLUMNS * COLUMNS)")
            whole, end = "whole", "end"
        if whole != "0":
            self.blocks("0", whole, masked=False)
        if hidden_after is not None or self.columns.is_masked:
            self.blocks(whole, end, masked=True)

    def keys_and_values(self) -> None:
        """Where those of this head are."""
        b, v = self.first.b, self.second.b
        keys, values = f"p_k + {self.start(b)}", f"p_v + {self.start(v)}"
        if self.block.described:
            for name, at, width, stride, block in (
                ("k", keys, self.first.k, b.col_stride, "WIDTH"),
                ("v", values, self.second.n, v.row_stride, "VALUES"),
            ):
                shape = f"[{self.first.n}, {width}], [{stride}, 1], [COLUMNS, {block}]"
                self.line(f"all_{name} = tl.make_tensor_descriptor({at}, {shape})")
            return
        self.line(f"all_k = {keys} + i_w[:, None] * {b.row_stride}")
        self.line(f"all_v = {values} + i_v[None, :] * {v.col_stride}")

    def blocks(self, start: str, end: str, masked: bool) -> None:
        """A loop over blocks of keys; ``masked``: some of them are not there, or hidden."""
        self.line(f"for col in range({start}, {end}, COLUMNS):")
        ends = masked and self.columns.is_masked
        if ends:
            self.line(f"c_mask = (col + i_c) < {self.columns.size}", 2)
        self.scores(ends)
        if masked and self.softmax.hidden_after is not None:
            shown = f"(col + i_c) - (row + i_r) <= {self.softmax.hidden_after}"
            self.line(f'scores = tl.where({shown}, scores, float("-inf"))', 2)
        self.step(ends)

    def scores(self, ends: bool) -> None:
        b = self.first.b
        conditions = ["c_mask"] if ends else []
        if self.width != int(self.first.k):
            conditions.append(f"(i_w[:, None] < {self.first.k})")
        if self.block.described:
            self.line("k = all_k.load([col, 0]).T", 2)
        else:
            self.line(f"k = tl.load(all_k + (col + i_c) * {b.col_stride}{_masked(conditions)})", 2)
        self.line(f"product = tl.dot(q, k{self.precision})", 2)
        self.line(f"product = {in_registers('product', self.first.dtype.name)}", 2)
        kernel = self.tiled.kernel
        sink = kernel.buffers[self.tiled.sink].name
        store = next(s for s in kernel.body if not s.out)
        axes = (Axis("r", kernel.axes[0].size), Axis("c", kernel.axes[0].size))
        effect = Stmt("", "store", (self.softmax.scores,), ("r", "c"), store.arg, float32)
        before = Kernel(kernel.name, axes, kernel.buffers, (*self.softmax.before, effect), kernel.origin)
        columns = self.columns if ends else Group("c", ("c",), self.block.columns, self.block.columns)
        printer = tile_printer(before, self.tiled.source, self.rows, columns, 2, self.wide, self.tiled.sink)
        assert printer.sink == sink
        printer.tile = "product"
        self.lines += printer.body()
        value = f"{printer.sunk} + tl.zeros((ROWS, COLUMNS), tl.float32)"
        if ends:
            value = f'tl.where(c_mask, {value}, float("-inf"))'
        self.line(f"scores = {value}", 2)

    @property
    def precision(self) -> str:
        return ', input_precision="ieee"' if (self.first.source or self.first.dtype) is float32 else ""

    def step(self, ends: bool) -> None:
        """One block of keys joined to what was before it. A maximum that is -inf is no number to subtract;
        powers of two cost an addition with the multiplication less."""
        v = self.second.b
        scale = self.softmax.factor * math.log2(math.e)
        self.line("top = tl.maximum(best, tl.max(scores, 1))", 2)
        self.line(f'near = tl.where(top == float("-inf"), 0.0, top) * {scale!r}', 2)
        self.line(f"weights = tl.exp2(scores * {scale!r} - near[:, None])", 2)
        self.line(f"shrink = tl.exp2(best * {scale!r} - near)", 2)
        self.line("mass = mass * shrink + tl.sum(weights, 1)", 2)
        conditions = []
        if ends:
            conditions.append(f"((col + tl.arange(0, COLUMNS)[:, None]) < {self.first.n})")
        if self.values != int(self.second.n):
            conditions.append(f"(i_v[None, :] < {self.second.n})")
        at = f"(col + tl.arange(0, COLUMNS)[:, None]) * {v.row_stride}"
        if self.block.described:
            self.line("v = all_v.load([col, 0])", 2)
        else:
            self.line(f"v = tl.load(all_v + {at}{_masked(conditions)})", 2)
        self.line("sums = sums * shrink[:, None]", 2)
        self.line(f"sums = tl.dot(weights.to(v.dtype), v, sums{self.precision})", 2)
        self.line("best = top", 2)

    def result(self) -> None:
        c = self.second.c
        assert c is not None
        if self.softmax.empty_is_zero:
            self.line("mass = tl.where(mass == 0.0, 1.0, mass)")
        self.line("sums = sums / mass[:, None]")
        at = f"(row + i_r) * {c.row_stride} + i_v[None, :] * {c.col_stride}"
        conditions = ["r_mask"] if self.rows.is_masked else []
        if self.values != int(self.second.n):
            conditions.append(f"(i_v[None, :] < {self.second.n})")
        mask = f", mask={' & '.join(conditions)}" if conditions else ""
        self.line(f"tl.store(p_out + {self.start(c)} + {at}, sums.to(tl.{self.second.dtype.name}){mask})")


def has_descriptors(step: CallChain) -> bool:
    """Whether keys and values are what a tensor descriptor can describe: rows of a matrix each, at places
    that are divisible by 16 bytes."""
    size = (step.first.source or step.first.dtype).itemsize
    b, v = step.first.b, step.second.b
    if int(b.row_stride) != 1 or int(v.col_stride) != 1:
        return False
    steps = [b.col_stride, v.row_stride, *b.batch_strides, *v.batch_strides, b.offset, v.offset]
    if not isinstance(step.first.n, int):
        return False
    if any(not isinstance(s, int) or s * size % DESCRIPTOR_BYTES for s in steps):
        return False
    return min(int(b.col_stride), int(v.row_stride)) > 0


def _masked(conditions: list[str]) -> str:
    return f", mask={' & '.join(conditions)}, other=0" if conditions else ""
