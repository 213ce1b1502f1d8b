"""``python -m bench.gradients [NAME ...]``: value and gradient of NumPy models (``GRADIENTS.md``).

dyncomp gets the models as they are, JAX the same functions with ``jax.numpy`` for ``np``, or ports to what
JAX does better (``lax.scan`` for loops, its convolution), in double precision, on arrays that are JAX's
before the clock starts; both run with one thread, in turn, in a process for each model with empty caches.
Gradients are compared first. "First call" includes compilation, "ten calls" are these and nine more (long
loops run on a tape, whose pieces are compiled in turn, until they took 5 s; then their graph is compiled).
Times are of calls after 7 s; "forward" is the compiled model without its gradient.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import machine
from .gradient_cases import CASES

REPORT = Path(__file__).with_name("GRADIENTS.md")
ROUNDS = 7
SECONDS = 0.2  # for one of them in a round
WARM = 7.0  # seconds of calls before what is measured
LIMIT = 300


def _worker(name: str) -> dict[str, Any]:
    (case,) = [case for case in CASES if case.name == name]
    arguments = case.arguments(np.random.default_rng(0))
    wrt = tuple(range(case.wrt))
    import dyncomp

    answer: dict[str, Any] = {}
    own = dyncomp.value_and_grad(case.loss, argnums=wrt)
    begin = time.perf_counter()
    value, gradients = own(*arguments)
    answer["first"] = time.perf_counter() - begin
    for _ in range(9):
        own(*arguments)
    answer["ten calls"] = time.perf_counter() - begin
    while time.perf_counter() - begin < WARM:
        own(*arguments)
    forward = dyncomp.compile(case.loss)
    forward(*arguments)
    calls = {
        "dyncomp": lambda: own(*arguments),
        "forward": lambda: forward(*arguments),
        "numpy": lambda: case.loss(*arguments),
    }
    try:
        import jax
        import jax.numpy
    except ImportError:
        pass
    else:
        jax.config.update("jax_enable_x64", True)
        from .jax_models import ported

        peer = jax.jit(jax.value_and_grad(ported(case.loss), argnums=wrt))
        given = [jax.numpy.asarray(a) for a in arguments]
        begin = time.perf_counter()
        theirs = jax.block_until_ready(peer(*given))
        answer["jax first"] = time.perf_counter() - begin
        pairs = zip((value, *gradients), (theirs[0], *theirs[1]))
        answer["difference"] = max(_difference(a, np.asarray(b)) for a, b in pairs)
        calls["jax"] = lambda: jax.block_until_ready(peer(*given))
    times: dict[str, list[float]] = {title: [] for title in calls}
    for _ in range(ROUNDS):
        for title, call in calls.items():
            times[title].append(_seconds(call))
    return {**answer, **{title: sorted(found)[len(found) // 2] for title, found in times.items()}}


def _difference(found: Any, wanted: Any) -> float:
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-300))


def _seconds(call: Callable[[], object]) -> float:
    """Of one call: the median of those in a turn."""
    found: list[float] = []
    begin = time.perf_counter()
    while time.perf_counter() - begin < SECONDS or len(found) < 3:
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return sorted(found)[len(found) // 2]


def _measure(name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="dyncomp-bench-", ignore_cleanup_errors=True) as cache:
        threads = ("OMP", "OPENBLAS", "MKL", "DYNCOMP")
        environ = {
            **os.environ,
            **{f"{prefix}_NUM_THREADS": "1" for prefix in threads},
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
            "JAX_PLATFORMS": "cpu",
            "DYNCOMP_CACHE_DIR": cache,
            "PYTHONDONTWRITEBYTECODE": "",  # modules are compiled once, as in any installation
        }
        core = min(os.sched_getaffinity(0))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "bench.gradients", "--worker", name],
                capture_output=True,
                text=True,
                env=environ,
                timeout=LIMIT,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )
        except subprocess.TimeoutExpired:
            return {"error": f"over {LIMIT} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["nothing said"])[-1]}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _row(name: str, found: dict[str, Any]) -> str:
    if "error" in found:
        return f"| {name} | – {found['error'][:100]} |  |  |  |  |  |  |  |"
    jax = f"{found['jax'] * 1e3:.3f}" if "jax" in found else "–"
    ratio = f"**{found['jax'] / found['dyncomp']:.2f}x**" if "jax" in found else "–"
    first = f"{found['first']:.2f} ({found['jax first']:.2f})" if "jax" in found else f"{found['first']:.2f}"
    difference = f"{found['difference']:.0e}" if "difference" in found else "–"
    return (
        f"| {name} | {found['dyncomp'] * 1e3:.3f} | {jax} | {ratio} | "
        f"{found['dyncomp'] / found['forward']:.1f} | {found['numpy'] * 1e3:.3f} | {first} | "
        f"{found['ten calls']:.2f} | {difference} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gradients", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--output", type=Path, default=REPORT)
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_worker(options.worker)))
        return
    chosen = [case.name for case in CASES if not options.names or case.name in options.names]
    found = {}
    for name in chosen:
        found[name] = _measure(name)
        print(_row(name, found[name]), flush=True)
    ratios = [f["jax"] / f["dyncomp"] for f in found.values() if "jax" in f]
    summary = ""
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        summary = f"JAX's time over dyncomp's, geometric mean over {len(ratios)}: **{mean:.2f}x**; "
        summary += f"at least as fast in {sum(r >= 1 for r in ratios)}.\n"
    lines = [
        "# Gradients",
        "",
        machine.headline("python -m bench.gradients", 1),
        "",
        *(__doc__ or "").split("\n\n")[1].strip().splitlines(),
        "",
        summary,
        "| value and gradient | dyncomp ms | JAX ms | ratio | gradient / forward | NumPy forward ms | "
        "first call s (JAX) | ten calls s | difference |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_row(name, answer) for name, answer in found.items()),
    ]
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
