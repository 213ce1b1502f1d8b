"""What capture did, for ``explain()``, ``stats()`` and the log."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from ...dataclass import dataclass, field
from ...graph.ir import Graph, Loc
from ...scalar_loops.entry.record import NativeLoopRecord
from ...symbolic.integers import ShapeEnv
from ..breaks import BreakRecord
from ..guards.guard import Guard
from ..lifetimes.by_identity import WeakIdentityDict

log = logging.getLogger("dyncomp.capture")


@dataclass
class EntryRecord:
    """One captured frame: its graph (``None`` where no array work was in it), what replaced it, why."""

    name: str
    loc: Loc
    graph: Graph | None
    compiled: Any
    guards: tuple[Guard, ...]
    source: str
    breaks: tuple[BreakRecord, ...]
    missed: str = ""
    seconds: float = 0.0
    instructions: int = 0
    restarts: int = 0  # attempts that were begun again before
    executed: int = 0  # instructions, those of these attempts included
    bytes: int = 0
    fallback: Any = None  # counts the calls whose graph raised, see policy/fallback.py
    resting: str = ""  # why the original runs at once, or did
    from_disk: bool = False

    @property
    def has_graph(self) -> bool:
        return self.graph is not None

    @property
    def assumed(self) -> ShapeEnv | None:
        """What the graph assumes of its sizes; ``None`` without a graph."""
        return None if self.graph is None else self.graph.env


@dataclass
class Records:
    """Everything since ``reset()``. ``counters`` are the numbers behind ``stats()``."""

    counters: Counter[str] = field(default_factory=Counter)
    entries: list[EntryRecord] = field(default_factory=list)
    skipped: list[tuple[str, Loc, str]] = field(default_factory=list)
    quicker: list[tuple[str, Loc, str]] = field(default_factory=list)  # of those: found by measuring
    # code whose capture waits, and what to say of it
    waiting: WeakIdentityDict[tuple[str, Loc, str]] = field(default_factory=WeakIdentityDict)
    internal_errors: list[str] = field(default_factory=list)  # tracebacks of bugs in dyncomp
    native_loops: list[NativeLoopRecord] = field(default_factory=list)  # that are, or may be, compiled whole
    tapes: list[str] = field(default_factory=list)  # what derivatives recorded that are no single graph
    reached: set[Loc] | None = None  # the lines that capture has followed, where somebody wants to know

    def add_entry(self, entry: EntryRecord) -> None:
        self.entries.append(entry)
        self.counters["captured"] += 1
        if entry.has_graph:
            self.counters["graphs"] += 1
        if entry.missed:
            self.counters["recompiles"] += 1
            log.info("recompiled %s: %s", entry.name, entry.missed)
        for record in entry.breaks:
            self.counters[f"break:{record.id}"] += 1
            log.info("graph break in %s: [%s] %s at %s", entry.name, record.id, record.reason, record.loc)

    def forget_entry(self, entry: EntryRecord) -> None:
        """The entry was dropped; the counters keep it."""
        self.entries[:] = [known for known in self.entries if known is not entry]

    def add_skip(self, name: str, loc: Loc, reason: str) -> None:
        self.skipped.append((name, loc, reason))
        self.counters["skipped"] += 1
        log.info("%s at %s runs as plain Python: %s", name, loc, reason)

    def add_quicker(self, name: str, loc: Loc, reason: str) -> None:
        """The function runs as it is since that was measured to be quicker."""
        self.quicker.append((name, loc, reason))
        self.add_skip(name, loc, reason)

    def forget(self) -> None:
        """Let go of all records; the counters, which all configurations share, stay."""
        self.entries.clear()
        self.skipped.clear()
        self.quicker.clear()
        self.waiting.clear()
        self.native_loops.clear()
        self.tapes.clear()
        self.internal_errors.clear()
