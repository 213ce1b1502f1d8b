"""Blocks that set a mode of a library for the captured code in them, such as ``torch.autocast``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...errors import Unsupported
from .base import Codegen, Tracer, Value
from .context import InertContextValue, InertExitValue
from .number import ConstValue


class ModeContextValue(InertContextValue):
    """A library's context manager that sets a mode for the captured code in its block: ``setting`` is the
    mode's name, key and value (``Frontend.mode_of``). ``itself``: it is what its ``__enter__`` gives."""

    def __init__(
        self,
        cls: Callable[..., Any],
        args: list[Any],
        kwargs: dict[str, Any],
        setting: tuple[str, str, Any],
        itself: bool = False,
    ) -> None:
        super().__init__(cls, kwargs)
        self.args = args
        self.setting = setting
        self.itself = itself

    def enter(self, tracer: Tracer) -> InertExitValue:
        name, key, value = self.setting
        _see_history(tracer, self.setting)
        before = tracer.tx.modes.get(name, {})
        tracer.tx.modes[name] = {**before, key: value}
        return ModeExitValue(self, before)

    def given(self) -> Value:
        return self if self.itself else ConstValue(None)

    def reconstruct(self, cg: Codegen) -> str:
        parts = [*map(cg.constant, self.args), *(f"{k}={cg.constant(v)}" for k, v in self.kwargs.items())]
        return f"{cg.constant(self.cls)}({', '.join(parts)})"


class ModeExitValue(InertExitValue):
    """The bound ``__exit__`` of a mode's block: it puts back what was there ``before``."""

    manager: ModeContextValue

    def __init__(self, manager: ModeContextValue, before: dict[str, Any]) -> None:
        super().__init__(manager)
        self.before = before

    def reconstruct(self, cg: Codegen) -> str:
        cg.set_modes()  # the block was entered afterwards
        return super().reconstruct(cg)

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


# -- modes that are set for good -----------------------------------------------------------------------
class SetMode(NamedTuple):
    """``function(value)`` sets the mode for what runs after the captured part; ``modes`` holds from the call
    on in captured code."""

    function: Callable[..., Any]
    value: object
    modes: dict[str, Any]


def set_mode(tracer: Tracer, setting: tuple[str, str, Any], function: Callable[..., Any]) -> None:
    """Set a mode until something else sets it, be it after captured code. Raises ``Unsupported`` in a block,
    whose end puts back what was there before."""
    name, key, value = setting
    before, last = tracer.tx.modes.get(name), tracer.modes_set.get(name)
    if before and (last is None or before is not last.modes):
        raise Unsupported("a mode that is set for good in a block that sets it")
    tracer.refuse_for_batch("a mode that is set for good")
    _see_history(tracer, setting)
    tracer.steps += 1
    tracer.outside_changes += 1
    tracer.tx.modes[name] = {**(before or {}), key: value}
    tracer.modes_set[name] = SetMode(function, value, tracer.tx.modes[name])


def _see_history(tracer: Tracer, setting: tuple[str, str, Any]) -> None:
    """Begin again where arrays from outside have to be asked for their history, and were not."""
    records = any(frontend.records(setting) for frontend in tracer.config.frontends)
    if records and not tracer.decisions.recorded:
        tracer.decisions.recorded = True
        raise tracer.restart
