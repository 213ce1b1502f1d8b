"""Reductions and scans in C++: accumulators in vector lanes, their combination, running values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....dataclass import dataclass, field
from ....dtypes import DType, float32
from ....prims.scalar import REDUCERS, SCALARS
from ..nest import Accumulator, Node
from ..walk import Declare
from . import ctext
from .values import ValuePrinter, variable

# Bytes of accumulator lanes in a reduction: four 512-bit vectors, one if the body is heavy.
LANE_BYTES = 256
VECTOR_BYTES = 64
HEAVY_COST = 8
# Lanes of the shortest vector of its own, and bytes of the types that vectors are made of.
LEAST_VECTOR = 4
_VECTOR_KINDS = {"float": 4, "double": 8}
# What C++ means for vectors as for numbers: operators and selections, no calls and no casts.
_ARITHMETIC = re.compile(r"(?:x\[[01]\]|[-+*<>=!|&?: ()])+")


@dataclass
class Lanes:
    """How an accumulator is spread: ``count`` lanes (1: a plain variable)."""

    acc: Accumulator
    count: int
    axes: tuple[str, ...]


@dataclass
class ReductionPrinter(ValuePrinter):
    """``lane``: the C++ variable that selects an accumulator's lane; ``held``: that lane is in a variable;
    ``carries``: name and axes of each scan's running value."""

    lanes: dict[str, Lanes] = field(default_factory=dict)
    lane: str = ""
    held: bool = False
    carries: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    # -- accumulators -------------------------------------------------------------------------
    def declare(self, item: Declare, filling: Sequence[Node]) -> None:
        """``filling``: the nodes of the innermost loop that adds to the accumulator."""
        acc = item.acc
        count = 1 if item.axes else self.lane_count(acc, filling)
        self.lanes[acc.value] = Lanes(acc, count, item.axes)
        kind = ctext.array_type(acc.dtype)
        name = f"acc_{variable(acc.value)}"
        start = self.identity(acc)
        size = self.extent(item.axes) if item.axes else count
        positions = REDUCERS[acc.combiner].position
        if size == 1:
            self.line(f"{kind} {name} = {start};")
            if positions:
                self.line(f"{self.position_type(acc)} {name}_at = {self.nowhere(acc)};")
            return
        # alignas: without it, gcc 12 takes vectors from arrays in the red zone of an unaligned frame
        self.line(f"alignas(64) {kind} {name}[{size}];")
        if positions:
            self.line(f"alignas(64) {self.position_type(acc)} {name}_at[{size}];")
        if not item.axes and self.in_vectors(acc):
            self.fill_vectors(name, kind, start, count)
            return
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
        return ctext.constant(REDUCERS[acc.combiner].identity(acc.dtype), acc.dtype)

    def lane_count(self, acc: Accumulator, filling: Sequence[Node]) -> int:
        """Lanes of an accumulator: whole vectors, several where a body is too short to hide their latency,
        and a whole vector of the narrowest dtype too (the compiler vectorises all dtypes by one count)."""
        vector = self.plan.vector
        if not vector or vector not in acc.reduced:
            return 1
        size = self.nest.axes[vector].hint
        if size < 8:
            return 1
        widest = max((self.lane_bytes(n.arg) for n in self.nest.nodes if n.op == "accumulate"), default=4)
        cost = sum(SCALARS[n.op].cost for n in filling if n.op in SCALARS)
        count = (LANE_BYTES if cost <= HEAVY_COST else VECTOR_BYTES) // widest
        count = max(count, VECTOR_BYTES // min((_width(n) for n in filling), default=8))
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
        if self.in_vectors(acc):
            self.fold_vectors(acc, name, lanes.count)
            return
        width = lanes.count // 2
        while width:
            if width >= 4:
                self.line("#pragma omp simd")
            with self.block(f"for (int k = 0; k < {width}; ++k)"):
                self.fold(acc, name, width)
            width //= 2

    # Loops over so few lanes are half of what a reduction takes the compiler to think about; whole vectors as
    # values (a GNU extension) are straight code, with the same operations on the same lanes.
    def in_vectors(self, acc: Accumulator) -> bool:
        """Whether lanes are filled and folded by operations on whole vectors."""
        if REDUCERS[acc.combiner].position:
            return False
        spelled = self.combine(acc, "x[0]", "x[1]")
        kind = ctext.array_type(acc.dtype)
        return kind in _VECTOR_KINDS and _ARITHMETIC.fullmatch(spelled) is not None

    def vectors(self, kind: str, name: str, lanes: int) -> str:
        """Declares lanes as vectors of so many; the name of the first."""
        size = _VECTOR_KINDS[kind]
        attributes = f"vector_size({lanes * size}), aligned({size}), may_alias"
        self.line(f"typedef {kind} Lanes{lanes} __attribute__(({attributes}));")
        self.line(f"Lanes{lanes}* const lanes{lanes} = (Lanes{lanes}*){name};")
        return f"lanes{lanes}"

    def fill_vectors(self, name: str, kind: str, start: str, count: int) -> None:
        lanes = min(count, VECTOR_BYTES // _VECTOR_KINDS[kind])
        with self.block(""):
            place = self.vectors(kind, name, lanes)
            self.line(f"const Lanes{lanes} start = {start} - Lanes{lanes}{{}};  // x - 0 is x, also for -0")
            for k in range(count // lanes):
                self.line(f"{place}[{k}] = start;")

    def fold_vectors(self, acc: Accumulator, name: str, count: int) -> None:
        """Halves upon halves, in vectors that become shorter with them."""
        kind = ctext.array_type(acc.dtype)
        with self.block(""):
            while count > 1:
                lanes = min(count // 2, VECTOR_BYTES // _VECTOR_KINDS[kind])
                if lanes < LEAST_VECTOR:
                    lanes = 1
                place = name if lanes == 1 else self.vectors(kind, name, lanes)
                parts = [f"fold{lanes}_{k}" for k in range(count // lanes)]
                held = kind if lanes == 1 else f"Lanes{lanes}"
                self.line(f"{held} {', '.join(f'{part} = {place}[{k}]' for k, part in enumerate(parts))};")
                while len(parts) > 1:
                    half = len(parts) // 2
                    for here, there in zip(parts[:half], parts[half:], strict=True):
                        self.line(f"{here} = {self.combine(acc, here, there)};")
                    parts = parts[:half]
                self.line(f"{place}[0] = {parts[0]};")
                count = lanes

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
            place = "_lane" if self.held else f"[{self.lane}]"
        if not REDUCERS[acc.combiner].position:
            text = self.combine(acc, f"{name}{place}", value)
            factors = self.exact_products.get(node.args[0])
            if factors and acc.combiner == "sum" and acc.dtype is float32:
                text = f"dc_add_product_f32({name}{place}, {factors[0]}, {factors[1]})"
            self.line(f"{name}{place} = {text};")
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
        if combiner == "sum" and node.dtype.is_inexact:  # the first element is the first result
            identity = complex(-0.0, -0.0) if node.dtype.is_complex else -0.0
        kind = ctext.array_type(node.dtype)
        start = ctext.constant(identity, node.dtype)
        if not axes:
            self.line(f"{kind} {name} = {start};")
            return
        size = self.extent(axes)
        self.line(f"alignas(64) {kind} {name}[{size}];")
        with self.block(f"for (int k = 0; k < {size}; ++k)"):
            self.line(f"{name}[k] = {start};")

    def scan(self, node: Node) -> str:
        name, axes = self.carries[node.out]
        place = f"{name}[{self.array_position(axes)}]" if axes else name
        combiner = REDUCERS[node.arg[0]].combine
        value = self.env[node.args[0]]
        text = self.spell(combiner, node.dtype, (place, value))
        if node.dtype.name in ctext.HALVES and node.arg[0] in ("sum", "prod"):
            text = f"dc_round_{ctext.HALVES[node.dtype.name]}({text})"  # at each step, as NumPy does
        self.line(f"{place} = {text};")
        return place


def _register_dtype(dtype: DType) -> DType:
    """The dtype that a register of ``dtype`` really has: halves live in float32."""
    return float32 if dtype.name in ctext.HALVES else dtype


def _width(node: Node) -> int:
    """Bytes of a node's elements in a vector; results of comparisons are masks, not elements."""
    if node.op in ("load", "store", "cast", "gather", "load_from") or node.dtype.kind != "bool":
        return max(node.dtype.itemsize, 1)
    return VECTOR_BYTES
