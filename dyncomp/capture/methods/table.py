"""Which function executes which method of a builtin container."""

from __future__ import annotations

from collections.abc import Callable

from ..values.base import Value

Method = Callable[..., Value]


def method(table: dict[str, Method]) -> Callable[[Method], Method]:
    """Register ``<type>_<name>(tracer, owner, *args)`` as method ``name``."""

    def register(function: Method) -> Method:
        table[function.__name__.partition("_")[2].strip("_")] = function
        return function

    return register
