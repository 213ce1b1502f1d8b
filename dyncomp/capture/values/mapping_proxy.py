"""``types.MappingProxyType``: a dict that can only be read."""

from __future__ import annotations

import collections
import gc
import types
from typing import Any

from ..breaks import Break
from ..guards.guard import Kind
from ..guards.source import MappingSource, Source
from .base import Codegen, NamedMethodValue, OpaqueValue, Tracer, Value
from .mapping import DictValue

_METHODS = ("get", "keys", "values", "items", "copy")


class MappingProxyValue(Value):
    """A proxy of ``owner``: it shows what the dict holds at each moment."""

    def __init__(self, owner: DictValue, source: Source | None = None, obj: object = None) -> None:
        self.owner = owner
        self.source = source
        self.obj = obj

    @staticmethod
    def outside(tracer: Tracer, obj: types.MappingProxyType[Any, Any], source: Source) -> Value:
        tracer.guard(source, Kind.TYPE_IS, types.MappingProxyType)
        (behind,) = gc.get_referents(obj)
        if type(behind) not in (dict, collections.OrderedDict) or "__doc__" in behind:  # a class's
            return OpaqueValue(obj, source)
        owner = tracer.realize(tracer.child(behind, MappingSource(source)))
        return MappingProxyValue(owner, source, obj) if type(owner) is DictValue else OpaqueValue(obj, source)

    @property
    def pytype(self) -> type:
        return types.MappingProxyType

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name not in _METHODS:
            raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")
        return ProxyMethodValue(self, name)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        return self.owner.getitem(tracer, key)

    def contains(self, tracer: Tracer, item: Value) -> Value:
        return self.owner.contains(tracer, item)

    def iterate(self, tracer: Tracer) -> Value:
        return self.owner.iterate(tracer)

    def iterate_backwards(self, tracer: Tracer) -> Value:
        return self.owner.iterate_backwards(tracer)

    def items(self, tracer: Tracer) -> list[Value]:
        return self.owner.items(tracer)

    def truth(self, tracer: Tracer) -> bool:
        return self.owner.truth(tracer)

    def length(self, tracer: Tracer) -> Value:
        return self.owner.length(tracer)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        return f"{cg.constant(types.MappingProxyType)}({cg.value(self.owner)})"


class ProxyMethodValue(NamedMethodValue):
    """A method of a proxy: the one of the dict behind it."""

    owner: MappingProxyValue

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        found: Value = tracer.call_container_method(self.owner.owner, self.name, args, kwargs)
        return found
