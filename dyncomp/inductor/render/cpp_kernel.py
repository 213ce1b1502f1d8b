"""One kernel as a C++ function: prints the loop tree of ``walk``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...dtypes import DType
from ...errors import LoweringError
from ...prims.scalar import REDUCERS, SCALARS
from ...symint import Dim, hint
from ..loopir import Buffer, Index, Kernel
from . import ctext
from .arrange import arrange
from .nest import Accumulator, LocalArray, LoopAxis, Nest, Node, make_nest
from .walk import Compute, Declare, DeclareArray, Done, Item, Loop, Plan, build

# One chunk of a parallel loop should take about this long.
CHUNK_NS = 12_000.0
# Bytes of accumulator lanes in a reduction: four 512-bit vectors, one if the body is heavy.
LANE_BYTES = 256
HEAVY_COST = 8
# Rows whose vector form covers ordinary arguments only, with the name of their helper functions: there is
# a test dc_far_NAME for the others and a complete form dc_full_NAME, which calls the C library.
GUARDED = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "fmod": "fmod",
    "remainder": "remainder",
    "floor_divide": "floordiv",
}
# Elements that are tested before the loop over them runs.
STRIP = 4096
# Results of these rows are exact in a half type if their arguments are.
_EXACT_IN_HALF = frozenset(
    "negative abs sign floor ceil trunc rint maximum minimum fmax fmin where copysign conj real imag".split()
)


@dataclass
class Lanes:
    """How an accumulator is spread: ``count`` lanes (1: a plain variable)."""

    acc: Accumulator
    count: int
    axes: tuple[str, ...]


@dataclass
class Printer:
    """Prints one function body. ``symbols``: C++ expressions of the size symbols."""

    nest: Nest
    plan: Plan
    symbols: Mapping[str, str]
    point_ns: float
    serial_ns: float
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    env: dict[str, str] = field(default_factory=dict)
    dtype_of: dict[str, DType] = field(default_factory=dict)
    lanes: dict[str, Lanes] = field(default_factory=dict)
    lane: str = ""
    full: bool = True
    bodies: int = 0
    carries: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.nest.nodes:
            if node.out:
                self.dtype_of[node.out] = node.dtype
        self.buffers: dict[str, Buffer] = {b.name: b for b in self.nest.kernel.buffers}
        self.gathers = any(n.op in ("gather", "scatter") for n in self.nest.nodes)

    # -- text ---------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    def dim(self, value: Dim) -> str:
        return ctext.dimension(value, self.symbols)

    def at(self, index: Index) -> str:
        return ctext.index_text(index.terms, index.offset, self.symbols)

    def element(self, buffer: str, position: str) -> str:
        return f"{variable(buffer)}[{position}]"

    def bound(self, axis: LoopAxis) -> str:
        """The number of iterations of a loop, in scope of its outer loops."""
        if axis.block_of is None:
            return self.dim(axis.size)
        outer, block, total = axis.block_of
        if isinstance(total, int) and isinstance(block, int) and total % block == 0:
            return self.dim(block)
        return f"dc_size_min({self.dim(block)}, {self.dim(total)} - i_{outer} * {self.dim(block)})"

    # -- the tree -----------------------------------------------------------------------------
    def items(self, items: Iterable[Item]) -> None:
        items = list(items)
        for place, item in enumerate(items):
            if isinstance(item, Compute):
                self.compute(item.node)
            elif isinstance(item, Declare):
                self.declare(item, _cost_of_filling(item.acc, items[place:]))
            elif isinstance(item, Done):
                self.done(item.acc)
            elif isinstance(item, DeclareArray):
                self.declare_array(item.array)
            else:
                self.loop(item)

    def declare_array(self, array: LocalArray) -> None:
        total = self.extent(array.axes)
        self.line(f"{ctext.register_type(array.dtype)} {variable(array.name)}[{total}];")

    def extent(self, axes: Iterable[str]) -> int:
        total = 1
        for name in axes:
            axis = self.nest.axes[name]
            size = axis.static if axis.static is not None else axis.most
            if not size:
                raise LoweringError(f"a local array over axis {name} of unknown size")
            total *= size
        return total

    def array_position(self, axes: tuple[str, ...]) -> str:
        text = ""
        for name in axes:
            axis = self.nest.axes[name]
            size = axis.static if axis.static is not None else axis.most
            text = f"({text}) * {size} + i_{name}" if text else f"i_{name}"
        return text or "0"

    def loop(self, loop: Loop) -> None:
        for node, axes in loop.carries:
            self.declare_carry(node, axes)
        if loop.kind == "parallel":
            self.parallel(loop)
        elif loop.kind == "vector":
            (name,) = loop.axes
            self.vector(loop, "0", self.bound(self.nest.axes[name]))
        else:
            (name,) = loop.axes
            bound = self.bound(self.nest.axes[name])
            with self.block(f"for (i64 i_{name} = 0; i_{name} < {bound}; ++i_{name})"):
                self.items(loop.items)

    # -- parallel loops -----------------------------------------------------------------------
    def parallel(self, loop: Loop) -> None:
        name = f"body{self.bodies}"
        self.bodies += 1
        axes = [self.nest.axes[a] for a in loop.axes]
        total = " * ".join(self.dim(a.size) for a in axes)
        outer_env = dict(self.env)
        with self.block(f"auto {name} = [&](i64 lo, i64 hi)", "};"):
            self.prologue()
            self.localise(loop)
            if self.gathers:
                self.line("int bad = 0;")
            self.parallel_body(loop, axes)
            if self.gathers:
                with self.block("if (bad)"):
                    self.line("any_bad = 1;")
        self.env = outer_env
        self.launch(name, total, axes)

    def launch(self, name: str, total: str, axes: list[LoopAxis]) -> None:
        points = max(_hint_product(self.nest.axes[a].size for a in self.nest.axes), 1)
        outer = max(_hint_product(a.size for a in axes), 1)
        each = self.point_ns * points / outer
        static = all(a.static is not None for a in self.nest.axes.values())
        if static and each * outer <= self.serial_ns:
            self.line(f"{name}(0, {total});")
            return
        grain = max(int(CHUNK_NS / max(each, 1e-3)), 1)
        if len(axes) == 1 and axes[0].name == self.plan.vector:
            grain = max(grain // 1024, 1) * 1024
        self.line(f"rt->parallel_for(&dc_call<decltype({name})>, &{name}, {total}, {grain});")

    def localise(self, loop: Loop) -> None:
        """Scalars of the enclosing scope into variables of the body's own."""
        used = {arg for item in _all_items(loop.items) for arg in _used_names(item)}
        for name in sorted(used & set(self.env)):
            outer = self.env[name]
            local = f"{outer}_"
            self.line(f"const {ctext.register_type(self.dtype_of[name])} {local} = {outer};")
            self.env[name] = local

    def parallel_body(self, loop: Loop, axes: list[LoopAxis]) -> None:
        if len(axes) == 1:
            name = axes[0].name
            if name == self.plan.vector:
                self.vector(loop, "lo", "hi")
                return
            with self.block(f"for (i64 i_{name} = lo; i_{name} < hi; ++i_{name})"):
                self.items(loop.items)
            return
        self.line("i64 at = lo;")
        for axis in reversed(axes[1:]):
            self.line(f"i64 i_{axis.name} = at % {self.dim(axis.size)};")
            self.line(f"at /= {self.dim(axis.size)};")
        self.line(f"i64 i_{axes[0].name} = at;")
        with self.block("for (i64 step = lo; step < hi; ++step)"):
            if self.plan.vector in loop.axes:
                raise LoweringError("the vector loop cannot be one of several parallel ones")
            self.items(loop.items)
            self.advance(axes)

    def advance(self, axes: list[LoopAxis]) -> None:
        """The odometer step of a flat loop."""
        opened = 0
        for axis in reversed(axes[1:]):
            self.line(f"if (++i_{axis.name} == {self.dim(axis.size)}) {{")
            self.depth += 1
            opened += 1
            self.line(f"i_{axis.name} = 0;")
        self.line(f"++i_{axes[0].name};")
        for _ in range(opened):
            self.depth -= 1
            self.line("}")

    # -- vector loops -------------------------------------------------------------------------
    def vector(self, loop: Loop, low: str, high: str) -> None:
        """A loop whose iterations may run as vector lanes."""
        guarded = [i.node for i in loop.items if isinstance(i, Compute) and self.is_guarded(i.node)]
        if not guarded:
            self.simple_vector(loop, low, high)
            return
        axis = self.nest.axes[loop.axes[-1]]
        if self.lanes_in(loop) > 1 or (low == "0" and axis.hint <= STRIP):
            self.guarded_vector(loop, guarded, low, high)
            return
        # in strips that stay in the cache between the test and the loop
        with self.block(f"for (i64 strip = {low}; strip < {high}; strip += {STRIP})"):
            self.line(f"const i64 strip_end = dc_size_min(strip + {STRIP}, {high});")
            self.guarded_vector(loop, guarded, "strip", "strip_end")

    def is_guarded(self, node: Node) -> bool:
        """The fast form covers ordinary arguments only."""
        return node.op in GUARDED and self.dtype_of[node.args[0]].is_float

    def guarded_vector(self, loop: Loop, guarded: list[Node], low: str, high: str) -> None:
        """First look for arguments beyond the fast forms; the loop that covers them has the same results
        for ordinary ones."""
        name = loop.axes[-1]
        with self.block(""):
            self.line("int far = 0;")
            self.line("#pragma omp simd reduction(|:far)")
            self.full = False
            with self.block(f"for (i64 i_{name} = {low}; i_{name} < {high}; ++i_{name})"):
                for node in _slice(loop.items, guarded):
                    self.compute(node)
                for node in guarded:
                    short = ctext.short_name(self.dtype_of[node.args[0]])
                    args = ", ".join(self.env[a] for a in node.args)
                    self.line(f"far |= dc_far_{GUARDED[node.op]}_{short}({args});")
            with self.block("if (far)", "} else {"):
                self.full = True
                self.simple_vector(loop, low, high)
            self.depth += 1
            self.full = False
            self.simple_vector(loop, low, high)
            self.full = True
            self.depth -= 1
            self.line("}")

    def lanes_in(self, loop: Loop) -> int:
        """Lanes of the accumulators that a loop fills; 0 if it fills none."""
        filled = [
            self.lanes[i.node.arg.value]
            for i in loop.items
            if isinstance(i, Compute) and i.node.op == "accumulate"
        ]
        return max((lanes.count for lanes in filled if not lanes.axes), default=0)

    def simple_vector(self, loop: Loop, low: str, high: str) -> None:
        name = loop.axes[-1]
        count = self.lanes_in(loop)
        if count > 1:
            with self.block(""):
                self.lane_loop(loop, name, count, high)
            return
        pragma = self.pragma(loop, count == 1)
        if pragma:
            self.line(pragma)
        with self.block(f"for (i64 i_{name} = {low}; i_{name} < {high}; ++i_{name})"):
            self.items(loop.items)

    def pragma(self, loop: Loop, serial: bool) -> str:
        if serial:
            return ""
        if self.full and any(isinstance(i, Compute) and self.is_guarded(i.node) for i in loop.items):
            return ""
        # every gather of this kernel is affected: one flag serves all
        flag = " reduction(|:bad)" if self._has_gather(loop) else ""
        return f"#pragma omp simd{flag}"

    def _has_gather(self, loop: Loop) -> bool:
        return any(isinstance(i, Compute) and i.node.op == "gather" for i in loop.items)

    def lane_loop(self, loop: Loop, name: str, count: int, high: str) -> None:
        base = f"at_{name}"
        self.line(f"const i64 n_{name} = {high};") if not high.isdigit() else None
        bound = high if high.isdigit() else f"n_{name}"
        self.line(f"i64 {base} = 0;")
        pragma = self.pragma(loop, False) or "// element by element"
        self.lane = "lane"
        with self.block(f"for (; {base} + {count} <= {bound}; {base} += {count})"):
            self.line(pragma)
            with self.block(f"for (int lane = 0; lane < {count}; ++lane)"):
                self.line(f"const i64 i_{name} = {base} + lane;")
                self.items(loop.items)
        if not high.isdigit() or int(high) % count:
            self.line(pragma)
            with self.block(f"for (int lane = 0; lane < {bound} - {base}; ++lane)"):
                self.line(f"const i64 i_{name} = {base} + lane;")
                self.items(loop.items)
        self.lane = ""

    # -- accumulators -------------------------------------------------------------------------
    def declare(self, item: Declare, cost: int) -> None:
        acc = item.acc
        count = 1 if item.axes else self.lane_count(acc, cost)
        self.lanes[acc.value] = Lanes(acc, count, item.axes)
        kind = ctext.register_type(acc.dtype)
        name = f"acc_{variable(acc.value)}"
        start = self.identity(acc)
        size = self.extent(item.axes) if item.axes else count
        positions = REDUCERS[acc.combiner].position
        if size == 1:
            self.line(f"{kind} {name} = {start};")
            if positions:
                self.line(f"{self.position_type(acc)} {name}_at = {self.nowhere(acc)};")
            return
        self.line(f"{kind} {name}[{size}];")
        if positions:
            self.line(f"{self.position_type(acc)} {name}_at[{size}];")
        with self.block(f"for (int k = 0; k < {size}; ++k)"):
            self.line(f"{name}[k] = {start};")
            if positions:
                self.line(f"{name}_at[k] = {self.nowhere(acc)};")

    def position_type(self, acc: Accumulator) -> str:
        """Positions as wide as the values, where they fit, keep one number of lanes."""
        total = 1
        for _, size in acc.position:
            total *= size if isinstance(size, int) else 2**31
        return "int" if total < 2**31 and acc.dtype.itemsize <= 4 else "i64"

    def nowhere(self, acc: Accumulator) -> str:
        """The position of no element: greater than every other."""
        return "0x7fffffff" if self.position_type(acc) == "int" else "DC_NOWHERE"

    def identity(self, acc: Accumulator) -> str:
        value = REDUCERS[acc.combiner].identity(acc.dtype)
        if acc.combiner == "sum" and acc.dtype.is_float and self.nonempty(acc):
            value = -0.0  # -0.0 + x is x for every x, the sum of negative zeros included
        return ctext.constant(value, acc.dtype)

    def nonempty(self, acc: Accumulator) -> bool:
        sizes = [self.nest.axes[a] for a in acc.reduced]
        return all(a.static != 0 and (a.static is not None or a.block_of is not None) for a in sizes)

    def lane_count(self, acc: Accumulator, cost: int) -> int:
        """Lanes of an accumulator: whole vectors, several where a body is too short to hide their latency."""
        vector = self.plan.vector
        if not vector or vector not in acc.reduced:
            return 1
        size = self.nest.axes[vector].hint
        if size < 8:
            return 1
        widest = max((self.lane_bytes(n.arg) for n in self.nest.nodes if n.op == "accumulate"), default=4)
        count = (LANE_BYTES if cost <= HEAVY_COST else LANE_BYTES // 4) // widest
        while count > 4 and count * 2 > size:
            count //= 2
        return max(count, 4)

    def lane_bytes(self, acc: Accumulator) -> int:
        if REDUCERS[acc.combiner].position and self.position_type(acc) == "i64":
            return 8
        return max(acc.dtype.itemsize, 4)

    def done(self, acc: Accumulator) -> None:
        lanes = self.lanes[acc.value]
        if lanes.axes or lanes.count == 1:
            return
        name = f"acc_{variable(acc.value)}"
        width = lanes.count // 2
        while width:
            if width >= 4:
                self.line("#pragma omp simd")
            with self.block(f"for (int k = 0; k < {width}; ++k)"):
                self.fold(acc, name, width)
            width //= 2

    def fold(self, acc: Accumulator, name: str, width: int) -> None:
        here, there = f"{name}[k]", f"{name}[k + {width}]"
        if not REDUCERS[acc.combiner].position:
            self.line(f"{here} = {self.combine(acc, here, there)};")
            return
        here_at, there_at = f"{name}_at[k]", f"{name}_at[k + {width}]"
        self.line(f"const bool take = {self.pick_position(acc, here, here_at, there, there_at)};")
        self.line(f"{here} = take ? {there} : {here};")
        self.line(f"{here_at} = take ? {there_at} : {here_at};")

    def pick_position(self, acc: Accumulator, best: str, at: str, other: str, other_at: str) -> str:
        """Whether ``other`` beats ``best``: more extreme or NaN, and among equals the earlier one."""
        better = self.beats(acc, other, best)
        worse = self.beats(acc, best, other)
        return f"({better}) | (!({worse}) & ({other_at} < {at}))"

    def beats(self, acc: Accumulator, x: str, y: str) -> str:
        sign = ">" if acc.combiner == "argmax" else "<"
        if acc.dtype.is_float:
            return f"({x} {sign} {y}) | (({x} != {x}) & ({y} == {y}))"
        return f"{x} {sign} {y}"

    def combine(self, acc: Accumulator, x: str, y: str) -> str:
        row = SCALARS[REDUCERS[acc.combiner].combine]
        return self.spell(row.name, acc.dtype, (y, x) if acc.combiner in ("max", "min") else (x, y))

    def accumulate(self, node: Node) -> None:
        acc: Accumulator = node.arg
        lanes = self.lanes[acc.value]
        name = f"acc_{variable(acc.value)}"
        value = self.env[node.args[0]]
        place = ""
        if lanes.axes:
            place = f"[{self.array_position(lanes.axes)}]"
        elif lanes.count > 1:
            place = f"[{self.lane}]"
        if not REDUCERS[acc.combiner].position:
            self.line(f"{name}{place} = {self.combine(acc, f'{name}{place}', value)};")
            return
        with self.block(""):
            # positions only grow within a lane, so equal values never win
            kind = self.position_type(acc)
            self.line(f"const {kind} here = ({kind})({self.position_text(acc)});")
            self.line(f"const bool take = {self.beats(acc, value, f'{name}{place}')};")
            self.line(f"{name}{place} = take ? {value} : {name}{place};")
            self.line(f"{name}_at{place} = take ? here : {name}_at{place};")

    def position_text(self, acc: Accumulator) -> str:
        text = ""
        for index, size in acc.position:
            step = self.at(index)
            text = f"({text}) * {self.dim(size)} + {step}" if text else step
        return text or "0"

    def finish(self, node: Node) -> str:
        acc: Accumulator = node.arg
        lanes = self.lanes[acc.value]
        name = f"acc_{variable(acc.value)}"
        if REDUCERS[acc.combiner].position:
            name += "_at"
        place = ""
        if lanes.axes:
            place = f"[{self.array_position(lanes.axes)}]"
        elif lanes.count > 1:
            place = "[0]"
        if REDUCERS[acc.combiner].position:
            # nothing beat the identity: every element equals it
            return f"{name}{place} == {self.nowhere(acc)} ? 0 : {name}{place}"
        return ctext.convert(f"{name}{place}", _register_dtype(acc.dtype), node.dtype)

    # -- scans --------------------------------------------------------------------------------
    def declare_carry(self, node: Node, axes: tuple[str, ...]) -> None:
        combiner = node.arg[0]
        name = f"carry{len(self.carries)}_{variable(node.out)}"
        self.carries[node.out] = (name, axes)
        identity = REDUCERS[combiner].identity(node.dtype)
        if combiner == "sum" and node.dtype.is_float:
            identity = -0.0
        kind = ctext.register_type(node.dtype)
        start = ctext.constant(identity, node.dtype)
        if not axes:
            self.line(f"{kind} {name} = {start};")
            return
        size = self.extent(axes)
        self.line(f"{kind} {name}[{size}];")
        with self.block(f"for (int k = 0; k < {size}; ++k)"):
            self.line(f"{name}[k] = {start};")

    def scan(self, node: Node) -> str:
        name, axes = self.carries[node.out]
        place = f"{name}[{self.array_position(axes)}]" if axes else name
        combiner = REDUCERS[node.arg[0]].combine
        value = self.env[node.args[0]]
        pair = (value, place) if node.arg[0] in ("max", "min") else (place, value)
        self.line(f"{place} = {self.spell(combiner, node.dtype, pair)};")
        return place

    # -- statements ---------------------------------------------------------------------------
    def compute(self, node: Node) -> None:
        if node.op == "accumulate":
            self.accumulate(node)
        elif node.op == "store":
            self.line(f"{self.element(node.arg[0], self.at(node.arg[1]))} = {self.to_memory(node)};")
        elif node.op == "save":
            place = f"{variable(node.arg.name)}[{self.array_position(node.arg.axes)}]"
            self.line(f"{place} = {self.env[node.args[0]]};")
        elif node.op == "scatter":
            self.scatter(node)
        elif node.op == "check":
            self.check(node)
        else:
            text = self.expression(node)
            name = variable(node.out)
            self.env[node.out] = name
            self.dtype_of[node.out] = node.dtype
            self.line(f"const {ctext.register_type(node.dtype)} {name} = {text};")

    def to_memory(self, node: Node) -> str:
        return ctext.stored(self.env[node.args[0]], self.buffers[node.arg[0]].dtype)

    def expression(self, node: Node) -> str:
        if node.op == "const":
            return ctext.constant(node.arg, node.dtype)
        if node.op == "symbol":
            return self.dim(node.arg)
        if node.op == "axis":
            return self.at(node.arg)
        if node.op == "load":
            return ctext.loaded(self.element(node.arg[0], self.at(node.arg[1])), node.dtype)
        if node.op == "gather":
            return self.gather(node)
        if node.op == "cast":
            return ctext.convert(self.env[node.args[0]], self.dtype_of[node.args[0]], node.dtype)
        if node.op == "finish":
            return self.finish(node)
        if node.op == "fetch":
            return f"{variable(node.arg.name)}[{self.array_position(node.arg.axes)}]"
        if node.op == "scan":
            return self.scan(node)
        principal = self.dtype_of[node.args[1 if node.op == "where" else 0]]
        text = self.spell(node.op, principal, tuple(self.env[a] for a in node.args))
        if node.dtype.name in ctext.HALVES and node.op not in _EXACT_IN_HALF:
            return f"dc_round_{ctext.HALVES[node.dtype.name]}({text})"
        return text

    def spell(self, op: str, dtype: DType, args: tuple[str, ...]) -> str:
        template = SCALARS[op].spelling("cpp", dtype)
        if template is None:
            raise LoweringError(f"C++ has no {op} for {dtype}")
        if self.full and op in GUARDED and dtype.is_float:
            template = template.replace(f"dc_{GUARDED[op]}_", f"dc_full_{GUARDED[op]}_")
        short = ctext.short_name(dtype)
        suffix = "f" if short == "f32" else ""
        unsigned = "u64" if dtype.itemsize == 8 else "unsigned int"
        return template.format(*args, T=ctext.register_type(dtype), U=unsigned, t=short, fsuffix=suffix)

    # -- gather and scatter -------------------------------------------------------------------
    def gather(self, node: Node) -> str:
        buffer, index, strides, sizes, wraps = node.arg
        positions, inside = self.positions(node.out, node.args, sizes, wraps)
        steps = [f"{p} * {self.dim(s)}" for p, s in zip(positions, strides)]
        base = " + ".join([self.at(index), *steps])
        self.line(f"bad |= !({inside});")
        place = f"at_{variable(node.out)}"
        # a wild position reads where position 0 would: always inside the buffer
        self.line(f"const i64 {place} = ({inside}) ? {base} : {self.at(index)};")
        return ctext.loaded(self.element(buffer, place), node.dtype)

    def positions(
        self, out: str, names: Iterable[str], sizes: Iterable[Dim], wraps: Iterable[bool]
    ) -> tuple[list[str], str]:
        """Wrapped positions (in variables) and the condition that all are in bounds."""
        positions = []
        tests = []
        for k, (name, size, wrap) in enumerate(zip(names, sizes, wraps)):
            raw = self.env[name]
            place = f"p{k}_{variable(out)}"
            bound = self.dim(size)
            wrapped = f"{raw} < 0 ? {raw} + {bound} : {raw}" if wrap else raw
            self.line(f"const i64 {place} = {wrapped};")
            positions.append(place)
            tests.append(f"((u64){place} < (u64){bound})")
        return positions, " & ".join(tests) if tests else "true"

    def scatter(self, node: Node) -> None:
        buffer, index, strides, sizes, wraps, combiner = node.arg
        with self.block(""):
            positions, _ = self.positions(f"{node.args[0]}_s", node.args[1:], sizes, wraps)
            steps = [f"{p} * {self.dim(s)}" for p, s in zip(positions, strides)]
            dtype = self.buffers[buffer].dtype
            self.line(f"auto& element = {self.element(buffer, ' + '.join([self.at(index), *steps]))};")
            value = self.env[node.args[0]]
            if combiner != "set":
                row = {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply"}.get(combiner, combiner)
                value = self.spell(row, dtype, (ctext.loaded("element", dtype), value))
                if dtype.name in ctext.HALVES:
                    value = f"dc_round_{ctext.HALVES[dtype.name]}({value})"
                value = f"({ctext.register_type(dtype)})({value})"
            self.line(f"element = {ctext.stored(value, dtype)};")

    def check(self, node: Node) -> None:
        sizes, wraps = node.arg
        for name, size, wrap in zip(node.args, sizes, wraps):
            value = self.env[name]
            bound = self.dim(size)
            low = f"-({bound})" if wrap else "0"
            with self.block(f"if ({value} < {low} || {value} >= {bound})"):
                self.line(f"error[0] = {value};")
                self.line(f"error[1] = {bound};")
                self.line("return 1;")

    # -- prologue -----------------------------------------------------------------------------
    def prologue(self) -> None:
        """Typed pointers to the kernel's buffers and local arrays."""
        for slot, buffer in enumerate(self.nest.kernel.buffers):
            qualifier = "const " if buffer.mode == "in" else ""
            kind = f"{qualifier}{ctext.memory_type(buffer.dtype)}*"
            name = variable(buffer.name)
            self.line(f"{kind} const {name} = ({kind})b[{slot}];")
        for array in self.nest.arrays:
            kind = ctext.register_type(array.dtype)
            self.line(f"{kind}* const {variable(array.name)} = memory_{variable(array.name)};")


def variable(name: str) -> str:
    """A C++ identifier for a name of the loop IR."""
    return "v_" + re.sub(r"\W", "_", name)


def _register_dtype(dtype: DType) -> DType:
    """The dtype that a register of ``dtype`` really has: halves live in float32."""
    from ...dtypes import float32

    return float32 if dtype.name in ctext.HALVES else dtype


def _hint_product(sizes: Iterable[Dim]) -> int:
    total = 1
    for size in sizes:
        total *= hint(size)
    return total


def _all_items(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if isinstance(item, Loop):
            yield from _all_items(item.items)


def _slice(items: Iterable[Item], targets: list[Node]) -> list[Node]:
    """The nodes of a loop that the arguments of ``targets`` need, in order."""
    nodes = [i.node for i in items if isinstance(i, Compute)]
    saves = {n.arg.name: n for n in nodes if n.op == "save"}
    wanted = {a for t in targets for a in t.args}
    chosen: list[Node] = []
    for node in reversed(nodes):
        is_source = node.op == "save" and node.arg.name in wanted
        if node.out in wanted or is_source:
            chosen.append(node)
            wanted |= set(node.args)
            if node.op == "fetch" and node.arg.name in saves:
                wanted.add(node.arg.name)
    return chosen[::-1]


def _cost_of_filling(acc: Accumulator, items: list[Item]) -> int:
    """Operations in the innermost loop that adds to ``acc``."""
    for item in items:
        if not isinstance(item, Loop):
            continue
        nodes = [i.node for i in item.items if isinstance(i, Compute)]
        if any(n.op == "accumulate" and n.arg.value == acc.value for n in nodes):
            return sum(SCALARS[n.op].cost for n in nodes if n.op in SCALARS)
        below = _cost_of_filling(acc, list(item.items))
        if below:
            return below
    return 0


def _used_names(item: Item) -> tuple[str, ...]:
    return item.node.args if isinstance(item, Compute) else ()


def kernel_body(
    kernel: Kernel, symbols: Mapping[str, str], point_ns: float, serial_ns: float, parallel: bool = True
) -> list[str]:
    """The statements of the kernel's function, without the check of gather positions."""
    nest = make_nest(kernel, "cpp")
    plan = arrange(nest)
    if not parallel:
        plan = Plan(plan.order, (), plan.vector)
    printer = Printer(nest, plan, symbols, point_ns, serial_ns)
    for array in nest.arrays:
        kind = ctext.register_type(array.dtype)
        printer.line(f"{kind} memory_{variable(array.name)}[{printer.extent(array.axes)}];")
    printer.prologue()
    if printer.gathers:
        printer.line("int bad = 0;")
        printer.line("int any_bad = 0;")
    printer.items(build(nest, plan))
    if printer.gathers:
        with printer.block("if (any_bad | bad)"):
            printer.line("return 1;")
    printer.line("return 0;")
    return printer.lines


def check_body(kernel: Kernel, symbols: Mapping[str, str]) -> list[str]:
    """Statements that find the first position out of bounds, report it in ``error`` and return 1."""
    nest = make_nest(kernel, "cpp")
    checked: list[Node] = []
    for node in nest.nodes:
        if node.op in ("gather", "scatter"):
            names = node.args[1:] if node.op == "scatter" else node.args
            axes = frozenset().union(*(n.axes for n in nest.nodes if n.out in names))
            checked.append(Node("", "check", names, axes, (node.arg[3], node.arg[4]), node.dtype))
        checked.append(node)
    nest.nodes = checked
    plan = Plan(tuple(nest.axes))
    printer = Printer(nest, plan, symbols, 0.0, 0.0)
    printer.prologue()
    printer.line("int bad = 0;")
    printer.items(build(nest, plan, [n for n in checked if n.op == "check"]))
    printer.line("return 0;")
    return printer.lines
