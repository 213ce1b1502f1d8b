"""The machine that the figures belong to: its name, versions, and as measured its copy bandwidth and peak."""

from __future__ import annotations

import ctypes
import datetime
import importlib.metadata
import os
import pathlib
import platform
import subprocess
import tempfile
import threading
import time

import numpy as np

COPY_MIB = 128
PACKAGES = ("numpy", "dyncomp", "numba", "jax", "torch", "scipy", "scikit-image", "scikit-learn")

# Independent chains of multiplications and additions of whole vectors, all in registers.
_CHAINS = 12
_PEAK = f"""
typedef float Vector __attribute__((vector_size(BYTES)));
double multiply(long times) {{
  Vector x = {{0}}, y = {{0}}, sums[{_CHAINS}];
  for (int k = 0; k < {_CHAINS}; ++k) sums[k] = x + (float)k;
  for (long i = 0; i < times; ++i) {{
    asm volatile("" : "+x"(x), "+x"(y));
#pragma GCC unroll {_CHAINS}
    for (int k = 0; k < {_CHAINS}; ++k) sums[k] += x * y;
  }}
  float total = 0;
  for (int k = 0; k < {_CHAINS}; ++k) total += sums[k][0];
  return total;
}}
"""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def headline(command: str, threads: int) -> str:
    """What was run, when and where: the first paragraph of a page."""
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    count = "1 thread" if threads == 1 else f"{threads} threads"
    return f"`{command}`, {date}, {count} of {processor()}. {versions()}."


def versions() -> str:
    found = [f"CPython {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def _copy_seconds(threads: int, repeats: int = 10) -> float:
    """Least seconds in which ``threads`` threads copy ``COPY_MIB`` MiB of float64 together."""
    n = (COPY_MIB << 20) // 8
    source = np.ones(n)
    target = np.zeros(n)
    edges = np.linspace(0, n, threads + 1).astype(int)

    def part(i: int) -> None:
        np.copyto(target[edges[i] : edges[i + 1]], source[edges[i] : edges[i + 1]])

    best = float("inf")
    for _ in range(repeats):
        workers = [threading.Thread(target=part, args=(i,)) for i in range(threads)]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = min(best, time.perf_counter() - start)
    return best


def copy_bandwidth(threads: int) -> float:
    """GB/s read plus written by a copy that fits no cache."""
    return 2 * (COPY_MIB << 20) / _copy_seconds(threads) / 1e9


def peak_gflops(times: int = 20000, repeats: int = 60) -> float | None:
    """GFLOP/s of float32 that one core reaches with nothing but fused multiplications and additions in
    registers, by the CPU time of the best of many short runs; half of it is that of float64. None without a C
    compiler or without such instructions."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    if "fma" not in flags:
        return None
    width = 64 if "avx512f" in flags else 32
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder, "peak.c"), pathlib.Path(folder, "peak.so")
        source.write_text(_PEAK.replace("BYTES", str(width)), encoding="utf-8")
        command = ["gcc", "-O2", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        multiply = ctypes.CDLL(str(library)).multiply
        multiply.argtypes, multiply.restype = [ctypes.c_long], ctypes.c_double
        best = float("inf")
        for _ in range(repeats):
            start = time.thread_time()
            multiply(times)
            best = min(best, time.thread_time() - start)
    return times * _CHAINS * (width // 4) * 2 / best / 1e9
