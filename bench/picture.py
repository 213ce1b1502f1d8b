"""``python -m bench.picture`` draws ``docs/images/figures.svg``: what the pages of ``bench/`` measured.

Nothing is measured here. Every figure is worked out from the tables of a page, so that the picture says what
the pages say; run it after a page was written anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parent / "docs" / "images" / "figures.svg"
# readable on white and on black
_TEXT, _GOOD, _BAD = "#7d8590", "#2f81f7", "#db6d28"

Row = dict[str, str]


@dataclass(frozen=True)
class Figure:
    """How fast dyncomp is beside something else (1: equally fast), for each program that both run."""

    programs: str
    peer: str
    page: str
    ratios: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The geometric mean."""
        return exp(sum(map(log, self.ratios)) / len(self.ratios))

    @property
    def label(self) -> str:
        return f"{self.programs} against {self.peer}"

    @property
    def value(self) -> str:
        return f"{self.mean:.{1 if self.mean >= 1 else 2}f}x over {len(self.ratios)}"


def tables(page: str) -> list[list[Row]]:
    """The tables of a page of ``bench/``; a row is its cells by the titles of their columns."""
    found: list[list[Row]] = []
    titles: list[str] = []
    for line in (HERE / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            titles = []
            continue
        cells = [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
        if not titles:
            titles = cells
            found.append([])
        elif not re.fullmatch(r"[-: ]+", cells[0]) and line.count("**") < 4:
            found[-1].append(dict(zip(titles, cells)))
    return found


def _number(cell: str) -> float | None:
    """What a cell begins with: ``6.30x``, ``34.87 ±5%``, ``1.729 (7.4)``; nothing in ``–`` and ``failed``."""
    match = re.match(r"\d+(\.\d+)?", cell)
    return float(match[0]) if match else None


def _quotients(rows: list[Row], above: str, below: str) -> tuple[float, ...]:
    pairs = [(_number(row[above]), _number(row[below])) for row in rows]
    return tuple(a / b for a, b in pairs if a and b)


def _values(rows: list[Row], title: str) -> tuple[float, ...]:
    return tuple(found for row in rows if (found := _number(row[title])))


def figures() -> Iterator[Figure]:
    """All that the picture shows, from the top."""
    milliseconds = next(table for table in tables("RESULTS.md") if "NumPy" in table[0])
    for peer, name in (
        ("NumPy", "NumPy"),
        ("Numba", "Numba"),
        ("JAX, on device", "JAX"),
        ("torch.compile", "torch.compile"),
    ):
        yield Figure("NumPy programs", name, "RESULTS.md", _quotients(milliseconds, peer, "dyncomp"))
    loops = [row for table in tables("SCALAR.md") for row in table if row.get("beside Numba")]
    yield Figure("Loops over numbers", "Numba", "SCALAR.md", _values(loops, "beside Numba"))
    (gradients,) = tables("GRADIENTS.md")
    yield Figure("NumPy gradients", "JAX", "GRADIENTS.md", _quotients(gradients, "JAX ms", "dyncomp ms"))
    (models,) = tables("MODELS.md")
    yield Figure("Models", "PyTorch", "MODELS.md", _quotients(models, "eager ms", "dyncomp ms"))
    yield Figure("Models", "torch.compile", "MODELS.md", _quotients(models, "dyncomp", "torch.compile"))
    (training,) = tables("TRAINING.md")
    yield Figure("Training steps", "torch.compile", "TRAINING.md", _values(training, "against it"))
    (gpu,) = tables("GPU.md")
    yield Figure("GPU programs", "the best other", "GPU.md", _values(gpu, "best peer / dyncomp"))
    (gpu_models,) = tables("GPU_MODELS.md")
    modes = ("default", "reduce-overhead")
    theirs, ours = ([_best(row, name, modes) for row in gpu_models] for name in ("torch.compile", "dyncomp"))
    ratios = tuple(a / b for a, b in zip(theirs, ours))
    yield Figure("GPU models", "torch.compile", "GPU_MODELS.md", ratios)


def _best(row: Row, engine: str, modes: Iterable[str]) -> float:
    return min(found for mode in modes if (found := _number(row[f"{engine} {mode}"])))


def draw(target: Path = PICTURE) -> None:
    """Write the picture: a bar for each figure, a thin line from the smallest to the largest ratio."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "dyncomp", "font.size": 11}
    shown = list(figures())
    chart, axes = plt.subplots(figsize=(9, 0.42 * len(shown) + 1.1), layout="constrained")
    for place, figure in enumerate(shown):
        mean = figure.mean
        axes.barh(place, mean - 1, left=1, color=_GOOD if mean >= 1 else _BAD, height=0.55)
        axes.plot([min(figure.ratios), max(figure.ratios)], [place, place], color=_TEXT, linewidth=1)
        axes.text(70, place, figure.value, va="center", color=_TEXT)
    axes.axvline(1, color=_TEXT, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.09, 64)
    ticks = (0.1, 0.25, 0.5, 1, 2, 4, 10, 40)
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(shown)), [figure.label for figure in shown])
    axes.invert_yaxis()
    axes.set_xlabel("dyncomp's speed beside the other's (1x: equal; bar: geometric mean; line: all programs)")
    axes.tick_params(colors=_TEXT)
    axes.xaxis.label.set_color(_TEXT)
    for side in axes.spines.values():
        side.set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    chart.savefig(target, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    draw()
