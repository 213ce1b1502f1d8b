"""The table in which the modules of a frontend collect their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..errors import Unsupported
from .base import Rule

R = TypeVar("R", bound=Callable[..., Any])


class LibraryRules:
    """Rules by callable, method, attribute and operator name. Filled while a module is imported, read-only
    afterwards; callables are named by their path below the library and skipped where this version of it has
    none (``resolve`` gives ``None``)."""

    def __init__(self, resolve: Callable[[str], Any]) -> None:
        self._resolve = resolve
        self.functions: dict[Any, Rule] = {}
        self.methods: dict[str, Rule] = {}
        self.attributes: dict[str, Rule] = {}
        self.operators: dict[str, Rule] = {}

    def function(self, *paths: str) -> Callable[[R], R]:
        """Register the rule of the library's function at each path (aliases of one function are one key)."""

        def register(rule: R) -> R:
            for path in paths:
                target = self._resolve(path)
                if target is not None:
                    self.functions[target] = rule
            return rule

        return register

    def method(self, *names: str) -> Callable[[R], R]:
        return _named(self.methods, names)

    def both(self, *names: str) -> Callable[[R], R]:
        """A function of the library that is a method of its arrays as well."""

        def register(rule: R) -> R:
            self.function(*names)(rule)
            return self.method(*names)(rule)

        return register

    def attribute(self, *names: str) -> Callable[[R], R]:
        return _named(self.attributes, names)

    def operator(self, *names: str) -> Callable[[R], R]:
        return _named(self.operators, names)

    def update(self, other: LibraryRules) -> None:
        """Add the rules of another table; no key may be given twice with different rules."""
        for mine, theirs in zip(self.parts(), other.parts()):
            for key, rule in theirs.items():
                if mine.setdefault(key, rule) is not rule:
                    raise ValueError(f"two rules for {key!r}")

    def parts(self) -> Iterator[dict[Any, Rule]]:
        yield self.functions
        yield self.methods
        yield self.attributes
        yield self.operators


def below(library: object, path: str) -> Any:
    """``library.<path>``, or ``None`` where this version of the library has no such name."""
    found = library
    for name in path.split("."):
        found = getattr(found, name, None)
        if found is None:
            return None
    return found


def refusal(reason: str, break_id: str = "unsupported-call") -> Rule:
    """A rule that always refuses."""

    def refused(*args: object, **kwargs: object) -> Any:
        raise Unsupported(reason, break_id=break_id)

    return refused


def refuses(rule: Rule) -> bool:
    """Whether a rule is one made by :func:`refusal`."""
    return getattr(rule, "__name__", "") == "refused"


def _named(part: dict[str, Rule], names: tuple[str, ...]) -> Callable[[R], R]:
    def register(rule: R) -> R:
        for name in names:
            part[name] = rule
        return rule

    return register
