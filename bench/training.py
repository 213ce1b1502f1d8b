"""``python -m bench.training [NAME ...]``: training steps of PyTorch modules (``TRAINING.md``,
``TRAINING_TWO_THREADS.md``).

A step is loss, ``backward()`` and dropping the gradients, with the optimizer left out. Each module and engine
runs in a process of its own, beside eager torch in turn; medians count. Gradients are compared with eager's.

With ``--whole`` (``TRAINING_STEPS.md``) a step is a function that drops the gradients, computes the loss,
calls ``backward()`` and lets AdamW (``foreach``, as eager does best) step, compiled as it is. The error is
that of the loss after ten steps.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import pathlib
import statistics
import sys
import time
from typing import Any

from . import machine
from .process import answer_of
from .training_cases import CASES

FOLDER = pathlib.Path(__file__).resolve().parent
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


def whole(name: str, engine: str, seconds: float) -> dict[str, Any]:
    """Two copies of the module take the same steps: one compiled, one in eager torch."""
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    module, loss, inputs = CASES[name]()

    def made(own: Any) -> Any:
        optimizer = torch.optim.AdamW(own.parameters(), lr=1e-4, foreach=True)

        def step(*given: Any) -> Any:
            optimizer.zero_grad()
            found = loss(own, *given)
            found.backward()
            optimizer.step()
            return found

        return step

    plain = made(copy.deepcopy(module))
    compiled = _compiled(engine, made(module))
    start = time.perf_counter()
    compiled(*inputs)
    compiled(*inputs)  # the first made the optimizer's state
    first = time.perf_counter() - start
    plain(*inputs), plain(*inputs)
    for _ in range(8):
        expected, found = float(plain(*inputs)), float(compiled(*inputs))
    times: dict[str, list[float]] = {"eager": [], "compiled": []}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["eager"]) < 5:
        for kind, function in (("eager", plain), ("compiled", compiled)):
            start = time.perf_counter()
            function(*inputs)
            times[kind].append(time.perf_counter() - start)
    middle = {kind: statistics.median(given) for kind, given in times.items()}
    return {"first": first, "error": abs(found - expected) / abs(expected), **middle}


def measured(name: str, engine: str, threads: int, seconds: float, is_whole: bool) -> dict[str, Any]:
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "DYNCOMP_NUM_THREADS"), str(threads)),
    }
    command = [sys.executable, "-m", "bench.training", "--worker", name, engine, "--seconds", str(seconds)]
    command += ["--whole"] * is_whole
    return answer_of(command, LIMIT, environment)


def page(
    rows: list[tuple[str, dict[str, dict[str, Any]]]], command: str, threads: int, is_whole: bool
) -> str:
    lines = [
        "# Whole training steps" if is_whole else "# Training steps",
        "",
        machine.headline(command, threads),
        "",
        (__doc__ or "").split("\n\n")[2 if is_whole else 1].strip().replace("\n", " "),
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
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args(arguments)
    if options.worker:
        print(json.dumps((whole if options.whole else worker)(*options.names, options.seconds)))
        return 0
    rows = []
    for name in options.names or CASES:
        found = {e: measured(name, e, options.threads, options.seconds, options.whole) for e in ENGINES}
        print(name, found, flush=True)
        rows.append((name, found))
    command = " ".join(["python -m bench.training", *arguments])
    report = "TRAINING_STEPS.md" if options.whole else "TRAINING.md"
    if options.threads == 2:
        report = report.replace(".md", "_TWO_THREADS.md")
    (FOLDER / report).write_text(page(rows, command, options.threads, options.whole), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
