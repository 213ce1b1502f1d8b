"""``python -m tests.cpython [--module test_x …] [--variant default] [--jobs 1]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .modules import LANGUAGE, LIBRARY, available
from .runner import HEADER, Comparison, Limits, compare, compare_all, results_row, row, total
from .variants import VARIANTS


def _details(found: Comparison) -> str:
    parts = [f"=== {test}: {outcome.kind}\n{outcome.text}" for test, outcome in found.differing.items()]
    parts += [f"=== {found.module}: {text}" for text in found.internal]
    parts += [f"known: {test}: {reason}" for test, reason in found.expected.items()]
    if found.problem:
        parts.append(f"=== {found.module}: {found.problem}")
    return "".join(part + "\n" for part in parts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cpython", description=__doc__)
    parser.add_argument("--module", action="append", default=[], help="default: all")
    parser.add_argument("--variant", default="default", choices=list(VARIANTS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stall", type=float, default=60.0, help="processor seconds for one test")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one module")
    parser.add_argument("--fresh", action="store_true", help="run the tests plainly again, too")
    parser.add_argument("--report", help="file for the details of what differs")
    parser.add_argument("--results", help="file to add a row to, like RESULTS.md")
    parser.add_argument("-k", action="append", default=[], help="only tests whose id contains this")
    given = parser.parse_args()
    modules = given.module or available(LANGUAGE + LIBRARY)
    limits = Limits(given.stall, given.limit)
    print(HEADER, flush=True)
    if given.report:
        Path(given.report).write_text("")

    def report(found: Comparison) -> None:
        if given.report:
            with open(given.report, "a") as file:
                file.write(_details(found))

    if given.k:
        results = [compare(module, given.variant, limits, given.fresh, given.k) for module in modules]
        print("\n".join(row(found) for found in results))
        for found in results:
            report(found)
    else:
        results = compare_all(modules, given.variant, given.jobs, limits, given.fresh, report)
    print(total(results))
    if given.results:
        with open(given.results, "a") as table:
            table.write(results_row(results, given.variant))
    if not given.report:
        print("\n".join(filter(None, map(_details, results))))
    return 1 if any(found.differing or found.internal or found.problem for found in results) else 0


if __name__ == "__main__":
    sys.exit(main())
