"""Decimal arithmetic depends on the thread's context, and notes there what happened to the result."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..guards.source import ConstSource
from .base import Tracer, Value

_SETTINGS = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def settings() -> tuple[Any, ...]:
    """What of the context results depend on, where they are exact."""
    context = decimal.getcontext()
    return (type(context), *(getattr(context, name) for name in _SETTINGS))


def has_settings(module: object, expected: tuple[Any, ...]) -> bool:
    """The guard of the context."""
    return settings() == expected


def check_context(
    tracer: Tracer,
    function: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    values: list[Value],
) -> Any:
    """The result of a pure function; breaks where a decimal context would note something."""
    before = decimal.getcontext()
    own = before.copy()
    own.clear_flags()
    decimal.setcontext(own)
    try:
        result = function(*args, **kwargs)
    finally:
        decimal.setcontext(before)
    if any(own.flags.values()):
        raise Break("unsupported-operation", "decimal arithmetic that is not exact")
    if decimal.Decimal in (type(result), *(value.pytype for value in values)):
        check = CustomCheck(has_settings, settings(), "the decimal context")
        tracer.guard(ConstSource(decimal, "decimal"), Kind.CUSTOM_ARRAY, check)
    return result
