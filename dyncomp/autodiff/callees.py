"""What the tape records calls of: how it is called, and how that is written as an expression."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from .operations import Operation


class Named:
    """A function, or a method of a ufunc."""

    __slots__ = ("function", "suffix", "key", "name", "run", "known")

    def __init__(self, function: Any, suffix: str = "", run: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.suffix = suffix
        self.known: dict[object, Operation] = {}
        self.key = (function, suffix)
        self.name = getattr(function, "__name__", repr(function)) + suffix
        self.run = run or (getattr(function, suffix[1:]) if suffix else function)

    def text(self, args: Sequence[str]) -> str:
        return f"f{self.suffix}({', '.join(args)})"


class MethodCall:
    """A method of the first argument."""

    __slots__ = ("name", "key")

    def __init__(self, name: str) -> None:
        self.name = name
        self.key = ("method", name)

    def run(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, self.name)(*args, **kwargs)

    def text(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.name}({', '.join(args[1:])})"


class Attribute:
    """An attribute of the only argument."""

    __slots__ = ("name", "key")

    def __init__(self, name: str) -> None:
        self.name = name
        self.key = ("attribute", name)

    def run(self, array: Any) -> Any:
        return getattr(array, self.name)

    def text(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.name}"


class Operator:
    """An operator, which a function of ``operator`` runs."""

    __slots__ = ("name", "key", "run", "form", "known")

    def __init__(self, run: Callable[..., Any], form: str) -> None:
        self.run = run
        self.name = run.__name__
        self.key = ("operator", self.name)
        self.form = form
        self.known: dict[object, Operation] = {}

    def text(self, args: Sequence[str]) -> str:
        return self.form.format(*args)


GETITEM = Operator(operator.getitem, "{}[{}]")
SETITEM = Operator(operator.setitem, "{}.__setitem__({}, {})")
How = Named | MethodCall | Attribute | Operator
