"""Stores past the caches: what a kernel writes is not read first where it touches more than these hold.

A strip of the vector loop is computed into an array on the stack, which is then copied out by whole cache
lines (``dcv_stream_copy`` of the runtime).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ....symbolic.integers import hint
from ...loops.loop_ir import Buffer, Kernel
from ..nest import Node, coefficient
from ..walk import Compute, Item

# A kernel that touches this much leaves nothing in a shared cache, however large that claims to be: of the
# last level each core of a large processor has a part (measured on a Xeon: at 32 MB in all plain stores are
# 1.5 times as fast where the result is read next, at 64 MB these are). Of a smaller cache it is seven eighths
# (Zen 4 with 32 MB: times as fast as plain stores alone, before a maximum and before a product of the result
# at 24 MB in all 1.1, 0.7 and 1.0, at 28 MB 1.3, 0.9 and 1.2, at 40 MB 1.4, 1.1 and 1.4).
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
    """The size of the first core's cache of the third level; 0 where it is not known. The C library's
    ``sysconf`` counts those of all cores of the host together on some virtual machines."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text()
    except OSError:
        return 0
    found = re.fullmatch(r"(\d+)([KM])\n?", text)
    return int(found[1]) << (10 if found[2] == "K" else 20) if found else 0


@cache
def is_amd() -> bool:
    """Whether this is one of AMD's processors."""
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return False


def leaves_caches(kernel: Kernel, in_tiles: bool = False) -> bool:
    """Whether a kernel touches more memory than the caches hold; ``in_tiles``: it transposes tiles."""
    most = STREAM_TILES_BYTES if in_tiles else STREAM_BYTES
    return touched_bytes(kernel) > min(last_level_bytes() * 7 // 8 or most, most)


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


def strip_of(items: Iterable[Item], buffers: Mapping[str, Buffer]) -> int:
    """Elements of a strip of a loop: what is read is not much more than what is asked for ahead."""
    nodes = [item.node for item in items if isinstance(item, Compute)]
    touched = [buffers[node.arg[0]] for node in nodes if node.op in ("load", "store")]
    return STRIP_BYTES // max(buffer.dtype.itemsize for buffer in touched)
