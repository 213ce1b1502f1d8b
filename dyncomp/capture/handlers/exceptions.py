"""Raising, and the instructions of exception handlers."""

from __future__ import annotations

from typing import Any

from ..control import exception_groups, exceptions
from ..values.exception import ExceptionValue, TracebackValue
from ..values.number import ConstValue
from .registry import handles


@handles("RAISE_VARARGS")
def raise_varargs(tracer: Any, frame: Any, count: int) -> None:
    exceptions.raise_statement(tracer, frame.popn(count))


@handles("PUSH_EXC_INFO")
def push_exc_info(tracer: Any, frame: Any, arg: Any) -> None:
    exception = frame.pop()
    frame.push(frame.handling or ConstValue(None))
    frame.push(exception)
    frame.handling = exception


@handles("POP_EXCEPT")
def pop_except(tracer: Any, frame: Any, arg: Any) -> None:
    previous = frame.pop()
    frame.handling = previous if isinstance(previous, ExceptionValue) else None


@handles("CHECK_EXC_MATCH")
def check_exc_match(tracer: Any, frame: Any, arg: Any) -> None:
    wanted = frame.pop()
    frame.push(ConstValue(exceptions.matches(tracer, frame.stack[-1], wanted)))


@handles("RERAISE")
def reraise(tracer: Any, frame: Any, depth: int) -> None:
    raise exceptions.Raised(frame.pop())


@handles("WITH_EXCEPT_START")
def with_except_start(tracer: Any, frame: Any, arg: Any) -> None:
    leave, exception = frame.stack[-4], frame.stack[-1]
    given = [ConstValue(exception.pytype), exception, TracebackValue(exception)]
    frame.push(tracer.call_direct(frame, leave, given, {}))


@handles("CHECK_EG_MATCH")
def check_group_match(tracer: Any, frame: Any, arg: Any) -> None:
    value, wanted = frame.popn(2)
    match, rest = exception_groups.match_clause(tracer, value, wanted)
    if match is not None:
        frame.handling = match
    frame.push(rest or ConstValue(None))
    frame.push(match or ConstValue(None))


@handles("PREP_RERAISE_STAR")
def prepare_reraise(tracer: Any, frame: Any, arg: Any) -> None:
    original, found = frame.popn(2)
    frame.push(exception_groups.to_reraise(tracer, original, found.items(tracer)) or ConstValue(None))
