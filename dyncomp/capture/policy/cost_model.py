"""What captures and calls cost, by estimates: what capture and a compilation take, against what a call gains.

The times are of one machine each (captures: a Zen 4 core; calls: Xeon, CPython 3.11, NumPy 2.4). Only their
ratios matter, and a mistake costs time alone. What is too close to say is measured (``trial``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ...device import CPU
from ...graph.ir import COPY, Graph, Node, OpTable, Var
from ...prims.opdef import Extern, OpDef

# -- captures -----------------------------------------------------------------------------------
# Milliseconds of processor time that a capture takes, besides a graph's compilation, and what the captures
# of a configuration may take before others wait.
_CAPTURE_MS = 4
_GRAPH_MS = 40
FREE_MS = 320


def capture_ms(graph: Graph | None) -> int:
    """What a capture took that gave this graph."""
    return _CAPTURE_MS + (_GRAPH_MS if graph is not None else 0)


# -- sizes --------------------------------------------------------------------------------------
MUCH = 1 << 14  # elements of an array, of which a call soon gains what a capture takes
_LITTLE = 1 << 13  # that an operation passes over within a few microseconds
_SMALL = 1024  # for which an operation takes as long as its call does
_SMALL_IN_ALL = 1 << 16


def works_on_much(graph: Graph, table: OpTable) -> bool:
    """Whether calls of a graph gain so much that no capture need wait."""
    return graph.device != CPU or _largest(graph.nodes, table) > MUCH


def is_small(nodes: Iterable[Node], table: OpTable) -> bool:
    """Whether all that is computed takes about as long in plain Python as calls of NumPy do."""
    sizes = _sizes(nodes, table)
    return max(sizes, default=0) <= _SMALL and sum(sizes) <= _SMALL_IN_ALL


def only_calls(nodes: Iterable[Node], table: OpTable) -> bool:
    """Whether nothing is computed but by the library's routines, and single numbers."""
    found = False
    for node in nodes:
        row = table.get(node.op)
        if isinstance(getattr(row, "lower", None), Extern):
            found = True
        elif row is None or any(_size(var) > 1 for var in node.outputs):
            return False
    return found


def calls_on_little(nodes: Iterable[Node], table: OpTable) -> bool:
    """Whether torch's routines are called, which takes as long as some operations on arrays so small."""
    calls = any(node.op == "routine_call" for node in nodes)
    return calls and _largest(nodes, table) <= _LITTLE


def _largest(nodes: Iterable[Node], table: OpTable) -> int:
    """Elements of the largest array that nodes read or make."""
    return max(_sizes(nodes, table), default=0)


def _sizes(nodes: Iterable[Node], table: OpTable) -> list[int]:
    """A view reads nothing of its base but what it shows."""
    found: list[int] = []
    for node in nodes:
        is_view = getattr(table.get(node.op), "is_view", False)
        found += (_size(var) for var in (*(() if is_view else node.inputs), *node.outputs))
    return found


def _size(var: Var) -> int:
    return math.prod(size if isinstance(size, int) else size.hint for size in var.shape)


# -- calls --------------------------------------------------------------------------------------
# nanoseconds in plain Python
_READ = 75
_WRITE = 90
_ARITHMETIC = 45
_FUNCTION = 250  # np.sin of a number
_VIEW = 160
_LONG = 10_000
# nanoseconds in compiled code: guards and launch, and what is made for each number that it gives back
_CALL = 450
_RESULT = 80

_READS = frozenset({"copy", "index"})  # of a view that is one element
_CONVERSIONS = frozenset({"convert", "item"})


def is_worth_a_call(nodes: Iterable[Node], results: int, table: Mapping[str, OpDef]) -> bool:
    """Whether the nodes of a captured graph, which gives back ``results`` values, are sooner done by compiled
    code than one after another by NumPy. Code that reads single numbers from arrays, reckons with them and
    puts them back is quick in plain Python: a graph of a few such steps takes longer to call."""
    plain = 0
    for node in nodes:
        plain += _plain_time(node, table)
        if plain >= _LONG:
            return True
    return plain > _CALL + _RESULT * results


def _plain_time(node: Node, table: Mapping[str, OpDef]) -> int:
    single = all(map(_is_single, node.outputs))
    if node.op == COPY:
        return _WRITE if _is_single(node.inputs[0]) else _LONG
    row = table[node.op]
    if row.is_view:
        return 0 if single else _VIEW
    if node.op in _READS and single:
        return _READ
    if not single or not all(map(_is_single, node.inputs)):
        return _LONG
    if row.free or node.op in _CONVERSIONS:
        return 0
    return _ARITHMETIC if row.scalar is not None and row.scalar.python else _FUNCTION


def _is_single(var: Var) -> bool:
    """Whether a value is one number, whatever the data."""
    return all(isinstance(size, int) and size == 1 for size in var.shape)
