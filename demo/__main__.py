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

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .catalog import LIBRARY, PROGRAMS, Program, installed, select
from .runner import Outcome, run

EXPLAINED = "heat"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="programs to run (default: all)")
    parser.add_argument("--list", action="store_true", help="list the programs and stop")
    parser.add_argument(
        "--quick", action="store_true", help="small inputs: checks results, times say nothing"
    )
    parser.add_argument("--budget", type=float, default=0.3, help="seconds of repeats per program and engine")
    parser.add_argument("--explain", default=EXPLAINED, help="program to explain at the end, or 'none'")
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


def summarise(console: Console, outcomes: list[Outcome]) -> None:
    speed_ups = [o.speed_up for o in outcomes if o.speed_up > 0]
    console.print(
        f"Geometric mean of the speed-ups: {geometric_mean(speed_ups):.2f}x over {len(speed_ups)} programs; "
        f"{sum(s < 0.9 for s in speed_ups)} below 0.9x. Times are the best of several calls, each on fresh "
        "copies of its inputs;\n"
        "compile s is what the first three calls took beyond that. Max error is relative to the largest "
        "value of the array."
    )
    for outcome in outcomes:
        if not outcome.graphs and not outcome.problems:
            console.print(f"{outcome.name}: nothing was compiled; the original function ran.", style="yellow")
    for outcome in outcomes:
        for problem in outcome.problems:
            console.print(f"{outcome.name}: {problem}", style="red", markup=False, highlight=False)


def explain(console: Console, program: Program, quick: bool) -> None:
    """Print dyncomp's report on one program."""
    import dyncomp

    dyncomp.reset()
    console.rule(f"dyncomp.explain({program.differentiated or program.function})")
    print(dyncomp.explain(program.compiled_from())(*program.make_inputs(quick)))


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
    outcomes = []
    for program in programs:
        if not installed(program):
            console.print(f"{program.name}: left out, its package is not installed", style="yellow")
            continue
        with console.status(program.name):
            outcome = run(program, options.quick, options.budget)
        outcomes.append(outcome)
        console.print(f"{program.name:20}{outcome.speed_up:8.2f}x  {outcome.verdict}", highlight=False)
    console.print(table_of(outcomes))
    summarise(console, outcomes)
    explained = [program for program in programs if program.name == options.explain]
    if explained and installed(explained[0]):
        explain(console, explained[0], options.quick)
    return 1 if any(outcome.verdict != "right" for outcome in outcomes) else 0


if __name__ == "__main__":
    faulthandler.enable()
    _cache_of_its_own()
    sys.exit(main(sys.argv[1:]))
