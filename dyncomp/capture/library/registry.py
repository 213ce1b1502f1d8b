"""Which handler gives a builtin or library callable its meaning on traced values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.number import ConstValue

Handler = Callable[[Tracer, list[Value], dict[str, Value]], Value]
HANDLERS: dict[Any, Handler] = {}
NONE = ConstValue(None)


def find(obj: Any) -> Handler | None:
    """The handler of a builtin, ``None`` where there is none."""
    try:
        return HANDLERS.get(obj)
    except TypeError:
        return None


def builtin(*objects: Any) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register ``function(tracer, *args, **kwargs)``; arguments that do not fit break the graph."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        signature = inspect.signature(function)

        def handle(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
            try:
                signature.bind(tracer, *args, **kwargs)
            except TypeError as error:
                raise Break("would-raise", f"{objects[0].__name__}: {error}") from None
            return function(tracer, *args, **kwargs)

        for obj in objects:
            HANDLERS[obj] = handle
        return function

    return register


def expand(tracer: Tracer, iterable: Value) -> list[Value]:
    """All items of an iterable, looked at."""
    return [tracer.realize(v) for v in iterable.items(tracer)]
