"""What of a graph with gradients is held in memory from the computation for its derivative, and what is
computed once more there."""

from __future__ import annotations

from ..dataclass import dataclass
from ..graph.ir import Loc, Node
from ..symbolic.integers import hint
from .lowering.kinds import Lowering
from .lowering.values import Value
from .naming import is_of_gradient, origin_of


@dataclass(frozen=True)
class Halves:
    """``kept``: temporaries that backward nodes read, bytes and what makes them. ``again``: the elementwise
    operations that backward kernels compute of the forward part. ``late``: how many nodes are backward ones,
    of ``count``."""

    kept: tuple[tuple[int, str], ...]
    again: tuple[Node, ...]
    late: int
    count: int

    def describe(self, most: int = 6) -> list[str]:
        """A few lines."""
        total = sum([size for size, _ in self.kept])
        lines = [
            f"{self.late} of {self.count} operations are backward ones; {total:,} bytes in {len(self.kept)} "
            f"arrays are kept for them, {len(self.again)} computed again there"
        ]
        for size, origin in sorted(self.kept, reverse=True)[:most]:
            lines.append(f"{size:>14,} bytes  {origin}")
        if len(self.kept) > most:
            lines.append(f"{'':>14} … and {len(self.kept) - most} more")
        return lines


def halves_of(lowering: Lowering) -> Halves | None:
    """``None`` for a graph without gradients, or of nothing else."""
    nodes = lowering.graph.nodes
    late = [node for node in nodes if node.loc is not None and is_of_gradient(node.loc)]
    if not late or len(late) == len(nodes):
        return None
    made = {v.name for node in late for v in node.outputs}
    kept: dict[int, tuple[int, str]] = {}
    again: dict[int, Node] = {}
    for name in dict.fromkeys(v.name for node in late for v in node.inputs):
        value = _viewed(lowering.values[name])
        if name in made or value.var.name in made or value.node is None:
            continue
        if value.place is not None and value.place.storage.role == "temp":
            storage = value.place.storage
            size = hint(storage.size) * storage.dtype.itemsize
            kept.setdefault(id(storage), (size, _origin(value.node.loc, value.node.op)))
        elif value.inline and value.node.inputs:
            again[value.position] = value.node
    return Halves(tuple(kept.values()), tuple(again.values()), len(late), len(nodes))


def _viewed(value: Value) -> Value:
    while value.kind == "view":
        value = value.inputs[0]
    return value


def _origin(loc: Loc | None, op: str) -> str:
    return op if loc is None else f"{op} of {origin_of(loc)}"
