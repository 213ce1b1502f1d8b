"""How a capture ends: at a return, a break, a loop that is not unrolled, or in plain Python."""

from __future__ import annotations

import types

from ..dataclass import dataclass
from ..errors import GraphBreakError
from ..python_code.cells import in_place_of_cells
from ..python_code.instr import Instr
from ..python_code.loops import Loop
from .breaks import BREAKS, Break, Skip
from .control import recursion
from .control.exceptions import refuse_while_handling
from .environment.regions import is_captured_whole
from .frames import Frame
from .lifetimes.loop_variables import kept_problem
from .loops.idle_loops import LAYERS, MOST_LAYERS, goes_on_idle, unrolls_library
from .loops.scalar_loop_gates import is_native_loop
from .values.base import Tracer, Value


class TraceEnd(Exception):
    """The capture is complete; ``end`` says how."""

    def __init__(self, end: End) -> None:
        super().__init__()
        self.end = end


@dataclass(eq=False)
class ReturnEnd:
    """The root frame returned ``value``."""

    value: Value


@dataclass(eq=False)
class BreakEnd:
    """The innermost of ``frames`` cannot execute ``instr``; its stack is as before the instruction."""

    frames: list[Frame]
    instr: Instr
    problem: Break


@dataclass(eq=False)
class LoopEnd:
    """The innermost of ``frames`` is at the header of ``loop``, which is to be run iteration by iteration."""

    frames: list[Frame]
    loop: Loop
    is_native: bool = False  # it works on single numbers only, and is to be compiled as a whole
    inside: str = ""  # what breaks the graph inside, if that is why it is not unrolled


@dataclass(eq=False)
class PlainEnd:
    """The innermost of ``frames`` goes on as plain Python from where it is."""

    frames: list[Frame]
    reason: str


End = ReturnEnd | BreakEnd | LoopEnd | PlainEnd


# -- ends -----------------------------------------------------------------------------------------
def end_at_break(tracer: Tracer, frame: Frame, instr: Instr, problem: Break) -> None:
    """Turn a break into the end of the capture, or restart it with a decision under which the break can be
    resumed."""
    if tracer.frames[-1] is not frame:
        raise AssertionError("a break was caught by a frame that is not the innermost")
    if tracer.breaks_are_errors:
        place = (frame.raw_code, instr.index) if len(tracer.frames) == 1 else None
        raise GraphBreakError(_fullgraph_message(tracer, problem), problem.break_id, place)
    refuse_while_handling(tracer)
    check_outer_frames(tracer, frame, problem.reason)
    loop = frame.info.outermost_loop(instr.index)
    if loop is not None:
        _break_loop(tracer, frame, loop, problem.reason)
    problem.forget_frames()
    raise TraceEnd(BreakEnd(list(tracer.frames), instr, problem))


def _fullgraph_message(tracer: Tracer, problem: Break) -> str:
    kind = BREAKS[problem.break_id]
    stack = "".join(f"\n  at {f.loc} in {f.code.qualname}" for f in reversed(tracer.frames))
    return (
        f"{demand(tracer)}, but the graph breaks: [{problem.break_id}] {problem.reason}{stack}"
        f"\n  {kind.explanation}\n  hint: {kind.hint}\n  more: dyncomp breaks {problem.break_id}"
    )


def demand(tracer: Tracer) -> str:
    """Who asked for no graph breaks."""
    from_region = len(tracer.error_regions) > 1 or not tracer.config.options.fullgraph
    return "error_on_graph_break(True)" if from_region else "fullgraph=True"


def check_outer_frames(tracer: Tracer, innermost: Frame, reason: str) -> None:
    """Restart where a caller of the innermost frame could not be resumed: the call is then not inlined, or
    the caller's loop is broken at its header first."""
    frames = tracer.frames
    recursion.refuse_ends_inside(tracer)
    for position, frame in enumerate(frames[:-1]):
        callee = frames[position + 1]
        if not _can_be_resumed(frame, callee):
            _remember_refusals(tracer, reason)
            _restart(tracer, no_inline=((frame.raw_code, frame.current), reason))
        loop = frame.info.outermost_loop(frame.current)
        if loop is not None:
            _break_loop(tracer, frame, loop, reason)


def _can_be_resumed(caller: Frame, callee: Frame) -> bool:
    """Whether ``caller`` can go on behind its call of ``callee``."""
    resumption = callee.resumption
    if resumption is None or resumption.frame is not caller or is_captured_whole(callee.raw_code):
        return False
    return not caller.info.in_try[caller.current]


def _remember_refusals(tracer: Tracer, reason: str) -> None:
    """For the captures of the functions around the break, which would find the same."""
    if tracer.decisions.unknown_results:
        return  # they may be known then
    for caller, callee in zip(tracer.frames, tracer.frames[1:]):
        if not _can_be_resumed(caller, callee):
            start = tracer.frames[0].start
            tracer.config.refused_calls.note(
                caller.raw_code, caller.current, start, callee.raw_code, callee.arguments, reason
            )


def _break_loop(tracer: Tracer, frame: Frame, loop: Loop, inside: str) -> None:
    why = frame.loop_problem(loop) or kept_problem(tracer, frame, loop)
    if why is None:
        _restart(tracer, loop_break=((frame.raw_code, loop.header), inside))
    detail = f" (the break inside: {inside})" if inside else ""
    _restart(tracer, plain=((frame.raw_code, loop.header), f"{why}{detail}"))


def end_at_loop(tracer: Tracer, frame: Frame, header: int) -> None:
    """The innermost frame is at the header of a loop that must not be unrolled."""
    refuse_while_handling(tracer)
    check_outer_frames(tracer, frame, "a loop that is not unrolled")
    loop = frame.info.loop_at(header)
    outermost = frame.info.outermost_loop(header)
    if loop is None or outermost is None:
        raise Skip(f"no loop at instruction {header} of {frame.code.qualname}")
    inside = tracer.decisions.loop_breaks.get((frame.raw_code, header), "")
    if outermost is not loop and outermost.header != header:
        _break_loop(tracer, frame, outermost, inside)
    if tracer.breaks_are_errors:
        problem = Break("loop", f"a loop at {frame.loc} is not unrolled")
        raise GraphBreakError(_fullgraph_message(tracer, problem), problem.break_id)
    if is_native_loop(tracer, frame, loop):
        raise TraceEnd(LoopEnd(list(tracer.frames), loop, is_native=True))
    problem_of_loop = frame.loop_problem(loop) or kept_problem(tracer, frame, loop)
    if problem_of_loop is not None:
        raise TraceEnd(PlainEnd(list(tracer.frames), problem_of_loop))
    raise TraceEnd(LoopEnd(list(tracer.frames), loop, inside=inside))


def leave_comprehension(tracer: Tracer, frame: Frame) -> None:
    """What is captured does not end inside of an inlined comprehension that keeps its variable in the place
    of a cell: from where that begins, the frame runs as plain Python."""
    name = in_place_of_cells(frame.code)[frame.current]
    if name is None:
        return
    reason = f"a comprehension's variable {name!r} is called like one that functions share"
    before = frame.code.instructions[frame.start : frame.current]
    begun = [i.index for i in before if i.op == "LOAD_FAST_AND_CLEAR" and i.arg == name]
    if not begun:
        raise Skip(reason)
    tracer.decisions.plain[(frame.raw_code, begun[-1])] = reason
    raise tracer.restart


def end_plain(tracer: Tracer, frame: Frame, reason: str) -> None:
    """The innermost frame is at a loop from which on it runs as plain Python."""
    refuse_while_handling(tracer)
    check_outer_frames(tracer, frame, reason)
    if tracer.breaks_are_errors:
        raise GraphBreakError(_fullgraph_message(tracer, Break("loop-not-extracted", reason)))
    raise TraceEnd(PlainEnd(list(tracer.frames), reason))


def _restart(
    tracer: Tracer,
    *,
    no_inline: tuple[tuple[types.CodeType, int], str] | None = None,
    loop_break: tuple[tuple[types.CodeType, int], str] | None = None,
    plain: tuple[tuple[types.CodeType, int], str] | None = None,
) -> None:
    decisions = tracer.decisions
    if no_inline is not None:
        decisions.no_inline[no_inline[0]] = no_inline[1]
    if loop_break is not None:
        decisions.loop_breaks[loop_break[0]] = loop_break[1]
    if plain is not None:
        decisions.plain[plain[0]] = plain[1]
    raise tracer.restart


def back_edge(tracer: Tracer, frame: Frame, target: int) -> None:
    """A jump backwards: count the trips of a loop that is being unrolled."""
    trips = frame.trips.get(target, 0) + 1
    for inner in [header for header in frame.trips if header > target]:
        del frame.trips[inner]  # loops inside begin anew
    frame.trips[target] = trips
    if _unrolls_on(tracer, frame, target, trips):
        return
    loop = frame.info.loop_at(target) or frame.info.outermost_loop(target)
    if loop is None:
        raise Skip("a loop with several entries")
    if loop.header != target and (frame.raw_code, loop.header) in tracer.decisions.loop_breaks:
        raise Skip("a loop that never reaches its header")
    frame_start = frame.info.outermost_loop(target)
    assert frame_start is not None
    _break_loop(tracer, frame, frame_start, "")


def _unrolls_on(tracer: Tracer, frame: Frame, target: int, trips: int) -> bool:
    """Whether another trip is unrolled."""
    options, nodes = tracer.config.options, len(tracer.builder.nodes)
    steps = frame.steps.get(target)
    if steps is not None:
        if trips == 1:
            steps.first = set(tracer.called[steps.called :])
            steps.short = (nodes - steps.nodes) * steps.count <= 2 * options.unroll_ops
            return steps.short or bool(steps.first)
        if trips == 2 and not steps.first.issuperset(tracer.called[steps.called :]):
            frame.layers.add(target)  # the second step calls other objects than the first
            tracer.has_layers = True
        if target not in frame.layers:
            return steps.short and nodes <= max(4 * options.unroll_ops, _most_nodes(tracer, frame))
    if trips <= options.unroll_limit and nodes <= _most_nodes(tracer, frame):
        return True
    if unrolls_library(tracer, frame, trips):
        return True
    return _unrolls_further(tracer, frame, target, trips)


def _most_nodes(tracer: Tracer, frame: Frame) -> int:
    """Nodes of the graph up to which loops are unrolled: many in and after a loop over the layers of a
    network, whose number says nothing of the loops within a layer, or behind them."""
    limit = tracer.config.most_unrolled
    if limit is None or tracer.config.is_trusted(frame.globals[0].get("__name__", "")):
        limit = tracer.config.options.unroll_ops
    if tracer.has_layers:
        return MOST_LAYERS * limit
    # a few trips over tensors, whose calls cost some microseconds each: layers found by their number
    return LAYERS * limit if tracer.works_on_tensors() else limit


def _unrolls_further(tracer: Tracer, frame: Frame, target: int, trips: int) -> bool:
    """Whether ``target`` heads a ``for`` loop that was found short enough though it exceeds the usual limit
    (see ``handlers.jump``): its body cannot be made a function of its own."""
    loop = frame.info.loop_at(target)
    options = tracer.config.options
    if target in frame.layers:
        few = trips <= LAYERS * (options.unroll_ops if target in frame.parameters else options.unroll_limit)
        if few and len(tracer.builder.nodes) <= _most_nodes(tracer, frame):
            return True
    if goes_on_idle(tracer, frame, target, trips):
        return True
    if target in frame.layers:
        return False
    if loop is None or not (loop.suspends or target in frame.unrolled):
        return False
    limit = 4 * options.unroll_ops
    short = target in frame.unrolled or trips * len(loop.body) <= limit
    return short and len(tracer.builder.nodes) <= max(limit, _most_nodes(tracer, frame))
