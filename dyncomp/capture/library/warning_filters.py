"""``warnings.catch_warnings`` and what changes the filters inside of it.

Graphs warn of nothing, so that a block whose filters only say what is shown is as good as none. Where the
graph breaks inside the block it is entered for real.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...signals import is_from_handler
from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.context import WarningFiltersValue
from .registry import NONE, builtin

_SHOWING = (None, "default", "always", "ignore", "module", "once")


@builtin(warnings.catch_warnings)
def _catch_warnings(tracer: Tracer, **kwargs: Value) -> Value:
    given = {name: tracer.constant_of(v, "an argument of catch_warnings") for name, v in kwargs.items()}
    if given.get("record", False) or given.get("module") is not None:
        raise Break("unsupported-call", "warnings.catch_warnings that records or is of another module")
    _check_action(given.get("action"), "catch_warnings")
    return WarningFiltersValue(warnings.catch_warnings, given)


def _check_action(action: object, what: str) -> None:
    if action not in _SHOWING:
        raise Break("unsupported-call", f"warnings.{what}({action!r:.20}) makes warnings exceptions")


def _change(
    tracer: Tracer, function: Callable[..., Any], args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Value:
    if not tracer.filter_blocks:
        raise Break("unsupported-call", f"warnings.{function.__name__} changes what is shown from now on")
    constants = [tracer.constant_of(v, "a warning filter") for v in args]
    given = {name: tracer.constant_of(v, "a warning filter") for name, v in kwargs.items()}
    _check_action(constants[0] if constants else given.get("action"), function.__name__)
    try:
        with warnings.catch_warnings():
            function(*constants, **given)
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Break("would-raise", f"warnings.{function.__name__}: {error}") from None
    tracer.steps += 1
    tracer.filter_blocks[-1].calls.append((function, constants, given))
    return NONE


@builtin(warnings.simplefilter)
def _simplefilter(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
    return _change(tracer, warnings.simplefilter, args, kwargs)


@builtin(warnings.filterwarnings)
def _filterwarnings(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
    return _change(tracer, warnings.filterwarnings, args, kwargs)
