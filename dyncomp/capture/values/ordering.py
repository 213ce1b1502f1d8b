"""``functools.cmp_to_key``: keys that a function of two arguments compares."""

from __future__ import annotations

import functools
import operator

from ..breaks import Break
from .base import Codegen, Tracer, Value

_KEY: type = type(functools.cmp_to_key(operator.sub)(0))


class ComparisonKeyValue(Value):
    """What ``cmp_to_key(compare)`` gives: called, it makes keys."""

    def __init__(self, compare: Value) -> None:
        self.compare = compare

    @property
    def pytype(self) -> type:
        return _KEY

    def children(self) -> tuple[Value, ...]:
        return (self.compare,)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        if len(args) != 1 or kwargs:
            raise Break("would-raise", "wrong arguments of a key made by cmp_to_key")
        return ComparedValue(self, args[0])

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.constant(functools.cmp_to_key)}({cg.value(self.compare)})"


class ComparedValue(Value):
    """A key: an object that is compared by the function."""

    def __init__(self, maker: ComparisonKeyValue, obj: Value) -> None:
        self.maker = maker
        self.obj = obj

    @property
    def pytype(self) -> type:
        return _KEY

    def children(self) -> tuple[Value, ...]:
        return (self.maker, self.obj)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return self.obj if name == "obj" else super().getattr(tracer, name)

    def compared(self, tracer: Tracer, sign: str, other: Value) -> Value | None:
        """``self sign other``; ``None`` where that is no comparison of such keys."""
        if sign not in ("<", "<=", "==", "!=", ">", ">=") or not isinstance(other, ComparedValue):
            return None
        result = tracer.realize(tracer.call_value(self.maker.compare, [self.obj, other.obj], {}))
        found: Value = tracer.compare(sign, result, tracer.wrap_result(0))
        return found

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.maker)}({cg.value(self.obj)})"
