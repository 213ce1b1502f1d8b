"""Iterators of ``itertools`` that share what they have read (``tee``, ``groupby``), and selections."""

from __future__ import annotations

import itertools
from typing import Any

from ..breaks import Break
from .base import Codegen, Tracer, Value
from .iterator import CombiningIterator, IteratorValue, advance, can_step


class CombinatoricIterator(IteratorValue):
    """``product``, ``permutations``, ``combinations`` and ``combinations_with_replacement``: the real
    iterator over positions says which items of ``pools`` (one for all places, or one for each) come next."""

    def __init__(self, cls: type, pools: list[list[Value]], places: Any, count: int, extra: str) -> None:
        self.cls = cls
        self.pools = pools
        self.places = places
        self.count = count
        self.extra = extra
        self.position = 0

    @property
    def pytype(self) -> type:
        found: type = self.cls
        return found

    def describe(self) -> str:
        return f"an iterator of {self.cls.__name__}"

    def children(self) -> tuple[Value, ...]:
        return tuple(v for pool in self.pools for v in pool)

    def remaining(self, tracer: Tracer) -> int | None:
        return self.count - self.position

    def next(self, tracer: Tracer) -> Value | None:
        chosen = next(self.places, None)
        if chosen is None:
            return None
        self.position += 1
        tracer.steps += 1
        if self.cls is itertools.product:
            return tracer.new_tuple([self.pools[i][k] for i, k in enumerate(chosen)])
        return tracer.new_tuple([self.pools[0][k] for k in chosen])

    def reconstruct(self, cg: Codegen) -> str:
        pools = [f"[{', '.join(cg.value(v) for v in pool)}]" for pool in self.pools]
        text = f"{cg.constant(self.cls)}({', '.join(pools)}{self.extra})"
        return f"{cg.constant(advance)}({text}, {self.position})" if self.position else text


class TeeBuffer(Value):
    """What the iterators of one ``tee`` share: the items that at least one of them has not given yet. As an
    object it is the tuple of real ``tee`` iterators, from which its parts take theirs."""

    def __init__(self, source: Value, count: int) -> None:
        self.source_iterator = source
        self.items_read: list[Value] = []
        self.parts = [TeeIterator(self, k) for k in range(count)]

    @property
    def pytype(self) -> type:
        return tuple

    def item(self, tracer: Tracer, position: int) -> Value | None:
        if position == len(self.items_read):
            found = self.source_iterator.next(tracer)
            if found is None:
                return None
            self.items_read.append(found)
        return self.items_read[position]

    def reconstruct(self, cg: Codegen) -> str:
        first = min(part.position for part in self.parts)
        pending = ", ".join(cg.value(v) for v in self.items_read[first:])
        source = cg.value(self.source_iterator)
        if pending:
            source = f"{cg.constant(itertools.chain)}([{pending}], {source})"
        offsets = tuple(part.position - first for part in self.parts)
        return f"{cg.constant(_tee_at)}({source}, {offsets!r})"


def _tee_at(source: Any, offsets: tuple[int, ...]) -> tuple[Any, ...]:
    """Tee iterators that have given the first ``offsets[i]`` items already."""
    made = itertools.tee(source, len(offsets))
    return tuple(advance(iterator, offset) for iterator, offset in zip(made, offsets))


class TeeIterator(IteratorValue):
    """One of the iterators that ``tee`` returns."""

    def __init__(self, buffer: TeeBuffer, number: int, position: int = 0) -> None:
        self.buffer = buffer
        self.number = number
        self.position = position

    @property
    def pytype(self) -> type:
        return type(itertools.tee((), 1)[0])

    def describe(self) -> str:
        return "an iterator of itertools.tee"

    def children(self) -> tuple[Value, ...]:
        return (self.buffer.source_iterator, *self.buffer.items_read)

    def bound(self, tracer: Tracer) -> int | None:
        source = self.buffer.source_iterator
        count = source.bound(tracer) if isinstance(source, IteratorValue) else None
        return None if count is None else count + len(self.buffer.items_read) - self.position

    def open_ended(self, tracer: Tracer) -> bool:
        return can_step(tracer, self.buffer.source_iterator)

    def next(self, tracer: Tracer) -> Value | None:
        item = self.buffer.item(tracer, self.position)
        if item is not None:
            self.position += 1
            tracer.steps += 1
        return item

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.buffer)}[{self.number}]"


class GroupByIterator(CombiningIterator):
    """``groupby``; the fields are those of CPython's object. One that is half consumed cannot be rebuilt: a
    capture that would have to begins again without following the call that made it."""

    def __init__(self, tracer: Tracer, source: Value, key: Value | None) -> None:
        self.sources = [source]
        self.key = key
        self.target_key: Value | None = None
        self.current_key: Value | None = None
        self.current_value: Value | None = None
        self.current_group: GroupIterator | None = None
        self.started = False
        self.place = (tracer.frames[-1].raw_code, tracer.frames[-1].current)

    @property
    def pytype(self) -> type:
        return itertools.groupby

    def children(self) -> tuple[Value, ...]:
        given = (self.key, self.target_key, self.current_key, self.current_value)
        return (*self.sources, *(v for v in given if v is not None))

    def bound(self, tracer: Tracer) -> int | None:
        count = super().bound(tracer)
        return None if count is None else count + (self.current_key is not None)

    def step(self, tracer: Tracer) -> bool:
        """Read the next item of the source and its key."""
        item = self.sources[0].next(tracer)
        if item is None:
            return False
        key = item if self.key is None else tracer.realize(tracer.call_value(self.key, [item], {}))
        self.current_value, self.current_key = item, key
        return True

    def next(self, tracer: Tracer) -> Value | None:
        self.started = True
        self.current_group = None
        while self.current_key is None or (
            self.target_key is not None and tracer.same_or_equal(self.target_key, self.current_key)
        ):
            if not self.step(tracer):
                return None
        self.target_key = self.current_key
        self.current_group = GroupIterator(self, self.target_key)
        return tracer.new_tuple([self.current_key, self.current_group])

    def refuse_rebuilding(self, cg: Codegen) -> None:
        tracer = cg.tracer
        tracer.decisions.breaks[self.place] = Break(
            "unsupported-call", "itertools.groupby, kept half-consumed"
        )
        raise tracer.restart

    def reconstruct(self, cg: Codegen) -> str:
        if self.started:
            self.refuse_rebuilding(cg)
        key = "None" if self.key is None else cg.value(self.key)
        return f"{cg.constant(itertools.groupby)}({cg.value(self.sources[0])}, {key})"


class GroupIterator(IteratorValue):
    """A group that ``groupby`` gave."""

    def __init__(self, owner: GroupByIterator, key: Value) -> None:
        self.owner = owner
        self.key = key

    @property
    def pytype(self) -> type:
        return type(next(itertools.groupby([0]))[1])

    def describe(self) -> str:
        return "a group of itertools.groupby"

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def bound(self, tracer: Tracer) -> int | None:
        if self.owner.current_group is not self:
            return 0
        count = self.owner.bound(tracer)
        return None if count is None else count + 1

    def open_ended(self, tracer: Tracer) -> bool:
        return self.owner.open_ended(tracer)

    def next(self, tracer: Tracer) -> Value | None:
        owner = self.owner
        if owner.current_group is not self:
            return None
        if owner.current_value is None and not owner.step(tracer):
            return None
        assert owner.current_key is not None
        if not tracer.same_or_equal(self.key, owner.current_key):
            return None
        tracer.steps += 1
        found, owner.current_value, owner.current_key = owner.current_value, None, None
        return found

    def reconstruct(self, cg: Codegen) -> str:
        self.owner.refuse_rebuilding(cg)
        raise AssertionError("the capture has begun again")
