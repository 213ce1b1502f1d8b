"""Calls of functions marked by ``dyncomp.assume_constant_result``: made once, at capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...signals import is_from_handler
from ..breaks import Break
from ..guards.source import ConstSource
from ..values.array import ArrayValue
from ..values.base import OpaqueValue, Tracer, Value
from ..values.func import FunctionValue
from ..values.obj import InstanceValue, ModuleValue


def constant_result(
    tracer: Tracer, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """The value of the result, called for at most once per capture and equal arguments."""
    tracer.take_direct()
    tracer.may_be_stored = False
    given = [_object_of(tracer, function, v) for v in args]
    named = {k: _object_of(tracer, function, v) for k, v in kwargs.items()}
    made = tracer.decisions.constant_results
    key = (id(function), *map(_key, given), *((k, _key(v)) for k, v in named.items()))
    if key not in made:
        try:
            made[key] = (function(*given, **named), given, named)
        except Exception as error:
            if is_from_handler(error):
                raise
            raise Break("would-raise", f"{function.__qualname__}: {type(error).__name__}: {error}") from None
    result = made[key][0]
    return tracer.child_or_constant(result, ConstSource(result, f"{function.__qualname__}()"))


def _key(obj: object) -> Any:
    return (type(obj), obj) if type(obj) in (int, float, str, bytes, bool, type(None)) else id(obj)


def _object_of(tracer: Tracer, function: Any, value: Value) -> Any:
    value = tracer.realize(value)
    if value.is_const:
        return value.const
    if isinstance(value, FunctionValue):
        return value.function
    if isinstance(value, ModuleValue):
        return value.module
    unchanged = isinstance(value, InstanceValue) and not value.mutated and value.source is not None
    if unchanged or isinstance(value, OpaqueValue):
        return value.obj  # type: ignore[attr-defined]
    if isinstance(value, ArrayValue):
        raise Break("unsupported-call", f"{function.__qualname__} is assumed constant but is given an array")
    raise Break(
        "unsupported-call", f"{function.__qualname__} is assumed constant but given {value.describe()}"
    )
