"""Comparisons of drawn fractions with numbers that all of them are below, or none is: where ``layerdrop`` is
0, ``torch.rand([]) < layerdrop`` leaves out no layer, nor does ``random.random() < layerdrop``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.ir import Var
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.drawn import DrawnArrayValue, DrawnNumber
from ..values.number import ConstValue, NumberValue
from .constant_elements import number_of

_LEAST, _LARGEST = 0.0, math.nextafter(1.0, 0.0)

# the middle of the template of a comparison that ``NumberValue`` is
_ORDERS: dict[object, Callable[[Any, Any], Any]] = {
    " < ": operator.lt,
    " <= ": operator.le,
    " > ": operator.gt,
    " >= ": operator.ge,
}


def truth_of_comparison(tracer: Tracer, value: Value) -> bool | None:
    """What a value is for all fractions, from 0 to below 1, if it says which of two numbers is larger;
    ``None`` where that differs."""
    if isinstance(value, ArrayValue):
        return _of_array(tracer, value.ref.var)
    return _of_number(value) if isinstance(value, NumberValue) else None


def _of_number(value: NumberValue) -> bool | None:
    compare = _ORDERS.get(value.parts[2]) if len(value.parts) == 5 else None
    if compare is None:
        return None
    operands = (value.parts[1], value.parts[3])
    drawn = [isinstance(part, NumberValue) and _is_drawn_fraction(part) for part in operands]
    if sum(drawn) != 1:
        return None
    other = operands[drawn.index(False)]
    if not isinstance(other, ConstValue) or type(other.value) not in (int, float):
        return None
    return _same_at_both_ends(drawn, other.value, compare)


def _is_drawn_fraction(number: NumberValue) -> bool:
    part = number.parts[0] if len(number.parts) == 1 else None
    return isinstance(part, DrawnNumber) and part.draw.is_fraction


def _of_array(tracer: Tracer, var: Var) -> bool | None:
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
    return _same_at_both_ends(drawn, number, lambda a, b: compare(np.float64(a), np.float64(b)))


def _same_at_both_ends(drawn: list[bool], number: Any, compare: Callable[[Any, Any], Any]) -> bool | None:
    # with larger fractions the answer changes once, if it does
    ends = ([end if d else number for d in drawn] for end in (_LEAST, _LARGEST))
    first, last = (bool(compare(*operands)) for operands in ends)
    return first if first == last else None


def _is_fraction(tracer: Tracer, var: Var) -> bool:
    drawn = (v for v in tracer.inputs if isinstance(v, DrawnArrayValue))
    return any(v.ref.var is var and v.draw.is_fraction for v in drawn)
