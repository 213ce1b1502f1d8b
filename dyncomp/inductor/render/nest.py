"""The renderers' working form of a kernel: statements over loop axes that may have been split.

:func:`nodes_of` turns a :class:`~dyncomp.inductor.loops.loop_ir.Kernel` into :class:`Node` lists, with rows
that the target cannot spell written in other rows, and reductions split into an accumulation (over all axes
of its argument) and the finished value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ... import dtypes
from ...dataclass import dataclass, field
from ...dtypes import DType
from ...errors import LoweringError, LoweringFault
from ...prims import scalar
from ...symbolic.integers import Dim, hint
from ..loops.loop_ir import Index, Kernel, Stmt
from .knobs import USUAL, Knobs

# Operations that may not be repeated or left out.
EFFECTS = ("store", "scatter", "accumulate", "save", "check", "turn")


@dataclass(frozen=True, slots=True)
class Node:
    """A statement of the loop nest.

    Besides the loop IR's ops: ``accumulate`` (arg: :class:`Accumulator`) adds ``args[0]`` to an
    accumulator, ``finish`` (same arg) is its value; ``save`` and ``fetch`` (arg: :class:`LocalArray`) write
    and read a value kept between two passes; ``check`` (arg: sizes and wraps) tests gather positions;
    ``place`` (arg: strides, sizes and wraps) is where the positions of a gather point, and ``load_from``
    (arg: buffer and index) reads from there on; ``stage`` (arg: :class:`Tile`) transposes a tile of a buffer,
    ``staged`` (same arg) reads from it; ``turn`` (arg: :class:`Turn`) transposes a part of one into another
    buffer. The arg of ``axis`` is an :class:`Index`.
    """

    out: str
    op: str
    args: tuple[str, ...]
    axes: frozenset[str]
    arg: Any
    dtype: DType


@dataclass(frozen=True, slots=True)
class Accumulator:
    """State of one reduction: ``value``'s name in the kernel, combiner, dtype of the elements it takes,
    axes it runs over (in the order in which positions count) and axes of the result."""

    value: str
    combiner: str
    dtype: DType
    reduced: tuple[str, ...]
    axes: frozenset[str]
    # the original axes of an argmax, each as an affine expression of the loop axes, with its size
    position: tuple[tuple[Index, Dim], ...] = ()


@dataclass(frozen=True, slots=True)
class LocalArray:
    """A value kept in memory of the kernel's own, indexed by ``axes`` (outermost first)."""

    name: str
    dtype: DType
    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of a buffer that is read across its rows: ``column`` and ``row`` are the loops inside it, of at
    most ``side`` iterations; elements are contiguous along ``column`` and ``step`` apart along ``row``."""

    buffer: str
    start: Index
    column: str
    row: str
    step: Dim
    side: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A transposed copy, in parts: ``rows`` and ``columns`` are blocks of the source's, whose elements are
    contiguous along columns. Of the source and of the target: buffer, start, and the step from row to row."""

    source: tuple[str, Index, Dim]
    target: tuple[str, Index, Dim]
    rows: Blocks
    columns: Blocks


@dataclass(frozen=True, slots=True)
class Blocks:
    """An axis that was split: the loop over blocks, their size, and that of the whole."""

    axis: str
    size: int
    whole: Dim


@dataclass(frozen=True, slots=True)
class LoopAxis:
    """A loop: ``size`` iterations. ``block_of``: (where a block starts, as outer axes and factors; block
    size; size of the axis that was split): the last block may be shorter, or not there (fewer than 0).
    ``most``: a bound that is known when compiling (0: none)."""

    name: str
    size: Dim
    block_of: tuple[tuple[tuple[str, Dim], ...], Dim, Dim] | None = None
    most: int = 0

    @property
    def hint(self) -> int:
        return hint(self.size)

    @property
    def static(self) -> int | None:
        return self.size if isinstance(self.size, int) else None


@dataclass
class Nest:
    """A kernel while its loops are being arranged."""

    kernel: Kernel
    axes: dict[str, LoopAxis]
    nodes: list[Node]
    arrays: list[LocalArray] = field(default_factory=list)
    knobs: Knobs = USUAL

    def by_name(self) -> dict[str, Node]:
        return {node.out: node for node in self.nodes if node.out}

    def reduced(self) -> set[str]:
        """Axes that some reduction or scan runs over."""
        found: set[str] = set()
        for node in self.nodes:
            if node.op == "accumulate":
                found |= set(node.arg.reduced)
            elif node.op == "scan":
                found.add(node.arg[1])
        return found

    def ordered(self) -> bool:
        """Iterations must run in the written order (scatter)."""
        return any(node.op == "scatter" for node in self.nodes)


# -- from the loop IR -------------------------------------------------------------------------
class _Expander(scalar.ScalarBuilder):
    """Appends nodes for a row's ``decomp``; values are node names."""

    def __init__(self, known: dict[str, Node], prefix: str) -> None:
        self.known = known
        self.prefix = prefix
        self.made: list[Node] = []

    def dtype(self, value: str) -> DType:
        return self.known[value].dtype

    def emit(self, op: str, args: tuple[Any, ...], dtype: DType, arg: object = None) -> str:
        name = f"{self.prefix}_{len(self.made)}"
        axes: frozenset[str] = frozenset().union(*(self.known[a].axes for a in args))
        node = Node(name, op, args, axes, arg, dtype)
        self.made.append(node)
        self.known[name] = node
        return name


def nodes_of(kernel: Kernel, target: str) -> list[Node]:
    """The kernel's statements as nodes for ``target`` (``"cpp"`` or ``"triton"``).

    Raises ``LoweringError`` for a scalar op that the target can neither spell nor decompose.
    """
    known: dict[str, Node] = {}
    out: list[Node] = []
    for stmt in kernel.body:
        for node in _convert(stmt, known, kernel):
            for final in _spellable(node, known, target):
                out.append(final)
                if final.out:
                    known[final.out] = final
    return out


def _convert(stmt: Stmt, known: Mapping[str, Node], kernel: Kernel) -> Iterable[Node]:
    if stmt.op == "reduce":
        yield from _convert_reduce(stmt, known, kernel)
        return
    arg = stmt.arg
    if stmt.op == "axis":
        arg = Index(((stmt.arg, 1),), 0)
    yield Node(stmt.out, stmt.op, stmt.args, frozenset(stmt.axes), arg, stmt.dtype)


def _convert_reduce(stmt: Stmt, known: Mapping[str, Node], kernel: Kernel) -> Iterable[Node]:
    combiner, reduced = stmt.arg
    source = known[stmt.args[0]]
    axes = frozenset(stmt.axes)
    position: tuple[tuple[Index, Dim], ...] = ()
    if scalar.REDUCERS[combiner].position:
        sizes = {axis.name: axis.size for axis in kernel.axes}
        position = tuple((Index(((name, 1),), 0), sizes[name]) for name in reduced)
    acc = Accumulator(stmt.out, combiner, source.dtype, tuple(reduced), axes, position)
    # an argument that lacks a reduced axis is still combined once per position along it
    yield Node("", "accumulate", stmt.args, axes | source.axes | set(reduced), acc, source.dtype)
    yield Node(stmt.out, "finish", (), axes, acc, stmt.dtype)


def _spellable(node: Node, known: dict[str, Node], target: str) -> list[Node]:
    row = scalar.SCALARS.get(node.op)
    if row is None:
        return [node]
    exponent = _constant_exponent(node, known)
    if exponent is not None:
        simple = _Expander(dict(known), node.out)
        result = _power(simple, node.args[0], exponent)
        if result is not None:
            return _rename_last(simple.made, result, node)
    principal = known[row.principal_of(node.args)].dtype
    if row.spelling(target, principal) is not None:
        return [node]
    if row.decomp is None and target == "triton" and (principal.is_complex or node.dtype.is_complex):
        return [node]  # becomes real ones later
    if row.decomp is None:
        raise LoweringError(f"{target} has no {node.op} for {principal}")
    builder = _Expander(dict(known), node.out)
    result = _decompose(row, builder, node)
    final = _rename_last(builder.made, result, node)
    done: list[Node] = []
    for made in final:
        for piece in _spellable(made, {**known, **{n.out: n for n in done}}, target):
            done.append(piece)
    return done


def _decompose(row: scalar.ScalarOp, builder: _Expander, node: Node) -> str:
    """The row in other rows; of half types in float32, so that only the result is rounded."""
    wide = any(builder.dtype(a).name in ("float16", "bfloat16") for a in node.args)
    if not wide or row.cost <= 4:
        return row.decomp(builder, *node.args)  # type: ignore[misc]
    args = [builder.cast(a, dtypes.float32) for a in node.args]
    return builder.cast(row.decomp(builder, *args), node.dtype)  # type: ignore[misc]


def _rename_last(made: list[Node], result: str, node: Node) -> list[Node]:
    if made and made[-1].out == result:
        return [*made[:-1], replace(made[-1], out=node.out, axes=node.axes)]
    return [*made, Node(node.out, "cast", (result,), node.axes, None, node.dtype)]


def _constant_exponent(node: Node, known: Mapping[str, Node]) -> float | None:
    """The exponent of a power if it is a constant."""
    if node.op != "power":
        return None
    exponent = known[node.args[1]]
    if exponent.op == "cast":
        exponent = known[exponent.args[0]]
    if exponent.op != "const" or isinstance(exponent.arg, complex):
        return None
    return float(exponent.arg)


def _power(s: scalar.ScalarBuilder, x: object, exponent: float) -> Any | None:
    """``x ** exponent`` by products and square roots where that is as accurate; ``None`` elsewhere."""
    dtype = s.dtype(x)
    whole = {1.0: 0, 2.0: 1, 3.0: 2, 4.0: 2}
    size = abs(exponent)
    if exponent in whole or (size in whole and dtype.is_float):
        square = s.multiply(x, x) if size > 1 else x
        result = s.multiply(square, x) if size == 3 else s.multiply(square, square) if size == 4 else square
    elif size in (0.5, 1.5) and dtype.is_float:
        result = s.sqrt(x) if size == 0.5 else s.multiply(x, s.sqrt(x))
        if exponent != 0.5:  # NumPy takes the square root itself there
            infinity = s.const(np.inf, dtype)
            result = s.where(s.equal(x, s.const(-np.inf, dtype)), infinity, result)
    else:
        return None
    return s.divide(s.const(1, dtype), result) if exponent < 0 else result


# -- indices ----------------------------------------------------------------------------------
def index_of(node: Node) -> Index | None:
    """The affine index inside a node, if it has one."""
    if node.op in ("load", "store", "gather", "load_from", "scatter"):
        found = node.arg[1]
        assert isinstance(found, Index)
        return found
    if node.op == "axis":
        assert isinstance(node.arg, Index)
        return node.arg
    return None


def with_index(node: Node, index: Index) -> Node:
    """The node with another index."""
    if node.op == "axis":
        return replace(node, arg=index)
    return replace(node, arg=(node.arg[0], index, *node.arg[2:]))


def coefficient(index: Index, axis: str) -> Dim:
    """The factor of ``axis`` in ``index`` (0 if it does not occur)."""
    for name, value in index.terms:
        if name == axis:
            return value
    return 0


def map_indices(nodes: Iterable[Node], change: Callable[[Index], Index]) -> list[Node]:
    """All nodes with ``change`` applied to their indices, argmax positions included."""
    out = []
    for node in nodes:
        index = index_of(node)
        if index is not None:
            node = with_index(node, change(index))
        if isinstance(node.arg, Accumulator) and node.arg.position:
            position = tuple((change(i), size) for i, size in node.arg.position)
            node = replace(node, arg=replace(node.arg, position=position))
        out.append(node)
    return out


def map_axes(nodes: Iterable[Node], old: str, new: tuple[str, ...]) -> list[Node]:
    """All nodes with axis ``old`` replaced by the axes ``new`` (indices are left alone)."""
    out = []
    for node in nodes:
        if old in node.axes:
            node = replace(node, axes=(node.axes - {old}) | set(new))
        out.append(_map_argument_axes(node, old, new))
    return out


def _map_argument_axes(node: Node, old: str, new: tuple[str, ...]) -> Node:
    if isinstance(node.arg, Accumulator):
        acc = node.arg
        reduced = tuple(a for name in acc.reduced for a in (new if name == old else (name,)))
        axes = (acc.axes - {old}) | set(new) if old in acc.axes else acc.axes
        return replace(node, arg=replace(acc, reduced=reduced, axes=axes))
    if node.op == "scan" and node.arg[1] == old and new != (old,):
        raise LoweringFault("a scan axis cannot be split")
    return node


# -- axis surgery -----------------------------------------------------------------------------
def split(nest: Nest, name: str, block: Dim) -> tuple[str, str]:
    """Replace axis ``name`` by blocks of ``block`` iterations; returns (outer, inner) names."""
    axis = nest.axes[name]
    outer, inner = f"{name}o", f"{name}i"

    def change(index: Index) -> Index:
        factor = coefficient(index, name)
        if isinstance(factor, int) and factor == 0:
            return index
        terms = tuple(t for t in index.terms if t[0] != name)
        return Index((*terms, (outer, factor * block), (inner, factor)), index.offset)

    nest.nodes = map_axes(map_indices(nest.nodes, change), name, (outer, inner))
    renamed: dict[str, LoopAxis] = {}
    for key, value in nest.axes.items():
        if key != name:
            renamed[key] = value
            continue
        count = (axis.size + block - 1) // block
        renamed[outer] = LoopAxis(outer, count)
        renamed[inner] = LoopAxis(inner, block, (((outer, block),), block, axis.size))
    nest.axes = renamed
    return outer, inner


def _mergeable(nest: Nest, outer: str, inner: str) -> bool:
    size = nest.axes[inner].size
    for node in nest.nodes:
        if (outer in node.axes) != (inner in node.axes):
            return False
        if isinstance(node.arg, Accumulator):
            if (outer in node.arg.reduced) != (inner in node.arg.reduced) or node.arg.position:
                return False
        if node.op == "scan" and node.arg[1] in (outer, inner):
            return False
        index = index_of(node)
        if index is None:
            continue
        outer_step = coefficient(index, outer)
        inner_step = coefficient(index, inner) * size
        if hash(outer_step) != hash(inner_step) or str(outer_step) != str(inner_step):
            return False
    return True


def _merge(nest: Nest, outer: str, inner: str) -> None:
    size = nest.axes[outer].size * nest.axes[inner].size

    def change(index: Index) -> Index:
        return Index(tuple(t for t in index.terms if t[0] != outer), index.offset)

    dropped = []
    for node in map_indices(nest.nodes, change):
        node = replace(node, axes=node.axes - {outer})
        if isinstance(node.arg, Accumulator):
            acc = node.arg
            reduced = tuple(a for a in acc.reduced if a != outer)
            node = replace(node, arg=replace(acc, reduced=reduced, axes=acc.axes - {outer}))
        dropped.append(node)
    nest.nodes = dropped
    del nest.axes[outer]
    nest.axes[inner] = LoopAxis(inner, size)


def merge_axes(nest: Nest) -> None:
    """Make one axis of neighbours that every access steps through as if they were one."""
    changed = True
    while changed:
        changed = False
        names = list(nest.axes)
        for outer in names:
            for inner in names:
                if outer != inner and _mergeable(nest, outer, inner):
                    _merge(nest, outer, inner)
                    changed = True
                    break
            if changed:
                break


def drop_unit_axes(nest: Nest) -> None:
    """Remove axes of size 1 (positions along them are 0). A scan along one is its argument."""
    for name in [n for n, axis in nest.axes.items() if axis.static == 1]:

        def change(index: Index, name: str = name) -> Index:
            return Index(tuple(t for t in index.terms if t[0] != name), index.offset)

        nest.nodes = [_without_scan(n, name) for n in map_indices(nest.nodes, change)]
        nest.nodes = map_axes(nest.nodes, name, ())
        del nest.axes[name]


def drop_empty_axes(nest: Nest) -> None:
    """Remove axes without iterations and all that is done along them: reductions over them are their
    identity. An array without elements is read nowhere, then, though its index need not name such an axis."""
    empty = {name for name, axis in nest.axes.items() if axis.static == 0}
    if not empty:
        return
    nest.nodes = [_without_elements(node, empty) for node in nest.nodes if not node.axes & empty]
    nest.axes = {name: axis for name, axis in nest.axes.items() if name not in empty}


def _without_elements(node: Node, empty: set[str]) -> Node:
    if node.op != "finish" or empty.isdisjoint(node.arg.reduced):
        return node
    row = scalar.REDUCERS[node.arg.combiner]
    return replace(node, op="const", arg=0 if row.position else row.identity(node.dtype))


def _without_scan(node: Node, axis: str) -> Node:
    if node.op == "scan" and node.arg[1] == axis:
        return replace(node, op="cast", arg=None)
    return node


def make_nest(kernel: Kernel, target: str) -> Nest:
    """The kernel's nest with unit axes dropped and mergeable axes merged."""
    axes = {axis.name: LoopAxis(axis.name, axis.size, most=axis.most) for axis in kernel.axes}
    nest = Nest(kernel, axes, nodes_of(kernel, target))
    _canonical_terms(nest)
    drop_empty_axes(nest)
    drop_unit_axes(nest)
    nest.nodes = [_without_empty_reduction(n, nest.nodes) for n in nest.nodes]
    nest.nodes = [n for n in nest.nodes if n.op != "accumulate" or n.arg.reduced]
    if not nest.ordered():
        merge_axes(nest)
    return nest


def take_places_out(nest: Nest) -> None:
    """Have positions of gathers that do not change in all of a gather's loops looked at outside of these:
    what is read there is memory like any other."""
    made: list[Node] = []
    axes_of = {node.out: node.axes for node in nest.nodes if node.out}
    for node in nest.nodes:
        axes: frozenset[str] = frozenset().union(*(axes_of[name] for name in node.args))
        if node.op == "gather" and axes < node.axes:
            buffer, index, *how = node.arg
            place = Node(f"{node.out}_place", "place", node.args, axes, tuple(how), dtypes.int64)
            made.append(place)
            node = replace(node, op="load_from", args=(place.out,), arg=(buffer, index))
        made.append(node)
    nest.nodes = made


def _without_empty_reduction(node: Node, nodes: list[Node]) -> Node:
    """A reduction over nothing is its argument."""
    if node.op != "finish" or node.arg.reduced:
        return node
    if node.arg.position:
        return replace(node, op="const", arg=0)
    source = next(n for n in nodes if n.op == "accumulate" and n.arg.value == node.arg.value)
    return replace(node, op="cast", args=source.args, arg=None)


def _canonical_terms(nest: Nest) -> None:
    def change(index: Index) -> Index:
        totals: dict[str, Dim] = {}
        for name, factor in index.terms:
            totals[name] = totals.get(name, 0) + factor
        kept = tuple((n, f) for n, f in totals.items() if not (isinstance(f, int) and f == 0))
        return Index(kept, index.offset)

    nest.nodes = map_indices(nest.nodes, change)


INT64 = dtypes.int64
