"""Kernels on a tile that is in registers: what a template's program does with what it has computed.

The kernel is one that ``epilogue`` or ``chain`` rewrote to a tile's rows ``r`` and columns ``c``; the program
has the tile's numbers in variables of their names (``number row col``), positions within the tile in ``i_r
i_c`` and, where the last tile reaches past the end, conditions in ``r_mask c_mask``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ....dataclass import dataclass, field
from ....errors import LoweringError
from ....symbolic.integers import Dim, SymInt
from ...fusion.epilogue import TILE_NUMBERS
from ...loops.loop_ir import Kernel
from ..nest import Node, make_nest
from ..walk import Compute, Item, Loop, Plan, build
from .layout import Group, Layout
from .statements import HALVES, Printer, identifier

POSITIONS = """\
i_r = tl.arange(0, ROWS)[:, None]
i_c = tl.arange(0, COLUMNS)[None, :]"""


@dataclass
class TilePrinter(Printer):
    """``source``: the buffer that is the tile, which the variable ``tile`` holds; ``sink``: the buffer whose
    values are kept in registers too, in the variable ``sunk``."""

    source: str = ""
    tile: str = ""
    sink: str = ""
    sunk: str = field(default="")

    def load(self, node: Node) -> str:
        return self.tile if node.arg[0] == self.source else super().load(node)

    def store(self, node: Node) -> None:
        if node.arg[0] == self.sink:
            self.sunk = self.env[node.args[0]]
        else:
            super().store(node)

    def long_dim(self, value: Dim) -> str:
        return self.dim(value)  # a tile's numbers are no arguments

    def body(self) -> list[str]:
        """The lines that perform the kernel's effects."""
        plan = Plan(("r", "c"), ("r", "c"), "", keep=False)
        self.items(_flat(build(self.nest, plan, None)))
        return self.lines


def _flat(items: Iterable[Item]) -> list[Item]:
    found: list[Item] = []
    for item in items:
        if isinstance(item, Loop):
            found += _flat(item.items)
        elif isinstance(item, Compute):
            found.append(item)
        else:
            raise LoweringError("Triton: a reduction within a tile")
    return found


def tile_printer(
    kernel: Kernel, source: int, rows: Group, columns: Group, depth: int, wide: bool, sink: int = -1
) -> TilePrinter:
    """A printer of ``kernel``, whose buffer number ``source`` is the tile, at an indentation of ``depth``."""
    nest = make_nest(kernel, "triton")
    if any(b.dtype.is_complex for b in kernel.buffers):
        raise LoweringError("complex numbers in a tile")
    layout = Layout((rows, columns), None, True, 4)
    printer = TilePrinter(nest, layout, wide, {b.name: b for b in kernel.buffers})
    printer.source = kernel.buffers[source].name
    printer.sink = kernel.buffers[sink].name if sink >= 0 else ""
    printer.depth = depth
    return printer


def outer_symbols(kernel: Kernel) -> tuple[str, ...]:
    """What a kernel's sizes and positions depend on besides the numbers of a tile, in order of names."""
    return tuple(sorted({s for stmt in kernel.body for s in _symbols(stmt.arg)} - {*TILE_NUMBERS}))


def is_known(kernel: Kernel) -> bool:
    """Whether the numbers of a tile are all that a kernel's sizes and positions depend on."""
    return not outer_symbols(kernel)


def _symbols(arg: object) -> set[str]:
    found: set[str] = set()
    if isinstance(arg, SymInt):
        return set(arg.symbols())
    if isinstance(arg, tuple):
        for part in arg:
            if hasattr(part, "terms"):
                found |= _symbols(part.offset)
                found |= {s for _, step in part.terms for s in _symbols(step)}
            else:
                found |= _symbols(part)
    return found


def text_of(value: Dim) -> str:
    """A size as a template's text has it."""
    if not isinstance(value, SymInt):
        return str(value)
    return "(" + re.sub(r"\b(min|max)\(", r"tl.\1imum(", str(value)) + ")"


def symbols_of(dims: Iterable[object]) -> tuple[str, ...]:
    """The symbols in sizes, in order of their names."""
    return tuple(sorted({name for d in dims if isinstance(d, SymInt) for name in d.symbols()}))


def pointers_of(kernel: Kernel, held: Iterable[int]) -> dict[str, int]:
    """The names of the pointers that a tile's program gets for ``kernel``, with the buffers' numbers."""
    without = set(held)
    return {f"p_{identifier(b.name)}": k for k, b in enumerate(kernel.buffers) if k not in without}


def masks(rows: Group, columns: Group) -> list[str]:
    """The conditions of a tile's points."""
    found = []
    if rows.is_masked:
        found.append(f"r_mask = (row + i_r) < {text_of(rows.size)}")
    if columns.is_masked:
        found.append(f"c_mask = (col + i_c) < {text_of(columns.size)}")
    return found


def in_registers(name: str, dtype_name: str) -> str:
    """A tile of float32 sums as an element type's values: halves are float32 numbers that have been
    rounded."""
    if dtype_name in HALVES:
        return f"{name}.to(tl.{dtype_name}).to(tl.float32)"
    return name
