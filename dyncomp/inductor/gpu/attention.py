"""Attention by a Triton template: ``softmax(f(q @ k)) @ v`` without the scores in memory.

Keys are gone through a block at a time, with the largest score and the sum so far of each row (Milakov and
Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). ``f`` is
any pointwise function of a score, its place and what is read there: scale, additive and boolean masks,
causality, a soft cap. Blocks of keys that a causal mask hides from all rows of a program are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass
from ...dtypes import float32
from ..epilogue import Tiled
from ..loopir import Axis, Kernel, Stmt
from ..render.triton import TritonKernel
from ..render.triton_layout import Group, power_of_two
from ..render.triton_print import pointer_type
from ..render.triton_tile import POSITIONS, in_registers, is_known, masks, pointers_of, tile_printer
from ..schedule import CallChain, TileKernel
from .jit import jit_kernel
from .products import HALVES, NARROW, Processor, is_wide, starts

# Heads wider than this leave no registers for a block of keys.
WIDEST = 256
LEAST = 16


@dataclass(frozen=True)
class Block:
    """Rows (queries) of a program, and columns (keys) that it takes at a time."""

    rows: int
    columns: int
    warps: int
    stages: int


# By the width of heads: up to 64, up to 128, wider.
NARROW_BLOCKS = (Block(128, 64, 4, 3), Block(128, 128, 8, 2), Block(64, 64, 4, 3), Block(64, 32, 4, 3))
HALF_BLOCKS = (Block(128, 64, 8, 3), Block(64, 64, 4, 2), Block(64, 32, 4, 3))
WIDE_BLOCKS = (Block(64, 32, 4, 2), Block(64, 64, 8, 2), Block(32, 32, 4, 2))
# More, where operands of products are read from shared memory, not registers.
HOPPER_BLOCKS = (Block(128, 128, 8, 2),)
FLOAT_BLOCKS = (Block(32, 32, 4, 2), Block(64, 32, 8, 2))
SHORT_BLOCKS = (Block(16, 64, 4, 3), Block(16, 128, 4, 3))


# -- what is a softmax ------------------------------------------------------------------------
@dataclass(frozen=True)
class Softmax:
    """A kernel of rows as ``softmax(scores)``. ``scores``: the statement's name; ``before``: the statements
    that it takes; ``empty_is_zero``: rows of scores that are all -inf give 0 (else NaN); ``hidden_after``:
    column ``row + hidden_after + 1`` and those behind it are -inf, where that is known."""

    scores: str
    before: tuple[Stmt, ...]
    empty_is_zero: bool
    hidden_after: int | None


def is_softmax(tiled: Tiled) -> bool:
    return find_softmax(tiled.kernel, tiled.sink) is not None


def find_softmax(kernel: Kernel, sink: int) -> Softmax | None:
    """The softmax that a kernel of rows computes into its buffer ``sink``, if it does nothing else."""
    effects = [s for s in kernel.body if not s.out]
    if len(effects) != 1 or effects[0].op != "store" or effects[0].arg[0] != kernel.buffers[sink].name:
        return None
    return _Matcher(kernel).match(effects[0].args[0])


_OPPOSITE = {
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
}


class _Matcher:
    def __init__(self, kernel: Kernel) -> None:
        self.by_name = {s.out: s for s in kernel.body if s.out}
        self.body = kernel.body

    def match(self, stored: str) -> Softmax | None:
        weights = self.behind_casts(stored)
        guard = None
        if weights.op == "where":
            chosen, zero, rest = (self.by_name[a] for a in weights.args)
            if not self.is_number(zero.out, 0.0):
                return None
            guard, weights = chosen, self.behind_casts(rest.out)
        if weights.op != "divide":
            return None
        term, total = (self.by_name[a] for a in weights.args)
        if term.op != "exp" or not self.reduces(total, "sum", term.out):
            return None
        shifted = self.by_name[term.args[0]]
        if shifted.op != "subtract" or shifted.dtype is not float32:
            return None
        scores, top = shifted.args
        if not self.reduces(self.by_name[top], "max", scores):
            return None
        if guard is not None and not self.is_lowest(guard, top):
            return None
        before = self.needed(scores)
        if any(s.op == "reduce" for s in before):
            return None
        return Softmax(scores, before, guard is not None, self.hidden(scores))

    def behind_casts(self, name: str) -> Stmt:
        """What a value was converted from, or is."""
        stmt = self.by_name[name]
        while stmt.op == "cast":
            stmt = self.by_name[stmt.args[0]]
        return stmt

    def reduces(self, stmt: Stmt, combiner: str, source: str) -> bool:
        return stmt.op == "reduce" and stmt.arg[0] == combiner and stmt.args == (source,)

    def is_number(self, name: str, value: float) -> bool:
        stmt = self.behind_casts(name)
        return stmt.op == "const" and float(stmt.arg) == value

    def is_lowest(self, stmt: Stmt, top: str) -> bool:
        """Whether ``stmt`` asks whether the largest score of a row is -inf."""
        if stmt.op != "equal":
            return False
        one, other = stmt.args
        return (one == top and self.is_number(other, float("-inf"))) or (
            other == top and self.is_number(one, float("-inf"))
        )

    def needed(self, name: str) -> tuple[Stmt, ...]:
        wanted = {name}
        found: list[Stmt] = []
        for stmt in reversed(self.body):
            if stmt.out in wanted and stmt.out:
                wanted.update(stmt.args)
                found.append(stmt)
        return tuple(reversed(found))

    # -- causality ----------------------------------------------------------------------------
    def hidden(self, name: str) -> int | None:
        """How far behind its own position a row sees, by a ``where(column - row <= constant, …, -inf)``. What
        is added to -inf (a mask, a scaled score) leaves it -inf, or gives NaN that eager code has too."""
        stmt = self.by_name[name]
        if stmt.op != "where":
            return None
        condition, one, other = stmt.args
        if self.is_number(other, float("-inf")):
            return self.bound(condition)
        return self.bound(condition, holds=False) if self.is_number(one, float("-inf")) else None

    def bound(self, name: str, holds: bool = True) -> int | None:
        """The largest ``column - row`` for which a condition holds (or does not hold), where it is one of
        positions."""
        stmt = self.by_name[name]
        if stmt.op == "logical_not":
            return self.bound(stmt.args[0], not holds)
        if stmt.op == "where" and stmt.dtype.is_bool:
            condition, true, false = stmt.args
            known = self.is_number(true, 1) and self.is_number(false, 0)
            return self.bound(condition, holds) if known else None
        if stmt.op == "equal":
            # where(seen, 1, 0) == 1
            inner, one = (self.by_name[a] for a in stmt.args)
            if inner.op != "where" or inner.args[1] != one.out or not self.is_number(one.out, 1.0):
                return None
            return self.bound(inner.args[0], holds) if self.is_number(inner.args[2], 0.0) else None
        forms = {"less_equal": (1, 0), "less": (1, -1), "greater_equal": (-1, 0), "greater": (-1, -1)}
        if stmt.op not in _OPPOSITE:
            return None
        sign, extra = forms[stmt.op if holds else _OPPOSITE[stmt.op]]
        left, right = (self.position(a) for a in stmt.args)
        if left is None or right is None:
            return None
        # sign * (left - right) <= extra, in columns, rows and a constant
        columns, rows, constant = (sign * (a - b) for a, b in zip(left, right))
        return extra - constant if (columns, rows) == (1, -1) else None

    def position(self, name: str) -> tuple[int, int, int] | None:
        """How often a value has the column's and the row's position, and what is added to them."""
        stmt = self.by_name[name]
        if stmt.op == "const" and isinstance(stmt.arg, int):
            return (0, 0, stmt.arg)
        if stmt.op == "add" and stmt.args == (f"{name}_from", f"{name}_in"):
            return (1, 0, 0) if self.by_name[f"{name}_in"].arg == "c" else (0, 1, 0)
        if stmt.op in ("add", "subtract"):
            left, right = (self.position(a) for a in stmt.args)
            if left is None or right is None:
                return None
            sign = 1 if stmt.op == "add" else -1
            columns, rows, constant = (a + sign * b for a, b in zip(left, right))
            return (columns, rows, constant)
        return None


# -- which ------------------------------------------------------------------------------------
def has_template(step: CallChain) -> bool:
    """Whether the template computes a chain: sizes known now, halves or float32 throughout, narrow heads."""
    first, second = step.first, step.second
    tiled = first.epilogue
    if tiled is None or second.c is None or not is_known(tiled.kernel):
        return False
    dtypes = {first.source or first.dtype, second.source or second.dtype}
    if len(dtypes) != 1 or not dtypes <= {*HALVES, float32}:
        return False
    if first.dtype not in (*HALVES, float32) or second.dtype not in (*HALVES, float32):
        return False
    if not all(isinstance(d, int) for d in _dims(step)):
        return False
    return 0 < int(first.k) <= WIDEST and 0 < int(second.n) <= WIDEST and int(first.n) > 0


def _dims(step: CallChain) -> list[Any]:
    first, second = step.first, step.second
    dims: list[Any] = [first.m, first.n, first.k, second.n, *first.batch]
    for matrix in (first.a, first.b, second.b, second.c):
        assert matrix is not None
        dims += [matrix.row_stride, matrix.col_stride, *matrix.batch_strides]
    return dims


def candidates(step: CallChain, processor: Processor) -> list[TritonKernel]:
    """The template with the blocks that suit, the likeliest first."""
    return [render_attention(step, block) for block in _blocks(step, processor)]


def _blocks(step: CallChain, processor: Processor) -> Sequence[Block]:
    first = step.first
    if int(first.m) <= LEAST:
        return SHORT_BLOCKS
    if (first.source or first.dtype) is float32:
        return FLOAT_BLOCKS
    width = max(int(first.k), int(step.second.n))
    if width > 128:
        return WIDE_BLOCKS
    blocks = HALF_BLOCKS if width > 64 else NARROW_BLOCKS
    if width > 64 and processor.descriptors:
        blocks = (*blocks, *HOPPER_BLOCKS)
    number = 1
    for extent in first.batch:
        number *= int(extent)
    fits = [b for b in blocks if b.rows <= power_of_two(int(first.m))]
    busy = [b for b in fits if -(-int(first.m) // b.rows) * number >= processor.count]
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
    title = f"attention_{sizes}_{block.warps}_{block.stages}"
    blocks = {"ROWS": block.rows, "COLUMNS": block.columns, "WIDTH": writer.width, "VALUES": writer.values}
    return jit_kernel(title, body, writer.pointers(), blocks, writer.programs, block.warps, block.stages)


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
        self.rows = Group("r", ("r",), int(step.first.m), block.rows)
        self.columns = Group("c", ("c",), int(step.first.n), block.columns)
        self.width = max(power_of_two(int(step.first.k)), LEAST)
        self.values = max(power_of_two(int(step.second.n)), LEAST)
        self.wide = is_wide(step.first) or is_wide(step.second) or _reads_far(tiled.kernel)
        self.high = -(-int(step.first.m) // block.rows)
        self.programs = self.high
        for extent in step.first.batch:
            self.programs *= int(extent)
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
            block = f"{self.high - 1} - {block}"
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
        end = str(self.first.n)
        if self.softmax.hidden_after is not None:
            self.line(f"end = tl.minimum({end}, tl.maximum(row + ROWS + {self.softmax.hidden_after}, 0))")
            end = "end"
        b, v = self.first.b, self.second.b
        self.line(f"all_k = p_k + {self.start(b)} + i_w[:, None] * {b.row_stride}")
        self.line(f"all_v = p_v + {self.start(v)} + i_v[None, :] * {v.col_stride}")
        self.line(f"for col in range(0, {end}, COLUMNS):")
        for mask in masks(Group("r", ("r",), 1, 1), self.columns):
            self.line(mask, 2)
        self.scores()
        self.step()

    def scores(self) -> None:
        b = self.first.b
        conditions = ["c_mask"] if self.columns.is_masked else []
        if self.width != int(self.first.k):
            conditions.append(f"(i_w[:, None] < {self.first.k})")
        self.line(f"k = tl.load(all_k + (col + i_c) * {b.col_stride}{_masked(conditions)})", 2)
        self.line(f"product = tl.dot(q, k{self.precision})", 2)
        self.line(f"product = {in_registers('product', self.first.dtype.name)}", 2)
        kernel = self.tiled.kernel
        sink = kernel.buffers[self.tiled.sink].name
        store = next(s for s in kernel.body if not s.out)
        axes = (Axis("r", kernel.axes[0].size), Axis("c", kernel.axes[0].size))
        effect = Stmt("", "store", (self.softmax.scores,), ("r", "c"), store.arg, float32)
        before = Kernel(kernel.name, axes, kernel.buffers, (*self.softmax.before, effect), kernel.origin)
        printer = tile_printer(
            before, self.tiled.source, self.rows, self.columns, 2, self.wide, self.tiled.sink
        )
        assert printer.sink == sink
        printer.tile = "product"
        self.lines += printer.body()
        value = f"{printer.sunk} + tl.zeros((ROWS, COLUMNS), tl.float32)"
        if self.columns.is_masked:
            value = f'tl.where(c_mask, {value}, float("-inf"))'
        self.line(f"scores = {value}", 2)

    @property
    def precision(self) -> str:
        return ', input_precision="ieee"' if (self.first.source or self.first.dtype) is float32 else ""

    def step(self) -> None:
        """One block of keys joined to what was before it. A maximum that is -inf is no number to subtract."""
        v = self.second.b
        self.line("top = tl.maximum(best, tl.max(scores, 1))", 2)
        self.line('near = tl.where(top == float("-inf"), 0.0, top)', 2)
        self.line("weights = tl.exp(scores - near[:, None])", 2)
        self.line("shrink = tl.exp(best - near)", 2)
        self.line("mass = mass * shrink + tl.sum(weights, 1)", 2)
        conditions = []
        if self.columns.is_masked:
            conditions.append(f"((col + tl.arange(0, COLUMNS)[:, None]) < {self.first.n})")
        if self.values != int(self.second.n):
            conditions.append(f"(i_v[None, :] < {self.second.n})")
        at = f"(col + tl.arange(0, COLUMNS)[:, None]) * {v.row_stride}"
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


def _masked(conditions: list[str]) -> str:
    return f", mask={' & '.join(conditions)}, other=0" if conditions else ""


def _reads_far(kernel: Kernel) -> bool:
    return any(not isinstance(b.size, int) or b.size >= NARROW for b in kernel.buffers)
