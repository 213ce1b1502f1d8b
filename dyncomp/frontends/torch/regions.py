"""Parts of captured code that stand for a function: what they change, and the memory of what they give."""

from __future__ import annotations

from collections.abc import Sequence

from ...dataclass import dataclass
from ...errors import Unsupported
from ...graph.ir import COPY, Node, Var
from ...prims.markers import STOP
from ..base import ArrayRef, TraceContext, memory_of

COPIED = "copied"  # in the memo: names of what is copied where the program has views


@dataclass(frozen=True)
class Region:
    """A part that began before node ``start``, when ``draws`` random numbers had been drawn."""

    start: int
    draws: int
    changes: object

    @staticmethod
    def begin(tx: TraceContext) -> Region:
        return Region(len(tx.builder.nodes), *tx.changes())

    def made(self, tx: TraceContext) -> frozenset[str]:
        """Names of the values made since."""
        return frozenset(out.name for node in tx.builder.nodes[self.start :] for out in node.outputs)

    def check(self, tx: TraceContext, what: str) -> None:
        """Refuse a part that changes what was there before: objects, or memory."""
        self.check_objects(tx, what)
        if self.writes(tx):
            raise Unsupported(f"{what} writes to a tensor that it did not make")

    def check_objects(self, tx: TraceContext, what: str) -> None:
        """Refuse a part that changes objects that were there before."""
        if tx.changes()[1] != self.changes:
            raise Unsupported(f"{what} changes an object that it did not make")

    def writes(self, tx: TraceContext) -> dict[int, Var]:
        """The writes to memory that was there before: numbers of nodes, and what they write to."""
        made = self.made(tx)
        return {
            number: node.inputs[0]
            for number, node in enumerate(tx.builder.nodes[self.start :], self.start)
            if node.op == COPY and memory_of(tx.builder, node.inputs[0]) not in made
        }

    def check_draws(self, tx: TraceContext, what: str) -> None:
        """Refuse a part that draws random numbers."""
        if tx.changes()[0] != self.draws:
            raise Unsupported(f"{what} draws random numbers")


@dataclass(frozen=True)
class Window:
    """A value as a view of what owns its memory."""

    base: Var
    views: tuple[Node, ...]  # the innermost first

    @staticmethod
    def of(tx: TraceContext, var: Var) -> Window:
        views: list[Node] = []
        node = tx.builder.producer(var)
        while node is not None and getattr(tx.builder.table[node.op], "is_view", False):
            views.append(node)
            var = node.inputs[0]
            node = tx.builder.producer(var)
        return Window(var, tuple(reversed(views)))

    def on(self, tx: TraceContext, base: Var) -> Var:
        """The same view of another value, with derivatives."""
        for node in self.views:
            if node.op != STOP:
                base = tx.builder.emit(node.op, base, **node.kwargs)
        return base


def windows_of(tx: TraceContext, values: Sequence[ArrayRef], region: Region, what: str) -> list[Window]:
    """The values as views of memory that was made in the region, of each its own. A view of what the graph
    made before (``x.view_as(x)``, not ``x`` itself) is one of a copy; neither may be written to then."""
    made, bases = region.made(tx), set()
    found = [Window.of(tx, value.var) for value in values]
    for place, window in enumerate(found):
        base = window.base
        is_argument = values[place].var.name not in made
        if is_argument or base.name in bases or tx.builder.producer(base) is None:
            raise Unsupported(f"{what} returns an argument, or two views of one tensor")
        bases.add(base.name)
        if base.name not in made:
            copied: Var = tx.ops.copy(base)
            tx.memo.setdefault(COPIED, set()).update((base.name, copied.name))
            found[place] = Window(copied, window.views)
    return found


def check_write(tx: TraceContext, target: Var) -> None:
    """Refuse a write to what is copied in the graph, and shares memory with the copy in the program."""
    if memory_of(tx.builder, target) in tx.memo.get(COPIED, ()):
        raise Unsupported("a write to a tensor that an autograd.Function gave a view of", whole_frame=True)
