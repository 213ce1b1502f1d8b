"""Whether what was captured of a loop's body is worth a call of compiled code.

Code that reads single numbers from arrays, reckons with them and puts them back is quick in plain Python: a
graph of a few such steps takes longer to call than the interpreter takes for them. The times are of one
machine (Xeon, CPython 3.11, NumPy 2.4); only their ratios matter, and a mistake costs time alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...graph.ir import COPY, Node, Var
from ...prims.opdef import OpDef

# nanoseconds in plain Python
_READ = 75
_WRITE = 90
_ARITHMETIC = 45
_FUNCTION = 250  # np.sin of a number
_VIEW = 160
_MUCH = 10_000
# nanoseconds in compiled code: guards and launch, and what is made for each number that it gives back
_CALL = 450
_RESULT = 80

_READS = frozenset({"copy", "index"})  # of a view that is one element
_CONVERSIONS = frozenset({"convert", "item"})


def is_worth_a_call(nodes: Iterable[Node], results: int, table: Mapping[str, OpDef]) -> bool:
    """Whether the nodes of a captured graph, which gives back ``results`` values, are sooner done by compiled
    code than one after another by NumPy."""
    plain = 0
    for node in nodes:
        plain += _plain_time(node, table)
        if plain >= _MUCH:
            return True
    return plain > _CALL + _RESULT * results


def _plain_time(node: Node, table: Mapping[str, OpDef]) -> int:
    single = all(map(_is_single, node.outputs))
    if node.op == COPY:
        return _WRITE if _is_single(node.inputs[0]) else _MUCH
    row = table[node.op]
    if row.is_view:
        return 0 if single else _VIEW
    if node.op in _READS and single:
        return _READ
    if not single or not all(map(_is_single, node.inputs)):
        return _MUCH
    if row.free or node.op in _CONVERSIONS:
        return 0
    return _ARITHMETIC if row.scalar is not None and row.scalar.python else _FUNCTION


def _is_single(var: Var) -> bool:
    """Whether a value is one number, whatever the data."""
    return all(isinstance(size, int) and size == 1 for size in var.shape)
