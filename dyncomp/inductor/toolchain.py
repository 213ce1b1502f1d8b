"""The C++ compiler: finding it, knowing it cheaply, and turning source text into a shared library."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dyncomp.dataclass import dataclass
from dyncomp.errors import ToolchainError

# Chosen by measurement: -O2 equals -O3 within 2% here; without headers and libraries one file takes ~40 ms.
# No fast-math: NaN, infinities, signed zeros and the order of additions keep their meaning; contraction is
# written out where wanted. Jump threading turns chains of selections into conditions on conditions, which
# gcc 12 does not vectorise; sinking moves calls into the arms of selections, with the same end; so does the
# elimination of partial redundancies for selections of selections (clip, maxima of masked values).
# Global subexpressions are found before they get there: a tenth of the time for nothing. Without peeling, loops
# over the few vectors of an accumulator are not written out and it stays in memory (row maxima 2.4 times slower).
FLAGS: tuple[str, ...] = (
    "-std=c++17",
    "-O2",
    "-march=native",
    "-fopenmp-simd",
    "-fvect-cost-model=dynamic",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-thread-jumps",
    "-fno-tree-sink",
    "-fno-gcse",
    "-fno-tree-pre",
    "-fpeel-loops",
    "-fno-semantic-interposition",
    "-fno-exceptions",
    "-fno-rtti",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-pipe",
    "-w",
)
# Helpers that the compiler itself calls (complex products, 128-bit division); after the source.
LIBRARIES: tuple[str, ...] = ("-lgcc",)
_CANDIDATES = ("g++", "clang++", "c++")
_COMPILE_SECONDS = 600.0
_MESSAGE_LINES = 30


@dataclass(frozen=True)
class Toolchain:
    """A compiler with its flags. ``fingerprint`` identifies what it would generate here: the compiler's
    real path, size and modification time, the flags, the processor and the C library."""

    compiler: str
    flags: tuple[str, ...]
    fingerprint: str

    def compile(self, source: Path, output: Path) -> None:
        """Compile the file ``source`` into the shared library ``output``.

        Raises :class:`ToolchainError` with the compiler's message and the source's path."""
        command = [self.compiler, *self.flags, str(source), "-o", str(output), *LIBRARIES]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_COMPILE_SECONDS,
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolchainError(
                f"{self.compiler} ran for more than {_COMPILE_SECONDS:.0f} s on {source}"
            ) from error
        except OSError as error:
            raise ToolchainError(f"cannot run {self.compiler}: {error}") from error
        if done.returncode == 0 and output.exists():
            return
        lines = done.stdout.decode(errors="replace").splitlines()
        shown = "\n".join(lines[:_MESSAGE_LINES]) or "no message"
        raise ToolchainError(f"{self.compiler} failed ({done.returncode}) on {source}:\n{shown}")

    @property
    def calls_vectors(self) -> bool:
        """Whether loops may call functions on whole vectors: gcc on Linux and x86-64 by their names."""
        name = os.path.basename(os.path.realpath(self.compiler))
        is_gcc = "clang" not in name and ("g++" in name or "gcc" in name)
        return is_gcc and (platform.system(), platform.machine()) == ("Linux", "x86_64")

    def version(self) -> str:
        """The first line of ``compiler --version`` (runs the compiler: for people, not for keys)."""
        return _version(self.compiler)


def find_toolchain(environ: Mapping[str, str] | None = None) -> Toolchain:
    """The compiler named by ``DYNCOMP_CXX`` or ``CXX``, else the first of g++, clang++, c++ on ``PATH``.

    Raises :class:`ToolchainError` if there is none. Cheap after the first call; no process is started."""
    environ = os.environ if environ is None else environ
    return _find(environ.get("DYNCOMP_CXX", ""), environ.get("CXX", ""), environ.get("PATH", os.defpath))


@functools.lru_cache(maxsize=16)
def _find(own: str, cxx: str, path: str) -> Toolchain:
    chosen = own or cxx
    # CXX may carry arguments, as build tools allow ("ccache g++ -m64")
    words = chosen.split() if chosen and shutil.which(chosen, path=path) is None else [chosen]
    names = [words[0]] if chosen else list(_CANDIDATES)
    for name in names:
        found = shutil.which(name, path=path)
        if found is not None:
            flags = (*words[1:], *FLAGS)
            return Toolchain(found, flags, _fingerprint(found, flags))
    if chosen:
        variable = "DYNCOMP_CXX" if own else "CXX"
        raise ToolchainError(f"no C++ compiler: {variable}={chosen!r} is not an executable")
    raise ToolchainError(f"no C++ compiler: none of {', '.join(_CANDIDATES)} is on PATH (set DYNCOMP_CXX)")


def _fingerprint(compiler: str, flags: tuple[str, ...]) -> str:
    real = os.path.realpath(compiler)
    facts = os.stat(real)
    parts = (
        real,
        str(facts.st_size),
        str(facts.st_mtime_ns),
        *flags,
        *LIBRARIES,
        platform.machine(),
        _processor(),
        _c_library(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _c_library() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""


def _processor() -> str:
    """Model and instruction sets of the first processor: what ``-march=native`` looks at."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(16384).decode(errors="replace")
    except OSError:
        return platform.processor()
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part")
    first = text.split("\n\n", 1)[0]
    return "\n".join(line for line in first.splitlines() if line.partition(":")[0].strip() in wanted)


@functools.lru_cache(maxsize=16)
def _version(compiler: str) -> str:
    try:
        done = subprocess.run([compiler, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"cannot run {compiler}: {error}") from error
    return done.stdout.decode(errors="replace").partition("\n")[0]
