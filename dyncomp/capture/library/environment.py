"""What is read from around the program: environment variables."""

from __future__ import annotations

import os
from typing import Any

from ..breaks import Break
from ..guards.fact_kinds import CustomCheck
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


def _read(tracer: Tracer, name: object) -> str | None:
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
