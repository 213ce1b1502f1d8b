"""The functions and regions by which programs talk to capture (``regions.py``), while it runs."""

from __future__ import annotations

from ..breaks import Break
from ..environment import regions
from ..policy.stance import set_stance
from ..values.base import Tracer, Value
from ..values.context_variable import ContextVariableState
from ..values.number import ConstValue
from ..values.region import RegionContextValue
from .registry import NONE, builtin


@builtin(regions.graph_break)
def _graph_break(tracer: Tracer, message: Value | None = None) -> Value:
    text = "" if message is None else str(tracer.constant_of(message, "the message of a graph break"))
    raise Break("graph-break", text or "dyncomp.graph_break() was called")


@builtin(regions.is_compiling)
def _is_compiling(tracer: Tracer) -> Value:
    return ConstValue(True)


@builtin(regions.changes_begin)
def _changes_begin(tracer: Tracer) -> Value:
    return ConstValue(_changes(tracer))


@builtin(regions.changes_end)
def _changes_end(tracer: Tracer, begun: Value) -> Value:
    if tracer.constant_of(begun, "the changes of a thread") != _changes(tracer):
        raise Break("unsupported-call", "a task changes context variables or modes")
    return NONE


def _changes(tracer: Tracer) -> tuple[int, ...]:
    """Names for what the thread has set and not set back."""
    states = [state for state in tracer.states.values() if isinstance(state, ContextVariableState)]
    tokens = [id(token) for state in states for token in state.pending]
    return (*tokens, *(id(made) for made in tracer.modes_set.values()))


@builtin(regions.error_on_graph_break)
def _error_on_graph_break(tracer: Tracer, enabled: Value | None = None) -> Value:
    flag = True if enabled is None else tracer.constant_of(enabled, "the argument of error_on_graph_break")
    if not isinstance(flag, bool):
        raise Break("would-raise", f"error_on_graph_break of {type(flag).__name__}")
    return RegionContextValue(flag)


@builtin(regions.error_on_graph_break.__exit__)
def _leave_region(tracer: Tracer, *args: Value) -> Value:
    # the region was entered in plain Python, before a graph break inside it: so is it left
    raise Break("with-block", "a region of error_on_graph_break ends")


@builtin(set_stance)
def _set_stance(tracer: Tracer, stance: Value) -> Value:
    raise Break("unsupported-call", "set_stance() changes what calls do")
