"""``dyncomp breaks``: what a graph break means, and what to do about it."""

from __future__ import annotations

import difflib
from dataclasses import asdict

from ..capture.breaks import BREAKS
from .answers import Answer, text_table


def explain(break_id: str | None) -> Answer:
    """One break, by the id that reports and errors name it by; all of them where none is asked for."""
    if break_id is None:
        every = [asdict(kind) for kind in BREAKS.values()]
        rows = [("id", "what to do"), *((kind.id, kind.hint) for kind in BREAKS.values())]
        return Answer({"breaks": every}, [*text_table(rows), "", "More: dyncomp breaks ID"])
    kind = BREAKS.get(break_id)
    if kind is None:
        close = difflib.get_close_matches(break_id, BREAKS, n=1)
        problem = f"there is no graph break {break_id!r}" + (f"; did you mean {close[0]}?" if close else "")
        return Answer({"error": problem}, [problem], good=False)
    return Answer(asdict(kind), [kind.id, "", kind.explanation, "", f"What to do: {kind.hint}"])
