"""Small arrays that objects of the program hold (a module's buffers ``kernel_size`` and ``stride``), where
their elements are needed as numbers: these are guarded. Not so those of arguments, and of what an earlier
capture found to hold something else (a counter): they depend on the data."""

from __future__ import annotations

from typing import Any

from ...device import CPU
from ...graph.ir import Var
from ..guards.fact_kinds import Elements
from ..guards.guard import Kind
from ..guards.source import AttrSource, GlobalSource, InstanceDictSource, Source
from ..values.array import ArrayValue
from ..values.base import Tracer

_MOST = 16  # elements


class HeldElements:
    """``GraphBuilder.held`` of a capture."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def elements(self, var: Var) -> Any:
        """A copy of what an input of the graph holds, as a NumPy array; ``None`` where that may change."""
        value = self._input(var)
        array = None if value is None else self._array(value)
        if value is None or value.source is None or array is None:
            return None
        seen = self._tracer.config.state_of(self._tracer.code).seen
        key, found = f"{value.source.expr()}: elements", Elements.of(array)
        if seen.setdefault(key, found) != found:
            seen[key] = None  # for good
            return None
        return array

    def rely(self, var: Var) -> None:
        """Guard what ``elements`` gives for an input."""
        value = self._input(var)
        assert value is not None
        assert value.source is not None
        self._tracer.guard(value.source, Kind.ELEMENTS, Elements.of(self._array(value)))

    def _input(self, var: Var) -> ArrayValue | None:
        for value in self._tracer.inputs:
            if isinstance(value, ArrayValue) and value.ref.var is var:
                held = value.ref.kind == "array" and value.source is not None and _is_held(value.source)
                return value if held and var.name not in self._tracer.builder.differentiated else None
        return None

    def _array(self, value: ArrayValue) -> Any:
        obj = self._tracer.input_objects.get(value.ref.var.name)
        static = all(isinstance(size, int) for size in value.ref.shape)
        if obj is None or value.ref.type.device != CPU or not static or value.ref.dtype.name == "bfloat16":
            return None
        owner = self._tracer.config.frontend_named(value.ref.frontend).owner
        array = obj if owner is None else owner.to_numpy(obj)
        small = array.size <= _MOST and array.dtype.kind in "biuf" and array.flags.c_contiguous
        return array.copy() if small else None


def _is_held(source: Source) -> bool:
    """Whether an object or a module holds what is found there."""
    found: Source | None = source
    while found is not None:
        if isinstance(found, (AttrSource, InstanceDictSource, GlobalSource)):
            return True
        found = found.parent
    return False
