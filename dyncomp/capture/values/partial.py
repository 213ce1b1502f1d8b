"""``functools.partial``."""

from __future__ import annotations

import functools
from typing import Any

from ..breaks import Break
from ..guards.source import AttrSource, Source
from .base import Codegen, Tracer, Value
from .mapping import DictValue
from .seq import TupleValue


class PartialValue(Value):
    """``functools.partial`` made in the frame or found outside."""

    def __init__(
        self,
        function: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        source: Source | None,
        obj: Any = None,
    ) -> None:
        self.function = function
        self.args = TupleValue(args, AttrSource(source, "args") if source is not None else None)
        self.kwargs = kwargs
        self.source = source
        self.obj = obj
        self.keywords = PartialKeywords(self)
        self.bound_to: Value | None = None  # ``__self__``, which partialmethod gives it

    @property
    def pytype(self) -> type:
        return functools.partial

    def children(self) -> tuple[Value, ...]:
        bound_to = () if self.bound_to is None else (self.bound_to,)
        return (self.function, *self.args.children(), *self.kwargs.values(), *bound_to)

    def has_namespace(self) -> bool:
        """Whether it has attributes of its own, so that ``partial`` of it does not flatten it."""
        return self.bound_to is not None or (self.obj is not None and bool(vars(self.obj)))

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "func":
            return self.function
        if name == "args":
            return self.args
        if name == "keywords":
            return self.keywords
        if name == "__self__" and self.bound_to is not None:
            return self.bound_to
        if name == "__class__":
            return tracer.wrap_result(functools.partial)
        raise Break("unsupported-attribute", f"attribute {name!r} of a partial")

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_value(self.function, [*self.args.children(), *args], {**self.kwargs, **kwargs})

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        parts = [cg.value(self.function), *(cg.value(a) for a in self.args.children())]
        parts += [f"{k}={cg.value(v)}" for k, v in self.kwargs.items()]
        made = f"{cg.constant(self.pytype)}({', '.join(parts)})"
        if self.bound_to is None:
            return made
        name = cg.temporary(made)
        cg.remember(self, name)
        cg.line(f"{name}.__self__ = {cg.value(self.bound_to)}")
        return name


class PartialKeywords(DictValue):
    """``partial.keywords``: read only, as far as capture goes."""

    def __init__(self, owner: PartialValue) -> None:
        super().__init__(owner.kwargs)
        self.owner = owner

    def touch(self, tracer: Tracer) -> None:
        raise Break("unsupported-attribute", "the keywords of a partial are changed")

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.owner)}.keywords"
