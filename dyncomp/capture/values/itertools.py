"""The iterators of ``itertools``, stepped through lazily and rebuilt half-consumed as the real thing."""

from __future__ import annotations

import itertools

from .base import Codegen, Tracer, Value
from .iterator import CombiningIterator, IteratorValue, advance, can_step
from .mapping import DictValue
from .seq import ListValue, TupleValue


def _count_of(tracer: Tracer, iterable: Value) -> int | None:
    """At most how many items an iterable has, where that can be told without running anything."""
    iterable = tracer.realize(iterable)
    if isinstance(iterable, IteratorValue):
        return iterable.bound(tracer)
    if iterable.is_const:
        return len(iterable.const) if isinstance(iterable.const, (str, bytes, tuple, range)) else None
    if isinstance(iterable, (ListValue, TupleValue, DictValue)):
        return len(iterable.contents(tracer))
    return None


class ChainIterator(IteratorValue):
    """``chain``: the items of ``active``, then those of each iterable in ``rest`` or that ``outer`` gives."""

    def __init__(self, rest: list[Value], outer: Value | None = None) -> None:
        self.rest = rest
        self.outer = outer
        self.active: Value | None = None

    @property
    def pytype(self) -> type:
        return itertools.chain

    def children(self) -> tuple[Value, ...]:
        return tuple(v for v in (self.active, *self.rest, self.outer) if v is not None)

    def open_ended(self, tracer: Tracer) -> bool:
        parts = [v for v in (self.active, self.outer) if v is not None]
        return all(can_step(tracer, v) for v in parts)

    def bound(self, tracer: Tracer) -> int | None:
        """Known where what is left are containers whose length can be asked without effect."""
        if self.outer is not None:
            return None
        counts = [_count_of(tracer, p) for p in self.rest + ([self.active] if self.active else [])]
        known = [c for c in counts if c is not None]
        return sum(known) if len(known) == len(counts) else None

    def next(self, tracer: Tracer) -> Value | None:
        while True:
            if self.active is None:
                following = self._following(tracer)
                if following is None:
                    return None
                tracer.steps += 1
                self.active = tracer.realize(following).iterate(tracer)
            assert self.active is not None
            item = self.active.next(tracer)
            if item is not None:
                return item
            self.active = None

    def _following(self, tracer: Tracer) -> Value | None:
        if self.outer is None:
            return self.rest.pop(0) if self.rest else None
        found: Value | None = self.outer.next(tracer)
        if found is None:
            self.outer = None
        return found

    def reconstruct(self, cg: Codegen) -> str:
        make = cg.constant(itertools.chain)
        first = [] if self.active is None else [cg.value(self.active)]
        if self.outer is None:
            return f"{make}({', '.join(first + [cg.value(v) for v in self.rest])})"
        outer = cg.value(self.outer)
        if first:
            outer = f"{make}(({first[0]},), {outer})"
        return f"{cg.constant(itertools.chain.from_iterable)}({outer})"


class CountIterator(IteratorValue):
    """``count(start, step)``."""

    def __init__(self, current: Value, step: Value) -> None:
        self.current = current
        self.step = step

    @property
    def pytype(self) -> type:
        return itertools.count

    def next(self, tracer: Tracer) -> Value | None:
        tracer.steps += 1
        found = self.current
        self.current = tracer.binary("+", found, self.step)
        return found

    def open_ended(self, tracer: Tracer) -> bool:
        return True

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.constant(itertools.count)}({cg.value(self.current)}, {cg.value(self.step)})"


class RepeatIterator(IteratorValue):
    """``repeat(obj)`` or ``repeat(obj, times)``."""

    def __init__(self, obj: Value, times: int | None) -> None:
        self.obj = obj
        self.times = times

    @property
    def pytype(self) -> type:
        return itertools.repeat

    def children(self) -> tuple[Value, ...]:
        return (self.obj,)

    def remaining(self, tracer: Tracer) -> int | None:
        return self.times

    def next(self, tracer: Tracer) -> Value | None:
        if self.times is not None:
            if self.times <= 0:
                return None
            self.times -= 1
            tracer.steps += 1
        return self.obj

    def reconstruct(self, cg: Codegen) -> str:
        count = "" if self.times is None else f", {self.times}"
        return f"{cg.constant(itertools.repeat)}({cg.value(self.obj)}{count})"


class CycleIterator(CombiningIterator):
    """``cycle``: remembers the items of its source and then gives them again and again."""

    def __init__(self, source: Value) -> None:
        self.sources = [source]
        self.saved: list[Value] = []
        self.position: int | None = None  # in ``saved``, once the source has ended

    @property
    def pytype(self) -> type:
        return itertools.cycle

    def children(self) -> tuple[Value, ...]:
        return (*self.sources, *self.saved)

    def bound(self, tracer: Tracer) -> int | None:
        return None

    def open_ended(self, tracer: Tracer) -> bool:
        return True

    def next(self, tracer: Tracer) -> Value | None:
        if self.position is None:
            item = self.sources[0].next(tracer)
            if item is not None:
                self.saved.append(item)
                return item
            self.position = 0
        if not self.saved:
            return None
        tracer.steps += 1
        item = self.saved[self.position]
        self.position = (self.position + 1) % len(self.saved)
        return item

    def reconstruct(self, cg: Codegen) -> str:
        make = cg.constant(itertools.cycle)
        saved = f"[{', '.join(cg.value(v) for v in self.saved)}]"
        if self.position is not None:
            return f"{cg.constant(advance)}({make}({saved}), {self.position})"
        source = cg.value(self.sources[0])
        if not self.saved:
            return f"{make}({source})"
        chained = f"{cg.constant(itertools.chain)}({saved}, {source})"
        return f"{cg.constant(advance)}({make}({chained}), {len(self.saved)})"


class SliceIterator(CombiningIterator):
    """``islice``; the fields are those of CPython's object."""

    def __init__(self, source: Value, start: int, stop: int | None, step: int) -> None:
        self.sources = [source]
        self.following = start
        self.stop = stop
        self.step = step
        self.count = 0
        self.done = False

    @property
    def pytype(self) -> type:
        return itertools.islice

    def bound(self, tracer: Tracer) -> int | None:
        if self.done:
            return 0
        inner = super().bound(tracer)
        limit = None if self.stop is None else len(range(self.following, self.stop, self.step))
        known = [c for c in (inner, limit) if c is not None]
        return min(known) if known else None

    def next(self, tracer: Tracer) -> Value | None:
        if self.done:
            return None
        source = self.sources[0]
        while self.count < self.following:
            if source.next(tracer) is None:
                self.done = True
                return None
            self.count += 1
        if self.stop is not None and self.count >= self.stop:
            self.done = True
            return None
        item = source.next(tracer)
        if item is None:
            self.done = True
            return None
        self.count += 1
        self.following += self.step
        if self.stop is not None and self.following > self.stop:
            self.following = self.stop
        return item

    def reconstruct(self, cg: Codegen) -> str:
        make = cg.constant(itertools.islice)
        if self.done:
            return f"{make}((), 0)"
        stop = None if self.stop is None else self.stop - self.count
        return f"{make}({cg.value(self.sources[0])}, {self.following - self.count}, {stop}, {self.step})"


class TakeWhileIterator(CombiningIterator):
    """``takewhile``."""

    def __init__(self, predicate: Value, source: Value) -> None:
        self.predicate = predicate
        self.sources = [source]
        self.done = False

    @property
    def pytype(self) -> type:
        return itertools.takewhile

    def children(self) -> tuple[Value, ...]:
        return (self.predicate, *self.sources)

    def next(self, tracer: Tracer) -> Value | None:
        if self.done:
            return None
        item = self.sources[0].next(tracer)
        if item is None:
            return None
        if not tracer.realize(tracer.call_value(self.predicate, [item], {})).truth(tracer):
            self.done = True
            return None
        return item

    def reconstruct(self, cg: Codegen) -> str:
        source = "()" if self.done else cg.value(self.sources[0])
        return f"{cg.constant(itertools.takewhile)}({cg.value(self.predicate)}, {source})"


class DropWhileIterator(CombiningIterator):
    """``dropwhile``."""

    def __init__(self, predicate: Value, source: Value) -> None:
        self.predicate = predicate
        self.sources = [source]
        self.started = False

    @property
    def pytype(self) -> type:
        return itertools.dropwhile

    def children(self) -> tuple[Value, ...]:
        return (self.predicate, *self.sources)

    def next(self, tracer: Tracer) -> Value | None:
        while (item := self.sources[0].next(tracer)) is not None:
            if self.started:
                return item
            if not tracer.realize(tracer.call_value(self.predicate, [item], {})).truth(tracer):
                self.started = True
                return item
        return None

    def reconstruct(self, cg: Codegen) -> str:
        predicate = cg.constant(_never) if self.started else cg.value(self.predicate)
        return f"{cg.constant(itertools.dropwhile)}({predicate}, {cg.value(self.sources[0])})"


def _never(item: object) -> bool:
    """The predicate of a ``dropwhile`` that drops no more."""
    return False


class StarMapIterator(CombiningIterator):
    """``starmap``."""

    def __init__(self, function: Value, source: Value) -> None:
        self.function = function
        self.sources = [source]

    @property
    def pytype(self) -> type:
        return itertools.starmap

    def children(self) -> tuple[Value, ...]:
        return (self.function, *self.sources)

    def next(self, tracer: Tracer) -> Value | None:
        row = self.sources[0].next(tracer)
        if row is None:
            return None
        args = [tracer.realize(v) for v in tracer.realize(row).items(tracer)]
        found: Value = tracer.realize(tracer.call_value(self.function, args, {}))
        return found

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.constant(itertools.starmap)}({cg.value(self.function)}, {cg.value(self.sources[0])})"


class CompressIterator(CombiningIterator):
    """``compress(data, selectors)``."""

    def __init__(self, data: Value, selectors: Value) -> None:
        self.sources = [data, selectors]

    @property
    def pytype(self) -> type:
        return itertools.compress

    def next(self, tracer: Tracer) -> Value | None:
        data, selectors = self.sources
        while True:
            item = data.next(tracer)
            if item is None:
                return None
            selector = selectors.next(tracer)
            if selector is None:
                return None
            if tracer.realize(selector).truth(tracer):
                return item

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.constant(itertools.compress)}({', '.join(cg.value(s) for s in self.sources)})"


class ZipLongestIterator(CombiningIterator):
    """``zip_longest``; ``ended`` holds the numbers of the sources that have run out."""

    def __init__(self, sources: list[Value], fill: Value) -> None:
        self.sources = sources
        self.fill = fill
        self.ended: set[int] = set()

    @property
    def pytype(self) -> type:
        return itertools.zip_longest

    def children(self) -> tuple[Value, ...]:
        return (*self.sources, self.fill)

    def bound(self, tracer: Tracer) -> int | None:
        counts = self.bounds(tracer)
        known = [c for c in counts if c is not None]
        return max(known, default=0) if len(known) == len(counts) else None

    def next(self, tracer: Tracer) -> Value | None:
        if len(self.ended) == len(self.sources):
            return None
        row: list[Value] = []
        for position, source in enumerate(self.sources):
            item = None if position in self.ended else source.next(tracer)
            if item is None and position not in self.ended:
                self.ended.add(position)
                if len(self.ended) == len(self.sources):
                    return None
            row.append(self.fill if item is None else item)
        return tracer.new_tuple(row)

    def reconstruct(self, cg: Codegen) -> str:
        parts = ["()" if i in self.ended else cg.value(s) for i, s in enumerate(self.sources)]
        parts.append(f"fillvalue={cg.value(self.fill)}")
        return f"{cg.constant(itertools.zip_longest)}({', '.join(parts)})"


class PairwiseIterator(CombiningIterator):
    """``pairwise``."""

    def __init__(self, source: Value) -> None:
        self.sources = [source]
        self.old: Value | None = None
        self.done = False

    @property
    def pytype(self) -> type:
        return itertools.pairwise

    def children(self) -> tuple[Value, ...]:
        return (*self.sources, *([self.old] if self.old is not None else []))

    def next(self, tracer: Tracer) -> Value | None:
        if self.done:
            return None
        if self.old is None:
            self.old = self.sources[0].next(tracer)
        old = self.old
        new = self.sources[0].next(tracer) if old is not None else None
        if old is None or new is None:
            self.done = True
            return None
        self.old = new
        return tracer.new_tuple([old, new])

    def reconstruct(self, cg: Codegen) -> str:
        if self.done:
            return f"{cg.constant(itertools.pairwise)}(())"
        source = cg.value(self.sources[0])
        if self.old is not None:
            source = f"{cg.constant(itertools.chain)}(({cg.value(self.old)},), {source})"
        return f"{cg.constant(itertools.pairwise)}({source})"


class AccumulateIterator(CombiningIterator):
    """``accumulate``."""

    def __init__(self, source: Value, function: Value | None, initial: Value | None) -> None:
        self.sources = [source]
        self.function = function
        self.initial = initial
        self.total: Value | None = None

    @property
    def pytype(self) -> type:
        return itertools.accumulate

    def children(self) -> tuple[Value, ...]:
        given = (self.function, self.initial, self.total)
        return (*self.sources, *(v for v in given if v is not None))

    def bound(self, tracer: Tracer) -> int | None:
        count = super().bound(tracer)
        return None if count is None else count + (self.initial is not None)

    def next(self, tracer: Tracer) -> Value | None:
        if self.initial is not None:
            tracer.steps += 1
            self.total, self.initial = self.initial, None
            return self.total
        item = self.sources[0].next(tracer)
        if item is None:
            return None
        if self.total is None:
            self.total = item
        elif self.function is None:
            self.total = tracer.binary("+", self.total, item)
        else:
            self.total = tracer.realize(tracer.call_value(self.function, [self.total, item], {}))
        return self.total

    def reconstruct(self, cg: Codegen) -> str:
        function = "None" if self.function is None else cg.value(self.function)
        source, cls = cg.value(self.sources[0]), cg.constant(itertools.accumulate)
        if self.initial is not None:
            return f"{cls}({source}, {function}, initial={cg.value(self.initial)})"
        if self.total is None:
            return f"{cls}({source}, {function})"
        # not by initial=, which None would leave out
        begun = f"{cg.constant(itertools.chain)}([{cg.value(self.total)}], {source})"
        return f"{cg.constant(advance)}({cls}({begun}, {function}), 1)"


class BatchedIterator(CombiningIterator):
    """``batched`` (3.12 and later; ``strict`` from 3.13)."""

    def __init__(self, cls: type, source: Value, size: int, strict: bool) -> None:
        self.cls = cls
        self.sources = [source]
        self.size = size
        self.strict = strict
        self.done = False

    @property
    def pytype(self) -> type:
        found: type = self.cls
        return found

    def bound(self, tracer: Tracer) -> int | None:
        count = super().bound(tracer)
        return None if count is None else -(-count // self.size)

    def next(self, tracer: Tracer) -> Value | None:
        row: list[Value] = []
        while not self.done and len(row) < self.size:
            item = self.sources[0].next(tracer)
            if item is None:
                self.done = True
            else:
                row.append(item)
        if row and len(row) < self.size and self.strict:
            tracer.raise_exception(ValueError, "batched(): incomplete batch")
        return tracer.new_tuple(row) if row else None

    def reconstruct(self, cg: Codegen) -> str:
        source = "()" if self.done else cg.value(self.sources[0])
        return f"{cg.constant(self.cls)}({source}, {self.size}{', strict=True' if self.strict else ''})"
