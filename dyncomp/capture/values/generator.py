"""Generators made in the frame, run by capture itself one ``yield`` at a time."""

from __future__ import annotations

import types
from typing import Any

from ..breaks import Break, Skip
from .base import Codegen, Tracer, Value
from .iterator import IteratorValue


class GeneratorValue(IteratorValue):
    """A generator whose frame is executed symbolically. It can be rebuilt while it has not been started;
    a capture that breaks while one is half-way begins again without running it."""

    def __init__(self, function: Value, args: list[Value], kwargs: dict[str, Value], frame: Any) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.frame = frame
        self.started = False

    @property
    def pytype(self) -> type:
        return types.GeneratorType

    def describe(self) -> str:
        return f"a generator of {self.function.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.function, *self.args, *self.kwargs.values())

    def may_step(self, tracer: Tracer) -> bool:
        return True

    def next(self, tracer: Tracer) -> Value | None:
        tracer.check_generator(self.frame)
        self.started = True
        tracer.steps += 1
        found: Value | None = tracer.run_generator(self.frame)
        return found

    def items(self, tracer: Tracer) -> list[Value]:
        found: list[Value] = []
        limit = tracer.config.options.unroll_ops
        while (item := self.next(tracer)) is not None:
            found.append(item)
            if len(found) > limit:
                raise Break("generator", f"{self.describe()} yields more than {limit} values")
        return found

    def reconstruct(self, cg: Codegen) -> str:
        if self.started:
            raise Skip(f"{self.describe()} is half-way through at a graph break")
        parts = [cg.value(a) for a in self.args] + [f"{k}={cg.value(v)}" for k, v in self.kwargs.items()]
        return f"{cg.value(self.function)}({', '.join(parts)})"
