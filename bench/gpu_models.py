"""``python -m bench.gpu_models [NAME ...]``: forward passes of public models on a GPU (``GPU_MODELS.md``).

The models of ``bench.models`` (small configurations, batch of 1 or 2: what a call costs beside the kernels
shows), in float32 and bfloat16, by eager torch, dyncomp and torch.compile, each in two modes. Each model has
a process of its own; ``--jobs`` of them compile side by side, but one at a time measures. Times are of calls
that wait for the GPU: the best of three means. Results are compared with eager torch's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .gpu import alone, measuring_in_turn, say, worker
from .model_cases import cases
from .models import _difference

REPORT = pathlib.Path(__file__).resolve().parent / "GPU_MODELS.md"
DTYPES = ("float32", "bfloat16")
MODES = ("default", "reduce-overhead")
COLUMNS = ("eager", *(f"{engine} {mode}" for engine in ("dyncomp", "torch.compile") for mode in MODES))
# What results may differ by, relative to the largest value of a tensor.
CLOSE = {"float32": 1e-4, "bfloat16": 5e-2}
ROUNDS, CALLS = 3, 20
LIMIT = 150.0


# -- in the worker ----------------------------------------------------------------------------
def milliseconds(call: Callable[[], Any]) -> float:
    import torch

    times = []
    with alone():
        for _ in range(3):
            call()
        for _ in range(ROUNDS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - start) / CALLS)
    return min(times) * 1e3


def on_gpu(value: Any, dtype: Any) -> Any:
    return value.cuda().to(dtype) if value.is_floating_point() else value.cuda()


def work(name: str, dtype_name: str) -> None:
    """Measure one model."""
    import torch

    import dyncomp

    warnings.filterwarnings("ignore")
    torch.backends.cudnn.allow_tf32 = False
    dtype = getattr(torch, dtype_name)
    model, arguments, keywords = cases()[name]()
    model = model.eval().cuda().to(dtype)
    arguments = tuple(on_gpu(a, dtype) for a in arguments)
    keywords = {k: on_gpu(v, dtype) for k, v in keywords.items()}
    facts: dict[str, Any] = {"model": name, "dtype": dtype_name}

    def measure(column: str, function: Any) -> None:
        start = time.perf_counter()
        function(*arguments, **keywords)
        torch.cuda.synchronize()
        facts[f"{column} first"] = time.perf_counter() - start
        function(*arguments, **keywords)
        error, other = _difference(wanted, function(*arguments, **keywords))
        if other or not error <= CLOSE[dtype_name]:
            facts[column] = f"differs by {error:.0e} {other}"
            return
        facts[column] = milliseconds(lambda: function(*arguments, **keywords))

    with torch.no_grad():
        wanted = model(*arguments, **keywords)
        measure("eager", model)
        for mode in MODES:
            measure(f"dyncomp {mode}", dyncomp.compile(model, mode=mode))
        dyncomp.reset()
        explained = dyncomp.explain(model)(*arguments, **keywords)
        facts["graphs"] = len(explained.graphs)
        facts["breaks"] = len(explained.breaks)
        say(**facts)
        for mode in MODES:
            with contextlib.suppress(Exception):
                measure(f"torch.compile {mode}", torch.compile(model, mode=mode))
    say(**facts)


# -- in the parent ----------------------------------------------------------------------------
def measured(name: str, dtype: str) -> dict[str, Any]:
    """What is known of a model last, or why nothing is."""
    said = worker(name, LIMIT, dtype, module="bench.gpu_models")
    facts = [fact for fact in said if "model" in fact]
    if facts:
        return facts[-1]
    failed = said[-1]["failed"] if said else "nothing was said"
    return {"model": name, "dtype": dtype, "failed": failed[-200:]}


def report(facts: list[dict[str, Any]]) -> str:
    lines = [
        "# Models on a GPU",
        "",
        f"`python -m bench.gpu_models`, {time.strftime('%Y-%m-%d %H:%M')}, milliseconds of a call that waits "
        "for the GPU (first call in seconds in brackets).",
        "",
        "| model | dtype | graphs, breaks | " + " | ".join(COLUMNS) + " | eager / best dyncomp |",
        "|---|---|---|" + "---|" * (len(COLUMNS) + 1),
    ]
    ratios = []
    for found in facts:
        if "failed" in found:
            lines.append(f"| {found['model']} | {found['dtype']} | {found['failed']} |")
            continue
        ours = [found[c] for c in COLUMNS if c.startswith("dyncomp") and isinstance(found.get(c), float)]
        ratio = found["eager"] / min(ours) if ours else math.nan
        if ours:
            ratios.append(ratio)
        row = [found["model"], found["dtype"], f"{found['graphs']}, {found['breaks']}"]
        row += [_cell(found, column) for column in COLUMNS] + [f"{ratio:.2f}"]
        lines.append("| " + " | ".join(row) + " |")
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        lines += ["", f"Geometric mean of eager / best dyncomp: {mean:.2f} over {len(ratios)}."]
    return "\n".join(lines) + "\n"


def _cell(found: dict[str, Any], column: str) -> str:
    time_of = found.get(column)
    if not isinstance(time_of, float):
        return str(time_of or "–")
    return f"{time_of:.3f} ({found[f'{column} first']:.1f})"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_models", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=max(min((os.cpu_count() or 1) // 2, 8), 1))
    parser.add_argument("--output", type=pathlib.Path, default=REPORT)
    given = parser.parse_args(arguments)
    names = given.names or list(cases())
    facts: list[dict[str, Any]] = []
    with measuring_in_turn(), ThreadPoolExecutor(given.jobs) as pool:
        for found in pool.map(lambda job: measured(*job), [(n, d) for d in DTYPES for n in names]):
            facts.append(found)
            print(json.dumps(found), flush=True)
            given.output.write_text(report(facts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*sys.argv[2:4])
    else:
        main(sys.argv[1:])
