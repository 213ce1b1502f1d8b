"""``dyncomp.explain(f)(*args)``: what was captured, where and why it broke, what is guarded, what runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .api import SESSION, compile_with
from .capture.breaks import BreakRecord
from .capture.guards import Guard
from .capture.records import EntryRecord
from .graph.ir import Graph, Loc
from .graph.text import print_graph
from .options import make_options


@dataclass
class Explanation:
    """The report of one call. ``str()`` gives it in words.

    ``result``: what the call returned. ``entries``: one per captured frame (a continuation after a graph
    break and a loop's body are frames of their own). ``skipped``: frames that run as plain Python.
    """

    result: Any
    entries: list[EntryRecord]
    skipped: list[tuple[str, Loc, str]]

    @property
    def graphs(self) -> list[Graph]:
        return [e.graph for e in self.entries if e.graph is not None]

    @property
    def breaks(self) -> list[BreakRecord]:
        return [b for e in self.entries for b in e.breaks]

    @property
    def guards(self) -> list[Guard]:
        return [g for e in self.entries for g in e.guards]

    @property
    def kernels(self) -> list[Any]:
        return [k for e in self.entries for k in _kernels(e)]

    def summary(self) -> str:
        """One line of counts."""
        ops = sum(len(g.nodes) for g in self.graphs)
        return (
            f"{len(self.entries)} frames captured, {len(self.graphs)} graphs with {ops} operations, "
            f"{len(self.kernels)} kernels, {len(self.breaks)} graph breaks, {len(self.guards)} guards, "
            f"{len(self.skipped)} frames left to plain Python"
        )

    def __str__(self) -> str:
        parts = [self.summary()]
        parts += [_entry_text(n, entry) for n, entry in enumerate(self.entries)]
        parts += [f"plain Python: {name} at {loc}: {reason}" for name, loc, reason in self.skipped]
        return "\n\n".join(parts)

    __repr__ = __str__


def _kernels(entry: EntryRecord) -> list[Any]:
    artifact = getattr(entry.compiled, "artifact", None)
    return list(getattr(artifact, "kernels", ()))


def _entry_text(number: int, entry: EntryRecord) -> str:
    parts = [f"=== frame {number}: {entry.name} at {entry.loc} ({entry.seconds * 1e3:.1f} ms to compile)"]
    if entry.missed:
        parts.append(f"recompiled because: {entry.missed}")
    if entry.guards:
        parts.append("guards:\n" + _indented("\n".join(str(g) for g in entry.guards)))
    if entry.graph is not None:
        parts.append("graph:\n" + _indented(print_graph(entry.graph)))
        parts.append("passes:\n" + _indented(entry.compiled.describe()))
    artifact = getattr(entry.compiled, "artifact", None)
    if hasattr(artifact, "describe"):
        parts.append("kernels:\n" + _indented(artifact.describe()))  # type: ignore[union-attr]
    if entry.source:
        parts.append("runs as:\n" + _indented(entry.source))
    else:
        parts.append("no array work: the original code runs")
    for record in entry.breaks:
        parts.append("graph break " + record.describe())
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def explain(f: Callable[..., Any], **settings: Any) -> Callable[..., Explanation]:
    """A function that runs ``f`` once, compiled afresh with ``settings`` (as for ``compile``), and returns
    an :class:`Explanation` of what happened. The call has all its effects."""

    def run(*args: Any, **kwargs: Any) -> Explanation:
        config = SESSION.new_config(make_options(**settings))
        result = compile_with(f, config)(*args, **kwargs)
        return Explanation(result, list(config.records.entries), list(config.records.skipped))

    return run
