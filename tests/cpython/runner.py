"""Run modules plainly and compiled, each in a process of its own, and compare test by test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .expected import reason_for
from .outcomes import ModuleRun, Outcome, read_journal

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
_RESTARTS = 30


@dataclass(frozen=True)
class Limits:
    """Seconds: of the processor for one test, and by the clock for the whole module."""

    stall: float = 60.0
    module: float = 600.0


@dataclass
class Comparison:
    """What one module showed."""

    module: str
    tests: int = 0
    same: int = 0
    seconds: float = 0.0
    plain_seconds: float = 0.0
    differing: dict[str, Outcome] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)
    internal: list[str] = field(default_factory=list)
    problem: str = ""
    captured: int = 0


def run_module(module: str, variant: str, limits: Limits, select: Iterable[str] = ()) -> ModuleRun:
    """All tests of a module; ``variant`` empty means plainly. A test that ends the process is noted and left
    out of the next one."""
    run = ModuleRun()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(_RESTARTS):
            left = limits.module - (time.monotonic() - start)
            if left <= 0:
                run.problem = f"more than {limits.module:.0f} s"
                break
            if _one_process(module, variant, limits, left, Path(folder), run, select):
                break
    run.seconds = time.monotonic() - start
    return run


def _one_process(
    module: str,
    variant: str,
    limits: Limits,
    left: float,
    folder: Path,
    run: ModuleRun,
    select: Iterable[str],
) -> bool:
    """Whether the module is done."""
    journal, skip = folder / "journal", folder / "skip"
    journal.write_text("")
    skip.write_text(json.dumps(list(run.outcomes)))
    command = [sys.executable, "-m", "tests.cpython.child", module, "--journal", str(journal)]
    command += ["--skip", str(skip), "--stall", str(limits.stall)]
    command += [part for text in select for part in ("-k", text)]
    if variant:
        command += ["--variant", variant]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=left, stdin=subprocess.DEVNULL
        )
        code, said = done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        code, said = None, (error.stderr or b"").decode(errors="replace")
    outcomes, open_test, summary = read_journal(journal)
    run.outcomes.update(outcomes)
    if summary is not None:
        run.summary = summary
        return True
    if open_test is None:
        run.problem = f"exit status {code} outside of tests: {said[-1500:]}"
        return True
    hung = code in (None, -signal.SIGXCPU) or "Timeout (" in said[-20000:]
    run.outcomes[open_test] = Outcome("hang" if hung else "crash", f"exit status {code}\n{said[-6000:]}")
    return False


def plain_run(module: str, limits: Limits, fresh: bool) -> ModuleRun:
    """The module in plain Python, kept between runs."""
    folder = Path(tempfile.gettempdir()) / f"dyncomp-cpython-{sys.version.split()[0]}"
    folder.mkdir(exist_ok=True)
    path = folder / f"{module}.json"
    if not fresh and path.exists():
        return ModuleRun.load(path)
    run = run_module(module, "", limits)
    run.save(path)
    return run


def compare(
    module: str, variant: str, limits: Limits, fresh: bool = False, select: Iterable[str] = ()
) -> Comparison:
    """Tests that pass plainly must pass compiled."""
    plain = plain_run(module, limits, fresh)
    limit = Limits(limits.stall, max(limits.module, 20 * plain.seconds))
    compiled = run_module(module, variant, limit, select)
    found = Comparison(module, seconds=compiled.seconds, plain_seconds=plain.seconds)
    found.problem = compiled.problem or plain.problem
    found.internal = list(compiled.summary.get("internal", []))
    found.captured = compiled.summary.get("stats", {}).get("frames_captured", 0)
    for test, outcome in plain.outcomes.items():
        if outcome.kind not in ("ok", "xfail") or (select and not any(part in test for part in select)):
            continue
        found.tests += 1
        now = compiled.outcomes.get(test, Outcome("missing"))
        if now.kind == outcome.kind:
            found.same += 1
            continue
        reason = reason_for(VERSION, test, now)
        if reason is not None:
            found.expected[test] = reason
        else:
            found.differing[test] = now
    return found


def compare_all(
    modules: list[str],
    variant: str,
    jobs: int,
    limits: Limits,
    fresh: bool = False,
    report: Callable[[Comparison], None] | None = None,
) -> list[Comparison]:
    """``report`` is called with each module's comparison as soon as it is there."""

    def one(module: str) -> Comparison:
        found = compare(module, variant, limits, fresh)
        print(row(found), flush=True)
        if report is not None:
            report(found)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, modules))


def row(found: Comparison) -> str:
    note = f"  {found.problem.splitlines()[0][:60]}" if found.problem else ""
    internal = f"  {len(found.internal)} internal errors" if found.internal else ""
    return (
        f"{found.module:28} {found.tests:6} {found.same:6} {len(found.differing):5} {len(found.expected):5} "
        f"{found.captured:7} {found.plain_seconds:7.1f} {found.seconds:7.1f}{internal}{note}"
    )


HEADER = (
    f"{'module':28} {'tests':>6} {'same':>6} {'diff':>5} {'known':>5} {'frames':>7} {'plain s':>7} {'s':>7}"
)


def total(all_found: list[Comparison]) -> str:
    tests = sum(f.tests for f in all_found)
    differing = sum(len(f.differing) for f in all_found)
    expected = sum(len(f.expected) for f in all_found)
    frames = sum(f.captured for f in all_found)
    return (
        f"CPython {VERSION}: {len(all_found)} modules, {tests} tests, {differing} differ, "
        f"{expected} known to differ, {frames} frames captured"
    )


def results_row(all_found: list[Comparison], variant: str) -> str:
    """A row of the table in ``RESULTS.md``."""
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    cells = [
        VERSION,
        variant,
        len(all_found),
        sum(f.tests for f in all_found),
        sum(len(f.differing) for f in all_found),
        sum(len(f.expected) for f in all_found),
        sum(len(f.internal) for f in all_found),
        f"{sum(f.plain_seconds for f in all_found):.0f}",
        f"{sum(f.seconds for f in all_found):.0f}",
        asked.stdout.strip() or "-",
        time.strftime("%Y-%m-%d"),
    ]
    return f"| {' | '.join(map(str, cells))} |\n"
