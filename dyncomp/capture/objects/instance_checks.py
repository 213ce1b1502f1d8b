"""``isinstance``, ``issubclass`` and operations on classes themselves."""

from __future__ import annotations

import abc
import enum
import operator
import types
import typing
from typing import Any

from ..breaks import Break
from ..guards.class_facts import may_change
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind, short
from ..guards.source import ConstSource
from ..values.base import Tracer, Value
from ..values.iterator import SequenceIterator
from ..values.number import ConstValue
from . import attributes
from .class_names import class_dict, module_of

_LIBRARIES = ("collections.abc", "_collections_abc", "numbers", "typing", "abc", "io", "os", "contextlib")


def is_instance(tracer: Tracer, obj: Value, given: object) -> bool:
    """``isinstance(obj, given)``."""
    if isinstance(given, tuple):
        return any(is_instance(tracer, obj, one) for one in given)
    if isinstance(given, types.UnionType):
        return any(is_instance(tracer, obj, one or type(None)) for one in given.__args__)
    cls = obj.pytype
    if cls is given:
        return True
    if not isinstance(given, type):
        raise Break("unsupported-call", f"isinstance of {obj.describe()} and {short(given):.40}")
    check_class_attribute(tracer, obj)
    return _check(tracer, "__instancecheck__", obj, cls, given)


def check_class_attribute(tracer: Tracer, obj: Value) -> None:
    """``isinstance`` also asks ``obj.__class__``."""
    member = attributes.find_member(tracer, obj.pytype, "__class__")
    if member is None or member.raw is not object.__dict__["__class__"]:
        raise Break("opaque-object", f"the __class__ of {obj.describe()}")


def is_subclass(tracer: Tracer, value: Value, given: object) -> bool:
    """``issubclass(value, given)``."""
    if isinstance(given, tuple):
        return any(is_subclass(tracer, value, one) for one in given)
    if isinstance(given, types.UnionType):
        return any(is_subclass(tracer, value, one or type(None)) for one in given.__args__)
    cls = tracer.constant_of(value, "a class")
    if not isinstance(given, type) or not isinstance(cls, type):
        raise Break("unsupported-call", f"issubclass of {short(cls):.40} and {short(given):.40}")
    return _check(tracer, "__subclasscheck__", value, cls, given)


def _check(tracer: Tracer, name: str, value: Value, cls: type, given: type) -> bool:
    """Ask the metaclass: ``type`` looks at the resolution order, others may run code."""
    hook = attributes.find_member(tracer, type(given), name)
    assert hook is not None
    if hook.raw is getattr(type, name):
        tracer.rely_on(cls)
        return given in cls.__mro__
    if hook.raw is getattr(abc.ABCMeta, name) and _hook_is_known(given):
        found = bool(tracer.fold(issubclass, cls, given))
        if not found and not (_is_of_libraries(given) and not may_change(cls)):
            text = f"{cls.__qualname__} is not registered with {given.__qualname__}"
            check = CustomCheck(_is_not_subclass, cls, text)
            tracer.guard(ConstSource(given, given.__qualname__), Kind.CUSTOM_ARRAY, check)
        return found
    if not isinstance(hook.raw, types.FunctionType) or hook.raw.__module__ in ("abc", "typing"):
        raise Break("unsupported-call", f"{name} of class {given.__qualname__}")
    method = attributes.bind_member(tracer, hook, ConstValue(given), type(given), name)
    return bool(tracer.realize(tracer.call_value(method, [value], {})).truth(tracer))


def _is_of_libraries(cls: type) -> bool:
    return module_of(cls) in _LIBRARIES


def _is_not_subclass(given: type, cls: type) -> bool:
    return not issubclass(cls, given)


def _hook_is_known(given: type) -> bool:
    """Whether an abstract class's ``__subclasshook__`` is the standard library's and asks the class only."""
    for base in given.__mro__:
        if "__subclasshook__" in class_dict(base):
            return base is object or _is_of_libraries(base)
    return False


# -- classes as operands --------------------------------------------------------------------------------
_FOLDED_ON_ENUMS: dict[str, Any] = {
    "__len__": len,
    "__getitem__": operator.getitem,
    "__contains__": operator.contains,
}


def class_operation(tracer: Tracer, value: ConstValue, name: str, args: list[Value]) -> Value:
    """A special method of a metaclass: ``len(cls)``, ``cls[item]``, ``item in cls``, ``iter(cls)``."""
    cls: Any = value.const
    hook = attributes.find_member(tracer, type(cls), name)
    if hook is None and name == "__getitem__":
        return _class_getitem(tracer, value, cls, args)
    if hook is None or not isinstance(hook.raw, types.FunctionType):
        raise Break("would-raise", f"{name} of class {cls.__qualname__}")
    if isinstance(cls, enum.EnumMeta) and hook.raw.__module__ == "enum":
        if name == "__iter__":
            listed: list[Any] = list(cls)
            members: list[Value] = [ConstValue(member) for member in listed]
            return SequenceIterator(members, value)
        function = _FOLDED_ON_ENUMS[name]
        return ConstValue(tracer.fold(function, cls, *(tracer.constant_of(a, "an operand") for a in args)))
    method = attributes.bind_member(tracer, hook, value, type(cls), name)
    found: Value = tracer.realize(tracer.call_value(method, args, {}))
    return found


def _class_getitem(tracer: Tracer, value: ConstValue, cls: type, args: list[Value]) -> Value:
    """``list[int]``, ``Box[T]``, ``Cls[…]`` with ``__class_getitem__``."""
    member = attributes.find_member(tracer, cls, "__class_getitem__")
    if member is None:
        raise Break("would-raise", f"type {cls.__qualname__!r} is not subscriptable")
    if isinstance(member.raw, types.ClassMethodDescriptorType) or _is_typing(member.raw):
        item = tracer.constant_of(args[0], "a type argument")
        return ConstValue(tracer.fold(operator.getitem, cls, item))
    if not isinstance(member.raw, (classmethod, types.FunctionType)):
        raise Break("unsupported-operation", f"indexing of class {cls.__qualname__}")
    method = attributes.bind_member(tracer, member, None, cls, "__class_getitem__")
    given = args if isinstance(member.raw, classmethod) else [value, *args]
    found: Value = tracer.realize(tracer.call_value(method, given, {}))
    return found


def _is_typing(raw: object) -> bool:
    inner = raw.__func__ if isinstance(raw, classmethod) else raw
    return getattr(inner, "__module__", None) == "typing"


def call_alias(tracer: Tracer, alias: object, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``Box[int](…)``; ``None`` for what is no alias of a class."""
    if not isinstance(alias, (types.GenericAlias, typing._GenericAlias)):  # type: ignore[attr-defined]
        return None
    origin = alias.__origin__
    if not isinstance(origin, type) or not getattr(alias, "_inst", True):
        return None
    tracer.take_direct()
    made: Value = tracer.call_value(ConstValue(origin), args, kwargs)
    if attributes.accepts_attributes(made):
        made.setattr(tracer, "__orig_class__", ConstValue(alias))
    return made
