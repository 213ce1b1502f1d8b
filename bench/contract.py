"""``python -m bench.contract``: products, convolutions, attention beside NumPy and torch (``CONTRACT.md``).

All engines are called in turn in one process, so that what else runs on the machine disturbs all alike; the
best of many calls counts. With one thread its CPU time is measured, with several the time on the clock, and
each turn begins when the threads of the engine before it have gone to sleep.
``--torch-compile`` measures torch.compile, too; ``--only TEXT`` those whose name has the text.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import contract_cases as cases
from . import machine
from .turns import measure_in_turn

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ("numpy", "torch", "torch.compile", "dyncomp")
TITLES = {"numpy": "NumPy", "torch": "torch", "torch.compile": "torch.compile", "dyncomp": "dyncomp"}
# Seconds for one engine in one round, and rounds.
ROUND = 0.04
ROUNDS = 12
# Seconds between the turns of engines that have threads: OpenBLAS's spin for 50 ms, as was measured.
PAUSE = 0.1


# -- in the worker ----------------------------------------------------------------------------
def _calls(case: cases.Case, with_compile: bool) -> dict[str, Callable[[], Any]]:
    """One call of each engine that can run the case."""
    import dyncomp

    found: dict[str, Callable[[], Any]] = {}
    arrays = case.arguments()
    if case.numpy is not None:
        plain = case.numpy
        compiled = dyncomp.compile(plain)
        found["numpy"] = lambda: plain(*arrays)
        found["dyncomp"] = lambda: compiled(*arrays)
    if case.torch is not None and importlib.util.find_spec("torch"):
        import torch

        eager = case.torch
        tensors = [torch.from_numpy(a) for a in arrays]
        if case.dtype != "float32":
            tensors = [t.to(getattr(torch, case.dtype)) for t in tensors]
        found["torch"] = lambda: eager(*tensors)
        if with_compile:
            peer = torch.compile(eager)
            found["torch.compile"] = lambda: peer(*tensors)
        if case.numpy is None:
            ours = dyncomp.compile(eager)
            found["dyncomp"] = lambda: ours(*tensors)
    return found


def _right(calls: dict[str, Callable[[], Any]], dtype: str) -> bool:
    """Whether all engines agree to what float32, or half precision, allows."""
    results = [call() for call in calls.values()]
    if dtype != "float32":
        results = [result.float() for result in results]
    close = {"float32": 1e-4, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    results = [np.asarray(result) for result in results]
    scale = float(np.abs(results[0]).max())
    return all(np.allclose(results[0], other, rtol=0, atol=close * scale) for other in results[1:])


def _work(names: list[str], threads: int, with_compile: bool) -> None:
    """Measure in this process; a line of JSON for each case."""
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
    clock = time.thread_time if threads == 1 else time.perf_counter
    for case in cases.CASES:
        if case.name in names:
            calls = _calls(case, with_compile)
            right = _right(calls, case.dtype)
            if threads == 1:
                found = measure_in_turn(calls, clock, ROUNDS, ROUND)
            else:
                found = measure_in_turn(calls, clock, ROUNDS // 2, 2 * ROUND, PAUSE)
            print(json.dumps([case.name, right, found]), flush=True)


# -- the page ---------------------------------------------------------------------------------
def _run(names: list[str], threads: int, with_compile: bool) -> dict[str, Any]:
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "DYNCOMP_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(limits, str(threads))}
    command = [sys.executable, "-m", "bench.contract", "--worker", str(threads), *names]
    if with_compile:
        command.append("--torch-compile")
    found = {}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, right, seconds = json.loads(line)
            found[name] = (right, seconds)
            print(name, "" if right else "WRONG", {k: f"{v * 1e3:.4g}" for k, v in seconds.items()})
    return found


def _peak(case: cases.Case, peak: float) -> float:
    """The most GFLOP/s of a case's type: twice as many of bfloat16, where it has instructions."""
    return peak / 2 if "float64" in case.name else 2 * peak if case.dtype == "bfloat16" else peak


def _rows(found: dict[str, Any], engines: list[str], peak: float | None) -> list[str]:
    """The table; ``peak``: GFLOP/s of float32 that the threads could reach together."""
    head = ["", *[f"{TITLES[e]} ms" for e in engines], "GFLOP/s", "of peak", "against the best"]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    ratios = []
    for case in cases.CASES:
        if case.name not in found:
            continue
        right, seconds = found[case.name]
        mine = seconds.get("dyncomp", math.nan)
        peers = [v for k, v in seconds.items() if k != "dyncomp"]
        against = min(peers) / mine if peers else math.nan
        ratios.append(against)
        cells = [case.name, *[f"{seconds[e] * 1e3:.4g}" if e in seconds else "–" for e in engines]]
        share = case.flops / mine / 1e9 / _peak(case, peak) if peak else math.nan
        cells += [f"{case.flops / mine / 1e9:.1f}", f"{share:.0%}" if peak else "–"]
        cells.append(f"{against:.2f}x" if right else "wrong")
        lines.append("| " + " | ".join(cells) + " |")
    good = [r for r in ratios if r > 0]
    mean = math.exp(sum(map(math.log, good)) / len(good)) if good else math.nan
    wins = sum(r >= 1 for r in good)
    return [
        *lines,
        "",
        f"Geometric mean {mean:.2f}x; {wins} of {len(good)} at least as fast as the best peer.",
    ]


def _page(tables: dict[int, dict[str, Any]], engines: list[str], peak: float | None) -> str:
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "# Contractions, measured",
        "",
        f"`python -m bench.contract`, {date}, on {machine.cores()} cores of {machine.processor()} (load "
        f"{os.getloadavg()[0]:.1f}). {machine.versions()}.",
        "",
        "Milliseconds of the best of many calls, engines called in turn in one process; operands in float32 "
        "unless said. “Against the best” is the fastest peer's time over dyncomp's: more is faster. With one "
        "thread: CPU time of the calling thread; with two: time on the clock, each turn begun when the "
        "threads of the engine before it sleep. Operands are the same at every call, as weights are: dyncomp "
        "keeps packed copies of some.",
        "",
        "“Of peak” is dyncomp's share of what nothing but multiplications in registers reaches"
        + (
            f": {peak:.1f} GFLOP/s of float32 on one core here, half of it of float64, twice of bfloat16."
            if peak
            else "."
        ),
    ]
    for threads, found in tables.items():
        lines += [
            "",
            f"## {threads} thread{'s' if threads > 1 else ''}",
            "",
            *_rows(found, engines, peak and peak * threads),
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--worker", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--torch-compile", action="store_true")
    parser.add_argument("--output", default=str(HERE / "CONTRACT.md"))
    given = parser.parse_args()
    if given.worker:
        _work(given.names, given.worker, given.torch_compile)
        return
    names = [case.name for case in cases.CASES if given.only in case.name]
    tables = {threads: _run(names, threads, given.torch_compile) for threads in given.threads}
    engines = [e for e in ENGINES if any(e in s for found in tables.values() for _, s in found.values())]
    page = _page(tables, engines, machine.peak_gflops())
    if not given.only:
        pathlib.Path(given.output).write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
