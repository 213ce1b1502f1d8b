"""Python replacements that are traced in place of C functions: the user's, and our own polyfills."""

from __future__ import annotations

import inspect
import threading
import types
from typing import Any

from ..polyfills import POLYFILLS


class Substitutes:
    """The replacements that the user registered, by the C callable."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_callable: dict[Any, types.FunctionType] = {}

    def add(self, target: object, function: types.FunctionType) -> None:
        """Trace ``function`` where ``target`` is called."""
        check_signatures(target, function)
        with self._lock:
            # readers take the dict as it is: it is replaced, never changed
            self._by_callable = {**self._by_callable, target: function}

    def __bool__(self) -> bool:
        return bool(self._by_callable)

    def find(self, target: object) -> types.FunctionType | None:
        """What the user registered for a callable."""
        try:
            return self._by_callable.get(target) if self._by_callable else None
        except TypeError:
            return None


def find_polyfill(target: object) -> types.FunctionType | None:
    """Our own Python version of a C function of the standard library."""
    try:
        return POLYFILLS.get(target)
    except TypeError:
        return None


def check_target(target: object) -> None:
    """Raise ``TypeError`` where a callable needs no substitute or cannot have one."""
    if isinstance(target, types.FunctionType):
        raise TypeError(f"{target.__qualname__} is a Python function: it is traced as it is")
    if not callable(target):
        raise TypeError(f"cannot substitute a {type(target).__qualname__}: it is not callable")
    try:
        hash(target)
    except TypeError:
        raise TypeError(f"cannot substitute an unhashable {type(target).__qualname__}") from None


def check_signatures(target: Any, function: types.FunctionType) -> None:
    """Raise ``TypeError`` where ``function`` does not take the arguments that ``target`` takes."""
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"a substitute must be a Python function, not {type(function).__qualname__}")
    try:
        wanted = inspect.signature(target)
    except (ValueError, TypeError):
        return  # a C function that does not tell
    given = inspect.signature(function)
    for args, kwargs in _calls(wanted):
        try:
            given.bind(*args, **kwargs)
        except TypeError as error:
            name = getattr(target, "__qualname__", repr(target))
            text = f"{function.__qualname__}{given} cannot stand for {name}{wanted}: {error}"
            raise TypeError(text) from None


def _calls(signature: inspect.Signature) -> list[tuple[list[None], dict[str, None]]]:
    """Calls that a signature allows: with the arguments it needs, with all, with all by name."""
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    needed = [p for p in positional if p.default is p.empty]
    always = {p.name: None for p in named if p.default is p.empty}
    everything = {p.name: None for p in named}
    only = [p for p in positional if p.kind is p.POSITIONAL_ONLY]
    by_name = {p.name: None for p in positional if p.kind is p.POSITIONAL_OR_KEYWORD}
    return [
        ([None] * len(needed), dict(always)),
        ([None] * len(positional), dict(everything)),
        ([None] * len(only), {**by_name, **everything}),
    ]
