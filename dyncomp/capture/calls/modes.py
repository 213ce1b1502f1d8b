"""Blocks of a library's context managers that set a mode for the captured code in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import Unsupported
from ...frontends.base import Frontend, StateGuard
from ..breaks import Break
from ..values.base import Tracer
from ..values.mode import ModeContextValue, ModeObjectValue
from ..values.obj import InstanceValue


def block_of_class(
    tracer: Tracer, frontend: Frontend, cls: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> ModeContextValue | None:
    """``cls(*args, **kwargs)``, ``None`` where the library has no such manager."""
    setting = _setting(frontend, cls, args, kwargs)
    if setting is None or (frontend.acts_when_made(cls) and not _begins_block(tracer)):
        return None
    tracer.take_direct()
    tracer.assume_state(frontend)
    if isinstance(setting[2], StateGuard):
        tracer.tx.states[setting[0]] = setting[2]
    return ModeContextValue(cls, args, kwargs, setting, frontend.enters_as_itself(cls))


def _begins_block(tracer: Tracer) -> bool:
    """Whether what the present instruction makes is the manager of the block that begins then."""
    frame = tracer.frames[-1]
    following = frame.code.instructions[frame.current + 1 : frame.current + 2]
    return bool(following) and following[0].op == "BEFORE_WITH"


def block_of_object(tracer: Tracer, manager: InstanceValue) -> ModeObjectValue | None:
    """A manager that was made outside of captured code, ``None`` where the library has no such manager."""
    if manager.source is None or manager.mutated:
        return None
    for frontend in tracer.config.frontends:
        names = frontend.mode_attributes(manager.cls)
        values = [manager.getattr(tracer, name) for name in names]
        if names and all(value.is_const for value in values):
            setting = _setting(frontend, manager.cls, [value.const for value in values], {})
            if setting is not None:
                tracer.assume_state(frontend)
                return ModeObjectValue(manager, setting)
    return None


def _setting(
    frontend: Frontend, cls: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> tuple[str, str, Any] | None:
    try:
        found: tuple[str, str, Any] | None = frontend.mode_of(cls, tuple(args), kwargs)
    except Unsupported as problem:
        raise Break(problem.break_id, problem.reason) from None
    return found
