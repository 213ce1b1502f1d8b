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
from ...frontends.base import Called, Frontend, TraceContext
from ...graph.ir import GraphBuilder, Loc, Var
from ...prims.opdef import Marker
from ...prims.rounding import is_as_librarys
from ..breaks import Break
from ..values.base import Tracer


class CheckedBuilder(GraphBuilder):
    """Takes nodes that may round otherwise than a library from rules only, which :func:`checked` looks at."""

    in_rule = False

    def emit(self, op: str, *inputs: Var, loc: Loc | None = None, **params: object) -> Any:
        made = super().emit(op, *inputs, loc=loc, **params)
        last = self.nodes[-1:]
        if not self.in_rule and not is_as_librarys(last, self.table, "") and not _is_derived(self):
            del self.nodes[-1:]
            raise Break("strict-numerics", f"{op} outside of a library's function")
        return made


def checked(
    tracer: Tracer, frontend: Frontend, called: Called, rule: Callable[..., Any]
) -> Callable[..., Any]:
    """``rule`` with its nodes, or with a node that calls what was ``called``."""
    builder, table = tracer.builder, tracer.config.table
    assert isinstance(builder, CheckedBuilder)

    @functools.wraps(rule)  # what is known of arguments is told by the rule's names for them
    def run(tx: TraceContext, *args: Any, **kwargs: Any) -> Any:
        start, draws, sums = len(builder.nodes), tx.changes(), tx.sums
        before, builder.in_rule = builder.in_rule, True
        try:
            result = rule(tx, *args, **kwargs)
            made = builder.nodes[start:]
            exact = tx.sums == sums and is_as_librarys(made, table, frontend.name)
            if exact or _is_derived(builder):
                return result
            if tx.changes() != draws:
                raise Unsupported("random numbers that are rounded", break_id="strict-numerics")
            del builder.nodes[start:]
            return frontend.call_whole(tx, called, args, kwargs, result, made)
        finally:
            builder.in_rule = before

    return run


def _is_derived(builder: CheckedBuilder) -> bool:
    """Whether dyncomp's own derivatives or batches are taken, of which no library says what they are."""
    return any(isinstance(getattr(builder.table.get(n.op), "lower", None), Marker) for n in builder.nodes)
