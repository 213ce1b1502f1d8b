"""A graph while it is changed: nodes come and go, types are inferred anew, the order is made at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DyncompError, GraphError, VerifyError
from ..graph.ir import (
    COPY,
    ArrayType,
    Graph,
    GraphOutput,
    Loc,
    Node,
    OpTable,
    Var,
    same_shape,
    same_type,
    verify,
)
from ..graph.passes.dce import eliminate_dead_code
from ..graph.rewrite import Rebuilder, match_type
from ..prims.opdef import Pointwise
from .arguments import has_symbols_in
from .base import GraphBase, new_constant
from .normal import place_of
from .pieces import Piece


class Draft:
    """``nodes`` and what they give; every value is known by its name."""

    def __init__(self, function: GraphBase) -> None:
        self.name = function.__name__
        self.owner = function.owner
        self.table: OpTable = function.table
        self.graph: Graph = function.graph
        self.nodes: list[Node] = list(function.graph.nodes)
        self.outputs: list[GraphOutput] = list(function.graph.outputs)
        self.mutations = list(function.graph.mutations)
        self.vars: dict[str, Var] = {var.name: var for var in function.graph.values()}
        self.constants: dict[str, tuple[str, Any]] = {}  # new ones, by the name of the input
        self._names = list(function.constants)
        self._builder = Rebuilder(function.graph, self.table)

    # -- making nodes ---------------------------------------------------------------------------
    def emit(self, op: str, inputs: Sequence[Var], params: Mapping[str, Any], loc: Loc | None) -> list[Node]:
        """New nodes that compute ``op``, not inserted yet; the last one's results are its results. Raises
        what the op's meta function raises."""
        builder = self._start(loc)
        builder.emit(op, *inputs, **params)
        return self._made()

    def splice(self, piece: Piece, inputs: Sequence[Var], loc: Loc | None) -> list[Var]:
        """Insert the nodes of a traced function at the end, reading ``inputs`` for its arguments; what it
        returns."""
        traced = piece.function
        values = {value.name: inputs[k] for value, k in zip(traced.inputs, piece.arguments, strict=True)}
        for name, array in traced.constants.items():
            values[traced.constants.value(name).name] = self.constant(name, array)
        builder = self._start(loc)
        for node in traced.graph.nodes:
            read = [values[var.name] for var in node.inputs]
            _refuse_layout(node, read, self.table)
            made = builder.emit(node.op, *read, **node.kwargs)
            values.update(
                zip((var.name for var in node.outputs), made if isinstance(made, tuple) else [made])
            )
        self.insert(len(self.nodes), self._made())
        outputs = [values[out.var.name] for out in traced.graph.outputs]
        return [outputs[k] if kind == "output" else inputs[k] for kind, k in piece.results]

    def constant(self, name: str, array: Any) -> Var:
        """A new constant of the graph."""
        if self.owner is not None and isinstance(array, (np.ndarray, np.generic)):
            array = self.owner.from_numpy(array)
        names = [*self._names, *(name for name, _ in self.constants.values())]
        before = replace(self.graph, nodes=tuple(self.nodes))
        graph, var, found = new_constant(before, name, array, self.owner, names, self.table)
        self.graph = replace(graph, nodes=self.graph.nodes)
        self.constants[var.name] = (found, array)
        self.vars[var.name] = var
        return var

    def number(self, value: Any, like: ArrayType, loc: Loc | None) -> tuple[list[Node], Var]:
        """Nodes that give a number as an array of the type ``like``."""
        builder = self._start(loc)
        dtype = like.dtype
        number = dtype.numpy.type(value).item()
        scalar = builder.emit("full", shape=(), value=number, dtype=dtype, device=like.device)
        made = builder.emit("broadcast_in_dim", scalar, shape=like.shape, dims=()) if like.ndim else scalar
        return self._made(), made

    def broadcast(self, inputs: Sequence[Var], loc: Loc | None) -> tuple[list[Node], list[Var]]:
        """Nodes that bring values to one shape, by NumPy's rules. Raises ``ValueError``."""
        shapes = [var.shape for var in inputs]
        if all(same_shape(shape, shapes[0]) for shape in shapes):
            return [], list(inputs)
        if any(has_symbols_in(var.type) for var in inputs):
            raise ValueError("values of different shapes with symbolic sizes")
        shape = np.broadcast_shapes(*shapes)
        builder = self._start(loc)
        made = []
        for var in inputs:
            if var.shape != shape:
                kept = [axis for axis, size in enumerate(var.shape) if size != 1]
                ahead = len(shape) - var.ndim
                dims = tuple(ahead + axis for axis in kept)
                if len(kept) != var.ndim:
                    var = builder.emit("reshape", var, shape=tuple(var.shape[axis] for axis in kept))
                var = builder.emit("broadcast_in_dim", var, shape=shape, dims=dims)
            made.append(var)
        return self._made(), made

    def converted(self, var: Var, type: ArrayType, loc: Loc | None) -> Var | None:
        """``var`` laid out as ``type`` says; ``None`` where dtype or shape differ."""
        builder = self._start(loc)
        found = match_type(builder, var, type)
        self.insert(len(self.nodes), self._made())
        return found

    def _start(self, loc: Loc | None) -> Rebuilder:
        self._builder.nodes = []
        self._builder.loc = loc
        return self._builder

    def _made(self) -> list[Node]:
        made, self._builder.nodes = self._builder.nodes, []
        return made

    # -- changing -------------------------------------------------------------------------------
    def insert(self, position: int, nodes: Sequence[Node]) -> None:
        self.nodes[position:position] = nodes
        for node in nodes:
            self.vars.update({var.name: var for var in node.outputs})

    def position(self, name: str) -> int:
        """Of the node that makes a value; -1 for an input."""
        for position, node in enumerate(self.nodes):
            if any(var.name == name for var in node.outputs):
                return position
        return -1

    def node(self, named: Any) -> Node:
        """The node of this name. Raises :class:`GraphError`."""
        name = self.find(named).name
        position = self.position(name)
        if position < 0:
            raise GraphError(f"{self.name}: {name} is an input of the graph, not a node")
        return self.nodes[position]

    def find(self, named: Any) -> Var:
        """The value that a node, a value or a name stands for. Raises :class:`GraphError`."""
        name = named if isinstance(named, str) else getattr(named, "name", None)
        if isinstance(name, str) and name in self.vars:
            return self.vars[name]
        raise GraphError(f"{self.name} has no value {named if isinstance(named, str) else repr(named)}")

    def users(self, name: str) -> list[Node]:
        return [node for node in self.nodes if any(var.name == name for var in node.inputs)]

    def replace_node(self, old: Node, new: Node) -> None:
        self.nodes[next(k for k, node in enumerate(self.nodes) if node is old)] = new
        self.vars.update({var.name: var for var in new.outputs})

    def substitute(self, old: Var, new: Var, only: Callable[[Node], bool] = lambda node: True) -> None:
        """Have all that reads ``old`` read ``new``."""
        if not same_type(old.type, new.type, strides=True):
            new = self.converted(new, old.type, self._loc_of(new)) or new
        for position, node in enumerate(self.nodes):
            if any(var.name == old.name for var in node.inputs) and only(node):
                inputs = tuple(new if var.name == old.name else var for var in node.inputs)
                self.nodes[position] = replace(node, inputs=inputs)
        self.outputs = [replace(out, var=new) if out.var.name == old.name else out for out in self.outputs]
        self.mutations = [(index, new if var.name == old.name else var) for index, var in self.mutations]

    def _loc_of(self, var: Var) -> Loc | None:
        position = self.position(var.name)
        return None if position < 0 else self.nodes[position].loc

    def erase(self, node: Node) -> None:
        names = {var.name for var in node.outputs}
        users = [user for user in self.nodes if any(var.name in names for var in user.inputs)]
        if users:
            raise GraphError(f"{place_of(node)} cannot be erased: {place_of(users[0])} reads it")
        if any(out.var.name in names for out in self.outputs):
            raise GraphError(f"{place_of(node)} cannot be erased: the function returns it")
        if any(var.name in names for _, var in self.mutations):
            raise GraphError(f"{place_of(node)} cannot be erased: it is written into an argument")
        self.nodes = [other for other in self.nodes if other is not node]
        for name in names:
            del self.vars[name]

    def discard(self, nodes: Iterable[Node]) -> None:
        """Remove those that nothing reads any more, also where running them could raise."""
        names = {node.outputs[0].name for node in nodes}
        used = {out.var.name for out in self.outputs} | {var.name for _, var in self.mutations}
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if node.outputs[0].name in names and not any(var.name in used for var in node.outputs):
                continue
            used.update(var.name for var in node.inputs)
            kept.append(node)
        self.nodes = kept[::-1]

    # -- the end --------------------------------------------------------------------------------
    def finished(self) -> Graph:
        """The graph, ordered, with types inferred anew, and verified. Raises :class:`GraphError`."""
        self._sort()
        self._drop_dead()
        self._infer()
        outputs = [self._output(out) for out in self.outputs]
        mutations = []
        for index, var in self.mutations:
            target, var = self.graph.inputs[index], self.vars[var.name]
            if not same_type(target.var.type, var.type):
                what = f"{target.label or target.var.name}: {target.var.type}"
                raise GraphError(f"{self.name} writes {var.type} into {what}")
            mutations.append((index, var))
        graph = replace(
            self.graph, nodes=tuple(self.nodes), outputs=tuple(outputs), mutations=tuple(mutations)
        )
        try:
            return verify(graph, self.table)
        except VerifyError as error:
            raise GraphError(f"{self.name}: {error}") from error

    def _sort(self) -> None:
        """Nodes behind what they read, otherwise in their order."""
        makers = {var.name: node for node in self.nodes for var in node.outputs}
        done: set[int] = set()
        entered: set[int] = set()
        ordered: list[Node] = []
        for first in self.nodes:
            stack = [first]
            while stack:
                node = stack[-1]
                if id(node) in done:
                    stack.pop()
                    continue
                waiting = [
                    makers[v.name] for v in node.inputs if v.name in makers and id(makers[v.name]) not in done
                ]
                if waiting and id(node) in entered:
                    raise GraphError(f"{place_of(node)} would read its own result")
                entered.add(id(node))
                if waiting:
                    stack.extend(waiting)
                    continue
                done.add(id(node))
                ordered.append(node)
                stack.pop()
        self.nodes = ordered

    def _drop_dead(self) -> None:
        parts = (tuple(self.nodes), tuple(self.outputs), tuple(self.mutations))
        graph = replace(self.graph, nodes=parts[0], outputs=parts[1], mutations=parts[2])
        self.nodes = list(eliminate_dead_code(graph, self.table).nodes)

    def _infer(self) -> None:
        known = {inp.var.name: inp.var for inp in self.graph.inputs}
        for position, node in enumerate(self.nodes):
            for var in node.inputs:
                if var.name not in known:
                    raise GraphError(f"{place_of(node)} reads {var.name}, which nothing computes any more")
            inputs = tuple(known[var.name] for var in node.inputs)
            node = self._retyped(node, inputs)
            self.nodes[position] = node
            known.update({var.name: var for var in node.outputs})
        self.vars = known

    def _retyped(self, node: Node, inputs: tuple[Var, ...]) -> Node:
        if node.op == COPY:
            return replace(node, inputs=inputs)
        _refuse_layout(node, inputs, self.table)
        try:
            inferred = self.table[node.op].meta(*(var.type for var in inputs), **node.kwargs)
        except (TypeError, ValueError, IndexError, DyncompError) as error:
            found = ", ".join(f"{var.name}: {var.type}" for var in inputs)
            raise GraphError(f"{place_of(node)} cannot read {found}: {error}") from error
        types = inferred if isinstance(inferred, tuple) else (inferred,)
        pairs = zip(node.outputs, types, strict=True)
        outputs = tuple(var if var.type == type else Var(var.name, type) for var, type in pairs)
        if inputs == node.inputs and outputs == node.outputs:
            return node
        return replace(node, inputs=inputs, outputs=outputs)

    def _output(self, out: GraphOutput) -> GraphOutput:
        if out.var.name not in self.vars:
            raise GraphError(f"{self.name} returns {out.var.name}, which nothing computes any more")
        var = self.vars[out.var.name]
        if out.view is not None and not same_type(var.type, out.var.type, strides=True):
            raise GraphError(f"{self.name} returns a view of {var.name}, which has another type now")
        kind = "array" if out.kind != "array" and var.ndim else out.kind
        return replace(out, var=var, kind=kind)


def _refuse_layout(node: Node, inputs: Sequence[Var], table: OpTable) -> None:
    """Ops that say where elements lie in memory cannot read arrays of another layout."""
    if "strides" not in table[node.op].params:
        return
    for old, new in zip(node.inputs, inputs):
        if not same_type(old.type, new.type, strides=True):
            raise GraphError(f"{place_of(node)} reads memory of the layout {old.type}, not {new.type}")


def is_pointwise(op: str, table: OpTable) -> bool:
    row: Any = table[op]
    return isinstance(row.lower, Pointwise)
