"""Sizes of arrays that no program can have: the library raises at once where a graph that needs no memory for
them would compute for years. Such code is left to the library."""

from __future__ import annotations

import functools
import os

from ..errors import Unsupported
from ..graph.ir import ArrayType
from ..symbolic.integers import Dim, SymInt
from .base import TraceContext

# ops whose results the library makes in memory of their own, of any size
_MADE = frozenset(("full", "empty", "iota"))
_MOST_BYTES = 2**63 - 1  # NumPy's and torch's own limit


@functools.lru_cache(maxsize=1)
def memory_bytes() -> int:
    """The machine's memory; large where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 46


def check_extent(tx: TraceContext, op: str, made: ArrayType) -> None:
    """Refuse a value that cannot be in memory, or whose elements nobody would wait for. Symbolic sizes are
    guarded where an op makes more of them than it is given."""
    # views and fused values have no memory of their own
    most = min(_MOST_BYTES, memory_bytes() * (1 if op in _MADE else 16))
    if not _fits(made, most, op in _MADE or op == "broadcast_in_dim"):
        raise Unsupported("an array too large for this machine's memory")


def _fits(made: ArrayType, most: int, guarded: bool) -> bool:
    count: Dim = made.dtype.itemsize
    for size in made.shape:
        if isinstance(size, SymInt) or size:  # as NumPy counts: nothing is left of an axis without length
            count = count * size
    if isinstance(count, SymInt) and (not guarded or count.env.is_unbacked(count)):
        return True
    return bool(count <= most)
