"""Functions of the user traced for the types of values in a graph: patterns and what is inserted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..errors import DyncompError, ExportError, GraphError
from ..frontends.base import ArrayOwner
from ..graph.ir import ArrayType, Graph
from .arguments import has_symbols_in
from .base import GraphBase
from .front import PlainFront
from .trace import traced as traced_as


@dataclass(frozen=True, eq=False)
class Piece:
    """A traced function of arrays. ``arguments``: which argument each input of ``function`` is; ``results``:
    ``("output", number)`` or ``("argument", number)``, of what it returns, in order; ``single``: one value,
    no tuple."""

    function: GraphBase
    arguments: tuple[int, ...]
    results: tuple[tuple[str, int], ...]
    single: bool


class Traced:
    """A function's graphs for arguments of given types, one for each. ``owner``: the arrays' library."""

    def __init__(self, function: Callable[..., Any], owner: ArrayOwner | None) -> None:
        self.function = function
        self.owner = owner
        self._known: dict[tuple[Any, ...], Piece] = {}

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__qualname__", type(self.function).__qualname__))

    def __call__(self, types: Sequence[ArrayType]) -> Piece:
        """Raises what tracing and the function raise, and :class:`GraphError` for symbolic sizes."""
        key = tuple((type.dtype, type.shape) for type in types)
        if key not in self._known:
            if any(map(has_symbols_in, types)):
                raise GraphError(f"{self.name}: sizes are symbolic here; trace without dynamic=")
            self._known[key] = self._traced([_example(type, self.owner) for type in types])
        return self._known[key]

    def _traced(self, examples: list[Any]) -> Piece:
        function = self.function

        def call(*args: Any) -> Any:
            return function(*args)

        try:
            traced = traced_as(GraphBase, call, examples, {})
        except ExportError:
            piece = self._without_nodes(examples)
            if piece is None:
                raise
            return piece
        if traced.graph.mutations:
            raise GraphError(f"{self.name} writes to its arguments")
        tree = traced._front.tree
        single = tree[0] not in ("tuple", "list")
        items = [tree] if single else tree[1:]
        places = {value.name: _argument(value.label) for value in traced.inputs}
        results = tuple(self._result(item, places) for item in items)
        return Piece(traced, tuple(places.values()), results, single)

    def _result(self, item: list[Any], places: dict[str, int]) -> tuple[str, int]:
        if item[0] == "output":
            return "output", item[1]
        if item[0] == "input" and item[1] in places:
            return "argument", places[item[1]]
        raise GraphError(f"{self.name} returns {item[0]} {item[1]}, not an array that it computes")

    def _without_nodes(self, examples: list[Any]) -> Piece | None:
        """Of a function that returns arguments as they are."""
        found = self.function(*examples)
        single = not isinstance(found, (tuple, list))
        results = []
        for value in (found,) if single else found:
            number = next((k for k, given in enumerate(examples) if given is value), None)
            if number is None:
                return None
            results.append(("argument", number))
        empty = Graph("identity", (), (), (), (), functional=True)
        function = GraphBase("identity", empty, PlainFront((), 0, True), {}, self.owner)
        return Piece(function, (), tuple(results), single)


def _argument(label: str) -> int:
    """``args[3]``: 3."""
    return int(label.removeprefix("args[").removesuffix("]"))


def _example(type: ArrayType, owner: ArrayOwner | None) -> Any:
    array = np.ones(type.shape, type.dtype.numpy)
    return array if owner is None else owner.from_numpy(array)


# what tracing, or running, a user's function on arrays of unfit types may raise
ERRORS = (DyncompError, TypeError, ValueError, IndexError, AttributeError, RuntimeError)
