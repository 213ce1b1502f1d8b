"""Where symbols of array sizes are read at run time."""

from __future__ import annotations

from dataclasses import dataclass

from .source import Source


@dataclass(frozen=True)
class SymbolPlace:
    """``what`` ("int", "dim", or "stride" in elements of ``itemsize`` bytes) of what ``source`` yields."""

    source: Source
    what: str
    axis: int = 0
    itemsize: int = 1
    tensor: bool = False  # read through DLPack's exchange table, strides in elements
