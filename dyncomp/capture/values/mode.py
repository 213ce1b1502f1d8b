"""Blocks that set a mode of a library for the captured code in them, such as ``torch.autocast``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Codegen, Tracer, Value
from .context import InertContextValue, InertExitValue
from .number import ConstValue


class ModeContextValue(InertContextValue):
    """A library's context manager that sets a mode for the captured code in its block: ``setting`` is the
    mode's name, key and value (``Frontend.mode_of``)."""

    def __init__(
        self, cls: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], setting: tuple[str, str, Any]
    ) -> None:
        super().__init__(cls, kwargs)
        self.args = args
        self.setting = setting

    def enter(self, tracer: Tracer) -> InertExitValue:
        name, key, value = self.setting
        records = any(frontend.records(self.setting) for frontend in tracer.config.frontends)
        if records and not tracer.decisions.recorded:
            tracer.decisions.recorded = True
            raise tracer.restart
        before = tracer.tx.modes.get(name, {})
        tracer.tx.modes[name] = {**before, key: value}
        return ModeExitValue(self, before)

    def given(self) -> Value:
        return self if isinstance(self.cls, type) else ConstValue(None)

    def reconstruct(self, cg: Codegen) -> str:
        parts = [*map(cg.constant, self.args), *(f"{k}={cg.constant(v)}" for k, v in self.kwargs.items())]
        return f"{cg.constant(self.cls)}({', '.join(parts)})"


class ModeExitValue(InertExitValue):
    """The bound ``__exit__`` of a mode's block: it puts back what was there ``before``."""

    manager: ModeContextValue

    def __init__(self, manager: ModeContextValue, before: dict[str, Any]) -> None:
        super().__init__(manager)
        self.before = before

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.tx.modes[self.manager.setting[0]] = self.before
        return ConstValue(None)


class ModeObjectValue(ModeContextValue):
    """Such a manager that was made outside of captured code."""

    def __init__(self, manager: Value, setting: tuple[str, str, Any]) -> None:
        super().__init__(manager.pytype, [], {}, setting)
        self.manager = manager

    def given(self) -> Value:
        return self.manager

    def reconstruct(self, cg: Codegen) -> str:
        return cg.value(self.manager)
