"""Dicts, their views, and sets. Keys and set items are constants."""

from __future__ import annotations

from typing import Any

from ..breaks import Break, Skip
from ..guards import Kind
from ..source import ItemSource, Source
from .base import Codegen, OpaqueValue, Tracer, Value
from .iterator import IteratorValue, advance
from .number import ConstValue
from .seq import TupleValue


class DictValue(Value):
    """A dict. One from outside is known key by key (``DICT_HAS`` guards) until something asks for all of
    it; writes to it are recorded and replayed."""

    def __init__(
        self, entries: dict[Any, Value] | None, source: Source | None = None, obj: Any = None
    ) -> None:
        self._entries = entries
        self._obj = obj
        self.source = source
        self._read: dict[Any, Value] = {}
        self._written: dict[Any, Value] = {}
        self.mutated = False

    @property
    def obj(self) -> Any:
        """The object, where it came from outside."""
        return self._obj

    @property
    def pytype(self) -> type:
        return dict

    def contents(self, tracer: Tracer) -> dict[Any, Value]:
        """Every entry, in order."""
        if self._entries is None:
            assert self.source is not None
            keys = tuple(self._obj)
            for key in keys:
                tracer.check_key(key)
            tracer.guard(self.source, Kind.DICT_KEYS, keys)
            self._entries = {k: self._read.get(k) or self._child(tracer, k) for k in keys}
            self._entries.update(self._written)
        return self._entries

    def _child(self, tracer: Tracer, key: Any) -> Value:
        assert self.source is not None
        return tracer.child(self._obj[key], ItemSource(self.source, key))

    def children(self) -> tuple[Value, ...]:
        return tuple((self._written if self._entries is None else self._entries).values())

    def lookup(self, tracer: Tracer, key: Any) -> Value | None:
        """The entry of a constant key, ``None`` where there is none."""
        if self._entries is not None:
            return self._entries.get(key)
        if key in self._written:
            return self._written[key]
        if key not in self._read:
            assert self.source is not None
            if key not in self._obj:
                tracer.guard(self.source, Kind.DICT_LACKS, key)
                return None
            tracer.guard(self.source, Kind.DICT_HAS, key)
            self._read[key] = self._child(tracer, key)
        return self._read[key]

    def key_of(self, tracer: Tracer, key: Value) -> Any:
        value = tracer.constant_of(key, "a dict key")
        tracer.check_key(value)
        return value

    def store(self, tracer: Tracer, key: Any, value: Value) -> None:
        self.touch(tracer)
        (self._written if self._entries is None else self._entries)[key] = value

    def touch(self, tracer: Tracer) -> None:
        self.mutated = True
        tracer.note_mutation(self)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        found = self.lookup(tracer, self.key_of(tracer, key))
        if found is None:
            tracer.raise_exception(KeyError, key)
        return tracer.realize(found)

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        self.store(tracer, self.key_of(tracer, key), value)

    def delitem(self, tracer: Tracer, key: Value) -> None:
        constant = self.key_of(tracer, key)
        entries = self.contents(tracer)
        if constant not in entries:
            tracer.raise_exception(KeyError, key)
        self.touch(tracer)
        del entries[constant]

    def contains(self, tracer: Tracer, item: Value) -> Value:
        return ConstValue(self.lookup(tracer, self.key_of(tracer, item)) is not None)

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.contents(tracer))

    def length(self, tracer: Tracer) -> Value:
        return ConstValue(len(self.contents(tracer)))

    def iterate(self, tracer: Tracer) -> Value:
        return DictIterator(tracer, self, "keys", self)

    def items(self, tracer: Tracer) -> list[Value]:
        return [ConstValue(k) for k in self.contents(tracer)]

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.container_method(self, name)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        assert self._entries is not None
        return "{" + ", ".join(f"{cg.constant(k)}: {cg.value(v)}" for k, v in self._entries.items()) + "}"

    def replay(self, cg: Codegen) -> list[str]:
        """Statements that bring the outside dict up to date."""
        target = cg.value(self)
        if self._entries is None:
            return [f"{target}[{cg.constant(k)}] = {cg.value(v)}" for k, v in self._written.items()]
        inner = ", ".join(f"{cg.constant(k)}: {cg.value(v)}" for k, v in self._entries.items())
        fresh = cg.temporary("{" + inner + "}")
        return [f"{target}.clear()", f"{target}.update({fresh})"]

    def for_rule(self, tracer: Tracer) -> Any:
        return {k: tracer.realize(v).for_rule(tracer) for k, v in self.contents(tracer).items()}


class DictViewValue(Value):
    """``d.keys()``, ``d.values()`` or ``d.items()``."""

    def __init__(self, owner: DictValue, kind: str) -> None:
        self.owner = owner
        self.kind = kind

    @property
    def pytype(self) -> type:
        return type(getattr({}, self.kind)())

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def items(self, tracer: Tracer) -> list[Value]:
        entries = self.owner.contents(tracer)
        if self.kind == "keys":
            return [ConstValue(k) for k in entries]
        values = [tracer.realize(v) for v in entries.values()]
        if self.kind == "values":
            return values
        return [TupleValue([ConstValue(k), v]) for k, v in zip(entries, values)]

    def iterate(self, tracer: Tracer) -> Value:
        return DictIterator(tracer, self.owner, self.kind, self)

    def length(self, tracer: Tracer) -> Value:
        return self.owner.length(tracer)

    def contains(self, tracer: Tracer, item: Value) -> Value:
        if self.kind == "keys":
            return self.owner.contains(tracer, item)
        raise Break("unsupported-operation", f"membership test in dict {self.kind}")

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.owner)}.{self.kind}()"


class DictIterator(IteratorValue):
    """Iterator over a dict or one of its views: sees new values of the keys that were there."""

    def __init__(self, tracer: Tracer, owner: DictValue, kind: str, origin: Value) -> None:
        self.owner = owner
        self.kind = kind
        self.origin = origin
        self.keys = list(owner.contents(tracer))
        self.position = 0
        self.done = False

    @property
    def pytype(self) -> type:
        return type(iter(getattr({}, self.kind)()))

    def describe(self) -> str:
        return f"an iterator over {self.origin.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.origin,)

    def remaining(self, tracer: Tracer) -> int | None:
        return len(self.keys) - self.position

    def next(self, tracer: Tracer) -> Value | None:
        if self.done:
            return None
        self._check_unchanged(tracer)
        if self.position == len(self.keys):
            self.done = True
            return None
        key = self.keys[self.position]
        self.position += 1
        tracer.steps += 1
        if self.kind == "keys":
            return ConstValue(key)
        value = tracer.realize(self.owner.contents(tracer)[key])
        return value if self.kind == "values" else TupleValue([ConstValue(key), value])

    def _check_unchanged(self, tracer: Tracer) -> None:
        if list(self.owner.contents(tracer)) != self.keys:
            raise Skip("a dict that gets or loses keys while it is iterated over")

    def reconstruct(self, cg: Codegen) -> str:
        if self.done:
            return f"{cg.constant(iter)}({cg.constant(dict)}().{self.kind}())"
        self._check_unchanged(cg.tracer)
        target = cg.value(self.origin)
        if self.owner.source is not None and self.owner.mutated:
            # an iterator is bound to the size that the dict has when it is made
            for line in self.owner.replay(cg):
                cg.line(line)
        text = f"{cg.constant(iter)}({target})"
        return f"{cg.constant(advance)}({text}, {self.position})" if self.position else text


class SetValue(Value):
    """A set or frozenset of constants that was made in the frame."""

    def __init__(self, elements: dict[Any, None], frozen: bool = False) -> None:
        self.elements = elements
        self.frozen = frozen

    @property
    def pytype(self) -> type:
        return frozenset if self.frozen else set

    def contains(self, tracer: Tracer, item: Value) -> Value:
        return ConstValue(tracer.constant_of(item, "a set item") in self.elements)

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.elements)

    def length(self, tracer: Tracer) -> Value:
        return ConstValue(len(self.elements))

    def add(self, tracer: Tracer, item: Value) -> None:
        tracer.steps += 1
        self.elements[tracer.fold(_hashable, tracer.constant_of(item, "a set item"))] = None

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.container_method(self, name)

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(cg.constant(e) for e in self.elements)
        return f"{cg.constant(self.pytype)}(({inner}{',' if inner else ''}))"


def _hashable(value: Any) -> Any:
    hash(value)
    return value


class SizedValue(OpaqueValue):
    """A container from outside of which only the length is known and guarded (an ``OrderedDict``)."""

    def length(self, tracer: Tracer) -> Value:
        return ConstValue(len(self.obj))

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.length(tracer).const)
