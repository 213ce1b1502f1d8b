"""Patterns: finding the parts of a graph that compute what a function computes, and replacing them.

A pattern is a Python function, so the ops that it becomes depend on the dimensions and dtypes of its
arguments (broadcasts, conversions). It is therefore matched in two steps. Traced for some arguments, it is
first compared loosely: only ops are looked at, and what rearranges memory is looked through. That says which
values its parameters may be. Then it is traced for the types of these values, and compared exactly.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..dtypes import BY_NAME, float32
from ..errors import GraphError
from ..graph.ir import ArrayType, Graph, Node, OpTable, Var, array_type, same_type
from ..graph.rewrite import frozen_key
from .arguments import type_of
from .base import GraphBase
from .draft import Draft
from .pieces import ERRORS, Piece, Traced
from .views import GraphNode, GraphValue, Index

_MOST_CANDIDATES = 256  # choices of values for the parameters that are tried at one place
_SIZE = 4  # of all dimensions of arrays that a pattern is tried with
_DIMENSIONS = (2, 1, 3, 4, 0)


@dataclass(frozen=True, eq=False)
class Match:
    """A part of a graph that computes a pattern. ``arguments``: the values that its parameters are;
    ``result``: the value that it gives; ``nodes``: those that it consists of, in no order."""

    arguments: tuple[GraphValue, ...]
    result: GraphValue
    nodes: tuple[GraphNode, ...]

    @property
    def place(self) -> str:
        """Where the program computes the result."""
        node = self.result.producer
        return "" if node is None else node.place

    def __repr__(self) -> str:
        return f"<match of {len(self.nodes)} nodes, {self.place}>"


def find_pattern(
    function: GraphBase, pattern: Callable[..., Any], examples: Sequence[Any] = ()
) -> list[Match]:
    """See ``GraphFunction.find_pattern``."""
    return list(_Finder(function, pattern, examples).matches())


def replace_pattern(
    function: GraphBase,
    pattern: Callable[..., Any],
    replacement: Callable[..., Any],
    examples: Sequence[Any] = (),
    where: Callable[[Match], bool] | None = None,
) -> int:
    """See ``GraphFunction.replace_pattern``."""
    matches = [m for m in find_pattern(function, pattern, examples) if where is None or where(m)]
    replace_matches(function, matches, replacement)
    return len(matches)


def replace_matches(function: GraphBase, matches: Sequence[Match], replacement: Callable[..., Any]) -> None:
    """Replace what was found in ``function``, which has not been changed since."""
    if not matches:
        return
    draft = Draft(function)
    traced = Traced(replacement, function.owner)
    replaced: dict[str, Var] = {}
    for match in matches:
        inputs = [_resolved(draft.vars[value.name], replaced) for value in match.arguments]
        try:
            piece = traced([var.type for var in inputs])
            if not piece.single:
                raise GraphError(f"{traced.name} returns {len(piece.results)} values, not one")
            (made,) = draft.splice(piece, inputs, _loc_of(match))
        except ERRORS as error:
            raise GraphError(f"the replacement of {match.place} cannot be traced: {error}") from error
        old = draft.vars[match.result.name]
        if not same_type(old.type, made.type):
            raise GraphError(f"the replacement of {match.place} gives {made.type}, not {old.type}")
        draft.substitute(old, made)
        draft.discard(node._node for node in match.nodes)
        replaced[old.name] = made
    function._take(draft.finished(), draft.constants)


def _resolved(var: Var, replaced: Mapping[str, Var]) -> Var:
    while var.name in replaced:
        var = replaced[var.name]
    return var


def _loc_of(match: Match) -> Any:
    node = match.result.producer
    return None if node is None else node._node.loc


class _Finder:
    """Looks for one pattern in one graph."""

    def __init__(self, function: GraphBase, pattern: Callable[..., Any], examples: Sequence[Any]) -> None:
        self.function = function
        self.graph = function.graph
        self.index: Index = function.index
        self.table = function.table
        self.traced = Traced(pattern, function.owner)
        self.count = _parameters(pattern, examples)
        self.skeletons = [_Skeleton(piece, self.table) for piece in self._tried(examples)]

    def matches(self) -> Iterator[Match]:
        """Those that do not overlap, in the order of the graph."""
        taken: set[int] = set()
        for node in self.graph.nodes:
            if id(node) in taken or len(node.outputs) != 1:
                continue
            found = self._match_at(node)
            if found is None or any(id(inner._node) in taken for inner in found.nodes):
                continue
            taken.update(id(inner._node) for inner in found.nodes)
            yield found

    # -- what the pattern may look like ---------------------------------------------------------
    def _tried(self, examples: Sequence[Any]) -> list[Piece]:
        if examples:
            types = []
            for example in examples:
                dtype, shape, _ = type_of(example, self.function.owner)
                types.append(array_type(BY_NAME[dtype], shape))
            return [self._traced(types)]
        dtype = _usual_dtype(self.graph)
        found: dict[str, Piece] = {}
        problem: BaseException | None = None
        present = {var.ndim for var in self.graph.values()}
        dimensions = [ndim for ndim in _DIMENSIONS if ndim in present]
        choices = [(ndim,) * self.count for ndim in dimensions]
        others = list(itertools.product(dimensions, repeat=self.count)) if self.count < 4 else []
        for ndims in (*choices, *others):
            if found and len(set(ndims)) > 1:
                break  # some form is known: where it is another one, examples say so
            try:
                piece = self.traced([array_type(dtype, (_SIZE,) * ndim) for ndim in ndims])
            except ERRORS as error:
                problem = problem or error
                continue
            if piece.single and piece.results[0][0] == "output" and self._is_of_ops(piece):
                found.setdefault(_shape_of(piece), piece)
        if not found:
            raise GraphError(
                f"the pattern {self.traced.name} could not be traced with arrays of {dtype}: give examples= "
                f"of its arguments ({problem})"
            ) from problem
        return list(found.values())

    def _is_of_ops(self, piece: Piece) -> bool:
        """Whether there is no call of a library's function among its nodes, which takes any arguments."""
        rows: list[Any] = [self.table[node.op] for node in piece.function.graph.nodes]
        return all(row.is_repeatable for row in rows)

    def _traced(self, types: Sequence[ArrayType]) -> Piece:
        try:
            piece = self.traced(types)
        except ERRORS as error:
            raise GraphError(f"the pattern {self.traced.name} cannot be traced: {error}") from error
        if not piece.single or piece.results[0][0] != "output":
            raise GraphError(f"the pattern {self.traced.name} must compute one array")
        return piece

    # -- one place ------------------------------------------------------------------------------
    def _match_at(self, node: Node) -> Match | None:
        for skeleton in self.skeletons:
            choices = skeleton.candidates(node, self.index, self.count)
            if choices is None:
                continue
            for chosen in itertools.islice(itertools.product(*choices), _MOST_CANDIDATES):
                found = self._exact(node, chosen)
                if found is not None:
                    return found
        return None

    def _exact(self, node: Node, chosen: Sequence[Var]) -> Match | None:
        try:
            piece = self.traced([var.type for var in chosen])
        except ERRORS:
            return None
        if not piece.single or piece.results[0][0] != "output":
            return None
        for root in _forward(node, self.index, self.table):
            found = _Exact(piece, chosen, self.index, self.table, self.function).at(root)
            if found is not None:
                values = tuple(GraphValue(self.index, var) for var in chosen)
                return Match(
                    values, GraphValue(self.index, root), tuple(GraphNode(self.index, n) for n in found)
                )
        return None


class _Skeleton:
    """A pattern's ops without what only rearranges memory (unless it consists of such alone)."""

    def __init__(self, piece: Piece, table: OpTable) -> None:
        graph = piece.function.graph
        self.table = table
        self.makers = {var.name: node for node in graph.nodes for var in node.outputs}
        self.through = any(not _rearranges(node, table) and node.inputs for node in graph.nodes)
        self.arguments = {value.name: number for value, number in zip(piece.function.inputs, piece.arguments)}
        self.root = graph.outputs[piece.results[0][1]].var

    def candidates(self, node: Node, index: Index, count: int) -> list[list[Var]] | None:
        """For each parameter the values that it may be, if the skeleton's root may be ``node``."""
        found: dict[int, list[Var]] = {}
        if self.through and _rearranges(node, self.table):
            return None
        if not self._compare(self.root, node.out, index, found):
            return None
        return [found.get(number, []) for number in range(count)] if len(found) == count else None

    def _compare(self, mine: Var, theirs: Var, index: Index, found: dict[int, list[Var]]) -> bool:
        mine = _back(mine, self.makers, self.table)[-1] if self.through else mine
        chain = _back(theirs, index.producers, self.table) if self.through else [theirs]
        number = self.arguments.get(mine.name)
        if number is not None:
            inner = chain[::-1]  # the largest match is the one that the user means
            if number in found:
                known = {var.name for var in inner}
                inner = [var for var in found[number] if var.name in known]
            found[number] = inner
            return bool(inner)
        node, other = self.makers.get(mine.name), index.producers.get(chain[-1].name)
        if node is None:  # a constant of the pattern
            return chain[-1].name in index.constants
        if other is None or node.op != other.op or len(node.inputs) != len(other.inputs):
            return False
        for order in _orders(node, self.table):
            attempt = dict(found)
            pairs = zip(node.inputs, [other.inputs[k] for k in order])
            if all(self._compare(a, b, index, attempt) for a, b in pairs):
                found.clear()
                found.update(attempt)
                return True
        return False


class _Exact:
    """Compares a pattern, traced for the types of ``chosen``, with a part of the graph."""

    def __init__(
        self,
        piece: Piece,
        chosen: Sequence[Var],
        index: Index,
        table: OpTable,
        function: GraphBase,
    ) -> None:
        self.pattern = piece.function
        self.piece = piece
        self.index = index
        self.table = table
        self.function = function
        self.makers = {var.name: node for node in self.pattern.graph.nodes for var in node.outputs}
        self.arguments = {
            value.name: chosen[number] for value, number in zip(self.pattern.inputs, piece.arguments)
        }

    def at(self, root: Var) -> list[Node] | None:
        """The nodes that the part consists of."""
        mine = self.pattern.graph.outputs[self.piece.results[0][1]].var
        matched = self._compare(mine, root)
        if matched is None:
            return None
        nodes = list(
            {id(self.index.producers[v.name]): self.index.producers[v.name] for v in matched}.values()
        )
        return nodes if self._may_go(nodes, root) else None

    def _compare(self, mine: Var, theirs: Var) -> dict[Var, None] | None:
        if mine.name in self.arguments:
            return {} if self.arguments[mine.name].name == theirs.name else None
        if not same_type(mine.type, theirs.type):
            return None
        node, other = self.makers.get(mine.name), self.index.producers.get(theirs.name)
        if node is None:
            return {} if self._is_equal_constant(mine, theirs) else None
        if other is None or node.op != other.op or len(node.inputs) != len(other.inputs):
            return None
        if _params(node) != _params(other):
            return None
        position = [var.name for var in node.outputs].index(mine.name)
        if other.outputs[position].name != theirs.name:
            return None
        for order in _orders(node, self.table):
            matched: dict[Var, None] | None = {theirs: None}
            for a, k in zip(node.inputs, order):
                below = self._compare(a, other.inputs[k])
                if below is None:
                    matched = None
                    break
                assert matched is not None
                matched.update(below)
            if matched is not None:
                return matched
        return None

    def _is_equal_constant(self, mine: Var, theirs: Var) -> bool:
        if theirs.name not in self.index.constants:
            return False
        owner = self.function.owner
        name = self.pattern.index.constants[mine.name]
        arrays = [self.pattern.constants[name], self.function.constants[self.index.constants[theirs.name]]]
        one, other = (array if owner is None else owner.to_numpy(array) for array in arrays)
        return bool(np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind in "fc"))

    def _may_go(self, nodes: Sequence[Node], root: Var) -> bool:
        """Whether nothing else reads what is inside. Numbers of the program may be read elsewhere: these stay
        where they are needed."""
        inside = {id(node) for node in nodes}
        fed = self._fed({var.name for var in self.arguments.values()}, nodes)
        for node in nodes:
            for var in node.outputs:
                if var.name == root.name or var.name not in fed:
                    continue
                if var.name in self.index.returned:
                    return False
                if any(id(user) not in inside for user in self.index.users[var.name]):
                    return False
        return True

    def _fed(self, names: set[str], nodes: Sequence[Node]) -> set[str]:
        """Values inside that depend on an argument of the pattern."""
        order = {id(node): number for number, node in enumerate(self.index.graph.nodes)}
        fed = set(names)
        for node in sorted(nodes, key=lambda node: order[id(node)]):
            if any(var.name in fed for var in node.inputs):
                fed.update(var.name for var in node.outputs)
        return fed


def _params(node: Node) -> Any:
    return frozen_key(tuple(sorted(node.params)))


def _orders(node: Node, table: OpTable) -> list[tuple[int, ...]]:
    """The orders of inputs in which a node computes the same."""
    straight = tuple(range(len(node.inputs)))
    row: Any = table[node.op]
    return [straight, straight[::-1]] if row.is_commutative else [straight]


def _rearranges(node: Node, table: OpTable) -> bool:
    return bool(node.inputs) and table[node.op].is_view


def _back(var: Var, makers: Mapping[str, Node], table: OpTable) -> list[Var]:
    """``var``, and the values that it is a rearrangement of."""
    chain = [var]
    while (node := makers.get(chain[-1].name)) is not None and _rearranges(node, table):
        chain.append(node.inputs[0])
    return chain


def _forward(node: Node, index: Index, table: OpTable) -> list[Var]:
    """The result of a node, and rearrangements of it, as long as these alone read it."""
    found = [node.out]
    while len(users := index.users[found[-1].name]) == 1 and _rearranges(users[0], table):
        found.append(users[0].out)
    return found[::-1]


def _shape_of(piece: Piece) -> str:
    return " ".join(f"{node.op}/{len(node.inputs)}" for node in piece.function.graph.nodes)


def _usual_dtype(graph: Graph) -> Any:
    """The dtype of most values that are floating-point numbers."""
    dtypes = [var.dtype for var in graph.values() if var.dtype.numpy.kind in "fcV"]
    return max(set(dtypes), key=dtypes.count) if dtypes else float32


def _parameters(pattern: Callable[..., Any], examples: Sequence[Any]) -> int:
    if examples:
        return len(examples)
    try:
        parameters = inspect.signature(pattern).parameters.values()
    except (TypeError, ValueError):
        raise GraphError(
            f"the pattern {pattern!r} has no signature: give examples= of its arguments"
        ) from None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)
