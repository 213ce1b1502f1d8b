"""``python -m demo [NAME ...]``: run the programs with NumPy and with dyncomp, compare, and print a table.

Exit status 1 when a result is wrong or nothing of a program was compiled, 2 for an unknown name.
"""

from __future__ import annotations

import argparse
import atexit
import faulthandler
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .catalog import LIBRARY, PROGRAMS, Program, installed, select
from .runner import Outcome, run

EXPLAINED = "heat"
REPORT = Path("build") / "demo-report.txt"
SECONDS_EACH = 4  # of a program, on two busy cores, compiling included


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="programs to run (default: all)")
    parser.add_argument("--list", action="store_true", help="list the programs and stop")
    parser.add_argument(
        "--quick", action="store_true", help="small inputs: checks results, times say nothing"
    )
    parser.add_argument("--budget", type=float, default=0.3, help="seconds of repeats per program and engine")
    parser.add_argument("--explain", default=EXPLAINED, help="program to write a report on, or 'none'")
    parser.add_argument("--report", type=Path, default=REPORT, help=f"where the report goes ({REPORT})")
    return parser.parse_args(arguments)


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else float("nan")


def _style(speed_up: float) -> str:
    if speed_up < 0.9:
        return "red"
    return "green" if speed_up >= 1.5 else ""


def table_of(outcomes: list[Outcome]) -> Table:
    """One row per program."""
    table = Table(title="NumPy programs, as they are and compiled by dyncomp", title_justify="left")
    table.add_column("program", no_wrap=True)
    table.add_column("from", no_wrap=True)
    for name in (
        "NumPy ms",
        "dyncomp ms",
        "speed-up",
        "compile s",
        "graphs",
        "breaks",
        "skipped",
        "fallbacks",
        "max error",
    ):
        table.add_column(name, justify="right")
    table.add_column("result")
    for outcome in outcomes:
        table.add_row(
            outcome.name,
            outcome.origin,
            f"{outcome.numpy_ms:.2f}",
            f"{outcome.dyncomp_ms:.2f}",
            Text(f"{outcome.speed_up:.2f}x", style=_style(outcome.speed_up)),
            f"{outcome.compile_s:.2f}",
            str(outcome.graphs),
            str(outcome.breaks),
            str(outcome.skipped),
            str(outcome.fallbacks),
            f"{outcome.error:.0e}" if outcome.error else "0",
            Text(outcome.verdict, style="green" if outcome.verdict == "right" else "bold red"),
        )
    return table


def summarise(console: Console, outcomes: list[Outcome], report: Path | None) -> None:
    """What is wrong, and a paragraph on what the table says."""
    speed_ups = [o.speed_up for o in outcomes if o.speed_up > 0]
    for outcome in outcomes:
        if not outcome.graphs and not outcome.problems:
            console.print(f"{outcome.name}: nothing was compiled; the original function ran.", style="yellow")
    for outcome in outcomes:
        for problem in outcome.problems:
            console.print(f"{outcome.name}: {problem}", style="red", markup=False, highlight=False)
    said = f"Graphs, loops and C++ of one of them are in {report}." if report is not None else ""
    console.print(
        f"Geometric mean of the speed-ups: {geometric_mean(speed_ups):.2f}x over {len(speed_ups)} programs; "
        f"{sum(s < 0.9 for s in speed_ups)} below 0.9x. Times are the best of several calls, each on fresh "
        "copies of its inputs; compile s is what the first three calls took beyond that. Max error is "
        f"relative to the largest value of the array. {said}",
        highlight=False,
    )


def explain(path: Path, program: Program, quick: bool) -> None:
    """Write dyncomp's report on one program, with all intermediate forms, to a file."""
    import dyncomp

    dyncomp.reset()
    report = dyncomp.explain(program.compiled_from(), verbose=True)(*program.make_inputs(quick))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{program.name}: {program.module}.{program.function}\n\n{report}\n", encoding="utf-8")


def announce(console: Console, count: int, options: argparse.Namespace) -> None:
    """Say how long it takes."""
    if options.quick:
        console.print(f"{count} programs on small inputs: about {max(count, 5)} seconds.", highlight=False)
        return
    seconds = count * SECONDS_EACH
    long = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds} seconds"
    console.print(
        f"{count} programs, each with NumPy and compiled: about {long} (NAME ... runs some, --quick all on "
        "small inputs).",
        highlight=False,
    )


def _cache_of_its_own() -> None:
    """Compile anew in each run, so that the seconds of compilation mean something."""
    if "DYNCOMP_CACHE_DIR" not in os.environ:
        directory = tempfile.mkdtemp(prefix="dyncomp-demo-")
        os.environ["DYNCOMP_CACHE_DIR"] = directory
        atexit.register(shutil.rmtree, directory, ignore_errors=True)


def list_programs(console: Console) -> None:
    for program in (*PROGRAMS, *LIBRARY):
        here = program.origin if installed(program) else f"{program.package or 'scikit-image'}: not installed"
        console.print(f"{program.name:20} {program.module}.{program.function}  ({here})", highlight=False)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    if options.list:
        list_programs(console)
        return 0
    try:
        programs = select(options.names)
    except KeyError as error:
        console.print(error.args[0], style="red")
        return 2
    announce(console, len([p for p in programs if installed(p)]), options)
    outcomes = []
    for program in programs:
        if not installed(program):
            console.print(f"{program.name}: left out, its package is not installed", style="yellow")
            continue
        with console.status(program.name):
            outcome = run(program, options.quick, options.budget)
        outcomes.append(outcome)
        console.print(f"{program.name:20}{outcome.speed_up:8.2f}x  {outcome.verdict}", highlight=False)
    explained = [program for program in programs if program.name == options.explain]
    report: Path | None = None
    if explained and installed(explained[0]):
        report = options.report
        explain(options.report, explained[0], options.quick)
    console.print(table_of(outcomes))
    summarise(console, outcomes, report)
    return 1 if any(outcome.verdict != "right" for outcome in outcomes) else 0


if __name__ == "__main__":
    faulthandler.enable()
    _cache_of_its_own()
    sys.exit(main(sys.argv[1:]))
