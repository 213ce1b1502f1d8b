"""Strings made of numbers that are known only at run time: ``f"{len(x)}"``, ``str(n)``, ``"%d" % n``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..breaks import Break
from .base import Codegen, Tracer, Value
from .number import ConstValue, NumberValue, SymIntValue, hint_of
from .seq import TupleValue

Parts = tuple["str | Value", ...]


class TextValue(Value):
    """A string that compiled code computes in Python; ``hint`` is what it was at capture."""

    def __init__(self, hint: str, parts: Parts) -> None:
        self.hint = hint
        self.parts = parts

    @property
    def pytype(self) -> type:
        return str

    def describe(self) -> str:
        return "a string known only at run time"

    def reconstruct(self, cg: Codegen) -> str:
        text: str = cg.number(self)
        return text

    def children(self) -> tuple[Value, ...]:
        return tuple(part for part in self.parts if isinstance(part, Value))

    def truth(self, tracer: Tracer) -> bool:
        raise Break("data-dependent-branch", f"a branch on {self.describe()}")


def is_computed(value: Value) -> bool:
    """Whether printing the value needs numbers that are known only at run time."""
    if isinstance(value, TupleValue):
        return value.cls is tuple and any(is_computed(v) for v in value.children())
    return isinstance(value, (SymIntValue, NumberValue, TextValue))


def printable(value: Value) -> bool:
    """Whether the value consists of constants and computed numbers and strings."""
    if isinstance(value, TupleValue) and not value.is_const:
        return value.cls is tuple and all(printable(v) for v in value.children())
    if value.is_const:
        return isinstance(value.const, (str, int, float, complex, bool, type(None), tuple, bytes))
    return isinstance(value, (SymIntValue, NumberValue, TextValue))


def text_call(tracer: Tracer, function: Callable[..., str], *args: Value) -> Value:
    """``function(*args)``, a pure function that gives a string, where an argument is computed."""
    parts: list[str | Value] = [ConstValue(function), "("]
    for position, arg in enumerate(args):
        parts += [", "] if position else []
        parts += _parts_of(arg)
    hint = tracer.fold(function, *map(_hint, args))
    if type(hint) is not str:
        raise Break("unsupported-call", f"{function.__name__} of a number known only at run time")
    return TextValue(hint, (*parts, ")"))


def join(items: list[Value]) -> Value:
    """``"".join(items)`` of strings, constant or not."""
    if all(item.is_const for item in items):
        return ConstValue("".join(item.const for item in items))
    parts: list[str | Value] = [ConstValue("".join), "(("]
    for item in items:
        parts += [item, ", "]
    return TextValue("".join(map(_hint, items)), (*parts, "))"))


def binary_text(tracer: Tracer, op: str, a: Value, b: Value) -> Value | None:
    """``"%d" % n`` and ``text + text``; ``None`` where that is not what it is."""
    strings = [v.pytype is str and (v.is_const or isinstance(v, TextValue)) for v in (a, b)]
    if op == "+" and all(strings) and not (a.is_const and b.is_const):
        return join([a, b])
    if op == "%" and strings[0] and is_computed(b) and printable(b):
        hint = tracer.fold(lambda: _hint(a) % _hint(b))
        return TextValue(hint, ("(", a, " % ", *_parts_of(b), ")"))
    return None


def _parts_of(value: Value) -> list[str | Value]:
    if not isinstance(value, TupleValue) or value.is_const:
        return [value]
    parts: list[str | Value] = ["("]
    for item in value.children():
        parts += [*_parts_of(item), ", "]
    return [*parts, ")"]


def _hint(value: Value) -> Any:
    if isinstance(value, TupleValue) and not value.is_const:
        return tuple(map(_hint, value.children()))
    return value.hint if isinstance(value, TextValue) else hint_of(value)
