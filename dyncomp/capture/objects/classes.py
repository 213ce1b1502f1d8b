"""Construction of objects: ``cls(…)`` with ``__new__`` and ``__init__``, metaclasses, ``object.__new__``."""

from __future__ import annotations

import enum
import functools
import types
from typing import Any

from .. import frames
from ..breaks import Break, Skip
from ..control import exceptions
from ..guards.guard import Kind
from ..guards.source import AttrSource
from ..values.base import Frame, Resumption, Tracer, Value
from ..values.func import BoundMethodValue, FunctionValue, NestedFunctionValue
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from ..values.partial import PartialValue
from ..values.seq import TupleValue
from . import attributes, derived
from .class_kinds import is_plain_class
from .class_names import class_dict, module_of, qualname_of

_IS_ABSTRACT = 1 << 20  # Py_TPFLAGS_IS_ABSTRACT


def call_class(tracer: Tracer, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``cls(*args, **kwargs)``."""
    direct = tracer.take_direct()
    if any("__del__" in class_dict(base) for base in cls.__mro__) and cls.__module__ != "_io":
        raise Skip(f"{cls.__qualname__} has a destructor, which would not run at its moment")
    if cls is functools.partial and args:
        return _make_partial(args, kwargs)
    if cls is types.MethodType and len(args) == 2 and not kwargs:
        return _make_method(*args)
    if issubclass(cls, BaseException):
        return exceptions.construct(tracer, cls, args, kwargs, direct)
    if isinstance(cls, enum.EnumMeta):
        return _enum_member(tracer, cls, args, kwargs)
    if issubclass(cls, tuple) and _is_namedtuple_new(cls):
        return _call_namedtuple(tracer, cls, args, kwargs)
    hook = attributes.find_member(tracer, type(cls), "__call__")
    if hook is not None and hook.raw is not type.__call__:
        if not isinstance(hook.raw, types.FunctionType):
            raise _refusal(cls)
        method = BoundMethodValue(ConstValue(cls), hook.as_value(tracer))
        found: Value = tracer.call_as(direct, method, args, kwargs)
        return found
    return make_instance(tracer, cls, args, kwargs, direct)


def _refusal(cls: type) -> Break:
    return Break("unsupported-call", f"construction of {module_of(cls)}.{qualname_of(cls)}")


def _make_method(function: Value, owner: Value) -> Value:
    """``types.MethodType(function, owner)`` of a Python function."""
    if not isinstance(function, (FunctionValue, NestedFunctionValue)) or (
        owner.is_const and owner.const is None
    ):
        raise _refusal(types.MethodType)
    return BoundMethodValue(owner, function)


def _make_partial(args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``functools.partial``, which flattens partials without attributes of their own."""
    function = args[0]
    if isinstance(function, PartialValue) and not function.has_namespace():
        return PartialValue(
            function.function, [*function.args.children(), *args[1:]], {**function.kwargs, **kwargs}, None
        )
    return PartialValue(function, args[1:], kwargs, None)


def make_instance(
    tracer: Tracer,
    cls: type,
    args: list[Value],
    kwargs: dict[str, Value],
    direct: Frame | Resumption | None = None,
) -> Value:
    """``type.__call__(cls, *args, **kwargs)``: ``__new__``, then ``__init__`` if it gave such an object."""
    if not tracer.config.is_inlinable(module_of(cls), qualname_of(cls)):
        raise _refusal(cls)
    new = attributes.find_member(tracer, cls, "__new__")
    assert new is not None
    derived_value = derived.allocate(tracer, cls, new.raw, args, kwargs)
    if derived_value is not None:
        made: Value = derived_value
    elif new.raw in (object.__new__, types.SimpleNamespace.__new__):
        made = allocate(tracer, cls)
        _check_ignored(tracer, cls, "__init__", object.__init__, args, kwargs)
    elif type(new.raw) is staticmethod and isinstance(new.raw.__func__, types.FunctionType):
        function = attributes.bind_member(tracer, new, None, cls, "__new__")
        made = tracer.realize(tracer.call_value(function, [ConstValue(cls), *args], kwargs))
        if not issubclass(made.pytype, cls):
            return made
    else:
        raise _refusal(cls)
    _initialize(tracer, made, args, kwargs, direct)
    return made


def _check_ignored(
    tracer: Tracer, cls: type, name: str, plain: object, args: list[Value], kwargs: dict[str, Value]
) -> None:
    """``object`` takes no arguments where the class has no method that does."""
    if not args and not kwargs:
        return
    member = attributes.find_member(tracer, cls, name)
    if member is not None and member.raw is plain:
        tracer.raise_exception(TypeError, f"{cls.__name__}() takes no arguments")


def _initialize(
    tracer: Tracer,
    made: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    direct: Frame | Resumption | None,
) -> None:
    init = attributes.find_member(tracer, made.pytype, "__init__")
    assert init is not None
    if init.raw is object.__init__:
        return
    if init.raw is types.SimpleNamespace.__init__ and isinstance(made, InstanceValue) and not args:
        for name, value in kwargs.items():
            made.namespace.store(tracer, name, value)
        return
    if derived.call_method(tracer, init.raw, [made, *args], kwargs) is not None:
        return
    if not isinstance(init.raw, types.FunctionType) or not isinstance(made, InstanceValue):
        raise _refusal(made.pytype)
    method = BoundMethodValue(made, init.as_value(tracer))
    if isinstance(direct, frames.Frame):
        result = tracer.call_direct(frames.Resumption(direct, made), method, args, kwargs)
    else:
        result = tracer.call_value(method, args, kwargs)
    if not (result.is_const and result.const is None):
        kind = result.pytype.__name__
        tracer.raise_exception(TypeError, f"__init__() should return None, not {kind!r}")


def allocate(tracer: Tracer, cls: type) -> InstanceValue:
    """``object.__new__(cls)``."""
    if not is_plain_class(cls):
        raise _refusal(cls)
    if cls.__flags__ & _IS_ABSTRACT:
        raise Break("would-raise", f"Can't instantiate abstract class {cls.__name__}")
    return InstanceValue(cls)


def ignores_arguments(tracer: Tracer, cls: type) -> bool:
    """Whether ``object.__new__(cls, …)`` takes arguments for ``__init__``."""
    new = attributes.find_member(tracer, cls, "__new__")
    init = attributes.find_member(tracer, cls, "__init__")
    assert new is not None and init is not None
    return new.raw is object.__new__ and init.raw is not object.__init__


# -- namedtuples and enums --------------------------------------------------------------------------------
def _is_namedtuple_new(cls: Any) -> bool:
    """Whether ``cls.__new__`` is what ``collections.namedtuple`` made."""
    new = cls.__new__
    if cls.__init__ is not object.__init__:
        return False
    return hasattr(cls, "_fields") and isinstance(new, types.FunctionType) and "_tuple_new" in new.__globals__


def _call_namedtuple(tracer: Tracer, cls: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    values = dict(zip(cls._fields, args))
    if set(values) & set(kwargs):
        raise Break("would-raise", f"several values for a field of {cls.__qualname__}")
    values.update(kwargs)
    for name, default in _defaults(tracer, cls).items():
        values.setdefault(name, default)
    if set(values) != set(cls._fields) or len(args) > len(cls._fields):
        raise Break("would-raise", f"wrong arguments for {cls.__qualname__}")
    return TupleValue([values[name] for name in cls._fields], None, cls)


def _defaults(tracer: Tracer, cls: Any) -> dict[str, Value]:
    """The default values of a namedtuple's fields, as its ``__new__`` has them now."""
    member = attributes.find_member(tracer, cls, "__new__")
    assert member is not None
    given = cls.__new__.__defaults__ or ()
    if member.source is not None:
        source = AttrSource(AttrSource(member.source, "__func__"), "__defaults__")
        tracer.guard(source, Kind.IS, cls.__new__.__defaults__)
    names = cls._fields[len(cls._fields) - len(given) :]
    return {name: tracer.child_or_constant(value, None) for name, value in zip(names, given)}


def _enum_member(tracer: Tracer, cls: enum.EnumMeta, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``Color(value)``: the members of an enum never change."""
    if len(args) != 1 or kwargs or not cls._member_map_:
        raise Break("unsupported-call", f"a class is made by {cls.__qualname__}()")
    value = tracer.constant_of(args[0], f"a value of {cls.__qualname__}")
    if not isinstance(value, (int, str, float, bytes, tuple, type(None), cls)):
        raise _refusal(cls)
    if value not in cls._value2member_map_ and isinstance(cls.__dict__.get("_missing_"), classmethod):
        raise _refusal(cls)
    return ConstValue(tracer.fold(cls, value))
