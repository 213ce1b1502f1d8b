"""Cotangents of parts of arrays, which are put together when that of the whole array is asked for.

A slice's cotangent alone would be an array of zeros with a part written, for each slice another one, all of
which were added. Instead cotangents of equal slices are added as such, slices that have no element in common
are written into one array, and small or scattered ones are added in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dataclass import dataclass
from ..graph.ir import Node, Ops, Var
from ..graph.rewrite import are_apart, frozen_key
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

    def is_apart(self, other: _Part) -> bool:
        """Whether the two have no element in common, for certain."""
        slices = self.view.op == other.view.op == "strided_slice"
        return slices and are_apart(self.view.kwargs, other.view.kwargs)

    def is_sparse_in(self, var: Var) -> bool:
        """Whether adding it in place takes less than an array of zeros that it is written to. Whole windows
        are left: what is written in a layer may be taken part by part into what reads it."""
        steps = self.view.kwargs.get("steps", ())
        small = hint(self.cotangent.type.size) * SMALL <= hint(var.type.size)
        return small or any(step not in (1, -1) for step in steps)


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
        while parts:
            if whole is not None:
                rest: list[_Part] = []
                for part in parts:
                    if part.is_sparse_in(var):
                        whole = self._added(whole, part)
                    else:
                        rest.append(part)
                parts = rest
            if parts:
                made, parts = self._layer(var, parts)
                whole = made if whole is None else self.ops.add(whole, made)
        return whole

    def _layer(self, var: Var, parts: Sequence[_Part]) -> tuple[Var, list[_Part]]:
        """An array of parts that have no element in common, zeros between them, and the other parts."""
        layer: list[_Part] = []
        rest: list[_Part] = []
        for part in parts:
            (layer if all(part.is_apart(p) for p in layer) else rest).append(part)
        sizes = [part.cotangent.type.size for part in layer]
        if all(isinstance(size, int) for size in (*sizes, var.type.size)) and sum(sizes) == var.type.size:
            made: Var = self.ops.empty(shape=var.shape, dtype=var.dtype, device=var.type.device)
        else:
            made = zeros(self.ops, var)
        for part in layer:
            made = self._written(made, part, part.cotangent)
        return made, rest

    def _written(self, array: Var, part: _Part, value: Var) -> Var:
        found: Var = getattr(self.ops, part.update)(array, value, **part.view.kwargs)
        return found

    def _added(self, array: Var, part: _Part) -> Var:
        before = getattr(self.ops, part.view.op)(array, **part.view.kwargs)
        return self._written(array, part, self.ops.add(before, part.cotangent))
