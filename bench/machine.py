"""The machine that the figures belong to: its name, versions, and its copy bandwidth as measured."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import platform
import threading
import time

import numpy as np

COPY_MIB = 128
PACKAGES = ("numpy", "dyncomp", "numba", "jax", "torch", "scipy", "scikit-image", "scikit-learn")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


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
