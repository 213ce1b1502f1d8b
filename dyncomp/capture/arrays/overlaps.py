"""Arrays whose memory overlaps while one of them is written: left to plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..breaks import Break
from ..guards.fact_kinds import NoOverlap
from ..guards.guard import Kind
from ..values.array import ArrayValue
from ..values.base import Tracer


def refuse_overlaps(tracer: Tracer, mutated: set[str]) -> None:
    """Break off (the original runs, where it is so) when an array that the graph writes shares memory with
    another."""
    sources = {v.ref.var.name: v.memory_at for v in tracer.inputs if isinstance(v, ArrayValue)}
    extents = [(_extent(obj), name) for name, obj in tracer.input_objects.items()] if mutated else []
    reach: tuple[int, str] = (0, "")  # how far the memory goes that begins before, and whose it is
    written = reach  # the same of what the graph writes
    for (start, end), name in sorted((extent, name) for extent, name in extents if extent is not None):
        last, other = reach if name in mutated else written
        if start < min(last, end):
            pair = (name, other) if name in mutated else (other, name)
            named = tuple(sources[part] for part in pair)
            tracer.guard(None, Kind.OVERLAP, NoOverlap(named, (0,)))  # type: ignore[arg-type]
            raise Break("unsupported-operation", "two arguments share memory and one of them is written")
        if start < end:
            reach = max(reach, (end, name))
            written = max(written, (end, name)) if name in mutated else written


def _extent(tensor: Any) -> tuple[int, int] | None:
    """The first address of an array and the one past the last."""
    if isinstance(tensor, np.ndarray):
        return np.lib.array_utils.byte_bounds(tensor) if tensor.size else None
    if hasattr(type(tensor), "__cuda_array_interface__") and not hasattr(tensor, "data_ptr"):
        offsets = [(n - 1) * s for n, s in zip(tensor.shape, tensor.strides) if n]
        first = int(tensor.data.ptr) + sum(min(offset, 0) for offset in offsets)
        return first, first + sum(map(abs, offsets)) + int(tensor.itemsize)
    if not hasattr(tensor, "data_ptr"):
        return None
    span = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()) if n) + 1
    start = tensor.data_ptr()
    return start, start + span * tensor.element_size()
