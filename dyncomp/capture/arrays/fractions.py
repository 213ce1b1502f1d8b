"""Comparisons of drawn fractions with numbers that all of them are below, or none is: where ``layerdrop`` is
0, ``torch.rand([]) < layerdrop`` leaves out no layer."""

from __future__ import annotations

import math

import numpy as np

from ...graph.ir import Var
from ..values.base import Tracer
from ..values.drawn import DrawnArrayValue
from .constant_elements import number_of

_LEAST, _LARGEST = 0.0, math.nextafter(1.0, 0.0)


def truth_of_comparison(tracer: Tracer, var: Var) -> bool | None:
    """What ``var`` is for all fractions, from 0 to below 1, if it says which of two numbers is larger;
    ``None`` where that differs."""
    node = tracer.builder.producer(var)
    if node is None or not node.op.startswith(("less", "greater")):
        return None
    drawn = [_is_fraction(tracer, v) for v in node.inputs]
    if sum(drawn) != 1:
        return None
    number = number_of(tracer, node.inputs[drawn.index(False)])
    if number is None:
        return None
    compare = tracer.config.table[node.op].ref
    # with larger fractions the answer changes once, if it does
    ends = ([np.float64(end if d else number) for d in drawn] for end in (_LEAST, _LARGEST))
    first, last = (bool(compare(*operands)) for operands in ends)
    return first if first == last else None


def _is_fraction(tracer: Tracer, var: Var) -> bool:
    drawn = (v for v in tracer.inputs if isinstance(v, DrawnArrayValue))
    return any(v.ref.var is var and v.draw.is_fraction for v in drawn)
