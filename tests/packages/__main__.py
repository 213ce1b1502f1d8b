"""Run public packages' own tests plainly and with their functions compiled, and compare test by test.

    python -m tests.packages [--only scipy.signal] [--backend eager|inductor] [--methods] [--plain] [--list]

``--methods`` compiles the methods of the classes, too. For large files ``--budget`` ends a run of tests
after so many seconds, ``--sample`` takes every n-th test and ``--shuffle`` mixes them; what did not run is
not compared.
Targets whose tests are in a source distribution run where ``DYNCOMP_TEST_SDISTS`` names a folder that holds
it unpacked.

Exit status 1 if a test that passes plainly fails with the package compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .targets import TARGETS, Target

TEST_LIMIT = 600  # seconds for one test: machines are shared
_LEAST_LIMIT = 60  # of a run that has a budget
ROOT = Path(__file__).resolve().parents[2]
_TIMED_OUT = 124
_INTERRUPTED = 2  # pytest's exit status


def run(target: Target, backend: str, limit: float) -> dict[str, Any]:
    """One pytest process over the target's tests; outcomes by test id. Without ``backend`` as they are; with
    ``"none"`` the functions are called as compiled ones are, but are not compiled."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        environ = dict(os.environ, DYNCOMP_TEST_REPORT=report, DYNCOMP_TEST_BACKEND=backend)
        environ["PYTHONHASHSEED"] = "0"  # tests named after the elements of sets
        environ["DYNCOMP_TEST_PACKAGES"] = ",".join(target.packages) if backend else ""
        environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{environ.get('PYTHONPATH', '')}"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.packages.plugin",
            "-p",
            "no:cacheprovider",
        ]
        command += [
            "--rootdir",
            folder,
            "-c",
            os.devnull,
            f"--timeout={_test_limit()}",
            "-W",
            "ignore",
            "-p",
            "no:randomly",
        ]
        command += ["-k", os.environ.get("DYNCOMP_TEST_SELECT", "")]
        command += [*target.options, *tests_of(target)]
        try:
            done = subprocess.run(
                command, env=environ, cwd=folder, capture_output=True, text=True, timeout=limit, check=False
            )
            tail, status = (done.stdout + done.stderr)[-3000:], done.returncode
        except subprocess.TimeoutExpired as error:
            tail, status = f"timed out: {(error.stdout or b'')[-2000:]!r}", _TIMED_OUT
        if not os.path.exists(report):
            return {"outcomes": {}, "stats": {}, "functions": 0, "called": 0, "status": status, "tail": tail}
        with open(report, encoding="utf-8") as file:
            return dict(json.load(file), status=status, tail=tail)


def _test_limit() -> float:
    budget = float(os.environ.get("DYNCOMP_TEST_BUDGET") or 0)
    return max(_LEAST_LIMIT, 4 * budget) if budget else TEST_LIMIT


def tests_of(target: Target) -> list[str]:
    if not target.sdist:
        return ["--pyargs", *target.tests]
    found = sorted(Path(os.environ["DYNCOMP_TEST_SDISTS"]).glob(f"{target.sdist}-*/"))
    return [str(found[-1] / file) for file in target.tests]


def compare(target: Target, backend: str, limit: float) -> tuple[dict[str, Any], list[str]]:
    start = time.perf_counter()
    plain = run(target, "", limit)
    middle = time.perf_counter()
    if plain["status"] == _TIMED_OUT:
        return dict(plain, plain=middle - start, seconds=0.0), [
            f"{target.name}: too slow without dyncomp, too"
        ]
    compiled = run(target, backend, 4 * limit)
    compiled["seconds"] = time.perf_counter() - middle
    compiled["plain"] = middle - start
    worse = _worse(plain, compiled)
    if worse:  # what looks at the frames of its callers sees those of the runner
        worse = _worse(run(target, "none", limit), compiled)
    expected = (0, 1, _INTERRUPTED) if compiled.get("ended") else (0, 1)
    if compiled["status"] not in expected or not compiled["outcomes"]:
        worse = [line for line in worse if not line.endswith("did not run")]
        worse.append(f"{target.name}: exit status {compiled['status']}: {compiled['tail']}")
    return compiled, worse


def _worse(plain: dict[str, Any], compiled: dict[str, Any]) -> list[str]:
    found = compiled["outcomes"]
    passed = [name for name, outcome in plain["outcomes"].items() if outcome == "passed"]
    if compiled.get("ended"):
        passed = [name for name in passed if name in found]
    return [f"{name}: {found.get(name, 'did not run')}" for name in passed if found.get(name) != "passed"]


def _add_row(table: str, target: Target, backend: str, compiled: dict[str, Any], worse: int) -> None:
    fields = (target.name, backend, compiled["called"], len(compiled["outcomes"]), worse)
    with open(table, "a", encoding="utf-8") as file:
        file.write(f"| {' | '.join(map(str, fields))} |\n")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.packages", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="targets whose names begin so")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a plain run")
    parser.add_argument("--methods", action="store_true", help="compile the methods of classes too")
    parser.add_argument("--plain", action="store_true", help="replace code without array work, too")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds after which a run of tests ends")
    parser.add_argument("--sample", type=int, default=1, help="take every n-th test only")
    parser.add_argument("--shuffle", default="", help="a seed: run the tests in an order drawn with it")
    parser.add_argument("-k", default="", help="pytest's selection of tests")
    parser.add_argument("--reasons", type=int, default=0, help="how many reasons of breaks to print")
    parser.add_argument("--table", default="", help="a file to which the rows are added, as Markdown")
    parser.add_argument("--list", action="store_true", help="list the targets")
    options = parser.parse_args(arguments)
    chosen = [t for t in TARGETS if not options.only or any(t.name.startswith(o) for o in options.only)]
    if options.list:
        print("\n".join(t.name for t in chosen))
        return 0
    if not os.environ.get("DYNCOMP_TEST_SDISTS"):
        chosen = [t for t in chosen if not t.sdist]
    os.environ["DYNCOMP_TEST_PLAIN"] = "1" if options.plain else ""
    os.environ["DYNCOMP_TEST_METHODS"] = "1" if options.methods else ""
    os.environ["DYNCOMP_TEST_BUDGET"] = str(options.budget)
    os.environ["DYNCOMP_TEST_SHUFFLE"] = options.shuffle
    os.environ["DYNCOMP_TEST_SAMPLE"] = str(options.sample)
    os.environ["DYNCOMP_TEST_SELECT"] = options.k
    failed = 0
    head = f"{'target':<34} {'functions':>9} {'called':>7} {'tests':>6} {'worse':>6} {'internal':>8}"
    print(f"{head} {'plain s':>8} {'s':>7}")
    for target in chosen:
        compiled, worse = compare(target, options.backend, options.limit)
        failed += len(worse)
        internal = compiled["stats"].get("internal_errors", 0)
        print(
            f"{target.name:<34} {compiled['functions']:>9} {compiled['called']:>7} "
            f"{len(compiled['outcomes']):>6} {len(worse):>6} {internal:>8} "
            f"{compiled['plain']:>8.1f} {compiled['seconds']:>7.1f}",
            flush=True,
        )
        if options.table:
            _add_row(options.table, target, options.backend, compiled, len(worse))
        for line in (*compiled["stats"].get("internal", ()), *worse):
            print(f"    {line}", flush=True)
        for reason, count in compiled["stats"].get("reasons", ())[: options.reasons]:
            print(f"    {count:>6} {reason}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
