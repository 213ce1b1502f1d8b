"""What reproduction scripts call."""

from __future__ import annotations

import base64
import io
import runpy
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..graph.interp import strided_window
from ..graph.text import parse
from .case import Array, Case, table_of
from .derivatives import gradient_fault
from .layers import Fault, examine
from .program import Arguments, Program

SECONDS = 120.0
# While a script is read and not run: what it would take through the compiler.
_read: list[Case | Program] | None = None


def case_of(
    graph: str,
    inputs: Sequence[Any],
    integers: Sequence[int] = (),
    library: str = "",
    settings: Mapping[str, Any] | None = None,
) -> Case:
    """A graph's text and its inputs as a case."""
    found = parse(graph.strip("\n"), table_of(library))
    return Case(found, tuple(inputs), tuple(integers), library, dict(settings or {}))


def replay(
    graph: str,
    inputs: Sequence[Any],
    integers: Sequence[int] = (),
    library: str = "",
    settings: Mapping[str, Any] | None = None,
) -> int:
    """Take a graph through the compiler, compare after each step, and say what is at fault. The exit status:
    1 where something is."""
    case = case_of(graph, inputs, integers, library, settings)
    return _told(case, lambda: examine(case, SECONDS))


def replay_gradient(
    graph: str, inputs: Sequence[Any], integers: Sequence[int] = (), library: str = ""
) -> int:
    """Compare a graph's derivative with differences of its values. The exit status: 1 where it is wrong."""
    case = case_of(graph, inputs, integers, library)

    def look() -> Fault | None:
        text = gradient_fault(case)
        return Fault("derivatives", "wrong", text) if text else None

    return _told(case, look)


def replay_calls(
    function: Callable[..., Any], calls: Sequence[Arguments], settings: Mapping[str, Any] | None = None
) -> int:
    """Make calls of a function in plain Python and compiled, and say how they differ. The exit status: 1
    where they do."""
    program = Program(
        function, tuple((tuple(args), dict(kwargs)) for args, kwargs in calls), dict(settings or {})
    )
    return _told(program, lambda: program.problem(layer="capture"))


def is_repro(path: Path) -> bool:
    """Whether a file is a script that calls a function of this module."""
    return f"from {__name__} import" in path.read_text(errors="replace")


def read_script(path: Path) -> Case | Program:
    """What a script takes through the compiler. Raises ``ValueError`` where it takes nothing."""
    global _read
    _read = []
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit:
        pass
    finally:
        found, _read = _read, None
    if not found:
        raise ValueError(f"{path} takes nothing through the compiler")
    return found[0]


def _told(subject: Case | Program, look: Callable[[], Fault | None]) -> int:
    """Say what is at fault in ``subject``, or only take it down where the script is read."""
    if _read is not None:
        _read.append(subject)
        return 0
    fault = look()
    if fault is None:
        print("no difference: the fault is mended, or does not show on this machine")
        return 0
    print(fault.describe())
    return 1


def unpacked(text: str) -> Array:
    """An array that was packed into text."""
    found: Array = np.load(io.BytesIO(zlib.decompress(base64.b85decode(text))), allow_pickle=False)
    return found


def laid_out(array: Array, strides: tuple[int, ...]) -> Array:
    """A copy with these strides, in bytes."""
    item = array.itemsize
    steps = [(n - 1) * s // item for n, s in zip(array.shape, strides)]
    low = sum(s for s in steps if s < 0)
    memory = np.zeros(sum(s for s in steps if s > 0) - low + 1, array.dtype)
    found: Array = strided_window(memory, array.shape, tuple(s // item for s in strides), -low)
    found[...] = array
    return found
