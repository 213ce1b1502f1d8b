"""What a frame asks of the interpreter's state: the exception that is being handled."""

from __future__ import annotations

import sys

from .. import exceptions
from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.exception import TracebackValue
from ..values.number import ConstValue
from ..values.seq import TupleValue
from .registry import builtin


@builtin(sys.exc_info)
def _exc_info(tracer: Tracer) -> Value:
    found = exceptions.handled(tracer)
    if found is None:
        raise Break("unsupported-call", "sys.exc_info() of what is handled outside of the captured code")
    return TupleValue([ConstValue(found.pytype), found, TracebackValue(found)])


@builtin(sys.exception)
def _exception(tracer: Tracer) -> Value:
    found = exceptions.handled(tracer)
    if found is None:
        raise Break("unsupported-call", "sys.exception() of what is handled outside of the captured code")
    return found
