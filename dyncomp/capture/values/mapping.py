"""Dicts and their views. Keys are constants."""

from __future__ import annotations

import collections
import enum
import inspect
import types
from typing import Any

from ..breaks import Break, Skip
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind, short
from ..guards.program import is_plain_key
from ..guards.source import AttrSource, DictKeySource, DictValueSource, ItemSource, Source
from ..objects.class_names import class_dict, module_of
from .array import ArrayValue
from .base import Codegen, OpaqueValue, Tracer, Value
from .func import BoundMethodValue
from .iterator import IteratorValue, advance
from .number import ConstValue
from .seq import TupleValue, refuse_large, spread
from .steady import Steady


def has_keys_in_order(mapping: Any, keys: tuple[Any, ...]) -> bool:
    """The guard of an ordered dict's keys: by type and value, in order."""
    found = list(collections.OrderedDict.__iter__(mapping))
    return len(found) == len(keys) and all(type(a) is type(b) and a == b for a, b in zip(found, keys))


class DictValue(Value):
    """A dict, ``OrderedDict`` or ``Counter`` (``cls``). One from outside is known key by key (``DICT_HAS``
    guards) until something asks for all of it; writes to it are recorded and replayed."""

    def __init__(
        self,
        entries: dict[Any, Value] | None,
        source: Source | None = None,
        obj: Any = None,
        cls: type = dict,
    ) -> None:
        self._entries = entries
        self._obj = obj
        self.source = source
        self.cls = cls
        self._original: dict[Any, Value] = {}
        self._read: dict[Any, Value] = {}
        self._written: dict[Any, Value] = {}
        self.mutated = False
        self.changes_of_keys = 0
        self._is_cleared = False
        self._taken: set[Any] = set()
        self._keys_are_checked = False
        self._places: dict[int, int] | None = None  # of keys, by id
        self._objects: dict[int, Value] = {}  # keys that are objects from outside, by id

    @property
    def obj(self) -> Any:
        """The object, where it came from outside."""
        return self._obj

    @property
    def pytype(self) -> type:
        return self.cls

    def contents(self, tracer: Tracer) -> dict[Any, Value]:
        """Every entry, in order."""
        self._check_namespace(tracer, tracer.global_writes)
        if self._entries is None:
            assert self.source is not None
            refuse_large(tracer, dict.__len__(self._obj), "dict")
            for key in dict.__iter__(self._obj):
                tracer.check_key(key)
            # an ordered one hashes its keys for this
            keys = tuple(self.cls.__iter__(self._obj))  # type: ignore[attr-defined]
            if self.cls is collections.OrderedDict and not keys:
                tracer.guard(self.source, Kind.LEN, (self.cls, 0))  # (a module's hooks: C asks for many)
            elif issubclass(self.cls, collections.OrderedDict):
                check = CustomCheck(has_keys_in_order, keys, f"keys in the order {short(keys):.80}")
                tracer.guard(self.source, Kind.CUSTOM_ARRAY, check)
            else:
                tracer.guard(self.source, Kind.DICT_KEYS, keys)
            self._original = {k: self._read.get(k) or self._child(tracer, k) for k in keys}
            self._entries = {**self._original, **self._written}
            self.changes_of_keys += not self._written.keys() <= self._original.keys()
        return self._entries

    def _child(self, tracer: Tracer, key: Any) -> Value:
        assert self.source is not None
        return tracer.child(dict.__getitem__(self._obj, key), ItemSource(self.source, key))

    def children(self) -> tuple[Value, ...]:
        return tuple((self._written if self._entries is None else self._entries).values())

    def lookup(self, tracer: Tracer, key: Any) -> Value | None:
        """The entry of a constant key, ``None`` where there is none."""
        self._check_namespace(tracer, tracer.global_writes)
        if self._entries is not None:
            return self._entries.get(key)
        if key in self._written:
            return self._written[key]
        if key not in self._read:
            assert self.source is not None
            if not is_plain_key(key) and self._is_object(tracer, key):
                return self._entry_of_object(tracer, key)
            self._check_keys(tracer)
            if not dict.__contains__(self._obj, key):
                tracer.guard(self.source, Kind.DICT_LACKS, key)
                return None
            tracer.guard(self.source, Kind.DICT_HAS, key)
            self._read[key] = self._child(tracer, key)
        return self._read[key]

    def _is_object(self, tracer: Tracer, key: Any) -> bool:
        """Whether a key is an object from outside that is told by its identity alone (see :meth:`key_of`)."""
        return id(key) in tracer.by_id and not isinstance(key, (tuple, frozenset))

    def _entry_of_object(self, tracer: Tracer, key: Any) -> Value | None:
        """The entry of an object: guards say at which place in the dict the object is the key. A call that
        makes entries (an optimizer's first step) is not worth compiling, unless that is demanded."""
        assert self.source is not None
        if self._places is None:
            self._places = {id(found): place for place, found in enumerate(dict.__iter__(self._obj))}
        place = self._places.get(id(key))
        if place is None:
            tracer.guard(self.source, Kind.LEN, (self.cls, len(self._places)))
            if self._places or not tracer.breaks_are_errors:
                raise Skip("a dict gets an entry for an object")  # which other calls find there, as a rule
            return None
        source = tracer.by_id[id(key)][0].source
        tracer.guard(DictKeySource(self.source, place), Kind.SAME_OBJECT, source)
        value = dict.__getitem__(self._obj, key)
        self._read[key] = tracer.child(value, DictValueSource(self.source, place))
        return self._read[key]

    def _check_keys(self, tracer: Tracer) -> None:
        """Looking something up compares keys: no code of the program may run for it now."""
        if self._keys_are_checked:
            return
        for kind in {id(kind): kind for kind in map(type, dict.__iter__(self._obj))}.values():
            if _compares_in_python(kind) and not tracer.config.is_trusted(module_of(kind)):
                raise Break("unsupported-operation", f"look-up among keys of type {kind.__name__}")
        self._keys_are_checked = True

    def key_of(self, tracer: Tracer, key: Value) -> Any:
        """The key itself: a constant, or an object from outside that is told by its identity."""
        key = tracer.realize(key)
        if isinstance(key, ArrayValue) and self.source is not None and self._entries is None:
            known = tracer.object_told_by_identity(key)
            if known is not None:
                return known
        value = tracer.key_constant(key, "a dict key")
        if self.source is None and isinstance(value, enum.Enum) and type(value).__hash__ in _ENUM_HASHES:
            return value
        if self.source is not None or not tracer.is_library_key(value):
            tracer.check_key(value)
        return value

    def store(self, tracer: Tracer, key: object, value: Value) -> None:
        if not is_plain_key(key) and self.source is not None and self._is_object(tracer, key):
            self._objects[id(key)] = tracer.by_id[id(key)][0]
            if dict.__len__(self._obj):
                raise Skip("a dict gets an entry for an object")
        known = (self._read if self._entries is None else self._entries).get(key)
        if known is not None and tracer.realize(known) is value and key not in self._written:
            return  # it is there already
        self.touch(tracer)
        if self._entries is None:
            self._written[key] = value
            return
        self.changes_of_keys += key not in self._entries
        self._entries[key] = value

    def take(self, tracer: Tracer, key: object) -> Value:
        """Remove an entry that is there."""
        entries = self.contents(tracer)
        self.touch(tracer)
        self.changes_of_keys += 1
        self._taken.add(key)
        return entries.pop(key)

    def clear(self, tracer: Tracer) -> None:
        entries = self.contents(tracer)
        self.touch(tracer)
        self._is_cleared = True
        entries.clear()

    def _check_namespace(self, tracer: Tracer, changing: Any) -> None:
        """A module's globals as a dict are left to plain Python once they change, as names read them too."""
        if changing and self._obj is not None and ("__builtins__" in self._obj or "__spec__" in self._obj):
            raise Break("opaque-object", "a module's changing globals as a dict")

    def touch(self, tracer: Tracer) -> None:
        self._check_namespace(tracer, True)
        self.mutated = True
        tracer.note_mutation(self)

    def missing(self, tracer: Tracer, key: object) -> Value:
        """What reading an absent key gives."""
        if self.cls is collections.Counter:
            return ConstValue(0)
        raise tracer.raise_exception(KeyError, key)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        constant = self.key_of(tracer, key)
        found = self.lookup(tracer, constant)
        return self.missing(tracer, constant) if found is None else tracer.realize(found)

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        self.store(tracer, self.key_of(tracer, key), value)

    def delitem(self, tracer: Tracer, key: Value) -> None:
        constant = self.key_of(tracer, key)
        if constant not in self.contents(tracer):
            if self.cls is collections.Counter:
                return
            tracer.raise_exception(KeyError, constant)
        self.take(tracer, constant)

    def contains(self, tracer: Tracer, item: Value) -> Value:
        return ConstValue(self.lookup(tracer, self.key_of(tracer, item)) is not None)

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.contents(tracer))

    def length(self, tracer: Tracer) -> Value:
        return ConstValue(len(self.contents(tracer)))

    def iterate(self, tracer: Tracer) -> Value:
        return DictIterator(tracer, self, "keys", self)

    def iterate_backwards(self, tracer: Tracer) -> Value:
        return DictIterator(tracer, self, "keys", self, backwards=True)

    def items(self, tracer: Tracer) -> list[Value]:
        return [ConstValue(k) for k in self.contents(tracer)]

    def copied(self, tracer: Tracer) -> DictValue:
        """``copy()``: another dict of the class with the same entries."""
        return DictValue(dict(self.contents(tracer)), cls=self.cls)

    def python_method(self, tracer: Tracer, name: str) -> Value | None:
        """The bound method ``name`` where the class writes it in Python (``Counter``)."""
        found = inspect.getattr_static(self.cls, name, None) if self.cls is collections.Counter else None
        if not isinstance(found, types.FunctionType):
            return None
        return BoundMethodValue(self, tracer.child_or_constant(found, None))

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "__class__":
            return ConstValue(self.cls)
        return self.python_method(tracer, name) or tracer.container_method(self, name)

    # -- rebuilding -----------------------------------------------------------------------------
    def view_text(self, cg: Codegen, kind: str) -> str:
        """The dict's ``keys()``, ``values()`` or ``items()``."""
        return f"{cg.value(self)}.{kind}()"

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        assert self._entries is not None
        return self._made(cg, self._display(cg))

    def _display(self, cg: Codegen) -> str:
        assert self._entries is not None
        return cg.entries(self._entries)

    def _made(self, cg: Codegen, display: str) -> str:
        return display if self.cls is dict else f"{cg.constant(self.cls)}({display})"

    def replay(self, cg: Codegen) -> list[str]:
        """Statements that bring the outside dict up to date, touching no entry that is as it was."""
        target = cg.value(self)
        if self._entries is None:
            return [f"{target}[{self._key(cg, k)}] = {cg.value(v)}" for k, v in self._written.items()]
        removed, is_cleared, stored = self.differences()
        lines = [f"del {target}[{cg.constant(k)}]" for k in removed]
        lines += [f"{target}.clear()"] * is_cleared
        return lines + [f"{target}[{self._key(cg, k)}] = {cg.value(v)}" for k, v in stored.items()]

    def _key(self, cg: Codegen, key: Any) -> str:
        return cg.value(self._objects[id(key)]) if id(key) in self._objects else cg.constant(key)

    def differences(self) -> tuple[list[Any], bool, dict[Any, Value]]:
        """What brings an outside dict up to date: keys to be removed, whether it is cleared then, and entries
        to be stored. Iterators over it notice what they notice in the program: that a key was taken and put
        in anew, and those of an ``OrderedDict`` any change of its keys but that it is cleared."""
        assert self._entries is not None
        steady = {k: v for k, v in self._original.items() if k not in self._taken}
        kept = set() if self._is_cleared else kept_in_place(steady, self._entries)
        removed = [] if self._is_cleared else [k for k in self._original if k not in kept]
        if issubclass(self.cls, collections.OrderedDict) and self.changes_of_keys and self._original:
            if not removed and self._entries.keys() <= kept:
                last = next(reversed(self._original))
                removed, kept = [last], kept - {last}
        stored = {k: v for k, v in self._entries.items() if k not in kept or v is not self._original[k]}
        return removed, self._is_cleared, stored

    def for_rule(self, tracer: Tracer) -> Any:
        return {k: tracer.realize(v).for_rule(tracer) for k, v in self.contents(tracer).items()}


def _compares_in_python(cls: type) -> bool:
    found = next(class_dict(base)["__eq__"] for base in cls.__mro__ if "__eq__" in class_dict(base))
    return not isinstance(found, types.WrapperDescriptorType)


_ENUM_HASHES = (enum.Enum.__hash__, int.__hash__, str.__hash__)


def kept_in_place(before: dict[Any, Value], after: dict[Any, Value]) -> set[Any]:
    """Keys that need not be deleted and put in anew for the order to become that of ``after``."""
    kept: set[Any] = set()
    order = iter(before)
    for key in after:
        if key not in before or key not in order:  # ``in`` moves ``order`` on
            break
        kept.add(key)
    return kept


class DefaultDictValue(DictValue):
    """A ``defaultdict``."""

    def __init__(
        self,
        entries: dict[Any, Value] | None,
        factory: Value,
        source: Source | None = None,
        obj: object = None,
    ) -> None:
        super().__init__(entries, source, obj, collections.defaultdict)
        self.factory = factory

    @staticmethod
    def outside(tracer: Tracer, obj: Any, source: Source) -> DefaultDictValue:
        factory = tracer.child(obj.default_factory, AttrSource(source, "default_factory"))
        return DefaultDictValue(None, factory, source, obj)

    def children(self) -> tuple[Value, ...]:
        return (*super().children(), self.factory)

    def missing(self, tracer: Tracer, key: object) -> Value:
        factory = tracer.realize(self.factory)
        if factory.is_const and factory.const is None:
            tracer.raise_exception(KeyError, key)
        value: Value = tracer.realize(tracer.call_value(factory, [], {}))
        self.store(tracer, key, value)
        return value

    def copied(self, tracer: Tracer) -> DictValue:
        return DefaultDictValue(dict(self.contents(tracer)), self.factory)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return self.factory if name == "default_factory" else super().getattr(tracer, name)

    def _made(self, cg: Codegen, display: str) -> str:
        return f"{cg.constant(self.cls)}({cg.value(self.factory)}, {display})"


def _empty_of(owner: DictValue) -> Any:
    """An empty mapping whose views and iterators are of the types of ``owner``'s."""
    return collections.OrderedDict() if owner.cls is collections.OrderedDict else {}


class DictViewValue(Value):
    """``d.keys()``, ``d.values()`` or ``d.items()``."""

    def __init__(self, owner: DictValue, kind: str) -> None:
        self.owner = owner
        self.kind = kind

    @property
    def pytype(self) -> type:
        return type(getattr(_empty_of(self.owner), self.kind)())

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

    def iterate_backwards(self, tracer: Tracer) -> Value:
        return DictIterator(tracer, self.owner, self.kind, self, backwards=True)

    def length(self, tracer: Tracer) -> Value:
        return self.owner.length(tracer)

    def contains(self, tracer: Tracer, item: Value) -> Value:
        if self.kind == "keys":
            return self.owner.contains(tracer, item)
        if self.kind == "values":
            steady = Steady(tracer, self.owner)
            found = any(steady.same_or_equal(tracer, v, item) for v in self.items(tracer))
            return ConstValue(found)
        item = spread(item)
        if not isinstance(item, TupleValue) or len(item.contents(tracer)) != 2:
            raise Break("unsupported-operation", f"{item.describe()} in dict items")
        key, value = item.contents(tracer)
        entry = self.owner.lookup(tracer, self.owner.key_of(tracer, key))
        return ConstValue(entry is not None and tracer.same_or_equal(entry, value))

    def truth(self, tracer: Tracer) -> bool:
        return self.owner.truth(tracer)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.container_method(self, name)

    def reconstruct(self, cg: Codegen) -> str:
        return self.owner.view_text(cg, self.kind)


class DictIterator(IteratorValue):
    """Iterator over a dict or one of its views: sees new values of the keys that were there."""

    def __init__(
        self, tracer: Tracer, owner: DictValue, kind: str, origin: Value, backwards: bool = False
    ) -> None:
        self.owner = owner
        self.kind = kind
        self.origin = origin
        self.make: Any = reversed if backwards else iter
        self.keys = list(self.make(owner.contents(tracer)))
        self._seen = owner.changes_of_keys
        self.position = 0
        self.done = False

    @property
    def pytype(self) -> type:
        return type(self.make(getattr(_empty_of(self.owner), self.kind)()))

    def describe(self) -> str:
        return f"an iterator over {self.origin.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.origin,)

    def remaining(self, tracer: Tracer) -> int | None:
        return len(self.keys) - self.position

    def next(self, tracer: Tracer) -> Value | None:
        if self.done:
            return None
        if len(self.owner.contents(tracer)) != len(self.keys) and self.owner.cls is dict:
            tracer.raise_exception(RuntimeError, "dictionary changed size during iteration")
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
        changed = self.owner.changes_of_keys != self._seen
        if changed or list(self.make(self.owner.contents(tracer))) != self.keys:
            raise Skip("a dict that gets or loses keys while it is iterated over")

    def reconstruct(self, cg: Codegen) -> str:
        if self.done:
            return f"{cg.constant(self.make)}({cg.constant(type(_empty_of(self.owner)))}().{self.kind}())"
        self._check_unchanged(cg.tracer)
        target = cg.value(self.origin)
        cg.replay(self.owner)  # an iterator is bound to the size that the dict has when it is made
        text = f"{cg.constant(self.make)}({target})"
        return f"{cg.constant(advance)}({text}, {self.position})" if self.position else text


class SizedValue(OpaqueValue):
    """A container from outside of which only the length is known and guarded (a large set)."""

    def length(self, tracer: Tracer) -> Value:
        return ConstValue(len(self.obj))

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.length(tracer).const)
