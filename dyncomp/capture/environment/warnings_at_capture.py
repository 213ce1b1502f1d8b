"""Whether something computed at capture warns: the program has to do that itself, where and when it runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from threading import get_ident
from typing import Any

from ..breaks import Break


class _Listener:
    """Stands in a filter of warnings in place of a pattern for messages, and hears those of its thread."""

    def __init__(self) -> None:
        self.thread = get_ident()
        self.listening = True
        self.heard: str | None = None

    def match(self, message: str) -> bool:
        if not self.listening or get_ident() != self.thread:
            return False
        self.heard = message
        return True


def quietly(function: Callable[..., Any], *args: object) -> Any:
    """``function(*args)``, unless it warns: then a break. Warnings of other threads pass."""
    listener = _Listener()
    # not by catch_warnings, which makes warnings that were shown once appear again
    filters: Any = warnings.filters
    entry = ("error", listener, Warning, None, 0)
    filters.insert(0, entry)
    try:
        return function(*args)
    finally:
        listener.listening = False
        if entry in filters:
            filters.remove(entry)
        if listener.heard is not None:
            name = getattr(function, "__name__", "an operation")
            raise Break("unsupported-operation", f"{name}, which warns: {listener.heard:.80}") from None
