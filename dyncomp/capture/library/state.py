"""What a frame asks of the interpreter's state: the exception that is being handled, the environment,
context variables."""

from __future__ import annotations

import sys

from ..breaks import Break
from ..control import exceptions
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..guards.source import ConstSource
from ..values.base import Tracer, Value
from ..values.exception import TracebackValue
from ..values.number import ConstValue
from ..values.seq import TupleValue
from .registry import NONE, builtin


@builtin(sys.exc_info)
def _exc_info(tracer: Tracer) -> Value:
    found = exceptions.handled(tracer)
    if found is None:
        _none_outside(tracer)
        return TupleValue([NONE, NONE, NONE])
    return TupleValue([ConstValue(found.pytype), found, TracebackValue(found)])


@builtin(sys.exception)
def _exception(tracer: Tracer) -> Value:
    found = exceptions.handled(tracer)
    if found is None:
        _none_outside(tracer)
        return NONE
    return found


def _none_outside(tracer: Tracer) -> None:
    """Go on where nothing is being handled around the captured code: guarded, each time anew."""
    if tracer.handled_outside:
        raise Break("unsupported-call", "sys.exception() of what is handled outside of the captured code")
    check = CustomCheck(handles_nothing, None, "no exception is being handled")
    tracer.guard(ConstSource(sys, "sys"), Kind.CUSTOM_ARRAY, check)


def handles_nothing(module: object, expected: None) -> bool:
    """The guard of what is being handled where compiled code is called."""
    return sys.exception() is None
