"""How the runtime cuts a product or convolution, where that was measured: what there is to choose from.

The bits of a result depend on none of the sizes; those of a convolution may depend on its ``way``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ...dataclass import dataclass

# Ways of a convolution (``kWay...`` in ``runtime/csrc/abi.h``).
PLAIN, BY_WINDOWS, BY_SHIFTS = 1, 2, 3
# Columns of a vector of 64 bytes, by the size of an element.
_LINE = 64


@dataclass(frozen=True, slots=True)
class Tiling:
    """``vectors`` of a register tile; ``panels`` (of tiles' width), ``rows`` and ``terms`` worked on in one
    go; ``way`` of a convolution. 0: as the runtime would."""

    vectors: int = 0
    panels: int = 0
    rows: int = 0
    terms: int = 0
    way: int = 0

    def describe(self) -> str:
        """The text that :func:`parse` reads: ``"2 vectors, 128 terms"``."""
        given = [(getattr(self, f.name), f.name) for f in fields(self)]
        return ", ".join(f"{value} {name}" for value, name in given if value) or "usual"


USUAL = Tiling()


def parse(text: str) -> Tiling | None:
    """The tiling that ``text`` describes; ``None`` for other texts."""
    if text == USUAL.describe():
        return USUAL
    names = {f.name for f in fields(Tiling)}
    values: dict[str, int] = {}
    for part in text.split(", "):
        value, _, name = part.partition(" ")
        if name not in names or not value.isdecimal() or len(value) > 9:
            return None
        values[name] = int(value)
    return Tiling(**values)


def steps_of(m: int, n: int, k: int, itemsize: int, convolves: bool) -> Iterator[tuple[Tiling, ...]]:
    """What to try one after another for a product of these sizes: each a few values of one field (the others
    0), to be put upon the best so far."""
    width = _LINE // itemsize
    wide = -(-n // width)
    if convolves:
        yield tuple(Tiling(way=way) for way in (PLAIN, BY_WINDOWS, BY_SHIFTS))
    yield tuple(Tiling(terms=terms) for terms in (128, 192, 256, 384) if 3 * terms <= 2 * k)
    yield tuple(Tiling(vectors=vectors) for vectors in (1, 2, 3) if vectors < wide)
    yield tuple(Tiling(panels=panels) for panels in (1, 2, 4, 8, 16) if 4 * panels < wide)
    yield tuple(Tiling(rows=rows) for rows in (48, 96, 192) if 2 * rows <= m)


def upon(base: Tiling, step: Tiling) -> Tiling:
    """``base`` with what ``step`` says."""
    return Tiling(*(getattr(step, f.name) or getattr(base, f.name) for f in fields(base)))
