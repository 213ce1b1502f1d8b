"""``bench/RESULTS.md`` from what was measured."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass, field
from typing import Any

from . import machine
from .micro import MICRO

Table = dict[tuple[str, str], dict[str, Any]]
TITLES = {"numpy": "NumPy", "dyncomp": "dyncomp", "numba": "Numba", "jax": "JAX", "torch": "torch.compile"}


@dataclass
class Results:
    """Answers of the workers, by (name, engine)."""

    engines: list[str]
    programs: Table = field(default_factory=dict)
    micro: Table = field(default_factory=dict)
    start: Table = field(default_factory=dict)
    compile: Table = field(default_factory=dict)


def usable(answer: dict[str, Any] | None) -> bool:
    return answer is not None and "best" in answer and not answer.get("wrong")


def names(table: Table) -> list[str]:
    return list(dict.fromkeys(name for name, _ in table))


def ratio(table: Table, name: str, engine: str) -> float:
    """How many times faster than NumPy; NaN where the engine has no right result."""
    base = table.get((name, "numpy"))
    answer = table.get((name, engine))
    if not usable(base) or not usable(answer):
        return math.nan
    assert base is not None and answer is not None
    return float(base["best"] / answer["best"])


def geometric_mean(values: list[float]) -> float:
    numbers = [value for value in values if value > 0]
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _header(cells: list[str]) -> list[str]:
    return [_line(cells), _line(["---"] + ["---:"] * (len(cells) - 1))]


def _ratio_cell(table: Table, name: str, engine: str) -> str:
    answer = table.get((name, engine))
    if answer is None:
        return ""
    if "left_out" in answer:
        return "–"
    if answer.get("wrong"):
        return "wrong"
    return f"{ratio(table, name, engine):.2f}x"


def speed_table(table: Table, engines: list[str], unit: str, scale: float) -> list[str]:
    """Times of NumPy and dyncomp, then each engine as a ratio to NumPy, and the geometric means."""
    others = engines[1:]
    lines = _header(["", f"NumPy {unit}", f"dyncomp {unit}", *[TITLES[e] for e in others]])
    for name in names(table):
        times = [_time(table.get((name, engine)), scale) for engine in ("numpy", "dyncomp")]
        lines.append(_line([name, *times, *[_ratio_cell(table, name, engine) for engine in others]]))
    means = [geometric_mean([ratio(table, name, engine) for name in names(table)]) for engine in others]
    bold = [f"**{mean:.2f}x**" if mean > 0 else "–" for mean in means]
    lines.append(_line(["**geometric mean**", "", "", *bold]))
    counts = [sum(usable(table.get((name, engine))) for name in names(table)) for engine in others]
    return [*lines, _line(["programs run", "", "", *[f"{n} of {len(names(table))}" for n in counts]])]


def _time(answer: dict[str, Any] | None, scale: float) -> str:
    return f"{answer['best'] * scale:.2f}" if answer and "best" in answer else "–"


def common_means(table: Table, engines: list[str]) -> list[str]:
    """dyncomp against each peer, over the programs that both run."""
    lines = []
    for engine in engines[1:]:
        if engine == "dyncomp":
            continue
        both = [
            ratio(table, name, "dyncomp") / ratio(table, name, engine)
            for name in names(table)
            if usable(table.get((name, engine))) and usable(table.get((name, "dyncomp")))
        ]
        if both:
            lines.append(
                f"- dyncomp is {geometric_mean(both):.2f} times as fast as {TITLES[engine]} over the "
                f"{len(both)} programs that both run right "
                f"(geometric mean; {min(both):.2f} to {max(both):.2f})."
            )
    return lines


def left_out(table: Table) -> list[str]:
    lines = []
    for (name, engine), answer in table.items():
        reason = answer.get("left_out") or (answer.get("wrong") and f"wrong: {answer['wrong']}")
        if reason:
            text = " ".join(str(reason).split()).replace("|", "\\|")
            lines.append(f"- {name}, {TITLES[engine]}: {text[:200]}")
    return lines


def first_call_table(table: Table, engines: list[str]) -> list[str]:
    """Seconds of the first call in each program, compilation included."""
    lines = _header(["", *[TITLES[engine] for engine in engines[1:]]])
    for name in names(table):
        cells = []
        for engine in engines[1:]:
            answer = table.get((name, engine)) or {}
            cells.append(f"{answer['first']:.2f}" if "first" in answer else "–")
        lines.append(_line([name, *cells]))
    return lines


def start_table(results: Results) -> list[str]:
    lines = _header(["seconds", *[TITLES[engine] for engine in results.engines[1:]]])
    rows = (
        ("import", "cold", "import"),
        ("first result, caches empty", "cold", "first"),
        ("first result, caches warm", "warm", "first"),
    )
    for title, state, key in rows:
        cells = []
        for engine in results.engines[1:]:
            answer = results.start.get((state, engine)) or {}
            cells.append(f"{answer[key]:.3f}" if key in answer else "–")
        lines.append(_line([title, *cells]))
    return lines


def bandwidth_table(results: Results, bandwidth: float) -> list[str]:
    """The share of the copy bandwidth that each micro-kernel reaches."""
    lines = _header(["", *[TITLES[engine] for engine in results.engines]])
    for micro in MICRO:
        if not micro.bytes_moved or micro.name not in names(results.micro):
            continue
        cells = []
        for engine in results.engines:
            answer = results.micro.get((micro.name, engine)) or {}
            speed = micro.bytes_moved / answer["best"] / 1e9 if usable(answer) else math.nan
            cells.append(f"{speed / bandwidth:.0%}" if speed > 0 else "–")
        lines.append(_line([micro.name, *cells]))
    return lines


def write(results: Results, command: str) -> str:
    """The whole page."""
    one = machine.copy_bandwidth(1)
    cores = machine.cores()
    every = machine.copy_bandwidth(cores)
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "# Measured",
        "",
        f"`{command}`, {date}, on {cores} cores of {machine.processor()}. {machine.versions()}.",
        f"Copy bandwidth, read plus written: {one:.1f} GB/s with one thread, {every:.1f} GB/s with {cores}.",
        "",
        "One process for each program and engine. Times are the best call of at least three; ratios are "
        "NumPy's time over the engine's (more is faster), results compared with NumPy's first. Programs are "
        "listed in `demo/catalog.py`; how each peer is given a program is in `bench/engines.py` and "
        "`bench/jax_forms.py`. “–”: the engine does not run the program, see the end.",
    ]
    if results.programs:
        lines += ["", "## Programs", "", *speed_table(results.programs, results.engines, "ms", 1e3)]
        against = common_means(results.programs, results.engines)
        lines += ["", *against] if against else []
        lines += ["", "### Seconds of the first call, compilation included", ""]
        lines += first_call_table(results.programs, results.engines)
    kernels = {k: v for k, v in results.micro.items() if k[0] != "call_overhead"}
    overhead = {k: v for k, v in results.micro.items() if k[0] == "call_overhead"}
    if kernels:
        lines += ["", "## Micro-kernels (float32)", "", *speed_table(kernels, results.engines, "ms", 1e3)]
        lines += [
            "",
            f"Share of the copy bandwidth ({cores} threads; over 100 % when the data fits a cache):",
            "",
        ]
        lines += bandwidth_table(results, every)
    if overhead:
        lines += ["", "## Per call", "", "Microseconds of `a * b + 1.0` on eight float64 values:", ""]
        lines += _header([TITLES[engine] for engine in results.engines])
        cells = [_time(overhead.get(("call_overhead", engine)), 1e6) for engine in results.engines]
        lines.append(_line(cells))
    if results.start:
        lines += [
            "",
            "## Fresh process",
            "",
            "From before the import (NumPy is there) to the first result:",
            "",
        ]
        lines += start_table(results)
    if results.compile:
        lines += ["", "## Seconds to compile a chain of operations, a loop of steps", ""]
        lines += first_call_table(results.compile, results.engines)
    missing = [
        line
        for table in (results.programs, results.micro, results.start, results.compile)
        for line in left_out(table)
    ]
    if missing:
        lines += ["", "## Left out", "", *missing]
    return "\n".join(lines) + "\n"
