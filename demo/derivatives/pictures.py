"""Pictures of the examples, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#2a6fbb", "#d9662b", "#666666"
_STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
    "svg.hashsalt": "dyncomp",  # the same file each time
}


def axes_side_by_side(widths: Sequence[float], height: float = 3.6) -> tuple[Figure, Any]:
    """A figure without a window, and its axes from left to right."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(sum(widths), height))
        return figure, figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """The files written: ``NAME.png`` and ``NAME.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    for path in paths:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths
