"""Attribute look-up as CPython does it: instances, classes, ``super()``, descriptors, and the hooks
``__getattribute__``, ``__getattr__``, ``__setattr__`` and ``__delattr__``."""

from __future__ import annotations

import enum
import functools
import types
from collections import OrderedDict
from inspect import FullArgSpec
from typing import Any, NoReturn

from ...dataclass import dataclass
from ..breaks import Break
from ..control import exceptions
from ..guards.guard import Kind
from ..guards.source import AttrSource, ConstSource, Source, TypeAttrSource
from ..values.base import Frame, OpaqueValue, Resumption, Tracer, Value
from ..values.derived import DerivedValue
from ..values.exception import ExceptionInitValue, ExceptionValue
from ..values.func import BoundMethodValue, SuperValue
from ..values.mapping import DictValue
from ..values.number import ConstValue
from ..values.obj import InstanceValue, ModuleValue
from ..values.partial import PartialValue
from ..values.seq import TupleValue
from ..values.states import state_of, write_state
from .class_kinds import is_struct_sequence
from .class_names import class_dict, module_of

_MISSING = object()
_NONE = ConstValue(None)
_C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_IMMUTABLE_TYPE = 1 << 8
# C types whose attributes are looked up as those of ``object``, though they say so themselves
_GENERIC: tuple[type, ...] = (object, BaseException, types.SimpleNamespace, OrderedDict)
_GENERIC += (tuple, list, dict, set, frozenset, str, bytes, int, float, complex)
GENERIC_GETATTR = frozenset(cls.__getattribute__ for cls in _GENERIC)
GENERIC_SETATTR = frozenset(hook for cls in _GENERIC for hook in (cls.__setattr__, cls.__delattr__))
_FIELD_OF_TUPLE = type(vars(FullArgSpec)["args"])  # of classes made by namedtuple
# descriptors that a class gives as they are
_THEMSELVES_OF_CLASSES = (property, types.MemberDescriptorType, types.GetSetDescriptorType)
# class members that are found through an instance as they are: they have no ``__get__`` or return themselves
_UNBOUND = (types.BuiltinFunctionType, types.MethodType, type)


@dataclass(frozen=True, eq=False)
class Member:
    """A class attribute before binding: ``raw`` in the class's dict, found again at ``source`` (``None``:
    taken as it is), or ``value``, which the frame wrote."""

    raw: Any
    source: Source | None
    value: Value | None = None

    @property
    def kind(self) -> type:
        return self.value.pytype if self.value is not None else type(self.raw)

    @property
    def binds(self) -> bool:
        return hasattr(self.kind, "__get__")

    @property
    def is_data(self) -> bool:
        """A data descriptor: it goes before the instance's own attributes."""
        return hasattr(self.kind, "__set__") or hasattr(self.kind, "__delete__")

    def as_value(self, tracer: Tracer) -> Value:
        """The attribute itself, not bound."""
        if self.value is not None:
            return self.value
        found: Value = tracer.child_or_constant(self.raw, self.source)
        return found


# -- classes' members -----------------------------------------------------------------------------------
def find_member(tracer: Tracer, cls: type, name: str, after: type | None = None) -> Member | None:
    """Attribute ``name`` along the resolution order of ``cls`` (behind ``after``), as the frame left it."""
    tracer.rely_on(cls, name)
    order = cls.__mro__
    if order is None:
        raise Break("opaque-object", f"an attribute of class {cls.__name__}, which is being made")
    if after is not None:
        order = order[order.index(after) + 1 :]
    for home in order:
        state = tracer.states.get(id(home))
        if state is not None and name in state.written:
            if state.written[name] is None:
                continue
            return Member(None, None, state.written[name])
        found = class_dict(home).get(name, _MISSING)
        if found is not _MISSING:
            tracer.rely_on(type(found))
            return Member(found, _member_source(tracer, home if after is not None else cls, home, name))
    return None


def _member_source(tracer: Tracer, cls: type, home: type, name: str) -> Source | None:
    """Where a class attribute is read again; ``None`` for the classes of libraries that nobody changes."""
    if tracer.config.is_trusted(module_of(cls)) or tracer.config.is_trusted(module_of(home)):
        return None
    if tracer.states and any(id(base) in tracer.states for base in cls.__mro__):
        cls = home  # a class before it has the attribute until the frame's own deletion is replayed
    return TypeAttrSource(ConstSource(cls, cls.__qualname__), name)


def bind_member(
    tracer: Tracer,
    member: Member,
    owner: Value | None,
    cls: type,
    name: str,
    direct: Frame | Resumption | None = None,
) -> Value:
    """``member.__get__(owner, cls)``; ``owner`` is ``None`` for a look-up on the class itself."""
    raw = member.raw
    if member.value is not None:
        return _bind_written(member, owner)
    if isinstance(raw, types.FunctionType) or (type(raw) is functools._lru_cache_wrapper):
        function = member.as_value(tracer)
        return function if owner is None else BoundMethodValue(owner, function)
    if isinstance(raw, staticmethod) and type(raw).__get__ is staticmethod.__get__:
        return _part(tracer, member, "__func__")
    if isinstance(raw, classmethod) and type(raw).__get__ is classmethod.__get__:
        return _bind_class_method(tracer, member, cls)
    if isinstance(raw, property) and type(raw).__get__ is property.__get__:
        return _read_property(tracer, member, owner, name, direct)
    if type(raw) is types.MemberDescriptorType:
        return _read_slot(tracer, member, owner, name)
    if type(raw) is types.GetSetDescriptorType and owner is not None:
        return _read_getset(tracer, raw, owner, name)
    if type(raw) in _C_METHODS:
        return ConstValue(raw) if owner is None else BoundMethodValue(owner, ConstValue(raw))
    if type(raw) is types.ClassMethodDescriptorType:
        return ConstValue(raw.__get__(None, cls))
    if type(raw) is _FIELD_OF_TUPLE and isinstance(owner, TupleValue):
        return tracer.realize(owner.children()[raw.__reduce__()[1][0]])
    if type(raw) is functools.cached_property and owner is not None:
        return _read_cached_property(tracer, member, owner)
    if type(raw) is functools.partialmethod:
        return _bind_partial_method(tracer, member, owner, cls, name)
    getter = find_member(tracer, type(raw), "__get__") if member.binds else None
    if getter is not None and isinstance(getter.raw, types.FunctionType):
        method = BoundMethodValue(_descriptor(tracer, member), getter.as_value(tracer))
        return tracer.realize(tracer.call_as(direct, method, [owner or _NONE, ConstValue(cls)], {}))
    of_class = owner is None and isinstance(raw, _THEMSELVES_OF_CLASSES)
    if getter is None or isinstance(raw, _UNBOUND) or of_class:
        return member.as_value(tracer)
    where = owner.describe() if owner is not None else cls.__qualname__
    raise Break("unsupported-attribute", f"attribute {name!r} of {where}: a {type(raw).__name__}")


def _descriptor(tracer: Tracer, member: Member) -> Value:
    return tracer.realize(member.as_value(tracer))


def _part(tracer: Tracer, member: Member, field: str) -> Value:
    """A field of a descriptor that never changes (``property.fget``)."""
    source = AttrSource(member.source, field) if member.source is not None else None
    found: Value = tracer.child_or_constant(getattr(member.raw, field), source)
    return found


def _bind_written(member: Member, owner: Value | None) -> Value:
    value = member.value
    assert value is not None
    if not member.binds:
        return value
    if issubclass(value.pytype, types.FunctionType):
        return value if owner is None else BoundMethodValue(owner, value)
    raise Break("unsupported-attribute", f"a {value.pytype.__name__} that was put into a class")


def _bind_class_method(tracer: Tracer, member: Member, cls: type) -> Value:
    inner = member.raw.__func__
    if not isinstance(inner, (types.FunctionType, functools._lru_cache_wrapper)):
        raise Break("unsupported-attribute", f"a classmethod of a {type(inner).__name__}")
    return BoundMethodValue(ConstValue(cls), _part(tracer, member, "__func__"))


def _read_property(
    tracer: Tracer, member: Member, owner: Value | None, name: str, direct: Frame | Resumption | None
) -> Value:
    if owner is None:
        return member.as_value(tracer)
    if member.raw.fget is None:
        raise _refused_by_property(tracer, owner, name, "getter")
    return tracer.realize(tracer.call_as(direct, _part(tracer, member, "fget"), [owner], {}))


def _made_in_python(cls: type) -> bool:
    return bool(cls.__flags__ & _HEAP_TYPE)


def _is_slot(raw: types.MemberDescriptorType) -> bool:
    """Whether a member is of ``__slots__``; those of classes written in C may be read-only."""
    cls = raw.__objclass__
    declared = class_dict(cls).get("__slots__", ())
    names = (declared,) if isinstance(declared, str) else tuple(declared)
    private = f"_{cls.__name__.lstrip('_')}"
    return _made_in_python(cls) and any(raw.__name__ in (name, private + name) for name in names)


def _refused_by_property(tracer: Tracer, owner: Value, name: str, what: str) -> NoReturn:
    cls = owner.pytype
    text = f"property {name!r} of {cls.__qualname__!r} object has no {what}"
    raise tracer.raise_exception(AttributeError, text)


def _read_slot(tracer: Tracer, member: Member, owner: Value | None, name: str) -> Value:
    if owner is None:
        return ConstValue(member.raw)
    if name == "__dict__" and isinstance(owner, InstanceValue):
        return owner.namespace.exposed(tracer)
    if isinstance(owner, TupleValue) and is_struct_sequence(owner.cls):
        return tracer.realize(owner.children()[vars(owner.cls)["__match_args__"].index(name)])
    if isinstance(owner, DerivedValue) and member.raw.__objclass__ is owner.base and owner.part.is_const:
        return owner.part.getattr(tracer, name)
    if not isinstance(owner, InstanceValue) or not _made_in_python(member.raw.__objclass__):
        raise Break("unsupported-attribute", f"slot {name!r} of {owner.describe()}")
    found = owner.read_slot(tracer, member.raw)
    if found is None:
        raise no_attribute(tracer, owner, name)
    return tracer.realize(found)


def _read_getset(tracer: Tracer, raw: Any, owner: Value, name: str) -> Value:
    if name == "__class__":
        return ConstValue(owner.pytype)
    if name == "__dict__" and isinstance(owner, InstanceValue):
        return owner.namespace.exposed(tracer)
    if isinstance(owner, InstanceValue) and owner.source is not None and name != "__weakref__":
        return tracer.realize(tracer.child(raw.__get__(owner.obj), AttrSource(owner.source, name)))
    raise Break("unsupported-attribute", f"attribute {name!r} of {owner.describe()}")


def _read_cached_property(tracer: Tracer, member: Member, owner: Value) -> Value:
    """Not cached yet, as the instance's own attributes go first: compute and store it."""
    name = member.raw.attrname
    if not isinstance(owner, InstanceValue) or name is None:
        raise Break("unsupported-attribute", f"a cached_property of {owner.describe()}")
    if member.source is not None:
        tracer.guard(member.source, Kind.IS, member.raw)
    found = tracer.call_value(_part(tracer, member, "func"), [owner], {})
    owner.namespace.store(tracer, name, found)
    return found


def _bind_partial_method(tracer: Tracer, member: Member, owner: Value | None, cls: type, name: str) -> Value:
    raw = member.raw
    if owner is None or not isinstance(raw.func, types.FunctionType):
        raise Break("unsupported-attribute", f"the partialmethod {name!r}")
    if member.source is not None:
        tracer.guard(member.source, Kind.IS, raw)
    given = [tracer.child_or_constant(a, None) for a in raw.args]
    keywords = {k: tracer.child_or_constant(v, None) for k, v in raw.keywords.items()}
    made = PartialValue(BoundMethodValue(owner, _part(tracer, member, "func")), given, keywords, None)
    made.bound_to = owner
    return made


# -- reading from instances -----------------------------------------------------------------------------
def instance_attribute(tracer: Tracer, obj: InstanceValue, name: str) -> Value:
    """``obj.name``."""
    direct = tracer.take_direct()
    if find_member(tracer, obj.cls, "__getattr__") is None:
        found = _first_look(tracer, obj, name, direct)
    else:
        found = exceptions.unless_raised(tracer, AttributeError, lambda: _first_look(tracer, obj, name, None))
    return found if found is not None else missing_attribute(tracer, obj, name, direct)


def _first_look(
    tracer: Tracer, obj: InstanceValue, name: str, direct: Frame | Resumption | None
) -> Value | None:
    """``type(obj).__getattribute__(obj, name)``, ``None`` where the default one finds nothing."""
    hook = find_member(tracer, obj.cls, "__getattribute__")
    assert hook is not None
    if hook.raw in GENERIC_GETATTR:
        return generic_attribute(tracer, obj, name, direct)
    if not isinstance(hook.raw, types.FunctionType):
        raise Break("unsupported-attribute", f"attribute {name!r} of {obj.describe()} (__getattribute__)")
    method = BoundMethodValue(obj, hook.as_value(tracer))
    return tracer.realize(tracer.call_as(direct, method, [ConstValue(name)], {}))


def generic_attribute(
    tracer: Tracer, obj: InstanceValue, name: str, direct: Frame | Resumption | None = None
) -> Value | None:
    """``object.__getattribute__(obj, name)``, ``None`` where it raises ``AttributeError``."""
    member = find_member(tracer, obj.cls, name)
    if member is not None and member.binds and member.is_data:
        return bind_member(tracer, member, obj, obj.cls, name, direct)
    if has_namespace(obj.cls):
        own = obj.namespace.attribute(tracer, name)
        if own is not None:
            return tracer.realize(own)
    if member is None:
        guard_absent(tracer, obj.cls, name)
        return None
    return bind_member(tracer, member, obj, obj.cls, name, direct)


def has_namespace(cls: type) -> bool:
    """Whether instances have a ``__dict__``."""
    return cls.__dictoffset__ != 0


def accepts_attributes(value: Value) -> bool:
    """Whether any attribute can be set on the object, and nothing but that happens."""
    if not isinstance(value, InstanceValue):
        return False
    return has_namespace(value.cls) and value.cls.__setattr__ is object.__setattr__


def guard_absent(tracer: Tracer, cls: type, name: str) -> None:
    """Guard that a class of the program lacks an attribute."""
    if not tracer.config.is_trusted(module_of(cls)) and not _class_has(cls, name):
        tracer.guard(ConstSource(cls, cls.__qualname__), Kind.NOATTR, name)


def _class_has(cls: type, name: str) -> bool:
    """Whether the class or its metaclass has the attribute: then C cannot guard that instances lack it."""
    meta: type = type(cls)
    of_meta = any(name in class_dict(base) for base in type.mro(meta)) or hasattr(meta, "__getattr__")
    return of_meta or any(name in class_dict(base) for base in cls.__mro__)


def missing_attribute(
    tracer: Tracer, obj: InstanceValue, name: str, direct: Frame | Resumption | None = None
) -> Value:
    """``__getattr__``, where the class has one."""
    stored = _stored(tracer, obj, name)
    if stored is not None:
        return stored
    hook = find_member(tracer, obj.cls, "__getattr__")
    if hook is None:
        guard_absent(tracer, obj.cls, "__getattr__")
        raise no_attribute(tracer, obj, name)
    method = BoundMethodValue(obj, hook.as_value(tracer))
    return tracer.realize(tracer.call_as(direct, method, [ConstValue(name)], {}))


def no_attribute(tracer: Tracer, obj: Value, name: str) -> NoReturn:
    """Raise the ``AttributeError`` of a missing attribute."""
    if obj.is_const and isinstance(obj.const, type):
        owner = f"type object {obj.const.__name__[:50]!r}"
    else:
        owner = f"{_name_in_c(obj.pytype)[:50]!r} object"
    raise tracer.raise_exception(AttributeError, f"{owner} has no attribute {name!r}")


def _name_in_c(cls: type) -> str:
    """``tp_name``: with the module for classes written in C, but the builtin ones."""
    if _made_in_python(cls) or cls.__module__ == "builtins":
        return cls.__name__
    return f"{cls.__module__}.{cls.__name__}"


def _stored(tracer: Tracer, obj: InstanceValue, name: str) -> Value | None:
    """What a library's ``__getattr__`` finds in one of the instance's dicts."""
    if obj.source is None:
        return None
    for frontend in tracer.config.frontends:
        path = frontend.stored_member(obj.obj, name)
        if path is not None and not any(obj.namespace.was_written(store) for store in path):
            stores: list[Value] = [tracer.realize(obj.getattr(tracer, store)) for store in path]
            last = stores.pop()
            if not any(store.contains(tracer, ConstValue(name)).truth(tracer) for store in stores):
                found: Value = last.getitem(tracer, ConstValue(name))
                return found
    return None


# -- writing to instances -------------------------------------------------------------------------------
def set_instance_attribute(tracer: Tracer, obj: InstanceValue, name: str, value: Value) -> None:
    """``obj.name = value``."""
    tracer.take_direct()
    hook = find_member(tracer, obj.cls, "__setattr__")
    assert hook is not None
    if hook.raw in GENERIC_SETATTR:
        generic_set_attribute(tracer, obj, name, value)
        return
    _call_hook(tracer, hook, obj, [ConstValue(name), value], f"assignment to {name!r}")


def _call_hook(tracer: Tracer, hook: Member, obj: InstanceValue, args: list[Value], what: str) -> None:
    if not isinstance(hook.raw, types.FunctionType):
        raise Break("unsupported-attribute", f"{what}: {obj.describe()} has a hook for it")
    tracer.call_value(BoundMethodValue(obj, hook.as_value(tracer)), args, {})


def generic_set_attribute(tracer: Tracer, obj: InstanceValue, name: str, value: Value) -> None:
    """``object.__setattr__(obj, name, value)``."""
    member = find_member(tracer, obj.cls, name)
    if member is not None and hasattr(member.kind, "__set__"):
        _set_descriptor(tracer, member, obj, name, value)
    elif member is not None and (member.is_data or not has_namespace(obj.cls)):
        kind = obj.cls.__name__[:50]
        tracer.raise_exception(AttributeError, f"{kind!r} object attribute {name!r} is read-only")
    elif not has_namespace(obj.cls):
        similar = type(obj.cls.__name__, (), {"__slots__": ()})
        exceptions.raise_like(tracer, setattr, similar(), name, None)
    else:
        obj.namespace.store(tracer, name, value)


def _set_descriptor(tracer: Tracer, member: Member, obj: InstanceValue, name: str, value: Value) -> None:
    raw = member.raw
    if isinstance(raw, property) and type(raw).__set__ is property.__set__:
        if raw.fset is None:
            raise _refused_by_property(tracer, obj, name, "setter")
        tracer.call_value(_part(tracer, member, "fset"), [obj, value], {})
    elif type(raw) is types.MemberDescriptorType and _is_slot(raw):
        obj.write_slot(tracer, raw, value)
    else:
        _call_descriptor(
            tracer, member, "__set__", [obj, value], f"assignment to {name!r} of {obj.describe()}"
        )


def _call_descriptor(tracer: Tracer, member: Member, method: str, args: list[Value], what: str) -> None:
    hook = find_member(tracer, type(member.raw), method) if member.value is None else None
    if hook is None or not isinstance(hook.raw, types.FunctionType):
        raise Break("unsupported-attribute", f"{what}, a descriptor ({member.kind.__name__})")
    tracer.call_value(BoundMethodValue(_descriptor(tracer, member), hook.as_value(tracer)), args, {})


def delete_instance_attribute(tracer: Tracer, obj: InstanceValue, name: str) -> None:
    """``del obj.name``."""
    tracer.take_direct()
    hook = find_member(tracer, obj.cls, "__delattr__")
    assert hook is not None
    if hook.raw in GENERIC_SETATTR:
        generic_delete_attribute(tracer, obj, name)
        return
    _call_hook(tracer, hook, obj, [ConstValue(name)], f"deletion of {name!r}")


def generic_delete_attribute(tracer: Tracer, obj: InstanceValue, name: str) -> None:
    """``object.__delattr__(obj, name)``."""
    member = find_member(tracer, obj.cls, name)
    if member is not None and member.is_data:
        _delete_descriptor(tracer, member, obj, name)
    elif not has_namespace(obj.cls) or obj.namespace.lookup(tracer, name) is None:
        raise no_attribute(tracer, obj, name)
    else:
        obj.namespace.remove(tracer, name)


def _delete_descriptor(tracer: Tracer, member: Member, obj: InstanceValue, name: str) -> None:
    raw = member.raw
    if isinstance(raw, property) and type(raw).__delete__ is property.__delete__:
        if raw.fdel is None:
            raise _refused_by_property(tracer, obj, name, "deleter")
        tracer.call_value(_part(tracer, member, "fdel"), [obj], {})
    elif type(raw) is types.MemberDescriptorType and _is_slot(raw):
        if obj.read_slot(tracer, raw) is None:
            raise no_attribute(tracer, obj, name)
        obj.write_slot(tracer, raw, None)
    else:
        _call_descriptor(tracer, member, "__delete__", [obj], f"deletion of {name!r} of {obj.describe()}")


# -- asking ---------------------------------------------------------------------------------------------
def maybe_attribute(tracer: Tracer, owner: Value, name: str) -> Value | None:
    """``getattr(owner, name)``, ``None`` where it raises ``AttributeError``."""
    tracer.take_direct()
    if isinstance(owner, InstanceValue) or (owner.is_const and isinstance(owner.const, type)):
        return exceptions.unless_raised(tracer, AttributeError, lambda: owner.getattr(tracer, name))
    if isinstance(owner, ModuleValue):
        owner.check_absent(tracer, name)
    if owner.is_const:
        return owner.getattr(tracer, name) if tracer.fold(hasattr, owner.const, name) else None
    if not hasattr(owner.pytype, name) and not _may_have(owner):
        return None
    return exceptions.unless_raised(tracer, AttributeError, lambda: owner.getattr(tracer, name))


def _may_have(owner: Value) -> bool:
    """Whether objects of the type may have attributes of their own. A type of an extension module may say so
    nowhere (f2py's)."""
    plain = module_of(owner.pytype) in ("builtins", "collections", "numpy", "types")
    if isinstance(owner, OpaqueValue) or not plain:
        return True
    return owner.pytype.__dictoffset__ != 0 or hasattr(owner.pytype, "__getattr__")


# -- special methods --------------------------------------------------------------------------------------
def special_method(tracer: Tracer, obj: Value, name: str) -> Value | None:
    """The bound special method ``name`` where the type writes it in Python."""
    member = find_member(tracer, obj.pytype, name)
    if member is None:
        guard_absent(tracer, obj.pytype, name)
        return None
    if member.value is None and type(member.raw) in (types.FunctionType, staticmethod, classmethod):
        return bind_member(tracer, member, obj, obj.pytype, name)
    if member.value is not None and issubclass(member.kind, types.FunctionType):
        return bind_member(tracer, member, obj, obj.pytype, name)
    return None


# -- classes ----------------------------------------------------------------------------------------------
def class_attribute(tracer: Tracer, value: Value, name: str) -> Value:
    """``cls.name`` of a class that is known."""
    direct = tracer.take_direct()
    cls: Any = value.const
    meta = type(cls)
    if isinstance(cls, enum.EnumMeta) and name in cls._member_map_:
        return ConstValue(cls._member_map_[name])
    hook = find_member(tracer, meta, "__getattribute__")
    if hook is None or hook.raw is not type.__getattribute__:
        raise Break(
            "unsupported-attribute", f"attribute {name!r} of class {cls.__qualname__} (__getattribute__)"
        )
    of_meta = find_member(tracer, meta, name)
    if of_meta is not None and of_meta.is_data and of_meta.binds:
        if of_meta.value is None and type(of_meta.raw) in (
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
        ):
            return _class_field(tracer, cls, name)
        return bind_member(tracer, of_meta, value, meta, name, direct)
    member = find_member(tracer, cls, name)
    if member is not None:
        return tracer.realize(bind_member(tracer, member, None, cls, name, direct))
    if of_meta is not None:
        return bind_member(tracer, of_meta, value, meta, name, direct)
    fallback = find_member(tracer, meta, "__getattr__")
    if fallback is not None:
        method = bind_member(tracer, fallback, value, meta, "__getattr__")
        return tracer.realize(tracer.call_as(direct, method, [ConstValue(name)], {}))
    guard_absent(tracer, cls, name)
    raise no_attribute(tracer, value, name)


def _class_field(tracer: Tracer, cls: type, name: str) -> Value:
    """A field that the interpreter keeps for each class (``__name__``, ``__mro__``)."""
    found = tracer.fold(getattr, cls, name)
    if isinstance(found, (str, int, type, type(None))):
        return tracer.realize(tracer.child(found, AttrSource(ConstSource(cls, cls.__qualname__), name)))
    if isinstance(found, tuple) and all(isinstance(base, type) for base in found):
        if name in ("__mro__", "__bases__") and _made_in_python(cls):
            tracer.guard(AttrSource(ConstSource(cls, cls.__qualname__), name), Kind.IS, found)
        return ConstValue(found)
    raise Break("unsupported-attribute", f"attribute {name!r} of class {cls.__qualname__}")


def set_class_attribute(tracer: Tracer, value: ConstValue, name: str, new: Value | None) -> None:
    """``cls.name = new``, or its deletion (``None``)."""
    tracer.take_direct()
    cls: Any = value.const
    hook = find_member(tracer, type(cls), "__setattr__" if new is not None else "__delattr__")
    plain = hook is not None and hook.raw in (type.__setattr__, type.__delattr__)
    heap_type = _made_in_python(cls) and not cls.__flags__ & _IMMUTABLE_TYPE
    of_meta = find_member(tracer, type(cls), name)
    special = name.startswith("__") or (of_meta is not None and of_meta.is_data)
    if not plain or not heap_type or special or tracer.config.is_trusted(module_of(cls)):
        raise Break("unsupported-attribute", f"assignment to attribute {name!r} of class {cls.__qualname__}")
    if new is None and not _own(tracer, cls, name):
        raise no_attribute(tracer, value, name)
    state = state_of(tracer, cls, ConstSource(cls, cls.__qualname__))
    if new is None and name not in class_dict(cls):
        tracer.note_mutation(state)
        del state.written[name]
        return
    write_state(tracer, state, name, new)


def _own(tracer: Tracer, cls: type, name: str) -> bool:
    state = tracer.states.get(id(cls))
    if state is not None and name in state.written:
        return state.written[name] is not None
    if name in class_dict(cls):
        tracer.guard(ConstSource(cls, cls.__qualname__), Kind.HASATTR, name)
    return name in class_dict(cls)


# -- super() ------------------------------------------------------------------------------------------------
def super_attribute(tracer: Tracer, value: SuperValue, name: str) -> Value:
    """``super(cls, owner).name``."""
    direct = tracer.take_direct()
    owner = value.owner
    on_class = owner.is_const and isinstance(owner.const, type) and issubclass(owner.const, value.cls)
    start: type = owner.const if on_class else owner.pytype
    if value.cls not in (start.__mro__ or ()):
        raise Break("would-raise", "super(type, obj): obj must be an instance or subtype of type")
    if name == "__class__":
        return ConstValue(super)
    member = find_member(tracer, start, name, after=value.cls)
    if member is None:
        raise tracer.raise_exception(AttributeError, f"'super' object has no attribute {name!r}")
    if (
        name == "__init__"
        and isinstance(owner, ExceptionValue)
        and not isinstance(member.raw, types.FunctionType)
    ):
        return ExceptionInitValue(owner)
    if isinstance(owner, DictValue) and not isinstance(member.raw, types.FunctionType):
        found: Value = tracer.container_method(owner, name)  # dict's own on a Counter
        return found
    return tracer.realize(bind_member(tracer, member, None if on_class else owner, start, name, direct))
