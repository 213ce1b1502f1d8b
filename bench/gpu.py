"""``python -m bench.gpu``: programs on CUDA tensors beside torch and torch.compile; writes ``bench/GPU.md``.

Runs unattended within ``--seconds`` (8 minutes). Each program has a process of its own, which says a line
after every engine; what a process has said counts also where it dies or takes too long, and the report is
written anew after each. ``--jobs`` processes compile side by side, but one at a time measures. Times are of
the GPU, by events, the second-level cache emptied before each call; *host* is the time that a call takes to
return. A result unlike torch's is reported instead of a time.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import linecache
import math
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
OURS = ("dyncomp", "dyncomp tuned")
ENGINES = ("torch", *OURS, "torch.compile", "torch.compile tuned")
COPY = "copy bandwidth"
BUDGET_SECONDS = 460.0
CASE_SECONDS = 75.0
FLUSH_BYTES = 256 << 20
REPEATS = 30
# The file that a process locks while it measures; of the workers' environment.
LOCK = "BENCH_GPU_LOCK"


# -- in the worker ----------------------------------------------------------------------------
def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


@contextlib.contextmanager
def alone(needed: bool = True) -> Iterator[None]:
    """No other worker measures meanwhile."""
    path = os.environ.get(LOCK)
    if path is None or not needed:
        yield
        return
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def gpu_seconds(call: Callable[[], Any]) -> float:
    """Median time of a call on the GPU."""
    import torch

    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    for _ in range(3):
        call()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(REPEATS)]
    for start, end in events:
        flush.zero_()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in events) * 1e-3


def host_seconds(call: Callable[[], Any]) -> float:
    """Time until a call returns, the GPU being idle."""
    import torch

    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    torch.cuda.synchronize()
    return statistics.median(times)


def prepared(engine: str, function: Callable[..., Any], tuned: str) -> Callable[..., Any]:
    """The function as an engine runs it; ``tuned``: the mode of the engines called so."""
    import torch

    if engine == "torch":
        return function
    mode = tuned if engine.endswith("tuned") else "default"
    if engine in OURS:
        import dyncomp

        compiled: Callable[..., Any] = dyncomp.compile(function, fullgraph=True, mode=mode)
        return compiled
    if mode == "max-autotune":
        mode = "max-autotune-no-cudagraphs"
    made: Callable[..., Any] = torch.compile(function, fullgraph=True, mode=mode)
    return made


def difference(found: Any, wanted: Any) -> float:
    """The largest difference, relative to the largest value; of several results the worst."""
    if isinstance(wanted, tuple):
        errors = [difference(mine, theirs) for mine, theirs in zip(found, wanted, strict=True)]
        return math.nan if any(map(math.isnan, errors)) else max(errors)
    found, wanted = found.double(), wanted.double()
    scale = float(wanted.abs().max()) or 1.0
    return float((found - wanted).abs().max()) / scale


def measure(case: Any, engine: str, wanted: Any) -> dict[str, Any]:
    import torch

    arguments = case.make()
    call = prepared(engine, case.function, case.tuned)
    with alone(needed=engine.endswith("tuned")):  # which measures at its first call
        start = time.perf_counter()
        found = call(*arguments)
        torch.cuda.synchronize()
        first = time.perf_counter() - start
    error = difference(found, wanted)
    if not error <= case.tolerance:
        return {"failed": f"results differ by {error:.1e} of the largest"}
    if engine in OURS and not kernels_made():
        return {"failed": "the original ran: nothing was compiled for the GPU"}
    del found
    run = lambda: call(*arguments)  # noqa: E731
    with alone():
        return {"gpu": gpu_seconds(run), "host": host_seconds(run), "first": first}


def kernels_made() -> bool:
    """Whether dyncomp has made code for the GPU in this process."""
    return any(name.startswith("<dyncomp ") for name in linecache.cache)


def work(name: str, engines: list[str]) -> None:
    """Measure one case with each engine."""
    import torch

    from .gpu_cases import CASES

    case = next(c for c in CASES if c.name == name)
    with torch.no_grad():
        wanted = case.function(*case.make())
        for engine in engines:
            if engine.endswith("tuned") and not case.tuned:
                continue
            try:
                say(case=name, engine=engine, **measure(case, engine, wanted))
            except Exception as error:
                lines = str(error).splitlines() or [""]
                say(case=name, engine=engine, failed=f"{type(error).__name__}: {lines[0][:200]}")


def work_machine() -> None:
    """Say which GPU it is, and how fast it copies."""
    import torch
    import triton

    properties = torch.cuda.get_device_properties(0)
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    seconds = gpu_seconds(lambda: target.copy_(source))
    say(
        case=COPY,
        engine="torch",
        gpu=seconds,
        bandwidth=2 * source.numel() / seconds,
        device=properties.name,
        versions=f"torch {torch.__version__}, triton {triton.__version__}, Python {sys.version.split()[0]}",
        table=hasattr(torch.Tensor, "__dlpack_c_exchange_api__"),
    )


def names_of_cases() -> None:
    from .gpu_cases import CASES

    say(cases=[[c.name, c.bytes, c.flops] for c in CASES])


# -- in the parent ----------------------------------------------------------------------------
@contextlib.contextmanager
def measuring_in_turn() -> Iterator[None]:
    """Of the workers started meanwhile one measures at a time (see :func:`alone`)."""
    with tempfile.NamedTemporaryFile() as lock:
        os.environ[LOCK] = lock.name
        try:
            yield
        finally:
            del os.environ[LOCK]


def worker(argument: str, seconds: float, *more: str, module: str = "bench.gpu") -> list[dict[str, Any]]:
    """What a worker of a module said before its end, or the end of its time."""
    command = [sys.executable, "-m", module, "--worker", argument, *more]
    with subprocess.Popen(
        command, cwd=HERE.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, errors = process.communicate(timeout=max(seconds, 1.0))
            end = "" if process.returncode == 0 else errors.strip()[-300:]
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            end = f"over {seconds:.0f} s"
    said = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if end:
        said.append({"case": argument, "engine": "", "failed": end})
    return said


def report(cases: list[list[Any]], facts: list[dict[str, Any]], command: str = "python -m bench.gpu") -> str:
    """The figures as Markdown. A program that torch.compile has no time for, while others have one, is not
    compared: its best peer is unknown."""
    machine = next((f for f in facts if f.get("case") == COPY and "bandwidth" in f), None)
    lines = ["# On a GPU", "", f"`{command}`, {time.strftime('%Y-%m-%d %H:%M')}.", ""]
    if machine is not None:
        lines += [
            f"{machine['device']}; {machine['versions']}; copies at {machine['bandwidth'] / 1e9:,.0f} GB/s.",
            "",
        ]
    lines += [
        "Milliseconds on the GPU by engine (host microseconds in brackets); *of peak*: the bytes that the "
        "program must move, at dyncomp's best time, as a share of the copy bandwidth, or TFLOP/s.",
        "",
        "| program | " + " | ".join(ENGINES) + " | best peer / dyncomp | of peak |",
        "|---|" + "---|" * (len(ENGINES) + 2),
    ]
    found = {(f.get("case"), f.get("engine")): f for f in facts}
    compiler = "torch.compile"
    compiled = any("gpu" in f for (_, engine), f in found.items() if engine == compiler)
    ratios: list[float] = []
    for name, moved, flops in cases:
        row = [found.get((name, engine), {}) for engine in ENGINES]
        mine = [f for e, f in zip(ENGINES, row) if e in OURS and "gpu" in f]
        ours = min(mine, key=lambda f: f["gpu"], default={})
        peers = [f["gpu"] for e, f in zip(ENGINES, row) if e not in OURS and "gpu" in f]
        known = "gpu" in found.get((name, compiler), {}) or not compiled
        ratio = min(peers) / ours["gpu"] if peers and known and "gpu" in ours else math.nan
        if not math.isnan(ratio):
            ratios.append(ratio)
        lines.append(
            f"| {name} | "
            + " | ".join(map(_cell, row))
            + f" | {_ratio(ratio)} | {_peak(ours, moved, flops, machine)} |"
        )
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        lines += ["", f"Geometric mean of best peer / dyncomp: {mean:.2f} over {len(ratios)} programs."]
    failures = [f for f in facts if "failed" in f]
    lines += ["", *(f"- {f.get('case')}, {f.get('engine') or 'process'}: {f['failed']}" for f in failures)]
    return "\n".join(lines) + "\n"


def _cell(facts: dict[str, Any]) -> str:
    if "gpu" in facts:
        return f"{facts['gpu'] * 1e3:.3f} ({facts['host'] * 1e6:.0f})"
    return "failed" if "failed" in facts else "–"


def _ratio(ratio: float) -> str:
    return "–" if math.isnan(ratio) else f"{ratio:.2f}"


def _peak(ours: dict[str, Any], moved: float, flops: float, machine: dict[str, Any] | None) -> str:
    if "gpu" not in ours:
        return "–"
    if flops:
        return f"{flops / ours['gpu'] / 1e12:.0f} TFLOP/s"
    if moved and machine is not None:
        return f"{moved / ours['gpu'] / machine['bandwidth']:.0%}"
    return "–"


def run(
    budget: float,
    only: str,
    output: pathlib.Path,
    engines: str = ",".join(ENGINES),
    jobs: int = 1,
    arguments: Sequence[str] = (),
) -> None:
    """Measure all cases and keep the report, which names the command's ``arguments``, up to date."""
    command = shlex.join(["python", "-m", "bench.gpu", *arguments])
    begin = time.monotonic()
    (listed, *_) = worker("--cases", 60.0)
    cases = [c for c in listed["cases"] if only in c[0]]
    facts: list[dict[str, Any]] = []
    writing = threading.Lock()

    def measured(argument: str) -> None:
        left = budget - (time.monotonic() - begin)
        if left < 10:
            said = [{"case": argument, "engine": "", "failed": "no time was left"}]
        else:
            said = worker(argument, min(CASE_SECONDS * max(jobs / 2, 1), left), engines)
        with writing:
            facts.extend(said)
            for fact in said:
                print(json.dumps(fact), flush=True)
            output.write_text(report(cases, facts, command))

    with measuring_in_turn():
        measured("--machine")
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(measured, [c[0] for c in cases]))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--seconds", type=float, default=BUDGET_SECONDS)
    parser.add_argument("--only", default="", help="programs whose name has this text")
    parser.add_argument("--engines", default=",".join(ENGINES), help="of " + ", ".join(ENGINES))
    parser.add_argument("--jobs", type=int, default=max(min((os.cpu_count() or 1) // 4, 4), 1))
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "GPU.md")
    given = parser.parse_args(arguments)
    run(given.seconds, given.only, given.output, given.engines, given.jobs, arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        special = {"--machine": work_machine, "--cases": names_of_cases}
        if sys.argv[2] in special:
            special[sys.argv[2]]()
        else:
            work(sys.argv[2], sys.argv[3].split(","))
    else:
        main(sys.argv[1:])
