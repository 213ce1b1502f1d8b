"""The Triton renderer: a loop-IR kernel as one or two Triton functions, over the C++ renderer's walk.

What a program computes is said by :mod:`.layout`. A long reduction with few results is two functions:
programs that each reduce a part and leave it in a workspace, and one that joins the parts.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ....comments import in_comment
from ....dataclass import dataclass
from ....dtypes import DType, float32, int8
from ....symbolic.integers import Dim, SymInt, product
from ...loops.loop_ir import Buffer, Index, Kernel
from ..nest import LoopAxis, Nest, Node, make_nest
from .complex_pairs import split_complex
from .layout import Layout, choose_layout, flatten_reduced
from .online import sum_online
from .statements import HALVES, Printer, identifier, pointer_type
from .support import prelude

NARROW = 2**31 - 2**16


@dataclass(frozen=True)
class TritonKernel:
    """A generated jit function. ``body``: its text; ``source``: that of a module with it. Its arguments are
    pointers, ``symbols`` and the constants ``blocks``. ``buffers``: what each pointer is: the number of a
    buffer of the kernel, or -1 - k for workspace k. ``programs``: how many there are. ``asserts``: positions
    are checked by ``tl.device_assert``, which is compiled in with ``debug=True``. ``index``: "i32" or "i64",
    the type of the symbols. ``num_stages``: how many steps of a loop are in flight; ``fuses_multiply_add``:
    products may be rounded together with the sums that take them; ``after``: what is launched next with the
    same pointers."""

    name: str
    body: str
    signature: dict[str, str]
    buffers: tuple[int, ...]
    symbols: tuple[str, ...]
    programs: Dim
    blocks: dict[str, int]
    num_warps: int
    asserts: bool = False
    index: str = "i32"
    num_stages: int = 3
    fuses_multiply_add: bool = False
    after: TritonKernel | None = None

    @property
    def all(self) -> list[TritonKernel]:
        """This one, and what comes after it."""
        return [self] if self.after is None else [self, *self.after.all]

    @property
    def source(self) -> str:
        return f"{prelude(self.body)}\n\n{self.body}"

    def grid(self, values: dict[str, int] | None = None) -> int:
        """Number of programs for the symbols' values."""
        count = self.programs.evaluate(values or {}) if isinstance(self.programs, SymInt) else self.programs
        return max(count, 1)


@dataclass(frozen=True)
class Workspace:
    """Memory that the functions of one kernel share: ``size`` elements."""

    dtype: DType
    size: Dim


@dataclass(frozen=True)
class TritonProgram:
    """A loop-IR kernel as functions to launch one after another. ``extents``: where all of these are below
    ``NARROW`` positions fit into 32 bits."""

    kernels: tuple[TritonKernel, ...]
    workspaces: tuple[Workspace, ...] = ()
    extents: tuple[Dim, ...] = ()


def render_triton(kernel: Kernel, wide: bool | None = None) -> TritonProgram:
    """``kernel`` as Triton modules; ``wide``: with positions of 64 bits (by default where sizes known now ask
    for it).

    Raises ``LoweringError`` for what Triton cannot do: some complex functions, atomic operations on small
    types.
    """
    nest = make_nest(kernel, "triton")
    split_complex(nest)
    reduced = flatten_reduced(nest)
    layout = choose_layout(nest, reduced, _can_split(nest))
    if not layout.persistent and layout.parts == 1:
        sum_online(nest)
    extents = _extents(nest)
    if wide is None:
        wide = any(isinstance(e, int) and e >= NARROW for e in extents)
    symbolic = tuple(e for e in extents if not isinstance(e, int))
    if layout.parts > 1:
        first, second, spaces = _split(nest, layout, wide)
        return TritonProgram((first, second), spaces, symbolic)
    return TritonProgram((_Function(nest, layout, wide).render(kernel.name),), (), symbolic)


def _extents(nest: Nest) -> tuple[Dim, ...]:
    points = product(axis.size for axis in nest.axes.values())
    return (points, *(b.size for b in nest.kernel.buffers))


# -- one function -----------------------------------------------------------------------------
@dataclass
class _Function:
    """One jit function of a nest. ``workspaces``: number of the workspace by buffer name."""

    nest: Nest
    layout: Layout
    wide: bool
    workspaces: tuple[Buffer, ...] = ()

    def render(
        self, name: str, roots: list[Node] | None = None, partial: dict[str, str] | None = None
    ) -> TritonKernel:
        buffers = {b.name: b for b in (*self.nest.kernel.buffers, *self.workspaces)}
        printer = Printer(self.nest, self.layout, self.wide, buffers)
        printer.reductions.partial = partial or {}
        printer.function(roots)
        return self.finished(name, printer, buffers)

    def finished(self, name: str, printer: Printer, buffers: dict[str, Buffer]) -> TritonKernel:
        kernel = self.nest.kernel
        text = "\n".join(printer.lines)
        used = [b for b in buffers.values() if re.search(rf"\bp_{identifier(b.name)}\b", text)]
        function = f"{identifier(name)}{'_wide' if self.wide else ''}"
        pointers = [f"p_{identifier(b.name)}" for b in used]
        blocks = {f"{g.name.upper()}BLOCK": g.block for g in self.layout.groups}
        if self.layout.parts > 1:
            blocks["PARTS"] = self.layout.parts
        arguments = [*pointers, *printer.symbols, *(f"{b}: tl.constexpr" for b in blocks)]
        comments = [f"# {in_comment(origin)}" for origin in kernel.origin]
        head = [*comments, "@triton.jit", f"def {function}({', '.join(arguments)}):"]
        body = "\n".join([*head, text]) + "\n"
        index = "i64" if self.wide else "i32"
        signature = {p: pointer_type(b.dtype) for p, b in zip(pointers, used)}
        signature |= dict.fromkeys(printer.symbols, index)
        signature |= dict.fromkeys(blocks, "constexpr")
        numbers = [b.name for b in kernel.buffers]
        spaces = [b.name for b in self.workspaces]
        places = tuple(-1 - spaces.index(b.name) if b.name in spaces else numbers.index(b.name) for b in used)
        programs = product(g.blocks for g in self.layout.kept) * self.layout.parts
        return TritonKernel(
            function,
            body,
            signature,
            places,
            tuple(printer.symbols),
            programs,
            blocks,
            self.layout.warps,
            printer.asserts,
            index,
        )


# -- reductions in parts ----------------------------------------------------------------------
def _can_split(nest: Nest) -> bool:
    """Whether reductions may be done in parts: sums and the like whose results no point of the reduced axes
    waits for."""
    reduced = nest.reduced()
    waiting: set[str] = set()
    for node in nest.nodes:
        if node.op in ("scan", "scatter") or (node.op == "accumulate" and node.arg.position):
            return False
        if node.op == "finish" or any(a in waiting for a in node.args):
            waiting.add(node.out)
            if node.axes & reduced:
                return False
    return bool(reduced)


def _split(
    nest: Nest, layout: Layout, wide: bool
) -> tuple[TritonKernel, TritonKernel, tuple[Workspace, ...]]:
    accumulations = [n for n in nest.nodes if n.op == "accumulate"]
    assert layout.reduced is not None
    reduced = {*layout.reduced.axes, layout.reduced.name}
    (kept,) = layout.kept
    count = kept.size * layout.parts
    buffers = tuple(
        Buffer(f"part{k}", _stored_type(n.arg.dtype), count, "inout") for k, n in enumerate(accumulations)
    )
    partial = {n.arg.value: b.name for n, b in zip(accumulations, buffers)}
    inside = [n for n in nest.nodes if n.op in ("store", "check") and n.axes & reduced]
    first = _Function(nest, layout, wide, buffers).render(
        f"{nest.kernel.name}_parts", [*inside, *accumulations], partial
    )
    joined = _joining(nest, layout, buffers, accumulations, reduced)
    after = choose_layout(joined, ("part",), False)
    second = _Function(joined, after, wide, buffers).render(f"{nest.kernel.name}_join")
    return first, second, tuple(Workspace(b.dtype, b.size) for b in buffers)


def _stored_type(dtype: DType) -> DType:
    if dtype.is_bool:
        return int8
    return float32 if dtype.name in HALVES else dtype


def _joining(
    nest: Nest, layout: Layout, buffers: tuple[Buffer, ...], accumulations: list[Node], reduced: set[str]
) -> Nest:
    """The nest that reduces the parts and does what waits for the results."""
    (kept,) = layout.kept
    axes = {a: nest.axes[a] for a in kept.axes}
    terms: list[tuple[str, Dim]] = [("part", kept.size)]
    step: Dim = 1
    for axis in reversed(kept.axes):
        terms.append((axis, step))
        step = step * nest.axes[axis].size
    every = frozenset((*kept.axes, "part"))
    nodes: list[Node] = []
    for node, buffer in zip(accumulations, buffers):
        acc = replace(node.arg, reduced=("part",))
        name = f"part_{node.arg.value}"
        nodes.append(Node(name, "load", (), every, (buffer.name, Index(tuple(terms))), buffer.dtype))
        value = f"{name}_typed"
        nodes.append(Node(value, "cast", (name,), every, None, acc.dtype))
        nodes.append(Node("", "accumulate", (value,), every, acc, acc.dtype))
    for node in nest.nodes:
        if node.op == "accumulate" or node.axes & reduced:
            continue
        if node.op == "finish":
            node = replace(node, arg=replace(node.arg, reduced=("part",)))
        nodes.append(node)
    axes["part"] = LoopAxis("part", layout.parts)
    return Nest(nest.kernel, axes, nodes)
