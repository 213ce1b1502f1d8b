"""A bar on the terminal while candidates are measured."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """``with Progress(title, total, when) as bar``, then ``bar.step(what)`` before each of as many things.

    ``when``: ``"on"``, ``"off"``, or ``"auto"``: where standard error is a terminal. There it is a bar (by
    ``rich``, where that is installed) that is wiped out at the end; in a file it is a line for each thing."""

    def __init__(self, title: str, total: int, when: str) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.on_terminal = _is_terminal()
        self.shown = total > 0 and (when == "on" or (when == "auto" and self.on_terminal))
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Progress:
        if self.shown and self.on_terminal:
            self.bar = _rich_bar()
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task(self.title, total=self.total)
        return self

    def step(self, what: str) -> None:
        self.done += 1
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done - 1, description=f"{self.title}: {what}")
        elif self.shown:
            self._write(f"{self.title}: {self.done}/{self.total} {what}")

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        elif self.shown and self.on_terminal:
            self._write("")

    def _write(self, text: str) -> None:
        """One line, on a terminal in place of the last; what cannot be written does not matter."""
        try:
            sys.stderr.write(f"\r\x1b[K{text}" if self.on_terminal else f"{text}\n")
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):
            self.shown = False


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, OSError, ValueError):
        return False


def _rich_bar() -> Any:
    try:
        from rich.console import Console
        from rich.progress import Progress as Bar
    except ImportError:
        return None
    return Bar(console=Console(stderr=True, force_terminal=True), transient=True)
