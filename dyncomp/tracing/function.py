"""``GraphFunction``: a function's graph as an object that can be called, read and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..frontends.base import ArrayOwner
from ..graph.ir import Graph
from . import patterns
from . import split as splitting
from .base import GraphBase
from .edit import Editor
from .patterns import Match
from .trace import traced, wrapped


class GraphFunction(GraphBase):
    """A function as a graph. Call it as the function that it was made of.

    ``symbolic_trace`` makes it. Results have the structure of the original's and memory of their own; no
    derivatives go through it. The graph is compiled at the first call, and again at the first call after a
    change. Methods that change the graph change this object; :meth:`copy` makes another one first.
    """

    @contextmanager
    def edit(self) -> Iterator[Editor]:
        """Change nodes: ``with g.edit() as e: e.insert_after(…)``. The graph is checked and replaced at the
        end of the block; it stays as it was if the block raises."""
        editor = Editor(self)
        yield editor
        graph, constants = editor.finished()
        self._take(graph, constants)

    def replace_pattern(
        self,
        pattern: Callable[..., Any],
        replacement: Callable[..., Any],
        *,
        examples: Sequence[Any] = (),
        where: Callable[[Match], bool] | None = None,
    ) -> int:
        """Replace each part of the graph that computes ``pattern`` by ``replacement``; how many there were.

        Both are functions of the same number of arrays (of the graph's library), which return one
        array; parameters match any value. What reads a value inside of a part keeps it from being a match.
        Sizes and dtypes are those of each place. ``examples``: arguments for ``pattern`` where it needs
        arrays of certain dimensions. ``where``: asked for each match whether to replace it.

        Raises :class:`~dyncomp.errors.GraphError` for patterns that are no single graph with one result, and
        for replacements of another type.
        """
        return patterns.replace_pattern(self, pattern, replacement, examples, where)

    def find_pattern(self, pattern: Callable[..., Any], *, examples: Sequence[Any] = ()) -> list[Match]:
        """The parts of the graph that compute ``pattern`` (:meth:`replace_pattern`), in order."""
        return patterns.find_pattern(self, pattern, examples)

    def split(self, at: Any) -> tuple[GraphFunction, ...]:
        """The graph in parts that run one after the other: ``second(*first(x))`` equals ``g(x)``.

        ``at``: nodes (or names of values) after which to cut, or a function that says so of a node. Each part
        but the last returns a tuple: all that later parts read. Raises :class:`GraphError` for graphs with
        symbolic sizes or that write to arguments, and where nothing is left for a part.
        """
        return splitting.split(self, at)

    def tap(self, *values: Any) -> GraphFunction:
        """A function of the same arguments that returns the tuple of these values of the graph (nodes, values
        or names). Raises :class:`GraphError` for names that there are not."""
        return splitting.tap(self, values)


def symbolic_trace(
    f: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: bool | Mapping[str, Any] | None = None,
) -> GraphFunction:
    """The graph of ``f(*args, **kwargs)``, which can be called, printed and changed.

        g = dyncomp.symbolic_trace(model, (x,))
        print(g)
        g(x)

    ``f``: a function, a method, an ``nn.Module`` or another callable; ``args`` and ``kwargs`` are examples:
    arrays among them (also in containers) stay arguments; everything else is fixed as it is now. Arrays that
    ``f`` finds elsewhere (a model's parameters, globals) are the graph's constants. Sizes and numbers are
    fixed as well unless ``dynamic`` frees them, which is said as for :func:`dyncomp.compile`
    (``{"x": 0, "rate": True}``). ``f`` is captured, not run, where that is possible.

    Raises :class:`~dyncomp.errors.ExportError` for functions that one graph alone cannot replace, with the
    reason, and :class:`~dyncomp.errors.GraphBreakError` where the graph would break.
    """
    if not callable(f):
        raise TypeError(f"symbolic_trace takes a callable, not {type(f).__name__}")
    if isinstance(f, GraphFunction):
        return f.copy()
    try:
        return traced(GraphFunction, f, args, kwargs or {}, dynamic)
    except TypeError as error:
        if not args and not kwargs:
            error.add_note("Give examples of its arguments: symbolic_trace(f, (x,)).")
        raise


def wrap_graph(graph: Graph, owner: ArrayOwner | None = None) -> GraphFunction:
    """A graph that a backend was given, as an object that can be read, changed, and returned by the backend.

        def backend(graph, example_inputs):
            g = dyncomp.wrap_graph(graph)
            g.replace_pattern(…)
            return g

    It is called with the graph's inputs and integers, NumPy arrays, and returns the list of outputs.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"wrap_graph takes the graph that a backend is given, not {type(graph).__name__}")
    return wrapped(GraphFunction, graph, owner)
