"""Names of generated functions after the user's: what dumps, reports and profilers (``perf``) show."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..graph.ir import GRADIENT_OF, Loc

MOST_NAMES = 3
MOST_CHARACTERS = 48
_ORIGIN = re.compile(rf"((?:{GRADIENT_OF})?\S+) at .*:\d+$")


def origin_of(loc: Loc) -> str:
    """A place of the program in words: ``softmax at path/a.py:12``."""
    before = GRADIENT_OF if is_of_gradient(loc) else ""
    function = loc.function.removeprefix(before).rpartition("<locals>.")[2]
    return f"{before}{function} at {loc}" if function and " " not in function else str(loc)


def is_of_gradient(loc: Loc) -> bool:
    """Whether what is there is the derivative of what is written there."""
    return loc.function.startswith(GRADIENT_OF)


def suffix_of(origin: Iterable[str]) -> str:
    """The user's functions as the end of an identifier, ``_softmax``; empty where none is known. ASCII
    letters, digits and underscores only. Lines are no part of it: code stays in the cache when it moves."""
    parts: dict[str, None] = {}
    for text in origin:
        found = _ORIGIN.match(text.partition("\n")[0])
        if found is not None:
            parts[re.sub(r"[^A-Za-z0-9]+", "_", found[1]).strip("_")] = None
    named = [name for name in parts if name][:MOST_NAMES]
    text = "_".join(named)[:MOST_CHARACTERS].rstrip("_")
    return f"_{text}" if text else ""
