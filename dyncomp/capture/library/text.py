"""Strings: ``str``, ``repr``, ``format``, ``ascii``, ``bytes``…"""

from __future__ import annotations

from ..breaks import Break
from ..calls.texts import check_spec, text_of
from ..values.base import Tracer, Value
from ..values.number import ConstValue
from .registry import builtin


@builtin(str, keywords=("object", "encoding", "errors"))
def _str(
    tracer: Tracer, object: Value | None = None, encoding: Value | None = None, errors: Value | None = None
) -> Value:
    if object is None:
        return ConstValue("")
    if encoding is None and errors is None:
        return text_of(tracer, str, object)
    given = {"encoding": encoding, "errors": errors}
    constants = {k: tracer.constant_of(v, k) for k, v in given.items() if v is not None}
    source = tracer.constant_of(object, "what is decoded")
    return ConstValue(tracer.fold(lambda: str(source, **constants)))


@builtin(repr)
def _repr(tracer: Tracer, obj: Value, /) -> Value:
    return text_of(tracer, repr, obj)


@builtin(ascii)
def _ascii(tracer: Tracer, obj: Value, /) -> Value:
    return text_of(tracer, ascii, obj)


@builtin(format)
def _format(tracer: Tracer, value: Value, format_spec: Value | None = None, /) -> Value:
    if format_spec is None:
        return text_of(tracer, format, value)
    check_spec(tracer, format_spec)
    return text_of(tracer, format, value, format_spec)


@builtin(bytearray)
def _bytearray(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
    raise Break("unsupported-call", "a bytearray is made")
