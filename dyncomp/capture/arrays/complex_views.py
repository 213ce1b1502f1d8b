"""Views of the real or imaginary part of a complex array that leave the graph.

In the graph a part is a copy. The part itself is made anew from its array where compiled code needs it; a
view of it could not be: the attempt begins again, and the part is taken in plain Python.
"""

from __future__ import annotations

from ...frontends.base import ArrayRef, part_shown
from ..breaks import Break, Skip
from ..values.base import Tracer


def refuse_view(tracer: Tracer, ref: ArrayRef) -> None:
    """Begin again where ``ref`` is a view of a part."""
    if ref.kind != "array":
        return
    part = part_shown(tracer.builder, ref.var)
    if part is None:
        return
    origin = tracer.part_origins.get(part.name)
    problem = Break(
        "unsupported-attribute", "a view of the real or imaginary part of an array is needed outside"
    )
    if origin is None or origin in tracer.decisions.breaks:
        raise Skip(problem.reason)
    tracer.decisions.breaks[origin] = problem
    raise tracer.restart
