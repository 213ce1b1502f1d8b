"""Expressions over arrays with sizes of zero: ``python -m tests.inductor.zero_sizes_run --placement end``.

Every expression of ``zero_sizes`` is compiled and called with each sequence of shapes, and compared with
plain Python: values, shapes, types, what is written, exceptions. The array ends (``end``) or begins
(``begin``) at a page that nobody may touch, or is allocated as usual (``alloc``). ``--asan``: generated code
is built with AddressSanitizer.
The cases run in a process of their own, so that a crash is one case's; the status is 1 where one fails.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import linecache
import mmap
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.inductor.zero_sizes import CASES, SEQUENCES, source

PLACEMENTS = ("end", "begin", "alloc")
DTYPES = ("f8", "f4", "f8", "i8")
PAGES = 16
SECONDS = 60.0
TOTAL = len(CASES) * len(SEQUENCES)


# -- arrays beside pages that nobody may touch ------------------------------------------------
class GuardedMemory:
    """Pages between two that nobody may touch."""

    def __init__(self) -> None:
        page = mmap.PAGESIZE
        self.size = PAGES * page
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start = libc.mmap(None, self.size + 2 * page, 0, flags, -1, 0)
        self.start = start + page
        if libc.mprotect(self.start, self.size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise OSError(ctypes.get_errno(), "mprotect")
        self.bytes = (ctypes.c_char * self.size).from_address(self.start)

    def copy(self, array: np.ndarray[Any, Any], placement: str) -> np.ndarray[Any, Any]:
        """A copy that lies at an end of the pages, or anywhere."""
        if placement == "alloc":
            return array.copy()
        offset = self.size - array.nbytes if placement == "end" else 0
        made = np.ndarray(array.shape, array.dtype, self.bytes, offset)
        made[...] = array
        return made


# -- one case ---------------------------------------------------------------------------------
def make_function(number: int) -> Callable[[Any], Any]:
    """The function of a case, with code of its own."""
    library, text = CASES[number // len(SEQUENCES)]
    names: dict[str, Any] = {"np": np}
    if library == "torch":
        import torch

        names = {"torch": torch, "F": torch.nn.functional}
    code, file = source(text), f"<case {number}>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    exec(compile(code, file, "exec"), names)
    function: Callable[[Any], Any] = names["function"]
    return function


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    try:
        return function(x)
    except Exception as error:
        return error


def difference(found: Any, wanted: Any, rough: bool = False) -> str:
    """How two results differ; "" if they do not. ``rough``: what is computed is rounded to float32."""
    if isinstance(wanted, Exception) or isinstance(found, Exception):
        same = type(found) is type(wanted) and str(found) == str(wanted)
        return "" if same else f"{found!r}, not {wanted!r}"
    if isinstance(wanted, (tuple, list)):
        if type(found) is not type(wanted) or len(found) != len(wanted):
            return f"{type(found)}, not {type(wanted)}"
        return next((text for pair in zip(found, wanted) if (text := difference(*pair, rough))), "")
    if type(found) is not type(wanted):
        return f"{type(found)}, not {type(wanted)}"
    if hasattr(wanted, "detach") and found.dtype is wanted.dtype:
        found, wanted = (t.float() if str(t.dtype) == "torch.bfloat16" else t for t in (found, wanted))
        found, wanted = found.resolve_conj().numpy(), wanted.resolve_conj().numpy()
    a, b = np.asarray(found), np.asarray(wanted)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape}, not {b.dtype}{b.shape}"
    if rough:
        tolerance = 1e-2 if a.dtype.itemsize == 2 else 1e-5
    else:
        tolerance = {2: 1e-2, 4: 1e-4}.get(a.dtype.itemsize, 1e-9)
    if a.dtype.kind in "OSU" or np.allclose(a, b, tolerance, tolerance, equal_nan=True):
        return ""
    return f"{a.ravel()[:5]}, not {b.ravel()[:5]}"


def run_case(number: int, memory: GuardedMemory, placement: str) -> str:
    """What is wrong in a case; "" if nothing is."""
    import dyncomp

    dyncomp.reset()
    before = dyncomp.stats()["internal_errors"]
    function = make_function(number)
    compiled = dyncomp.compile(function)
    library = CASES[number // len(SEQUENCES)][0]
    rng = np.random.default_rng(number)
    dtype = DTYPES[number % len(SEQUENCES) % len(DTYPES)]
    for shape in SEQUENCES[number % len(SEQUENCES)]:
        values = rng.random(shape) if dtype != "i8" else rng.integers(0, 2, shape)
        one, other = values.astype(dtype), memory.copy(values.astype(dtype), placement)
        x, y = one, other
        if library == "torch":
            import torch

            x, y = torch.from_numpy(one), torch.from_numpy(other)
        wanted = outcome(function, x)
        found = outcome(compiled, y)
        text = difference(found, wanted, dtype == "f4") or difference(other, one)
        if text:
            return f"{shape} {dtype}: {text}"
    if dyncomp.stats()["internal_errors"] > before:
        return "an internal error"
    return ""


# -- many, in a process of their own ----------------------------------------------------------
def work(numbers: Sequence[int], placement: str) -> None:
    """Say of each case when it begins and what is wrong with it."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    memory = GuardedMemory()
    for number in numbers:
        print(f"begin {number}", flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            text = run_case(number, memory, placement)
        except Exception as error:
            text = f"raised {type(error).__name__}: {error}"
        if text:
            print(f"bad {number} {text[:400]!r}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print("end", flush=True)


def run(
    numbers: Sequence[int], placement: str, environ: dict[str, str] | None = None
) -> Iterator[tuple[int, str]]:
    """The cases that fail, with what is wrong; a crash is the fault of the case that ran."""
    left = list(numbers)
    while left:
        command = [sys.executable, "-m", "tests.inductor.zero_sizes_run", "--worker"]
        command += ["--placement", placement]
        errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed below
        worker = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            env={**os.environ, "DYNCOMP_STRICT": "1", **(environ or {})},
        )
        assert worker.stdin is not None and worker.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(" ".join(map(str, left)))
            worker.stdin.close()
        now, ended = -1, False
        for line in worker.stdout:
            kind, _, rest = line.partition(" ")
            if kind == "begin":
                now = int(rest)
            elif kind == "bad":
                number, _, text = rest.partition(" ")
                yield int(number), text.strip()
            ended = ended or line == "end\n"
        status = worker.wait()
        with errors:
            errors.seek(0)
            complaint = errors.read()
        if ended and not status:
            return
        if now < 0:
            raise RuntimeError(f"the cases do not start ({status}):\n{complaint[-3000:]}")
        told = ("SUMMARY", "Fatal", "Timeout", "==", "    #", "  File")
        summary = [line for line in complaint.splitlines() if line.startswith(told)]
        yield now, f"crashed ({status}): {' | '.join(summary[:9])[:900]}"
        left = left[left.index(now) + 1 :]


def sanitizing() -> dict[str, str]:
    """The environment in which generated code is built, and runs, with AddressSanitizer."""
    from tools.sanitize import generated_environment, sanitizer_environment

    return {**sanitizer_environment(), **generated_environment()}


def describe(number: int) -> str:
    library, text = CASES[number // len(SEQUENCES)]
    return f"{number}: {library}: {text!r} with {SEQUENCES[number % len(SEQUENCES)]}"


def main() -> int:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--placement", choices=PLACEMENTS, default="end")
    parser.add_argument("--asan", action="store_true")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=TOTAL)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work([int(word) for word in sys.stdin.read().split()], arguments.placement)
        return 0
    numbers = range(arguments.first, min(arguments.first + arguments.count, TOTAL), arguments.step)
    bad = 0
    environ = sanitizing() if arguments.asan else {}
    for number, text in run(numbers, arguments.placement, environ):
        bad += 1
        print(f"{describe(number)}: {text}", flush=True)
    print(f"{len(numbers)} cases ({arguments.placement}), {bad} failed")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
