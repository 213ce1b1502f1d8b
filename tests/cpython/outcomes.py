"""The journal that a process running tests leaves behind: one JSON line when a test starts, one when it ends.

A process that crashes or hangs leaves a start without an end: that names the test.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO


@dataclass
class Outcome:
    """How one test ended: ``ok fail error skip xfail xpass crash hang``, with what it said."""

    kind: str
    text: str = ""


@dataclass
class ModuleRun:
    """All tests of one module in one mode."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    seconds: float = 0.0
    summary: dict[str, Any] = field(default_factory=dict)
    problem: str = ""

    def save(self, path: Path) -> None:
        outcomes = {name: [o.kind, o.text] for name, o in self.outcomes.items()}
        path.write_text(
            json.dumps([outcomes, self.seconds, self.summary, self.problem]),
            encoding="utf-8",
            errors="replace",
        )

    @staticmethod
    def load(path: Path) -> ModuleRun:
        outcomes, seconds, summary, problem = json.loads(path.read_text())
        made = {name: Outcome(kind, text) for name, (kind, text) in outcomes.items()}
        return ModuleRun(made, seconds, summary, problem)


class Journal:
    """Writes the lines, flushed one by one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, what: str, **fields: Any) -> None:
        self._stream.write(json.dumps({"what": what, **fields}) + "\n")
        self._stream.flush()


def read_journal(path: Path) -> tuple[dict[str, Outcome], str | None, dict[str, Any] | None]:
    """Outcomes, the test that started and did not end, and the summary (``None`` if the end is missing)."""
    outcomes: dict[str, Outcome] = {}
    open_test: str | None = None
    summary: dict[str, Any] | None = None
    for line in path.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # cut off in the middle
        if record["what"] == "start":
            open_test = record["test"]
        elif record["what"] == "end":
            outcomes[record["test"]] = Outcome(record["kind"], record["text"])
            open_test = None
        else:
            summary = record
    return outcomes, open_test, summary
