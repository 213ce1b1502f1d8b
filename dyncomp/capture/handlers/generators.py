"""Instructions of generators: creation, ``yield``, ``yield from``."""

from __future__ import annotations

from typing import Any

from ..breaks import Break
from ..control import exceptions
from ..objects import protocols
from ..values.base import Frame, Tracer
from ..values.exception import ExceptionValue
from ..values.generator import GeneratorValue
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from .registry import handles


@handles("RETURN_GENERATOR")
def return_generator(tracer: Tracer, frame: Frame, arg: object) -> None:
    if len(tracer.frames) < 2:
        raise Break("generator", "a generator runs as plain Python")
    frame.push(ConstValue(None))


@handles("YIELD_VALUE")
def yield_value(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.yielded = tracer.realize(frame.pop())


@handles("GET_YIELD_FROM_ITER")
def get_yield_from_iter(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(frame.pop().iterate(tracer))


@handles("SEND")
def send(tracer: Tracer, frame: Frame, target: int) -> None:
    sent = frame.pop()
    receiver = frame.stack[-1]
    yielded, returned = _advance(tracer, receiver, sent)
    if yielded is not None:
        frame.push(yielded)
        return
    frame.push(returned)
    frame.jump(target)


def _advance(tracer: Tracer, receiver: Any, sent: Any) -> tuple[Any, Any]:
    """What the receiver yields, or ``None`` and the value of ``yield from``."""
    if isinstance(receiver, GeneratorValue):
        yielded = receiver.resume(tracer, sent)
        return yielded, receiver.returned if yielded is None else None
    if not (sent.is_const and sent.const is None):
        raise Break("would-raise", f"{receiver.describe()} has no attribute 'send'")
    if isinstance(receiver, InstanceValue):
        yielded, end = protocols.step(tracer, receiver)
        return yielded, None if end is None else end.getattr(tracer, "value")
    return receiver.next(tracer), ConstValue(None)


@handles("END_SEND")
def end_send(tracer: Tracer, frame: Frame, arg: object) -> None:
    result = frame.pop()
    frame.pop()
    frame.push(result)


@handles("CLEANUP_THROW")
def cleanup_throw(tracer: Tracer, frame: Frame, arg: object) -> None:
    _, _, exception = frame.popn(3)
    assert isinstance(exception, ExceptionValue)
    if not issubclass(exception.cls, StopIteration):
        raise exceptions.Raised(exception)
    frame.push(ConstValue(None))
    frame.push(exception.getattr(tracer, "value"))
