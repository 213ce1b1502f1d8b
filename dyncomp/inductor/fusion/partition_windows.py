"""Windows of arrays and the edges (cuts) between their parts, through views: for ``partition``.

A *window* is a box of an array, read forwards or backwards along each axis. *Cuts* are, for each axis, the
positions between 0 and the size at which parts meet, in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...dataclass import dataclass
from ...graph.ir import Node, Var
from ...graph.rewrite import frozen_key
from ...prims.layout import is_one
from ...prims.shape import inverse
from ...symbolic.integers import Dim, SymInt, same
from ..loops.index import at_most

# Copies of joins are seen through like views.
COPIES = frozenset(("copy", "contiguous"))

# A group of operations is computed in at most so many boxes.
MOST_BOXES = 27

Cuts = tuple[tuple[Dim, ...], ...]


class Undecided(Exception):
    """How positions lie to one another is not certain (sizes are symbols), or a view has no windows."""


@dataclass(frozen=True)
class Window:
    """Element i of an axis is element ``start + i * step`` of the array; ``step`` is 1 or -1."""

    starts: tuple[Dim, ...]
    sizes: tuple[Dim, ...]
    steps: tuple[int, ...]

    @staticmethod
    def box(edges: Sequence[tuple[Dim, Dim]]) -> Window:
        """The window from the first to before the second of each pair."""
        starts = tuple(low for low, _ in edges)
        return Window(starts, tuple(high - low for low, high in edges), (1,) * len(starts))

    @property
    def key(self) -> Any:
        return frozen_key((self.starts, self.sizes, self.steps))

    def edges(self, axis: int) -> tuple[Dim, Dim]:
        """The first element of an axis and the one behind the last."""
        start, size = self.starts[axis], self.sizes[axis]
        return (start, start + size) if self.steps[axis] > 0 else (start - size + 1, start + 1)

    def is_whole(self, shape: Sequence[Dim]) -> bool:
        """Whether it is all of an array of that shape, as it is."""
        return all(
            same(start, 0) and same(size, dim) and (step == 1 or same(dim, 1))
            for start, size, step, dim in zip(self.starts, self.sizes, self.steps, shape)
        )

    def lies_in(self, low: Sequence[Dim], high: Sequence[Dim]) -> bool:
        """Whether it is within the region from ``low`` to before ``high``, or outside of it. Raises
        :class:`Undecided` where it is neither, or that is not certain."""
        edges = [self.edges(axis) for axis in range(len(self.starts))]
        if all(at_most(a, first) and at_most(last, b) for a, b, (first, last) in zip(low, high, edges)):
            return True
        if any(at_most(last, a) or at_most(b, first) for a, b, (first, last) in zip(low, high, edges)):
            return False
        raise Undecided

    def moved(self, by: Sequence[Dim]) -> Window:
        """The same window counted from ``by``."""
        return Window(tuple(s - b for s, b in zip(self.starts, by)), self.sizes, self.steps)


# -- cuts -------------------------------------------------------------------------------------
def merged(size: Dim, *lists: Iterable[Dim]) -> tuple[Dim, ...]:
    """All cuts of an axis, in order. Raises :class:`Undecided` where the order is not certain, or there are
    more than boxes that a group may have."""
    cuts = [cut for cuts in lists for cut in cuts]
    if isinstance(size, int) and all(isinstance(cut, int) for cut in cuts):
        return _merged_ints(size, cuts)
    return _merged_symbols(size, cuts)


def _merged_ints(size: int, cuts: Iterable[Any]) -> tuple[Dim, ...]:
    found = sorted(set(cuts) - {0, size})
    if len(found) >= MOST_BOXES or (found and not 0 < found[0] <= found[-1] < size):
        raise Undecided
    return tuple(found)


def _merged_symbols(size: Dim, cuts: Iterable[Dim]) -> tuple[Dim, ...]:
    found: list[Dim] = []
    for cut in cuts:
        if any(same(cut, other) for other in (0, size, *found)):
            continue
        if len(found) + 1 >= MOST_BOXES:
            raise Undecided
        if not (at_most(0, cut) and at_most(cut, size)):
            raise Undecided
        place = len(found)
        while place and not at_most(found[place - 1], cut):
            if not at_most(cut, found[place - 1]):
                raise Undecided
            place -= 1
        found.insert(place, cut)
    return tuple(found)


def cuts_of_view(node: Node, cuts: Cuts) -> Cuts:
    """The cuts of a view of an array with ``cuts``."""
    params = node.kwargs
    if not any(cuts):
        return ((),) * node.out.ndim
    if node.op in COPIES:
        return cuts
    if node.op == "strided_slice":
        parts = zip(cuts, params["starts"], params["sizes"], params["steps"])
        return tuple(_cuts_of_slice(*part) for part in parts)
    if node.op == "transpose":
        return tuple(cuts[axis] for axis in params["perm"])
    found: list[tuple[Dim, ...]] = [()] * node.out.ndim
    for mine, axis in zip(cuts, kept_axes(node)):
        if axis is not None:
            found[axis] = mine
    return tuple(found)


def _cuts_of_slice(cuts: Sequence[Dim], start: Dim, size: Dim, step: int) -> tuple[Dim, ...]:
    found: list[Dim] = []
    for cut in cuts if step > 0 else reversed(cuts):
        moved = cut - start if step > 0 else start + 1 - cut
        if at_most(moved, 0) or at_most(size, moved):
            continue
        if not (at_most(0, moved) and at_most(moved, size)):
            raise Undecided
        found.append(moved)
    return tuple(found)


# -- views ------------------------------------------------------------------------------------
def has_windows(node: Node) -> bool:
    """Whether a window of a view is a window of what it views, seen through the same view."""
    if node.op == "strided_slice":
        steps = node.kwargs["steps"]
        return all(isinstance(step, int) and step in (1, -1) for step in steps)
    if node.op == "reshape":
        return kept_axes(node) is not None and not any(isinstance(d, SymInt) for d in node.out.shape)
    return node.op == "transpose" or (node.op == "broadcast_in_dim" and kept_axes(node) is not None)


def kept_axes(node: Node) -> Any:
    """For each axis of what a ``broadcast_in_dim``, or a ``reshape`` that adds or removes axes of size 1, is
    of: the result's axis that it is (``None`` where it is one element). ``None`` for others."""
    (source,) = node.inputs
    if node.op == "broadcast_in_dim":
        pairs = list(zip(source.shape, node.kwargs["dims"]))
        equal = [same(dim, node.out.shape[axis]) for dim, axis in pairs]
        if not all(is_equal or is_one(dim) for is_equal, (dim, _) in zip(equal, pairs)):
            return None
        return [axis if is_equal else None for is_equal, (_, axis) in zip(equal, pairs)]
    targets = [axis for axis, dim in enumerate(node.out.shape) if not is_one(dim)]
    sources = [axis for axis, dim in enumerate(source.shape) if not is_one(dim)]
    if len(targets) != len(sources):
        return None
    found: list[int | None] = [None] * source.ndim
    for mine, theirs in zip(sources, targets):
        if not same(source.shape[mine], node.out.shape[theirs]):
            return None
        found[mine] = theirs
    return found


def source_window(node: Node, window: Window) -> Window:
    """The window of what a view is of that a window of the view shows."""
    params = node.kwargs
    if node.op in COPIES:
        return window
    if node.op == "strided_slice":
        starts = tuple(a + s * w for a, s, w in zip(params["starts"], params["steps"], window.starts))
        steps = tuple(s * w for s, w in zip(params["steps"], window.steps))
        return Window(starts, window.sizes, steps)
    axes = inverse(params["perm"]) if node.op == "transpose" else kept_axes(node)
    picked = [(0, 1, 1) if k is None else (window.starts[k], window.sizes[k], window.steps[k]) for k in axes]
    return Window(tuple(p[0] for p in picked), tuple(p[1] for p in picked), tuple(p[2] for p in picked))


def view_of_part(node: Node, part: Var, window: Window, emit: Callable[..., Any]) -> Var:
    """A window of a view, ``part`` being the window of what it is of."""
    if node.op == "strided_slice" or node.op in COPIES:
        return part
    made: Var
    if node.op == "transpose":
        made = emit("transpose", part, perm=node.kwargs["perm"])
    elif node.op == "broadcast_in_dim":
        made = emit("broadcast_in_dim", part, shape=window.sizes, dims=node.kwargs["dims"])
    else:
        made = emit("reshape", part, shape=window.sizes)
    return made
