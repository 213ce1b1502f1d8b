"""The page itself: what is known of a call, put into the templates of ``templates/``."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from ...capture.breaks import BREAKS, BreakRecord
from ...capture.entries.records import EntryRecord
from ...dataclass import dataclass, field
from ...errors import ToolchainError
from ...graph.ir import Loc
from ...graph.text import print_graph
from ...inductor.compile import CompiledArtifact
from ...options import Options, make_options
from ...pipeline import Compiled
from ...scalar_loops.entry.record import NativeLoopRecord
from ..call import ExplainedCall
from .fixes import Fix, fix_of
from .guards import GuardCheck, guard_checks
from .machine import Machine, this_machine
from .passes import LineBudget, Passes, passes_of
from .source_lines import SourceFile, State, source_files
from .steps import GraphFacts, graph_facts

if TYPE_CHECKING:
    from jinja2 import Environment

# Characters of one piece of generated code, and of all of a page, that are shown.
MOST_CODE, MOST_CODE_ALTOGETHER = 60_000, 1_500_000
# Guards and compiled graphs of which everything is shown.
MOST_FRAMES = 60
STATES = {
    State.GRAPH: "compiled into a graph",
    State.NATIVE: "in a loop compiled whole",
    State.FOLLOWED: "followed at capture, nothing left to compute",
    State.BREAK: "broke the graph",
    State.PLAIN: "ran as plain Python",
    State.UNREACHED: "not reached",
}


class Report(Protocol):
    """What a page is made of: an ``Explanation``, which imports this module to write itself."""

    entries: list[EntryRecord]
    skipped: list[tuple[str, Loc, str]]
    native_loops: tuple[NativeLoopRecord, ...]
    tape: tuple[str, ...]
    call: ExplainedCall | None

    @property
    def breaks(self) -> list[BreakRecord]: ...

    def notes(self) -> list[str]: ...

    def verdict(self) -> str: ...

    def cards(self) -> list[tuple[str, str]]: ...


class ReportError(ModuleNotFoundError):
    """What writes pages is not installed."""


@dataclass
class BreakFacts:
    """Equal breaks, ``count`` of them."""

    record: BreakRecord
    explanation: str
    hint: str
    fix: Fix | None
    count: int = 1

    @property
    def is_mild(self) -> bool:
        """Nothing is lost: bodies of loops are compiled."""
        return self.record.id == "loop"


@dataclass
class FrameFacts:
    """One entry, its compiled graphs and their passes."""

    number: int
    entry: EntryRecord
    passes: Passes | None
    graphs: list[GraphFacts]
    pictures: list[str]
    runs_as: str
    graph_text: str
    cut: int


@dataclass
class Recompiled:
    """The compiled forms of one function, in order."""

    name: str
    place: str
    forms: list[EntryRecord] = field(default_factory=list)


@dataclass
class Contents:
    """All of a page."""

    verdict: str
    glance: str
    overview: str
    cards: list[tuple[str, str]]
    notes: list[str]
    files: list[SourceFile]
    breaks: list[BreakFacts]
    skipped: list[tuple[str, str, str]]
    checks: list[GuardCheck]
    recompiled: list[Recompiled]
    frames: list[FrameFacts]
    loops: list[NativeLoopRecord]
    tape: Sequence[str]
    machine: Machine | None
    machine_problem: str
    roofline: str


def page(report: Report, glance: str, overview: str, measure: bool) -> str:
    """The whole report as one HTML document. ``glance``: the overview in some lines. Raises
    :class:`ReportError` without jinja2 or matplotlib."""
    _require("jinja2", "matplotlib")
    contents = _contents(report, glance, overview, measure)
    return _environment().get_template("page.html.jinja").render(it=contents, states=STATES)


def summary(verdict: str, cards: Sequence[tuple[str, str]], overview: str) -> str:
    """What a notebook shows; as plain text where jinja2 is not installed."""
    if importlib.util.find_spec("jinja2") is None:
        return f"<pre>{escape(overview)}</pre>"
    template = _environment().get_template("summary.html.jinja")
    return template.render(verdict=verdict, cards=cards, overview=overview)


def _require(*names: str) -> None:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        text = f"pages of reports need {' and '.join(missing)}: pip install 'dyncomp[report]'"
        raise ReportError(text, name=missing[0])


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("dyncomp.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(bytes=size_text, seconds=time_text, rate=rate_text, ns=ns_text)
    return made


# -- contents -------------------------------------------------------------------------------------
def _contents(report: Report, glance: str, overview: str, measure: bool) -> Contents:
    options = make_options(environ={}) if report.call is None else report.call.options
    machine, problem = _machine(measure and any(_artifacts(e.compiled) for e in report.entries))
    budget = LineBudget()
    code_left = [MOST_CODE_ALTOGETHER]
    frames = [
        _frame(number, entry, options, measure, budget, code_left)
        for number, entry in enumerate(report.entries[:MOST_FRAMES])
    ]
    kernels = [(kernel.name, kernel.origin) for entry in report.entries for kernel in _kernels(entry)]
    reached = frozenset() if report.call is None else report.call.reached
    notes = report.notes()
    if len(report.entries) > MOST_FRAMES:
        notes.append(f"only the first {MOST_FRAMES} of {len(report.entries)} frames are shown in detail")
    steps = [step for frame in frames for graph in frame.graphs for step in graph.steps]
    for number, step in enumerate(sorted(steps, key=lambda s: -(s.total or 0.0)), 1):
        step.mark = number
    from .plots import roofline

    return Contents(
        verdict=report.verdict(),
        glance=glance,
        overview=overview,
        cards=report.cards(),
        notes=notes,
        files=source_files(report.entries, report.skipped, report.native_loops, reached, kernels),
        breaks=_breaks(report.breaks),
        skipped=[(name, str(loc), reason) for name, loc, reason in dict.fromkeys(report.skipped)],
        checks=guard_checks(report.entries[:MOST_FRAMES], report.call if measure else None),
        recompiled=_recompiled(report.entries),
        frames=frames,
        loops=[_shortened_loop(record, code_left) for record in report.native_loops],
        tape=report.tape,
        machine=machine,
        machine_problem=problem,
        roofline="" if machine is None else _markup(roofline(machine, steps)),
    )


def _machine(wanted: bool) -> tuple[Machine | None, str]:
    if not wanted:
        return None, ""
    try:
        return this_machine(), ""
    except (ToolchainError, MemoryError) as error:
        return None, f"this machine's peaks are not measured: {error}"


def _frame(
    number: int,
    entry: EntryRecord,
    options: Options,
    measure: bool,
    budget: LineBudget,
    code_left: list[int],
) -> FrameFacts:
    from .plots import memory

    passes = passes_of(entry.compiled, options, budget) if isinstance(entry.compiled, Compiled) else None
    owner = getattr(entry.compiled, "owner", None)
    graphs = [graph_facts(made, owner, options, measure) for made in _artifacts(entry.compiled)]
    for graph in graphs:
        for step in graph.steps:
            step.source = _code(step.source, code_left)
    text, cut = "", 0
    if passes is None and entry.graph is not None:
        text, cut = budget.cut(print_graph(entry.graph))
    pictures = [_markup(memory(graph)) for graph in graphs]
    return FrameFacts(number, entry, passes, graphs, pictures, _code(entry.source, code_left), text, cut)


def _artifacts(compiled: object) -> list[CompiledArtifact]:
    artifact = getattr(compiled, "artifact", None)
    found = getattr(artifact, "artifacts", [artifact])
    return [made for made in found if isinstance(made, CompiledArtifact)]


def _kernels(entry: EntryRecord) -> list[Any]:
    return [kernel for artifact in _artifacts(entry.compiled) for kernel in artifact.kernels]


def _code(text: str, left: list[int]) -> str:
    """The beginning of generated code that is shown."""
    most = max(min(MOST_CODE, left[0]), 0)
    left[0] -= min(len(text), most)
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} characters more"


def _shortened_loop(record: NativeLoopRecord, left: list[int]) -> NativeLoopRecord:
    from dataclasses import replace

    return replace(record, source=_code(record.source, left))


def _breaks(records: Sequence[BreakRecord]) -> list[BreakFacts]:
    found: dict[Any, BreakFacts] = {}
    for record in records:
        key = (record.id, record.loc, record.reason)
        if key in found:
            found[key].count += 1
            continue
        kind = BREAKS[record.id]
        found[key] = BreakFacts(record, kind.explanation, kind.hint, fix_of(record))
    return list(found.values())


def _recompiled(entries: Sequence[EntryRecord]) -> list[Recompiled]:
    grouped: defaultdict[tuple[str, str], Recompiled] = defaultdict(lambda: Recompiled("", ""))
    for entry in entries:
        group = grouped[entry.name, str(entry.loc)]
        group.name, group.place = entry.name, str(entry.loc)
        group.forms.append(entry)
    return [group for group in grouped.values() if any(entry.missed for entry in group.forms)]


def _markup(svg: str) -> str:
    """A picture of ours, which matplotlib has escaped."""
    from markupsafe import Markup

    return Markup(svg)


# -- numbers in words -----------------------------------------------------------------------------
def size_text(size: float) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:,.0f} B"


def time_text(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{seconds / unit:,.2f} {name}"
    return f"{seconds * 1e9:,.0f} ns"


def ns_text(ns: float | None) -> str:
    if ns is None:
        return "–"
    return f"{ns * 1e-3:,.2f} µs" if ns >= 1000 else f"{ns:,.0f} ns"


def rate_text(amount: float, seconds: float | None) -> str:
    """Billions per second."""
    return f"{amount / seconds * 1e-9:,.2f}" if seconds else "–"
