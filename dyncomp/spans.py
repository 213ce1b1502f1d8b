"""Spans of dyncomp's own work that a profile may want to know of: captures, passes, builds.

Who works says ``with span("pass", "cse"):``; nothing is kept unless somebody listens
(:mod:`dyncomp.profiling`). What runs in C is recorded there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from .dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """``kind``: ``"compile"``, ``"capture"``, ``"pass"``, ``"inductor"``, ``"build"``, ``"disk"`` or
    ``"loop"``. ``where``: the user's file and line. ``thread``: the native id. ``start`` and ``end``:
    nanoseconds of ``CLOCK_MONOTONIC``."""

    kind: str
    name: str
    where: str
    thread: int
    start: int
    end: int


_listeners: list[Callable[[Span], None]] = []


def listen(listener: Callable[[Span], None]) -> None:
    """Have ``listener`` called, in any thread, with each span that ends from now on."""
    _listeners.append(listener)


def ignore(listener: Callable[[Span], None]) -> None:
    """End what :func:`listen` began; nothing where it has ended."""
    if listener in _listeners:
        _listeners.remove(listener)


def now() -> int:
    """Nanoseconds of the clock that all spans are told in."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class span:
    """A block whose duration listeners are told, also where it raises. ``name`` may be changed inside."""

    __slots__ = ("kind", "name", "where", "start")

    def __init__(self, kind: str, name: str, where: str = "") -> None:
        self.kind = kind
        self.name = name
        self.where = where
        self.start = 0

    def __enter__(self) -> span:
        if _listeners:
            self.start = now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.start or not _listeners:
            return
        found = Span(self.kind, self.name, self.where, threading.get_native_id(), self.start, now())
        for listener in [*_listeners]:
            listener(found)
