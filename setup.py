"""Build of the C extensions; everything else is in pyproject.toml.

``DYNCOMP_DEBUG=1`` builds without optimisation, ``DYNCOMP_SANITIZE=1`` with address and undefined-behaviour
sanitizers (run Python with libasan preloaded).
"""

from __future__ import annotations

import glob
import importlib
import os
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("DYNCOMP_DEBUG") == "1"
SANITIZE = os.environ.get("DYNCOMP_SANITIZE") == "1"


def flags() -> tuple[list[str], list[str]]:
    """Compiler and linker flags."""
    compile_flags = ["-O0", "-g", "-UNDEBUG"] if DEBUG else ["-O2", "-g0"]
    compile_flags += ["-Wall", "-Wno-missing-field-initializers", "-fvisibility=hidden"]
    link_flags: list[str] = []
    if SANITIZE:
        sanitizers = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g"]
        compile_flags += sanitizers
        link_flags += sanitizers
    return compile_flags, link_flags


def extension(
    name: str, sources: list[str], depends: list[str], extra: list[str], libraries: list[str]
) -> Extension:
    compile_flags, link_flags = flags()
    return Extension(
        name,
        sources=sources,
        depends=depends,
        include_dirs=[numpy.get_include()],
        extra_compile_args=compile_flags + extra,
        extra_link_args=link_flags,
        libraries=libraries,
    )


def extensions() -> list[Extension]:
    """The extension modules whose sources are there."""
    found = [
        extension(
            "dyncomp.hook._hook",
            ["dyncomp/hook/_hook.c", *sorted(glob.glob("dyncomp/hook/csrc/*.c"))],
            sorted(glob.glob("dyncomp/hook/csrc/*.h")),
            ["-std=gnu11"],
            [],
        )
    ]
    runtime = "dyncomp/runtime/csrc"
    sources = sorted(glob.glob(f"{runtime}/*.cpp") + glob.glob(f"{runtime}/gemm/*.cpp"))
    if sources:
        found.append(
            extension(
                "dyncomp.runtime._launch",
                sources,
                sorted(glob.glob(f"{runtime}/*.h") + glob.glob(f"{runtime}/gemm/*.h")),
                [],
                ["dl", "pthread"],
            )
        )
        found.append(vector_math(runtime))
    return found


def vector_math(runtime: str) -> Extension:
    """The elementary functions of generated code, compiled beforehand from the same text."""
    # without dyncomp/__init__.py, which needs the extensions
    sys.path.insert(0, "")
    sys.modules["dyncomp"] = package = types.ModuleType("dyncomp")
    package.__path__ = ["dyncomp"]
    module = importlib.import_module("dyncomp.inductor.render.cpp.sections")
    folder = Path("dyncomp/inductor/render/cpp")
    generated = Path("build/generated/vector_math.inc")
    text = module.vector_source(folder / "csrc")
    if not generated.exists() or generated.read_text() != text:
        generated.parent.mkdir(parents=True, exist_ok=True)
        generated.write_text(text)
    extra = ["-std=c++17", "-fopenmp-simd", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
    # selected arguments stay what they are: computing with each choice raises flags of what is not chosen
    extra += ["-fno-thread-jumps", "-fno-tree-pre", "-Wno-psabi", "-Wno-unused-function"]
    # gcc 12 takes the undefined lanes of its own intrinsics for a mistake
    extra.append("-Wno-maybe-uninitialized")
    made = extension(
        "dyncomp.runtime._vector_math",
        sorted(glob.glob(f"{runtime}/vector_math/*.cpp")),
        [str(generated)],
        extra,
        ["dl"],
    )
    made.include_dirs.append(str(generated.parent))
    return made


class BuildExtensions(build_ext):
    """Compiles the sources of an extension at the same time: some take half a minute."""

    def build_extensions(self) -> None:
        compile_in_turn = self.compiler.compile

        def compile_sources(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = pool.map(lambda source: compile_in_turn([source], **options), sources)
                return [name for names in made for name in names]

        self.compiler.compile = compile_sources
        super().build_extensions()


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
