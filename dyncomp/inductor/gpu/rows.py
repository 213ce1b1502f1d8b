"""Products and kernels of rows between them as two Triton kernels: the backward pass of attention.

A program of the first has a block of rows: it finds the statistics of its rows (largest score, sum of powers,
sum of weights times their gradients) going through all columns, then the products over columns (dq). One of
the second has a block of columns and goes through the rows: the products over rows (dk, dv). Scores and
weights are computed again in each pass and never written to memory (Dao et al., "FlashAttention", 2022;
"FlashAttention-2", 2023); blocks that a causal mask hides are left out. What rows are a function of is any
:mod:`rows_merge` merges: programs that have logarithms of sums from a forward pass need no statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...dataclass import dataclass, field
from ...dtypes import DType, float32
from ...symbolic.integers import Dim, SymInt, product, same
from ..loops.loop_ir import Kernel
from ..render.nest import Node, make_nest
from ..render.triton.layout import Group, Layout, power_of_two
from ..render.triton.statements import identifier, pointer_type
from ..render.triton.tile import POSITIONS, TilePrinter, in_registers, is_known, masks, symbols_of, text_of
from ..render.triton.unit import TritonKernel
from ..schedule import CallBlas, CallRows, Matrix, RowCall
from .jit import jit_kernel
from .products import HALVES, at_least_one, is_wide, sizes_of, source_of, spans_of, starts
from .rows_merge import Merged, Statistic, merge

# Operands wider than this leave no registers for what is computed of them.
WIDEST = 128
LEAST = 16


@dataclass(frozen=True)
class Block:
    """Rows and columns that a program of either kernel works on at a time."""

    rows: int
    columns: int
    warps: int
    stages: int


Blocks = tuple[Block, Block]
# For the kernel of rows and that of columns, by width of operands: up to 64, wider.
NARROW_BLOCKS: tuple[Blocks, ...] = (
    (Block(64, 64, 4, 2), Block(64, 64, 4, 2)),
    (Block(128, 64, 8, 2), Block(64, 64, 8, 2)),
    (Block(64, 32, 4, 2), Block(32, 64, 4, 2)),
)
WIDE_BLOCKS: tuple[Blocks, ...] = (
    (Block(64, 32, 8, 2), Block(32, 64, 8, 1)),
    (Block(64, 64, 8, 1), Block(64, 64, 8, 1)),
    (Block(32, 32, 4, 1), Block(32, 32, 4, 1)),
)
FLOAT_BLOCKS: tuple[Blocks, ...] = ((Block(32, 32, 8, 1), Block(32, 32, 8, 1)),)
# Larger ones spill: 255 registers on sm_80, 174 on sm_90.
WIDE_FLOAT_BLOCKS: tuple[Blocks, ...] = ((Block(16, 16, 8, 1), Block(16, 16, 8, 1)),)


# -- which ------------------------------------------------------------------------------------
def merged_of(step: CallRows) -> Merged | None:
    """What rows are a function of; ``None`` where the template has no form for it."""
    kernels = [(s.kernel.kernel, s.kernel.held) for s in step.steps if s.kernel is not None]
    products = {s.matrix: s.product.dtype for s in step.steps if s.product is not None and s.kind == "scores"}
    if any(not is_known(kernel) for kernel, _ in kernels) or not has_form(step):
        return None
    merged = merge(kernels, products)
    if merged is None or any(s.matrix not in merged.made for s in step.steps if s.product is not None):
        return None
    return merged


def has_form(step: CallRows) -> bool:
    """Whether the products are such that the template multiplies: halves or float32 alone, of known widths.
    Numbers of rows and columns may be known at the call only."""
    products = [s.product for s in step.steps if s.product is not None]
    if any(s.product is not None and s.matrix < 0 for s in step.steps):
        return False
    sources = {source_of(p) for p in products}
    if len(sources) != 1 or not sources <= {*HALVES, float32}:
        return False
    if any(p.dtype not in (*HALVES, float32) for p in products):
        return False
    if _written(step) & _read(step):
        return False
    widths = [p.k if s.kind == "scores" else p.n for s, p in zip(_with_products(step), products)]
    if not all(isinstance(w, int) for w in widths) or any(same(d, 0) for d in space_of(step)):
        return False
    return all(0 < int(w) <= WIDEST for w in widths)


def _written(step: CallRows) -> set[int]:
    return {s.product.c.slot for s in step.steps if s.product is not None and s.product.c is not None}


def _read(step: CallRows) -> set[int]:
    found: set[int] = set()
    for inner in step.steps:
        if inner.product is not None:
            found.add(inner.product.b.slot)
            found |= {inner.product.a.slot} if inner.kind == "scores" else set()
        elif inner.kernel is not None:
            held = {k for k, _ in inner.kernel.held}
            found |= {slot for k, slot in enumerate(inner.kernel.slots) if k not in held}
    return found


def _with_products(step: CallRows) -> list[RowCall]:
    return [s for s in step.steps if s.product is not None]


def space_of(step: CallRows) -> tuple[Dim, Dim, Dim]:
    """Rows and columns of a matrix, and how many there are of each."""
    scores = next(s.product for s in step.steps if s.kind == "scores")
    assert scores is not None
    return scores.m, scores.n, product(scores.batch)


def _dims(step: CallRows) -> list[Dim]:
    return [d for s in _with_products(step) for d in sizes_of(_product(s))]


def extents(step: CallRows) -> list[Dim]:
    """What has to fit into 32 bits, of what is known at the call only."""
    spans = [d for s in _with_products(step) for d in spans_of(_product(s))]
    buffers = [b.size for s in step.steps if s.kernel is not None for b in s.kernel.kernel.buffers]
    return [d for d in (*spans, *buffers, *_dims(step)) if isinstance(d, SymInt)]


def candidates(step: CallRows) -> list[TritonKernel]:
    """The template in the blocks that suit, the likeliest first."""
    merged = merged_of(step)
    if merged is None:
        return []
    wide = is_wide_step(step)
    if source_of(_product(_with_products(step)[0])) is float32:
        blocks: Sequence[Blocks] = WIDE_FLOAT_BLOCKS if wide else FLOAT_BLOCKS
    else:
        blocks = WIDE_BLOCKS if wide else NARROW_BLOCKS
    return [render_rows(step, merged, pair) for pair in blocks]


def is_wide_step(step: CallRows) -> bool:
    """Whether operands are wider than 64."""
    products = [(s.kind, s.product) for s in step.steps if s.product is not None]
    return max(int(p.k if kind == "scores" else p.n) for kind, p in products) > 64


def _product(step: RowCall) -> CallBlas:
    assert step.product is not None
    return step.product


def workspace(step: CallRows) -> Dim:
    """Bytes for the statistics of all rows."""
    merged = merged_of(step)
    assert merged is not None
    m, _, number = space_of(step)
    return m * number * (4 * len(merged.statistics))


# -- the text ---------------------------------------------------------------------------------
def render_rows(step: CallRows, merged: Merged, blocks: Blocks) -> TritonKernel:
    """The kernel of rows, and after it that of columns. Pointers: for each step in order the first elements
    of a product's operands and result, or of what a kernel reads; then the statistics."""
    kinds = {s.kind for s in step.steps}
    found: list[TritonKernel] = []
    if "out" in kinds or merged.statistics:
        found.append(_RowsWriter(step, merged, blocks[0]).kernel())
    if "sum" in kinds:
        found.append(_ColumnsWriter(step, merged, blocks[1]).kernel())
    last = found[-1]
    return last if len(found) == 1 else replace(found[0], after=last)


@dataclass
class _Printer(TilePrinter):
    """``held``: text of the buffers that are registers; ``wanted``: what was stored into others; ``powers``:
    sums of powers, at least 1, by whose inverses values are multiplied."""

    held: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, str] = field(default_factory=dict)
    powers: frozenset[str] = frozenset()

    def load(self, node: Node) -> str:
        found = self.held.get(node.arg[0])
        return super().load(node) if found is None else found

    def store(self, node: Node) -> None:
        self.wanted[node.arg[0]] = self.env[node.args[0]]

    def scalar(self, node: Node) -> str:
        if node.op == "divide" and node.args[1] in self.powers and node.dtype is float32:
            return f"{self.env[node.args[0]]} * {node.args[1]}_inverse"
        return super().scalar(node)


class _Writer:
    """What both kernels have in common."""

    title = ""

    def __init__(self, step: CallRows, merged: Merged, block: Block) -> None:
        self.step, self.merged, self.block = step, merged, block
        self.m, self.n, self.number = space_of(step)
        self.rows = Group("r", ("r",), self.m, block.rows)
        self.columns = Group("c", ("c",), self.n, block.columns)
        products = [_product(s) for s in _with_products(step)]
        self.batch = products[0].batch
        self.source = source_of(products[0])
        self.wide = any(map(is_wide, products))
        self.hidden_after = merged.hidden_after([merged.made[s.matrix] for s in self.of("out", "sum")])
        self.lines: list[str] = []
        self.known: dict[Any, str] = {}

    def of(self, *kinds: str) -> list[RowCall]:
        return [s for s in self.step.steps if s.kind in kinds]

    def line(self, text: str, depth: int = 1) -> None:
        self.lines += ["    " * depth + part for part in text.splitlines()]

    def kernel(self) -> TritonKernel:
        self.text()
        block = self.block
        sizes = f"{self.m}x{self.n}_{block.rows}x{block.columns}_{block.warps}_{block.stages}"
        blocks = {"ROWS": block.rows, "COLUMNS": block.columns}
        body = "\n".join(self.lines) + "\n"
        title = identifier(f"{self.title}_{sizes}")
        work = (self.programs(), block.warps, block.stages)
        return jit_kernel(title, body, self.pointers(), blocks, *work, symbols_of(_dims(self.step)))

    def text(self) -> None:
        raise NotImplementedError

    def programs(self) -> Dim:
        raise NotImplementedError

    def pointers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        kernels = 0
        for place, step in enumerate(self.step.steps):
            if step.product is not None:
                kind = pointer_type(source_of(step.product))
                if step.kind == "scores":
                    found[f"p_left{place}"] = kind
                found[f"p_right{place}"] = kind
                if step.kind != "scores":
                    found[f"p_target{place}"] = pointer_type(step.product.dtype)
                continue
            assert step.kernel is not None
            held = {number for number, _ in step.kernel.held}
            for number, buffer in enumerate(step.kernel.kernel.buffers):
                if number not in held:
                    found[f"p_k{kernels}_{buffer.name}"] = pointer_type(buffer.dtype)
            kernels += 1
        if self.merged.statistics:
            found["p_space"] = "*fp32"
        return found

    # -- operands -----------------------------------------------------------------------------
    def start(self, matrix: Matrix) -> str:
        return starts(self.batch, matrix.batch_strides)

    def place(self, step: RowCall) -> int:
        return next(k for k, s in enumerate(self.step.steps) if s is step)

    def load(self, name: str, pointer: str, matrix: Matrix, along: str, width: int, depth: int) -> str:
        """Rows (columns) ``along`` of a matrix, ``width`` elements of each, as a tile of rows of that width:
        its variable. What lies in the same place was loaded already."""
        turned = along == "c"
        step, inner = matrix.row_stride, matrix.col_stride
        lead = tuple("0" if same(e, 1) else str(s) for e, s in zip(self.batch, matrix.batch_strides))
        key = (matrix.slot, str(matrix.offset), str(step), str(inner), lead, along, width)
        if key in self.known:
            return self.known[key]
        length = max(power_of_two(width), LEAST)
        group, position = (self.columns, "(col + i_cs)") if turned else (self.rows, "(row + i_r)")
        self.line(f"{name}_w = tl.arange(0, {length})[None, :]", depth)
        conditions = [f"({position} < {text_of(group.size)})"] if group.is_masked else []
        if length != width:
            conditions.append(f"({name}_w < {width})")
        mask = f", mask={' & '.join(conditions)}, other=0" if conditions else ""
        at = f"{pointer} + {self.start(matrix)} + {position} * {text_of(step)} + {name}_w * {text_of(inner)}"
        self.line(f"{name} = tl.load({at}{mask})", depth)
        self.known[key] = name
        return name

    def left(self, step: RowCall, depth: int) -> str:
        product, place = _product(step), self.place(step)
        return self.load(f"left{place}", f"p_left{place}", product.a, "r", int(product.k), depth)

    def right(self, step: RowCall, depth: int) -> str:
        """The right operand of scores: for each column a row of ``k`` elements."""
        product, place = _product(step), self.place(step)
        b = product.b
        turned = replace(b, row_stride=b.col_stride, col_stride=b.row_stride)
        return self.load(f"right{place}", f"p_right{place}", turned, "c", int(product.k), depth)

    def values(self, step: RowCall, depth: int) -> str:
        """The right operand of a product that is summed: by columns (``out``) or rows (``sum``)."""
        product, place = _product(step), self.place(step)
        along = "c" if step.kind == "out" else "r"
        return self.load(f"right{place}", f"p_right{place}", product.b, along, int(product.n), depth)

    @property
    def precision(self) -> str:
        return ', input_precision="ieee"' if self.source is float32 else ""

    # -- a tile -------------------------------------------------------------------------------
    def tile(self, targets: Sequence[str], depth: int, masked: Sequence[Group]) -> dict[str, str]:
        """Write what makes ``targets`` of the tile at ``row`` and ``col``; their variables, with 0 for what
        is beyond the ends of ``masked``."""
        kernel = self.merged.tile(targets)
        printer = self.printer(kernel, depth)
        for step in self.of("scores"):
            name = f"m{step.matrix}"
            if any(stmt.out == name for stmt in kernel.body):
                product = (
                    f"tl.dot({self.left(step, depth)}, tl.trans({self.right(step, depth)}){self.precision})"
                )
                self.line(f"{name} = {product}", depth)
                self.line(f"{name} = {in_registers(name, _product(step).dtype.name)}", depth)
            printer.held[name] = name
        for statistic in self.merged.statistics:
            printer.held[f"stat_{statistic.name}"] = f"{statistic.name}_row"
        self.lines += printer.body()
        conditions = " & ".join(f"{g.name}_mask" for g in masked if g.is_masked)
        found = {}
        for name in targets:
            value = f"{printer.wanted[f'want_{name}']} + tl.zeros((ROWS, COLUMNS), tl.float32)"
            self.line(f"t_{name} = {value}", depth)
            if conditions:
                self.line(f"t_{name} = tl.where({conditions}, t_{name}, 0.0)", depth)
            found[name] = f"t_{name}"
        return found

    def printer(self, kernel: Kernel, depth: int) -> _Printer:
        layout = Layout((self.rows, self.columns), None, True, self.block.warps)
        buffers = {b.name: b for b in kernel.buffers}
        made = _Printer(make_nest(kernel, "triton"), layout, self.wide, buffers)
        made.depth = depth
        made.powers = frozenset(s.name for s in self.merged.statistics if s.top)
        return made

    def operand(self, value: str, dtype: DType) -> str:
        return value if dtype is float32 else f"{value}.to(tl.{dtype.name})"

    def numbers(self, group: Group, axis: str, size: str) -> None:
        wide = ".to(tl.int64)" if self.wide else ""
        high = at_least_one(group.blocks)
        self.line("place = tl.program_id(0)")
        self.line(f"{axis} = ((place % {high}) * {size}){wide}")
        self.line(f"number = (place // {high}){wide}")
        self.line(POSITIONS)
        self.line("i_cs = tl.arange(0, COLUMNS)[:, None]")

    def mask(self, group: Group, depth: int) -> None:
        both = (group, Group("c", ("c",), 1, 1)) if group is self.rows else (Group("r", ("r",), 1, 1), group)
        for text in masks(*both):
            self.line(text, depth)

    def space(self, number: int) -> str:
        """Where a statistic of the rows is."""
        first, each = text_of(self.m * self.number * number), text_of(self.m)
        return f"p_space + {first} + number * {each} + row + tl.arange(0, ROWS)"

    def row(self, s: Statistic, text: str, depth: int) -> None:
        self.line(f"{s.name}_row = ({text})[:, None]", depth)
        if s.top:
            self.line(f"{s.name}_inverse = 1.0 / {s.name}_row", depth)

    def rows_there(self) -> str:
        return f"row + tl.arange(0, ROWS) < {text_of(self.m)}"


class _RowsWriter(_Writer):
    """A program has a block of rows."""

    title = "rows"

    def programs(self) -> Dim:
        return self.rows.blocks * self.number

    def text(self) -> None:
        self.numbers(self.rows, "row", "ROWS")
        self.mask(self.rows, 1)
        for step in self.of("scores"):
            self.left(step, 1)
        self.line(f"end = {text_of(self.n)}")
        if self.hidden_after is not None:
            self.line(f"end = tl.minimum(end, row + (ROWS + {self.hidden_after}))")
        levels = sorted({s.level for s in self.merged.statistics})
        for level in levels:
            self.statistics([s for s in self.merged.statistics if s.level == level])
        if self.of("out"):
            self.products()

    def loop(self) -> dict[Any, str]:
        """Begin to go through the columns; what was known before."""
        self.line("for col in range(0, end, COLUMNS):")
        self.mask(self.columns, 2)
        return dict(self.known)

    def statistics(self, found: Sequence[Statistic]) -> None:
        alone = [s for s in found if not s.top]
        for s in found:
            least = 'float("-inf")' if s.kind == "max" else "0.0"
            self.line(f"{s.name}_all = tl.full((ROWS,), {least}, tl.float32)")
        tops = {s.top for s in found}
        for s in alone:
            if s.kind == "max" and s.name not in tops:
                self.line(f"{s.name}_nan = tl.zeros((ROWS,), tl.int32)")
        known = self.loop()
        made = self.tile(list(dict.fromkeys(s.source for s in alone)), 2, ())
        for s in alone:
            self.add(s, made[s.source], next((p for p in found if p.top == s.name), None))
        self.known = known
        for s in found:
            if s.kind == "max" and s.name not in tops:
                self.line(f'{s.name}_all = tl.where({s.name}_nan != 0, float("nan"), {s.name}_all)')
        for s in found:
            if s.top:
                self.line(f"{s.top}_all = tl.where({s.name}_all != {s.name}_all, {s.name}_all, {s.top}_all)")
        for s in found:
            number = self.merged.statistics.index(s)
            masked = f", mask={self.rows_there()}" if self.rows.is_masked else ""
            self.line(f"tl.store({self.space(number)}, {s.name}_all{masked})")
            self.row(s, f"{s.name}_all", 1)

    def add(self, s: Statistic, value: str, powers: Statistic | None) -> None:
        """Take a tile's columns into a statistic, and with a maximum into the sum of powers below it."""
        total = f"{s.name}_all"
        neutral = 'float("-inf")' if s.kind == "max" else "0.0"
        if self.columns.is_masked:
            self.line(f"{value} = tl.where(c_mask, {value}, {neutral})", 2)
        if s.kind == "sum":
            self.line(f"{total} += tl.sum({value}, 1)", 2)
            return
        if powers is None:
            self.line(f"{s.name}_nan |= tl.max(({value} != {value}).to(tl.int32), 1)", 2)
            self.line(f"{total} = tl.maximum({total}, tl.max({value}, 1))", 2)
            return
        self.line(f"top = tl.maximum({total}, tl.max({value}, 1))", 2)
        self.line('near = tl.where(top == float("-inf"), 0.0, top)', 2)
        self.line(f"{powers.name}_all = {powers.name}_all * tl.exp({total} - near)", 2)
        self.line(f"{powers.name}_all += tl.sum(tl.exp({value} - near[:, None]), 1)", 2)
        self.line(f"{total} = top", 2)

    def products(self) -> None:
        steps = self.of("out")
        for step in steps:
            width = max(power_of_two(int(_product(step).n)), LEAST)
            self.line(f"sums{self.place(step)} = tl.zeros((ROWS, {width}), tl.float32)")
        known = self.loop()
        made = self.tile([self.merged.made[s.matrix] for s in steps], 2, (self.columns,))
        for step in steps:
            value = self.operand(made[self.merged.made[step.matrix]], self.source)
            sums = f"sums{self.place(step)}"
            self.line(f"{sums} = tl.dot({value}, {self.values(step, 2)}, {sums}{self.precision})", 2)
        self.known = known
        for step in steps:
            self.result(step, "row + i_r", self.rows)

    def result(self, step: RowCall, position: str, group: Group) -> None:
        product, place = _product(step), self.place(step)
        assert product.c is not None
        width = max(power_of_two(int(product.n)), LEAST)
        conditions = [f"({position} < {text_of(group.size)})"] if group.is_masked else []
        self.line(f"i_w = tl.arange(0, {width})[None, :]")
        if width != int(product.n):
            conditions.append(f"(i_w < {product.n})")
        mask = f", mask={' & '.join(conditions)}" if conditions else ""
        down, across = text_of(product.c.row_stride), text_of(product.c.col_stride)
        at = f"({position}) * {down} + i_w * {across}"
        value = f"sums{place}.to(tl.{product.dtype.name})"
        self.line(f"tl.store(p_target{place} + {self.start(product.c)} + {at}, {value}{mask})")


class _ColumnsWriter(_RowsWriter):
    """A program has a block of columns."""

    title = "columns"

    def programs(self) -> Dim:
        return self.columns.blocks * self.number

    def text(self) -> None:
        self.numbers(self.columns, "col", "COLUMNS")
        self.mask(self.columns, 1)
        for step in self.of("scores"):
            self.right(step, 1)
        self.line("start = 0")
        if self.hidden_after is not None:
            self.line(f"start = tl.maximum(col - {self.hidden_after}, 0) // ROWS * ROWS")
        steps = self.of("sum")
        for step in steps:
            width = max(power_of_two(int(_product(step).n)), LEAST)
            self.line(f"sums{self.place(step)} = tl.zeros((COLUMNS, {width}), tl.float32)")
        self.line(f"for row in range(start, {text_of(self.m)}, ROWS):")
        self.mask(self.rows, 2)
        self.read()
        made = self.tile([self.merged.made[s.matrix] for s in steps], 2, (self.rows,))
        for step in steps:
            value = self.operand(made[self.merged.made[step.matrix]], self.source)
            sums = f"sums{self.place(step)}"
            self.line(
                f"{sums} = tl.dot(tl.trans({value}), {self.values(step, 2)}, {sums}{self.precision})", 2
            )
        for step in steps:
            self.result(step, "col + i_cs", self.columns)

    def read(self) -> None:
        """The statistics of a block of rows."""
        masked = f", mask={self.rows_there()}, other=0" if self.rows.is_masked else ""
        for number, s in enumerate(self.merged.statistics):
            self.row(s, f"tl.load({self.space(number)}{masked})", 2)
