"""``numerics="strict"``: what a library may round otherwise than generated code is the library's to compute.

A rule's nodes stay where their rows say that they are the library's result to the last bit
(``prims/rounding.py``). Else they are taken back, and what they told of the result (sizes, types) describes
one node that calls the library's function as the program does, on arrays as they lie in memory. Where a
library's frontend has no such node, the graph breaks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...errors import Unsupported
from ...frontends import batching, derivatives
from ...frontends.base import STRICT, ArrayRef, Called, Frontend, TraceContext
from ...graph.ir import GraphBuilder, Loc, Node, OpTable, Var
from ...prims.opdef import Marker
from ...prims.rounding import is_as_librarys
from ...symbolic.integers import ShapeEnv
from ..breaks import Break
from ..values.base import Tracer


class CheckedBuilder(GraphBuilder):
    """Takes nodes that may round otherwise than a library from rules only, which :func:`checked` looks at.
    ``opened``: names of the variables of derivatives that dyncomp takes, and of elements of its batches. No
    library says what comes of these: their nodes stay as they are."""

    in_rule = False

    def __init__(self, table: OpTable, env: ShapeEnv) -> None:
        super().__init__(table, env)
        self.opened: set[str] = set()

    def emit(self, op: str, *inputs: Var, loc: Loc | None = None, **params: object) -> Any:
        made = super().emit(op, *inputs, loc=loc, **params)
        if not self.in_rule and not self.opened and not is_as_librarys(self.nodes[-1:], self.table, ""):
            del self.nodes[-1:]
            raise Break("unsupported-call", f"{op} of numbers, which may be rounded otherwise ({STRICT})")
        return made


def checked(
    tracer: Tracer, frontend: Frontend, called: Called, rule: Callable[..., Any]
) -> Callable[..., Any]:
    """``rule`` with its nodes, or with a node that calls what was ``called``."""
    builder = tracer.builder
    assert isinstance(builder, CheckedBuilder)

    @functools.wraps(rule)  # what is known of arguments is told by the rule's names for them
    def run(tx: TraceContext, *args: Any, **kwargs: Any) -> Any:
        start, draws, unsure = len(builder.nodes), tx.changes(), tx.unsure
        before, builder.in_rule = builder.in_rule, True
        try:
            result = rule(tx, *args, **kwargs)
            made = builder.nodes[start:]
            if called.function in _OPENING and isinstance(result, ArrayRef):
                builder.opened.add(result.var.name)
            builder.opened.difference_update(*(_closed(node, builder.table) for node in made))
            exact = tx.unsure == unsure and is_as_librarys(made, builder.table, frontend.name)
            if exact or builder.opened:
                return result
            if tx.changes() != draws:
                raise Unsupported(f"random numbers, which may be rounded otherwise ({STRICT})")
            del builder.nodes[start:]
            return frontend.call_whole(tx, called, args, kwargs, result, made)
        finally:
            builder.in_rule = before

    return run


_OPENING = (derivatives.variable, batching.element)


def _closed(node: Node, table: OpTable) -> set[str]:
    """The variables whose derivative a marker is, or elements whose batch."""
    lower = getattr(table.get(node.op), "lower", None)
    if not isinstance(lower, Marker):
        return set()
    count = lower.variables(len(node.inputs), **node.kwargs)
    return {var.name for var in node.inputs[len(node.inputs) - count :]}
