"""The ``__dict__`` of an instance."""

from __future__ import annotations

from typing import Any

from ...hook import _hook
from ..breaks import Break
from ..guards.guard import Kind, short
from ..guards.source import AttrSource, InstanceDictSource, Source
from ..objects.class_names import class_dict
from .base import Codegen, Tracer, Value
from .mapping import DictValue

_MISSING = object()


class NamespaceValue(DictValue):
    """The attributes of an instance as a dict. Of an object from outside they are known one by one, by guards
    on the instance, until the program asks for the dict itself."""

    def __init__(self, owner: Any) -> None:
        outside = owner.source is not None
        super().__init__(None if outside else {}, None, None)
        self.owner = owner
        self._deleted: dict[Any, None] = {}

    def obj_dict(self) -> dict[str, Any]:
        """The real dict of an object from outside."""
        try:
            found: dict[str, Any] = object.__getattribute__(self.owner.obj, "__dict__")
        except AttributeError:
            return {}
        if not _hook.has_plain_names(found):
            raise Break("opaque-object", f"{self.describe()}, whose keys run code")
        return found

    def dict_source(self) -> Source:
        assert self.owner.source is not None
        return AttrSource(self.owner.source, "__dict__")

    def describe(self) -> str:
        return f"the __dict__ of {self.owner.describe()}"

    @property
    def written(self) -> dict[Any, Value]:
        return self._written if self._entries is None else self._entries

    def was_written(self, name: str) -> bool:
        """Whether the frame assigned or deleted the attribute."""
        return name in self._written or name in self._deleted or (self.mutated and self._entries is not None)

    def exposed(self, tracer: Tracer) -> NamespaceValue:
        """The dict as an object of its own: other values must not stand for it."""
        if self.owner.source is not None:
            outside = self.obj_dict()
            known = tracer.by_id.setdefault(id(outside), (self, outside))[0]
            if known is not self:
                raise Break("unsupported-attribute", f"{self.describe()}, which is known by another name")
            self.source = self.dict_source()
        return self

    # -- reading ------------------------------------------------------------------------------
    def contents(self, tracer: Tracer) -> dict[Any, Value]:
        if self._entries is None:
            outside = self.obj_dict()
            for key in outside:
                tracer.check_key(key)
            tracer.guard(self.dict_source(), Kind.DICT_KEYS, tuple(outside))
            kept = [key for key in outside if key not in self._deleted]
            self._entries = {k: self._read.get(k) or self._child(tracer, k) for k in kept}
            self._entries.update(self._written)
        return self._entries

    def _child(self, tracer: Tracer, key: Any) -> Value:
        if not isinstance(key, str):
            raise Break("unsupported-attribute", f"an attribute named {key!r}")
        return tracer.child(self.obj_dict()[key], InstanceDictSource(self.owner.source, key))

    def lookup(self, tracer: Tracer, key: Any) -> Value | None:
        found = self.attribute(tracer, key)
        if self._entries is None and found is not None and key not in self._written:
            tracer.guard(self.owner.source, Kind.INSTANCE_HAS, key)
        return found

    def attribute(self, tracer: Tracer, key: Any) -> Value | None:
        """As ``lookup``, for a value that is looked at: reading it is a guard that it is there."""
        if self._entries is not None:
            return self._entries.get(key)
        if key in self._written:
            return self._written[key]
        if key in self._deleted:
            return None
        if key not in self._read:
            if key not in self.obj_dict():
                tracer.guard(self.owner.source, Kind.INSTANCE_LACKS, key)
                return None
            self._read[key] = self._child(tracer, key)
        return self._read[key]

    # -- writing ------------------------------------------------------------------------------
    def touch(self, tracer: Tracer) -> None:
        self.mutated = self.owner.mutated = True
        tracer.note_mutation(self.owner)

    def store(self, tracer: Tracer, key: object, value: Value) -> None:
        self._let_go(tracer, key)
        super().store(tracer, key, value)

    def _let_go(self, tracer: Tracer, key: Any) -> None:
        """Note that what the attribute was goes."""
        if tracer.watched is not None and self.owner.source is not None and key not in self._written:
            tracer.watched.check_replaced(self.obj_dict().get(key))

    def remove(self, tracer: Tracer, key: object) -> None:
        """Delete a key that is there."""
        self._let_go(tracer, key)
        self.touch(tracer)
        if self._entries is not None:
            del self._entries[key]
            return
        self._written.pop(key, None)
        if key in self.obj_dict():
            self._deleted[key] = None

    def delitem(self, tracer: Tracer, key: Value) -> None:
        constant = self.key_of(tracer, key)
        if self.lookup(tracer, constant) is None:
            raise Break("would-raise", f"KeyError: {short(constant)}")
        self.remove(tracer, constant)

    # -- rebuilding ---------------------------------------------------------------------------
    def reconstruct(self, cg: Codegen) -> str:
        return cg.namespace_of(cg.value(self.owner), self.owner.cls)

    def replay(self, cg: Codegen) -> list[str]:
        return self.changes(cg, cg.value(self.owner))

    def changes(self, cg: Codegen, target: str) -> list[str]:
        """Statements that bring the attributes of ``target`` up to date."""
        if self.owner.source is None:
            assert self._entries is not None
            return self._assignments(cg, target, self._entries)
        if not self.mutated:
            return []
        namespace = cg.namespace_of(target, self.owner.cls)
        if self._entries is not None:
            inner = ", ".join(f"{cg.constant(k)}: {cg.value(v)}" for k, v in self._entries.items())
            fresh = cg.temporary("{" + inner + "}")
            return [f"{namespace}.clear()", f"{namespace}.update({fresh})"]
        lines = [f"del {namespace}[{key!r}]" for key in self._deleted]
        return lines + self._assignments(cg, target, self._written)

    def _assignments(self, cg: Codegen, target: str, entries: dict[Any, Value]) -> list[str]:
        setter = cg.constant(object.__setattr__)
        lines = []
        namespace = cg.namespace_of(target, self.owner.cls)
        for key, value in entries.items():
            if self._is_plain(key):
                lines.append(f"{setter}({target}, {key!r}, {cg.value(value)})")
            else:
                lines.append(f"{namespace}[{cg.constant(key)}] = {cg.value(value)}")
        return lines

    def _is_plain(self, key: Any) -> bool:
        """Whether the default ``__setattr__`` stores into the dict: no data descriptor of that name."""
        if not isinstance(key, str):
            return False
        for cls in self.owner.cls.__mro__:
            if key in class_dict(cls):
                return not hasattr(type(class_dict(cls)[key]), "__set__") and cls is not object
        return True


class LoadedModulesValue(DictValue):
    """``sys.modules``, asked for single names: imports change it, those of capture too."""

    def contents(self, tracer: Tracer) -> dict[Any, Value]:
        raise Break("opaque-object", "all of sys.modules")

    def touch(self, tracer: Tracer) -> None:
        raise Break("opaque-object", "a change of sys.modules")


class ThreadLocalValue(Value):
    """``threading.local()``: guards read it in the thread that calls."""

    def __init__(self, obj: Any, source: Source) -> None:
        self.obj = obj
        self.source = source

    @property
    def pytype(self) -> type:
        return type(self.obj)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name not in vars(self.obj):
            raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")
        assert self.source is not None
        found: Value = tracer.realize(tracer.child(getattr(self.obj, name), AttrSource(self.source, name)))
        return found

    def truth(self, tracer: Tracer) -> bool:
        return True

    def reconstruct(self, cg: Codegen) -> str:
        assert self.source is not None
        return cg.load(self.source)
