"""Leaving ``np.errstate`` behind a graph break inside of the block, where it was entered for real."""

from __future__ import annotations

from contextvars import Token, copy_context
from typing import Any

import numpy as np

from ..breaks import Break
from ..effects import defer
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..values.base import Tracer, Value
from ..values.obj import InstanceValue
from .registry import NONE, builtin

_QUIET = ("ignore", "warn")


def leaves_quietly(state: object, expected: None) -> bool:
    """Whether no errors are raised or called for once ``state`` is left: graphs do neither."""
    token = getattr(state, "_token", None)
    if not isinstance(token, Token):
        return False
    if token.old_value is Token.MISSING:
        return True  # NumPy's default is to warn
    context = copy_context()
    context.run(token.var.set, token.old_value)
    return all(mode in _QUIET for mode in context.run(np.geterr).values())


def run_exit(state: Any) -> None:
    """The end of the block, without an exception."""
    state.__exit__(None, None, None)


@builtin(np.errstate.__exit__)
def _leave_errstate(tracer: Tracer, state: Value, *exception: Value) -> Value:
    without = len(exception) == 3 and all(v.is_const and v.const is None for v in exception)
    if not isinstance(state, InstanceValue) or state.cls is not np.errstate or state.source is None:
        raise Break("with-block", "np.errstate ends")
    if not without or state.mutated or not leaves_quietly(state.obj, None):
        raise Break("with-block", "np.errstate ends with an exception, or restores stricter modes")
    check = CustomCheck(leaves_quietly, None, "an np.errstate that restores no stricter modes")
    tracer.guard(state.source, Kind.CUSTOM_ARRAY, check)
    defer(tracer, run_exit, [state], {})
    return NONE
