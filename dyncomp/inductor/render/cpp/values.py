"""How values are written in C++: names, positions, spellings, memory, gathers and scatters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ....dataclass import dataclass, field
from ....dtypes import DType, bfloat16, float16, float32
from ....errors import LoweringError, LoweringFault
from ....prims.scalar import COMBINERS, SCALARS
from ....symbolic.integers import Dim
from ...loops.loop_ir import Buffer, Index
from ..nest import LoopAxis, Nest, Node
from ..walk import Plan
from . import ctext
from .sections import vector_functions

# Elements of the largest array that a kernel keeps on the stack.
STACK_ELEMENTS = 65536


@dataclass
class ValuePrinter:
    """Prints one function body. ``symbols``: C++ expressions of the size symbols. ``vector_calls``: the
    elementary functions are called in the runtime, not inlined. ``raw``: halves that are only copied.
    ``exact_products``: the factors of products in float32 that are exact."""

    nest: Nest
    plan: Plan
    symbols: Mapping[str, str]
    point_ns: float
    serial_ns: float
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    env: dict[str, str] = field(default_factory=dict)
    dtype_of: dict[str, DType] = field(default_factory=dict)
    full: bool = True
    vector_calls: bool = False
    raw: frozenset[str] = frozenset()
    exact_products: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.nest.nodes:
            if node.out:
                self.dtype_of[node.out] = node.dtype
        self.buffers: dict[str, Buffer] = {b.name: b for b in self.nest.kernel.buffers}
        self.apart = products_apart(self.nest.nodes)
        self.beside_one = only_beside_one(self.nest.nodes)
        self.unrounded = only_stored_halves(self.nest.nodes)
        self.results = results_in_brain(self.nest.nodes)
        self.are_exact = products_of_halves(self.nest.nodes)
        self.gathers = any(n.op in ("gather", "place", "scatter") for n in self.nest.nodes)

    # -- text ---------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """A block of C++: what is declared in it is not known behind it."""
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        env, products = dict(self.env), dict(self.exact_products)
        yield
        self.env, self.exact_products = env, products
        self.depth -= 1
        self.line(tail)

    def dim(self, value: Dim) -> str:
        return ctext.dimension(value, self.symbols)

    def at(self, index: Index) -> str:
        return ctext.index_text(index.terms, index.offset, self.symbols)

    def element(self, buffer: str, position: str) -> str:
        return f"{memory(buffer)}[{position}]"

    def bound(self, axis: LoopAxis) -> str:
        """The number of iterations of a loop, in scope of its outer loops."""
        if axis.block_of is None:
            return self.dim(axis.size)
        starts, block, total = axis.block_of
        if all(isinstance(total, int) and isinstance(step, int) and total % step == 0 for _, step in starts):
            return self.dim(block)
        start = " - ".join(f"i_{outer} * {self.dim(step)}" for outer, step in starts)
        return f"dc_size_min({self.dim(block)}, {self.dim(total)} - {start})"

    def extent(self, axes: Iterable[str]) -> int:
        total = 1
        for name in axes:
            axis = self.nest.axes[name]
            size = axis.static if axis.static is not None else axis.most
            if not size:
                raise LoweringFault(f"a local array over axis {name} of unknown size")
            total *= size
        if total > STACK_ELEMENTS:
            raise LoweringFault(f"a local array of {total} elements")
        return total

    def array_position(self, axes: tuple[str, ...]) -> str:
        text = ""
        for name in axes:
            axis = self.nest.axes[name]
            size = axis.static if axis.static is not None else axis.most
            text = f"({text}) * {size} + i_{name}" if text else f"i_{name}"
        return text or "0"

    def assign(self, place: str, value: str, dtype: DType) -> None:
        if not dtype.is_complex:
            self.line(f"{place} = {value};")
            return
        # gcc does not vectorise copies of structs
        self.line(f"{place}.re = {value}.re;")
        self.line(f"{place}.im = {value}.im;")

    def kind_of(self, name: str, dtype: DType) -> str:
        """The C++ type of a value's variable."""
        return ctext.memory_type(dtype) if name in self.raw else ctext.register_type(dtype)

    def to_memory(self, node: Node) -> str:
        (name,) = node.args
        if name in self.raw:
            return self.env[name]
        if name in self.results and self.dtype_in(node) is bfloat16:
            return f"dc_store_result_bf16({self.env[name]})"
        return ctext.stored(self.env[name], self.dtype_in(node))

    def note_product(self, node: Node) -> None:
        """Remember the factors of an exact product, for sums of it."""
        if node.out in self.are_exact:
            x, y = (self.env[a] for a in node.args)
            self.exact_products[node.out] = x, y

    def rounded(self, name: str, text: str, dtype: DType) -> str:
        """The value ``name`` of a half type, of which ``text`` is the float32."""
        return f"dc_round_{'result_' if name in self.results else ''}{ctext.HALVES[dtype.name]}({text})"

    def dtype_in(self, node: Node) -> DType:
        """The type of the memory that a node reads or writes."""
        return self.buffers[node.arg[0]].dtype

    def read_place(self, node: Node) -> str:
        """The element of memory that a node loads."""
        if node.op == "staged":
            tile = node.arg
            return f"{self.env[node.args[0]]}[{tile.side} * i_{tile.column} + i_{tile.row}]"
        position = self.at(node.arg[1])
        if node.op == "load_from":
            position = f"{position} + {self.env[node.args[0]]}"
        return self.element(node.arg[0], position)

    def spell(self, op: str, dtype: DType, args: tuple[str, ...], beside_one: bool = False) -> str:
        row = SCALARS[op]
        template = row.spelling("cpp", dtype)
        if template is None:
            raise LoweringError(f"C++ has no {op} for {dtype}")
        if beside_one:
            template = template.replace(f"dc_{op}_", f"dc_{op}_beside_one_")
        short = ctext.short_name(dtype)
        if self.vector_calls:
            template = in_runtime(template, short)
        elif self.full and is_guarded(op) and dtype.is_float:
            template = template.replace(f"dc_{row.helper}_", f"dc_full_{row.helper}_")
        suffix = "f" if short == "f32" else ""
        unsigned = "u64" if dtype.itemsize == 8 else "unsigned int"
        return template.format(*args, T=ctext.register_type(dtype), U=unsigned, t=short, fsuffix=suffix)

    # -- tiles --------------------------------------------------------------------------------
    def stage(self, node: Node) -> None:
        """Transpose a tile into memory of the kernel's own."""
        tile = node.arg
        name = memory(node.out)
        self.env[node.out] = name
        rows, columns = (self.bound(self.nest.axes[a]) for a in (tile.row, tile.column))
        source = f"{memory(tile.buffer)} + {self.at(tile.start)}"
        self.line(f"alignas(64) {ctext.memory_type(node.dtype)} {name}[{tile.side * tile.side}];")
        arguments = f"{name}, {source}, {self.dim(tile.step)}, {rows}, {columns}, {tile.side}"
        self.line(f"dcv_transpose_{8 * node.dtype.itemsize}({arguments});")

    def turn(self, node: Node) -> None:
        """Transpose a part of a buffer to where it belongs, past the caches."""
        turn = node.arg
        places = [f"{memory(name)} + {self.at(start)}" for name, start, _ in (turn.target, turn.source)]
        steps = [self.dim(step) for _, _, step in (turn.target, turn.source)]
        whole = [self.dim(blocks.whole) for blocks in (turn.rows, turn.columns)]
        part = [f"i_{b.axis} * {b.size}, (i_{b.axis} + 1) * {b.size}" for b in (turn.rows, turn.columns)]
        arguments = ", ".join([*places, *steps, *whole, *part])
        self.line(f"dcv_turn_{8 * node.dtype.itemsize}({arguments});")

    # -- gather and scatter -------------------------------------------------------------------
    def gather(self, node: Node) -> str:
        buffer, index, *how = node.arg
        inside, steps = self.steps(node, *how)
        place = f"at_{variable(node.out)}"
        # a wild position reads where position 0 would: always inside the buffer
        self.line(f"const i64 {place} = ({inside}) ? {self.at(index)} + {steps} : {self.at(index)};")
        return ctext.loaded(self.element(buffer, place), node.dtype)

    def place(self, node: Node) -> str:
        """How far positions point from where position 0 would."""
        inside, steps = self.steps(node, *node.arg)
        return f"({inside}) ? {steps} : 0"

    def steps(
        self, node: Node, strides: Iterable[Dim], sizes: Iterable[Dim], wraps: Iterable[bool]
    ) -> tuple[str, str]:
        """The condition that positions are in bounds, which is noted, and how far they point."""
        positions, inside = self.positions(node.out, node.args, sizes, wraps)
        self.line(f"bad |= !({inside});")
        return inside, " + ".join(f"{p} * {self.dim(s)}" for p, s in zip(positions, strides))

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
                value = self.spell(COMBINERS[combiner], dtype, (ctext.loaded("element", dtype), value))
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
            name = memory(buffer.name)
            self.line(f"{kind} const {name} = ({kind})b[{slot}];")
        for array in self.nest.arrays:
            kind = ctext.array_type(array.dtype)
            self.line(f"{kind}* const {memory(array.name)} = stack_{memory(array.name)};")


def only_stored_halves(nodes: Iterable[Node]) -> frozenset[str]:
    """Halves that nothing reads but stores, which round."""
    halves = {node.out for node in nodes if node.out and node.dtype.name in ctext.HALVES}
    return frozenset(halves.difference(*(node.args for node in nodes if node.op != "store")))


def results_in_brain(nodes: Iterable[Node]) -> frozenset[str]:
    """Results of arithmetic on bfloat16, whose NaNs the processor makes or hands on."""
    brains = {node.out for node in nodes if node.dtype is bfloat16}
    results = {n for n in nodes if n.op in SCALARS and SCALARS[n.op].ieee}
    return frozenset(n.out for n in results if n.out in brains and brains.issuperset(n.args))


def products_of_halves(nodes: Iterable[Node]) -> frozenset[str]:
    """Products in float32 of float16 numbers: 22 bits of 24, from 2^-48 to 2^32."""
    halves = {node.out for node in nodes if node.dtype is float16}
    wide = {n.out for n in nodes if n.op == "cast" and n.dtype is float32 and halves.issuperset(n.args)}
    return frozenset(n.out for n in nodes if n.op == "multiply" and wide.issuperset(n.args))


def copied_halves(nodes: Sequence[Node], buffers: Mapping[str, Buffer]) -> frozenset[str]:
    """Halves that are loaded for nothing but stores of the same type."""
    loads = {n.out: n.dtype for n in nodes if n.op in ("load", "load_from", "staged")}
    found = {name for name, dtype in loads.items() if dtype.name in ctext.HALVES}
    for node in nodes:
        if node.op != "store" or buffers[node.arg[0]].dtype is not loads.get(node.args[0]):
            found.difference_update(node.args)
    return frozenset(found)


def products_apart(nodes: Iterable[Node]) -> frozenset[str]:
    """Float products in sums or differences, in kernels that have both: the compiler may join them."""
    products = {node.out for node in nodes if node.op == "multiply" and node.dtype.is_float}
    terms = {op: {a for n in nodes if n.op == op for a in n.args} & products for op in ("add", "subtract")}
    return frozenset().union(*terms.values()) if all(terms.values()) else frozenset()


def only_beside_one(nodes: Sequence[Node]) -> frozenset[str]:
    """Values of such rows, float32, that are only added to constants of at least one: their digits below
    those of a one are lost in the sum."""
    large = {n.out for n in nodes if n.op == "const" and n.dtype is float32 and abs(n.arg) >= 1}
    found = {n.out for n in nodes if n.dtype is float32 and n.op in SCALARS and SCALARS[n.op].beside_one}
    for node in nodes:
        for place, arg in enumerate(node.args):
            other = node.args[1 - place] if node.op == "add" else ""
            if arg in found and other not in large:
                found.discard(arg)
    return frozenset(found)


def in_runtime(template: str, short: str) -> str:
    """A spelling with the runtime's function in place of the helper, where there is one."""
    helper = template.partition("_{t}(")[0].removeprefix("dc_")
    if f"dcv_{helper}_{short}" not in vector_functions():
        return template
    return f"dcv_{template.removeprefix('dc_')}"


def is_guarded(op: str) -> bool:
    """Whether the fast form of a row covers ordinary arguments only."""
    row = SCALARS.get(op)
    return row is not None and row.vector is not None and row.vector.guarded


def is_in_runtime(op: str, dtype: DType) -> bool:
    """Whether the runtime has the function of a row."""
    template = SCALARS[op].spelling("cpp", dtype)
    return template is not None and in_runtime(template, ctext.short_name(dtype)) != template


def variable(name: str) -> str:
    """A C++ identifier for a name of the loop IR."""
    return "v_" + re.sub(r"\W", "_", name)


def memory(name: str) -> str:
    """A C++ identifier for a buffer or local array: values may have the same names."""
    return "m_" + re.sub(r"\W", "_", name)
