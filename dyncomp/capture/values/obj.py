"""Instances of user classes, and modules."""

from __future__ import annotations

import types
from typing import Any

from ...hook import _hook
from ..breaks import Break
from ..guards.guard import Kind
from ..guards.module_facts import Absent
from ..guards.source import AttrSource, Source
from .base import Codegen, Tracer, Value
from .namespace import NamespaceValue

_MISSING = object()
_OWN = __name__.partition(".")[0]
_ALLOCATORS = (object, types.SimpleNamespace)


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
        if not _hook.has_plain_names(vars(self.module)):
            raise Break("opaque-object", f"{self.describe()}, whose keys run code")
        behind = self.behind(tracer, name)
        if behind is not None:
            return behind.getattr(tracer, name)
        self.check_absent(tracer, name)
        if name not in vars(self.module) and "__getattr__" in vars(self.module):
            tracer.fold(getattr, self.module, name)  # packages that load their modules when first asked
        found = vars(self.module).get(name, _MISSING)
        if found is _MISSING:
            raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")
        source = AttrSource(self.source, name) if self.source is not None else None
        return tracer.module_member(self.module, name, found, source)

    def behind(self, tracer: Tracer, name: str) -> ModuleValue | None:
        """The module that hands on its attribute ``name``, which this one does not have."""
        kind = type(self.module)
        if kind is types.ModuleType or any(name in vars(owner) for owner in (self.module, *kind.__mro__)):
            return None
        for frontend in tracer.config.frontends:
            found = frontend.module_behind(self.module)
            if found is not None:
                tracer.relied_members.setdefault(id(self.module), (self.module, {}))[1][name] = Absent
                return ModuleValue(found, None)
        return None

    def check_absent(self, tracer: Tracer, name: str) -> None:
        """Guard that the module has no attribute ``name`` if it has none. Its ``__getattr__`` is then asked
        by plain Python, but for array libraries: it may do anything, and what it puts into the module is
        captured by the next call."""
        namespace = vars(self.module)
        if self.source is None or name in namespace or hasattr(types.ModuleType, name):
            return
        if self.module.__name__ == _OWN:
            getattr(self.module, name, None)  # dyncomp's own, imported when first asked for
            return
        tracer.guard(AttrSource(self.source, "__dict__"), Kind.DICT_LACKS, name)
        if "__getattr__" in namespace:
            raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()} by __getattr__")

    def reconstruct(self, cg: Codegen) -> str:
        return cg.constant(self.module)


class InstanceValue(Value):
    """An object of an ordinary Python class: from outside (``obj`` and ``source``), or made in the frame.

    ``namespace`` is its ``__dict__``, ``slots`` what was written to its slots (``None``: deleted). Attribute
    look-up, which may run the program's own code, is in ``capture.attributes``.
    """

    def __init__(self, cls: type, obj: Any = None, source: Source | None = None) -> None:
        self.cls = cls
        self.obj = obj
        self.source = source
        self.namespace = NamespaceValue(self)
        self.slots: dict[types.MemberDescriptorType, Value | None] = {}
        self.mutated = False

    @property
    def pytype(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"an object of class {self.cls.__qualname__}"

    def children(self) -> tuple[Value, ...]:
        slots = tuple(v for v in self.slots.values() if v is not None)
        return slots + self.namespace.children()

    @property
    def written(self) -> dict[str, Value]:
        """The attributes that the frame assigned."""
        return self.namespace.written

    # -- attributes -----------------------------------------------------------------------------
    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.instance_attribute(self, name)

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        tracer.set_instance_attribute(self, name, value)

    def delattr(self, tracer: Tracer, name: str) -> None:
        tracer.delete_instance_attribute(self, name)

    def read_slot(self, tracer: Tracer, slot: types.MemberDescriptorType) -> Value | None:
        """What a slot holds, ``None`` where it is empty."""
        if slot in self.slots or self.source is None:
            return self.slots.get(slot)
        found = _slot_contents(slot, self.obj)
        if found is _MISSING:
            tracer.guard(self.source, Kind.NOATTR, slot.__name__)
            return None
        return tracer.child(found, AttrSource(self.source, slot.__name__))

    def write_slot(self, tracer: Tracer, slot: types.MemberDescriptorType, value: Value | None) -> None:
        if tracer.watched is not None and self.source is not None and slot not in self.slots:
            tracer.watched.check_replaced(_slot_contents(slot, self.obj))
        self.mutated = True
        tracer.note_mutation(self)
        self.slots[slot] = value

    # -- protocols that Python code gives ---------------------------------------------------------
    def special(self, tracer: Tracer, name: str) -> Value | None:
        """The bound special method ``name`` where the class writes it in Python."""
        found: Value | None = tracer.special_method(self, name)
        return found

    def _special(self, tracer: Tracer, name: str, args: list[Value], what: str) -> Value:
        method = self.special(tracer, name)
        if method is None:
            raise Break("opaque-object", f"{what} of {self.describe()}")
        return tracer.call_value(method, args, {})

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        direct = tracer.take_direct()
        tracer.called.append(id(self.obj))
        method = self.special(tracer, "__call__")
        if method is None:
            raise Break("unsupported-call", f"call of {self.describe()}")
        return tracer.call_as(direct, method, args, kwargs)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        return self._special(tracer, "__getitem__", [key], "indexing")

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        self._special(tracer, "__setitem__", [key, value], "item assignment")

    def delitem(self, tracer: Tracer, key: Value) -> None:
        self._special(tracer, "__delitem__", [key], "item deletion")

    def length(self, tracer: Tracer) -> Value:
        return tracer.instance_length(self)

    def contains(self, tracer: Tracer, item: Value) -> Value:
        return tracer.instance_contains(self, item)

    def iterate(self, tracer: Tracer) -> Value:
        return tracer.instance_iterator(self)

    def items(self, tracer: Tracer) -> list[Value]:
        return tracer.instance_items(self)

    def open_ended(self, tracer: Tracer) -> bool:
        return self.special(tracer, "__next__") is not None

    def next(self, tracer: Tracer) -> Value | None:
        return tracer.instance_next(self)

    def truth(self, tracer: Tracer) -> bool:
        return tracer.instance_truth(self)

    # -- rebuilding ---------------------------------------------------------------------------
    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        allocate = next(base.__new__ for base in self.cls.__mro__ if base in _ALLOCATORS)
        name = cg.temporary(f"{cg.constant(allocate)}({cg.constant(self.cls)})")
        cg.remember(self, name)
        for line in self.replay(cg):
            cg.line(line)
        return name

    def replay(self, cg: Codegen) -> list[str]:
        """Statements that bring the object up to date."""
        target = cg.value(self)
        lines = []
        for slot, value in self.slots.items():
            member = cg.constant(slot)
            if value is not None:
                lines.append(f"{member}.__set__({target}, {cg.value(value)})")
            elif self.source is not None and _slot_contents(slot, self.obj) is not _MISSING:
                lines.append(f"{member}.__delete__({target})")
        return lines + self.namespace.changes(cg, target)


def _slot_contents(slot: types.MemberDescriptorType, obj: object) -> Any:
    try:
        return slot.__get__(obj)
    except AttributeError:
        return _MISSING
