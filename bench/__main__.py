"""``python -m bench``: each program with each engine in a process of its own; writes ``bench/RESULTS.md``."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from demo.catalog import installed, select

from .engines import ENGINES, available
from .micro import MICRO
from .report import Results, write

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILE_CASES = ("ops-50", "ops-100", "ops-200", "ops-400", "steps-100", "steps-1000", "steps-10000")
PARTS = ("programs", "micro", "start", "compile")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="only these programs and micro-kernels (default: all, and all parts)"
    )
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one program and engine")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench" / "RESULTS.md")
    return parser.parse_args(arguments)


def environment(cache: str) -> dict[str, str]:
    """Caches of our own, so that what is called cold is cold; modules are compiled, as once installed."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **inherited,
        "DYNCOMP_CACHE_DIR": f"{cache}/dyncomp",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/torch",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
    }


def measure(kind: str, name: str, engine: str, cache: str, timeout: float) -> dict[str, Any]:
    """The worker's answer; ``{"left_out": reason}`` where there is none."""
    print(f"{kind:8} {name:20} {engine:8}", end=" ", flush=True)
    command = [sys.executable, "-m", "bench.worker", kind, name, engine]
    try:
        done = subprocess.run(
            command, env=environment(cache), cwd=ROOT, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        answer: dict[str, Any] = {"left_out": f"over {timeout:.0f} s"}
    else:
        answer = _answer(done)
    print(answer.get("left_out") or ", ".join(f"{k} {_short(v)}" for k, v in answer.items()), flush=True)
    return answer


def _answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"left_out": f"exit status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value) or "-"


def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="dyncomp-bench-", ignore_cleanup_errors=True)


def run(options: argparse.Namespace) -> Results:
    """Measure what was asked for. Engines take turns within a program, so that they meet the same machine."""
    engines = [engine for engine in options.engines.split(",") if available(engine)]
    parts = options.parts.split(",")
    if options.names:
        parts = [part for part in parts if part in ("programs", "micro")]
    micro = [m.name for m in MICRO if not options.names or m.name in options.names]
    chosen = [name for name in options.names if name not in micro]
    programs = [p for p in select(chosen) if installed(p)] if chosen or not options.names else []
    results = Results(engines=engines)
    with _directory() as cache:
        for program in programs if "programs" in parts else []:
            for engine in engines:
                results.programs[program.name, engine] = measure(
                    "program", program.name, engine, cache, options.timeout
                )
        for name in micro if "micro" in parts else []:
            for engine in engines:
                results.micro[name, engine] = measure("micro", name, engine, cache, options.timeout)
        for name in COMPILE_CASES if "compile" in parts else []:
            for engine in engines[1:]:
                results.compile[name, engine] = measure("compile", name, engine, cache, options.timeout)
    for engine in engines[1:] if "start" in parts else []:
        with _directory() as cache:
            for state in ("cold", "warm"):
                results.start[state, engine] = measure("first", state, engine, cache, options.timeout)
    return results


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        results = run(options)
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    command = "python -m bench " + " ".join(arguments)
    options.output.write_text(write(results, command.strip()), encoding="utf-8")
    print(f"wrote {options.output}")
    wrong = [
        k for k, v in {**results.programs, **results.micro}.items() if k[1] == "dyncomp" and v.get("wrong")
    ]
    for name, _ in wrong:
        print(f"{name}: dyncomp's result is wrong", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
