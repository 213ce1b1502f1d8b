"""Builtin functions about types and attributes: ``type``, ``isinstance``, ``getattr``, ``super``…

The other builtins are in ``library/``, by topic.
"""

from __future__ import annotations

import abc
import types
import typing
from typing import Any

from . import library
from .breaks import Break
from .guards import Kind
from .values.base import OpaqueValue, Tracer, Value
from .values.func import FunctionValue, SuperValue
from .values.number import ConstValue
from .values.obj import InstanceValue

_NONE = ConstValue(None)
_builtin = library.builtin
find = library.find
fold_call = library.fold_call


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
    for cls in _classes_in(given):
        if getattr(type(cls), "__instancecheck__", None) not in _KNOWN_CHECKS:
            raise Break("unsupported-call", f"isinstance() asks the class {getattr(cls, '__name__', cls)}")
    found = _is_instance(tracer, obj.pytype, given)
    if not found and isinstance(obj, InstanceValue) and _has_own_class(obj.cls):
        raise Break("unsupported-call", f"isinstance() asks {obj.describe()} for its __class__")
    return ConstValue(found)


_KNOWN_CHECKS = (type.__instancecheck__, abc.ABCMeta.__instancecheck__)


def _classes_in(given: Any) -> list[Any]:
    if isinstance(given, tuple):
        return [cls for part in given for cls in _classes_in(part)]
    return list(given.__args__) if isinstance(given, types.UnionType) else [given]


def _has_own_class(cls: type) -> bool:
    """Whether objects of the class may say that they are of another one."""
    bases = [base for base in cls.__mro__[:-1] if base is not BaseException]
    return any("__class__" in vars(base) or "__getattribute__" in vars(base) for base in bases)


def _is_instance(tracer: Tracer, cls: type, given: Any) -> bool:
    try:
        return _is_instance_type(cls, given)
    except TypeError:
        raise tracer.raise_like(isinstance, None, given) from None


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
    if any(name in vars(cls) for cls in obj.pytype.__mro__):
        return True
    if isinstance(obj, FunctionValue):
        return _in_own_dict(tracer, obj, obj.function, name)
    if getattr(obj.pytype, "__dictoffset__", 0):
        raise Break("unsupported-attribute", f"whether {obj.describe()} has an attribute {name!r}")
    return False


def _in_own_dict(tracer: Tracer, value: Value, obj: object, name: str) -> bool:
    """Whether an object from outside has an attribute of its own, guarded."""
    present = hasattr(obj, name)
    tracer.guard(value.source, Kind.INSTANCE_HAS if present else Kind.INSTANCE_LACKS, name)
    return present


def _class_has(obj: InstanceValue, member: Any, name: str) -> bool:
    """Whether an attribute that the class has can be read from its object."""
    kind = type(member)
    if kind in (types.FunctionType, staticmethod, classmethod) or not hasattr(kind, "__get__"):
        return True
    if name in ("__class__", "__dict__", "__doc__") and obj.source is not None:
        return hasattr(obj.obj, name)
    if name in vars(object):
        return True
    raise Break(
        "unsupported-attribute", f"whether {obj.describe()} has an attribute {name!r}: a {kind.__name__}"
    )


def _instance_has(tracer: Tracer, obj: InstanceValue, name: str) -> bool:
    if name in obj.written:
        return True
    for base in obj.cls.__mro__:
        if name in vars(base):
            return _class_has(obj, vars(base)[name], name)
    if hasattr(obj.cls, "__getattr__") or any("__getattribute__" in vars(b) for b in obj.cls.__mro__[:-1]):
        raise Break("opaque-object", f"attribute {name!r} of {obj.describe()}")
    if obj.source is None:
        return False
    return _in_own_dict(tracer, obj, obj.obj, name)


@_builtin(setattr)
def _setattr(tracer: Tracer, obj: Value, name: Value, value: Value) -> Value:
    obj.setattr(tracer, tracer.constant_of(name, "an attribute name"), value)
    return _NONE


@_builtin(super)
def _super(tracer: Tracer, *args: Value) -> Value:
    frame = tracer.frames[-1]
    if len(args) == 2:
        return _super_of(tracer.constant_of(args[0], "a class"), args[1])
    cell = frame.cells.get("__class__")
    if args or cell is None or cell.contents is None:
        raise Break("unsupported-call", "super() outside of a method")
    first = frame.first_argument(tracer)
    return _super_of(tracer.constant_of(tracer.realize(cell.contents), "a class"), first)


def _super_of(cls: Any, owner: Value) -> Value:
    fits = isinstance(cls, type) and not isinstance(owner, OpaqueValue) and issubclass(owner.pytype, cls)
    if not fits and not (isinstance(cls, type) and owner.is_const and isinstance(owner.const, type)):
        raise Break("would-raise", f"super() of {owner.describe()}")
    return SuperValue(cls, owner)


@_builtin(typing.cast)
def _cast(tracer: Tracer, kind: Value, obj: Value) -> Value:
    return obj
