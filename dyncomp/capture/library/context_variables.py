"""Context variables: ``get``, ``set`` and ``reset``."""

from __future__ import annotations

from contextvars import Context, ContextVar
from typing import Any

from ..breaks import Break
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..guards.source import ConstSource
from ..values.base import Tracer, Value
from ..values.context_variable import ContextVariableState
from ..values.number import ConstValue
from .registry import NONE, builtin

_PLAIN = (int, float, str, bool, bytes, type(None))


def has_value(variable: ContextVar[Any], expected: tuple[Any, ...]) -> bool:
    """The guard of a context variable: its type and value, nothing where it has none."""
    found = variable.get(_MISSING)
    if found is _MISSING or not expected:
        return found is _MISSING and not expected
    return type(found) is type(expected[0]) and bool(found == expected[0])


_MISSING: Any = object()


@builtin(ContextVar.get)
def _get(tracer: Tracer, variable: Value, default: Value | None = None, /) -> Value:
    known: ContextVar[Any] = tracer.constant_of(variable, "a context variable")
    state: ContextVariableState | None = tracer.states.get(id(known))
    if state is not None and state.pending:
        return state.pending[-1].value
    found = known.get(_MISSING)
    own_default = _default_of(known) if default is None else _MISSING
    if found is not _MISSING and (type(found) not in _PLAIN or found != found):
        raise Break("unsupported-call", f"the value of context variable {known.name}")
    expected = () if found is _MISSING else (found,)
    words = repr(expected[0]) if expected else "not set"
    check = CustomCheck(has_value, expected, f"{known.name} is {words:.40}")
    tracer.guard(ConstSource(known, known.name), Kind.CUSTOM_ARRAY, check)
    if found is not _MISSING:
        return ConstValue(found)
    if type(own_default) in _PLAIN:
        return ConstValue(own_default)
    if default is None:
        raise Break("unsupported-call", f"the value of context variable {known.name}")
    return default


def _default_of(variable: ContextVar[Any]) -> Any:
    """What a context variable gives where it was never set."""
    try:
        return Context().run(variable.get)
    except LookupError:
        return _MISSING


@builtin(ContextVar.set)
def _set(tracer: Tracer, variable: Value, value: Value, /) -> Value:
    known: ContextVar[Any] = tracer.constant_of(variable, "a context variable")
    state = tracer.states.get(id(known))
    if state is None:
        state = tracer.states[id(known)] = ContextVariableState(known, ConstSource(known, known.name))
    tracer.note_mutation(state)
    return state.set(value)


@builtin(ContextVar.reset)
def _reset(tracer: Tracer, variable: Value, token: Value, /) -> Value:
    known: ContextVar[Any] = tracer.constant_of(variable, "a context variable")
    state = tracer.states.get(id(known))
    if state is None or not state.pending or state.pending[-1] is not token:
        raise Break("unsupported-call", f"reset of context variable {known.name} by a token from before")
    tracer.note_mutation(state)
    state.reset()
    return NONE
