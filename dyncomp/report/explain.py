"""``dyncomp.explain(f)(*args)``: what was captured, where and why it broke, what is guarded, what runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..api import SESSION, compile_with
from ..capture.breaks import BreakRecord
from ..capture.entries.config import CaptureConfig
from ..capture.entries.records import EntryRecord
from ..capture.guards.guard import Guard
from ..capture.policy.fallback import resting
from ..capture.policy.stance import current_stance
from ..dataclass import dataclass
from ..errors import DyncompError
from ..graph.ir import Graph, Loc
from ..graph.text import print_graph
from ..options import make_options
from ..scalar_loops.entry.record import NativeLoopRecord
from .html import page


@dataclass
class Explanation:
    """The report of one call. ``str()`` gives it in words.

    ``result``: what the call returned; ``error``: the exception that it raised instead (without its
    traceback, which would keep the program's objects), else ``None``. ``entries``: one per captured frame (a
    continuation after a graph break and a loop's body are frames of their own). ``skipped``: frames that run
    as plain Python. ``stance``: that of the call. ``fallbacks``: how often the original ran because a graph
    raised. ``native_loops``: the loops over single numbers that are, or could be, compiled as a whole.
    """

    result: Any
    entries: list[EntryRecord]
    skipped: list[tuple[str, Loc, str]]
    error: BaseException | None = None
    stance: str = "default"
    fallbacks: int = 0
    native_loops: tuple[NativeLoopRecord, ...] = ()

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
            f"{len(self.skipped)} frames left to plain Python{_native_text(self.native_loops)}"
        )

    @property
    def recompiles(self) -> list[EntryRecord]:
        """The entries that were made because a guard of an earlier one failed: see their ``missed``."""
        return [e for e in self.entries if e.missed]

    def notes(self) -> list[str]:
        """What is unusual about the call: how it ended, under which stance, whether graphs raised."""
        found = []
        if self.error is not None:
            found.append(f"the call raised {type(self.error).__name__}: {self.error}")
        if self.stance != "default":
            found.append(f"the stance was {self.stance!r}")
        if self.fallbacks:
            found.append(f"graphs raised {self.fallbacks} times: the original ran from its start instead")
        return found

    def breaks_text(self) -> str:
        """The graph breaks with their explanations, and the frames left to plain Python."""
        parts = [f"graph break {n}: {record.describe()}" for n, record in enumerate(self.breaks)]
        parts += [_skip_text(*skip) for skip in self.skipped]
        return "\n".join(parts)

    def sections(self) -> list[tuple[str, str]]:
        """Headings and texts, in order."""
        found = [(_entry_heading(n, e), _entry_text(e)) for n, e in enumerate(self.entries)]
        if self.native_loops:
            loops = "\n".join(record.describe() for record in self.native_loops)
            found.append((f"loops over single numbers: {len(self.native_loops)}", loops))
        if self.skipped:
            skips = "\n".join(_skip_text(*skip) for skip in self.skipped)
            found.append((f"left to plain Python: {len(self.skipped)} frames", skips))
        return found

    def __str__(self) -> str:
        parts = ["\n".join([self.summary(), *self.notes()])]
        parts += [f"=== {heading}\n{text}" for heading, text in self.sections()]
        return "\n\n".join(parts)

    def html(self) -> str:
        """The report as a page of its own; notebooks show it by themselves."""
        return page(self.summary(), self.notes(), self.sections())

    def _repr_html_(self) -> str:
        return self.html()

    __repr__ = __str__


def _native_text(loops: Sequence[NativeLoopRecord]) -> str:
    count = sum(record.is_native for record in loops)
    return f", {count} loops compiled whole" if count else ""


def _kernels(entry: EntryRecord) -> list[Any]:
    artifact = getattr(entry.compiled, "artifact", None)
    return list(getattr(artifact, "kernels", ()))


def _entry_heading(number: int, entry: EntryRecord) -> str:
    return f"frame {number}: {entry.name} at {entry.loc} ({entry.seconds * 1e3:.1f} ms to compile)"


def _skip_text(name: str, loc: Loc, reason: str) -> str:
    return f"plain Python: {name} at {loc}: {reason}"


def _sizes(graph: Graph) -> str:
    """The symbolic integers: what they are and between which bounds."""
    lines = []
    for binding in graph.symbols:
        place = f"integer argument {binding.index}"
        if binding.kind != "int":
            place = f"{binding.kind} {binding.axis} of {graph.inputs[binding.index].label}"
        info = graph.env.symbols.get(binding.name)
        low, high = (info.low, info.high) if info is not None else (None, None)
        bounds = f"{'' if low in (None, -(2**63)) else f'{low} <= '}{binding.name}"
        bounds += "" if high in (None, 2**63 - 1) else f" <= {high}"
        lines.append(f"{binding.name}: {place}" + (f", {bounds}" if bounds != binding.name else ""))
    return "\n".join(lines)


def _entry_text(entry: EntryRecord) -> str:
    parts = []
    if entry.missed:
        parts.append(f"recompiled because: {entry.missed}")
    if entry.guards:
        parts.append("guards:\n" + _indented("\n".join(str(g) for g in entry.guards)))
    if entry.graph is not None:
        if entry.graph.symbols:
            parts.append("symbolic sizes and integers:\n" + _indented(_sizes(entry.graph)))
        parts.append("graph:\n" + _indented(print_graph(entry.graph)))
        parts.append("passes:\n" + _indented(entry.compiled.describe()))
    artifact = getattr(entry.compiled, "artifact", None)
    if hasattr(artifact, "describe"):
        parts.append("kernels:\n" + _indented(artifact.describe()))  # type: ignore[union-attr]
    if entry.source:
        parts.append("runs as:\n" + _indented(entry.source))
    else:
        parts.append("no array work: the original code runs")
    if entry.resting:
        parts.append(entry.resting)
    for record in entry.breaks:
        parts.append("graph break " + record.describe())
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def _as_is(f: Callable[..., Any]) -> list[tuple[str, Loc, str]]:
    """What of a compiled function runs as it is, because its calls so far have shown that to be quicker, or
    have not taken long enough, or had their graphs raise."""
    config = getattr(f, "config", None)
    if not isinstance(config, CaptureConfig):
        return []
    return [*config.records.quicker, *config.records.waiting.values(), *resting(config)]


def _compiled_again(f: object) -> tuple[Callable[..., Any], CaptureConfig] | None:
    """Of what ``grad`` or ``value_and_grad`` made: the same, compiled afresh, and its configuration."""
    found = getattr(f, "_dyncomp_again", None)
    # functools.wraps copies such attributes
    return found[1]() if found is not None and found[0] is f else None


def explain(f: Callable[..., Any], **settings: Any) -> Callable[..., Explanation]:
    """A function that runs ``f`` once, compiled afresh with ``settings`` (as for ``compile``), and returns
    an :class:`Explanation` of what happened. The call has all its effects. What it raises is in the report;
    ``GraphBreakError``, ``KeyboardInterrupt`` and the like are raised. No capture waits (``patience_us``)."""

    def run(*args: object, **kwargs: object) -> Explanation:
        gradient = _compiled_again(f)
        if gradient is not None:
            compiled, config = gradient
        else:
            config = SESSION.new_config(replace(make_options(**settings), patience_us=0))
            compiled = compile_with(f, config)
        fallbacks = SESSION.counters["fallbacks"]
        result, error = None, None
        try:
            result = compiled(*args, **kwargs)
        except DyncompError:
            raise
        except Exception as raised:
            error = raised.with_traceback(None)
            error.__context__ = None
        records = config.records
        fallbacks = SESSION.counters["fallbacks"] - fallbacks
        return Explanation(
            result,
            list(records.entries),
            [*records.skipped, *_as_is(f)],
            error,
            current_stance(),
            fallbacks,
            tuple(records.native_loops),
        )

    return run
