"""What programs ask of annotations: ``typing.get_origin`` and ``get_args`` of forms that are known."""

from __future__ import annotations

import typing
from typing import Any

from ..breaks import Break
from ..guards.guard import Kind
from ..values.base import Tracer, Value
from ..values.obj import InstanceValue
from .registry import builtin


def _asked(function: Any) -> Any:
    def handler(tracer: Tracer, tp: Value) -> Value:
        return tracer.wrap_result(tracer.fold(function, _form(tracer, tracer.realize(tp))))

    return handler


def _form(tracer: Tracer, value: Value) -> Any:
    """The object itself; what typing's own classes make (``Optional[int]``) is known by identity."""
    if value.is_const:
        return value.const
    if not isinstance(value, InstanceValue) or value.source is None or value.cls.__module__ != "typing":
        raise Break("unsupported-call", f"a question about {value.describe()} as an annotation")
    tracer.guard(value.source, Kind.IS, value.obj)
    return value.obj


for _function in (typing.get_origin, typing.get_args):
    builtin(_function)(_asked(_function))
