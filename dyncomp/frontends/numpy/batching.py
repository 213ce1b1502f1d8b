"""Rules of what ``dyncomp.vmap`` is made of (``frontends/batching.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...dtypes import bool_, complex128, float64, int64
from ...errors import Unsupported
from ...graph.ir import COPY, Var
from ...symbolic.integers import Dim, SymInt
from .. import batching
from ..base import ArrayRef, Rule, TraceContext, memory_of
from .numpy_rules import RuleTable
from .operands import array_of, constant, emit, literal, value_of

TABLE = RuleTable()
_NUMBERS = {bool: bool_, int: int64, float: float64, complex: complex128}


def _rule_of(function: Callable[..., object]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        TABLE.functions[function] = rule
        return rule

    return register


def _value(tx: TraceContext, value: object) -> Var:
    """The graph's value of an array or number."""
    if isinstance(value, ArrayRef) and value.frontend == "numpy" and value.mask is None:
        return value.var
    if isinstance(value, (np.ndarray, np.generic)):
        return literal(tx, np.asarray(value))
    if isinstance(value, SymInt):
        made: Var = emit(tx, "symint", expr=value, dtype=int64)
        return made
    if type(value) in _NUMBERS:
        return constant(tx, value, _NUMBERS[type(value)])
    raise Unsupported("a result under vmap whose size depends on the data, or that is no array of NumPy's")


@_rule_of(batching.element)
def element(tx: TraceContext, whole: object) -> ArrayRef:
    return value_of(emit(tx, "element", _value(tx, whole)))


@_rule_of(batching.batch)
def batch(
    tx: TraceContext, values: Sequence[object], elements: Sequence[object], size: Dim
) -> tuple[ArrayRef, ...]:
    inputs = [_value(tx, value) for value in (*values, *elements)]
    _refuse_writes_outside(tx, inputs[len(values)].name)
    return tuple(array_of(var) for var in emit(tx, "batch", *inputs, outputs=len(values), size=size))


def _refuse_writes_outside(tx: TraceContext, first: str) -> None:
    """What is the same for all elements of a batch is not written for each: arrays that were there before the
    first element was."""
    nodes = tx.builder.nodes
    start = next(k for k, node in enumerate(nodes) if any(v.name == first for v in node.outputs))
    inside = {v.name for node in nodes[start:] for v in node.outputs}
    for node in nodes[start:]:
        if node.op == COPY and memory_of(tx.builder, node.inputs[0]) not in inside:
            raise Unsupported(f"a write at {node.loc} into an array that is the same for the whole batch")
