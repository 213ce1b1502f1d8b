"""What was captured: whether it is worth compiling."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from ...python_code.flow import reachable
from ..breaks import Skip
from ..replacement.loop_driver import known_body
from ..terminators import BreakEnd, End, LoopEnd, PlainEnd, ReturnEnd
from . import no_array_work
from .cost_model import is_worth_a_call

if TYPE_CHECKING:
    from ..replacement.codegen import Codegen
    from ..tracer import Tracer

# breaks at which Python functions run that the frame hook may capture
_CALLS_PYTHON = ("inline-refused", "generator", "disabled")
_PROSPECTS = frozenset({"CALL", "BINARY_OP", "BINARY_SUBSCR", "CALL_FUNCTION_EX", "FOR_ITER"})


class PlainRecursion(Skip):
    """A function that calls itself and works on no arrays."""


def refuse_idle(tracer: Tracer, end: End, function: types.FunctionType, args: tuple[Any, ...]) -> None:
    """Raise ``Skip`` for what is better run as it is: recursive functions of numbers, and code that breaks
    again and again with no array work between."""
    if isinstance(end, ReturnEnd) or tracer.builder.nodes or tracer.config.options.capture_plain:
        return
    if _is_plain_recursion(tracer, end, function, args):
        raise PlainRecursion("a recursive function, in two forms of which there was no array operation")
    if isinstance(end, LoopEnd):
        body = known_body(tracer.config, end.frames[-1], end.loop)
        if end.is_native:
            return
        if body is not None and tracer.config.is_plain_body(body.code) and not _has_array_prospect(end):
            raise Skip("no array operation in a loop nor after it")
        return
    if not _has_array_prospect(end):
        reason = end.problem.reason if isinstance(end, BreakEnd) else end.reason
        raise Skip(f"no array operation before or after the graph break: {reason}", calls_python(end))


def _is_plain_recursion(
    tracer: Tracer, end: End, function: types.FunctionType, args: tuple[Any, ...]
) -> bool:
    """Whether a function of numbers calls itself for the second form at least, with no array work in any of
    them: what is between its calls takes longer in pieces than as it is."""
    if not isinstance(end, BreakEnd) or end.problem.break_id != "inline-refused":
        return False
    code, config = tracer.code, tracer.config
    calls_itself = sum(frame.raw_code is code for frame in end.frames) > 1
    state = config.state_of(code)
    alone = calls_itself and not state.graphs and state.captures > 1
    return alone and no_array_work.works_on_numbers(function, args, config)


def _has_array_prospect(end: End) -> bool:
    """Whether what follows a break may still hold work worth capturing: some call, operator or loop."""
    if isinstance(end, (PlainEnd, ReturnEnd)):
        return False
    frames = end.frames
    total = 0
    for frame in frames:
        start = frame.current + 1
        if isinstance(end, LoopEnd) and frame is frames[-1]:
            start = max(end.loop.body) + 1
        instructions = frame.code.instructions
        rest = [index for index in reachable(frame.code, frame.start) if index >= start]
        total += sum(instructions[index].op in _PROSPECTS for index in rest)
    return total > 1


def is_worth_compiling(tracer: Tracer, end: End, cg: Codegen) -> bool:
    """Whether compiled code is quicker than plain Python, so far as this can be said: of what is in loops."""
    config = tracer.config
    nodes = tracer.builder.nodes
    if config.options.capture_plain:
        return True
    if calls_python(end):
        worth = True
    elif config.options.small_loops or cg.owner() is not None:
        worth = bool(nodes) or not isinstance(end, ReturnEnd)
    else:
        worth = is_worth_a_call(nodes, len(cg.outputs), config.table)
    if worth:
        config.note_array_work(tracer.code)
    elif not isinstance(end, ReturnEnd):
        config.note_called(tracer.code, [frame.raw_code for frame in end.frames[1:]])
    return worth or not config.bodies_around(tracer.code)


def calls_python(end: End) -> bool:
    """Whether the instruction that breaks the graph calls code that the hook may capture."""
    return isinstance(end, BreakEnd) and end.problem.break_id in _CALLS_PYTHON
