"""Cotangents of parts of arrays, which are put together when that of the whole array is asked for.

A slice's cotangent alone would be an array of zeros with a part written, for each slice another one, all of
which were added. Instead cotangents of equal slices are added as such, slices that have no element in common
are written into one array, and small ones are added in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dataclass import dataclass
from ..graph.ir import Node, Ops, Var
from ..graph.rewrite import frozen_key
from ..prims.opdef import OpDef, Update, View
from ..prims.pointwise.partials import zeros
from ..symbolic.integers import hint

Table = Mapping[str, OpDef]

# A part is added in place if it has no more than one of so many elements.
SMALL = 4


@dataclass(frozen=True)
class _Part:
    """The cotangent of what ``view`` reads of an array; ``update`` is the op that writes it there."""

    view: Node
    update: str
    cotangent: Var


class Windows:
    """The cotangents of parts, by the name of the array."""

    def __init__(self, ops: Ops, table: Table) -> None:
        self.ops = ops
        self.table = table
        self.parts: dict[str, dict[Any, _Part]] = {}

    def take(self, view: Node, cotangent: Var) -> bool:
        """Keep the cotangent of what ``view`` reads, if that is a part of an array."""
        kind = self.table[view.op].lower
        row = self.table.get(kind.scatter) if isinstance(kind, View) else None
        # of other windows on memory an element may be read repeatedly
        if row is None or not isinstance(row.lower, Update) or view.op == "as_strided":
            return False
        parts = self.parts.setdefault(view.inputs[0].name, {})
        key = (view.op, frozen_key(view.params))
        known = parts.get(key)
        total = cotangent if known is None else self.ops.add(known.cotangent, cotangent)
        parts[key] = _Part(view, row.name, total)
        return True

    def put_together(self, var: Var, whole: Var | None) -> Var | None:
        """The cotangent of an array, given what there is besides its parts."""
        parts = list(self.parts.pop(var.name, {}).values())
        large = []
        for part in parts:
            if whole is not None and hint(part.cotangent.type.size) * SMALL <= hint(var.type.size):
                whole = self._added(whole, part)
            else:
                large.append(part)
        while large:
            layer = [large[0]]
            rest: list[Any] = []
            for part in large[1:]:
                (layer if all(_are_apart(part.view, p.view) for p in layer) else rest).append(part)
            made = zeros(self.ops, var)
            for part in layer:
                made = self._written(made, part, part.cotangent)
            whole = made if whole is None else self.ops.add(whole, made)
            large = rest
        return whole

    def _written(self, array: Var, part: _Part, value: Var) -> Var:
        found: Var = getattr(self.ops, part.update)(array, value, **part.view.kwargs)
        return found

    def _added(self, array: Var, part: _Part) -> Var:
        before = getattr(self.ops, part.view.op)(array, **part.view.kwargs)
        return self._written(array, part, self.ops.add(before, part.cotangent))


def _are_apart(one: Node, other: Node) -> bool:
    """Whether two slices of an array have no element in common, for certain."""
    if one.op != "strided_slice" or other.op != "strided_slice":
        return False
    pairs = zip(_spans(one), _spans(other))
    return any(a is not None and b is not None and (a[1] < b[0] or b[1] < a[0]) for a, b in pairs)


def _spans(node: Node) -> list[tuple[int, int] | None]:
    """The first and the last position of a slice along each axis, where they are known."""
    params = node.kwargs
    found: list[tuple[int, int] | None] = []
    for start, size, step in zip(params["starts"], params["sizes"], params["steps"]):
        if isinstance(start, int) and isinstance(size, int) and isinstance(step, int):
            last = start + (size - 1) * step
            found.append((min(start, last), max(start, last)))
        else:
            found.append(None)
    return found
