"""Which values and which sizes of a graph under construction are certainly equal.

A size that depends on the data is a symbol (``symbolic.integers``: unbacked). What gives sizes from the same
contents by the same function gives one symbol: ``x[m]``, ``y[m]``, ``np.nonzero(m)`` and ``int(m.sum())``
have one, as have ``np.bincount`` of one array with any weights.
"""

from __future__ import annotations

from typing import Any

from ..graph.ir import COPY, Node, Var
from ..graph.rewrite import frozen_key
from ..symbolic.integers import Dim, SymInt, depends_on_data
from .base import TraceContext

_DEPTH = 8  # how far back the expressions of two values are compared
_SAME = ("copy", "contiguous")


def size_of(
    tx: TraceContext, function: str, *inputs: Var, low: int = 0, high: int | None = None, **options: object
) -> SymInt:
    """The symbol for a number, ``low`` at least, that ``function`` makes of the contents of ``inputs`` and of
    ``options``. The next node defines it, too."""
    meaning = Meaning(tx)
    key = ("size", function, tuple(map(meaning.contents, inputs)), frozen_key(tuple(options.items())), low)
    found: SymInt | None = tx.memo.get(key)
    if found is None:
        found = tx.memo[key] = tx.env.new_unbacked(low=low, high=high)
        tx.builder.bind_symbol(found, "node", 0)
    return found


def size_of_selection(tx: TraceContext, mask: Var) -> SymInt:
    """The symbol for how many elements of ``mask`` are not zero."""
    return size_of(tx, "selection", mask)


def number_in(tx: TraceContext, number: Var) -> Dim:
    """The symbol for an integer that the graph computes, or the size that it is known to be. Where it depends
    on the data an ``item`` has to define it."""
    known: Dim | None = tx.memo.get(("number", Meaning(tx).contents(number)))
    if known is not None:
        return known
    mask = _counted(tx, number)
    if mask is not None:
        return size_of_selection(tx, mask)
    return size_of(tx, "item", number, low=-(2**63), high=2**63 - 1)


def note_number(tx: TraceContext, number: Var, size: Dim) -> None:
    """Have it known that an integer that the graph computes is ``size``."""
    if not depends_on_data(size):
        tx.memo["number", Meaning(tx).contents(number)] = size


def size_in(tx: TraceContext, number: Var) -> Dim:
    """As ``number_in``, and defined."""
    found = number_in(tx, number)
    if depends_on_data(found):
        tx.builder.emit("item", number, value=found)
    return found


def _counted(tx: TraceContext, number: Var) -> Var | None:
    """The mask whose elements that are not zero ``number`` counts, if that is what it does."""
    made = {out.name: node for node in tx.builder.nodes for out in node.outputs}
    node = made.get(number.name)
    if node is None or node.op != "reduce_sum" or len(node.kwargs["axes"]) != node.inputs[0].ndim:
        return None
    flags = made.get(node.inputs[0].name)
    is_count = flags is not None and flags.op == "convert" and flags.inputs[0].dtype.is_bool
    # the mask may have been written since, which `Meaning` would have to be asked of that time
    written = any(n.op == COPY for n in tx.builder.nodes)
    return flags.inputs[0] if is_count and flags is not None and not written else None


class Meaning:
    """Names what values hold at this point of the graph: equal names, equal contents."""

    def __init__(self, tx: TraceContext) -> None:
        self.now = len(tx.builder.nodes)
        self.defined: dict[str, tuple[int, Node]] = {}
        self.roots: dict[str, str] = {}
        self.writes: dict[str, list[int]] = {}
        for position, node in enumerate(tx.builder.nodes):
            if node.op == COPY:
                self.writes.setdefault(self._root(node.inputs[0]), []).append(position)
                continue
            row: Any = tx.builder.table[node.op]
            for var in node.outputs:
                self.defined[var.name] = (position, node)
                if row.is_view:
                    self.roots[var.name] = self._root(node.inputs[0])

    def contents(self, var: Var) -> Any:
        """As ``of``, and the same for copies of it."""
        found = self.of(var)
        while isinstance(found[0], str) and found[0] in _SAME and len(found) == 4:
            (found,) = found[3]
        return found

    def of(self, var: Var) -> Any:
        return self._of(var, self.now, _DEPTH)

    def _root(self, var: Var) -> str:
        return self.roots.get(var.name, var.name)

    def _of(self, var: Var, when: int, depth: int) -> Any:
        """The name of what ``var`` holds just before node number ``when``."""
        root = self._root(var)
        written = sum(position < when for position in self.writes.get(root, ()))
        found = self.defined.get(var.name)
        is_view = root != var.name
        if found is None or not depth or (written and not is_view):
            return (var.name, written)
        position, node = found
        # a view shows its base as it is; any other value was computed from what there was then
        seen = when if is_view else position
        parts = tuple(self._of(v, seen, depth - 1) for v in node.inputs)
        return (node.op, frozen_key(node.params), node.outputs.index(var), parts)
