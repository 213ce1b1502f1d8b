"""``python -m bench.training [NAME ...]``: training steps of PyTorch modules (``TRAINING.md``).

A step is loss, ``backward()`` and dropping the gradients, with the optimizer left out. Each module and engine
runs in a process of its own, beside eager torch in turn; medians count. Gradients are compared with eager's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

from . import machine
from .training_cases import CASES

REPORT = pathlib.Path(__file__).resolve().parent / "TRAINING.md"
ENGINES = ("dyncomp", "torch.compile")
LIMIT = 300  # seconds for a module and engine


def _compiled(engine: str, function: Any) -> Any:
    if engine == "dyncomp":
        import dyncomp

        return dyncomp.compile(function)
    import torch

    return torch.compile(function)


def worker(name: str, engine: str, seconds: float) -> dict[str, Any]:
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    module, loss, inputs = CASES[name]()
    parameters = list(module.parameters())

    def step(function: Any) -> list[Any]:
        function(module, *inputs).backward()
        found = [p.grad for p in parameters]
        for p in parameters:
            p.grad = None
        return found

    expected = step(loss)
    compiled = _compiled(engine, loss)
    start = time.perf_counter()
    found = step(compiled)
    first = time.perf_counter() - start
    error = max(
        float((a - b).abs().max() / (b.abs().max() + 1e-6)) for a, b in zip(found, expected) if b is not None
    )
    times: dict[str, list[float]] = {"eager": [], "compiled": []}
    for _ in range(3):
        step(loss), step(compiled)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["eager"]) < 5:
        for kind, function in (("eager", loss), ("compiled", compiled)):
            start = time.perf_counter()
            step(function)
            times[kind].append(time.perf_counter() - start)
    middle = {kind: statistics.median(found) for kind, found in times.items()}
    return {"first": first, "error": error, **middle}


def measured(name: str, engine: str, threads: int, seconds: float) -> dict[str, Any]:
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "DYNCOMP_NUM_THREADS"), str(threads)),
    }
    command = [sys.executable, "-m", "bench.training", "--worker", name, engine, "--seconds", str(seconds)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {LIMIT} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["?"])[-1]}
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def page(rows: list[tuple[str, dict[str, dict[str, Any]]]], command: str, threads: int) -> str:
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    versions = machine.versions()
    lines = [
        "# Training steps",
        "",
        f"`{command}`, {date}, {threads} thread(s) of {machine.processor()}. {versions}.",
        "",
        (__doc__ or "").split("\n\n", 1)[1].strip().replace("\n", " "),
        "",
        "| module | eager, ms | dyncomp | torch.compile | against it | first, s | its, s | largest error |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    ratios = []
    for name, found in rows:
        ours, theirs = found["dyncomp"], found["torch.compile"]
        if "failed" in ours:
            lines.append(f"| {name} | – | {ours['failed']} | | | | | |")
            continue
        gain = ours["eager"] / ours["compiled"]
        cells = [f"{ours['eager'] * 1e3:.2f}", f"{gain:.2f}x"]
        if "failed" in theirs:
            cells += ["–", "–", f"{ours['first']:.2f}", "–"]
        else:
            other = theirs["eager"] / theirs["compiled"]
            ratios.append(gain / other)
            cells += [
                f"{other:.2f}x",
                f"{gain / other:.2f}x",
                f"{ours['first']:.2f}",
                f"{theirs['first']:.1f}",
            ]
        lines.append(f"| {name} | {' | '.join(cells)} | {ours['error']:.1e} |")
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        slower = sum(r < 1 for r in ratios)
        lines += ["", f"Against torch.compile: **{mean:.2f}x** over {len(ratios)}, slower in {slower}."]
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.training")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args(arguments)
    if options.worker:
        print(json.dumps(worker(*options.names, options.seconds)))
        return 0
    rows = []
    for name in options.names or CASES:
        found = {e: measured(name, e, options.threads, options.seconds) for e in ENGINES}
        print(name, found, flush=True)
        rows.append((name, found))
    command = " ".join(["python -m bench.training", *arguments])
    REPORT.write_text(page(rows, command, options.threads), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
