"""The runtime's C++ sources that a library for C is made of, as one file."""

from __future__ import annotations

import posixpath
import re
from importlib import resources
from typing import Any

_INCLUDE = re.compile(r'^[ \t]*#include "([^"]+)".*\n', re.M)
_GUARD = re.compile(r"\A(/\*.*?\*/\s*)?#ifndef (\w+)\n#define \2\n", re.S)
_STANDALONE = "runtime/csrc/standalone"
# products by the level of processors: the file, and the name of the set
_PRODUCTS = {"x86-64-v2": "portable", "x86-64-v3": "avx2", "x86-64-v4": "avx512"}
_CALLS_PRODUCTS = re.compile(r"\brt->(?:gemm|chain|rows)_(f32|f64|bf16|i8)\b")


def launcher_prelude() -> str:
    return _read(f"{_STANDALONE}/launcher.h")


def services_declarations() -> str:
    return _read(f"{_STANDALONE}/services.h")


def runtime_source(kernels: str, level: str) -> str:
    """What the text ``kernels`` asks of the runtime, for a level of processors; includes only headers of the
    system. The same text for all functions that ask for the same."""
    files = [f"{_STANDALONE}/services.cpp", "runtime/csrc/pool.cpp"]
    lines = ["/* dyncomp's runtime, for libraries without Python, of its own sources. */"]
    called = set(_CALLS_PRODUCTS.findall(kernels))
    if called:
        name = _PRODUCTS[level]
        lines.append(f"#define DYNCOMP_PRODUCTS gemm_{name}")
        # each takes g++ some seven seconds
        lines += [] if called & {"f32", "bf16"} else ["#define DYNCOMP_WITHOUT_F32"]
        lines += [] if "f64" in called else ["#define DYNCOMP_WITHOUT_F64"]
        lines += [] if "i8" in called else ["#define DYNCOMP_WITHOUT_I8"]
        # the last one: it changes for which processor the rest is compiled
        files += ["runtime/csrc/gemm/width.cpp", f"runtime/csrc/gemm/{name}.cpp"]
    guards: set[str] = set()
    return "\n".join([*lines, *(_inlined(file, guards) for file in files)])


def _inlined(path: str, guards: set[str]) -> str:
    """The text of a file with the headers that it includes; those with guards once."""
    text = _read(path)
    guard = _GUARD.search(text)
    if guard is not None:
        if guard[2] in guards:
            return ""
        guards.add(guard[2])

    def include(match: re.Match[str]) -> str:
        return _inlined(posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1])), guards)

    return f"/* {path} */\n{_INCLUDE.sub(include, text)}"


def _read(path: str) -> str:
    folder: Any = resources.files("dyncomp")
    text: str = folder.joinpath(*path.split("/")).read_text()
    return text
