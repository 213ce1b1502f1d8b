"""How the loops of kernels are written, where that was measured (``inductor.tuning.autotune``). No bit of a
result depends on it."""

from __future__ import annotations

from ...dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Knobs:
    """``streams``: stores go past the caches, or not; ``staged``: what is read across its rows is turned
    in tiles (in registers, past the caches), or not; ``None``: as much as memory is touched says. ``side``:
    bytes along each side of such a tile; ``block``: elements along each side of the blocks that are walked
    without one; ``rows``: rows added to accumulators at once; ``strip``: elements of a loop that are tested,
    or asked for, before they are used; 0: as usual."""

    streams: bool | None = None
    staged: bool | None = None
    side: int = 0
    block: int = 0
    rows: int = 0
    strip: int = 0


USUAL = Knobs()
