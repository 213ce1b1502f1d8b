"""Stores past the caches: what a kernel writes is not read first where it touches more than these hold.

A strip of the vector loop is computed into an array on the stack, which is then copied out by whole cache
lines (``dcv_stream_copy`` of the runtime).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache

from ...symint import hint
from ..loopir import Buffer, Kernel
from .nest import Node, coefficient
from .walk import Compute, Item

# A kernel that touches this much leaves nothing in a shared cache, however large that claims to be: of the
# last level each core of a large processor has a part (measured: at 32 MB in all plain stores are 1.5 times
# as fast where the result is read next, at 64 MB these are).
STREAM_BYTES = 48 << 20
# The same for kernels that transpose tiles: rows of the result lie far apart, and what is read there only to
# be written over pushes itself out (Zen 4: 22 GB/s instead of 20 at 16 MB in all, 17 instead of 13 at 24 MB).
STREAM_TILES_BYTES = 16 << 20
LINE_BYTES = 64
# Bytes of a strip, and of the shortest loop that is worth it.
STRIP_BYTES = 1024
SHORT_BYTES = 512


@cache
def last_level_bytes() -> int:
    """The size of the last-level cache; 0 where it is not known."""
    try:
        return max(os.sysconf("SC_LEVEL3_CACHE_SIZE"), 0)
    except (AttributeError, ValueError, OSError):
        return 0


def leaves_caches(kernel: Kernel, in_tiles: bool = False) -> bool:
    """Whether a kernel touches more memory than the caches hold; ``in_tiles``: it transposes tiles."""
    most = min(last_level_bytes() or STREAM_BYTES, STREAM_TILES_BYTES if in_tiles else STREAM_BYTES)
    return touched_bytes(kernel) > most


def touched_bytes(kernel: Kernel) -> int:
    """Bytes of all arrays of a kernel."""
    return sum(hint(b.size) * b.dtype.itemsize for b in kernel.buffers)


def streamed_stores(
    items: Iterable[Item], axis: str, length: int, buffers: Mapping[str, Buffer]
) -> list[Node]:
    """The stores of a loop that may go past the caches: one after another, to memory that is only written."""
    nodes = [item.node for item in items if isinstance(item, Compute)]
    aliased = {b.aliases for b in buffers.values()}
    found = []
    for node in nodes:
        if node.op != "store":
            continue
        buffer = buffers[node.arg[0]]
        step = coefficient(node.arg[1], axis)
        alone = buffer.mode == "out" and not buffer.aliases and buffer.name not in aliased
        long = length * buffer.dtype.itemsize >= SHORT_BYTES
        if alone and long and isinstance(step, int) and step == 1:
            found.append(node)
    return found


def strip_of(stores: Iterable[Node], buffers: Mapping[str, Buffer]) -> int:
    """Elements of a strip."""
    return STRIP_BYTES // max(buffers[store.arg[0]].dtype.itemsize for store in stores)
