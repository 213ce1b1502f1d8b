"""Context managers whose entering and leaving changes nothing that captured code can see."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from .base import Codegen, Tracer, Value
from .number import ConstValue


class InertContextValue(Value):
    """A library context manager such as ``np.errstate(all="ignore")``: graphs run the same inside it. It is
    entered for real only where the graph breaks inside the block."""

    def __init__(self, cls: Callable[..., Any], kwargs: dict[str, Any]) -> None:
        self.cls = cls
        self.kwargs = kwargs

    @property
    def pytype(self) -> type:
        return self.cls if isinstance(self.cls, type) else contextlib._GeneratorContextManager

    def enter(self, tracer: Tracer) -> InertExitValue:
        """Begin the block; the value of the manager's bound ``__exit__``."""
        return InertExitValue(self)

    def given(self) -> Value:
        """What ``__enter__`` returns."""
        return ConstValue(None)

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(f"{k}={cg.constant(v)}" for k, v in self.kwargs.items())
        return f"{cg.constant(self.cls)}({inner})"


class WarningFiltersValue(InertContextValue):
    """``warnings.catch_warnings(...)`` that records nothing: graphs do not warn. ``calls`` are those that
    change the filters inside the block."""

    def __init__(self, cls: type, kwargs: dict[str, Any]) -> None:
        super().__init__(cls, kwargs)
        self.calls: list[tuple[Any, list[Any], dict[str, Any]]] = []

    def enter(self, tracer: Tracer) -> InertExitValue:
        tracer.filter_blocks.append(self)
        return WarningFiltersExitValue(self)


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


class WarningFiltersExitValue(InertExitValue):
    """The bound ``__exit__`` of a :class:`WarningFiltersValue` that capture is inside of."""

    manager: WarningFiltersValue

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.filter_blocks.pop()
        tracer.defer(forget_what_was_shown, [])
        return ConstValue(None)

    def reconstruct(self, cg: Codegen) -> str:
        text = super().reconstruct(cg)
        for function, args, kwargs in self.manager.calls:
            parts = [*map(cg.constant, args), *(f"{name}={cg.constant(v)}" for name, v in kwargs.items())]
            cg.line(f"{cg.constant(function)}({', '.join(parts)})")
        return text


def forget_what_was_shown() -> None:
    """What a change of the filters does besides: warnings that were shown once are shown again."""
    warnings._filters_mutated()  # type: ignore[attr-defined]
