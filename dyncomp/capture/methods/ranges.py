"""Methods of ranges and slices."""

from __future__ import annotations

from ..values.base import Tracer, Value
from ..values.number import ConstValue
from ..values.seq import RangeValue, SliceValue
from .table import Method, method

RANGE: dict[str, Method] = {}
SLICE: dict[str, Method] = {}


@method(RANGE)
def range_index(tracer: Tracer, owner: RangeValue, value: Value, /) -> Value:
    wanted = tracer.constant_of(value, "what a range is searched for")
    real = owner.pinned()
    if wanted not in real:
        tracer.raise_like(range(0).index, wanted)
    return ConstValue(tracer.fold(real.index, wanted))


@method(RANGE)
def range_count(tracer: Tracer, owner: RangeValue, value: Value, /) -> Value:
    return ConstValue(tracer.fold(owner.pinned().count, tracer.constant_of(value, "what a range counts")))


@method(SLICE)
def slice_indices(tracer: Tracer, owner: SliceValue, length: Value, /) -> Value:
    size = tracer.integer_of(length, "the length that a slice is of")
    if size < 0:
        tracer.raise_exception(ValueError, "length should not be negative")
    return tracer.wrap_result(tracer.fold(tracer.slice_of(owner).indices, size))
