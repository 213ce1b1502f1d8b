"""Values that captured code made leaves of the library's derivatives, or that depend on such ones only.

Outside they would need a history that leads to these. Where one is needed there the attempt begins again, and
leaves are made in plain Python.
"""

from __future__ import annotations

from ...frontends.base import ArrayRef
from ..breaks import Break, Skip
from ..values.base import Tracer

_REASON = "a tensor that requires a gradient by what captured code made a leaf is needed outside"


def refuse_history(tracer: Tracer, ref: ArrayRef) -> None:
    """Begin again where ``ref`` has such a history."""
    if not tracer.builder.leaves or not tracer.frontend(ref).stays_inside(tracer.tx, ref):
        return
    places = [place for place in tracer.leaf_origins if place not in tracer.decisions.breaks]
    if not places:
        raise Skip(_REASON)
    for place in places:
        tracer.decisions.breaks[place] = Break("unsupported-call", _REASON)
    raise tracer.restart
