"""Raising, and the instructions of exception handlers."""

from __future__ import annotations

from ..control import exception_groups, exceptions
from ..values.base import Frame, Tracer, Value
from ..values.exception import ExceptionValue, TracebackValue
from ..values.number import ConstValue
from .registry import handles


@handles("RAISE_VARARGS")
def raise_varargs(tracer: Tracer, frame: Frame, count: int) -> None:
    exceptions.raise_statement(tracer, frame.popn(count))


def _exception(value: Value) -> ExceptionValue:
    """What the compiler knows to be an exception."""
    assert isinstance(value, ExceptionValue)
    return value


@handles("PUSH_EXC_INFO")
def push_exc_info(tracer: Tracer, frame: Frame, arg: object) -> None:
    exception = _exception(frame.pop())
    frame.push(frame.handling or ConstValue(None))
    frame.push(exception)
    frame.handling = exception


@handles("POP_EXCEPT")
def pop_except(tracer: Tracer, frame: Frame, arg: object) -> None:
    previous = frame.pop()
    frame.handling = previous if isinstance(previous, ExceptionValue) else None


@handles("CHECK_EXC_MATCH")
def check_exc_match(tracer: Tracer, frame: Frame, arg: object) -> None:
    wanted = frame.pop()
    frame.push(ConstValue(exceptions.matches(tracer, _exception(frame.stack[-1]), wanted)))


@handles("RERAISE")
def reraise(tracer: Tracer, frame: Frame, depth: int) -> None:
    raise exceptions.Raised(_exception(frame.pop()))


@handles("WITH_EXCEPT_START")
def with_except_start(tracer: Tracer, frame: Frame, arg: object) -> None:
    leave, exception = frame.stack[-4], _exception(frame.stack[-1])
    given: list[Value] = [ConstValue(exception.pytype), exception, TracebackValue(exception)]
    frame.push(tracer.call_direct(frame, leave, given, {}))


@handles("CHECK_EG_MATCH")
def check_group_match(tracer: Tracer, frame: Frame, arg: object) -> None:
    value, wanted = frame.popn(2)
    match, rest = exception_groups.match_clause(tracer, value, wanted)
    if match is not None:
        frame.handling = match
    frame.push(rest or ConstValue(None))
    frame.push(match or ConstValue(None))


@handles("PREP_RERAISE_STAR")
def prepare_reraise(tracer: Tracer, frame: Frame, arg: object) -> None:
    original, found = frame.popn(2)
    raised = exception_groups.to_reraise(tracer, _exception(original), found.items(tracer))
    frame.push(raised or ConstValue(None))
