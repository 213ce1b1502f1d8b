"""Loops whose vectors gcc would put together element by element, or leave to a long scalar rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ....dtypes import bfloat16, float16
from ....prims.scalar import REDUCERS, SCALARS
from ...loops.loop_ir import Buffer
from ..nest import Nest, Node, coefficient
from ..walk import Compute, Loop

# What costs less is not worth vectors put together from elements that lie apart.
ACROSS_COST = 4
# Elements of up to so many bytes: the rest of a row is up to 63 of them.
NARROW_BYTES = 2
VECTOR_BYTES = 64
# Whole steps of a row to which the rest of it is worth a thought.
MASKED_STEPS = 32
LONG = 32  # elements of a step that gcc must not take for a record
MASKED_BYTES = 4  # of the narrowest elements that are loaded under a mask


def goes_across(nodes: Sequence[Node], name: str) -> bool:
    """Whether a loop's steps lie apart in memory and do little: vectors would be put together element by
    element (which takes gcc seconds to write, too)."""
    if looks_like_records(nodes, name):
        return True
    steps = [coefficient(n.arg[1], name) for n in nodes if n.op in ("load", "store")]
    steps = [step for step in steps if not isinstance(step, int) or step != 0]
    costs = [SCALARS[n.op].cost for n in nodes if n.op in SCALARS]
    if not steps or max(costs, default=0) >= ACROSS_COST:
        return False
    return all(isinstance(step, int) and abs(step) > 1 for step in steps)


def looks_like_records(nodes: Sequence[Node], name: str) -> bool:
    """Whether there are several accesses of one buffer in large steps. They are not vectorised at all: gcc
    takes them for parts of records, and writes code for whole ones (for minutes, where they are long)."""
    accesses = Counter(
        (n.op, n.arg[0], coefficient(n.arg[1], name)) for n in nodes if n.op in ("load", "store")
    )
    return any(
        count > 1 and isinstance(step, int) and abs(step) > LONG for (*_, step), count in accesses.items()
    )


def lanes_of_tail(loop: Loop, nest: Nest, buffers: Mapping[str, Buffer]) -> int:
    """How many of the last elements of a loop may be computed together once more, in place of a rest of fewer
    one by one; 0 for none. Nothing that the loop writes is read by it, or summed up."""
    nodes = [i.node for i in loop.items if isinstance(i, Compute)]
    size = nest.axes[loop.axes[-1]].static
    narrowest = min((n.dtype.itemsize for n in nodes), default=0)
    if size is None or len(nodes) < len(loop.items) or not 0 < narrowest <= NARROW_BYTES:
        return 0
    if any(n.dtype in (float16, bfloat16) for n in nodes):
        return 0  # computed in float32
    lanes = VECTOR_BYTES // narrowest
    if size < lanes or size % lanes == 0:
        return 0
    plain = all(
        n.op in ("load", "store", "cast", "const", "axis", "symbol") or n.op in SCALARS for n in nodes
    )
    stores = [buffers[n.arg[0]] for n in nodes if n.op == "store"]
    alone = all(b.mode == "out" for b in stores) and not any(b.aliases for b in buffers.values())
    return lanes if plain and alone and stores else 0


def is_rest_masked(loop: Loop, nest: Nest, count: int) -> bool:
    """Whether what is left of a row, after steps of ``count`` lanes, is added to all lanes under a mask.
    Stores to a few of the lanes, which are then read as whole vectors, make the processor wait: for rows of
    50 doubles as long again as for all else. What is masked out counts as zero, of which no operation may
    raise a flag."""
    nodes = [i.node for i in loop.items if isinstance(i, Compute)]
    size = nest.axes[loop.axes[-1]].static
    if size is None or len(nodes) < len(loop.items) or not count <= size <= MASKED_STEPS * count:
        return False
    width, rest = nodes[0].dtype.itemsize, size % count
    if rest == 1 or rest * width % VECTOR_BYTES == 0 or rest * 2 == count:
        return (
            False  # gcc takes one element out of the loop; others are stored as whole vectors, or as halves
        )
    return all(_is_light(n, loop.axes[-1]) and n.dtype.kind == "float" for n in nodes) and all(
        n.dtype.itemsize == width and width >= MASKED_BYTES for n in nodes
    )


def _is_light(node: Node, name: str) -> bool:
    if node.op == "load":
        step = coefficient(node.arg[1], name)
        return isinstance(step, int) and step in (0, 1)
    if node.op == "accumulate":
        return not REDUCERS[node.arg.combiner].position
    return node.op == "const" or (node.op in SCALARS and SCALARS[node.op].cost == 1)
