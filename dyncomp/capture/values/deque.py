"""``collections.deque``."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..guards.guard import Kind
from ..guards.source import AttrSource, ItemSource, Source
from .base import Codegen, Tracer, Value
from .iterator import IteratorValue, advance
from .number import ConstValue
from .seq import SequenceValue, refuse_large


class DequeValue(SequenceValue):
    """A deque. One from outside is not looked into until it has to be: appending to it only records the
    appended items."""

    def __init__(
        self, items: list[Value] | None, maxlen: int | None, source: Source | None = None, obj: Any = None
    ) -> None:
        self._items = items
        self.maxlen = maxlen
        self._obj = obj
        self.source = source
        self.appended: list[Value] = []
        self.mutated = False
        self.version = 0

    @staticmethod
    def outside(tracer: Tracer, obj: Any, source: Source) -> DequeValue:
        tracer.guard(source, Kind.TYPE_IS, collections.deque)
        tracer.guard(AttrSource(source, "maxlen"), *_maxlen_guard(obj.maxlen))
        return DequeValue(None, obj.maxlen, source, obj)

    @property
    def pytype(self) -> type:
        return collections.deque

    def contents(self, tracer: Tracer) -> list[Value]:
        if self._items is None:
            assert self.source is not None
            size = len(self._obj)
            refuse_large(tracer, size, "deque")
            tracer.guard(self.source, Kind.LEN, (collections.deque, size))
            found = [tracer.child(self._obj[i], ItemSource(self.source, i)) for i in range(size)]
            self._items = self.trimmed(found + self.appended)
        return self._items

    def trimmed(self, items: list[Value]) -> list[Value]:
        """The items that stay where more are appended than ``maxlen``."""
        return items if self.maxlen is None else items[max(0, len(items) - self.maxlen) :]

    def children(self) -> tuple[Value, ...]:
        return tuple(self.appended if self._items is None else self._items)

    def rebuild(self, items: list[Value]) -> Value:
        return DequeValue(self.trimmed(items), self.maxlen)

    def touch(self, tracer: Tracer, *, is_seen: bool = True) -> None:
        """It changes; iterators over it raise then, but where items are only replaced or reversed."""
        self.mutated = True
        self.version += is_seen
        tracer.note_mutation(self)

    def append(self, tracer: Tracer, value: Value) -> None:
        self.touch(tracer)
        if self._items is None:
            self.appended.append(value)
        else:
            self._items[:] = self.trimmed([*self._items, value])

    def append_left(self, tracer: Tracer, value: Value) -> None:
        items = self.contents(tracer)
        self.touch(tracer)
        items.insert(0, value)
        if self.maxlen is not None:
            del items[self.maxlen :]

    def index_of(self, tracer: Tracer, key: Value) -> int:
        items = self.contents(tracer)
        index = tracer.index_constant(key, "a deque index")
        if index < 0:
            index += len(items)
        if not 0 <= index < len(items):
            tracer.raise_exception(IndexError, "deque index out of range")
        return index

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        where = self.index_of(tracer, key)
        found: Value = tracer.realize(self.contents(tracer)[where])
        return found

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        where = self.index_of(tracer, key)
        self.touch(tracer, is_seen=False)
        self.contents(tracer)[where] = value

    def delitem(self, tracer: Tracer, key: Value) -> None:
        where = self.index_of(tracer, key)
        self.touch(tracer)
        del self.contents(tracer)[where]

    def iterate(self, tracer: Tracer) -> Value:
        return DequeIterator(tracer, self, backwards=False)

    def iterate_backwards(self, tracer: Tracer) -> Value:
        return DequeIterator(tracer, self, backwards=True)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "maxlen":
            return ConstValue(self.maxlen)
        return tracer.container_method(self, name)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        assert self._items is not None
        inner = cg.items(self._items)
        maxlen = "" if self.maxlen is None else f", {self.maxlen}"
        return f"{cg.constant(collections.deque)}([{inner}]{maxlen})"

    def replay(self, cg: Codegen) -> list[str]:
        """Statements that bring the outside deque up to date."""
        target = cg.value(self)
        if self._items is None:
            return [f"{target}.append({cg.value(v)})" for v in self.appended]
        inner = cg.items(self._items)
        fresh = cg.temporary(f"[{inner}]")
        if self.version == 0:  # iterators over it are not to notice
            return [f"{target}[{k}] = {fresh}[{k}]" for k in range(len(self._items))]
        return [f"{target}.clear()", f"{target}.extend({fresh})"]


def _maxlen_guard(maxlen: int | None) -> tuple[Any, ...]:
    return (Kind.NONE,) if maxlen is None else (Kind.EQUALS, maxlen)


class DequeIterator(IteratorValue):
    """Iterator over a deque, forwards or backwards."""

    def __init__(self, tracer: Tracer, owner: DequeValue, backwards: bool) -> None:
        self.owner = owner
        self.make: Any = reversed if backwards else iter
        self.size = len(owner.contents(tracer))
        self.version = owner.version
        self.position = 0

    @property
    def pytype(self) -> type:
        return type(self.make(collections.deque()))

    def describe(self) -> str:
        return f"an iterator over {self.owner.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def remaining(self, tracer: Tracer) -> int | None:
        return self.size - self.position

    def next(self, tracer: Tracer) -> Value | None:
        if self.position == self.size and self.make is reversed:
            return None
        if self.version != self.owner.version:
            position, self.position = self.position, self.size
            try:
                tracer.raise_exception(RuntimeError, "deque mutated during iteration")
            except Break:  # plain Python is to raise it
                self.position = position
                raise
        if self.position == self.size:
            return None
        self.position += 1
        tracer.steps += 1
        where = -self.position if self.make is reversed else self.position - 1
        return tracer.realize(self.owner.contents(tracer)[where])

    def reconstruct(self, cg: Codegen) -> str:
        if self.version != self.owner.version:
            args = f"{cg.constant(self.make)}, {self.size}, {self.position}"
            return f"{cg.constant(outdated_iterator)}({args})"
        cg.replay(self.owner)
        text = f"{cg.constant(self.make)}({cg.value(self.owner)})"
        return f"{cg.constant(advance)}({text}, {self.position})" if self.position else text


def outdated_iterator(make: Callable[..., Any], size: int, position: int) -> Any:
    """An iterator of a deque that was changed since; over a deque of its own, as the program's may have
    other iterators, which are not to notice."""
    items = collections.deque([None] * size)
    iterator = advance(make(items), position)
    items.append(None)
    return iterator
