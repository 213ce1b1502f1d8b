"""The Triton renderer for pointwise kernels and row reductions, over the same walk as the C++ renderer.

A program computes ``XBLOCK`` points of the flattened parallel axes; a reduced axis is a second block
dimension ``RBLOCK``, held at once if it fits (``persistent``) and looped over otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ...dtypes import DType
from ...errors import LoweringError
from ...prims.scalar import REDUCERS, SCALARS
from ...symint import Dim, SymInt, hint, product
from ..loopir import Index, Kernel
from .nest import Accumulator, Nest, Node, make_nest
from .triton_support import prelude
from .walk import Compute, Declare, Done, Item, Loop, Plan, build

# A reduced axis up to this long is held in registers of one program.
PERSISTENT_ELEMENTS = 8192
LOOP_ELEMENTS = 2048
POINTWISE_ELEMENTS = 1024
_HALVES = ("float16", "bfloat16")
_EXACT_IN_HALF = frozenset(
    ("negative", "abs", "sign", "floor", "ceil", "trunc", "rint", "maximum", "minimum", "where", "copysign")
)


@dataclass(frozen=True)
class TritonKernel:
    """A generated module. ``source``: its text, defining the jit function ``name``, whose arguments are the
    kernel's buffers in order, ``symbols`` (int64) and the constants ``blocks``. One program per
    ``blocks["XBLOCK"]`` of ``points``."""

    name: str
    source: str
    signature: dict[str, str]
    symbols: tuple[str, ...]
    points: Dim
    blocks: dict[str, int]
    num_warps: int

    def grid(self, values: dict[str, int] | None = None) -> int:
        """Number of programs for the symbols' values."""
        points = self.points.evaluate(values or {}) if isinstance(self.points, SymInt) else self.points
        return max(-(-points // self.blocks["XBLOCK"]), 1)


def render_triton(kernel: Kernel) -> TritonKernel:
    """``kernel`` as a Triton module.

    Raises ``LoweringError`` for scans, scatters, complex numbers and reductions over several axes that
    cannot be stepped through as one.
    """
    nest = make_nest(kernel, "triton")
    _refuse(nest)
    reduced = [a for a in nest.axes if a in nest.reduced()]
    if len(reduced) > 1:
        raise LoweringError("Triton: a reduction over several axes that do not merge")
    kept = tuple(a for a in nest.axes if a not in reduced)
    vector = reduced[0] if reduced else ""
    plan = Plan((*kept, *reduced), kept, vector, keep=False)
    printer = _Printer(nest, kept, vector)
    printer.function(build(nest, plan))
    return printer.finished()


def _refuse(nest: Nest) -> None:
    for node in nest.nodes:
        if node.op in ("scan", "scatter", "gather"):
            raise LoweringError(f"Triton: {node.op} is not rendered yet")
        if node.dtype.is_complex:
            raise LoweringError("Triton has no complex numbers")


def _next_power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()


def triton_type(dtype: DType) -> str:
    """The type of a value in registers."""
    if dtype.is_bool:
        return "tl.int1"
    return "tl.float32" if dtype.name in _HALVES else f"tl.{dtype.name}"


def _pointer_type(dtype: DType) -> str:
    names = {"bool": "i8", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
    if dtype.name in names:
        return "*" + names[dtype.name]
    return f"*{'u' if dtype.kind == 'uint' else 'i'}{dtype.bits}"


def _name(text: str) -> str:
    return re.sub(r"\W", "_", text)


@dataclass
class _Printer:
    nest: Nest
    kept: tuple[str, ...]
    vector: str
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    env: dict[str, str] = field(default_factory=dict)
    symbols: list[str] = field(default_factory=list)
    in_loop: bool = False

    def __post_init__(self) -> None:
        self.dtype_of = {n.out: n.dtype for n in self.nest.nodes if n.out}
        self.buffers = {b.name: b for b in self.nest.kernel.buffers}
        size = self.nest.axes[self.vector].size if self.vector else 1
        self.points = product(self.nest.axes[a].size for a in self.kept)
        length = _next_power_of_two(max(hint(size), 1))
        self.persistent = isinstance(size, int) and length <= PERSISTENT_ELEMENTS
        self.rblock = length if self.persistent else min(length, LOOP_ELEMENTS)
        self.wide = any(not isinstance(b.size, int) or b.size >= 2**31 for b in self.nest.kernel.buffers)

    # -- text ---------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def dim(self, value: Dim) -> str:
        if isinstance(value, SymInt):
            text = str(value)
            if "min(" in text or "max(" in text:
                raise LoweringError("Triton: a size with min or max")
            self.symbols += [s for s in sorted(value.symbols()) if s not in self.symbols]
            return f"({text})"
        return str(value)

    def at(self, index: Index) -> str:
        parts = [
            f"i_{a}" if isinstance(f, int) and f == 1 else f"i_{a} * {self.dim(f)}" for a, f in index.terms
        ]
        if isinstance(index.offset, SymInt) or index.offset or not parts:
            parts.append(self.dim(index.offset))
        return " + ".join(parts)

    def mask(self, axes: Iterable[str]) -> str:
        """The condition that a point of ``axes`` exists; empty if there is nothing to test."""
        tests = []
        axes = set(axes)
        if axes & set(self.kept):
            tests.append("x_mask")
        if self.vector in axes:
            tests.append("r_mask")
        return " & ".join(tests)

    # -- the function -------------------------------------------------------------------------
    def function(self, items: list[Item]) -> None:
        suffix = "[:, None]" if self.vector else ""
        kind = ".to(tl.int64)" if self.wide else ""
        self.line(f"x = tl.program_id(0){kind} * XBLOCK + tl.arange(0, XBLOCK){suffix}")
        self.line(f"x_mask = x < {self.dim(self.points)}")
        rest = "x"
        for axis in reversed(self.kept[1:]):
            size = self.dim(self.nest.axes[axis].size)
            self.line(f"i_{axis} = ({rest}) % {size}")
            rest = f"{rest} // {size}"
        if self.kept:
            self.line(f"i_{self.kept[0]} = {rest}")
        if self.vector and self.persistent:
            self.reduced_index("")
        flat: list[Item] = []
        for item in items:
            if isinstance(item, Loop) and item.kind == "parallel":
                flat += item.items
            else:
                flat.append(item)
        self.items(flat)

    def reduced_index(self, start: str) -> None:
        self.line(f"i_{self.vector} = {start}tl.arange(0, RBLOCK)[None, :]")
        self.line(f"r_mask = i_{self.vector} < {self.dim(self.nest.axes[self.vector].size)}")

    def items(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Compute):
                self.compute(item.node)
            elif isinstance(item, Declare):
                self.declare(item.acc)
            elif isinstance(item, Done):
                self.done(item.acc)
            elif isinstance(item, Loop):
                self.loop(item)
            else:
                raise LoweringError("Triton: a local array")

    def loop(self, loop: Loop) -> None:
        if self.persistent or loop.axes != (self.vector,):
            self.items(loop.items)
            return
        size = self.dim(self.nest.axes[self.vector].size)
        self.line(f"for start in range(0, {size}, RBLOCK):")
        self.depth += 1
        before = dict(self.env)
        self.in_loop = True
        self.reduced_index("start + ")
        self.items(loop.items)
        self.in_loop = False
        self.env = before
        self.depth -= 1

    # -- reductions ---------------------------------------------------------------------------
    def literal(self, value: object, dtype: DType) -> str:
        if dtype.is_bool:
            return "1" if value else "0"
        if dtype.is_float:
            number = float(np.asarray(value, np.float64))
            return repr(number) if np.isfinite(number) else f'float("{number}")'
        return str(int(np.asarray(value).astype(dtype.numpy)))

    def identity(self, acc: Accumulator) -> str:
        value = REDUCERS[acc.combiner].identity(acc.dtype)
        return self.literal(value, acc.dtype)

    def declare(self, acc: Accumulator) -> None:
        kind = triton_type(acc.dtype)
        self.line(f"acc_{_name(acc.value)} = tl.full((XBLOCK, RBLOCK), {self.identity(acc)}, {kind})")
        if acc.position:
            self.line(f"acc_{_name(acc.value)}_at = tl.full((XBLOCK, RBLOCK), {2**62}, tl.int64)")

    def accumulate(self, node: Node) -> None:
        acc: Accumulator = node.arg
        name = f"acc_{_name(acc.value)}"
        value = self.env[node.args[0]]
        mask = self.mask({self.vector})
        if acc.position:
            sign = ">" if acc.combiner == "argmax" else "<"
            self.line(f"take = ({value} {sign} {name}) | (({value} != {value}) & ({name} == {name}))")
            self.line(f"take = take & {mask}")
            self.line(f"{name}_at = tl.where(take, (i_{self.vector} + 0 * take).to(tl.int64), {name}_at)")
            self.line(f"{name} = tl.where(take, {value}, {name})")
            return
        kind = triton_type(acc.dtype)
        masked = f"tl.where({mask}, {value}, {self.identity(acc)}).to({kind})"
        row = REDUCERS[acc.combiner].combine
        template = SCALARS[row].spelling("triton", acc.dtype)
        if template is None:
            raise LoweringError(f"Triton has no {row} for {acc.dtype}")
        self.line(f"{name} = ({template.format(name, masked)}).to({kind})")

    def done(self, acc: Accumulator) -> None:
        name = f"acc_{_name(acc.value)}"
        kind = triton_type(acc.dtype)
        if acc.position:
            self.done_position(acc, name)
            return
        if acc.combiner in ("max", "min") and acc.dtype.is_float:
            self.done_extreme(acc, name)
            return
        texts = {
            "any": f"tl.max({name}.to(tl.int32), axis=1) != 0",
            "all": f"tl.min({name}.to(tl.int32), axis=1) != 0",
            "prod": f"tl.reduce({name}, 1, dc_product)",
        }
        text = texts.get(acc.combiner, f"tl.{acc.combiner}({name}, axis=1)")
        self.line(f"{name} = ({text})[:, None].to({kind})")

    def done_extreme(self, acc: Accumulator, name: str) -> None:
        """tl.max and tl.min drop NaN."""
        self.line(f"{name}_nan = tl.max(({name} != {name}).to(tl.int32), axis=1)[:, None]")
        self.line(f"{name} = tl.{acc.combiner}({name}, axis=1)[:, None]")
        self.line(f'{name} = tl.where({name}_nan != 0, float("nan"), {name})')

    def done_position(self, acc: Accumulator, name: str) -> None:
        """The smallest position among the extreme values."""
        function = "max" if acc.combiner == "argmax" else "min"
        self.line(f"{name}_best = tl.{function}({name}, axis=1)[:, None]")
        best = f"{name} == {name}_best"
        if acc.dtype.is_float:
            self.line(f"{name}_nan = tl.max(({name} != {name}).to(tl.int32), axis=1)[:, None] != 0")
            best = f"tl.where({name}_nan, {name} != {name}, {best})"
        self.line(f"{name}_at = tl.min(tl.where({best}, {name}_at, {2**62}), axis=1)[:, None]")
        self.line(f"{name}_at = tl.where({name}_at == {2**62}, 0, {name}_at)")

    # -- statements ---------------------------------------------------------------------------
    def compute(self, node: Node) -> None:
        if node.op == "accumulate":
            self.accumulate(node)
            return
        if node.op == "store":
            self.store(node)
            return
        if node.out in self.env and not self.in_loop:
            return  # a block held at once is computed once, whatever the number of passes
        name = f"v_{_name(node.out)}"
        self.line(f"{name} = {self.expression(node)}")
        self.env[node.out] = name

    def store(self, node: Node) -> None:
        buffer = self.buffers[node.arg[0]]
        value = self.env[node.args[0]]
        if buffer.dtype.is_bool:
            value = f"{value}.to(tl.int8)"
        elif buffer.dtype.name in _HALVES:
            value = f"{value}.to(tl.{buffer.dtype.name})"
        mask = self.mask(node.axes)
        # a pointer of the full block's shape, also where the index does not mention an axis
        block = "x * 0 + " if node.axes & set(self.kept) else ""
        masked = f", mask={mask}" if mask else ""
        if not node.axes & set(self.kept):
            masked = f", mask=(x == 0){f' & {mask}' if mask else ''}"
            block = "x * 0 + "
        self.line(f"tl.store(p_{_name(buffer.name)} + ({block}{self.at(node.arg[1])}), {value}{masked})")

    def load(self, node: Node) -> str:
        buffer = self.buffers[node.arg[0]]
        index = node.arg[1]
        mask = self.mask(a for a, _ in index.terms)
        masked = f", mask={mask}, other=0" if mask else ""
        text = f"tl.load(p_{_name(buffer.name)} + ({self.at(index)}){masked})"
        if buffer.dtype.is_bool:
            return f"({text} != 0)"
        return f"{text}.to(tl.float32)" if buffer.dtype.name in _HALVES else text

    def expression(self, node: Node) -> str:
        if node.op == "load":
            return self.load(node)
        if node.op == "const":
            shape = "(1, 1)" if self.vector else "(1,)"
            return f"tl.full({shape}, {self.literal(node.arg, node.dtype)}, {triton_type(node.dtype)})"
        if node.op == "symbol":
            shape = "(1, 1)" if self.vector else "(1,)"
            return f"tl.full({shape}, 0, tl.int64) + {self.dim(node.arg)}"
        if node.op == "axis":
            return f"({self.at(node.arg)} + x * 0).to(tl.int64)"
        if node.op == "finish":
            name = f"acc_{_name(node.arg.value)}"
            return f"{name}_at" if node.arg.position else f"{name}.to({triton_type(node.dtype)})"
        if node.op == "cast":
            return self.cast(self.env[node.args[0]], self.dtype_of[node.args[0]], node.dtype)
        return self.scalar(node)

    def cast(self, value: str, source: DType, target: DType) -> str:
        if target.is_bool:
            return f"({value} != 0)"
        text = f"{value}.to({triton_type(target)})"
        if target.name in _HALVES and source is not target:
            return f"{value}.to(tl.{target.name}).to(tl.float32)"
        return text

    def scalar(self, node: Node) -> str:
        principal = node.args[1 if node.op == "where" else 0]
        dtype = self.dtype_of.get(principal, node.dtype)
        template = SCALARS[node.op].spelling("triton", dtype)
        if template is None:
            raise LoweringError(f"Triton has no {node.op} for {dtype}")
        text = template.format(*(self.env[a] for a in node.args))
        if node.dtype.name in _HALVES and node.op not in _EXACT_IN_HALF:
            return f"({text}).to(tl.{node.dtype.name}).to(tl.float32)"
        if node.dtype.is_integer:
            # Triton widens narrow integers
            return f"({text}).to({triton_type(node.dtype)})"
        return text

    # -- the result ---------------------------------------------------------------------------
    def finished(self) -> TritonKernel:
        kernel = self.nest.kernel
        name = f"kernel_{_name(kernel.name)}"
        pointers = [f"p_{_name(b.name)}" for b in kernel.buffers]
        blocks = self.blocks()
        arguments = [*pointers, *self.symbols, *(f"{b}: tl.constexpr" for b in blocks)]
        comments = [f"# {origin.splitlines()[0] if origin else ''}" for origin in kernel.origin]
        head = [*comments, "@triton.jit", f"def {name}({', '.join(arguments)}):"]
        body = "\n".join([*head, *self.lines]) + "\n"
        signature = {p: _pointer_type(b.dtype) for p, b in zip(pointers, kernel.buffers)}
        signature |= dict.fromkeys(self.symbols, "i64")
        signature |= dict.fromkeys(blocks, "constexpr")
        elements = blocks["XBLOCK"] * blocks.get("RBLOCK", 1)
        warps = min(max(_next_power_of_two(elements // 256), 1), 16)
        source = f"{prelude(body)}\n\n{body}"
        return TritonKernel(name, source, signature, tuple(self.symbols), self.points, blocks, warps)

    def blocks(self) -> dict[str, int]:
        if not self.vector:
            return {"XBLOCK": min(POINTWISE_ELEMENTS, _next_power_of_two(max(hint(self.points), 1)))}
        rows = max(POINTWISE_ELEMENTS // self.rblock, 1)
        return {"XBLOCK": min(rows, _next_power_of_two(max(hint(self.points), 1))), "RBLOCK": self.rblock}
