"""Asking for memory before it is read, in kernels that touch more than the caches hold.

One core alone waits for memory most of the time: the processor looks ahead within a page only, and stops
where a row's end has to be waited for. Lines are asked into the second-level cache (measured: into the first
level they push out what waits there). Of passes over one row each asks for its share of the next row, where
the processor does not look far ahead by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....dataclass import dataclass, field
from ....symbolic.integers import hint
from ..nest import LoopAxis, Nest, Node, coefficient
from ..walk import Compute, Item, Loop
from .reduce import ReductionPrinter
from .stream import LINE_BYTES, is_amd
from .values import memory

# How far ahead memory that is read once is asked for: a page; less on AMD's processors, which look ahead well
# (Zen 4, 2 x + y at 0, 512 bytes, 1 and 4 KB, GB/s: 53, 53, 36, 37 at 32 MB in all, 35, 34, 30, 28 from DRAM;
# maxima 35, 33, 29, 27 and 27, 30, 30, 22). Not where an array is read in several places at once (jacobi: 21,
# 20, 21, 32 and 19, 18, 19, 29).
AHEAD_BYTES = 4096
AHEAD_BYTES_AMD = 512
# The longest row that waits in the second-level cache beside the one that is worked on, and the distance at
# which what one load has read is still there for another.
ROW_BYTES = 1 << 18
# Arrays up to this size stay in that cache from row to row.
KEPT_BYTES = 1 << 18
# Cache lines that are asked for without a loop: each takes g++ 0.5 ms.
ASKED_ONE_BY_ONE = 4
# Rows of a transposed tile that the memory beside them is asked for ahead.
ROWS_AHEAD = 4


@dataclass(frozen=True)
class Request:
    """What a loop asks for: what ``node`` reads ``step`` elements further. Where ``passes`` go over a row,
    this one has ``place`` among them."""

    node: Node
    step: int
    place: int = 0
    passes: int = 1


def requests_of(items: Iterable[Item], nest: Nest) -> dict[int, list[Request]]:
    """What each loop along rows asks for, by the loop's identity."""
    passes: dict[tuple[str, str], list[tuple[Loop, Node]]] = {}
    stencils = _read_in_places(nest)
    small = {b.name for b in nest.kernel.buffers if hint(b.size) * b.dtype.itemsize <= KEPT_BYTES}
    tiled = {node.arg.row for node in nest.nodes if node.op == "staged"}
    for loop in _loops(items):
        loads = [] if loop.axes[-1] in tiled else _row_loads(loop)
        for node in _leading([node for node in loads if node.arg[0] not in small]):
            passes.setdefault((node.arg[0], str(node.arg[1])), []).append((loop, node))
    found: dict[int, list[Request]] = {}
    for readers in passes.values():
        for loop, request in _requests(readers, nest, _ahead(readers[0][1], stencils)):
            found.setdefault(id(loop), []).append(request)
    return found


def _loops(items: Iterable[Item]) -> Iterator[Loop]:
    for item in items:
        if isinstance(item, Loop):
            yield item
            yield from _loops(item.items)


def _row_loads(loop: Loop) -> list[Node]:
    loads = [i.node for i in loop.items if isinstance(i, Compute) and i.node.op == "load"]
    return [node for node in loads if _is_one(coefficient(node.arg[1], loop.axes[-1]))]


def _is_one(value: object) -> bool:
    return isinstance(value, int) and value == 1


def _leading(loads: list[Node]) -> list[Node]:
    """Loads without those that read what another one has read a little before."""
    return [node for node in loads if not any(_follows(node, other) for other in loads)]


def _follows(node: Node, other: Node) -> bool:
    here, there = node.arg[1], other.arg[1]
    if node.arg[0] != other.arg[0] or str(here.terms) != str(there.terms):
        return False
    distance = there.offset - here.offset
    return isinstance(distance, int) and 0 < distance * node.dtype.itemsize <= ROW_BYTES


def _read_in_places(nest: Nest) -> set[str]:
    """Buffers that are read in several places at once."""
    loads = [(node.arg[0], str(node.arg[1])) for node in nest.nodes if node.op == "load"]
    names = [name for name, _ in set(loads)]
    return {name for name in names if names.count(name) > 1}


def _ahead(node: Node, stencils: set[str]) -> int:
    """How many elements further on a load that goes through memory once asks for them."""
    far = node.arg[0] in stencils or not is_amd()
    return (AHEAD_BYTES if far else AHEAD_BYTES_AMD) // node.dtype.itemsize


def _requests(readers: list[tuple[Loop, Node]], nest: Nest, ahead: int) -> Iterator[tuple[Loop, Request]]:
    first, node = readers[0]
    axis = nest.axes[first.axes[-1]]
    step = _next_row(node, axis.name)
    goes_on = _goes_on(axis, step, ahead)
    # on AMD's processors the first pass alone asks (layernorm, rms norm, statistics of rows, GB/s from DRAM:
    # 20, 35, 17 by shares of the next row, 25, 35, 26 so)
    if len(readers) > 1 and step and not (goes_on and is_amd()):
        for place, (loop, again) in enumerate(readers):
            yield loop, Request(again, step, place, len(readers))
    elif goes_on:
        yield first, Request(node, ahead)
    elif step:
        yield first, Request(node, step)


def _next_row(node: Node, axis: str) -> int:
    """How many elements the next row is behind one that is read along ``axis``; 0: not known, or far."""
    others = [factor for name, factor in node.arg[1].terms if name != axis]
    step = min(others, key=hint, default=0)
    return step if isinstance(step, int) and 0 < step * node.dtype.itemsize <= ROW_BYTES else 0


def _goes_on(axis: LoopAxis, step: int, ahead: int) -> bool:
    """Whether what is read a page ahead is read soon: rows are long, or one behind the other."""
    return not step or step <= axis.hint or axis.hint >= 2 * ahead


@dataclass
class AheadPrinter(ReductionPrinter):
    """``streams``: the kernel touches more than the caches hold; ``requests``: what its loops ask for."""

    streams: bool = False
    requests: dict[int, list[Request]] = field(default_factory=dict)

    def ask_for_next(self, loop: Loop, name: str, low: str, count: str) -> None:
        """Beside ``count`` iterations from ``low`` on, ask for as much of what comes later."""
        for request in self.requests.get(id(loop), ()) if self.streams else ():
            node = request.node
            line = LINE_BYTES // node.dtype.itemsize
            place = f"{memory(node.arg[0])} + {self.at(node.arg[1])} + {request.step}"
            with self.block(""):
                if request.passes == 1:
                    self.line(f"const i64 i_{name} = {low};")
                else:
                    length = self.bound(self.nest.axes[name])
                    start = f"({low} + {request.place} * {length}) / {request.passes}"
                    self.line(f"const i64 i_{name} = {start};")
                self.line(f"const auto* const next = {place};")
                if request.passes == 1 or count.isdigit():
                    part = count if request.passes == 1 else str(-(-int(count) // request.passes))
                else:
                    part = f"({count}) / {request.passes} + 1"
                self.ask(part, line, 0)

    def ask(self, count: str, line: int, writes: int) -> None:
        """Ask for ``count`` elements from ``next`` on, in a loop that stays one where they are many."""
        if count.isdigit() and int(count) <= ASKED_ONE_BY_ONE * line:
            for k in range(0, int(count), line):
                self.line(f"__builtin_prefetch(next + {k}, {writes}, 2);")
            return
        self.line("#pragma GCC unroll 1")
        with self.block(f"for (i64 k = 0; k < {count}; k += {line})"):
            self.line(f"__builtin_prefetch(next + k, {writes}, 2);")

    def ask_for_rows(self, loop: Loop, name: str) -> None:
        """Beside a row of a transposed tile, which is short, ask for what is read a few rows further, and for
        what is written unless it goes past the caches."""
        row = next((n.arg.row for n in self.nest.nodes if n.op == "staged" and n.arg.column == name), "")
        if not row:
            return
        inner = [n for below in _loops(loop.items) if below.axes == (row,) for n in _nodes(below)]
        for node in inner:
            is_read = node.op == "load"
            if not (is_read or (node.op == "store" and not self.streams)):
                continue
            step = coefficient(node.arg[1], name)
            if hint(step) in (0, 1) or not _is_one(coefficient(node.arg[1], row)):
                continue
            line = LINE_BYTES // self.buffers[node.arg[0]].dtype.itemsize
            with self.block(""):
                self.line(f"const i64 i_{row} = 0;")
                place = f"{memory(node.arg[0])} + {self.at(node.arg[1])} + {ROWS_AHEAD} * {self.dim(step)}"
                self.line(f"const auto* const next = {place};")
                self.ask(self.bound(self.nest.axes[row]), line, 0 if is_read else 1)


def _nodes(loop: Loop) -> list[Node]:
    return [item.node for item in loop.items if isinstance(item, Compute)]
