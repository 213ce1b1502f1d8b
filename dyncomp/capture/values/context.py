"""Context managers whose entering and leaving changes nothing that captured code can see."""

from __future__ import annotations

from typing import Any

from .base import Codegen, Tracer, Value
from .number import ConstValue


class InertContextValue(Value):
    """A library context manager such as ``np.errstate(all="ignore")``: graphs run the same inside it. It is
    entered for real only where the graph breaks inside the block."""

    def __init__(self, cls: Any, kwargs: dict[str, Any]) -> None:
        self.cls = cls
        self.kwargs = kwargs

    @property
    def pytype(self) -> type:
        found: type = self.cls
        return found

    def enter(self, tracer: Tracer) -> InertExitValue:
        """Begin the block; the value of the manager's bound ``__exit__``."""
        return InertExitValue(self)

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(f"{k}={cg.constant(v)}" for k, v in self.kwargs.items())
        return f"{cg.constant(self.cls)}({inner})"


class InertExitValue(Value):
    """The bound ``__exit__`` of an :class:`InertContextValue` that has been entered."""

    def __init__(self, manager: InertContextValue) -> None:
        self.manager = manager

    @property
    def pytype(self) -> type:
        return type([].append)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return ConstValue(None)

    def reconstruct(self, cg: Codegen) -> str:
        manager = cg.value(self.manager)
        cg.line(f"{manager}.__enter__()")
        return f"{manager}.__exit__"
