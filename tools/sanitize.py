"""Test the C extensions with address and undefined-behaviour sanitizers, and under ``-X dev``.

``python tools/sanitize.py [--only dev|asan] [--generated] [pytest arguments]``: copies the checkout to a
scratch directory, builds the extensions there with this Python, and runs the tests that exercise C (or
those named). With ``--generated`` what dyncomp compiles meanwhile is sanitized, too, and loops compiled whole
are tested as well. Built without optimisation, elementary functions return another NaN than where they are
inlined, as ``test_vector_math`` notices. The compiler must have libasan; leaks are not looked for, since
CPython itself keeps much until the end.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("dyncomp", "tests", "docs", "setup.py", "pyproject.toml", "README.md", "LICENSE")
TESTS = (
    "tests/hook/test_dispatch.py",
    "tests/hook/test_frames.py",
    "tests/hook/test_fuzz.py",
    "tests/capture/test_guards.py",
    "tests/capture/test_guards_store.py",
    "tests/capture/test_concurrency.py",
    "tests/capture/test_tools.py",
    "tests/capture/test_signals.py",
    "tests/capture/test_processes.py",
    "tests/capture/test_breaks.py",
    "tests/capture/test_loops.py",
    "tests/capture/test_effects.py",
    "tests/runtime",
)
# What loops compiled whole do with memory of the program.
GENERATED = tuple(
    f"tests/scalar_loops/test_{name}.py" for name in ("lists", "slices", "texts", "creation", "rows")
)
# Tests that limit memory or the stack, measure what the sanitizer changes, or start a debugger.
LEFT_OUT = "not small_thread and not recursion and not pdb and not stopping and not coverage"


def copy_sources(scratch: pathlib.Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyc")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, scratch / part, ignore=ignored)
        elif source.exists():
            shutil.copy(source, scratch / part)


def build(scratch: pathlib.Path, sanitize: bool) -> None:
    switches = {"DYNCOMP_DEBUG": "1", **({"DYNCOMP_SANITIZE": "1"} if sanitize else {})}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
    subprocess.run(command, cwd=scratch, env={**os.environ, **switches}, check=True)


def library(name: str) -> str:
    """Where the compiler has a runtime library of the sanitizers."""
    compiler = os.environ.get("CC", "cc")
    found = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not os.path.isabs(found):
        raise SystemExit(f"{compiler} has no {name}")
    return os.path.realpath(found)


def sanitizer_environment() -> dict[str, str]:
    return {
        "LD_PRELOAD": " ".join(library(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",  # so that the sanitizer sees every object of its own
    }


def generated_environment() -> dict[str, str]:
    """Generated code is linked without libraries: the runtimes are those that are loaded first. Elements of
    arrays need not be aligned."""
    checks = "-fsanitize=address,undefined -fno-sanitize=alignment -fno-sanitize-recover=undefined"
    return {"CXX": f"{os.environ.get('CXX', 'g++')} {checks}", "DYNCOMP_CACHE_DIR": tempfile.mkdtemp()}


def run_tests(
    scratch: pathlib.Path,
    switches: list[str],
    more: dict[str, str],
    chosen: list[str],
    tests: tuple[str, ...] = TESTS,
) -> int:
    present = [test for test in tests if (scratch / test).exists()]
    wanted = chosen or [*present, "-k", LEFT_OUT]
    command = [sys.executable, *switches, "-m", "pytest", "-x", "-p", "no:cacheprovider", *wanted]
    environment = {**os.environ, **more, "PYTHONPATH": str(scratch), "PYTHONFAULTHANDLER": "1"}
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, cwd=scratch, env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("dev", "asan"))
    parser.add_argument("--generated", action="store_true")
    arguments, chosen = parser.parse_known_args()
    status = 0
    for kind in ("dev", "asan"):
        if arguments.only not in (None, kind):
            continue
        with tempfile.TemporaryDirectory(prefix="dyncomp-sanitize-") as folder:
            scratch = pathlib.Path(folder)
            copy_sources(scratch)
            build(scratch, sanitize=kind == "asan")
            if kind == "asan":
                more = generated_environment() if arguments.generated else {}
                tests = (*TESTS, *GENERATED) if arguments.generated else TESTS
                status |= run_tests(scratch, [], {**sanitizer_environment(), **more}, chosen, tests)
            else:
                status |= run_tests(scratch, ["-X", "dev", "-W", "error"], {}, chosen)
    return status


if __name__ == "__main__":
    sys.exit(main())
