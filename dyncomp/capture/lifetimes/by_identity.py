"""What is known of single objects while they live, told apart by identity: code objects and arrays compare by
value."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class WeakIdentityDict(Generic[T]):
    """Values by the identity of objects, which it does not keep alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], T]] = {}

    def get(self, obj: object) -> T | None:
        known = self._known.get(id(obj))
        return known[1] if known is not None and known[0]() is obj else None

    def __setitem__(self, obj: object, value: T) -> None:
        key = id(obj)
        # A method of C: an interrupt within a weak reference's callback in Python would be lost.
        forget = weakref.ref(obj, functools.partial(self._known.pop, key))
        self._known[key] = (forget, value)

    def __contains__(self, obj: object) -> bool:
        return self.get(obj) is not None

    def discard(self, obj: object) -> None:
        self._known.pop(id(obj), None)

    def values(self) -> list[T]:
        return [value for _, value in self._known.values()]

    def clear(self) -> None:
        self._known.clear()
