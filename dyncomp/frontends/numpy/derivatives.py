"""Rules of what ``dyncomp.grad`` and its like are made of (``frontends/derivatives.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dtypes import complex128, float64
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.markers import GRADIENT, TANGENT
from ...prims.pointwise.partials import in_sizes_of
from .. import derivatives
from ..base import ArrayRef, Rule, TraceContext
from .numpy_rules import RuleTable
from .operands import array_of, constant, convert, emit, fill, literal

TABLE = RuleTable()


def _rule_of(function: Callable[..., Any]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        TABLE.functions[function] = rule
        return rule

    return register


def _value(tx: TraceContext, value: object) -> Var | None:
    """The graph's value of an array or number of a floating-point type."""
    if isinstance(value, ArrayRef):
        plain = value.frontend == "numpy" and value.mask is None
        return value.var if plain and value.dtype.is_inexact else None
    if isinstance(value, (np.ndarray, np.generic)):
        return literal(tx, np.asarray(value)) if value.dtype.kind in "fc" else None
    if type(value) is float or type(value) is complex:
        return constant(tx, value, float64 if type(value) is float else complex128)
    return None


def _need(tx: TraceContext, value: object) -> Var:
    found = _value(tx, value)
    if found is None:
        raise Unsupported("a derivative of, or by, what is no floating-point number")
    return found


@_rule_of(derivatives.is_variable)
def is_variable(tx: TraceContext, value: object) -> bool:
    if isinstance(value, ArrayRef):
        return value.dtype.is_inexact
    dtype = getattr(value, "dtype", None)
    return type(value) in (float, complex) or (isinstance(dtype, np.dtype) and dtype.kind in "fc")


@_rule_of(derivatives.variable)
def variable(tx: TraceContext, value: object) -> ArrayRef:
    return array_of(emit(tx, "copy", _need(tx, value)))


def _like(tx: TraceContext, given: object, value: Var) -> Var:
    """A cotangent or tangent as the value is."""
    if given is None or isinstance(given, (int, float)):
        return fill(tx, value.shape, given or 0, value.dtype)
    made = given.var if isinstance(given, ArrayRef) else literal(tx, np.asarray(given))
    if len(made.shape) != len(value.shape) or not all(a == b for a, b in zip(made.shape, value.shape)):
        raise ValueError(f"a cotangent or tangent of shape {made.shape} for a value of shape {value.shape}")
    return convert(tx, in_sizes_of(tx.ops, made, value), value.dtype)


def _marker(tx: TraceContext, name: str, outputs: int, *groups: Sequence[Var]) -> tuple[ArrayRef, ...]:
    inputs = [var for group in groups for var in group]
    return tuple(array_of(var) for var in emit(tx, name, *inputs, outputs=outputs))


@_rule_of(derivatives.gradient)
def gradient(
    tx: TraceContext, values: Sequence[object], cotangents: Sequence[object], variables: Sequence[object]
) -> tuple[ArrayRef, ...]:
    found = [_need(tx, value) for value in values]
    given = [_like(tx, ct, value) for ct, value in zip(cotangents, found, strict=True)]
    by = [_need(tx, v) for v in variables]
    return _marker(tx, GRADIENT, len(found), found, given, by)


@_rule_of(derivatives.tangent)
def tangent(
    tx: TraceContext, values: Sequence[object], tangents: Sequence[object], variables: Sequence[object]
) -> tuple[ArrayRef, ...]:
    found = [_need(tx, value) for value in values]
    by = [_need(tx, v) for v in variables]
    given = [_like(tx, t, v) for t, v in zip(tangents, by, strict=True)]
    return _marker(tx, TANGENT, len(found), found, given, by)


@_rule_of(derivatives.stand_in)
def stand_in(tx: TraceContext, value: object) -> ArrayRef:
    like = _need(tx, value)
    return array_of(fill(tx, like.shape, 0, like.dtype))


@_rule_of(derivatives.custom_gradient)
def custom_gradient(
    tx: TraceContext,
    values: Sequence[object],
    stand_ins: Sequence[object],
    gradients: Sequence[object],
    arguments: Sequence[object],
) -> tuple[ArrayRef, ...]:
    found, given = [_need(tx, v) for v in values], [_need(tx, v) for v in stand_ins]
    by = [_need(tx, v) for v in arguments]
    made = [_like(tx, g, v) for g, v in zip(gradients, by, strict=True)]
    return _marker(tx, "custom_gradient", len(found), found, given, made, by)


@_rule_of(derivatives.checkpoint_begin)
def checkpoint_begin(tx: TraceContext) -> int:
    number = len(tx.builder.nodes)
    emit(tx, "checkpoint_begin", number=number)
    return number


@_rule_of(derivatives.checkpoint_end)
def checkpoint_end(tx: TraceContext, values: Sequence[object], number: int) -> tuple[ArrayRef, ...]:
    found = [_need(tx, v) for v in values]
    return tuple(array_of(v) for v in emit(tx, "checkpoint_end", *found, number=number))


@_rule_of(derivatives.stop_gradient)
def stop_gradient(tx: TraceContext, x: Any) -> Any:
    if not isinstance(x, ArrayRef) or x.frontend != "numpy" or not x.dtype.is_inexact or x.mask is not None:
        return x
    return ArrayRef(emit(tx, "stop_gradient", x.var), x.kind, readonly=x.readonly)
