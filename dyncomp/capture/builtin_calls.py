"""Builtin functions about types and attributes: ``type``, ``isinstance``, ``getattr``, ``super``…

The other builtins are in ``library/``, by topic.
"""

from __future__ import annotations

import types
import typing
from typing import Any

from . import library
from .breaks import Break
from .guards import Kind
from .values.base import OpaqueValue, Tracer, Value
from .values.func import SuperValue
from .values.number import ConstValue
from .values.obj import InstanceValue

_NONE = ConstValue(None)
_builtin = library.builtin
find = library.find
fold_call = library.fold_call


def ignore_arguments() -> None:
    """Stands for ``object.__init__`` reached through ``super()``."""


@_builtin(ignore_arguments)
def _ignore(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
    return _NONE


# -- types and attributes -----------------------------------------------------------------------------
@_builtin(type)
def _type(tracer: Tracer, obj: Value, *rest: Value) -> Value:
    if rest:
        raise Break("unsupported-call", "a class is made by type()")
    if isinstance(obj, OpaqueValue):
        raise Break("opaque-object", f"type of {obj.describe()}")
    return ConstValue(obj.pytype)


@_builtin(isinstance)
def _isinstance(tracer: Tracer, obj: Value, classes: Value) -> Value:
    given = tracer.constant_of(classes, "a class")
    if isinstance(obj, OpaqueValue):
        raise Break("opaque-object", f"isinstance of {obj.describe()}")
    return ConstValue(tracer.fold(_is_instance_type, obj.pytype, given))


def _is_instance_type(cls: type, given: Any) -> bool:
    if isinstance(given, tuple):
        return any(_is_instance_type(cls, g) for g in given)
    if isinstance(given, types.UnionType):
        return any(_is_instance_type(cls, g) for g in given.__args__)
    return issubclass(cls, given)


@_builtin(issubclass)
def _issubclass(tracer: Tracer, cls: Value, classes: Value) -> Value:
    return ConstValue(
        tracer.fold(issubclass, tracer.constant_of(cls, "a class"), tracer.constant_of(classes, "a class"))
    )


@_builtin(callable)
def _callable(tracer: Tracer, obj: Value) -> Value:
    if isinstance(obj, OpaqueValue):
        return ConstValue(callable(obj.obj))
    if obj.is_const:
        return ConstValue(callable(obj.const))
    return ConstValue(any("__call__" in vars(cls) for cls in obj.pytype.__mro__))


@_builtin(getattr)
def _getattr(tracer: Tracer, obj: Value, name: Value, default: Value | None = None) -> Value:
    attribute = tracer.constant_of(name, "an attribute name")
    if default is not None and not _has(tracer, obj, attribute):
        return default
    return tracer.realize(obj.getattr(tracer, attribute))


@_builtin(hasattr)
def _hasattr(tracer: Tracer, obj: Value, name: Value) -> Value:
    return ConstValue(_has(tracer, obj, tracer.constant_of(name, "an attribute name")))


def _has(tracer: Tracer, obj: Value, name: str) -> bool:
    if isinstance(obj, OpaqueValue):
        raise Break("opaque-object", f"attribute {name!r} of {obj.describe()}")
    if isinstance(obj, InstanceValue):
        return _instance_has(tracer, obj, name)
    if obj.is_const:
        return hasattr(obj.const, name)
    return hasattr(obj.pytype, name)


def _instance_has(tracer: Tracer, obj: InstanceValue, name: str) -> bool:
    if name in obj.written or hasattr(obj.cls, name):
        return True
    if hasattr(obj.cls, "__getattr__"):
        raise Break("opaque-object", f"attribute {name!r} of {obj.describe()}")
    if obj.source is None:
        return False
    present = hasattr(obj.obj, name)
    tracer.guard(obj.source, Kind.INSTANCE_HAS if present else Kind.INSTANCE_LACKS, name)
    return present


@_builtin(setattr)
def _setattr(tracer: Tracer, obj: Value, name: Value, value: Value) -> Value:
    obj.setattr(tracer, tracer.constant_of(name, "an attribute name"), value)
    return _NONE


@_builtin(super)
def _super(tracer: Tracer, *args: Value) -> Value:
    frame = tracer.frames[-1]
    if len(args) == 2:
        return SuperValue(tracer.constant_of(args[0], "a class"), args[1])
    cell = frame.cells.get("__class__")
    if args or cell is None or cell.contents is None:
        raise Break("unsupported-call", "super() outside of a method")
    first = frame.first_argument(tracer)
    return SuperValue(tracer.constant_of(tracer.realize(cell.contents), "a class"), first)


@_builtin(typing.cast)
def _cast(tracer: Tracer, kind: Value, obj: Value) -> Value:
    return obj
