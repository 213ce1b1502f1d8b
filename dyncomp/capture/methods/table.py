"""Which function executes which method of a builtin container."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.generator import GeneratorValue
from ..values.iterator import IteratorValue, can_step
from ..values.obj import InstanceValue

Method = Callable[..., Value]


def method(table: dict[str, Method]) -> Callable[[Method], Method]:
    """Register ``<type>_<name>(tracer, owner, *args)`` as method ``name``."""

    def register(function: Method) -> Method:
        table[function.__name__.partition("_")[2].strip("_")] = function
        return function

    return register


def one_by_one(tracer: Tracer, values: Value) -> Iterator[Value]:
    """The items, an iterator's each when it is wanted: it may look at the container that it fills."""
    if not is_stepped(tracer, values):
        yield from values.items(tracer)
        return
    for _ in range(tracer.config.options.unroll_ops):
        item = values.next(tracer)
        if item is None:
            return
        yield item
    what = "generator" if isinstance(values, GeneratorValue) else "unsupported-operation"
    raise Break(what, f"{values.describe()} yields many values")


def items_for_list(tracer: Tracer, values: Value) -> list[Value]:
    """All items, asked for as ``list`` does."""
    if type(values) is InstanceValue:
        found: list[Value] = tracer.instance_items(values, hinted=True)
        return found
    return values.items(tracer)


def items_in_two(tracer: Tracer, values: Value, before: int = 0) -> list[Value]:
    """All items, those behind the first ``before`` as ``list(iterator)`` gives them: an iterator of the
    program's own is asked for its iterator anew."""
    if type(values) is not InstanceValue:
        return values.items(tracer)
    iterator = values.iterate(tracer)
    if type(iterator) is not InstanceValue:
        return iterator.items(tracer)
    found: list[Value] = []
    while len(found) < before:
        item = iterator.next(tracer)
        if item is None:
            return found
        found.append(item)
    return found + items_for_list(tracer, iterator)


def is_stepped(tracer: Tracer, values: Value) -> bool:
    """Whether the items are made one by one, by code that may look at what is done with those before."""
    steps = isinstance(values, IteratorValue) and can_step(tracer, values)
    return steps or isinstance(values, GeneratorValue)
