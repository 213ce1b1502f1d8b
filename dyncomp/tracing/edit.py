"""The editor of a graph: ``with g.edit() as e``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DyncompError, GraphError
from ..graph.ir import Graph, Loc, Node, Var, same_type
from .arguments import is_number
from .base import GraphBase
from .draft import Draft, is_pointwise
from .normal import place_of
from .pieces import ERRORS, Traced
from .views import GraphNode, GraphValue, Index, Nodes

# A node (which stands for its result), a value, or the name of one.
Named = GraphNode | GraphValue | Var | str


class Editor:
    """Changes a graph. Nodes and values are given as such, or by name, and keep their names. An op is the
    name of a row of the table (docs/prims.md), or a function over arrays of the graph's library, which is
    traced. Operands are values, numbers, or arrays, which become constants.

    Every method raises :class:`~dyncomp.errors.GraphError`, naming the node and the program's line.
    """

    def __init__(self, function: GraphBase) -> None:
        self._draft = Draft(function)
        self._function = function
        self._bound = {**{function.constants.value(name).name: name for name in function.constants}}

    @property
    def nodes(self) -> Nodes:
        """The nodes as they are now."""
        draft = self._draft
        bound = {**self._bound, **{var: name for var, (name, _) in draft.constants.items()}}
        graph = replace(draft.graph, nodes=tuple(draft.nodes), outputs=tuple(draft.outputs))
        return Nodes(Index(graph, bound))

    def value(self, name: str) -> Var:
        """The value of this name, or the constant."""
        for var, constant in self._bound.items():
            if constant == name:
                return self._draft.vars[var]
        return self._draft.find(name)

    def constant(self, name: str, array: Any) -> Var:
        """A new constant. Its name gets a number if there is one already."""
        return self._draft.constant(name, array)

    def insert_after(self, at: Named, op: str | Callable[..., Any], *operands: Any, **params: Any) -> Var:
        """A new node after ``at``, reading ``operands`` (none: the result of ``at``); its result, which
        nothing reads yet."""
        var = self._draft.find(at)
        position = self._draft.position(var.name)
        loc = self._draft.nodes[position].loc if position >= 0 else None
        return self._insert(position + 1, op, operands or (var,), params, loc)

    def insert_before(self, at: Named, op: str | Callable[..., Any], *operands: Any, **params: Any) -> Var:
        """A new node before ``at``, reading ``operands`` (none: the first input of ``at``); its result, which
        nothing reads yet."""
        node = self._draft.node(at)
        position = self._draft.position(node.outputs[0].name)
        return self._insert(position, op, operands or node.inputs[:1], params, node.loc)

    def insert_between(self, at: Named, op: str | Callable[..., Any], *operands: Any, **params: Any) -> Var:
        """A new node that reads ``at`` and then ``operands``; all that read ``at`` read its result now."""
        var = self._draft.find(at)
        before = {id(node) for node in self._draft.nodes}
        new = self.insert_after(at, op, var, *operands, **params)
        self._draft.substitute(var, new, only=lambda node: id(node) in before)
        return new

    def replace(self, node: Named, op: str | Callable[..., Any], *operands: Any, **params: Any) -> Var:
        """Another node in the place of ``node``, reading ``operands`` (none: the same inputs); its result."""
        old = self._draft.node(node)
        if len(old.outputs) != 1:
            raise GraphError(f"{place_of(old)} has {len(old.outputs)} results: replace their uses")
        new = self.insert_before(node, op, *(operands or old.inputs), **params)
        self.replace_uses(old.out, new)
        self._draft.erase(self._draft.node(old.out))
        return new

    def replace_uses(self, old: Named, new: Named, by: Sequence[Named] | None = None) -> None:
        """Have all nodes (or those of ``by``), and the result, read ``new`` instead of ``old``."""
        before, after = self._draft.find(old), self._draft.find(new)
        position = self._draft.position(after.name)
        maker = self._draft.nodes[position] if position >= 0 else None
        if by is None:
            # what makes the new value may be made of the old one
            behind = self._makers(maker)
            self._draft.substitute(before, after, only=lambda node: id(node) not in behind)
            return
        chosen = {self._draft.node(named).outputs[0].name for named in by}
        kept, written = self._draft.outputs, self._draft.mutations
        self._draft.substitute(before, after, only=lambda node: node.outputs[0].name in chosen)
        self._draft.outputs, self._draft.mutations = kept, written

    def set_inputs(self, node: Named, *operands: Any) -> None:
        """Have ``node`` read other values."""
        old = self._draft.node(node)
        position = self._draft.position(old.outputs[0].name)
        inputs = self._operands(position, operands, old.loc)
        self._draft.replace_node(old, replace(old, inputs=tuple(inputs)))
        self._retype(self._draft.node(old.outputs[0]))

    def set_params(self, node: Named, **params: Any) -> None:
        """Change parameters of ``node``."""
        old = self._draft.node(node)
        unknown = [name for name in params if name not in self._draft.table[old.op].params]
        if unknown:
            known = ", ".join(self._draft.table[old.op].params) or "none"
            raise GraphError(f"{place_of(old)} has no parameter {unknown[0]!r}; it has {known}")
        made = replace(old, params=tuple({**old.kwargs, **params}.items()))
        self._draft.replace_node(old, made)
        self._retype(made)

    def erase(self, node: Named) -> None:
        """Remove a node that nothing reads."""
        self._draft.erase(self._draft.node(node))

    def set_result(self, number: int, value: Named) -> None:
        """Have the function return another value in the place of its array number ``number``."""
        outputs = self._draft.outputs
        if not 0 <= number < len(outputs):
            raise GraphError(f"{self._draft.name} returns {len(outputs)} arrays, none of number {number}")
        outputs[number] = replace(outputs[number], var=self._draft.find(value), view=None)

    def finished(self) -> tuple[Graph, dict[str, tuple[str, Any]]]:
        """The changed graph, verified, and its new constants."""
        return self._draft.finished(), self._draft.constants

    # -- parts ----------------------------------------------------------------------------------
    def _makers(self, node: Node | None) -> set[int]:
        """A node and those that it is computed from, which nothing else may be made to read."""
        makers = {var.name: made for made in self._draft.nodes for var in made.outputs}
        found: set[int] = set()
        waiting = [] if node is None else [node]
        while waiting:
            node = waiting.pop()
            if id(node) in found:
                continue
            found.add(id(node))
            waiting += [makers[var.name] for var in node.inputs if var.name in makers]
        return found

    def _insert(
        self,
        position: int,
        op: str | Callable[..., Any],
        operands: Sequence[Any],
        params: dict[str, Any],
        loc: Loc | None,
    ) -> Var:
        draft = self._draft
        place = f"in {draft.name}" if loc is None else f"at {loc}"
        if not isinstance(op, str):
            return self._insert_function(op, operands, params, loc, place)
        if op not in draft.table:
            raise GraphError(f"cannot insert {op} {place}: there is no such op (docs/prims.md)")
        before = len(draft.nodes)
        try:
            inputs = self._operands(position, operands, loc)
            if is_pointwise(op, draft.table) and len(inputs) > 1:
                nodes, inputs = draft.broadcast(inputs, loc)
                draft.insert(position + len(draft.nodes) - before, nodes)
            nodes = draft.emit(op, inputs, params, loc)
        except (TypeError, ValueError, IndexError, DyncompError) as error:
            if isinstance(error, GraphError):
                raise
            raise GraphError(f"cannot insert {op} {place}: {error}") from error
        draft.insert(position + len(draft.nodes) - before, nodes)
        return nodes[-1].outputs[0]

    def _insert_function(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        params: dict[str, Any],
        loc: Loc | None,
        place: str,
    ) -> Var:
        draft = self._draft
        inputs = [operand if is_number(operand) else self._value(operand) for operand in operands]
        arrays = [value for value in inputs if isinstance(value, Var)]

        def call(*args: Any) -> Any:
            rest = iter(args)
            return function(*[next(rest) if isinstance(v, Var) else v for v in inputs], **params)

        traced = Traced(function if len(arrays) == len(inputs) and not params else call, draft.owner)
        try:
            piece = traced([var.type for var in arrays])
        except ERRORS as error:
            name = getattr(function, "__qualname__", repr(function))
            raise GraphError(f"cannot insert {name} {place}: {error}") from error
        if not piece.single:
            raise GraphError(f"cannot insert {traced.name} {place}: it returns {len(piece.results)} values")
        return draft.splice(piece, arrays, loc)[0]

    def _value(self, operand: Any) -> Var:
        if isinstance(operand, (GraphNode, GraphValue, Var, str)):
            return self.value(operand) if isinstance(operand, str) else self._draft.find(operand)
        if hasattr(operand, "shape") and hasattr(operand, "dtype"):
            return self._draft.constant("constant", operand)
        raise GraphError(f"{operand!r} is no value of {self._draft.name}, no number and no array")

    def _operands(self, position: int, operands: Sequence[Any], loc: Loc | None) -> list[Var]:
        made = [operand if is_number(operand) else self._value(operand) for operand in operands]
        first = next((value for value in made if isinstance(value, Var)), None)
        if first is None:
            if made:
                raise GraphError(f"{self._draft.name}: an op on numbers alone")
            return []
        inputs = []
        for value in made:
            if not isinstance(value, Var):
                nodes, value = self._draft.number(value, first.type, loc)
                self._draft.insert(position, nodes)
            inputs.append(value)
        return inputs

    def _retype(self, node: Node) -> None:
        """Infer the types of a changed node's results, and let what reads them know."""
        try:
            inferred = self._draft.table[node.op].meta(*(v.type for v in node.inputs), **node.kwargs)
        except (TypeError, ValueError, IndexError, DyncompError) as error:
            found = ", ".join(f"{var.name}: {var.type}" for var in node.inputs)
            raise GraphError(f"{place_of(node)} cannot read {found}: {error}") from error
        types = inferred if isinstance(inferred, tuple) else (inferred,)
        for old, type in zip(node.outputs, types, strict=True):
            if not same_type(old.type, type, strides=True):
                outputs = tuple(Var(v.name, t) for v, t in zip(node.outputs, types))
                self._draft.replace_node(node, replace(node, outputs=outputs))
                return
