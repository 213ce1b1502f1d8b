"""``bench/RESULTS.md`` from the lines of ``bench/results.jsonl``."""

from __future__ import annotations

import json
import math
import pathlib
from dataclasses import dataclass, field
from typing import Any

from .engines import ENGINES
from .micro import MICRO

Answer = dict[str, Any]
TITLES = {
    "numpy": "NumPy",
    "dyncomp": "dyncomp",
    "numba": "Numba",
    "numba-parallel": "Numba, parallel",
    "jax": "JAX, on device",
    "jax-numpy": "JAX, NumPy arrays",
    "torch": "torch.compile",
}


@dataclass
class Results:
    """Answers of the workers, by (part, name, engine, threads)."""

    about: Answer = field(default_factory=dict)
    answers: dict[tuple[str, str, str, int], Answer] = field(default_factory=dict)

    @classmethod
    def read(cls, path: pathlib.Path) -> Results:
        results = cls()
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue  # the end of a run that was cut off
            if "about" in line:
                results.about = line
            else:
                key = (line.pop("part"), line.pop("name"), line.pop("engine"), line.pop("threads"))
                results.answers[key] = line
        return results

    def add(self, part: str, name: str, engine: str, threads: int, answer: Answer) -> None:
        self.answers[part, name, engine, threads] = answer

    def get(self, part: str, name: str, engine: str, threads: int) -> Answer:
        return self.answers.get((part, name, engine, threads), {})

    def of(self, part: str, threads: int) -> Table:
        found = {(n, e): a for (p, n, e, t), a in self.answers.items() if p == part and t == threads}
        return Table(found)

    @property
    def threads(self) -> list[int]:
        return sorted({key[3] for key in self.answers})


@dataclass
class Table:
    """The answers of one part at one number of threads, by (name, engine)."""

    answers: dict[tuple[str, str], Answer]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.answers))

    @property
    def engines(self) -> list[str]:
        """Those that were asked, NumPy and dyncomp first."""
        asked = {engine for _, engine in self.answers}
        return [engine for engine in ENGINES if engine in asked]

    def median(self, name: str, engine: str) -> float:
        """Seconds; NaN where the engine has no right result."""
        answer = self.answers.get((name, engine), {})
        return float(answer["median"]) if "median" in answer and not answer.get("wrong") else math.nan

    def ratio(self, name: str, engine: str, base: str) -> float:
        """How many times as fast as ``base``."""
        return self.median(name, base) / self.median(name, engine)

    def both(self, engine: str, base: str) -> list[float]:
        """The ratios of the programs that both run right."""
        return [r for r in (self.ratio(name, engine, base) for name in self.names) if r > 0]


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def _over(ratios: list[float]) -> str:
    """``3.0x over 27``; a dash for no programs."""
    return f"{geometric_mean(ratios):.2f}x over {len(ratios)}" if ratios else "–"


def _rows(cells: list[list[str]]) -> list[str]:
    head, *body = cells
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return ["| " + " | ".join(row) + " |" for row in (head, rule, *body)]


def _time(answer: Answer, scale: float) -> str:
    """The median and half of the distance between the quartiles, in per cent of it."""
    if "median" not in answer:
        return "–"
    if answer.get("wrong"):
        return "wrong"
    low, high = answer["quartiles"]
    return f"{answer['median'] * scale:.2f} ±{(high - low) / 2 / answer['median']:.0%}"


def time_table(table: Table, scale: float) -> list[str]:
    rows = [["", *[TITLES[engine] for engine in table.engines]]]
    for name in table.names:
        rows.append([name, *[_time(table.answers.get((name, e), {}), scale) for e in table.engines]])
    return _rows(rows)


def ratio_table(table: Table) -> list[str]:
    """Each engine against NumPy, and dyncomp against each over what both run."""
    engines = [engine for engine in table.engines if engine != "numpy"]
    rows = [["", *[TITLES[engine] for engine in engines]]]
    for name in table.names:
        ratios = [table.ratio(name, engine, "numpy") for engine in engines]
        rows.append([name, *[f"{r:.2f}x" if r > 0 else "–" for r in ratios]])
    rows.append(["**against NumPy**", *[f"**{_over(table.both(e, 'numpy'))}**" for e in engines]])
    against = ["" if e == "dyncomp" else f"**{_over(table.both('dyncomp', e))}**" for e in engines]
    return _rows([*rows, ["**dyncomp against it**", *against]])


def headline(table: Table, threads: int) -> list[str]:
    """dyncomp against each engine, over the programs that both run right."""
    lines = []
    for engine in table.engines:
        ratios = table.both("dyncomp", engine)
        if engine != "dyncomp" and ratios:
            slower = sum(r < 1 for r in ratios)
            lines.append(
                f"- {_threads(threads)}, {TITLES[engine]}: **{_over(ratios)} programs** "
                f"({min(ratios):.2f}x to {max(ratios):.2f}x; slower in {slower})."
            )
    return lines


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def first_call_table(table: Table) -> list[str]:
    """Seconds of the first call, compilation included."""
    engines = [engine for engine in table.engines if engine != "numpy"]
    rows = [["", *[TITLES[engine] for engine in engines]]]
    for name in table.names:
        found = [table.answers.get((name, engine), {}) for engine in engines]
        rows.append([name, *[f"{a['first']:.2f}" if "first" in a else "–" for a in found]])
    return _rows(rows)


def start_table(table: Table) -> list[str]:
    rows = [["seconds", *[TITLES[engine] for engine in table.engines]]]
    for title, state, key in (
        ("import", "cold", "import"),
        ("first result, caches empty", "cold", "first"),
        ("first result, caches warm", "warm", "first"),
    ):
        found = [table.answers.get((state, engine), {}) for engine in table.engines]
        rows.append([title, *[f"{a[key]:.3f}" if key in a else "–" for a in found]])
    return _rows(rows)


def bandwidth_table(table: Table, bandwidth: float) -> list[str]:
    """The share of the copy bandwidth that each micro-kernel reaches."""
    moved = {micro.name: micro.bytes_moved for micro in MICRO}
    rows = [["", *[TITLES[engine] for engine in table.engines]]]
    for name in table.names:
        speeds = [moved[name] / table.median(name, engine) / 1e9 for engine in table.engines]
        rows.append([name, *[f"{speed / bandwidth:.0%}" if speed > 0 else "–" for speed in speeds]])
    return _rows(rows)


def left_out(results: Results) -> list[str]:
    """Why an engine has no figure, once for all numbers of threads with one reason."""
    lines = []
    for (_, name, engine, _), answer in results.answers.items():
        reason = answer.get("left_out") or (answer.get("wrong") and f"wrong: {answer['wrong']}")
        if reason:
            text = " ".join(str(reason).split()).replace("|", "\\|")
            lines.append(f"- {name}, {TITLES[engine]}: {text[:160]}")
    return list(dict.fromkeys(lines))


def _split(table: Table) -> tuple[Table, Table]:
    """The kernels, and the cost of a call."""
    calls = {k: v for k, v in table.answers.items() if k[0] == "call_overhead"}
    return Table({k: v for k, v in table.answers.items() if k not in calls}), Table(calls)


def write(results: Results) -> str:
    """The whole page."""
    about = results.about
    copy = about.get("copy", {})
    copied = ", ".join(f"{speed:.1f} GB/s with {_threads(int(n))}" for n, speed in copy.items())
    lines = [
        "# Measured",
        "",
        f"`{about.get('about', '')}`, {about.get('date', '')}, on {about.get('machine', '')}.",
        f"{about.get('versions', '')}. Copy bandwidth, read plus written: {copied}.",
        "",
        "One process for each program, engine and number of threads, on as many cores as threads. Times are "
        "medians of seven calls or more, on fresh copies of the arguments, with ± half of the distance "
        "between the quartiles; results were compared with NumPy's first. “JAX, on device”: the arrays are "
        "JAX's before the clock starts; “NumPy arrays”: they are converted inside of it. “Numba, parallel”: "
        "`njit(parallel=True)`, without `fastmath`. `-`: the engine does not run the program, see the end. "
        "Programs: `demo/catalog.py`; how engines are given them: `bench/engines.py`, `bench/jax_forms.py`.",
        "",
        "dyncomp's speed against the others', geometric means over the programs that both run right:",
        "",
    ]
    for threads in results.threads:
        lines += headline(results.of("program", threads), threads)
    for threads in results.threads:
        table = results.of("program", threads)
        if table.answers:
            lines += ["", f"## Programs, {_threads(threads)}: times as fast as NumPy", ""]
            lines += [*ratio_table(table), "", "Milliseconds:", "", *time_table(table, 1e3)]
            lines += ["", "Seconds of the first call, compilation included:", "", *first_call_table(table)]
    for threads in results.threads:
        kernels, calls = _split(results.of("micro", threads))
        if kernels.answers:
            lines += ["", f"## Micro-kernels (float32), {_threads(threads)}: times as fast as NumPy", ""]
            lines += [*ratio_table(kernels), "", "Milliseconds:", "", *time_table(kernels, 1e3)]
        bandwidth = copy.get(str(threads))
        if kernels.answers and bandwidth:
            lines += ["", "Share of the copy bandwidth (over 100 % when the data fits a cache):", ""]
            lines += bandwidth_table(kernels, bandwidth)
        if calls.answers:
            lines += ["", "Microseconds of `a * b + 1.0` on eight float64 values:", ""]
            lines += time_table(calls, 1e6)
    for threads in results.threads:
        start, compiling = results.of("first", threads), results.of("compile", threads)
        if start.answers:
            title = "From before the import (NumPy is there) to the first result:"
            lines += ["", f"## Fresh process, {_threads(threads)}", "", title, "", *start_table(start)]
        if compiling.answers:
            title = f"## Seconds to compile a chain of operations, a loop of steps, {_threads(threads)}"
            lines += ["", title, "", *first_call_table(compiling)]
    missing = left_out(results)
    return "\n".join([*lines, *(["", "## Left out", "", *missing] if missing else [])]) + "\n"
