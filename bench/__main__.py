"""``python -m bench``: each program with each engine, at each number of threads, in a process of its own.

Every answer is a line of ``bench/results.jsonl`` as soon as it is there; ``bench/RESULTS.md`` is made of these
lines. ``--resume`` goes on where a run was cut off; ``--report`` only writes the page.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Any

from demo.catalog import installed, select

from . import machine
from .engines import ENGINES, VARIANT_OF, available
from .micro import MICRO
from .report import Results, write

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILE_CASES = ("ops-50", "ops-200", "steps-100", "steps-1000")
PARTS = ("program", "micro", "first", "compile")
# how many threads the libraries that engines call start
THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    *("DYNCOMP_NUM_THREADS",),
)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="only these programs and micro-kernels (default: all, and all parts)"
    )
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="(default: 1 2)")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds for one program and engine (%(default)s)"
    )
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench" / "RESULTS.md")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "bench" / "results.jsonl")
    parser.add_argument("--resume", action="store_true", help="keep the answers that the data has")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    return parser.parse_args(arguments)


def environment(cache: str, threads: int) -> dict[str, str]:
    """Caches of our own, so that what is called cold is cold; modules are compiled, as once installed."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **inherited,
        **dict.fromkeys(THREADS, str(threads)),
        "DYNCOMP_CACHE_DIR": f"{cache}/dyncomp",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/torch",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
    }


def measure(part: str, name: str, engine: str, threads: int, cache: str, limit: float) -> dict[str, Any]:
    """The worker's answer; ``{"left_out": reason}`` where there is none. It has as many cores as threads."""
    command = [sys.executable, "-m", "bench.worker", part, name, engine]
    cores = sorted(os.sched_getaffinity(0))[:threads]
    process = subprocess.Popen(
        command,
        env=environment(cache, threads),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    try:
        out, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return {"left_out": f"over {limit:.0f} s"}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it started
            process.communicate()
    lines = out.strip().splitlines()
    if process.returncode or not lines:
        return {"left_out": f"exit status {process.returncode}: {errors.strip().splitlines()[-1:]}"}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def known_to_fail(results: Results, part: str, name: str, engine: str, threads: int) -> str:
    """Why an engine need not be asked: it, or that of which it is a variant, does not run the program, by what it
    said with fewer threads."""
    for other in filter(None, (engine, VARIANT_OF.get(engine))):
        for count in range(1, threads + 1):
            reason = str(results.get(part, name, other, count).get("left_out", ""))
            if reason and not reason.startswith("over"):
                return reason
    return ""


def cases(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Parts and names of what is measured."""
    parts = options.parts.split(",")
    micro = [m.name for m in MICRO if not options.names or m.name in options.names]
    chosen = [name for name in options.names if name not in micro]
    programs = [p.name for p in select(chosen) if installed(p)] if chosen or not options.names else []
    wanted = [("program", name) for name in programs] + [("micro", name) for name in micro]
    if not options.names:
        wanted += [("first", state) for state in ("cold", "warm")]
        wanted += [("compile", name) for name in COMPILE_CASES]
    return [case for case in wanted if case[0] in parts]


def run(options: argparse.Namespace, results: Results) -> None:
    """Measure what was asked for. Engines take turns within a program, so that they meet the same machine."""
    engines = [engine for engine in options.engines.split(",") if available(engine)]
    with tempfile.TemporaryDirectory(prefix="dyncomp-bench-", ignore_cleanup_errors=True) as caches:
        for part, name in cases(options):
            several = part in ("program", "micro")
            for threads in options.threads if several else options.threads[-1:]:
                for engine in engines if several else engines[1:]:
                    if results.get(part, name, engine, threads) or (engine in VARIANT_OF and not several):
                        continue
                    print(f"{part:8} {name:18} {threads} {engine:15}", end=" ", flush=True)
                    reason = known_to_fail(results, part, name, engine, threads)
                    # a first call is cold for each number of threads; "warm" comes after "cold"
                    cache = f"{caches}/{engine if part == 'first' else 'all'}-{threads}"
                    answer = {"left_out": reason} if reason else {}
                    answer = answer or measure(part, name, engine, threads, cache, options.limit)
                    results.add(part, name, engine, threads, answer)
                    with options.data.open("a", encoding="utf-8") as file:
                        line = {"part": part, "name": name, "engine": engine, "threads": threads, **answer}
                        file.write(json.dumps(line) + "\n")
                    shown = answer.get("left_out") or {k: _short(v) for k, v in answer.items() if v != ""}
                    print(str(shown)[:150], flush=True)


def _short(value: Any) -> Any:
    return float(f"{value:.3g}") if isinstance(value, float) else value


def _about(command: str) -> dict[str, Any]:
    """The first line of the data: the machine and what was asked for."""
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    described = f"{machine.cores()} cores of {machine.processor()}"
    copy = {str(n): machine.copy_bandwidth(n) for n in sorted({1, machine.cores()})}
    return {"about": command, "date": date, "machine": described, "versions": machine.versions(), "copy": copy}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if not (options.resume or options.report) or not options.data.exists():
        about = _about(("python -m bench " + " ".join(arguments)).strip())
        options.data.write_text(json.dumps(about) + "\n", encoding="utf-8")
    results = Results.read(options.data)
    if not options.report:
        try:
            run(options, results)
        except KeyError as error:
            print(error.args[0], file=sys.stderr)
            return 2
    options.output.write_text(write(results), encoding="utf-8")
    print(f"wrote {options.output}")
    wrong = [key for key, answer in results.answers.items() if key[2] == "dyncomp" and answer.get("wrong")]
    for _, name, _, _ in wrong:
        print(f"{name}: dyncomp's result is wrong", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
