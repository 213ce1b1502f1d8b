"""Python's cyclic garbage collector while dyncomp compiles."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# Of objects allocated between two collections. Graphs of thousands of nodes stay alive until they are
# compiled: with Python's 700, looking at them again and again takes a third of the time of compilation.
_ALLOCATIONS = 200_000


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Have the collector run more seldom. What the program sets meanwhile, in another thread, stays."""
    before = gc.get_threshold()
    if not 0 < before[0] < _ALLOCATIONS:  # off, seldom anyway, or set by a caller
        yield
        return
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _ALLOCATIONS:
            gc.set_threshold(*before)
