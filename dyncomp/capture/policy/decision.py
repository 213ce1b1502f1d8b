"""What is decided about a call that no entry serves."""

from __future__ import annotations

import enum

from ...dataclass import dataclass
from ...hook import _hook

# the order in which entries are tried
RANK_COMPLETE, RANK_BROKEN, RANK_ORIGINAL = range(3)


class Until(enum.Enum):
    """How long the original runs."""

    NEXT_CALL = "the next call that no entry serves is decided anew"
    IT_RAN_LONG = "as NEXT_CALL, and C adds up how long calls take (patience)"
    OTHER_TYPES = "for arguments of the types that the entry's guards say"
    OTHER_INPUTS = "for inputs like these, as far as capture looked at them"
    AN_ENTRY_SERVES = "no more entries are made; those that there are go on"
    FOREVER = "without a look at guards"


@dataclass(frozen=True)
class Compile:
    """Capture and compile. ``missed``: the guard that failed, in words; empty at the first capture."""

    missed: str = ""


@dataclass(frozen=True)
class Plain:
    """Run the original. ``reason``: for ``explain()``, empty where it is no news; ``entry``: what C is given,
    where the decision made one; ``calls``: whether functions that the original calls may be captured."""

    reason: str
    until: Until
    entry: _hook.Entry | None = None
    calls: bool = False
