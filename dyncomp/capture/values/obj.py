"""Instances of user classes, and modules."""

from __future__ import annotations

import inspect
import types
from typing import Any

from .. import _hook
from ..breaks import Break
from ..guards import Kind
from ..source import AttrSource, ConstSource, InstanceDictSource, Source, TypeAttrSource
from .base import Codegen, Tracer, Value
from .func import BoundMethodValue

_MISSING = object()


class ModuleValue(Value):
    """A module: attributes are read from its namespace."""

    def __init__(self, module: types.ModuleType, source: Source | None) -> None:
        self.module = module
        self.source = source

    @property
    def pytype(self) -> type:
        return types.ModuleType

    @property
    def is_const(self) -> bool:
        return True

    @property
    def const(self) -> Any:
        return self.module

    def describe(self) -> str:
        return f"module {vars(self.module).get('__name__', '')}"

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name not in vars(self.module) and "__getattr__" in vars(self.module):
            tracer.fold(getattr, self.module, name)  # packages that load their modules when first asked
        found = vars(self.module).get(name, _MISSING)
        if found is _MISSING:
            raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")
        source = AttrSource(self.source, name) if self.source is not None else None
        return tracer.module_member(self.module, name, found, source)

    def reconstruct(self, cg: Codegen) -> str:
        return cg.constant(self.module)


class InstanceValue(Value):
    """An object of an ordinary Python class: from outside (``obj`` and ``source``), or made in the frame.

    Attribute writes go to ``written`` and are replayed; reads of other attributes are guarded one by one.
    """

    def __init__(self, cls: type, obj: Any = None, source: Source | None = None) -> None:
        self.cls = cls
        self.obj = obj
        self.source = source
        self.written: dict[str, Value] = {}
        self.mutated = False

    @property
    def pytype(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"an object of class {self.cls.__qualname__}"

    def children(self) -> tuple[Value, ...]:
        return tuple(self.written.values())

    # -- reading ------------------------------------------------------------------------------
    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in self.written:
            return self.written[name]
        if name == "__class__":
            return tracer.wrap_result(self.cls)
        if name == "__dict__":
            raise Break("unsupported-attribute", f"__dict__ of {self.describe()}")
        if self.source is None:
            return self._class_attribute(tracer, name)
        kind = _hook.attr_kind(self.obj, name)
        if kind == "instance":
            return tracer.child(vars(self.obj)[name], InstanceDictSource(self.source, name))
        if kind in ("slot", "getset"):
            found = getattr(self.obj, name, _MISSING)
            if found is _MISSING:  # no guard says so
                raise Break("would-raise", f"{self.describe()} has an empty slot {name!r}")
            return tracer.child(found, AttrSource(self.source, name))
        if kind == "custom":
            raise Break(
                "unsupported-attribute", f"attribute {name!r} of {self.describe()} (__getattribute__)"
            )
        if hasattr(self.obj, "__dict__") and kind != "property":
            tracer.guard(self.source, Kind.INSTANCE_LACKS, name)
        return self._class_attribute(tracer, name)

    def _class_attribute(self, tracer: Tracer, name: str) -> Value:
        found = inspect.getattr_static(self.cls, name, _MISSING)
        if found is _MISSING:
            return self._fallback(tracer, name)
        return bind(tracer, found, self, self._class_member_source(tracer, name), name)

    def _class_member_source(self, tracer: Tracer, name: str) -> Source | None:
        """Where a class attribute is read; ``None`` for the classes of libraries that nobody changes, and of
        objects made in the frame. The type is guarded: one source serves all objects of a class."""
        if self.source is None or tracer.config.is_trusted(self.cls.__module__):
            return None
        return TypeAttrSource(ConstSource(self.cls, self.cls.__qualname__), name)

    def _fallback(self, tracer: Tracer, name: str) -> Value:
        """The class's ``__getattr__``, where it is written in Python."""
        stored = self._stored(tracer, name)
        if stored is not None:
            return stored
        hook = inspect.getattr_static(self.cls, "__getattr__", None)
        if isinstance(hook, types.FunctionType):
            function = tracer.child_or_constant(hook, self._class_member_source(tracer, "__getattr__"))
            return tracer.call_value(function, [self, tracer.wrap_result(name)], {})
        text = f"{self.cls.__name__[:50]!r} object has no attribute {name!r}"
        raise tracer.raise_exception(AttributeError, text)

    def _stored(self, tracer: Tracer, name: str) -> Value | None:
        """What a library's ``__getattr__`` finds in one of the instance's dicts."""
        if self.source is None:
            return None
        for frontend in tracer.config.frontends:
            path = frontend.stored_member(self.obj, name)
            if path is not None and not any(store in self.written for store in path):
                *searched, last = (tracer.realize(self.getattr(tracer, store)) for store in path)
                if not any(
                    store.contains(tracer, tracer.wrap_result(name)).truth(tracer) for store in searched
                ):
                    return last.getitem(tracer, tracer.wrap_result(name))
        return None

    # -- writing ------------------------------------------------------------------------------
    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        if self.cls.__setattr__ is not object.__setattr__:
            raise Break(
                "unsupported-attribute", f"assignment to {name!r}: {self.describe()} has a __setattr__"
            )
        found = inspect.getattr_static(self.cls, name, _MISSING)
        if isinstance(found, property):
            if not isinstance(found.fset, types.FunctionType):
                raise Break("would-raise", f"property {name!r} cannot be set")
            tracer.call_value(tracer.child_or_constant(found.fset, None), [self, value], {})
            return
        if (
            found is not _MISSING
            and hasattr(type(found), "__set__")
            and not inspect.ismemberdescriptor(found)
        ):
            raise Break("unsupported-attribute", f"assignment to {name!r}, a descriptor of {self.describe()}")
        if not self.cls.__dictoffset__ and (found is _MISSING or not inspect.ismemberdescriptor(found)):
            raise Break("would-raise", f"{self.describe()} has no attribute {name!r} to be set")
        self.mutated = True
        tracer.note_mutation(self)
        self.written[name] = value

    # -- protocols that Python code gives ---------------------------------------------------------
    def special(self, tracer: Tracer, name: str) -> Value | None:
        """The bound special method ``name`` where the class writes it in Python."""
        found = inspect.getattr_static(self.cls, name, None)
        if not isinstance(found, types.FunctionType):
            return None
        member = tracer.child_or_constant(found, self._class_member_source(tracer, name))
        return BoundMethodValue(self, member)

    def _special(self, tracer: Tracer, name: str, args: list[Value], what: str) -> Value:
        method = self.special(tracer, name)
        if method is None:
            raise Break("opaque-object", f"{what} of {self.describe()}")
        return tracer.call_value(method, args, {})

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        method = self.special(tracer, "__call__")
        if method is None:
            raise Break("unsupported-call", f"call of {self.describe()}")
        return tracer.call_value(method, args, kwargs)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        return self._special(tracer, "__getitem__", [key], "indexing")

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        self._special(tracer, "__setitem__", [key, value], "item assignment")

    def length(self, tracer: Tracer) -> Value:
        return self._special(tracer, "__len__", [], "len()")

    def contains(self, tracer: Tracer, item: Value) -> Value:
        found = self._special(tracer, "__contains__", [item], "membership test")
        return tracer.wrap_result(found.truth(tracer))

    def iterate(self, tracer: Tracer) -> Value:
        return self._special(tracer, "__iter__", [], "iteration")

    def next(self, tracer: Tracer) -> Value | None:
        raise Break("opaque-object", f"next() of {self.describe()}")

    def truth(self, tracer: Tracer) -> bool:
        for name in ("__bool__", "__len__"):
            method = self.special(tracer, name)
            if method is not None:
                return tracer.call_value(method, [], {}).truth(tracer)
            if inspect.getattr_static(self.cls, name, None) is not None:
                raise Break("opaque-object", f"truth value of {self.describe()}")
        return True

    # -- rebuilding ---------------------------------------------------------------------------
    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        name = cg.temporary(f"{cg.constant(object.__new__)}({cg.constant(self.cls)})")
        cg.remember(self, name)
        for line in self.replay(cg):
            cg.line(line)
        return name

    def replay(self, cg: Codegen) -> list[str]:
        target = cg.value(self)
        setter = cg.constant(object.__setattr__)
        return [f"{setter}({target}, {name!r}, {cg.value(v)})" for name, v in self.written.items()]


def bind(tracer: Tracer, found: Any, owner: Value, source: Source | None, name: str) -> Value:
    """What ``owner.name`` gives for the raw class attribute ``found``."""
    if isinstance(found, types.FunctionType):
        return BoundMethodValue(owner, tracer.child_or_constant(found, source))
    if isinstance(found, staticmethod):
        inner = AttrSource(source, "__func__") if source is not None else None
        return tracer.child_or_constant(found.__func__, inner)
    if isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType):
        inner = AttrSource(source, "__func__") if source is not None else None
        return BoundMethodValue(
            tracer.wrap_result(owner.pytype), tracer.child_or_constant(found.__func__, inner)
        )
    if isinstance(found, property):
        if not isinstance(found.fget, types.FunctionType):
            raise Break("unsupported-attribute", f"property {name!r} of {owner.describe()}")
        inner = AttrSource(source, "fget") if source is not None else None
        return tracer.call_value(tracer.child_or_constant(found.fget, inner), [owner], {})
    if hasattr(type(found), "__get__"):
        raise Break(
            "unsupported-attribute", f"attribute {name!r} of {owner.describe()}: a {type(found).__name__}"
        )
    return tracer.child_or_constant(found, source)
