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
    objects = list(tracer.input_objects.items())
    for name in mutated:
        target = tracer.input_objects.get(name)
        for other, obj in objects:
            if other != name and target is not None and _overlap(target, obj):
                pair = (sources[name], sources[other])
                tracer.guard(None, Kind.OVERLAP, NoOverlap(pair, (0,)))  # type: ignore[arg-type]
                raise Break("unsupported-operation", "two arguments share memory and one of them is written")


def _overlap(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.may_share_memory(a, b))
    return _extent_overlap(a, b)


def _extent_overlap(a: object, b: object) -> bool:
    first, second = (_extent(a), _extent(b))
    return first is not None and second is not None and first[0] < second[1] and second[0] < first[1]


def _extent(tensor: Any) -> tuple[int, int] | None:
    """The first address of an array of another library and the one past the last."""
    if hasattr(type(tensor), "__cuda_array_interface__") and not hasattr(tensor, "data_ptr"):
        offsets = [(n - 1) * s for n, s in zip(tensor.shape, tensor.strides) if n]
        first = int(tensor.data.ptr) + sum(min(offset, 0) for offset in offsets)
        return first, first + sum(map(abs, offsets)) + int(tensor.itemsize)
    if not hasattr(tensor, "data_ptr"):
        return None
    span = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()) if n) + 1
    start = tensor.data_ptr()
    return start, start + span * tensor.element_size()
