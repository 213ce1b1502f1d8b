"""``python -m bench.bandwidth [--write]``: memory-bound kernels against a copy (``BANDWIDTH.md``).

Every kernel, copies of as many bytes and, with ``--torch-compile``, torch.compile are called in turn in one
process, so that what else runs on the machine disturbs all alike; the best of many calls counts. With one
thread its CPU time is measured, with several the time on the clock. The copy is the fastest of NumPy's (plain
stores), the runtime's (stores past the caches), and dyncomp's own of ``x.copy()``.
"""

from __future__ import annotations

import argparse
import ctypes
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

from . import machine
from .bandwidth_cases import CASES, Case
from .turns import measure_in_turn

HERE = pathlib.Path(__file__).resolve().parent
# Bytes that a call reads and writes.
SIZES = {"L2": 1 << 20, "L3": 32 << 20, "DRAM": 256 << 20}
# Seconds for one engine in one round, and rounds.
ROUND = 0.03
ROUNDS = 10


# -- in the worker ----------------------------------------------------------------------------
def _copies(total: int) -> dict[str, Callable[[], Any]]:
    """Ways of copying half of ``total`` bytes to the other half."""
    import dyncomp
    from dyncomp.runtime import _vector_math

    source = np.ones(total // 8, np.float32)
    target = np.zeros_like(source)
    compiled = dyncomp.compile(lambda x: x.copy())
    found: dict[str, Callable[[], Any]] = {
        "plain copy": lambda: np.copyto(target, source),
        "own copy": lambda: compiled(source),
    }
    if _vector_math.available:
        library = ctypes.CDLL(_vector_math.__file__)
        places = [ctypes.c_void_p(a.ctypes.data) for a in (target, source)]
        size = ctypes.c_longlong(source.nbytes)
        found["copy past caches"] = lambda: library.dcv_stream_copy(*places, size)
    return found


def _calls(case: Case, arguments: tuple[Any, ...], with_compile: bool) -> dict[str, Callable[[], Any]]:
    import dyncomp

    plain = case.function
    compiled = dyncomp.compile(plain)
    found: dict[str, Callable[[], Any]] = {"dyncomp": lambda: compiled(*arguments)}
    if with_compile and importlib.util.find_spec("torch"):
        import torch

        peer = torch.compile(plain, dynamic=False)
        found["torch.compile"] = lambda: peer(*arguments)
    return found


def _right(case: Case, arguments: tuple[Any, ...], calls: dict[str, Callable[[], Any]]) -> bool:
    expected, found = case.function(*arguments), calls["dyncomp"]()
    pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in (expected, found)), strict=True)
    # NumPy's sums of columns are those of float32, one after another
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-4 * float(np.abs(a).max())) for a, b in pairs)


def _work(names: list[str], sizes: list[str], threads: int, with_compile: bool) -> None:
    """Measure in this process; a line of JSON for each kernel and size."""
    if importlib.util.find_spec("torch") and with_compile:
        import torch

        torch.set_num_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    for size in sizes:
        copies = _copies(SIZES[size])
        for case in (c for c in CASES if c.name in names):
            arguments = case.arguments(SIZES[size])
            calls = _calls(case, arguments, with_compile)
            right = _right(case, arguments, calls)
            seconds = measure_in_turn({**copies, **calls}, clock, ROUNDS, ROUND)
            moved = {n: case.bytes_moved(arguments) if n in calls else SIZES[size] for n in seconds}
            rates = {name: moved[name] / s / 1e9 for name, s in seconds.items()}
            print(json.dumps([case.name, size, right, rates]), flush=True)


# -- the page ---------------------------------------------------------------------------------
Found = dict[tuple[str, str], tuple[bool, dict[str, float]]]


def _run(names: list[str], sizes: list[str], threads: int, with_compile: bool) -> Found:
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "DYNCOMP_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(limits, str(threads))}
    command = [sys.executable, "-m", "bench.bandwidth", "--worker", str(threads), "--sizes", *sizes]
    command += ["--names", *names]
    if with_compile:
        command.append("--torch-compile")
    found: Found = {}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, size, right, rates = json.loads(line)
            found[name, size] = (right, rates)
            shown = {k: round(v, 1) for k, v in rates.items()}
            print(f"{name:28} {size:4} {share(rates):4.0%}", "" if right else "WRONG", shown, flush=True)
    return found


def copy_rate(rates: dict[str, float]) -> float:
    """GB/s of the fastest copy."""
    return max(v for k, v in rates.items() if "copy" in k)


def share(rates: dict[str, float]) -> float:
    """The share of the copy's bandwidth that dyncomp's kernel reaches."""
    return rates["dyncomp"] / copy_rate(rates)


def _rows(found: Found, sizes: list[str], with_compile: bool) -> list[str]:
    head = [""]
    for size in sizes:
        head += [f"{size} GB/s", "of a copy"]
        if with_compile:
            head.append("over torch.compile")
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    against: list[float] = []
    for case in CASES:
        cells = [case.name]
        for size in sizes:
            right, rates = found[case.name, size]
            cells += [f"{rates['dyncomp']:.1f}", f"{share(rates):.0%}" if right else "wrong"]
            if with_compile:
                against.append(rates["dyncomp"] / rates["torch.compile"])
                cells.append(f"{against[-1]:.2f}x")
        lines.append("| " + " | ".join(cells) + " |")
    copies = [f"{size} {copy_rate(found[CASES[0].name, size][1]):.1f}" for size in sizes]
    enough = [sum(share(found[c.name, s][1]) >= 0.9 for c in CASES) for s in sizes]
    lines += ["", f"The fastest copy, GB/s read and written: {', '.join(copies)}."]
    counted = ", ".join(f"{size} {n} of {len(CASES)}" for size, n in zip(sizes, enough, strict=True))
    lines.append(f"Kernels at 90% of it or more: {counted}.")
    if against:
        mean = math.exp(sum(map(math.log, against)) / len(against))
        wins = sum(r >= 1 for r in against)
        lines.append(f"Against torch.compile: {mean:.2f}x, at least as fast in {wins} of {len(against)}.")
    return lines


def _page(tables: dict[int, Found], sizes: list[str], with_compile: bool) -> str:
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "# Memory-bound kernels, measured",
        "",
        f"`python -m bench.bandwidth`, {date}, on {machine.cores()} cores of {machine.processor()} (load "
        f"{os.getloadavg()[0]:.1f}). {machine.versions()}.",
        "",
        "GB/s that have to move (each array once), float32, beside the fastest of three copies of as many "
        "bytes; all called in turn in one process, best of many calls. A call reads and writes "
        + ", ".join(f"{SIZES[s] >> 20} MiB ({s})" for s in sizes)
        + ". With one thread: CPU time of the calling thread; with two: time on the clock.",
    ]
    for threads, found in tables.items():
        title = f"## {threads} thread{'s' if threads > 1 else ''}"
        lines += ["", title, "", *_rows(found, sizes, with_compile)]
    reasons = HERE / "bandwidth_reasons.md"
    return "\n".join(lines) + "\n" + (reasons.read_text(encoding="utf-8") if reasons.exists() else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", nargs="*", default=[case.name for case in CASES])
    parser.add_argument("--only", default="")
    parser.add_argument("--worker", type=int)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--torch-compile", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.worker:
        _work(given.names, given.sizes, given.worker, given.torch_compile)
        return
    names = [n for n in given.names if given.only in n]
    tables = {t: _run(names, given.sizes, t, given.torch_compile) for t in given.threads}
    if len(names) < len(CASES):
        return
    page = _page(tables, given.sizes, given.torch_compile)
    if given.write:
        (HERE / "BANDWIDTH.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
