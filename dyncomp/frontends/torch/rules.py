"""Tables in which modules of this frontend collect their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..base import Rule
from .library import torch

R = TypeVar("R", bound=Callable[..., Any])


class RuleTable:
    """Rules by callable, method, attribute and operator name. Filled while a module is imported, read-only
    afterwards; callables are named by their path below ``torch`` and skipped where this torch has none."""

    def __init__(self) -> None:
        self.functions: dict[Any, Rule] = {}
        self.methods: dict[str, Rule] = {}
        self.attributes: dict[str, Rule] = {}
        self.operators: dict[str, Rule] = {}

    def function(self, *paths: str) -> Callable[[R], R]:
        """Register the rule of ``torch.<path>`` for each path; ``F.`` stands for ``nn.functional.``."""

        def register(rule: R) -> R:
            for path in paths:
                target = resolve(path)
                if target is not None:
                    self.functions[target] = rule
            return rule

        return register

    def method(self, *names: str) -> Callable[[R], R]:
        return _named(self.methods, names)

    def both(self, *names: str) -> Callable[[R], R]:
        """A function of ``torch`` that is a method of tensors as well."""

        def register(rule: R) -> R:
            self.function(*names)(rule)
            return self.method(*names)(rule)

        return register

    def attribute(self, *names: str) -> Callable[[R], R]:
        return _named(self.attributes, names)

    def operator(self, *names: str) -> Callable[[R], R]:
        return _named(self.operators, names)

    def update(self, other: RuleTable) -> None:
        """Add the rules of another table; no key may be given twice with different rules."""
        for mine, theirs in zip(self._parts(), other._parts()):
            for key, rule in theirs.items():
                if mine.setdefault(key, rule) is not rule:
                    raise ValueError(f"two rules for {key!r}")

    def _parts(self) -> Iterator[dict[Any, Rule]]:
        yield self.functions
        yield self.methods
        yield self.attributes
        yield self.operators


def _named(part: dict[str, Rule], names: tuple[str, ...]) -> Callable[[R], R]:
    def register(rule: R) -> R:
        for name in names:
            part[name] = rule
        return rule

    return register


def resolve(path: str) -> Any:
    """``torch.<path>``, or ``None`` where this version of torch has no such name."""
    found: Any = torch
    for name in path.replace("F.", "nn.functional.").split("."):
        found = getattr(found, name, None)
        if found is None:
            return None
    return found
