"""``operator.itemgetter``, ``attrgetter`` and ``methodcaller``."""

from __future__ import annotations

import operator
from typing import Any

from ..breaks import Break
from ..guards.guard import Kind
from ..guards.source import Source
from .base import Codegen, Tracer, Value

GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


class GetterValue(Value):
    """An immutable callable object that fetches something from what it is called with."""

    def __init__(
        self, cls: type, args: list[Value], kwargs: dict[str, Value], source: Source | None = None
    ) -> None:
        self.cls = cls
        self.args = args
        self.kwargs = kwargs
        self.source = source

    @staticmethod
    def outside(tracer: Tracer, obj: Any, source: Source) -> Value:
        tracer.guard(source, Kind.IS, obj)
        cls, args, *_ = obj.__reduce__()
        if cls is not type(obj):  # functools.partial of a methodcaller with keywords
            args, keywords = (*cls.args, *args), cls.keywords
            return GetterValue(type(obj), *_wrapped(tracer, args, keywords), source)
        return GetterValue(cls, *_wrapped(tracer, args, {}), source)

    @property
    def pytype(self) -> type:
        found: type = self.cls
        return found

    def children(self) -> tuple[Value, ...]:
        return (*self.args, *self.kwargs.values())

    def truth(self, tracer: Tracer) -> bool:
        return True

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs:
            raise Break("would-raise", f"{self.cls.__name__} expected 1 argument, got {len(args)}")
        obj = args[0]
        if self.cls is operator.methodcaller:
            name = tracer.constant_of(self.args[0], "a method's name")
            return tracer.call_value(obj.getattr(tracer, name), self.args[1:], self.kwargs)
        fetch = _item if self.cls is operator.itemgetter else _attribute
        found = [tracer.realize(fetch(tracer, obj, what)) for what in self.args]
        return found[0] if len(found) == 1 else tracer.new_tuple(found)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        parts = [cg.value(a) for a in self.args] + [f"{k}={cg.value(v)}" for k, v in self.kwargs.items()]
        return f"{cg.constant(self.cls)}({', '.join(parts)})"


def _wrapped(
    tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Value], dict[str, Value]]:
    return [tracer.wrap_result(a) for a in args], {k: tracer.wrap_result(v) for k, v in kwargs.items()}


def _item(tracer: Tracer, obj: Value, key: Value) -> Value:
    return obj.getitem(tracer, key)


def _attribute(tracer: Tracer, obj: Value, path: Value) -> Value:
    for name in tracer.constant_of(path, "an attribute's name").split("."):
        obj = tracer.realize(obj.getattr(tracer, name))
    return obj
