"""``dyncomp run`` and ``dyncomp explain``: a script, and what dyncomp did in it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from .. import api
from ..capture.entries.config import CaptureConfig
from ..capture.entries.records import EntryRecord
from ..dataclass import dataclass, field
from ..hook import _hook
from ..profiling import profile
from ..report.explain import Explanation, explanation_of
from .answers import Answer, text_table
from .functions import Wanted
from .script import Ended, NoScript, end_by_interrupt, run_script

_NOTHING = "no compiled function was called: decorate one with @dyncomp.compile, or name it by --compile"


@dataclass
class FunctionRow:
    """What became of one function. ``calls`` found compiled code, which the first did not; ``forms``: how
    many of it there are, continuations after graph breaks and bodies of loops included; ``plain``: why parts
    of it are plain Python."""

    name: str
    where: str
    calls: int = 0
    forms: int = 0
    graphs: int = 0
    breaks: int = 0
    seconds: float = 0.0
    plain: list[str] = field(default_factory=list)


def run(options: argparse.Namespace) -> int:
    """``dyncomp run``: the exit status is the script's."""
    wanted = _wanted(options)
    if wanted is None:
        return 2
    api.SESSION.kept = []
    with ExitStack() as stack:
        prof = stack.enter_context(profile()) if options.profile or options.trace else None
        ended = _run(options, wanted)
    if ended is None:
        return 2
    facts: dict[str, object] = {"status": ended.status}
    lines: list[str] = []
    if options.table or options.json:
        rows = rows_of(api.SESSION.kept)
        facts["functions"] = [{name: getattr(row, name) for name in _FIELDS} for row in rows]
        lines += ["", *_table(rows)]
    if prof is not None:
        facts["profile"] = prof.to_dict()
        lines += ["", str(prof)]
        if options.trace:
            prof.save(options.trace)
            lines += ["", f"trace events are in {options.trace}: open it at https://ui.perfetto.dev"]
    return _finish(options, Answer(facts, lines), ended, wanted)


def explain(options: argparse.Namespace) -> int:
    """``dyncomp explain``: what was captured of each compiled function; the exit status is the script's."""
    wanted = _wanted(options)
    if wanted is None:
        return 2
    # everything is captured anew, at once
    os.environ.update(DYNCOMP_PATIENCE_US="0", DYNCOMP_WARM_START="0")
    api.SESSION.kept = []
    ended = _run(options, wanted)
    if ended is None:
        return 2
    reports = [explanation_of(config) for config in api.SESSION.kept]
    reports = [report for report in reports if report.entries or report.skipped or report.native_loops]
    lines: list[str] = []
    for report in reports:
        lines += ["", f"=== {_title(report)}", str(report.details() if options.verbose else report)]
    if not reports:
        lines += [
            "",
            _NOTHING,
        ]
    facts: dict[str, object] = {"status": ended.status, "functions": [_facts(report) for report in reports]}
    if options.html:
        paths = _save(reports, Path(options.html))
        facts["html"] = paths
        lines += ["", f"written: {', '.join(paths) or 'nothing'}"]
    return _finish(options, Answer(facts, lines), ended, wanted)


# -- running ------------------------------------------------------------------------------------------
def _wanted(options: argparse.Namespace) -> Wanted | None:
    try:
        return Wanted(options.compile, api.compile)
    except ValueError as error:
        print(f"dyncomp: {error}", file=sys.stderr)
        return None


def _run(options: argparse.Namespace, wanted: Wanted) -> Ended | None:
    try:
        return run_script(options.script, options.arguments, wanted)
    except NoScript as error:
        print(f"dyncomp: {error}", file=sys.stderr)
        return None


def _finish(options: argparse.Namespace, answer: Answer, ended: Ended, wanted: Wanted) -> int:
    """Print the report, and say what was not found."""
    text = json.dumps(answer.facts, indent=2, default=str) if options.json else "\n".join(answer.lines)
    if options.output:
        Path(options.output).write_text(text.lstrip("\n") + "\n", encoding="utf-8")
    elif text:
        print(text)
    for name in wanted.missing:
        print(f"dyncomp: --compile {name}: no function of this name was defined", file=sys.stderr)
    if ended.interrupted:
        end_by_interrupt()
    return ended.status


# -- what was done --------------------------------------------------------------------------------------
_FIELDS = ("name", "where", "calls", "forms", "graphs", "breaks", "seconds", "plain")


def rows_of(configs: Sequence[CaptureConfig]) -> list[FunctionRow]:
    """A row for each function that was compiled or left plain, in the order in which that happened."""
    rows: dict[tuple[str, str], FunctionRow] = {}

    def row(name: str, where: str) -> FunctionRow:
        return rows.setdefault((name, where), FunctionRow(name, where))

    for config in configs:
        for record in config.records.entries:
            found = row(record.name, str(record.loc))
            found.forms += 1
            found.graphs += record.graph is not None
            found.breaks += sum(broken.id != "loop" for broken in record.breaks)
            found.seconds += record.seconds
            for reason in (f"{b.reason} at {b.loc}" for b in record.breaks if b.id != "loop"):
                if reason not in found.plain:
                    found.plain.append(reason)
        report = explanation_of(config)
        for name, loc, reason in report.skipped:
            plain = row(name, str(loc)).plain
            if reason not in plain:
                plain.append(reason)
        for loop in report.native_loops:
            if loop.is_native:
                found = row(f"{loop.kind} loop of {loop.name}", str(loop.loc))
                found.calls, found.forms, found.seconds = loop.runs, loop.versions, loop.seconds
        for code, entries in _hook.all_entries(config):
            if config.function_of(code) is code:
                for entry in entries:
                    if isinstance(entry.payload, EntryRecord):
                        row(entry.payload.name, str(entry.payload.loc)).calls += entry.hits
    return list(rows.values())


def _table(rows: Sequence[FunctionRow]) -> list[str]:
    if not rows:
        return [_NOTHING]
    cells = [["function", "hits", "forms", "graphs", "breaks", "compile s", "where"]]
    for row in rows:
        numbers = [row.calls, row.forms, row.graphs, row.breaks]
        cells.append([row.name, *map(str, numbers), f"{row.seconds:.2f}", row.where])
    lines = text_table(cells, numbers=range(1, 6))
    left = [f"  {row.name}: {reason}" for row in rows for reason in row.plain]
    return [*lines, *(["", "left to plain Python, and why:", *left] if left else [])]


def _title(report: Explanation) -> str:
    if report.entries:
        return f"{report.entries[0].name} at {report.entries[0].loc}"
    if report.skipped:
        return f"{report.skipped[0][0]} at {report.skipped[0][1]}"
    return f"{report.native_loops[0].name} at {report.native_loops[0].loc}"


def _facts(report: Explanation) -> Mapping[str, object]:
    return {
        "name": _title(report),
        "summary": report.summary(),
        "frames": [{"name": e.name, "where": str(e.loc), "seconds": e.seconds} for e in report.entries],
        "breaks": [{"id": b.id, "reason": b.reason, "where": str(b.loc)} for b in report.breaks],
        "plain": [{"name": n, "where": str(loc), "reason": why} for n, loc, why in report.skipped],
        "loops": [loop.describe() for loop in report.native_loops],
        "kernels": [{"name": k.name, "lines": list(k.origin)} for k in report.kernels],
    }


def _save(reports: Sequence[Explanation], path: Path) -> list[str]:
    """Write a page for each report, numbered from the second on."""
    written = []
    for number, report in enumerate(reports, 1):
        place = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        save = getattr(report, "save", None)
        if save is not None:
            save(str(place))
        else:
            place.write_text(report.html(), encoding="utf-8")
        written.append(str(place))
    return written
