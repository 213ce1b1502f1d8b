"""``python -m bench.time_loops``: gradients of loops over time steps in NumPy (``TIME_LOOPS.md``).

Each program runs in a process of its own with empty caches, one thread. "First call" is that of the gradient,
compilation included; "gradient" the median of later calls on the tape, "forward" the plain NumPy program.
Peaks are those of ``tracemalloc`` in a call of the gradient.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import machine

REPORT = Path(__file__).with_name("TIME_LOOPS.md")
STEPS = (100, 1000, 10_000)
BUDGETS = (None, 64_000_000, 8_000_000)


def heat(conductivity: Any, steps: int) -> Any:
    """Explicit steps of the heat equation, written in place: 2000 points."""
    u = np.sin(np.linspace(0, np.pi, 2000))
    for _ in range(steps):
        u[1:-1] += conductivity * (u[2:] - 2 * u[1:-1] + u[:-2]) * (1 + 0.1 * np.tanh(u[1:-1]))
    return (u**2).mean()


def recurrent(w: Any, steps: int) -> Any:
    """A recurrent network: 16 rows, 32 units."""
    rows = np.cos(np.arange(16.0))[:, None] * np.ones(32)
    hidden, loss = np.zeros((16, 32)), 0.0
    for step in range(steps):
        hidden = np.tanh(hidden @ w + rows * np.sin(0.1 * step))
        loss = loss + (hidden**2).mean()
    return loss / steps


def bodies(masses: Any, steps: int) -> Any:
    """Leapfrog steps of 20 bodies."""
    angles = np.linspace(0, 2 * np.pi, 21)[:-1]
    x = np.stack([np.cos(angles), np.sin(angles)], 1)
    v = np.stack([-np.sin(angles), np.cos(angles)], 1) * 0.5
    for _ in range(steps):
        apart = x[None, :, :] - x[:, None, :]
        near = (apart**2).sum(2) + 0.1
        v = v + 0.001 * (apart * (masses[None, :] / near**1.5)[:, :, None]).sum(1)
        x = x + 0.001 * v
    return (x**2).sum()


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "heat": (heat, lambda: 0.3),
    "recurrent": (recurrent, lambda: np.eye(32) * 0.5),
    "bodies": (bodies, lambda: np.full(20, 0.05)),
}


def _worker(name: str, steps: int) -> dict[str, Any]:
    import dyncomp
    from dyncomp.autodiff import api

    api.UNROLLED_AFTER = float("inf")  # the tape is what is measured
    program, argument = PROGRAMS[name]
    by, gradient = argument(), dyncomp.value_and_grad(program)

    def timed(run: Callable[[], Any], least: int) -> float:
        times: list[float] = []
        while len(times) < least or (sum(times) < 0.5 and len(times) < 50):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    answer: dict[str, Any] = {}
    begin = time.perf_counter()
    gradient(by, steps)
    answer["first"] = time.perf_counter() - begin
    end = time.perf_counter() + 2.0  # until all is compiled
    while time.perf_counter() < end:
        gradient(by, steps)
    answer["gradient"] = timed(lambda: gradient(by, steps), 3)
    answer["forward"] = timed(lambda: program(by, steps), 3)
    answer["peaks"], answer["times"] = [], []
    for budget in BUDGETS:
        limited = dyncomp.value_and_grad(program, memory_budget=budget)
        assert np.allclose(limited(by, steps)[1], gradient(by, steps)[1], rtol=1e-12)
        limited(by, steps)
        tracemalloc.start()
        limited(by, steps)
        answer["peaks"].append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        answer["times"].append(timed(lambda run=limited: run(by, steps), 3))
    return answer


def _measured(name: str, steps: int) -> dict[str, Any]:
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "DYNCOMP_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "bench.time_loops", "--worker", name, str(steps)]
        environment = {**os.environ, **one, "DYNCOMP_CACHE_DIR": cache}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs=2)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_worker(options.worker[0], int(options.worker[1]))))
        return
    lines = [
        "# Gradients of time loops",
        "",
        f"`python -m bench.time_loops`, {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, one thread "
        f"of {machine.processor()}. {machine.versions()}.",
        "",
        *(__doc__ or "").strip().splitlines()[2:],
        "",
        "| program | steps | forward ms | gradient ms | gradient / forward | first call s | peak MB | "
        "with 64 MB | with 8 MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in PROGRAMS:
        for steps in STEPS:
            found = _measured(name, steps)
            ratio = found["gradient"] / found["forward"]
            peaks = [f"{peak / 1e6:.1f}" for peak in found["peaks"]]
            limited = [
                f"{p} ({t / found['times'][0]:.1f}x time)" for p, t in zip(peaks[1:], found["times"][1:])
            ]
            lines.append(
                f"| {name} | {steps:,} | {found['forward'] * 1e3:.1f} | {found['gradient'] * 1e3:.1f} | "
                f"**{ratio:.1f}x** | {found['first']:.2f} | {peaks[0]} | {limited[0]} | {limited[1]} |"
            )
            print(lines[-1], flush=True)
    REPORT.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
