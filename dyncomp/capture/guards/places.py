"""Where symbols of array sizes are read at run time."""

from __future__ import annotations

from typing import Any

from ...dataclass import dataclass
from .source import Source


@dataclass(frozen=True)
class SymbolPlace:
    """``what`` ("int", "dim", or "stride" in elements of ``itemsize`` bytes) of what ``source`` yields;
    "number": the Python int ``value``, which compiled code computes before the graph."""

    source: Source | None
    what: str
    axis: int = 0
    itemsize: int = 1
    tensor: bool = False  # read through DLPack's exchange table, strides in elements
    value: Any = None
