"""The forms of one graph among which ``mode="max-autotune"`` chooses, and what compiling one makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ...dataclass import dataclass
from ..fusion.epilogue import Chained, FusedProduct, Item, Prepared, RowGroup
from ..memory import MemoryPlan
from ..planning import Planned
from ..render.knobs import USUAL, Knobs
from .tiers import FirstBuild
from .tilings import Tiling

# How far products are joined with what is around them: in every way, tile by tile only, not at all.
ALL, TILES, NOTHING = "all", "tiles", "nothing"


@dataclass(frozen=True)
class Form:
    """One way to compile a graph.

    ``joined``: how far products are joined with the kernels around them (``ALL``, ``TILES``, ``NOTHING``).
    ``library``: the values (products and convolutions, by name) that a library makes; ``tilings``: how some
    that the runtime makes are cut. ``flags``: more flags
    of the compiler. ``inlined``: elementary functions are inlined, not called. ``serial``: kernels run on the
    calling thread. ``knobs``: how their loops are written."""

    joined: str = ALL
    library: frozenset[str] = frozenset()
    tilings: tuple[tuple[str, Tiling], ...] = ()
    flags: tuple[str, ...] = ()
    inlined: bool = False
    serial: bool = False
    knobs: Knobs = USUAL

    def describe(self) -> str:
        """What is not as in the default form, in words."""
        words = {
            "products and kernels joined tile by tile only": self.joined == TILES,
            "products and kernels apart": self.joined == NOTHING,
            f"{len(self.library)} products or convolutions by a library": bool(self.library),
            f"{len(self.tilings)} products or convolutions cut as measured": bool(self.tilings),
            "elementary functions inlined": self.inlined,
            "kernels on one thread": self.serial,
            f"loops with {self._knobs()}": self.knobs != USUAL,
            f"built with {' '.join(self.flags)}": bool(self.flags),
        }
        return ", ".join(text for text, holds in words.items() if holds) or "the default form"

    def _knobs(self) -> str:
        given = [(f.name, getattr(self.knobs, f.name), getattr(USUAL, f.name)) for f in fields(Knobs)]
        return ", ".join(f"{name} = {value}" for name, value, usual in given if value != usual)


DEFAULT = Form()


@dataclass(eq=False)
class Made:
    """A compiled form. ``source``: the C++ as it was built, ``generated``: as it was written; ``call``: what
    runs it."""

    form: Form
    items: list[Item]
    memory: MemoryPlan
    planned: Planned
    source: str
    generated: str
    call: Callable[..., Any]
    first: FirstBuild | None = None

    def is_same(self, other: Made) -> bool:
        """Whether the same code runs in the same steps."""
        same_cut = all(
            getattr(self.form, part) == getattr(other.form, part) for part in ("joined", "library", "tilings")
        )
        return same_cut and self.source == other.source and self.form.flags == other.form.flags


def joins_of(items: list[Item]) -> tuple[str, ...]:
    """The other ways to join the products of a graph that are different from joining all."""
    if any(isinstance(item, (Chained, RowGroup)) for item in items):
        return (TILES, NOTHING)
    return (NOTHING,) if any(isinstance(item, (FusedProduct, Prepared)) for item in items) else ()
