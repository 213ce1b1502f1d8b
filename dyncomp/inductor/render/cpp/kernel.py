"""One kernel as a C++ function: prints the loop tree of ``walk``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....dataclass import dataclass, field
from ....errors import LoweringFault
from ....prims.scalar import SCALARS
from ....symbolic.integers import Dim, hint
from ...loops.loop_ir import Kernel
from ..arrange import arrange
from ..knobs import USUAL, Knobs
from ..nest import LocalArray, LoopAxis, Nest, Node, coefficient, make_nest, take_places_out
from ..walk import (
    Compute,
    Declare,
    DeclareArray,
    Done,
    Item,
    Loop,
    Plan,
    all_items,
    build,
    nodes_behind,
    nodes_filling,
    used_names,
)
from . import ctext
from .ahead import requests_of
from .half_strips import LEAST_LANES, LOADS, HalfPrinter
from .stream import LINE_BYTES, STREAM_TILES_BYTES, leaves_caches, streamed_stores, strip_of, touched_bytes
from .tails import goes_across, is_rest_masked, lanes_of_tail
from .values import copied_halves, is_guarded, is_in_runtime, memory, variable

# One chunk of a parallel loop should take about this long.
CHUNK_NS = 12_000.0
# Elements that are tested before the loop over them runs.
STRIP = 4096
# Rows added to an array of accumulators at once, in kernels that stay in the caches and in others (Zen 4: 4
# are a tenth faster than 8 up to 16 MB, 8 a sixth to a quarter faster than 4 from 32 MB on), for loops of at
# most this many nodes and this cost.
ROWS = 4
ROWS_FAR = 8
ROWS_NODES = 12
ROWS_COST = 8
_READING = ("load", "const", "axis", "symbol", "cast", "finish", "fetch")
ASKING_STRIP = 256
# Elementary functions are inlined where they are few and the kernel runs for longer than this on one core (a
# tenth to a fifth less run time, for about 20 ms of the compiler's time each, three times that for those with
# a guard: it pays after some 1,000 calls).
INLINE_NS = 100_000.0
INLINE_COST = 2
# Bytes below which a copy is not worth a call.
SHORT_COPY = 64


@dataclass
class Printer(HalfPrinter):
    """Prints loops and statements; ``bodies`` counts the parallel loops; ``literals``: values that are
    written out wherever they are used. ``streamed``: some stores went past the caches. ``strips``: where
    stores of the current loop go instead."""

    bodies: int = 0
    literals: set[str] = field(default_factory=set)
    streamed: bool = False
    strips: dict[int, str] = field(default_factory=dict)

    # -- the tree -----------------------------------------------------------------------------
    def items(self, items: Iterable[Item]) -> None:
        items = list(items)
        for place, item in enumerate(items):
            if isinstance(item, Compute):
                self.compute(item.node)
            elif isinstance(item, Declare):
                self.declare(item, nodes_filling(item.acc, items[place:]))
            elif isinstance(item, Done):
                self.done(item.acc)
            elif isinstance(item, DeclareArray):
                self.declare_array(item.array)
            else:
                self.loop(item)

    def declare_array(self, array: LocalArray) -> None:
        total = self.extent(array.axes)
        self.line(f"alignas(64) {ctext.array_type(array.dtype)} {memory(array.name)}[{total}];")

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
            self.serial(loop, name, self.bound(self.nest.axes[name]))

    def serial(self, loop: Loop, name: str, bound: str) -> None:
        rows = self.rows_at_once(loop)
        if rows == 1:
            with self.block(f"for (i64 i_{name} = 0; i_{name} < {bound}; ++i_{name})"):
                self.ask_for_rows(loop, name)
                self.items(loop.items)
            return
        # several rows for each time that the accumulators are read and written, in the same order
        inner = loop.items[-1]
        assert isinstance(inner, Loop)
        column = inner.axes[-1]
        with self.block(""):
            self.line(f"i64 at_row = 0, end_of_rows = {bound};")
            with self.block(f"for (; at_row + {rows} <= end_of_rows; at_row += {rows})"):
                size = self.bound(self.nest.axes[column])
                items = (*loop.items[:-1], *inner.items)
                heads = [f"const i64 i_{name} = at_row + {k};" for k in range(rows)]
                start = self.strip_loop(self.strips_of(items, column), "0", size, heads)
                self.line("#pragma omp simd")
                with self.block(f"for (i64 i_{column} = {start}; i_{column} < {size}; ++i_{column})"):
                    for head in heads:
                        with self.block(""):
                            self.line(head)
                            self.items(items)
            if not bound.isdigit() or int(bound) % rows:
                with self.block(f"for (i64 i_{name} = at_row; i_{name} < end_of_rows; ++i_{name})"):
                    self.items(loop.items)

    def rows_at_once(self, loop: Loop) -> int:
        """How many iterations of a loop over rows one loop over columns does at once."""
        *before, inner = loop.items
        nodes = [i.node for i in before if isinstance(i, Compute)]
        if len(nodes) < len(before) or not isinstance(inner, Loop) or inner.kind != "vector":
            return 1
        within = self.nest.axes[inner.axes[-1]].block_of
        if within is not None and loop.axes[-1] in (outer for outer, _ in within[0]):
            return 1  # each row has its own length
        body = [i.node for i in inner.items if isinstance(i, Compute)]
        if len(body) < len(inner.items) or len(body) + len(nodes) > ROWS_NODES or inner.carries:
            return 1
        simple = all(n.op in ("accumulate", *_READING) or n.op in SCALARS for n in (*nodes, *body))
        light = sum(SCALARS[n.op].cost for n in body if n.op in SCALARS) <= ROWS_COST
        real = not any(n.dtype.is_complex or self.is_guarded(n) for n in (*nodes, *body) if n.args)
        filled = [self.lanes[n.arg.value] for n in body if n.op == "accumulate"]
        adds = bool(filled) and all(lanes.axes for lanes in filled)
        if not (simple and light and real and adds):
            return 1
        usual = ROWS_FAR if touched_bytes(self.nest.kernel) > STREAM_TILES_BYTES else ROWS
        return self.nest.knobs.rows or usual

    # -- parallel loops -----------------------------------------------------------------------
    def parallel(self, loop: Loop) -> None:
        name = f"body{self.bodies}"
        self.bodies += 1
        axes = [self.nest.axes[a] for a in loop.axes]
        total = " * ".join(self.dim(a.size) for a in axes)
        with self.block(f"auto {name} = [&](i64 lo, i64 hi)", "};"):
            self.prologue()
            self.localise(loop)
            if self.gathers:
                self.line("int bad = 0;")
            self.parallel_body(loop, axes)
            self.end_streams()
            if self.gathers:
                with self.block("if (bad)"):
                    self.line("any_bad = 1;")
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
        for name in sorted(self.used_from_outside(loop) - self.literals):
            outer = self.env[name]
            local = f"{outer}_"
            self.line(f"const {self.kind_of(name, self.dtype_of[name])} {local} = {outer};")
            self.env[name] = local

    def used_from_outside(self, loop: Loop) -> set[str]:
        """The values of enclosing scopes that a loop uses."""
        return {arg for item in all_items(loop.items) for arg in used_names(item)} & set(self.env)

    def parallel_body(self, loop: Loop, axes: list[LoopAxis]) -> None:
        if len(axes) == 1:
            name = axes[0].name
            if name == self.plan.vector:
                self.vector(loop, "lo", "hi")
                return
            with self.block(f"for (i64 i_{name} = lo; i_{name} < hi; ++i_{name})"):
                self.items(loop.items)
            return
        self.line("if (lo >= hi) return;  // sizes may be 0")
        self.line("i64 at = lo;")
        for axis in reversed(axes[1:]):
            self.line(f"i64 i_{axis.name} = at % {self.dim(axis.size)};")
            self.line(f"at /= {self.dim(axis.size)};")
        self.line(f"i64 i_{axes[0].name} = at;")
        with self.block("for (i64 step = lo; step < hi; ++step)"):
            if self.plan.vector in loop.axes:
                raise LoweringFault("the vector loop cannot be one of several parallel ones")
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
        """A loop whose iterations may run as vector lanes. gcc does not vectorise one that selects by a bool
        from outside: it gets a number that it compares itself."""
        names = sorted(self.used_from_outside(loop) - self.literals)
        conditions = [name for name in names if self.dtype_of[name].is_bool]
        if not conditions:
            self.guarded_or_simple(loop, low, high)
            return
        before = {name: self.env[name] for name in conditions}
        with self.block(""):
            for name in conditions:
                number = f"{self.env[name]}is"
                self.line(f"int {number} = {self.env[name]};")
                self.line(f'asm("" : "+r"({number}));')
                self.env[name] = f"({number} != 0)"
            self.guarded_or_simple(loop, low, high)
        self.env.update(before)

    def guarded_or_simple(self, loop: Loop, low: str, high: str) -> None:
        guarded = [i.node for i in loop.items if isinstance(i, Compute) and self.is_guarded(i.node)]
        if not guarded:
            self.simple_vector(loop, low, high)
            return
        axis = self.nest.axes[loop.axes[-1]]
        length = self.nest.knobs.strip or STRIP
        if self.lanes_in(loop) > 1 or (low == "0" and axis.hint <= length):
            self.guarded_vector(loop, guarded, low, high)
            return
        # in strips that stay in the cache between the test and the loop
        with self.block(f"for (i64 strip = {low}; strip < {high}; strip += {length})"):
            self.line(f"const i64 strip_end = dc_size_min(strip + {length}, {high});")
            self.guarded_vector(loop, guarded, "strip", "strip_end")

    def is_guarded(self, node: Node) -> bool:
        """The fast form covers ordinary arguments only."""
        return not self.vector_calls and is_guarded(node.op) and self.dtype_of[node.args[0]].is_float

    def guarded_vector(self, loop: Loop, guarded: list[Node], low: str, high: str) -> None:
        """First look for arguments beyond the fast forms; the loop that covers them has the same results
        for ordinary ones."""
        name = loop.axes[-1]
        with self.block(""):
            self.line("int far = 0;")
            self.line("#pragma omp simd reduction(|:far)")
            self.full = False
            with self.block(f"for (i64 i_{name} = {low}; i_{name} < {high}; ++i_{name})"):
                for node in nodes_behind(loop.items, guarded):
                    self.compute(node)
                for node in guarded:
                    short = ctext.short_name(self.dtype_of[node.args[0]])
                    args = ", ".join(self.env[a] for a in node.args)
                    self.line(f"far |= dc_far_{SCALARS[node.op].helper}_{short}({args});")
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
        if self.copies(loop, name, low, high):
            return
        count = self.lanes_in(loop)
        if count > 1:
            with self.block(""):
                self.lane_loop(loop, name, count, high)
            return
        axis = self.nest.axes[name]
        stores = streamed_stores(loop.items, name, axis.hint, self.buffers) if self.streams else []
        if stores and count == 0:
            self.stream_loop(loop, stores, low, high)
            return
        if self.streams and self.requests.get(id(loop)):
            self.asking_loop(loop, count == 1, low, high)
            return
        lanes = (
            lanes_of_tail(loop, self.nest, self.buffers)
            if count == 0 and (low, high) == ("0", str(axis.size))
            else 0
        )
        if lanes and self.pragma(loop, False):
            # the last elements once more, as a whole vector
            whole = int(high) // lanes * lanes
            self.plain_loop(loop, False, low, str(whole))
            low = str(int(high) - lanes)
        self.plain_loop(loop, count == 1, low, high)

    def asking_loop(self, loop: Loop, serial: bool, low: str, high: str) -> None:
        """A loop in strips that ask for what comes later."""
        with self.block(f"for (i64 part = {low}, part_end; part < {high}; part = part_end)"):
            length = self.nest.knobs.strip or ASKING_STRIP
            self.line(f"part_end = dc_size_min(part + {length}, {high});")
            self.ask_for_next(loop, loop.axes[-1], "part", "part_end - part")
            self.plain_loop(loop, serial, "part", "part_end")

    def plain_loop(self, loop: Loop, serial: bool, low: str, high: str) -> None:
        strips = None if serial else self.strips_of(loop.items, loop.axes[-1])
        if strips is not None:
            with self.block(""):
                self.single_loop(loop, serial, self.strip_loop(strips, low, high), high)
            return
        self.single_loop(loop, serial, low, high)

    def single_loop(self, loop: Loop, serial: bool, low: str, high: str) -> None:
        name = loop.axes[-1]
        pragma = self.pragma(loop, serial)
        if pragma:
            self.line(pragma)
        with self.block(f"for (i64 i_{name} = {low}; i_{name} < {high}; ++i_{name})"):
            self.items(loop.items)

    def stream_loop(self, loop: Loop, stores: list[Node], low: str, high: str) -> None:
        """A loop in strips, the results of which are copied out past the caches."""
        name = loop.axes[-1]
        length = strip_of(loop.items, self.buffers)
        self.streamed = True
        first = stores[0]
        size = self.buffers[first.arg[0]].dtype.itemsize
        with self.block(f"for (i64 part = {low}, part_end; part < {high}; part = part_end)"):
            self.line(f"const i64 i_{name} = part;")
            # to the end of a cache line
            start = f"(u64)({memory(first.arg[0])} + {self.at(first.arg[1])})"
            self.line(f"const i64 past = {start} / {size} % {LINE_BYTES // size};")
            self.line(f"part_end = dc_size_min(part + {length} - past, {high});")
            for k, store in enumerate(stores):
                kind = ctext.memory_type(self.buffers[store.arg[0]].dtype)
                self.line(f"alignas(64) {kind} out{k}[{length}];")
                self.strips[id(store)] = f"out{k}[i_{name} - part]"
            self.ask_for_next(loop, name, "part", "part_end - part")
            self.plain_loop(loop, False, "part", "part_end")
            self.strips.clear()
            for k, store in enumerate(stores):
                size = self.buffers[store.arg[0]].dtype.itemsize
                place = f"{memory(store.arg[0])} + {self.at(store.arg[1])}"
                self.line(f"dcv_stream_copy({place}, out{k}, (part_end - part) * {size});")

    def end_streams(self) -> None:
        """What was written past the caches is there for other threads."""
        if self.streamed:
            self.line("dcv_stream_end();")
        self.streamed = False

    def copies(self, loop: Loop, name: str, low: str, high: str) -> bool:
        """Print a loop that only copies contiguous memory as such; whether it is one."""
        loads = {i.node.out: i.node for i in loop.items if isinstance(i, Compute) and i.node.op == "load"}
        stores = [i.node for i in loop.items if isinstance(i, Compute) and i.node.op == "store"]
        if len(loads) + len(stores) != len(loop.items) or not loads:
            return False
        if {n.arg[0] for n in loads.values()} & self.written({s.arg[0] for s in stores}):
            return False
        pairs = [(loads.get(s.args[0]), s) for s in stores]
        if not all(source is not None and _same_bytes(source, s, name) for source, s in pairs):
            return False
        size = self.nest.axes[name].static
        if size is not None and size * max(s.dtype.itemsize for s in stores) < SHORT_COPY:
            return False
        with self.block(f"if ({low} < {high})"):
            self.line(f"const i64 i_{name} = {low};")
            for source, s in pairs:
                assert source is not None
                places = [f"{memory(n.arg[0])} + {self.at(n.arg[1])}" for n in (s, source)]
                copy = "__builtin_memcpy"
                if self.streams and streamed_stores(
                    loop.items, name, self.nest.axes[name].hint, self.buffers
                ):
                    copy = "dcv_stream_copy"
                    self.streamed = True
                self.line(f"{copy}({', '.join(places)}, ({high} - {low}) * {s.dtype.itemsize});")
        return True

    def pragma(self, loop: Loop, serial: bool) -> str:
        if serial:
            return ""
        if self.full and any(isinstance(i, Compute) and self.is_guarded(i.node) for i in loop.items):
            return ""
        nodes = [i.node for i in loop.items if isinstance(i, Compute)]
        if goes_across(nodes, loop.axes[-1]):
            return ""
        if any(n.dtype.is_complex for n in nodes) and not self._has_gather(loop):
            # gcc keeps the structs of a simd loop in memory
            return "#pragma GCC ivdep"
        # every gather of this kernel is affected: one flag serves all
        flag = " reduction(|:bad)" if self._has_gather(loop) else ""
        return f"#pragma omp simd{flag}"

    def _has_gather(self, loop: Loop) -> bool:
        return any(isinstance(i, Compute) and i.node.op in ("gather", "place") for i in loop.items)

    def lane_loop(self, loop: Loop, name: str, count: int, high: str) -> None:
        base = f"at_{name}"
        self.line(f"const i64 n_{name} = {high};") if not high.isdigit() else None
        bound = high if high.isdigit() else f"n_{name}"
        self.line(f"i64 {base} = 0;")
        pragma = self.pragma(loop, False) or "// element by element"
        self.lane = "lane"
        strips = self.strips_of(loop.items, name) if count % LEAST_LANES == 0 else None
        with self.block(f"for (; {base} + {count} <= {bound}; {base} += {count})"):
            self.ask_for_next(loop, name, base, str(count))
            if strips is not None:
                self.line("#ifdef DC_STRIP")
                self.strip(strips, base, str(count))
                self.line("continue;")
                self.line("#endif")
            self.line(pragma)
            with self.block(f"for (int lane = 0; lane < {count}; ++lane)"):
                self.line(f"const i64 i_{name} = {base} + lane;")
                self.items(loop.items)
        if not high.isdigit() or int(high) % count:
            filled = [
                i.node.arg.value for i in loop.items if isinstance(i, Compute) and i.node.op == "accumulate"
            ]
            masked = (
                all(not self.lanes[acc].axes and self.lanes[acc].count == count for acc in filled)
                and strips is None
                and is_rest_masked(loop, self.nest, count)
            )
            if masked:
                self.line("#ifdef __AVX2__")
                self.masked_rest(loop, name, count, filled)
                self.line("#else")
            first = self.strips_left(strips, base, bound)
            self.line(pragma)
            with self.block(f"for (int lane = {first}; lane < {bound} - {base}; ++lane)"):
                self.line(f"const i64 i_{name} = {base} + lane;")
                self.items(loop.items)
            if masked:
                self.line("#endif")
        self.lane = ""

    def masked_rest(self, loop: Loop, name: str, count: int, filled: Sequence[str]) -> None:
        """All lanes of accumulators, of which the last elements of a row change the first."""
        size = self.nest.axes[name].static
        assert size is not None
        names = [f"acc_{variable(acc)}" for acc in filled]
        self.line("#pragma omp simd")
        with self.block(f"for (int lane = 0; lane < {count}; ++lane)"):
            for acc in names:
                self.line(f"auto {acc}_lane = {acc}[lane];")
            with self.block(f"if (lane < {size % count})"):
                self.line(f"const i64 i_{name} = {size // count * count} + lane;")
                self.held = True
                self.items(loop.items)
                self.held = False
            for acc in names:
                self.line(f"{acc}[lane] = {acc}_lane;")

    # -- statements ---------------------------------------------------------------------------
    def compute(self, node: Node) -> None:
        if node.op == "accumulate":
            self.accumulate(node)
        elif node.op == "store":
            self.assign(self.place_of_store(node), self.to_memory(node), self.dtype_in(node))
        elif node.op == "save":
            place = f"{memory(node.arg.name)}[{self.array_position(node.arg.axes)}]"
            self.assign(place, self.env[node.args[0]], node.dtype)
        elif node.op == "scatter":
            self.scatter(node)
        elif node.op == "check":
            self.check(node)
        elif node.op == "stage":
            self.stage(node)
        elif node.op == "turn":
            self.turn(node)
            self.streamed = True
        elif node.op == "const":
            # no variable: one outside of a loop body costs the C++ compiler more than a whole operation
            self.env[node.out] = ctext.literal(node.arg, node.dtype)
            self.literals.add(node.out)
        else:
            text = self.expression(node)
            name = variable(node.out)
            self.env[node.out] = name
            self.dtype_of[node.out] = node.dtype
            self.line(f"const {self.kind_of(node.out, node.dtype)} {name} = {text};")
            self.note_product(node)

    def place_of_store(self, node: Node) -> str:
        return self.strips.get(id(node)) or self.element(node.arg[0], self.at(node.arg[1]))

    def expression(self, node: Node) -> str:
        if node.op == "const":
            return ctext.constant(node.arg, node.dtype)
        if node.op == "symbol":
            return self.dim(node.arg)
        if node.op == "axis":
            return self.at(node.arg)
        if node.op in LOADS:
            element = self.read_place(node)
            return element if node.out in self.raw else ctext.loaded(element, node.dtype)
        if node.op == "gather":
            return self.gather(node)
        if node.op == "place":
            return self.place(node)
        unrounded = node.out in self.unrounded or node.out in self.deferred
        if node.op == "cast":
            (source,) = node.args
            return ctext.convert(self.env[source], self.dtype_of[source], node.dtype, not unrounded)
        if node.op == "finish":
            return self.finish(node)
        if node.op == "fetch":
            return f"{memory(node.arg.name)}[{self.array_position(node.arg.axes)}]"
        if node.op == "scan":
            return self.scan(node)
        principal = self.dtype_of[SCALARS[node.op].principal_of(node.args)]
        args = tuple(self.env[a] for a in node.args)
        text = self.spell(node.op, principal, args, node.out in self.beside_one)
        if node.out in self.apart:
            text = f"dc_apart_{ctext.short_name(principal)}({text})"
        if node.dtype.name in ctext.HALVES and not SCALARS[node.op].exact_in_half and not unrounded:
            return self.rounded(node.out, text, node.dtype)
        return text


def _hint_product(sizes: Iterable[Dim]) -> int:
    total = 1
    for size in sizes:
        total *= hint(size)
    return total


def _same_bytes(source: Node, target: Node, name: str) -> bool:
    """Whether a load and the store of what it loaded step through memory element by element."""
    return source.dtype is target.dtype and all(
        _is_one(coefficient(n.arg[1], name)) for n in (source, target)
    )


def _is_one(value: Dim) -> bool:
    return isinstance(value, int) and value == 1


def kernel_body(
    kernel: Kernel,
    symbols: Mapping[str, str],
    point_ns: float,
    serial_ns: float,
    parallel: bool = True,
    vector_calls: bool = False,
    knobs: Knobs = USUAL,
) -> list[str]:
    """The statements of the kernel's function, without the check of gather positions."""
    nest = make_nest(kernel, "cpp")
    nest.knobs = knobs
    plan = arrange(nest, vector_calls)
    take_places_out(nest)
    if not parallel:
        plan = Plan(plan.order, (), plan.vector)
    calls = vector_calls and not _inlines(nest, point_ns)
    printer = Printer(nest, plan, symbols, point_ns, serial_ns, vector_calls=calls)
    in_tiles = any(node.op == "staged" for node in nest.nodes)
    streams = leaves_caches(kernel, in_tiles) if knobs.streams is None else knobs.streams
    printer.streams = vector_calls and streams
    for array in nest.arrays:
        kind = ctext.array_type(array.dtype)
        printer.line(f"alignas(64) {kind} stack_{memory(array.name)}[{printer.extent(array.axes)}];")
    printer.prologue()
    if printer.gathers:
        printer.line("int bad = 0;")
        printer.line("int any_bad = 0;")
    items = build(nest, plan)
    printer.requests = requests_of(items, nest)
    printer.raw = copied_halves([i.node for i in all_items(items) if isinstance(i, Compute)], printer.buffers)
    printer.items(items)
    printer.end_streams()
    if printer.gathers:
        with printer.block("if (any_bad | bad)"):
            printer.line("return 1;")
    printer.line("return 0;")
    return printer.lines


def _inlines(nest: Nest, point_ns: float) -> bool:
    """Whether a kernel has its elementary functions inlined though it could call them."""
    points = _hint_product(axis.size for axis in nest.axes.values())
    if point_ns * points < INLINE_NS:
        return False
    dtypes = {node.out: node.dtype for node in nest.nodes if node.out}
    cost = 0
    for node in nest.nodes:
        if node.op in SCALARS and node.args and is_in_runtime(node.op, dtypes[node.args[0]]):
            vector = SCALARS[node.op].vector
            if vector is not None and vector.looked_at:
                return False  # only those of the runtime raise flags by a look at the results
            cost += INLINE_COST if is_guarded(node.op) else 1
    return cost <= INLINE_COST


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
