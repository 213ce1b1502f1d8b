"""Comparisons of drawn fractions with numbers that all of them are below, or none is: where ``layerdrop`` is
0, ``torch.rand([]) < layerdrop`` leaves out no layer."""

from __future__ import annotations

from ...graph.ir import Var
from ..values.base import Tracer
from ..values.drawn import DrawnArrayValue
from .constant_elements import number_of

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def truth_of_comparison(tracer: Tracer, var: Var) -> bool | None:
    """What ``var``, a comparison, is for all fractions from 0 to below 1; ``None`` where that differs."""
    node = tracer.builder.producer(var)
    if node is None or node.op not in _MIRRORED:
        return None
    left, right = node.inputs
    if _is_fraction(tracer, left):
        op, number = node.op, number_of(tracer, right)
    elif _is_fraction(tracer, right):
        op, number = _MIRRORED[node.op], number_of(tracer, left)
    else:
        return None
    if number is None:
        return None
    if number >= 1:
        return op in ("less", "less_equal")
    if number < 0 or (number == 0 and op in ("less", "greater_equal")):
        return op in ("greater", "greater_equal")
    return None


def _is_fraction(tracer: Tracer, var: Var) -> bool:
    drawn = (v for v in tracer.inputs if isinstance(v, DrawnArrayValue))
    return any(v.ref.var is var and v.draw.is_fraction for v in drawn)
