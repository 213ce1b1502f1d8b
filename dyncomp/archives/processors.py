"""Levels of x86-64 processors, as compilers name them, and what an archive is built for."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection

from ..build.library import load_vector_math
from ..build.toolchain import Toolchain, toolchain_for

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
# what each level adds, by the names in /proc/cpuinfo
_FLAGS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "ssse3", "sse4_1", "sse4_2"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}


def levels_here() -> list[str]:
    """Those that this processor has, the highest last."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if line.startswith("flags")]
    except OSError:
        return []
    have = set(lines[0].partition(":")[2].split()) if lines else set()
    found: list[str] = []
    for level in LEVELS:
        if not _FLAGS[level] <= have:
            break
        found.append(level)
    return found


def best_of(levels: Collection[str]) -> str | None:
    """The highest of these that this processor has."""
    return next((level for level in reversed(levels_here()) if level in levels), None)


def toolchain_of(level: str) -> Toolchain:
    """The compiler for a level."""
    return toolchain_for(level, os.environ)


def builder_of(level: str) -> tuple[Toolchain, bool]:
    """The compiler for a level, and whether loops may call functions on whole vectors."""
    toolchain = toolchain_of(level)
    return toolchain, level != "x86-64-v2" and toolchain.calls_vectors and load_vector_math()
