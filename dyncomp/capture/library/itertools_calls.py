"""The functions of ``itertools``."""

from __future__ import annotations

import itertools
import math

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.itertools import (
    AccumulateIterator,
    BatchedIterator,
    ChainIterator,
    CompressIterator,
    CountIterator,
    CycleIterator,
    DropWhileIterator,
    PairwiseIterator,
    RepeatIterator,
    SliceIterator,
    StarMapIterator,
    TakeWhileIterator,
    ZipLongestIterator,
)
from ..values.number import ConstValue, number_operand
from ..values.seq import TupleValue
from ..values.shared_iterators import CombinatoricIterator, GroupByIterator, TeeBuffer, TeeIterator
from .iteration import filtering
from .registry import NONE, builtin, expand


def _is_none(value: Value | None) -> bool:
    return value is None or (value.is_const and value.const is None)


@builtin(itertools.chain)
def _chain(tracer: Tracer, *iterables: Value) -> Value:
    return ChainIterator(list(iterables))


@builtin(itertools.chain.from_iterable)
def _chain_from_iterable(tracer: Tracer, iterable: Value, /) -> Value:
    return ChainIterator([], iterable.iterate(tracer))


@builtin(itertools.count)
def _count(tracer: Tracer, start: Value | None = None, step: Value | None = None) -> Value:
    first = ConstValue(0) if start is None else start
    by = ConstValue(1) if step is None else step
    if not number_operand(first) or not number_operand(by):
        raise Break("unsupported-call", f"itertools.count of {first.describe()} and {by.describe()}")
    return CountIterator(first, by)


@builtin(itertools.repeat)
def _repeat(tracer: Tracer, object: Value, times: Value | None = None) -> Value:
    count = None if times is None else max(0, tracer.integer_of(times, "a repeat count"))
    return RepeatIterator(object, count)


@builtin(itertools.cycle)
def _cycle(tracer: Tracer, iterable: Value, /) -> Value:
    return CycleIterator(iterable.iterate(tracer))


@builtin(itertools.islice)
def _islice(
    tracer: Tracer, iterable: Value, start: Value, stop: Value | None = None, step: Value | None = None, /
) -> Value:
    first, last = (None, start) if stop is None else (start, stop)
    begin, end, by = (None if _is_none(v) else _slice_bound(tracer, v) for v in (first, last, step))
    if any(bound is not None and bound < 0 for bound in (begin, end, by)) or by == 0:
        tracer.raise_like(itertools.islice, (), *([end] if stop is None else [begin, end, by]))
    return SliceIterator(iterable.iterate(tracer), begin or 0, end, by or 1)


def _slice_bound(tracer: Tracer, value: Value | None) -> int:
    assert value is not None
    return tracer.integer_of(value, "a bound of islice")


@builtin(itertools.takewhile)
def _takewhile(tracer: Tracer, predicate: Value, iterable: Value, /) -> Value:
    return TakeWhileIterator(predicate, iterable.iterate(tracer))


@builtin(itertools.dropwhile)
def _dropwhile(tracer: Tracer, predicate: Value, iterable: Value, /) -> Value:
    return DropWhileIterator(predicate, iterable.iterate(tracer))


@builtin(itertools.filterfalse)
def _filterfalse(tracer: Tracer, function: Value, iterable: Value, /) -> Value:
    return filtering(tracer, itertools.filterfalse, function, iterable, wanted=False)


@builtin(itertools.starmap)
def _starmap(tracer: Tracer, function: Value, iterable: Value, /) -> Value:
    return StarMapIterator(function, iterable.iterate(tracer))


@builtin(itertools.compress)
def _compress(tracer: Tracer, data: Value, selectors: Value) -> Value:
    return CompressIterator(data.iterate(tracer), selectors.iterate(tracer))


@builtin(itertools.zip_longest)
def _zip_longest(tracer: Tracer, *iterables: Value, fillvalue: Value = NONE) -> Value:
    return ZipLongestIterator([i.iterate(tracer) for i in iterables], fillvalue)


@builtin(itertools.pairwise)
def _pairwise(tracer: Tracer, iterable: Value, /) -> Value:
    return PairwiseIterator(iterable.iterate(tracer))


@builtin(itertools.accumulate)
def _accumulate(
    tracer: Tracer, iterable: Value, func: Value | None = None, *, initial: Value | None = None
) -> Value:
    function = None if _is_none(func) else func
    return AccumulateIterator(iterable.iterate(tracer), function, None if _is_none(initial) else initial)


@builtin(itertools.groupby)
def _groupby(tracer: Tracer, iterable: Value, key: Value | None = None) -> Value:
    return GroupByIterator(tracer, iterable.iterate(tracer), None if _is_none(key) else key)


@builtin(itertools.tee)
def _tee(tracer: Tracer, iterable: Value, n: Value | None = None, /) -> Value:
    count = 2 if n is None else tracer.integer_of(n, "the number of iterators")
    if count < 0:
        tracer.raise_like(itertools.tee, (), count)
    iterator = iterable.iterate(tracer)
    if not count:
        return TupleValue([])
    if isinstance(iterator, TeeIterator):
        raise Break("unsupported-call", "itertools.tee of an iterator of tee")
    return TupleValue(list(TeeBuffer(iterator, count).parts))


# -- products and selections ----------------------------------------------------------------------------
@builtin(itertools.product)
def _product(tracer: Tracer, *iterables: Value, repeat: Value | None = None) -> Value:
    times = 1 if repeat is None else tracer.integer_of(repeat, "the number of repetitions")
    if times < 0:
        tracer.raise_like(lambda: itertools.product(repeat=times))
    pools = [expand(tracer, i) for i in iterables] * times
    places = itertools.product(*(range(len(pool)) for pool in pools))
    count = math.prod(len(pool) for pool in pools)
    return CombinatoricIterator(itertools.product, pools, places, count, "")


@builtin(itertools.permutations)
def _permutations(tracer: Tracer, iterable: Value, r: Value | None = None) -> Value:
    pool = expand(tracer, iterable)
    length = len(pool) if _is_none(r) else _length(tracer, r)
    return _selection(itertools.permutations, pool, length, math.perm(len(pool), length))


@builtin(itertools.combinations)
def _combinations(tracer: Tracer, iterable: Value, r: Value) -> Value:
    pool = expand(tracer, iterable)
    length = _length(tracer, r)
    return _selection(itertools.combinations, pool, length, math.comb(len(pool), length))


@builtin(itertools.combinations_with_replacement)
def _combinations_with_replacement(tracer: Tracer, iterable: Value, r: Value) -> Value:
    pool = expand(tracer, iterable)
    length = _length(tracer, r)
    count = math.comb(len(pool) + length - 1, length) if pool and length else int(not length)
    return _selection(itertools.combinations_with_replacement, pool, length, count)


def _length(tracer: Tracer, value: Value | None) -> int:
    assert value is not None
    found = tracer.integer_of(value, "a length")
    if found < 0:
        tracer.raise_like(itertools.combinations, (), found)
    return found


def _selection(cls: type, pool: list[Value], length: int, count: int) -> Value:
    places = cls(range(len(pool)), length)
    return CombinatoricIterator(cls, [pool], places, count, f", {length}")


# -- batched ----------------------------------------------------------------------------------------------
def _batched(tracer: Tracer, iterable: Value, n: Value, *, strict: Value | None = None) -> Value:
    size = tracer.integer_of(n, "a batch size")
    if size < 1:
        tracer.raise_like(itertools.batched, (), size)  # type: ignore[attr-defined]
    exact = strict is not None and strict.truth(tracer)
    return BatchedIterator(itertools.batched, iterable.iterate(tracer), size, exact)  # type: ignore[attr-defined]


if hasattr(itertools, "batched"):
    builtin(itertools.batched)(_batched)
