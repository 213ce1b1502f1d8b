"""From a captured graph with views and ``copy_`` to a functional one.

Every captured value has a *base* (an input or a freshly made value) and a chain of view ops that leads
to it from there. The base's current contents are one value of the new graph; a write through a view
replaces them by an updated value, and a view is made again from the current contents when it is next
read. At the end the contents of written inputs become ``mutations``, and outputs that share memory
become ``ViewOf`` windows on an input or on another (perhaps hidden) output.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import Unsupported
from ..graph.ir import COPY, ArrayType, Graph, GraphOutput, Loc, Node, OpTable, Var, ViewOf, same_shape
from ..graph.rewrite import Rebuilder, emit_reshape, frozen_key, strides_agree, with_strides
from ..prims.layout import view_offset
from ..prims.markers import STOP
from ..prims.opdef import Marker
from ..symbolic.integers import Dim, hint, same


class _Base:
    """Memory: an input's (``input`` is its number) or a fresh value's. ``value``: what it holds now."""

    __slots__ = ("input", "type", "value", "var", "version", "writable", "written_at")

    def __init__(self, var: Var, value: Var, input: int | None = None) -> None:
        self.var = var
        self.type = var.type
        self.value = value
        self.input = input
        self.version = 0
        self.writable = False
        self.written_at: Loc | None = None


class _Alias:
    """A captured value: a window on ``base``, made by ``node`` from ``parent`` (``None``: all of it).

    ``cached`` is its value in the new graph as of ``version`` of the base.
    """

    __slots__ = ("base", "var", "parent", "node", "cached", "version")

    def __init__(self, base: _Base, var: Var, parent: _Alias | None = None, node: Node | None = None) -> None:
        self.base = base
        self.var = var
        self.parent = parent
        self.node = node
        self.cached: Var | None = None
        self.version = -1


def functionalize(graph: Graph, table: OpTable) -> Graph:
    """The functional form of ``graph``.

    Inputs must not overlap one another in memory where one of them is written (capture guards it).
    Raises ``Unsupported`` for a write through a view whose elements share memory.
    """
    if graph.functional:
        return graph
    if _shares_nothing(graph, table):
        outputs = tuple(
            GraphOutput(out.var, out.kind, readonly=out.kind == "array" and out.readonly)
            for out in graph.outputs
        )
        return replace(graph, outputs=outputs, functional=True)
    return _Functionalizer(graph, table).run()


def _shares_nothing(graph: Graph, table: OpTable) -> bool:
    """Whether nothing is written and each output array has memory of its own: then the nodes are right as
    they are."""
    fresh: set[str] = set()
    for node in graph.nodes:
        if node.op in (COPY, "as_strided"):
            return False
        if not getattr(table[node.op], "is_view", False):
            fresh.update([out.name for out in node.outputs])
    handed_out = [out.var.name for out in graph.outputs if out.kind == "array"]
    return len(set(handed_out)) == len(handed_out) and fresh.issuperset(handed_out)


class _Functionalizer:
    def __init__(self, graph: Graph, table: OpTable) -> None:
        self.graph = graph
        self.table = table
        self.builder = Rebuilder(graph, table)
        self.aliases: dict[str, _Alias] = {}
        self.bases: list[_Base] = []
        self.windows: dict[Any, _Alias] = {}
        for number, inp in enumerate(graph.inputs):
            # a scalar is passed by value: nothing can share its memory
            self._add_base(inp.var, inp.var, number if inp.kind == "array" else None)
        self.scalars = {inp.var.name for inp in graph.inputs if inp.kind != "array"}

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self.builder.loc = node.loc
            self._node(node)
        self.builder.loc = None
        mutations = [(b.input, b.value) for b in self.bases if b.input is not None and b.value != b.var]
        outputs = _Outputs(self).make()
        return self.builder.rebuilt(outputs, mutations, functional=True)

    def _add_base(self, var: Var, value: Var, number: int | None = None) -> None:
        base = _Base(var, value, number)
        self.bases.append(base)
        self.aliases[var.name] = _Alias(base, var)

    def _node(self, node: Node) -> None:
        if node.op == COPY:
            dst, src = node.inputs
            self._write(self.aliases[dst.name], self.read(self.aliases[src.name]))
        elif getattr(self.table[node.op], "is_view", False):
            self._view_node(node)
        else:
            self._compute(node)

    def _view_node(self, node: Node) -> None:
        parent = self.aliases[node.inputs[0].name]
        if node.op == "as_strided" and parent.parent is not None:
            # a window in elements of memory: say it of the base, whose layout is known
            params = node.kwargs
            params["offset"] = params["offset"] + _offset(parent)
            while parent.parent is not None:
                parent = parent.parent
            node = replace(node, inputs=(parent.var,), params=tuple(params.items()))
        # equal windows are one alias, so that what is written through one is read through the other
        key = (id(parent), node.op, frozen_key(node.params))
        alias = self.windows.get(key)
        if alias is None:
            alias = self.windows[key] = _Alias(parent.base, node.out, parent, node)
        self.aliases[node.out.name] = alias

    def _compute(self, node: Node) -> None:
        inputs = self._operands(node)
        if inputs == node.inputs:
            self.builder.keep(node)
            values = node.outputs
        else:
            made = self.builder.emit(node.op, *inputs, **node.kwargs)
            values = made if isinstance(made, tuple) else (made,)
        for var, value in zip(node.outputs, values, strict=True):
            self._add_base(var, value)

    def _operands(self, node: Node) -> tuple[Var, ...]:
        aliases = [self.aliases[v.name] for v in node.inputs]
        lower = self.table[node.op].lower  # type: ignore[attr-defined]
        if isinstance(lower, Marker):
            first = len(aliases) - lower.variables(len(aliases), **node.kwargs)
            for alias in aliases[first:]:
                if alias.base.version:
                    raise lower.refusal(f"{lower.written} at {alias.base.written_at}")
        return tuple(map(self.read, aliases))

    # -- reading --------------------------------------------------------------------------------
    def read(self, alias: _Alias) -> Var:
        """The alias's contents now, as a value of the new graph."""
        stale: list[_Alias] = []
        while alias.parent is not None and (alias.cached is None or alias.version != alias.base.version):
            stale.append(alias)
            alias = alias.parent
        value = alias.base.value if alias.parent is None else alias.cached
        assert value is not None
        for view in reversed(stale):
            value = self._view(view, value)
            view.cached = value
            view.version = view.base.version
        return value

    def _view(self, alias: _Alias, value: Var) -> Var:
        """The window of ``alias`` on ``value``, its parent's contents."""
        node, parent = alias.node, alias.parent
        assert node is not None and parent is not None
        if value == node.inputs[0] and alias.cached is None:
            self.builder.keep(node)
            return node.out
        if node.op == "reshape":
            return emit_reshape(self.builder, value, node.out.shape)
        if node.op == "as_strided":
            value = with_strides(self.builder, value, parent.var.type.strides)
        made: Var = self.builder.emit(node.op, value, loc=node.loc, **node.kwargs)
        return made

    # -- writing --------------------------------------------------------------------------------
    def _write(self, target: _Alias, value: Var) -> None:
        base = target.base
        self._check_writable(base)
        contents = value
        alias = target
        while alias.parent is not None:
            contents = self._write_through(alias, contents)
            alias = alias.parent
        base.value = contents
        base.version += 1
        base.written_at = self.builder.loc
        # what was just written need not be read back
        target.cached = value
        target.version = base.version

    def _write_through(self, alias: _Alias, value: Var) -> Var:
        """The contents of ``alias.parent`` after ``value`` was written to ``alias``."""
        node, parent = alias.node, alias.parent
        assert node is not None and parent is not None
        params = node.kwargs
        if node.op == STOP:
            return value
        if node.op == "transpose":
            perm = params["perm"]
            inverse = tuple(sorted(range(len(perm)), key=perm.__getitem__))
            return self.builder.emit("transpose", value, perm=inverse)
        if node.op == "reshape":
            return emit_reshape(self.builder, value, parent.var.shape)
        if node.op == "broadcast_in_dim":
            _check_expands_only(parent.var, node)
            return emit_reshape(self.builder, value, parent.var.shape)
        if node.op == "strided_slice" and _is_whole(parent.var, params):
            return value
        contents = self.read(parent)
        if node.op == "as_strided":
            if may_self_overlap(alias.var.type):
                raise Unsupported("a write to a strided view whose elements share memory")
            contents = with_strides(self.builder, contents, parent.var.type.strides)
        scatter = self.table[node.op].lower.scatter  # type: ignore[attr-defined]
        return self.builder.emit(scatter, contents, value, **params)

    def _check_writable(self, base: _Base) -> None:
        if base.writable:
            return
        if base.var.name in self.scalars:
            raise Unsupported("a write to a scalar")
        if base.input is not None:
            inp = self.graph.inputs[base.input]
            if may_self_overlap(inp.var.type):
                raise Unsupported(f"a write to {inp.label or 'an array'} whose elements share memory")
        base.writable = True


class _Outputs:
    """Works out which outputs share memory and with what."""

    def __init__(self, owner: _Functionalizer) -> None:
        self.owner = owner
        self.aliases = [owner.aliases[out.var.name] for out in owner.graph.outputs]
        self.shared = [out.kind == "array" for out in owner.graph.outputs]
        # where each fresh base is handed out: the number of the output that is all of it
        self.place: dict[int, int] = {}
        self.hidden: list[GraphOutput] = []

    def make(self) -> list[GraphOutput]:
        self._place_bases()
        made: list[GraphOutput] = []
        for number, out in enumerate(self.owner.graph.outputs):
            alias = self.aliases[number]
            if not self.shared[number]:
                made.append(GraphOutput(self.owner.read(alias), out.kind))
            elif self.place.get(id(alias.base)) == number:
                made.append(GraphOutput(self._contents(alias.base), out.kind, readonly=out.readonly))
            else:
                view = self._window(alias)
                made.append(GraphOutput(self._viewed(alias), out.kind, view, readonly=out.readonly))
        return made + self.hidden

    def _place_bases(self) -> None:
        count = len(self.aliases)
        for number, alias in enumerate(self.aliases):
            fresh = self.shared[number] and alias.base.input is None
            if fresh and alias.parent is None:
                self.place.setdefault(id(alias.base), number)
        for number, alias in enumerate(self.aliases):
            fresh = self.shared[number] and alias.base.input is None
            if fresh and id(alias.base) not in self.place:
                self.place[id(alias.base)] = count + len(self.hidden)
                self.hidden.append(GraphOutput(self._contents(alias.base), hidden=True))

    def _contents(self, base: _Base) -> Var:
        """A fresh base's final value, laid out as captured."""
        if strides_agree(base.value.type, base.type.strides):
            return base.value
        base.value = with_strides(self.owner.builder, base.value, base.type.strides)
        return base.value

    def _viewed(self, alias: _Alias) -> Var:
        base = alias.base
        if base.input is not None:
            return self.owner.graph.inputs[base.input].var
        return self._contents(base)

    def _window(self, alias: _Alias) -> ViewOf:
        type = alias.var.type
        kind, index = "input", alias.base.input
        if index is None:
            kind, index = "output", self.place[id(alias.base)]
        return ViewOf(kind, index, type.shape, type.strides, _offset(alias), _is_stopped(alias))


def _offset(alias: _Alias) -> Dim:
    """Where the alias's first element lies from its base's, in elements of memory as captured."""
    total: Dim = 0
    while alias.parent is not None:
        assert alias.node is not None
        total = total + _view_offset(alias.node, alias.parent.var.type)
        alias = alias.parent
    return total


def _is_stopped(alias: _Alias | None) -> bool:
    while alias is not None:
        if alias.node is not None and alias.node.op == STOP:
            return True
        alias = alias.parent
    return False


def _view_offset(node: Node, parent: ArrayType) -> Dim:
    found = 0 if node.op == STOP else view_offset(node, parent)
    if found is None:
        raise Unsupported(f"an output that is a {node.op} view")
    return found


def _is_whole(parent: Var, params: dict[str, Any]) -> bool:
    """Whether a slice is all of its parent, in order."""
    return (
        all(same(start, 0) for start in params["starts"])
        and all(same(step, 1) for step in params["steps"])
        and same_shape(tuple(params["sizes"]), parent.shape)
    )


def _check_expands_only(parent: Var, node: Node) -> None:
    """Writing through ``broadcast_in_dim`` is possible where it only adds axes of size 1."""
    dims = tuple(node.kwargs["dims"])
    for axis, size in enumerate(node.out.shape):
        expected: Dim = parent.shape[dims.index(axis)] if axis in dims else 1
        if not same(size, expected):
            raise Unsupported("a write to a broadcast array, whose elements share memory")


def may_self_overlap(type: ArrayType) -> bool:
    """Whether two elements could share memory: the strides, from the smallest, do not step over all
    that the smaller ones span. With symbolic sizes the answer holds by the guards that asking records."""
    axes = [axis for axis, dim in enumerate(type.shape) if not same(dim, 1)]
    if any(same(type.shape[axis], 0) for axis in axes):
        return False
    reach: Dim = 0
    for axis in sorted(axes, key=lambda a: (abs(hint(type.strides[a])), hint(type.shape[a]))):
        stride = abs(type.strides[axis])
        if not stride > reach:
            # a symbolic size may be 1 at run time too
            return hint(type.shape[axis]) > 1 or type.shape[axis] > 1
        reach = reach + stride * (type.shape[axis] - 1)
    return False
