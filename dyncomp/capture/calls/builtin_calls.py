"""Builtin functions about types and attributes: ``type``, ``isinstance``, ``getattr``, ``super``…

The other builtins are in ``library/``, by topic.
"""

from __future__ import annotations

import typing
from collections import OrderedDict
from typing import Any

from .. import library, operators
from ..breaks import Break
from ..objects import attributes, classes, derived, instance_checks
from ..objects.class_kinds import is_plain_namedtuple
from ..objects.class_names import class_dict
from ..values.base import OpaqueValue, Tracer, Value
from ..values.func import SuperValue
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from ..values.seq import TupleValue

_NONE = ConstValue(None)
_builtin = library.builtin
find = library.find
fold_call = library.fold_call


# -- types and attributes -----------------------------------------------------------------------------
@_builtin(type)
def _type(tracer: Tracer, obj: Value, *rest: Value) -> Value:
    if rest:
        raise Break("class-definition", "a class is made by type()")
    return ConstValue(obj.pytype)


@_builtin(isinstance)
def _isinstance(tracer: Tracer, obj: Value, classes: Value) -> Value:
    return ConstValue(instance_checks.is_instance(tracer, obj, tracer.constant_of(classes, "a class")))


@_builtin(type.__instancecheck__)
def _type_instancecheck(tracer: Tracer, cls: Value, obj: Value, /) -> Value:
    """What metaclasses of the program fall back on."""
    known = tracer.constant_of(cls, "a class")
    instance_checks.check_class_attribute(tracer, obj)
    tracer.rely_on(obj.pytype)
    return ConstValue(known in obj.pytype.__mro__)


@_builtin(issubclass)
def _issubclass(tracer: Tracer, cls: Value, classes: Value) -> Value:
    return ConstValue(instance_checks.is_subclass(tracer, cls, tracer.constant_of(classes, "a class")))


@_builtin(callable)
def _callable(tracer: Tracer, obj: Value) -> Value:
    if isinstance(obj, OpaqueValue):
        return ConstValue(callable(obj.obj))
    if obj.is_const:
        return ConstValue(callable(obj.const))
    found = any("__call__" in class_dict(cls) for cls in obj.pytype.__mro__)
    if not found:
        attributes.guard_absent(tracer, obj.pytype, "__call__")
    return ConstValue(found)


@_builtin(getattr)
def _getattr(tracer: Tracer, obj: Value, name: Value, default: Value | None = None) -> Value:
    attribute = _attribute_name(tracer, name)
    if default is None:
        return tracer.realize(obj.getattr(tracer, attribute))
    found = attributes.maybe_attribute(tracer, obj, attribute)
    return default if found is None else tracer.realize(found)


def _attribute_name(tracer: Tracer, name: Value) -> str:
    found = tracer.constant_of(name, "an attribute name")
    if not isinstance(found, str):
        raise Break("would-raise", "attribute name must be string")
    return found


@_builtin(hasattr)
def _hasattr(tracer: Tracer, obj: Value, name: Value) -> Value:
    attribute = _attribute_name(tracer, name)
    return ConstValue(attributes.maybe_attribute(tracer, obj, attribute) is not None)


@_builtin(setattr)
def _setattr(tracer: Tracer, obj: Value, name: Value, value: Value) -> Value:
    obj.setattr(tracer, _attribute_name(tracer, name), value)
    return _NONE


@_builtin(delattr)
def _delattr(tracer: Tracer, obj: Value, name: Value) -> Value:
    obj.delattr(tracer, _attribute_name(tracer, name))
    return _NONE


@_builtin(vars)
def _vars(tracer: Tracer, obj: Value) -> Value:
    return tracer.realize(obj.getattr(tracer, "__dict__"))


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


def _super_of(cls: type, owner: Value) -> Value:
    fits = isinstance(cls, type) and not isinstance(owner, OpaqueValue) and issubclass(owner.pytype, cls)
    if not fits and not (isinstance(cls, type) and owner.is_const and isinstance(owner.const, type)):
        raise Break("would-raise", f"super() of {owner.describe()}")
    return SuperValue(cls, owner)


# -- what object and type give to every class -----------------------------------------------------------
@_builtin(object.__init__)
def _object_init(tracer: Tracer, obj: Value, *args: Value, **kwargs: Value) -> Value:
    if args or kwargs:
        raise Break("would-raise", "object.__init__() takes exactly one argument")
    return _NONE


@_builtin(object.__new__)
def _object_new(tracer: Tracer, cls: Value, *args: Value, **kwargs: Value) -> Value:
    made = tracer.constant_of(cls, "a class")
    if not isinstance(made, type):
        raise Break("would-raise", "object.__new__(X): X is not a type object")
    if (args or kwargs) and not classes.ignores_arguments(tracer, made):
        raise Break("would-raise", "object.__new__() takes exactly one argument")
    return classes.allocate(tracer, made)


@_builtin(type.__call__)
def _type_call(tracer: Tracer, cls: Value, *args: Value, **kwargs: Value) -> Value:
    return classes.make_instance(tracer, tracer.constant_of(cls, "a class"), list(args), kwargs)


@_builtin(tuple.__new__)
def _tuple_new(tracer: Tracer, cls: Value, iterable: Value) -> Value:
    made = tracer.constant_of(cls, "a class")
    if not (made is tuple or is_plain_namedtuple(made)):
        value = derived.allocate(tracer, made, tuple.__new__, [iterable], {})
        if value is None:
            raise Break("unsupported-call", f"tuple.__new__ of {cls.describe()}")
        return value
    items = [tracer.realize(v) for v in iterable.items(tracer)]
    return TupleValue(items, None, made)


def _new_of(base: Any) -> Any:
    def new(tracer: Tracer, cls: Value, *args: Value, **kwargs: Value) -> Value:
        made = tracer.constant_of(cls, "a class")
        if made is base:
            return tracer.call_value(cls, list(args), kwargs)
        value = derived.allocate(tracer, made, base.__new__, list(args), kwargs)
        if value is None:
            raise Break("unsupported-call", f"{base.__name__}.__new__ of {cls.describe()}")
        return value

    return new


for _base in (dict, list, str, bytes, int, float, complex, OrderedDict):
    _builtin(_base.__new__)(_new_of(_base))


def _instance(obj: Value, what: str) -> InstanceValue:
    if not isinstance(obj, InstanceValue):
        raise Break("unsupported-call", f"{what} of {obj.describe()}")
    return obj


@_builtin(object.__getattribute__)
def _object_getattribute(tracer: Tracer, obj: Value, name: Value) -> Value:
    attribute = _attribute_name(tracer, name)
    found = attributes.generic_attribute(tracer, _instance(obj, "object.__getattribute__"), attribute)
    if found is None:
        raise attributes.no_attribute(tracer, obj, attribute)
    return found


@_builtin(object.__setattr__)
def _object_setattr(tracer: Tracer, obj: Value, name: Value, value: Value) -> Value:
    instance = _instance(obj, "object.__setattr__")
    attributes.generic_set_attribute(tracer, instance, _attribute_name(tracer, name), value)
    return _NONE


@_builtin(object.__delattr__)
def _object_delattr(tracer: Tracer, obj: Value, name: Value) -> Value:
    instance = _instance(obj, "object.__delattr__")
    attributes.generic_delete_attribute(tracer, instance, _attribute_name(tracer, name))
    return _NONE


@_builtin(object.__eq__)
def _object_eq(tracer: Tracer, a: Value, b: Value) -> Value:
    return ConstValue(True) if operators.identical(tracer, a, b) else ConstValue(NotImplemented)


@_builtin(typing.cast)
def _cast(tracer: Tracer, kind: Value, obj: Value) -> Value:
    return obj
