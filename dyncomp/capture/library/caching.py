"""``functools.lru_cache`` and ``functools.cmp_to_key`` of functions made in the frame."""

from __future__ import annotations

import functools

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.cached import CachedFunctionValue
from ..values.func import FunctionValue, NestedFunctionValue
from ..values.ordering import ComparisonKeyValue
from .registry import builtin


@builtin(functools.cmp_to_key)
def _cmp_to_key(tracer: Tracer, mycmp: Value) -> Value:
    return ComparisonKeyValue(mycmp)


@builtin(functools._lru_cache_wrapper)
def _cached(tracer: Tracer, function: Value, maxsize: Value, typed: Value, info: Value, /) -> Value:
    if not isinstance(function, (FunctionValue, NestedFunctionValue)):
        raise Break("unsupported-call", f"lru_cache of {function.describe()}")
    size = tracer.constant_of(maxsize, "the size of a cache")
    if size is not None and (type(size) is not int or size < 0):
        raise Break("unsupported-call", "lru_cache of an odd size")
    return CachedFunctionValue(tracer, function, size, typed.truth(tracer))
