"""Views with a gradient whose sizes depend on the data: the reverse mode of a library makes views from sizes
that are known before the call. Where one is needed outside the attempt begins again, and it is made in plain
Python.
"""

from __future__ import annotations

from ...frontends.base import ArrayRef
from ...symbolic.integers import is_unbacked
from ..breaks import Break, Skip
from ..values.base import Tracer

_REASON = "a view with a gradient, of a size that depends on the data, is needed outside"


def is_sized_by_data(ref: ArrayRef) -> bool:
    return any(map(is_unbacked, (*ref.shape, *ref.strides)))


def refuse_sized_view(tracer: Tracer, ref: ArrayRef) -> None:
    """Begin again where ``ref`` is such a view."""
    if not is_sized_by_data(ref) or tracer.builder.root(ref.var) is ref.var:
        return
    if not tracer.frontend(ref).requires_gradient(tracer.tx, ref):
        return
    origin = tracer.part_origins.get(ref.var.name)
    if origin is None or origin in tracer.decisions.breaks:
        raise Skip(_REASON)
    tracer.decisions.breaks[origin] = Break("data-dependent-shape", _REASON)
    raise tracer.restart
