"""Containers that are looked through while methods of the program's run: those may change them."""

from __future__ import annotations

from typing import Any

from ..breaks import Break
from .base import Tracer, Value


class Steady:
    """Compares items of containers, and breaks where that changed one of them: what C code does next depends
    on the place it had reached. (The break is then made before the whole instruction.)"""

    def __init__(self, tracer: Tracer, *owners: Any) -> None:
        self.owners = owners
        self.contents = [owner.contents(tracer) for owner in owners]
        self.before = [list(found) for found in self.contents]
        self.values = [_values(found) for found in self.contents]
        self.versions = [_version(owner) for owner in owners]

    def same_or_equal(self, tracer: Tracer, a: Value, b: Value) -> bool:
        steps = tracer.steps
        found: bool = tracer.same_or_equal(a, b)
        if tracer.steps != steps:
            self.check()
        return found

    def check(self) -> None:
        for owner, found, before, values, version in zip(
            self.owners, self.contents, self.before, self.values, self.versions
        ):
            same = _version(owner) == version and _same(list(found), before) and _same(_values(found), values)
            if not same:
                raise Break(
                    "unsupported-operation",
                    f"{owner.describe()} that a method changes while it is looked through",
                )


def _values(contents: object) -> list[Value]:
    return list(contents.values()) if isinstance(contents, dict) else []


def _version(owner: object) -> int:
    """A deque notices changes that leave it as it was."""
    return getattr(owner, "version", 0)


def _same(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(a is b for a, b in zip(now, before))
