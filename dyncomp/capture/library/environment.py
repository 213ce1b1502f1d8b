"""What is read from around the program: environment variables, context variables."""

from __future__ import annotations

import os
from contextvars import Context, ContextVar
from typing import Any

from ..breaks import Break
from ..guards.facts import CustomCheck
from ..guards.guard import Kind
from ..guards.source import ConstSource
from ..values.base import Tracer, Value
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from .registry import NONE, builtin


def has_variable(environment: Any, expected: tuple[str, str | None]) -> bool:
    """The guard of an environment variable; ``None``: there is none."""
    name, value = expected
    return bool(environment.get(name) == value)


def _read(tracer: Tracer, name: Any) -> str | None:
    if type(name) is not str:
        raise Break("would-raise", "the name of an environment variable that is no string")
    found = tracer.fold(os.environ.get, name)
    words = f"os.environ[{name!r}] is {found!r:.40}" if found is not None else f"{name!r} not in os.environ"
    check = CustomCheck(has_variable, (name, found), words)
    tracer.guard(ConstSource(os.environ, "os.environ"), Kind.CUSTOM_ARRAY, check)
    return found


@builtin(type(os.environ).__getitem__)
def _environ_item(tracer: Tracer, environment: Value, key: Value) -> Value:
    if not isinstance(environment, InstanceValue) or environment.obj is not os.environ:
        raise Break("unsupported-call", f"an item of {environment.describe()}")
    name = tracer.constant_of(key, "the name of an environment variable")
    found = _read(tracer, name)
    if found is None:
        tracer.raise_exception(KeyError, name)
    return ConstValue(found)


@builtin(os.getenv)
def _getenv(tracer: Tracer, key: Value, default: Value = NONE) -> Value:
    found = _read(tracer, tracer.constant_of(key, "the name of an environment variable"))
    return default if found is None else ConstValue(found)


# -- context variables ------------------------------------------------------------------------------------
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
