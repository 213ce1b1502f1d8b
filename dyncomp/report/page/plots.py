"""The pictures of the page: SVG by matplotlib, through its objects (never pyplot), in the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .machine import Machine
from .steps import GraphFacts, StepFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that stand for the page's own, which depend on whether it is light or dark.
_INK, _FAINT, _GRID, _FIRST, _SECOND = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES = {
    _INK: "var(--ink)",
    _FAINT: "var(--faint)",
    _GRID: "var(--line)",
    _FIRST: "var(--accent)",
    _SECOND: "var(--accent-2)",
}
_MOST_LABELS = 16
_WIDTH, _HEIGHT = 8.6, 4.2


def roofline(machine: Machine, steps: Sequence[StepFacts]) -> str:
    """Kernels by flops per byte and flops per second, below what the machine can do; empty without any."""
    points = [s for s in steps if s.intensity is not None and s.seconds]
    if not points:
        return ""
    figure, axes = _figure(_HEIGHT)
    speeds = [s.work.flops / s.seconds * 1e-9 for s in points if s.seconds]
    intensities = [s.intensity or 0.0 for s in points]
    ridge = max(machine.flops.values()) / machine.bandwidth
    low, high = min(0.05, *intensities) / 2, max(ridge * 4, *intensities) * 2
    for dtype, flops in machine.flops.items():
        corner = flops / machine.bandwidth
        top = flops * 1e-9
        axes.plot([low, corner, high], [low * machine.bandwidth * 1e-9, top, top], color=_INK, lw=1.1)
        axes.annotate(
            f"{dtype} {top:,.0f} Gflop/s", (high, top), (-3, 3), textcoords="offset points", ha="right",
            fontsize=8, color=_INK,
        )  # fmt: skip
    slope = f"memory {machine.bandwidth * 1e-9:,.0f} GB/s"
    at = (low * 1.3, low * 1.3 * machine.bandwidth * 1e-9)
    axes.annotate(slope, at, (2, -12), textcoords="offset points", fontsize=8, color=_INK)
    share = sum(s.total or 0.0 for s in points) or 1.0
    sizes = [24 + 400 * (s.total or 0.0) / share for s in points]
    axes.scatter(
        intensities, speeds, s=sizes, color=_FIRST, alpha=0.55, linewidths=0.8, edgecolors=_FIRST, zorder=3
    )
    slowest = sorted(zip(points, intensities, speeds), key=lambda point: -(point[0].total or 0.0))
    for step, x, y in slowest[:_MOST_LABELS]:
        mark = str(step.mark)
        axes.annotate(mark, (x, y), (7, 5), textcoords="offset points", fontsize=8, color=_INK, weight="bold")
    axes.set(xscale="log", yscale="log", xlim=(low, high))
    axes.set_ylim(
        min(min(speeds), low * machine.bandwidth * 1e-9) / 2,
        max(*machine.flops.values(), max(speeds) * 1e9) * 2.5e-9,
    )
    axes.set_xlabel("flops per byte moved", color=_INK)
    axes.set_ylabel("Gflop/s", color=_INK)
    return _svg(figure)


def memory(graph: GraphFacts) -> str:
    """Bytes of temporaries alive in each step, and the arena's size; empty without temporaries."""
    if not graph.arena or not graph.memory:
        return ""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure(2.6)
    unit, name = _unit(max(graph.arena, *graph.memory))
    edges = [number - 0.5 for number in range(len(graph.memory) + 1)]
    axes.stairs([size / unit for size in graph.memory], edges, fill=True, color=_FIRST, alpha=0.35)
    axes.stairs([size / unit for size in graph.memory], edges, color=_FIRST, lw=1.1)
    axes.axhline(graph.arena / unit, color=_SECOND, lw=1, ls="--")
    axes.annotate("arena", (edges[-1], graph.arena / unit), (-3, 3), textcoords="offset points", ha="right",
                  fontsize=8, color=_SECOND)  # fmt: skip
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, max(graph.arena, *graph.memory) / unit * 1.18)
    axes.set_xlabel("step", color=_INK)
    axes.set_ylabel(f"{name} alive", color=_INK)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return _svg(figure)


def _unit(size: float) -> tuple[int, str]:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return unit, name
    return 1, "bytes"


def _figure(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    figure.patch.set_visible(False)
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    axes.grid(True, color=_GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=_FAINT, labelsize=8)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_FAINT)
    return figure, axes


def _svg(figure: Figure) -> str:
    """The picture to stand in a page: text as text, no header, sizes as the page has them."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.StringIO()
    with matplotlib.rc_context(
        {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "dyncomp"}
    ):
        FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(
        r'(<svg [^>]*?)width="[^"]*" height="[^"]*"|(<svg [^>]*?)height="[^"]*"', _unsized, text, count=1
    )
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    return re.sub("|".join(_VARIABLES), lambda found: _VARIABLES[found[0]], text)


def _unsized(found: re.Match[str]) -> str:
    return found[1] or found[2]
