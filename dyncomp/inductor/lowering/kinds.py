"""Lowering: a functional graph of prims to clusters of computations, one function per kind of op.

Values are taken in the order of the graph. A pointwise value is left to its readers (fused into them) or
gets a home: a cluster that computes it once (``_keeps_home``). Reductions, scans, updates and library
calls always have one. Views are index arithmetic on whatever reads them, never a step. Memory is given to
a computed value when something outside its cluster reads it.
"""

from __future__ import annotations

from typing import Any

from ...errors import LoweringError
from ...graph.ir import Graph, Node, Var, contiguous_strides, same_shape
from ...prims import opdef
from ...prims.markers import LATE
from ...prims.scalar import REDUCERS
from ...symbolic.integers import Dim, SymInt, hint, is_unbacked, product, same
from ..fusion.fuse import Root, proper
from ..loops.dependences import reads_at
from ..loops.index import Index, canonical
from .contract import lower_contract
from .convolve import lower_convolution, runs_own
from .state import State, tree_of
from .target import has_code
from .update import Updates
from .values import NotAffine, Place, Storage, Table, Use, Value, map_index, place_of, span, type_place


class Lowering(State):
    """Lowers one graph. After :meth:`run` the inherited fields are final."""

    def __init__(self, graph: Graph, table: Table, library: frozenset[str] = frozenset()) -> None:
        super().__init__(graph, table, library)
        self.updates = Updates(self)

    def run(self) -> Lowering:
        self._add_inputs()
        for position, node in enumerate(self.graph.nodes):
            self._add_node(position, node)
        self._count_uses()
        for node in self.graph.nodes:
            for var in node.outputs:
                self._lower(self.values[var.name])
        self._finish_outputs()
        self.updates.finish_mutations()
        return self

    # -- values -------------------------------------------------------------------------------
    def _add_inputs(self) -> None:
        for number, inp in enumerate(self.graph.inputs):
            storage = Storage(inp.var.dtype, span(inp.var.shape, inp.var.type.strides), "input", number)
            value = Value(inp.var, None, -1, "memory")
            value.place = type_place(value, storage)
            self.inputs.append(storage)
            self.values[inp.var.name] = value

    def _add_node(self, position: int, node: Node) -> None:
        row = self.table.get(node.op)
        if row is None or row.lower is None:
            raise LoweringError(f"{node.op} is no prim")
        kind = _kind(row, node)
        if kind == "reduce" and node.op in ("argmax", "argmin") and node.inputs[0].dtype.is_complex:
            kind = "memory"
        if kind == "point" and not has_code(row, tuple(v.dtype for v in node.inputs), node.kwargs):
            kind = "memory"
        if kind == "convolve" and (node.out.name in self.library or not runs_own(node)):
            kind = "memory"
        inputs = tuple(self.values[v.name] for v in (node.inputs[:1] if kind == "view" else node.inputs))
        for var in node.outputs:
            self.values[var.name] = Value(var, node, position, kind, row, inputs)
        if isinstance(row.lower, opdef.Gather | opdef.Scatter):
            _check_is_looked_at(row.lower, node)
            positions = _positions_read(row.lower, node)
            if positions not in self.checked:
                self.checked.add(positions)
                self._may_raise(position, node)
        elif kind == "memory" and node.inputs:
            self._may_raise(position, node)

    def _may_raise(self, position: int, node: Node) -> None:
        self.last_raise = position
        self.raisers.append(self.values[node.outputs[0].name])

    def _count_uses(self) -> None:
        for value in self.values.values():
            if value.node is None or value.kind == "view" or self._is_empty(value):
                continue
            for number, source in enumerate(value.inputs):
                self._use(value, number, source)
        for value in reversed(self.values.values()):
            value.widest = max(value.widest, value.points)
            if value.kind in ("point", "view"):
                for source in value.inputs:
                    source.widest = max(source.widest, value.widest)
        end = len(self.graph.nodes)
        for k, out in enumerate(self.graph.outputs):
            if out.view is not None and out.view.kind == "input":
                continue
            root = self.values[out.var.name].root
            root.uses.append(Use(end, 0))
            root.forced = True
            if root.output is None and out.view is None and _covers(self.values[out.var.name]):
                root.output = k
        for _, var in self.graph.mutations:
            root = self.values[var.name].root
            root.uses.append(Use(end, 0))
            root.forced = root.forced or root is self.values[var.name]

    def _use(self, reader: Value, number: int, source: Value) -> None:
        root = source.root
        needs_memory = reader.kind in ("memory", "convolve") or (
            number == 0 and reader.kind in ("gather", "update")
        )
        root.forced = root.forced or needs_memory
        points = reader.points if reader.kind in ("point", "gather") else source.points
        root.uses.append(Use(reader.position, points, self._repeats(reader, source), _reads_part(source)))

    def _repeats(self, reader: Value, source: Value) -> bool:
        """Whether a reader's inner loops compute the source's root again and again."""
        if source is source.root and reader.kind != "gather":
            return False
        if reader.kind in ("gather", "contract"):
            return source.points < reader.points
        dims = source.axes
        index: Index = canonical(dims)
        try:
            while source.kind == "view":
                index = map_index(source, index)
                source = source.inputs[0]
        except NotAffine:
            return False
        used = frozenset().union(*(e.axes() for e in index))
        order = [d.name in used for d in proper(dims)]
        return False in order and True in order[order.index(False) :]

    # -- lowering by kind ---------------------------------------------------------------------
    def _lower(self, value: Value) -> None:
        if value.kind == "view":
            if value.node is not None and value.node.op == LATE:
                value.since = len(self.fuser.steps)
            return
        if self._is_empty(value):
            self.give_memory(value)  # which nobody touches
            return
        if not value.uses and value.kind not in ("memory", "update"):
            if value.kind != "gather":
                return
            value.forced = True  # for the sake of the bounds check
        if value.node is not None and value.node.op == "empty":
            self.give_memory(value)
        elif value.kind in ("point", "gather"):
            self.point(value)
        elif value.kind in ("reduce", "scan"):
            self._reduce(value)
        elif value.kind == "contract":
            lower_contract(self, value)
        elif value.kind == "convolve":
            lower_convolution(self, value)
        elif value.kind == "update":
            self.updates.lower(value)
        else:
            self._memory(value)

    def _is_empty(self, value: Value) -> bool:
        """Whether a value has no elements, and nothing is computed for it."""
        return value.points == 0 and self.is_static(value) and value.kind not in ("memory", "update")

    def _reduce(self, value: Value) -> None:
        (source,) = value.inputs
        if source.points == 0 and self.is_static(source) and value.kind == "reduce":
            assert value.row is not None
            assert isinstance(value.row.lower, opdef.Reduce)
            self.constant(value, REDUCERS[value.row.lower.combine].identity(value.dtype))
            return
        dims = source.axes
        axes = (value.params["axis"],) if "axis" in value.params else tuple(value.params["axes"])
        reads = reads_at(self, (source, canonical(dims)))
        reduced = frozenset(dims[a].name for a in axes)
        scan = value.kind == "scan"
        weight, cost, raises = tree_of(value.inputs)
        root = Root(
            "compute", value, dims, reads, reduced, scan, weight=weight + 1, cost=cost + 1, raises=raises
        )
        index = canonical(dims) if scan else canonical(d for k, d in enumerate(dims) if k not in axes)
        self.enter(root, value, index)

    def _memory(self, value: Value) -> None:
        """Constants and results of library calls."""
        assert value.node is not None
        assert value.row is not None
        if isinstance(value.row.lower, opdef.Constant):
            storage = Storage(value.dtype, product(value.shape), "constant", len(self.constants))
            self.constants.append(value.params["literal"].to_numpy())
            value.place = type_place(value, storage)
            return
        results = [self.values[v.name] for v in value.node.outputs]
        if value is not results[0]:
            return
        for source in value.inputs:
            self.need_memory(source)
        for result in results:
            self.give_memory(result)
        call = self.fuser.add_call("extern", value, value.inputs, results)
        self.fuser.raising.append(call.position)
        self._written(results, call.position)

    def _written(self, results: list[Value], position: int) -> None:
        for result in results:
            assert result.place is not None
            result.place.storage.writes.append(position)

    # -- outputs ------------------------------------------------------------------------------
    def _finish_outputs(self) -> None:
        for k, out in enumerate(self.graph.outputs):
            if out.view is not None or k in self.outputs:
                continue
            value = self.values[out.var.name]
            place = value.root.place
            whole = place is not None and not value.root.borrowed and _is_whole_temp(value.root, place)
            if place is not None and whole and _covers(value):
                place.storage.role = "output"
                place.storage.number = k
                self.outputs[k] = place.storage
                continue
            self._copy_out(k, value)

    def _copy_out(self, number: int, value: Value) -> None:
        storage = self.output_storage(value, number)
        self.write(value, Place(storage, output_strides(value), 0), value.shape)


def _check_is_looked_at(lower: opdef.Gather | opdef.Scatter, node: Node) -> None:
    """Loops over elements that there are none of look at no positions: such a graph is interpreted."""
    first = 2 if isinstance(lower, opdef.Scatter) else 1
    if _is_empty(node.inputs[0]) and not any(_is_empty(var) for var in node.inputs[first:]):
        raise LoweringError("positions in an array without elements")


def _is_empty(var: Var) -> bool:
    """Whether an array is known to have no elements: nothing is asked of sizes that depend on the data."""
    return any(not is_unbacked(size) and size == 0 for size in var.shape)


def _positions_read(lower: opdef.Gather | opdef.Scatter, node: Node) -> tuple[Any, ...]:
    """What says which positions a gather or scatter looks at, and in what."""
    first = 2 if isinstance(lower, opdef.Scatter) else 1
    params = tuple((name, value) for name, value in node.params if name != "combine")
    sizes = tuple(d.key if isinstance(d, SymInt) else d for d in node.inputs[0].shape)
    return lower.address, repr(params), sizes, tuple(var.name for var in node.inputs[first:])


# Views that show every element of what they view.
_COVERING = frozenset(("transpose", "reshape", "broadcast_in_dim"))


def _reads_part(value: Value) -> bool:
    """Whether a chain of views may leave elements of its root out."""
    while value.kind == "view":
        if value.row is None or value.row.name not in _COVERING:
            return True
        value = value.inputs[0]
    return False


def output_strides(value: Value) -> tuple[Dim, ...]:
    """The layout of a fresh output: the value's own where it is dense, else C order."""
    return (
        value.type.strides if is_dense(value.shape, value.type.strides) else contiguous_strides(value.shape)
    )


def is_dense(shape: tuple[Dim, ...], strides: tuple[Dim, ...]) -> bool:
    """Whether strides are those of a permuted contiguous array, structurally."""
    order = sorted(range(len(shape)), key=lambda k: (-hint(strides[k]), k))
    wanted = contiguous_strides(tuple(shape[k] for k in order))
    return all(same(shape[k], 1) or same(strides[k], w) for k, w in zip(order, wanted))


def _covers(value: Value) -> bool:
    """Whether a value is its root, or a view with all of the root's elements in the value's own layout."""
    if value.kind != "view":
        return True
    if not same(product(value.shape), product(value.root.shape)):
        return False
    try:
        place = place_of(value)
    except NotAffine:
        return False
    return same(place.offset, 0) and same_shape(place.strides, value.type.strides)


def _is_whole_temp(value: Value, place: Place) -> bool:
    """Whether a place is all of a temporary storage, in the value's own layout."""
    at_start = isinstance(place.offset, int) and place.offset == 0
    if place.storage.role != "temp" or not at_start or not same_shape(place.strides, value.type.strides):
        return False
    return same(place.storage.size, product(value.shape))  # a slice that was updated in place is a part


def _kind(row: opdef.OpDef, node: Node) -> str:
    lower = row.lower
    for cls, kind in _KINDS.items():
        if isinstance(lower, cls):
            if kind == "memory" and isinstance(lower, opdef.Constant) and hint(node.out.type.size) == 1:
                return "point"
            return kind
    raise LoweringError(f"{node.op}: lowering of {type(lower).__name__} is not supported")


_KINDS: dict[type, str] = {
    opdef.Pointwise: "point",
    opdef.View: "view",
    opdef.Update: "update",
    opdef.Scatter: "update",
    opdef.Reduce: "reduce",
    opdef.Scan: "scan",
    opdef.Gather: "gather",
    opdef.Contract: "contract",
    opdef.Constant: "memory",
    opdef.Convolve: "convolve",
    opdef.Extern: "memory",
}
