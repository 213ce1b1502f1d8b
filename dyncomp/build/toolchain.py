"""The C++ compiler: finding it, knowing it cheaply, and turning source text into a shared library."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dyncomp.build.cache_place import asked_for, place_of
from dyncomp.build.compilers import identity
from dyncomp.dataclass import dataclass
from dyncomp.errors import RejectedCode, ToolchainError
from dyncomp.notices import setup_error
from dyncomp.spans import span

_NO_MMX = ("-mno-mmx",) if platform.machine() in ("x86_64", "AMD64") else ()
# Chosen by measurement: -O2 equals -O3 within 2% here; without headers and libraries one file takes ~40 ms.
# No fast-math: NaN, infinities, signed zeros and the order of additions keep their meaning; contraction is
# written out where wanted. Jump threading turns chains of selections into conditions on conditions, which
# gcc 12 does not vectorise; sinking moves calls into the arms of selections, with the same end; so does the
# elimination of partial redundancies for selections of selections (clip, maxima of masked values).
# Without MMX, which gcc 12 uses for integers in 64-bit vectors where there is no AVX: it leaves the x87 stack
# full, and the next long double that anybody loads is NaN.
# Global subexpressions are found before they get there: a tenth of the time for nothing. Without peeling,
# loops over the few vectors of an accumulator are not written out and it stays in memory (row maxima 2.4
# times slower).
FLAGS: tuple[str, ...] = (
    "-std=c++17",
    "-O2",
    "-march=native",
    *_NO_MMX,
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
    # gcc 12's vectors of straight-line code are wrong at times (bools in the peeled ends of loops, casts down
    # and up again); loops are vectorised without them
    "-fno-tree-slp-vectorize",
    "-fno-semantic-interposition",
    "-fno-exceptions",
    "-fno-rtti",
    "-fPIC",
    "-shared",
    "-nostdlib",
    # two mappings and 8 KB for each library instead of five and 20 KB
    "-Wl,-z,noseparate-code,-z,norelro",
    "-pipe",
    "-w",
)
# Helpers that the compiler itself calls (complex products, 128-bit division); after the source.
LIBRARIES: tuple[str, ...] = ("-lgcc",)
# Loops over single numbers (``scalar_loops``) are full of branches and of numbers that are kept for the ways
# out: what the flags above leave out pays there, and what gcc's tuning for Zen does with so many (into vector
# registers and back) costs half of the time.
LOOP_FLAGS: tuple[str, ...] = ("-fthread-jumps", "-ftree-sink", "-fgcse", "-ftree-pre", "-mtune=generic")
_CANDIDATES = ("g++", "clang++", "c++")
_COMPILE_SECONDS = 600.0
# A compiler that takes so long is given the smallest source there is, and so long for that.
_SLOW_SECONDS = 30.0
_PROBE_SECONDS = 60.0
_PROBE = 'extern "C" int dyncomp_probe(int x) { return x + 1; }\n'
DISK_FULL = ("No space left on device", "Disk quota exceeded")
# Instruction sets by the names that /proc/cpuinfo has for them; compilers have __AVX2__.
_EXTENSIONS = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "bmi2"),
    *("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"),
)
# What keys at a terminal send to every process of the foreground, a child before it has a session included.
_TYPED = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP}
_MESSAGE_LINES = 30
# What compilers say of errors in the source, or in the assembly made of it; not of flags, files and memory.
_IN_SOURCE = re.compile(r"^[^\n:]+:\d+:(\d+:)? (Error|error|fatal error|internal compiler error):", re.M)
_PART = re.compile(r"^#if DC_PART\((\d+)\)$", re.M)


class Runner:
    """Starts compilers and waits for them. ``background``: at a low priority, in process groups of their own,
    so that keys typed at a terminal do not reach them; ``low=False``: at the program's priority all the same.
    ``stop`` ends them from another thread. ``on_start`` is called while the first compilers run."""

    def __init__(
        self, background: bool = False, on_start: Callable[[], None] | None = None, *, low: bool = True
    ) -> None:
        self.background = background
        self.on_start = on_start
        self.stopped = False
        self.running: list[subprocess.Popen[bytes]] = []
        nice = shutil.which("nice") if background and low else None
        self.prefix = () if nice is None else (nice, "-n", "10")

    def run(
        self,
        commands: Sequence[Sequence[str]],
        seconds: float = _COMPILE_SECONDS,
        when_slow: Callable[[], None] | None = None,
    ) -> list[tuple[int, str]]:
        """Run commands side by side: exit status and output of each. None is left running. ``when_slow`` is
        called if one takes long, and may raise."""
        started: list[tuple[subprocess.Popen[bytes], Any]] = []
        try:
            for command in commands:
                started.append(self._start(command))
            if self.on_start is not None:
                on_start, self.on_start = self.on_start, None
                on_start()
            if when_slow is not None:
                try:
                    _wait(started[0][0], _SLOW_SECONDS)
                except subprocess.TimeoutExpired:
                    when_slow()
            return [(_wait(process, seconds), _text(output)) for process, output in started]
        finally:
            for process, output in started:
                self._end(process)
                process.wait()
                self.running.remove(process)
                output.close()

    def stop(self) -> None:
        self.stopped = True
        for process in [*self.running]:
            self._end(process)

    def _start(self, command: Sequence[str]) -> tuple[subprocess.Popen[bytes], Any]:
        output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by run
        # the compiler inherits what is blocked here, of this thread alone
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _TYPED if self.background else ())
        try:
            process = subprocess.Popen(
                [*self.prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=self.background,
                umask=0o077,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.running.append(process)
        if self.stopped:
            self._end(process)
        return process, output

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is not None:
            return
        if not self.background:
            process.kill()
            return
        try:
            os.killpg(process.pid, signal.SIGKILL)  # with the parts that the compiler started
        except ProcessLookupError:
            return


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    """As ``process.wait(seconds)``, which with a limit looks every 50 ms only."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or it has been waited for
        return process.wait(seconds)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        ended = poll.poll(seconds * 1e3)
    finally:
        os.close(handle)
    return process.wait(None if ended else 0)


def _text(output: Any) -> str:
    output.seek(0)
    text: str = output.read().decode(errors="replace")
    return text


@dataclass(frozen=True)
class Toolchain:
    """A compiler with its flags. ``fingerprint`` identifies what it would generate here: where the compiler
    lies and what it says of itself (:mod:`compilers`), the flags, the processor and the C library."""

    compiler: str
    flags: tuple[str, ...]
    fingerprint: str

    def compile(self, source: Path, output: Path, runner: Runner | None = None) -> None:
        """Compile the file ``source`` into the shared library ``output``; the parts of a large one (see
        ``render/cpp/unit.py``) side by side, on as many cores as there are.

        Raises :class:`ToolchainError` with the compiler's message and the source's path."""
        runner = Runner() if runner is None else runner
        try:
            text = source.read_text(errors="replace")
        except OSError:
            text = ""  # the compiler says what is wrong
        masks = parts_for(text, len(os.sched_getaffinity(0)))
        if len(masks) < 2:
            self._run([self._command(source, output, *LIBRARIES)], source, runner)
        else:
            objects = [output.with_suffix(f".{k}.o") for k in range(len(masks))]
            parts = [
                self._command(source, made, "-c", f"-DDC_PARTS={mask}ull")
                for made, mask in zip(objects, masks)
            ]
            self._run(parts, source, runner)
            self._run(
                [[self.compiler, *self.flags, *map(str, objects), "-o", str(output), *LIBRARIES]],
                source,
                runner,
            )
        if not output.exists():
            self._check()
            raise ToolchainError(f"{self.compiler} failed (it made nothing) on {source}")

    def _command(self, source: Path, output: Path, *more: str) -> list[str]:
        return [self.compiler, *self.flags, str(source), "-o", str(output), *more]

    def _run(self, commands: Sequence[Sequence[str]], source: Path, runner: Runner) -> None:
        if (self.compiler, self.fingerprint) in _HANGING:
            self._check()
        try:
            with span("build", os.path.basename(self.compiler)):
                found = runner.run(commands, when_slow=self._check)
        except subprocess.TimeoutExpired as error:
            raise ToolchainError(
                f"{self.compiler} ran for more than {_COMPILE_SECONDS:.0f} s on {source}"
            ) from error
        except OSError as error:
            raise self._unusable(f"cannot be started: {error}") from error
        for status, text in found:
            if status:
                if not runner.stopped and not any(reason in text for reason in DISK_FULL):
                    self._check()
                shown = "\n".join(text.splitlines()[:_MESSAGE_LINES]) or "no message"
                kind = RejectedCode if _IN_SOURCE.search(text) else ToolchainError
                raise kind(f"{self.compiler} failed ({status}) on {source}:\n{shown}")

    def _check(self) -> None:
        """Raise ``SetupError`` where the compiler cannot even compile the smallest source."""
        key = (self.compiler, self.fingerprint)
        if key in _HANGING:
            raise self._unusable(_HANGING[key])
        with tempfile.TemporaryDirectory(prefix="dyncomp-probe-") as folder:
            source, output = Path(folder, "probe.cpp"), Path(folder, "probe.so")
            source.write_text(_PROBE)
            try:
                command = self._command(source, output, *LIBRARIES)
                ((status, text),) = Runner().run([command], _PROBE_SECONDS)
            except subprocess.TimeoutExpired:
                _HANGING[key] = "does not come to an end"
                raise self._unusable(_HANGING[key]) from None
            except OSError as error:
                raise self._unusable(f"cannot be started: {error}") from error
            if status or not output.exists():
                first = next((line for line in text.splitlines() if line.strip()), "no message")
                said = "".join(filter(str.isprintable, first))[:200].strip()
                raise self._unusable(f"cannot compile anything (exit status {status}: {said})")

    def _unusable(self, problem: str) -> ToolchainError:
        found = (flag.partition("=")[2] for flag in self.flags if flag.startswith("-march="))
        march = next(found, "native")
        advice = "set CXX to another" if march == "native" else f"is DYNCOMP_MARCH={march!r} right?"
        return setup_error(
            "compiler", f"the C++ compiler {self.compiler} {problem} ({advice})", self.compiler
        )

    def with_flags(self, extra: tuple[str, ...]) -> Toolchain:
        """The same with more flags, whose code has other addresses in the cache."""
        fingerprint = f"{self.fingerprint} {' '.join(extra)}"
        return replace(self, flags=(*self.flags, *extra), fingerprint=fingerprint)

    @property
    def calls_vectors(self) -> bool:
        """Whether loops may call functions on whole vectors: gcc on Linux and x86-64 by their names."""
        name = os.path.basename(os.path.realpath(self.compiler))
        is_gcc = "clang" not in name and ("g++" in name or "gcc" in name)
        return is_gcc and (platform.system(), platform.machine()) == ("Linux", "x86_64")

    def version(self) -> str:
        """The first line of ``compiler --version`` (runs the compiler: for people, not for keys)."""
        return _version(self.compiler)


_HANGING: dict[tuple[str, str], str] = {}  # compilers, and what is said of them


def flags_for(march: str) -> tuple[str, ...]:
    """:data:`FLAGS` for an instruction set. A compiler for another processor takes the same source, where
    that calls no vectors: ``-march=armv8-a`` has NEON."""
    flags = [flag for flag in FLAGS if flag not in _NO_MMX or not march.startswith("arm")]
    return tuple([f"-march={march}" if flag == "-march=native" else flag for flag in flags])


def parts_for(text: str, cores: int) -> list[int]:
    """Which parts of a source each compiler takes, as bits; nothing for a source in one part."""
    marks = [*_PART.finditer(text)]
    sizes = [end.start() - mark.start() for mark, end in zip(marks, marks[1:])]
    sizes += [len(text) - mark.start() for mark in marks[-1:]]
    shares = [(0, 0)] * min(cores, len(marks))
    if len(shares) < 2:
        return []
    for size, mark in sorted(zip(sizes, [int(mark[1]) for mark in marks]), reverse=True):
        least = shares.index(min(shares))
        shares[least] = (shares[least][0] + size, shares[least][1] | 1 << mark)
    return [mask for _, mask in shares]


def find_toolchain(environ: Mapping[str, str] | None = None) -> Toolchain:
    """The compiler named by ``DYNCOMP_CXX`` or ``CXX``, else the first of g++, clang++, c++ on ``PATH``;
    for the processor at hand, or the instruction set that ``DYNCOMP_MARCH`` names (``x86-64-v3``: AVX2).

    Raises :class:`ToolchainError` if there is none. Cheap after the first call; a process is started where
    the compiler is new or a wrapper."""
    environ = os.environ if environ is None else environ
    return _find(
        environ.get("DYNCOMP_CXX", ""),
        environ.get("CXX", ""),
        environ.get("PATH", os.defpath),
        environ.get("DYNCOMP_MARCH", ""),
    )


def toolchain_for(march: str, environ: Mapping[str, str]) -> Toolchain:
    """The compiler of :func:`find_toolchain` for an instruction set that this processor need not have."""
    names = (environ.get("DYNCOMP_CXX", ""), environ.get("CXX", ""), environ.get("PATH", os.defpath))
    return _find(*names, march, checks=False)


@functools.lru_cache(maxsize=16)
def _find(own: str, cxx: str, path: str, march: str, checks: bool = True) -> Toolchain:
    chosen = own or cxx
    # CXX may carry arguments, as build tools allow ("ccache g++ -m64")
    words = chosen.split() if chosen and shutil.which(chosen, path=path) is None else [chosen]
    names = [words[0]] if chosen else list(_CANDIDATES)
    for name in names:
        found = shutil.which(name, path=path)
        if found is not None:
            flags = (*words[1:], *flags_for(march or "native"))
            if march and checks:
                _check_processor(found, march)
            return Toolchain(found, flags, _fingerprint(found, words[1:], flags))
    if chosen:
        variable = "DYNCOMP_CXX" if own else "CXX"
        problem = f"the C++ compiler that {variable}={chosen!r} names was not found (it is no executable)"
        raise setup_error("compiler", problem)
    looked = f"looked for {', '.join(_CANDIDATES)} on PATH; install one, or set CXX to one"
    raise setup_error("compiler", f"no C++ compiler was found ({looked})")


def _check_processor(compiler: str, march: str) -> None:
    """Raise ``SetupError`` where ``DYNCOMP_MARCH`` names instructions that this processor does not have."""
    found = re.search(r"^flags\s*:(.*)$", _processor(), re.M)
    have = set(found[1].split()) if found is not None else set()
    command = [compiler, f"-march={march}", "-dM", "-E", "-x", "c++", os.devnull]
    try:
        ((_, text),) = Runner().run([command], _PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return  # it is told of where it is to compile
    wanted = [name for name in _EXTENSIONS if f" __{name.upper()}__ " in text]
    missing = [name for name in wanted if name not in have]
    if have and missing:
        problem = f"DYNCOMP_MARCH={march!r} asks for instructions that this processor does not have"
        raise setup_error("compiler", f"{problem} ({', '.join(missing)})")


def _fingerprint(compiler: str, words: Sequence[str], flags: tuple[str, ...]) -> str:
    place = place_of(*asked_for(os.environ))
    kept = None if place.note else place.folder
    parts = (
        identity(compiler, words, kept),
        *flags,
        *LIBRARIES,
        platform.machine(),
        _processor(),
        _c_library(),
    )
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


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
