"""Statements of one Triton function: blocks, masks, memory and scalar expressions, over the shared walk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from ....dataclass import dataclass, field
from ....dtypes import DType
from ....errors import LoweringError
from ....prims.scalar import SCALARS
from ....symbolic.integers import Dim, SymInt, same
from ...loops.loop_ir import Buffer, Index
from ..nest import Accumulator, Nest, Node
from ..walk import Compute, Declare, Done, Item, Loop, Plan, build
from .layout import Group, Layout
from .reduce import Reductions

HALVES = ("float16", "bfloat16")
# How many steps of a loop over a long row are done at once.
UNROLL = 2
_SYMBOL = re.compile(r"\b[A-Za-z_]\w*\b(?!\s*\()")
_POINTER_TYPES = {"bool": "i8", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
# What triton has an atomic instruction for: by combiner, names of element types.
_FLOAT_ATOMICS = ("float16", "bfloat16", "float32", "float64")
_INTEGER_ATOMICS = ("int32", "uint32", "int64", "uint64")
_ATOMICS = {"add": (*_FLOAT_ATOMICS, *_INTEGER_ATOMICS), "max": _INTEGER_ATOMICS, "min": _INTEGER_ATOMICS}


def triton_type(dtype: DType) -> str:
    """The type of a value in registers."""
    if dtype.is_bool:
        return "tl.int1"
    return "tl.float32" if dtype.name in HALVES else f"tl.{dtype.name}"


def pointer_type(dtype: DType) -> str:
    """The type of a pointer argument, in the notation of signatures."""
    if dtype.name in _POINTER_TYPES:
        return "*" + _POINTER_TYPES[dtype.name]
    return f"*{'u' if dtype.kind == 'uint' else 'i'}{dtype.bits}"


def _times(place: str, step: str) -> str:
    return place if step == "1" else f"{place} * {step}"


def identifier(text: str) -> str:
    return re.sub(r"\W", "_", text)


@dataclass
class Printer:
    """Writes the body of one function. ``lines``: the text; ``symbols``: the symbols that it takes, in order;
    ``asserts``: it checks positions."""

    nest: Nest
    layout: Layout
    wide: bool
    buffers: dict[str, Buffer]
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    env: dict[str, str] = field(default_factory=dict)
    symbols: list[str] = field(default_factory=list)
    in_loop: bool = False
    asserts: bool = False
    checked: int = 0
    vector: str = ""
    # loads that the rest of the loops over a row do again, one set per loop
    again: list[frozenset[str]] = field(default_factory=list)
    passes: int = 0

    def __post_init__(self) -> None:
        self.dtype_of = {n.out: n.dtype for n in self.nest.nodes if n.out}
        self.reductions = Reductions(self)

    # -- text ---------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def dim(self, value: Dim) -> str:
        if not isinstance(value, SymInt):
            return str(value)
        self.symbols += [s for s in sorted(value.symbols()) if s not in self.symbols]
        text = re.sub(r"\b(min|max)\(", r"tl.\1imum(", str(value))
        return f"({text})"

    def long_dim(self, value: Dim) -> str:
        """A size in 64 bits, whatever the type of the symbols' arguments."""
        text = self.dim(value)
        if not isinstance(value, SymInt):
            return text
        names = set(value.symbols())
        return _SYMBOL.sub(lambda m: f"{m[0]}.to(tl.int64)" if m[0] in names else m[0], text)

    def at(self, index: Index) -> str:
        parts: list[str] = []
        left = list(index.terms)
        for group in self.layout.groups:
            step = self.flat_step(group, dict(left))
            if step is not None:
                left = [(a, f) for a, f in left if a not in group.axes]
                parts.append(_times(group.name, self.dim(step)))
        parts += [_times(f"i_{a}", self.dim(f)) for a, f in left]
        if isinstance(index.offset, SymInt) or index.offset or not parts:
            parts.append(self.dim(index.offset))
        return " + ".join(parts)

    def flat_step(self, group: Group, steps: dict[str, Dim]) -> Dim | None:
        """The step of an access along several axes of a group as one, if they lie so: the compiler then sees
        that its places follow one another. (It does not undo remainders and quotients by odd sizes.)"""
        axes = [a for a in group.axes if not same(self.nest.axes[a].size, 1)]
        if len(axes) < 2 or any(a not in steps for a in axes):
            return None
        step = inner = steps[axes[-1]]
        for axis, within in zip(axes[-2::-1], axes[:0:-1]):
            inner = inner * self.nest.axes[within].size
            if not same(steps[axis], inner):
                return None
        return step

    def mask(self, axes: Iterable[str]) -> str:
        """The condition that a point of ``axes`` exists; empty if there is nothing to test."""
        return " & ".join(f"{g.name}_mask" for g in self.layout.groups_of(axes) if g.is_masked)

    @property
    def unit(self) -> str:
        """The shape of one element of a block."""
        return {0: "(1,)", 1: "(1,)", 2: "(1, 1)"}[self.layout.rank]

    @property
    def block(self) -> str:
        """The shape of a whole block."""
        return f"({', '.join(f'{g.name.upper()}BLOCK' for g in self.layout.groups)},)"

    def spread(self, group: Group) -> str:
        """The subscript that gives a vector along ``group`` its place in a block."""
        if self.layout.rank < 2:
            return ""
        return "[:, None]" if group is self.layout.groups[0] else "[None, :]"

    # -- the function -------------------------------------------------------------------------
    def function(self, roots: Sequence[Node] | None = None) -> None:
        """The body that performs ``roots`` (or all effects)."""
        kept = tuple(a for g in self.layout.kept for a in g.axes)
        vector = ""
        if self.layout.reduced is not None:
            axes = self.layout.reduced.axes
            vector = axes[0] if len(axes) == 1 else self.layout.reduced.name
        order = (*kept, vector) if vector else kept
        self.vector = vector
        plan = Plan(order, kept, vector, keep=False)
        items = build(self.nest, plan, roots)
        self.positions()
        flat: list[Item] = []
        for item in items:
            if isinstance(item, Loop) and item.kind == "parallel":
                flat += item.items
            else:
                flat.append(item)
        self.look_ahead(flat)
        self.items(flat)

    def look_ahead(self, items: Iterable[Item]) -> None:
        """Find what the loops over a row read again: it is to stay in the cache until then."""
        loops = [item for item in items if isinstance(item, Loop) and item.axes == (self.vector,)]
        self.passes = len(loops)
        later: frozenset[str] = frozenset()
        for loop in reversed(loops):
            self.again.insert(0, later)
            later |= {
                item.node.out
                for item in loop.items
                if isinstance(item, Compute) and item.node.op == "load" and self.vector in item.node.axes
            }

    def positions(self) -> None:
        """Which block the program has."""
        self.line("pid = tl.program_id(0)" + (".to(tl.int64)" if self.wide else ""))
        if self.layout.parts > 1:
            self.line("part = pid % PARTS")
            self.line("pid = pid // PARTS")
        if len(self.layout.kept) == 2:
            self.line(f"y_pid = pid // {self.dim(self.layout.kept[1].blocks)}")
            self.line(f"x_pid = pid % {self.dim(self.layout.kept[1].blocks)}")
        for group in self.layout.kept:
            pid = f"{group.name}_pid" if len(self.layout.kept) == 2 else "pid"
            block = f"{group.name.upper()}BLOCK"
            self.line(f"{group.name} = {pid} * {block} + tl.arange(0, {block}){self.spread(group)}")
            self.group(group)
        if self.layout.reduced is not None and self.layout.persistent:
            self.reduced_positions("")

    def group(self, group: Group) -> None:
        """The mask of a group's points and their positions along its axes."""
        if group.is_masked:
            self.line(f"{group.name}_mask = {group.name} < {self.dim(group.size)}")
        rest = group.name
        for axis in reversed(group.axes[1:]):
            size = self.dim(self.nest.axes[axis].size)
            self.line(f"i_{axis} = ({rest}) % {size}")
            rest = f"{rest} // {size}"
        if group.axes:
            self.line(f"i_{group.axes[0]} = {rest}")

    def reduced_positions(self, start: str) -> None:
        group = self.layout.reduced
        assert group is not None
        wide = ".to(tl.int64)" if self.wide else ""
        self.line(f"r = {start}tl.arange(0, RBLOCK){self.spread(group)}{wide}")
        self.group(group)

    def items(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Compute):
                self.compute(item.node)
            elif isinstance(item, Declare):
                self.reductions.declare(item.acc)
            elif isinstance(item, Done):
                self.reductions.done(item.acc)
            elif isinstance(item, Loop):
                self.loop(item)
            else:
                raise LoweringError("Triton: a local array")

    def loop(self, loop: Loop) -> None:
        reduced = self.layout.reduced
        if reduced is None or loop.axes != (self.vector,):
            self.items(loop.items)
            return
        for node, _ in loop.carries:
            self.reductions.start_scan(node)
        if self.layout.persistent:
            self.items(loop.items)
            return
        size = self.dim(reduced.size)
        if self.layout.parts > 1:
            self.line(f"part_size = tl.cdiv({size}, PARTS * RBLOCK) * RBLOCK")
            self.line("part_start = part * part_size")
            self.line(f"part_end = tl.minimum(part_start + part_size, {size})")
            self.line("for start in range(part_start, part_end, RBLOCK):")
        else:
            unrolled = f", loop_unroll_factor={UNROLL}" if self.passes > 1 else ""
            self.line(f"for start in tl.range(0, {size}, RBLOCK{unrolled}):")
        self.depth += 1
        before = dict(self.env)
        self.in_loop = True
        self.reduced_positions("start + ")
        self.items(loop.items)
        self.in_loop = False
        self.again = self.again[1:]
        self.env = before
        self.depth -= 1

    # -- statements ---------------------------------------------------------------------------
    def compute(self, node: Node) -> None:
        effects = {
            "accumulate": self.reductions.accumulate,
            "store": self.store,
            "scatter": self.scatter,
            "check": self.check,
        }
        if node.op in effects:
            effects[node.op](node)
            return
        if node.out in self.env and not self.in_loop:
            return  # a block held at once is computed once, whatever the number of passes
        name = f"v_{identifier(node.out)}"
        self.line(f"{name} = {self.expression(node)}")
        self.env[node.out] = name

    def stored(self, value: str, buffer: Buffer) -> str:
        if buffer.dtype.is_bool:
            return f"{value}.to(tl.int8)"
        return f"{value}.to(tl.{buffer.dtype.name})"

    def pointer(self, buffer: Buffer, text: str, node: Node, index: Index) -> str:
        """A pointer of the shape of the node's block, also where the index does not mention an axis."""
        mentioned = self.layout.groups_of(a for a, _ in index.terms)
        missing = [g for g in self.layout.groups_of(node.axes) if g not in mentioned]
        if not node.axes & {a for g in self.layout.kept for a in g.axes} and self.layout.kept:
            missing += [g for g in self.layout.kept if g not in missing]
        zero = "".join(f"{g.name} * 0 + " for g in missing)
        return f"p_{identifier(buffer.name)} + ({zero}{text})"

    def store_mask(self, node: Node) -> str:
        """The mask of an effect: of a value without parallel axes, the first point alone."""
        masks = [m for m in (self.mask(node.axes),) if m]
        for group in self.layout.kept:
            if not node.axes & {*group.axes} and group.size != 1:
                masks.append(f"({group.name} == 0)")
        return " & ".join(masks)

    def store(self, node: Node) -> None:
        buffer = self.buffers[node.arg[0]]
        index = node.arg[1]
        value = self.stored(self.env[node.args[0]], buffer)
        mask = self.store_mask(node)
        masked = f", mask={mask}" if mask else ""
        pointer = self.pointer(buffer, self.at(index), node, index)
        self.line(f"tl.store({pointer}, {value}{masked})")

    def load(self, node: Node) -> str:
        buffer = self.buffers[node.arg[0]]
        index = node.arg[1]
        mask = self.mask(a for a, _ in index.terms)
        masked = f", mask={mask}, other=0" if mask else ""
        policy = self.policy(node)
        return self.loaded(
            f"tl.load(p_{identifier(buffer.name)} + ({self.at(index)}){masked}{policy})", buffer
        )

    def policy(self, node: Node) -> str:
        """What the cache is told of a row that is gone through several times."""
        if not self.in_loop or self.passes < 2:
            return ""
        last = not self.again or node.out not in self.again[0]
        return f', eviction_policy="evict_{"first" if last else "last"}"'

    def loaded(self, text: str, buffer: Buffer) -> str:
        if buffer.dtype.is_bool:
            return f"({text} != 0)"
        return f"{text}.to(tl.float32)" if buffer.dtype.name in HALVES else text

    # -- positions known at run time ------------------------------------------------------------
    def bounded(
        self, positions: Sequence[str], sizes: Sequence[Dim], wraps: Sequence[bool], mask: str
    ) -> list[str]:
        """Positions made non-negative, with a check that they are within bounds."""
        found: list[str] = []
        for name, size, wrap in zip(positions, sizes, wraps):
            value, extent = self.env[name], self.long_dim(size)
            self.checked += 1
            at = f"at_{self.checked}"
            wrapped = f"tl.where({value} < 0, {value} + {extent}, {value})" if wrap else value
            self.line(f"{at} = {wrapped}")
            inside = f"({at} >= 0) & ({at} < {extent})"
            outside = f" | ~({mask})" if mask else ""
            self.asserts = True
            self.line(f'tl.device_assert({inside}{outside}, "index out of bounds for axis with size {size}")')
            self.line(f"{at} = tl.where({inside}, {at}, 0)")
            found.append(at)
        return found

    def address(self, node: Node, positions: Sequence[str], mask: str) -> str:
        _, index, strides, sizes, wraps = node.arg[:5]
        terms = [
            f"{at} * {self.long_dim(stride)}"
            for at, stride in zip(self.bounded(positions, sizes, wraps, mask), strides)
        ]
        return " + ".join([self.at(index), *terms])

    def gather(self, node: Node) -> str:
        buffer = self.buffers[node.arg[0]]
        mask = self.mask(node.axes)
        address = self.address(node, node.args, mask)
        masked = f", mask={mask}, other=0" if mask else ""
        return self.loaded(f"tl.load(p_{identifier(buffer.name)} + ({address}){masked})", buffer)

    def check(self, node: Node) -> None:
        sizes, wraps = node.arg
        self.bounded(node.args, sizes, wraps, self.mask(node.axes))

    def scatter(self, node: Node) -> None:
        buffer = self.buffers[node.arg[0]]
        combiner = node.arg[5]
        if combiner != "set" and buffer.dtype.name not in _ATOMICS.get(combiner, ()):
            raise LoweringError(f"Triton has no atomic {combiner} of {buffer.dtype}")
        mask = self.store_mask(node)
        address = self.address(node, node.args[1:], mask)
        pointer = self.pointer(buffer, address, node, Index())
        value = f"({self.stored(self.env[node.args[0]], buffer)})"
        masked = f", mask={mask}" if mask else ""
        if combiner == "set":
            self.line(f"tl.store({pointer}, {value}{masked})")
            return
        shape = f" + tl.zeros({self.block}, tl.{buffer.dtype.name})"
        self.line(f'tl.atomic_{combiner}({pointer}, {value}{shape}{masked}, sem="relaxed")')

    # -- values -------------------------------------------------------------------------------
    def literal(self, value: object, dtype: DType) -> str:
        if dtype.is_bool:
            return "1" if value else "0"
        with np.errstate(all="ignore"):
            typed = np.asarray(value).astype(dtype.numpy)
        if dtype.is_float:
            number = float(typed.astype(np.float64))
            return repr(number) if np.isfinite(number) else f'float("{number}")'
        return str(int(typed))

    def expression(self, node: Node) -> str:
        readers = {"load": self.load, "gather": self.gather, "scan": self.reductions.scan}
        if node.op in readers:
            return readers[node.op](node)
        if node.op == "const":
            value = self.literal(node.arg, node.dtype)
            return f"tl.full({self.unit}, {value}, {triton_type(node.dtype)})"
        if node.op == "symbol":
            return f"tl.full({self.unit}, 0, tl.int64) + {self.long_dim(node.arg)}"
        if node.op == "axis":
            return f"({self.at(node.arg)} + tl.zeros({self.unit}, tl.int64)).to(tl.int64)"
        if node.op == "finish":
            return self.finished(node.arg, node.dtype)
        if node.op == "cast":
            return self.cast(self.env[node.args[0]], self.dtype_of[node.args[0]], node.dtype)
        return self.scalar(node)

    def finished(self, acc: Accumulator, dtype: DType) -> str:
        name = f"acc_{identifier(acc.value)}"
        if acc.position:
            return f"{name}_at"
        if dtype.is_bool:
            return f"({name} != 0)"
        if dtype.name in HALVES:
            return f"{name}.to(tl.{dtype.name}).to(tl.float32)"
        return f"{name}.to({triton_type(dtype)})"

    def cast(self, value: str, source: DType, target: DType) -> str:
        if target.is_bool:
            return f"({value} != 0)"
        if target.name in HALVES and source is not target:
            return f"{value}.to(tl.{target.name}).to(tl.float32)"
        return f"{value}.to({triton_type(target)})"

    def scalar(self, node: Node) -> str:
        row = SCALARS[node.op]
        principal = row.principal_of(node.args)
        dtype = self.dtype_of.get(principal, node.dtype)
        template = row.spelling("triton", dtype)
        if template is None:
            raise LoweringError(f"Triton has no {node.op} for {dtype}")
        text = template.format(*(self.env[a] for a in node.args))
        if node.dtype.name in HALVES and not row.exact_in_half:
            return f"({text}).to(tl.{node.dtype.name}).to(tl.float32)"
        if node.dtype.is_integer:
            # Triton widens narrow integers
            return f"({text}).to({triton_type(node.dtype)})"
        return text
