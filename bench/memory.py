"""``python -m bench.memory [NAME ...]``: the peak memory of training steps of PyTorch modules, ``MEMORY.md``.

A step is loss, ``backward()`` and dropping the gradients, of the modules of ``bench.training`` with
batches eight times as large. "loss": the loss is compiled; "step": the whole step is. Each runs in a
process of its own, in which blocks of 64 KiB and more are given back to the system when they are freed.
The peak is the largest resident set in a step (``VmHWM`` in ``/proc/self/status``) less what was
resident before it, when dyncomp's allocator had given back its idle blocks: activations, gradients and
working space of torch's allocator and of dyncomp's, without weights, code and the compiler. "Kept" is
what dyncomp's allocator holds for the next step.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from . import machine
from .process import answer_of
from .training_cases import CASES

FOLDER = pathlib.Path(__file__).resolve().parent
ENGINES = ("eager", "loss", "step")
LARGER = 8
LIMIT = 300  # seconds for a module and engine
MIB = 1 << 20


def worker(name: str, engine: str) -> dict[str, int]:
    import torch

    from dyncomp.runtime import _launch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, loss, inputs = CASES[name]()
    inputs = tuple(x.repeat(LARGER, *(1,) * (x.ndim - 1)) for x in inputs)
    step = stepping(engine, module, loss)
    for _ in range(8):
        step(*inputs)
    peaks = []
    kept = 0
    for _ in range(5):
        gc.collect()
        kept = _launch.release_memory()
        before = resident("VmRSS")
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        step(*inputs)
        peaks.append(resident("VmHWM") - before)
    return {"peak": sorted(peaks)[2], "kept": kept}


def stepping(engine: str, module: Any, loss: Callable[..., Any]) -> Callable[..., None]:
    """A step of training that keeps nothing."""
    import dyncomp

    of = dyncomp.compile(loss) if engine == "loss" else loss

    def whole(*inputs: Any) -> None:
        of(module, *inputs).backward()

    made = dyncomp.compile(whole) if engine == "step" else whole
    parameters = list(module.parameters())

    def step(*inputs: Any) -> None:
        made(*inputs)
        for p in parameters:
            p.grad = None

    return step


def resident(field: str) -> int:
    """Bytes, of a line of ``/proc/self/status``."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def measured(name: str, engine: str) -> dict[str, Any]:
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    environment.update(dict.fromkeys(("OMP_NUM_THREADS", "DYNCOMP_NUM_THREADS"), "1"))
    command = [sys.executable, "-m", "bench.memory", "--worker", name, engine]
    return answer_of(command, LIMIT, environment)


def page(rows: list[tuple[str, dict[str, dict[str, Any]]]], command: str) -> str:
    lines = [
        "# Peak memory of training steps",
        "",
        machine.headline(command, 1),
        "",
        (__doc__ or "").split("\n\n")[1].strip().replace("\n", " "),
        "",
        "| module | eager, MiB | loss compiled | | step compiled | | kept, MiB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, found in rows:
        failed = [answer["failed"] for answer in found.values() if "failed" in answer]
        if failed:
            lines.append(f"| {name} | – | {failed[0]} | | | | |")
            continue
        eager, of_loss, of_step = (found[engine]["peak"] for engine in ENGINES)
        cells = [f"{eager / MIB:.1f}"]
        for peak in (of_loss, of_step):
            cells += [f"{peak / MIB:.1f}", f"{peak / eager:.2f}x"]
        lines.append(f"| {name} | {' | '.join(cells)} | {found['step']['kept'] / MIB:.1f} |")
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.memory")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args(arguments)
    if options.worker:
        print(json.dumps(worker(*options.names)))
        return 0
    rows = []
    for name in options.names or CASES:
        found = {engine: measured(name, engine) for engine in ENGINES}
        print(name, found, flush=True)
        rows.append((name, found))
    command = " ".join(["python -m bench.memory", *arguments])
    (FOLDER / "MEMORY.md").write_text(page(rows, command), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
