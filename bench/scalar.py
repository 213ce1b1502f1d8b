"""``python -m bench.scalar``: loops over single numbers beside plain Python and Numba (``SCALAR.md``), and a
survey of programs that nobody tuned for.

The first call includes compiling (dyncomp's cache on disk is not used), on the clock; of later calls the best
counts, in processor time.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import math
import os
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import machine
from .scalar_cases import CASES, Case
from .scalar_container_cases import CASES as CONTAINERS
from .scalar_fresh_cases import CASES as FRESH
from .scalar_survey_cases import CASES as SURVEY

HERE = pathlib.Path(__file__).resolve().parent
CALLS = 7


def _seconds(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def _measured(function: Callable[..., Any], case: Case) -> tuple[float, float, Any]:
    """The first call, the best of those that follow, and the first one's result."""
    first, result = _seconds(function, case.arguments())
    return first, min(_processor_seconds(function, case.arguments()) for _ in range(CALLS)), result


def _processor_seconds(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    """Time of this thread, whatever else runs on the machine."""
    start = time.thread_time()
    function(*arguments)
    return time.thread_time() - start


def _measure(case: Case) -> dict[str, tuple[float, float]]:
    import dyncomp

    expected = case.function(*case.arguments())
    plain = _processor_seconds(case.function, case.arguments())
    found = {"plain": (plain, plain)}
    engines = {"dyncomp": dyncomp.compile}
    if importlib.util.find_spec("numba"):
        import numba

        engines["numba"] = numba.njit
    for name, compiled in engines.items():
        try:
            first, later, result = _measured(compiled(case.function), case)
        except Exception as error:
            assert name == "numba", error
            continue  # what it does not compile
        assert _is_close(result, expected), f"{case.name}: {name} is wrong"
        found[name] = (first, later)
    return found


def _is_close(result: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return len(result) == len(expected) and all(map(_is_close, result, expected))
    return bool(np.allclose(result, expected))


def _row(case: Case, found: dict[str, tuple[float, float]]) -> str:
    plain, (first, later) = found["plain"][1], found["dyncomp"]
    cells = [
        case.name,
        f"{plain * 1e3:.1f}",
        f"{later * 1e3:.3f}",
        f"{plain / later:.0f}x",
        f"{first * 1e3:.0f}",
    ]
    if "numba" in found:
        other_first, other = found["numba"]
        cells += [f"{other * 1e3:.3f}", f"{other / later:.2f}x", f"{other_first * 1e3:.0f}"]
    else:
        cells += ["fails", "", ""]
    return f"| {' | '.join(cells)} |"


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


_HEAD = [
    "| program | plain (ms) | dyncomp | | first call | Numba | beside Numba | first call |",
    "|---|---|---|---|---|---|---|---|",
]


def _table(cases: list[Case]) -> list[str]:
    """A row for each program, and what they come to."""
    lines, all_found = [], []
    for case in cases:
        all_found.append(_measure(case))
        lines.append(_row(case, all_found[-1]))
        print(lines[-1], flush=True)
    over_plain = _mean([found["plain"][1] / found["dyncomp"][1] for found in all_found])
    summary = f"Geometric means: {over_plain:.0f}x plain Python"
    beside = [found["numba"][1] / found["dyncomp"][1] for found in all_found if "numba" in found]
    if beside:
        summary += f", {_mean(beside):.2f}x Numba's speed"
    print(summary)
    return [*lines, "", f"{summary}."]


_LEFT_OUT = "Loops over dicts, sets and deques are not compiled and not shown."
_TABLES = (
    ("", CASES),
    ("## Survey", SURVEY),
    ("## Seen once", FRESH),
    ("## Heaps and lists, and functions that write", CONTAINERS),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--write", action="store_true", help="write SCALAR.md")
    given = parser.parse_args()
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DYNCOMP_CACHE_DIR"] = folder
        _measure(CASES[-1])  # imports, and what is made once
        for title, cases in _TABLES:
            chosen = [case for case in cases if given.only in case.name]
            if chosen:
                lines += [title, "", *_HEAD] if title else _HEAD
                lines += [*_table(chosen), ""]
    if given.write:
        head = f"# Loops over single numbers\n\n{machine.processor()}, {machine.versions()}, one thread; "
        head += f"{datetime.date.today()}. Milliseconds; `python -m bench.scalar --write`."
        head += f" Load average: {os.getloadavg()[0]:.1f}. {_LEFT_OUT}\n\n"
        (HERE / "SCALAR.md").write_text(head + "\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
