"""Operators and calls."""

from __future__ import annotations

from typing import Any

from .. import operators
from ..breaks import Break
from ..control import exceptions
from ..loops.raising_branches import compared, negated
from ..methods.table import items_for_list
from ..values.array import ArrayValue
from ..values.base import Frame, Tracer
from ..values.exception import ExceptionValue
from ..values.mapping import DictValue
from ..values.number import ConstValue, NumberValue
from .registry import handles


@handles("BINARY_OP")
def binary_op(tracer: Tracer, frame: Frame, op: str) -> None:
    a, b = frame.popn(2)
    frame.push(tracer.binary(op, a, b))


@handles("COMPARE_OP")
def compare_op(tracer: Tracer, frame: Frame, op: str) -> None:
    a, b = frame.popn(2)
    frame.push(compared(tracer, frame, lambda: tracer.binary(op, a, b)))


@handles("IS_OP")
def is_op(tracer: Tracer, frame: Frame, invert: bool) -> None:
    a, b = frame.popn(2)
    frame.push(ConstValue(operators.identical(tracer, a, b) != invert))


@handles("CONTAINS_OP")
def contains_op(tracer: Tracer, frame: Frame, invert: bool) -> None:
    item, container = frame.popn(2)
    found = container.contains(tracer, item)
    if isinstance(found, ArrayValue):
        frame.push(negated(tracer, found) if invert else found)
    else:
        frame.push(ConstValue(found.truth(tracer) != invert))


@handles("UNARY_NEGATIVE")
def unary_negative(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(tracer.unary("-", frame.pop()))


@handles("UNARY_POSITIVE")
def unary_positive(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(tracer.unary("+", frame.pop()))


@handles("UNARY_INVERT")
def unary_invert(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(tracer.unary("~", frame.pop()))


@handles("UNARY_NOT")
def unary_not(tracer: Tracer, frame: Frame, arg: object) -> None:
    value = frame.pop()
    if isinstance(value, NumberValue):
        frame.push(NumberValue(not value.hint, ("(not ", value, ")")))
        return
    if isinstance(value, ArrayValue):
        raise Break("data-dependent-branch", f"the truth of {value.describe()}")
    frame.push(ConstValue(not value.truth(tracer)))


@handles("CALL")
def call(tracer: Tracer, frame: Frame, arg: tuple[int, tuple[str, ...]]) -> None:
    count, names = arg
    args = frame.popn(count)
    function = frame.pop()
    split = count - len(names)
    kwargs = dict(zip(names, args[split:]))
    frame.push(tracer.call_direct(frame, function, args[:split], kwargs))


@handles("CALL_FUNCTION_EX")
def call_function_ex(tracer: Tracer, frame: Frame, has_kwargs: bool) -> None:
    kwargs: dict[str, Any] = {}
    if has_kwargs:
        given = frame.pop()
        if not isinstance(given, DictValue):
            raise Break("unsupported-call", f"** of {given.describe()}")
        kwargs = dict(given.contents(tracer))
        if not all(type(name) is str for name in kwargs):
            raise Break("would-raise", "keywords must be strings")
    positional = frame.pop()
    args = [tracer.realize(v) for v in items_for_list(tracer, positional)]
    function = frame.pop()
    frame.push(tracer.call_direct(frame, function, args, kwargs))


@handles("CALL_INTRINSIC_1")
def call_intrinsic_1(tracer: Tracer, frame: Frame, name: str) -> None:
    value = frame.pop()
    if name == "STOPITERATION_ERROR" and isinstance(value, ExceptionValue):
        frame.push(exceptions.generator_exception(tracer, value))
        return
    raise Break("unsupported-opcode", f"intrinsic {name} of {value.describe()}")
