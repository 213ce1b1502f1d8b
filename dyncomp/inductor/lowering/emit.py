"""From a cluster of computations to a loop-IR kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...dataclass import dataclass
from ...dtypes import DType
from ...errors import LoweringFault
from ...prims import opdef
from ...prims.scalar import REDUCERS, ScalarBuilder
from ...symbolic.integers import Dim, SymInt, hint, product
from ..fusion.fuse import Cluster, Root, proper
from ..loops.dependences import address_of, address_params, descend, positions_of
from ..loops.index import AxisVar, Expr, Index, Quotient, at_most, axis_expr, canonical, linear
from ..loops.loop_ir import Axis, Buffer, Kernel, Stmt
from ..loops.loop_ir import Index as BufferIndex
from ..naming import origin_of
from .contract import dims_of, loop_axes
from .values import Place, Storage, Table, Value, is_stored, place_of


@dataclass(frozen=True)
class Emitted:
    """A kernel and the storages of its buffers."""

    kernel: Kernel
    storages: tuple[Storage, ...]
    raises: bool
    ordered: bool
    points: Dim


class KernelBuilder(ScalarBuilder):
    """Appends statements; scalar values are statement names. Equal statements are shared."""

    def __init__(self, axes: Sequence[AxisVar]) -> None:
        self.axes = [a.name for a in axes]
        self.body: list[Stmt] = []
        self.stmts: dict[str, Stmt] = {}
        self.position: Index = ()
        self._shared: dict[Any, str] = {}

    # -- the scalar builder's hooks -------------------------------------------------------------
    def dtype(self, value: str) -> DType:
        return self.stmts[value].dtype

    def emit(self, op: str, args: tuple[Any, ...], dtype: DType, arg: Any = None) -> str:
        if op == "axis" and not isinstance(arg, str):
            return self.expr(self.position[arg])
        if op == "const" and isinstance(arg, SymInt):
            return self.cast(self.emit("symbol", (), dtypes.int64, arg), dtype)
        axes = {arg} if op == "axis" else self.axes_of(args)
        return self.value(op, args, axes, arg, dtype)

    def axes_of(self, args: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for a in args:
            found.update(self.stmts[a].axes)
        return found

    def value(
        self, op: str, args: Sequence[str], axes: set[str] | frozenset[str], arg: object, dtype: DType
    ) -> str:
        """Append a statement with a value, unless there is an equal one."""
        ordered = tuple(a for a in self.axes if a in axes)
        key = (op, tuple(args), ordered, _arg_key(arg), dtype)
        name = self._shared.get(key)
        if name is None:
            name = f"v{len(self.stmts)}"
            stmt = Stmt(name, op, tuple(args), ordered, arg, dtype)
            self.body.append(stmt)
            self.stmts[name] = stmt
            self._shared[key] = name
        return name

    def effect(self, op: str, args: Sequence[str], axes: Sequence[str], arg: object, dtype: DType) -> None:
        """Append a store, scatter or check."""
        self.body.append(Stmt("", op, tuple(args), tuple(axes), arg, dtype))

    def expr(self, expr: Expr) -> str:
        """An index expression as an int64 value."""
        total: str | None = None
        for atom, coefficient in sorted(expr.terms.items(), key=lambda item: repr(item)):
            if isinstance(atom, AxisVar):
                value = self.emit("axis", (), dtypes.int64, atom.name)
            else:
                op = "floor_divide" if isinstance(atom, Quotient) else "remainder"
                value = self.apply(op, self.expr(atom.expr), self.integer(atom.divisor))
            if not (isinstance(coefficient, int) and coefficient == 1):
                value = self.apply("multiply", value, self.integer(coefficient))
            total = value if total is None else self.apply("add", total, value)
        if total is None or not (isinstance(expr.constant, int) and expr.constant == 0):
            constant = self.integer(expr.constant)
            total = constant if total is None else self.apply("add", total, constant)
        return total

    def integer(self, value: Dim) -> str:
        op = "symbol" if isinstance(value, SymInt) else "const"
        return self.value(op, (), set(), value, dtypes.int64)


def _arg_key(arg: object) -> Any:
    """A hashable key that tells 0.0 from -0.0, 1 from 1.0 and True, and NaNs apart from none."""
    if isinstance(arg, tuple):
        return tuple(_arg_key(a) for a in arg)
    if isinstance(arg, BufferIndex):
        return tuple((n, _arg_key(c)) for n, c in arg.terms), _arg_key(arg.offset)
    if isinstance(arg, SymInt):
        return arg.key
    return (type(arg).__name__, repr(arg))


class ClusterEmitter:
    """Emits one cluster."""

    def __init__(self, cluster: Cluster, table: Table) -> None:
        self.cluster = cluster
        self.table = table
        self.builder = KernelBuilder(cluster.axes)
        self.storages: list[Storage] = []
        self.memo: dict[tuple[int, Index], str] = {}
        self.raises = False
        self.leaves: frozenset[int] = frozenset()
        self.stores: list[tuple[str, tuple[str, ...], list[str], Any, DType]] = []

    def run(self, name: str) -> Emitted:
        for root in self.cluster.roots:
            self._root(root)
        # last, so that everything is read before it may be overwritten
        for store in self.stores:
            self.builder.effect(*store)
        body = _live(self.builder.body)
        used = {s.arg[0] for s in body if s.op in ("load", "gather", "store", "scatter")}
        names = [f"b{k}" for k in range(len(self.storages)) if f"b{k}" in used]
        buffers = tuple(self._buffer(n, body) for n in names)
        kept = tuple(self.storages[int(n[1:])] for n in names)
        axes = tuple(
            Axis(a.name, a.size, "reduce" if a.name in self.cluster.reduced else "parallel")
            for a in self.cluster.axes
        )
        kernel = canonical_kernel(Kernel(name, axes, buffers, tuple(body), self._origin()))
        ordered = any(s.op == "scatter" for s in body)
        points = product(a.size for a in self.cluster.axes)
        return Emitted(kernel, kept, self.raises, ordered, points)

    def _origin(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for root in self.cluster.roots:
            if root.loc is not None:
                found[origin_of(root.loc)] = None
        return tuple(found)

    def _buffer(self, name: str, body: Sequence[Stmt]) -> Buffer:
        storage = self.storages[int(name[1:])]
        reads = any(s.op in ("load", "gather") and s.arg[0] == name for s in body)
        writes = any(s.op in ("store", "scatter") and s.arg[0] == name for s in body)
        combines = any(s.op == "scatter" and s.arg[0] == name for s in body)
        mode = "inout" if (reads and writes) or combines else "out" if writes else "in"
        return Buffer(name, storage.dtype, storage.size, mode)

    def _buffer_name(self, storage: Storage) -> str:
        for k, known in enumerate(self.storages):
            if known is storage:
                return f"b{k}"
        self.storages.append(storage)
        return f"b{len(self.storages) - 1}"

    # -- roots --------------------------------------------------------------------------------
    def _root(self, root: Root) -> None:
        self.leaves = root.leaves
        if root.kind == "scatter":
            self._scatter(root)
            return
        if root.kind == "check":
            self._check(root)
            return
        if root.kind == "write":
            assert root.target is not None
            value = self.get(root.value, _mapped(canonical(root.dims), root))
            self._store(value, root.target, _mapped(root.target_index, root), root)
            return
        value = self._compute(root)
        self.memo[id(root.value), root.value.canon] = value
        if root.value.place is not None and not root.value.borrowed:
            self._store(value, root.value.place, root.value.canon, root)

    def _compute(self, root: Root) -> str:
        value = root.value
        if value.kind in ("point", "gather"):
            return self._point(value, value.canon)
        if value.kind == "contract":
            return self._contract(root)
        source = value.inputs[0]
        argument = self.get(source, _mapped(canonical(root.dims), root))
        assert value.row is not None
        assert isinstance(value.row.lower, opdef.Reduce | opdef.Scan)
        return self._reduce(root, argument, value.row.lower.combine, value.dtype)

    def _reduce(self, root: Root, argument: str, combine: str, dtype: DType) -> str:
        reduced = tuple(a for a in self.builder.axes if a in _names(root))
        if not reduced:
            if combine in ("argmax", "argmin"):
                return self.builder.const(0, dtypes.int64)
            if root.scan or not dtype.is_inexact or combine not in ("sum", "prod"):
                return argument
            # as NumPy and PyTorch begin: the sum of -0.0 is 0.0, the product of inf+0j is inf+nanj
            reducer = REDUCERS[combine]
            first = self.builder.const(reducer.identity(dtype), dtype)
            return self.builder.apply(reducer.combine, first, argument)
        everything = set(self.builder.axes)
        argument = self._widen(argument, everything)
        if root.scan:
            return self.builder.value("scan", (argument,), everything, (combine, reduced[0]), dtype)
        kept = everything - set(reduced)
        return self.builder.value("reduce", (argument,), kept, (combine, reduced), dtype)

    def _widen(self, value: str, axes: set[str]) -> str:
        """A value that varies along fewer axes, as one of these axes."""
        if set(self.builder.stmts[value].axes) == axes:
            return value
        return self.builder.value("cast", (value,), axes, None, self.builder.dtype(value))

    def _contract(self, root: Root) -> str:
        value = root.value
        _, x_index, y_index, _ = loop_axes(value, dims_of(value))
        x = self.get(value.inputs[0], _mapped(x_index, root))
        y = self.get(value.inputs[1], _mapped(y_index, root))
        if value.dtype.is_bool:
            return self._reduce(root, self.builder.apply("logical_and", x, y), "any", value.dtype)
        x, y = (self.builder.cast(v, value.dtype) for v in (x, y))
        return self._reduce(root, self.builder.apply("multiply", x, y), "sum", value.dtype)

    def _store(self, value: str, place: Place, index: Index, root: Root) -> None:
        axes = self.builder.axes
        if root.parallel_level or (root.reduced and not root.scan and _names(root)):
            axes = [a.name for a in self.cluster.parallel_axes]
        name = self._buffer_name(place.storage)
        at = _buffer_index(place.address(index))
        self.stores.append(("store", (value,), axes, (name, at), place.storage.dtype))

    # -- values -------------------------------------------------------------------------------
    def get(self, value: Value, index: Index) -> str:
        """The scalar ``value[index]``."""
        key = (id(value), index)
        name = self.memo.get(key)
        if name is None:
            name = self._get(value, index)
            self.memo[key] = name
        return name

    def _get(self, value: Value, index: Index) -> str:
        root, inner, _ = descend(value, index)
        known = self.memo.get((id(root), inner)) if inner is not None else None
        if known is not None:
            return known
        # what had no home when this computation was placed is computed here, even if it got one since
        if id(root) not in self.leaves:
            if inner is None or root.kind not in ("point", "gather"):
                raise LoweringFault(f"{root.var.name} has neither memory nor a definition here")
            return self._point(root, inner) if root is value else self.get(root, inner)
        if root.home is self.cluster or not is_stored(value):
            raise LoweringFault(f"{root.var.name} is not computed at {inner} in its kernel")
        assert root.place is not None
        return self._load(root.place.storage, _buffer_index(address_of(value, index, root, inner)))

    def _load(self, storage: Storage, at: BufferIndex) -> str:
        name = self._buffer_name(storage)
        return self.builder.value("load", (), {n for n, _ in at.terms}, (name, at), storage.dtype)

    def _point(self, value: Value, index: Index) -> str:
        if value.row is None:
            return self.get(value.inputs[0], index)
        if value.kind == "gather":
            return self._gather(value, index)
        if isinstance(value.row.lower, opdef.Constant):
            return self.builder.const(value.params["literal"].to_numpy().reshape(-1)[0].item(), value.dtype)
        assert isinstance(value.row.lower, opdef.Pointwise)
        args = [self.get(v, index) for v in value.inputs]
        outer = self.builder.position
        self.builder.position = index
        result: str = value.row.lower.expr(self.builder, *args, **value.params)
        self.builder.position = outer
        if self.builder.dtype(result) is not value.dtype:
            raise LoweringFault(f"{value.row.name} gives {self.builder.dtype(result)}, not {value.dtype}")
        return result

    # -- gathers and scatters -----------------------------------------------------------------
    def _positions(
        self, value: Value, index: Index, base: Value, place: Place
    ) -> tuple[BufferIndex, list[str], tuple[Dim, ...], tuple[Dim, ...]]:
        """The affine part of an address, and the loaded positions with their strides and sizes."""
        entries = self._entries(value, index)
        affine = [e if isinstance(e, Expr) else Expr({}, 0 if isinstance(e, str) else e) for e in entries]
        loaded = [k for k, e in enumerate(entries) if isinstance(e, str)]
        at = _buffer_index(linear(affine, place.strides, place.offset))
        strides = tuple(place.strides[k] for k in loaded)
        return at, [entries[k] for k in loaded], strides, tuple(base.shape[k] for k in loaded)

    def _entries(self, value: Value, index: Index) -> list[Any]:
        """The position in each dimension of a gather's or scatter's base: affine, or loaded."""
        assert value.row is not None
        assert isinstance(value.row.lower, opdef.Gather | opdef.Scatter)
        indices = positions_of(value)

        def load(k: int, at: Sequence[Any]) -> str:
            exprs = tuple(e if isinstance(e, Expr) else Expr({}, e) for e in at)
            return self.builder.cast(self.get(indices[k], exprs), dtypes.int64)

        types = tuple(v.type for v in value.inputs)
        entries = value.row.lower.address(self.builder, load, index, types, **address_params(value))
        return [self._known_position(e, value.inputs[0].shape[k]) for k, e in enumerate(entries)]

    def _known_position(self, entry: object, size: Dim) -> Any:
        """A loaded position that is a loop axis within bounds is affine and needs no check."""
        if not isinstance(entry, str) or self.builder.stmts[entry].op != "axis":
            return entry
        axis = next(a for a in self.cluster.axes if a.name == self.builder.stmts[entry].arg)
        return axis_expr(axis) if at_most(axis.size, size) else entry

    def _gather(self, value: Value, index: Index) -> str:
        base = value.inputs[0]
        place = place_of(base)
        at, positions, strides, sizes = self._positions(value, index, base, place)
        if not positions:
            return self._load(place.storage, at)
        self.raises = True
        wrap = (True,) * len(sizes)
        axes = self.builder.axes_of(positions) | {n for n, _ in at.terms}
        arg = (self._buffer_name(place.storage), at, strides, sizes, wrap)
        return self.builder.value("gather", positions, axes, arg, value.dtype)

    def _check(self, root: Root) -> None:
        entries = self._entries(root.value, _mapped(canonical(root.dims), root))
        loaded = [k for k, e in enumerate(entries) if isinstance(e, str)]
        if not loaded:
            return
        self.raises = True
        positions = [entries[k] for k in loaded]
        sizes = tuple(root.value.inputs[0].shape[k] for k in loaded)
        arg = (sizes, (True,) * len(sizes))
        self.builder.effect("check", positions, self.builder.axes, arg, dtypes.int64)

    def _scatter(self, root: Root) -> None:
        value = root.value
        assert root.target is not None
        assert value.row is not None
        assert isinstance(value.row.lower, opdef.Scatter)
        base, source = value.inputs[:2]
        index = _mapped(canonical(root.dims), root)
        combine = value.row.lower.combine or value.params["combine"]
        update = self.get(source, index)
        at, positions, strides, sizes = self._positions(value, index, base, root.target)
        wrap = (True,) * len(sizes)
        name = self._buffer_name(root.target.storage)
        axes = self.builder.axes
        self.raises = True
        self.builder.effect("check", positions, axes, (sizes, wrap), dtypes.int64)
        arg = (name, at, strides, sizes, wrap, combine)
        self.builder.effect("scatter", (update, *positions), axes, arg, value.dtype)


def _mapped(index: Index, root: Root) -> Index:
    return tuple(e.substitute(root.mapping) for e in index)


def _names(root: Root) -> set[str]:
    found: set[str] = set()
    for d in proper(root.dims):
        if d.name in root.reduced:
            found |= root.mapping[d.name].axes()
    return found


def _buffer_index(expr: Expr) -> BufferIndex:
    if not expr.is_affine:
        raise LoweringFault(f"address {expr} is not affine")
    terms = sorted(((a.name, c) for a, c in expr.terms.items() if isinstance(a, AxisVar)), key=_term_key)
    return BufferIndex(tuple(terms), expr.constant)


def _term_key(term: tuple[str, Dim]) -> tuple[int, str]:
    return int(term[0][1:]), term[0]


def _live(body: Sequence[Stmt]) -> list[Stmt]:
    """The statements that some effect needs."""
    needed: set[str] = set()
    kept: list[Stmt] = []
    for stmt in reversed(body):
        if not stmt.out or stmt.out in needed:
            needed.update(stmt.args)
            kept.append(stmt)
    return kept[::-1]


def canonical_kernel(kernel: Kernel) -> Kernel:
    """Values and buffers renamed in order of appearance, so that equal kernels compare equal."""
    values: dict[str, str] = {}
    buffers = {b.name: f"b{k}" for k, b in enumerate(kernel.buffers)}
    body: list[Stmt] = []
    for stmt in kernel.body:
        args = tuple(values[a] for a in stmt.args)
        arg = stmt.arg
        if stmt.op in ("load", "gather", "store", "scatter"):
            arg = (buffers[arg[0]], *arg[1:])
        out = values.setdefault(stmt.out, f"v{len(values)}") if stmt.out else ""
        body.append(Stmt(out, stmt.op, args, stmt.axes, arg, stmt.dtype))
    renamed = tuple(Buffer(buffers[b.name], b.dtype, b.size, b.mode) for b in kernel.buffers)
    return Kernel(kernel.name, kernel.axes, renamed, tuple(body), kernel.origin)


def work_of(kernel: Kernel) -> float:
    """Estimated nanoseconds per point on one core: memory traffic and arithmetic."""
    axes = frozenset(a.name for a in kernel.axes)
    nanoseconds = 0.05
    for stmt in kernel.body:
        if frozenset(stmt.axes) != axes and stmt.op != "reduce":
            continue
        nanoseconds += _stmt_ns(stmt)
    return nanoseconds


def _stmt_ns(stmt: Stmt) -> float:
    from ...prims.scalar import SCALARS

    size = stmt.dtype.itemsize
    if stmt.op in ("load", "store"):
        return size * 0.04
    if stmt.op in ("gather", "scatter"):
        return 1.0 + size * 0.1
    if stmt.op == "scan":
        return 1.0
    row = SCALARS.get(stmt.op)
    cost = row.cost if row is not None else 1
    return cost * size * 0.01


__all__ = ["ClusterEmitter", "Emitted", "canonical_kernel", "hint", "work_of"]
