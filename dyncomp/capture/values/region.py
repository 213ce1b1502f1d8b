"""Regions of ``dyncomp.error_on_graph_break`` inside captured code."""

from __future__ import annotations

from ..environment.regions import error_on_graph_break
from ..guards.source import Source
from .base import Codegen, Tracer, Value
from .context import InertContextValue, InertExitValue
from .number import ConstValue


class RegionContextValue(InertContextValue):
    """``error_on_graph_break(enabled)``, made in the frame or found at ``source``."""

    def __init__(self, enabled: bool, source: Source | None = None) -> None:
        super().__init__(error_on_graph_break, {"enabled": enabled})
        self.enabled = enabled
        self.source = source

    def enter(self, tracer: Tracer) -> InertExitValue:
        tracer.error_regions.append(self.enabled)
        return RegionExitValue(self)

    def reconstruct(self, cg: Codegen) -> str:
        return cg.load(self.source) if self.source is not None else super().reconstruct(cg)


class RegionExitValue(InertExitValue):
    """The bound ``__exit__`` of a region that capture is in."""

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.error_regions.pop()
        return ConstValue(None)
