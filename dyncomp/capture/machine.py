"""The symbolic machine: the loop over canonical instructions."""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from ..graph.ir import COPY
from ..python_code.instr import Instr, pops_pushes
from .breaks import Break
from .control import exceptions
from .control.exceptions import Raised
from .frames import Frame, why_not_inlined
from .handlers.registry import HANDLERS
from .lifetimes import finalized
from .sizes.unbacked import as_break
from .terminators import ReturnEnd, TraceEnd, end_at_break, end_at_loop, end_plain
from .values.base import LazyValue, Tracer, Value
from .values.exception import LastInstructionValue
from .values.number import ConstValue


def run_root(tracer: Tracer, frame: Frame) -> Any:
    """Execute the root frame; returns how the capture ended."""
    tracer.watched = finalized.watch(tracer, frame)
    try:
        result = _run(tracer, frame)
        assert result is not None
        return ReturnEnd(result)
    except TraceEnd as done:
        return done.end
    except Raised as raised:
        exceptions.leave_to_python(tracer, raised.value)


def run_inlined(tracer: Tracer, frame: Frame) -> Value:
    """Execute an inlined call to its end and return its result."""
    why = why_not_inlined(tracer, frame)
    if why is not None:
        name = frame.code.qualname
        raise Break("inline-refused", f"a break inside {name} cannot be resumed in its caller: {why}")
    result = _run(tracer, frame)
    assert result is not None
    return result


def run_generator(tracer: Tracer, frame: Frame, thrown: Value | None = None) -> Value | None:
    """Run a generator's frame to its next ``yield``; ``None`` when it has returned. ``thrown``: an exception
    that is raised where the generator stands."""
    frame.yielded = None
    try:
        if thrown is not None:
            raised = Raised(thrown)  # type: ignore[arg-type]
            if not _enter_handler(frame, frame.current, frame.stack.copy(), raised):
                raise raised
        _run(tracer, frame)
    except Raised as raised:
        frame.stack.clear()
        frame.result = ConstValue(None)
        raise Raised(exceptions.generator_exception(tracer, raised.value)) from None
    return frame.yielded


def _run(tracer: Tracer, frame: Frame) -> Value | None:
    tracer.frames.append(frame)
    info = frame.info
    instructions = info.code.instructions
    decided = tracer.decisions.places_in(frame.raw_code)
    nodes = tracer.builder.nodes
    checked = tracer.config.options.debug_verify
    reached = tracer.config.records.reached
    while frame.result is None and frame.yielded is None:
        index = frame.ip
        instr = instructions[index]
        frame.current = index
        if index in decided:
            _check_decisions(tracer, frame, index)
        before = frame.stack.copy()
        steps, count = tracer.steps, len(nodes)
        frame.ip = index + 1
        tracer.loc = None
        tracer.instructions += 1
        try:
            handler = HANDLERS.get(instr.op)
            if handler is None:
                raise Break("unsupported-opcode", f"instruction {instr.op}")
            tracer.loc = info.loc_of(instr.loc.line)
            if reached is not None:
                reached.add(tracer.loc)
            if index in decided:
                _check_known_break(tracer, frame, index)
            handler(tracer, frame, instr.arg)
        except (Break, Unsupported) as problem:
            if not isinstance(problem, Break):  # a question about a number that depends on the data
                problem = as_break(problem)
            problem.forget_frames()  # of which one may hold the exception, and so the program's objects
            if _had_effects(tracer, steps, count):
                tracer.decisions.breaks[(frame.raw_code, index)] = problem
                raise tracer.restart from None
            frame.stack[:] = before
            frame.ip = index
            end_at_break(tracer, frame, instr, problem)
        except Raised as raised:
            if not _enter_handler(frame, index, before, raised):
                tracer.frames.pop()
                raised.value.traceback = object()
                raise
            if tracer.watched is not None:
                tracer.watched.check_instruction(frame)
            continue
        if frame.stack and isinstance(lazy := frame.stack[-1], LazyValue):
            frame.stack[-1] = _realized(tracer, frame, lazy, instr, before)
        if tracer.watched is not None:
            tracer.watched.check_instruction(frame)
        if checked and frame.result is None and frame.yielded is None:
            _check_stack_effect(instr, before, frame)
    tracer.frames.pop()
    return frame.result


def _enter_handler(frame: Frame, index: int, before: list[Value], raised: Raised) -> bool:
    """Go to the handler of instruction ``index``; false where there is none."""
    handler = frame.info.handlers[index]
    if handler is None:
        return False
    frame.stack[:] = before[: handler.depth]
    if handler.lasti:
        frame.push(LastInstructionValue())
    frame.push(raised.value)
    frame.ip = handler.target
    return True


def _check_known_break(tracer: Tracer, frame: Frame, index: int) -> None:
    """Break before anything is done where an earlier attempt broke half-way through an instruction."""
    problem = tracer.decisions.breaks.get((frame.raw_code, index))
    if problem is not None:
        raise Break(problem.break_id, problem.reason)


def _had_effects(tracer: Tracer, steps: int, nodes: int) -> bool:
    """Whether an instruction that breaks has advanced iterators, or changed containers or arrays before."""
    return tracer.steps != steps or any(n.op == COPY for n in tracer.builder.nodes[nodes:])


_LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "COPY")


def _realized(tracer: Tracer, frame: Frame, lazy: LazyValue, instr: Instr, before: list[Value]) -> Value:
    if instr.op in _LOADS:
        return tracer.realize_loaded(lazy)
    try:
        return tracer.realize(lazy)
    except Break as problem:
        frame.stack[:] = before
        frame.ip = frame.current
        end_at_break(tracer, frame, instr, problem)
        raise


def _check_stack_effect(instr: Instr, before: list[Value], frame: Frame) -> None:
    jumped = frame.ip != instr.index + 1
    pops, pushes = pops_pushes(instr.op, instr.arg, jumped)
    expected = len(before) - pops + pushes
    if len(frame.stack) != expected:
        raise AssertionError(f"{instr}: stack has {len(frame.stack)} values, expected {expected}")


def _check_decisions(tracer: Tracer, frame: Frame, index: int) -> None:
    key = (frame.raw_code, index)
    reason = tracer.decisions.plain.get(key)
    if reason is not None:
        end_plain(tracer, frame, reason)
    if key in tracer.decisions.loop_breaks:
        end_at_loop(tracer, frame, index)
