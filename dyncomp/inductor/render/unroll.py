"""Writing out short loops, so that a longer one can be the vector loop.

The three channels of a picture, the coordinates of a point or a 3×3 matrix are no vector, however contiguous
they are. Every statement over such an axis is repeated with the axis's positions as constants; a reduction
over it becomes a chain of scalar operations, in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ...prims.scalar import REDUCERS
from ..loops.loop_ir import Index
from .nest import Accumulator, Nest, Node, coefficient, index_of, merge_axes, with_index

# The longest loop that is written out, the shortest that is worth having as vector loop instead, and the
# most statements that this may make. Sums of floats over fewer points are made in order.
LONGEST = 8
LONG_ENOUGH = 32
MOST_NODES = 192
IN_ORDER_POINTS = 4096


def unroll_short_axes(nest: Nest, innermost: Callable[[Nest], str]) -> None:
    """Write out short axes that are reduced, or that ``innermost`` would have as the vector loop."""
    while True:
        name = next((n for n in _candidates(nest, innermost) if _possible(nest, n)), None)
        if name is None:
            return
        _unroll(nest, name)
        merge_axes(nest)


def _candidates(nest: Nest, innermost: Callable[[Nest], str]) -> list[str]:
    short = [n for n, axis in nest.axes.items() if axis.static is not None and axis.static <= LONGEST]
    if not short or all(axis.hint < LONG_ENOUGH for axis in nest.axes.values()):
        return []
    chosen = innermost(nest)
    reduced = nest.reduced()
    if is_in_order(nest):
        return [n for n in short if n in reduced]
    return [n for n in short if n == chosen or n in reduced]


def is_in_order(nest: Nest) -> bool:
    """Whether a few rows of floats are added up one after another, as NumPy adds them, however short they
    are: programs that go on until nothing changes (means of clusters) then do so as often."""
    points = math.prod(max(axis.hint, 1) for axis in nest.axes.values())
    return points <= IN_ORDER_POINTS and any(
        isinstance(n.arg, Accumulator) and n.arg.combiner == "sum" and _is_inexact(n.arg) for n in nest.nodes
    )


def _is_inexact(acc: Accumulator) -> bool:
    return acc.dtype.is_float or acc.dtype.is_complex


def _possible(nest: Nest, name: str) -> bool:
    over = [node for node in nest.nodes if name in node.axes]
    if len(over) * (nest.axes[name].static or 0) > MOST_NODES:
        return False
    return all(_may_repeat(node, name) for node in nest.nodes)


def _may_repeat(node: Node, name: str) -> bool:
    if node.op == "scan":
        return node.arg[1] != name
    if not isinstance(node.arg, Accumulator) or name not in node.arg.reduced:
        return True
    return node.arg.reduced == (name,) and not node.arg.position and _exact_in_register(node.arg)


def _exact_in_register(acc: Accumulator) -> bool:
    """Half types accumulate in float32; a chain of operations would round each time."""
    return acc.dtype.name not in ("float16", "bfloat16")


def _unroll(nest: Nest, name: str) -> None:
    size = nest.axes[name].static or 0
    repeated = {node.out for node in nest.nodes if node.out and name in node.axes}
    chains: dict[str, str] = {}
    made: list[Node] = []
    for node in nest.nodes:
        acc = node.arg
        if isinstance(acc, Accumulator) and name in acc.reduced:
            if node.op == "accumulate":
                made += _chain(node, name, size, repeated, chains)
            else:
                made.append(replace(node, op="cast", args=(chains[acc.value],), arg=None))
        elif name in node.axes:
            made += [_at_position(node, name, k, repeated) for k in range(size)]
        else:
            made.append(node)
    nest.nodes = made
    del nest.axes[name]


def _chain(node: Node, name: str, size: int, repeated: set[str], chains: dict[str, str]) -> list[Node]:
    """The accumulated values combined one after another."""
    acc: Accumulator = node.arg
    combine = REDUCERS[acc.combiner].combine
    (source,) = node.args
    terms = [_renamed(source, k, repeated) for k in range(size)]
    made: list[Node] = []
    total = terms[0]
    for k, term in enumerate(terms[1:], 1):
        # as in the loop: of two NaNs max and min keep the later
        args = (term, total) if acc.combiner in ("max", "min") else (total, term)
        total = f"{acc.value}_u{k}"
        made.append(Node(total, combine, args, node.axes - {name}, None, acc.dtype))
    chains[acc.value] = total
    return made


def _at_position(node: Node, name: str, position: int, repeated: set[str]) -> Node:
    made = replace(
        node,
        out=_renamed(node.out, position, repeated),
        args=tuple(_renamed(a, position, repeated) for a in node.args),
        axes=node.axes - {name},
    )
    index = index_of(node)
    if index is not None:
        terms = tuple(t for t in index.terms if t[0] != name)
        made = with_index(made, Index(terms, index.offset + coefficient(index, name) * position))
    if isinstance(node.arg, Accumulator):
        value = f"{node.arg.value}_u{position}"
        made = replace(made, arg=replace(node.arg, value=value, axes=node.arg.axes - {name}))
    return made


def _renamed(name: str, position: int, repeated: set[str]) -> str:
    return f"{name}_u{position}" if name in repeated else name
