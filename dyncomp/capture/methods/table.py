"""Which function executes which method of a builtin container."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.generator import GeneratorValue

Method = Callable[..., Value]


def method(table: dict[str, Method]) -> Callable[[Method], Method]:
    """Register ``<type>_<name>(tracer, owner, *args)`` as method ``name``."""

    def register(function: Method) -> Method:
        table[function.__name__.partition("_")[2].strip("_")] = function
        return function

    return register


def one_by_one(tracer: Tracer, values: Value) -> Iterator[Value]:
    """The items, a generator's each when it is wanted: it may look at the container that it fills."""
    if not isinstance(values, GeneratorValue):
        yield from values.items(tracer)
        return
    for _ in range(tracer.config.options.unroll_ops):
        item = values.next(tracer)
        if item is None:
            return
        yield item
    raise Break("generator", f"{values.describe()} yields many values")
