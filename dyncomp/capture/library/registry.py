"""Which handler gives a builtin or library callable its meaning on traced values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ..breaks import Break
from ..methods.table import items_for_list, one_by_one
from ..values.base import Tracer, Value
from ..values.deque import DequeValue
from ..values.mapping import DictValue, DictViewValue
from ..values.number import ConstValue
from ..values.seq import ListValue
from ..values.sets import SetValue

Handler = Callable[[Tracer, list[Value], dict[str, Value]], Value]
HANDLERS: dict[Any, Handler] = {}
NONE = ConstValue(None)


def find(obj: object) -> Handler | None:
    """The handler of a builtin, ``None`` where there is none."""
    try:
        return HANDLERS.get(obj)
    except TypeError:
        return None


def builtin(
    *objects: Any, keywords: tuple[str, ...] = ()
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register ``function(tracer, *args, **kwargs)``; arguments that do not fit it, or the callable itself,
    break the graph."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        fitting: set[tuple[Any, ...]] = set()

        def handle(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
            shape = (len(args), *kwargs)  # whether arguments fit depends on nothing else
            if shape not in fitting:
                try:
                    _check_arguments(objects[0], function, keywords, [tracer, *args], kwargs)
                except TypeError as error:
                    raise Break("would-raise", f"{objects[0].__name__}: {error}") from None
                fitting.add(shape)
            return function(tracer, *args, **kwargs)

        for obj in objects:
            HANDLERS[obj] = handle
        return function

    return register


def _check_arguments(
    obj: object,
    function: Callable[..., Value],
    keywords: tuple[str, ...],
    args: list[Any],
    kwargs: dict[str, Any],
) -> None:
    """``TypeError`` where the arguments, of which the first is the tracer, do not fit the callable itself or
    its handler."""
    signature = inspect.signature(function)
    _own_signature(obj, signature, keywords).bind(*args[1:], **kwargs)
    signature.bind(*args, **kwargs)


def _own_signature(obj: Any, handler: inspect.Signature, keywords: tuple[str, ...]) -> inspect.Signature:
    """How the callable itself binds: its names, and what is positional only. C functions without a signature
    take no keywords but ``keywords`` and those that their handler says are keyword-only."""
    try:
        return inspect.signature(obj)
    except ValueError:
        parameters = list(handler.parameters.values())[1:]
        positional = [
            p.replace(kind=p.POSITIONAL_ONLY)
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in keywords
            else p
            for p in parameters
        ]
        return inspect.Signature(positional)


def expand(tracer: Tracer, iterable: Value) -> list[Value]:
    """All items of an iterable as a list or tuple asks for them, looked at."""
    return [tracer.realize(v) for v in items_for_list(tracer, iterable)]


def in_turn(tracer: Tracer, iterable: Value) -> Iterator[Value]:
    """The items, each asked for when it is wanted: what is done with one may add others to a list, or to
    another container, whose iterator then raises."""
    if not isinstance(iterable, (ListValue, DictValue, DictViewValue, SetValue, DequeValue)):
        yield from map(tracer.realize, one_by_one(tracer, iterable))
        return
    iterator: Any = iterable.iterate(tracer)
    most = (iterator.remaining(tracer) or 0) + tracer.config.options.unroll_ops
    for _ in range(most):
        item = iterator.next(tracer)
        if item is None:
            return
        yield item
    raise Break("unsupported-operation", f"{iterable.describe()} that grows while it is gone through")
