"""Questions about the memory of arrays: ``np.may_share_memory``, ``np.shares_memory``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.ir import Var
from ..breaks import Break
from ..guards.fact_kinds import NoOverlap
from ..guards.guard import Kind
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.number import ConstValue
from .registry import builtin


@builtin(np.may_share_memory, np.shares_memory)
def _may_share_memory(tracer: Tracer, a: Value, b: Value, /, max_work: Value | None = None) -> Value:
    """Of arrays that are not views of one another this is known: what a graph makes is new, and that two
    arrays from outside do not overlap is guarded."""
    first, second = _root(tracer, a), _root(tracer, b)
    if first == second:
        raise Break("unsupported-call", "whether two views of one array share memory")
    outside = [tracer.input_objects.get(var.name) for var in (first, second)]
    if all(obj is not None for obj in outside):
        _guard_disjoint(tracer, first, second, outside)
    return ConstValue(False)


def _root(tracer: Tracer, value: Value) -> Var:
    """The array whose memory a traced array shows."""
    if not isinstance(value, ArrayValue) or value.ref.kind != "array" or value.ref.frontend != "numpy":
        raise Break("unsupported-call", f"whether {value.describe()} shares memory")
    ref = value.ref
    while ref.part is not None:
        ref = ref.part[0]
    var = ref.var
    made = {out.name: node for node in tracer.builder.nodes for out in node.outputs}
    while var.name in made and _shows_its_input(tracer, made[var.name].op):
        var = made[var.name].inputs[0]
    return var


def _shows_its_input(tracer: Tracer, op: str) -> bool:
    """Whether NumPy gives a view; of complex numbers' parts the graph has a copy."""
    return op in ("real", "imag") or tracer.config.table[op].is_view


def _guard_disjoint(tracer: Tracer, first: Var, second: Var, objects: list[Any]) -> None:
    sources = [_source(tracer, var) for var in (first, second)]
    if None in sources or np.may_share_memory(*objects):
        raise Break("unsupported-call", "whether two arguments share memory")
    tracer.guard(None, Kind.NO_OVERLAP, NoOverlap(tuple(sources), (0,)))


def _source(tracer: Tracer, var: Var) -> Any:
    found = [v.source for v in tracer.inputs if isinstance(v, ArrayValue) and v.ref.var == var]
    return found[0] if found else None
