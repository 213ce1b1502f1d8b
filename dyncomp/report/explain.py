"""``dyncomp.explain(f)(*args)``: what was captured, where and why it broke, what is guarded, what runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..api import SESSION, compile_with
from ..capture.breaks import BreakRecord
from ..capture.entries.config import CaptureConfig
from ..capture.entries.records import EntryRecord
from ..capture.guards.guard import Guard, Kind
from ..capture.guards.source import LocalSource
from ..capture.policy.fallback import resting
from ..capture.policy.stance import current_stance
from ..dataclass import dataclass
from ..errors import DyncompError
from ..graph.ir import GRADIENT_OF, Callee, Graph, Loc
from ..graph.text import print_graph
from ..options import make_options
from ..scalar_loops.entry.record import NativeLoopRecord
from ..wording import counted
from .call import ExplainedCall


@dataclass
class Explanation:
    """The report of one call. ``str()`` says in at most 60 lines what became of it, or, where ``verbose``,
    all of :meth:`details`.

    ``result``: what the call returned; ``error``: the exception that it raised instead (without its
    traceback, which would keep the program's objects), else ``None``. ``entries``: one per captured frame (a
    continuation after a graph break and a loop's body are frames of their own). ``skipped``: frames that run
    as plain Python. ``stance``: that of the call. ``fallbacks``: how often the original ran because a graph
    raised. ``native_loops``: the loops over single numbers that are, or could be, compiled as a whole.
    ``tape``: how the derivative of what is no single graph was recorded. ``call``: what :meth:`save` wants to
    know of the call besides; it keeps none of the program's objects alive.
    """

    result: Any
    entries: list[EntryRecord]
    skipped: list[tuple[str, Loc, str]]
    error: BaseException | None = None
    stance: str = "default"
    fallbacks: int = 0
    native_loops: tuple[NativeLoopRecord, ...] = ()
    verbose: bool = False
    tape: tuple[str, ...] = ()
    call: ExplainedCall | None = None

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
        ops = counted(sum(len(g.nodes) for g in self.graphs), "operation") + _whole_text(self.graphs)
        parts = [
            f"{counted(len(self.entries), 'frame')} captured",
            f"{counted(len(self.graphs), 'graph')} with {ops}",
            counted(len(self.kernels), "kernel"),
            counted(len(self.breaks), "graph break"),
            counted(len(self.guards), "guard"),
            f"{counted(len(self.skipped), 'frame')} left to plain Python",
        ]
        whole = sum(record.is_native for record in self.native_loops)
        if whole:
            parts.append(f"{counted(whole, 'loop')} compiled whole")
        return ", ".join(parts)

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
            times = counted(self.fallbacks, "time")
            found.append(f"graphs raised {times}: the original ran from its start instead")
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
        if self.tape:
            found.append(("derivatives by a tape", "\n".join(self.tape)))
        if self.skipped:
            skips = "\n".join(_skip_text(*skip) for skip in self.skipped)
            found.append((f"left to plain Python: {counted(len(self.skipped), 'frame')}", skips))
        return found

    def details(self) -> str:
        """All guards, graphs, passes, kernels and sources."""
        parts = ["\n".join([self.summary(), *self.notes()])]
        parts += [f"=== {heading}\n{text}" for heading, text in self.sections()]
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self.details() if self.verbose else overview(self)

    def verdict(self) -> str:
        """One sentence: what is compiled."""
        return _verdict(self)

    def cards(self) -> list[tuple[str, str]]:
        """Figures and what they are of, for the head of a page."""
        seconds = sum(entry.seconds for entry in self.entries)
        counts = [
            (len(self.graphs), "graph"),
            (sum(len(g.nodes) for g in self.graphs), "operation"),
            (len(self.kernels), "kernel"),
            (len(self.breaks), "graph break"),
            (len(self.guards), "guard"),
            (len(self.recompiles), "recompilation"),
            (len(self.skipped), "plain Python frame"),
            (sum(record.is_native for record in self.native_loops), "native loop"),
        ]
        always = ("graph", "graph break", "guard")
        texts = [counted(count, name) for count, name in counts if count or name in always]
        shown = [(number, name) for number, _, name in (text.partition(" ") for text in texts)]
        return [*shown, (f"{seconds:.2f} s", "to compile")]

    def html(self, measure: bool = True) -> str:
        """The report as one HTML document that needs nothing else: what became of each line, breaks, guards,
        graphs after each pass, kernels on this machine's roofline, memory.

        ``measure``: run guards and kernels now, to say what they cost (seconds; kernels are built once more).
        Raises ``ModuleNotFoundError`` without jinja2 and matplotlib (the extra ``report``)."""
        from .page.write import page

        return page(self, glance(self), overview(self), measure)

    def save(self, path: str | Path, measure: bool = True) -> Path:
        """Write :meth:`html` to the file ``path`` and return that. Raises ``OSError`` where it cannot be
        written, and what :meth:`html` raises."""
        text = self.html(measure)
        place = Path(path)
        place.write_text(text, encoding="utf-8")
        return place

    def _repr_html_(self) -> str:
        """What notebooks show: the overview. :meth:`save` writes the whole report."""
        from .page.write import summary

        return summary(self.verdict(), self.cards(), overview(self))

    __repr__ = __str__


# -- at a glance ----------------------------------------------------------------------------------------
_MOST_FRAMES, _MOST_BREAKS, _MOST_PLAIN, _MOST_SUBJECTS = 10, 4, 5, 8
_MOST_KEPT, _MOST_HALVES = 4, 14  # arrays that gradients keep; lines on gradients


def overview(report: Explanation) -> str:
    """What became of the call, in at most 60 lines: what is compiled, what is not and why, what it costs."""
    lines = [_verdict(report), report.summary(), *report.notes(), *_costs(report)]
    lines += _some("tape:", report.tape, _MOST_FRAMES)
    lines += _halves(report)
    lines += _some("compiled:", [_frame_line(e) for e in report.entries], _MOST_FRAMES)
    kinds = Counter(b.id for b in report.breaks)
    distinct = {(b.id, b.loc): b for b in report.breaks}
    if distinct:
        lines.append("graphs end at: " + ", ".join(f"{n} x {kind}" for kind, n in kinds.most_common(6)))
        for record in [*distinct.values()][:_MOST_BREAKS]:
            lines += _indented(record.describe()).splitlines()[:6]
        if len(distinct) > _MOST_BREAKS:
            lines.append(f"    and at {len(distinct) - _MOST_BREAKS} other places: see .breaks")
    plain = list(dict.fromkeys(_skip_text(*skip) for skip in report.skipped))
    lines += _some("left to plain Python:", plain, _MOST_PLAIN)
    lines += _some("recompiled because:", [e.missed for e in report.recompiles], _MOST_PLAIN)
    lines += _some("used again while these are as they were:", _subjects(report.guards), _MOST_SUBJECTS)
    lines.append("More: .details() (everything), .guards, .graphs, .kernels, .breaks, .save('report.html')")
    if distinct:
        lines.append(f"      dyncomp breaks {next(iter(kinds))} (about this kind of break, with an example)")
    return _narrow(lines)


_WIDTH = 160
_GLANCE = 10


def glance(report: Explanation) -> str:
    """The same in at most ten lines: figures, and the first of what is not compiled or compiled again."""
    lines = [_verdict(report), report.summary(), *_costs(report)[:2], *report.notes()]
    distinct = {(b.id, b.loc): b for b in report.breaks if b.id != "loop"}
    lines += [f"graph break {record.describe().splitlines()[0]}" for record in distinct.values()]
    lines += dict.fromkeys(_skip_text(*skip).splitlines()[0] for skip in report.skipped)
    lines += [f"recompiled {e.name}: {e.missed.splitlines()[0]}" for e in report.recompiles]
    if len(lines) > _GLANCE:
        lines[_GLANCE - 1 :] = [f"… and {len(lines) - _GLANCE + 1} more"]
    return _narrow(lines)


def _narrow(lines: Sequence[str]) -> str:
    return "\n".join(line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines)


def _verdict(report: Explanation) -> str:
    if report.tape:
        return "The derivative is of no single graph: a tape records the call as it runs."
    worked = [e for e in report.entries if e.graph is not None]
    if not worked and not any(record.is_native for record in report.native_loops):
        return "Nothing is compiled: the call runs as plain Python."
    broken = {(b.id, b.loc) for b in report.breaks if b.id != "loop"}  # bodies of loops are compiled
    if not broken and not report.skipped:
        return "All of the call is compiled." if len(worked) == 1 else "The call is compiled, in pieces."
    count = len(broken) + len(report.skipped)
    places = "one place is" if count == 1 else f"{count} places are"
    return f"A part of the call is compiled; {places} left to plain Python (below)."


def _costs(report: Explanation) -> list[str]:
    """Time to compile, memory of temporaries, and what gradients save."""
    seconds = sum(e.seconds for e in report.entries)
    guards = counted(len(report.guards), "guard")
    lines = [f"It took {seconds:.2f} s to compile, once; a call checks {guards} first."]
    artifacts = [getattr(e.compiled, "artifact", None) for e in report.entries]
    temporaries = sum(getattr(a, "temp_bytes", 0) for a in artifacts)
    if temporaries:
        lines.append(f"Temporary arrays take {temporaries:,} bytes.")
    for entry in report.entries:
        pair = getattr(entry.compiled, "gradients", None)
        if pair is not None:
            saved, *_, again = pair.describe().splitlines()
            size = saved.removeprefix("saved").strip()
            lines.append(f"Gradients of {entry.name}: {size} are saved for backward(); {again}.")
    return lines


def _halves(report: Explanation) -> list[str]:
    """What gradients within a graph keep, and the kernels of backward passes."""
    lines = []
    for entry in report.entries:
        artifact = getattr(entry.compiled, "artifact", None)
        halves = getattr(artifact, "halves", None)
        if artifact is None or halves is None:
            continue
        lines += _some(f"gradients in {entry.name}:", halves.describe(_MOST_KEPT), _MOST_KEPT + 2)
        late = [k for k in _kernels(entry) if any(o.startswith(GRADIENT_OF) for o in k.origin)]
        texts = [f"{k.name}: {', '.join(k.origin)}" for k in late]
        lines += _some(f"of {len(_kernels(entry))} kernels backward ones:", texts, _MOST_PLAIN)
    return lines[:_MOST_HALVES]


def _frame_line(entry: EntryRecord) -> str:
    if entry.graph is None:
        return f"{entry.name} at {entry.loc}: no array work"
    kernels = len(_kernels(entry))
    made = counted(len(entry.graph.nodes), "operation")
    made += f" in {counted(kernels, 'kernel')}" if kernels else ""
    made += _whole_text([entry.graph])
    return f"{entry.name} at {entry.loc}: {made}, {entry.seconds * 1e3:.0f} ms"


def _whole_text(graphs: Sequence[Graph]) -> str:
    """How many nodes call the library under ``numerics="strict"``."""
    callees = [node.kwargs.get("callee") for graph in graphs for node in graph.nodes]
    count = sum(isinstance(callee, Callee) and callee.whole for callee in callees)
    return f" ({count} of them functions of the library, for the same bits)" if count else ""


def _some(heading: str, lines: Sequence[str], most: int) -> list[str]:
    if not lines:
        return []
    rest = [f"    … and {len(lines) - most} more"] if len(lines) > most else []
    return [heading, *(f"    {line.splitlines()[0]}" for line in lines[:most]), *rest]


def _subjects(guards: Sequence[Guard]) -> list[str]:
    """The variables that guards are of: that of an array in words, of others how many there are."""
    found: dict[str, list[Guard]] = defaultdict(list)
    for guard in guards:
        root = None if guard.source is None else guard.source.root()
        is_named = isinstance(root, LocalSource) and not root.local.startswith(".")
        found[root.expr() if is_named and root is not None else ""].append(guard)
    arrays = (Kind.ARRAY, Kind.TORCH_TENSOR)
    lines = []
    for name, group in found.items():
        own = [g for g in group if g.kind in arrays and g.source is not None and g.source.expr() == name]
        if own:
            lines.append(str(own[0]))
    for name, group in sorted(found.items(), key=lambda item: -len(item[1])):
        if not any(line.startswith(f"{name}:") for line in lines):
            lines.append(f"{name or 'modules, sizes and settings'}: {counted(len(group), 'guard')}")
    return lines


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


def explanation_of(config: CaptureConfig) -> Explanation:
    """What became of all calls so far under a configuration: a report without a result."""
    records = config.records
    plain = [*records.skipped, *records.waiting.values(), *resting(config)]
    loops = tuple(records.native_loops)
    return Explanation(None, list(records.entries), plain, native_loops=loops, tape=tuple(records.tapes))


def explain(f: Callable[..., Any], verbose: bool = False, **settings: Any) -> Callable[..., Explanation]:
    """A function that runs ``f`` once, compiled afresh with ``settings`` (as for ``compile``), and returns
    an :class:`Explanation` of what happened, which prints at most
    60 lines, or everything (``verbose``). The call has all its effects. What it raises is in the report;
    ``GraphBreakError``, ``KeyboardInterrupt`` and the like are raised. No capture waits (``patience_us``)."""

    def run(*args: object, **kwargs: object) -> Explanation:
        gradient = _compiled_again(f)
        if gradient is not None:
            compiled, config = gradient
        else:
            config = SESSION.new_config(replace(make_options(**settings), patience_us=0, warm_start=False))
            compiled = compile_with(f, config)
        watch = Watch(config)
        result, error = None, None
        try:
            result = compiled(*args, **kwargs)
        except DyncompError:
            raise
        except Exception as raised:
            error = raised.with_traceback(None)
            error.__context__ = None
        finally:
            reached = watch.end()
        call = ExplainedCall(f, args, kwargs, config.options, reached)
        return watch.report(call, result, error, _as_is(f), verbose)

    return run


class Watch:
    """What is compiled under ``config`` and runs from now on, up to :meth:`end`."""

    def __init__(self, config: CaptureConfig) -> None:
        self.config = config
        self.fallbacks = SESSION.counters["fallbacks"]
        config.records.reached = set()

    def end(self) -> frozenset[Loc]:
        """The lines that capture has followed."""
        reached = frozenset(self.config.records.reached or ())
        self.config.records.reached = None
        self.fallbacks = SESSION.counters["fallbacks"] - self.fallbacks
        return reached

    def report(
        self,
        call: ExplainedCall,
        result: object = None,
        error: BaseException | None = None,
        plain: Sequence[tuple[str, Loc, str]] = (),
        verbose: bool = False,
    ) -> Explanation:
        """After :meth:`end`: what became of the calls. ``plain``: what runs as it is besides."""
        records = self.config.records
        call.keep_programs(self.config)
        return Explanation(
            result,
            list(records.entries),
            [*records.skipped, *plain],
            error,
            current_stance(),
            self.fallbacks,
            tuple(records.native_loops),
            verbose,
            tuple(records.tapes),
            call,
        )
