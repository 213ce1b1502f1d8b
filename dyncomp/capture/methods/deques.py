"""Methods of ``collections.deque``."""

from __future__ import annotations

import collections

from ..values.base import Tracer, Value
from ..values.deque import DequeValue
from ..values.number import ConstValue
from .lists import find, occurrences
from .table import Method, method, one_by_one

DEQUE: dict[str, Method] = {}
_NONE = ConstValue(None)


def new_deque(tracer: Tracer, iterable: Value | None = None, maxlen: Value | None = None) -> Value:
    """``deque(iterable, maxlen)``."""
    given = None if maxlen is None else tracer.constant_of(maxlen, "a deque's maxlen")
    limit = None if given is None else tracer.integer_of(ConstValue(given), "a deque's maxlen")
    if limit is not None and limit < 0:
        tracer.raise_exception(ValueError, "maxlen must be non-negative")
    result = DequeValue([], limit)
    if iterable is not None:
        deque_extend(tracer, result, iterable)
    return result


@method(DEQUE)
def deque_append(tracer: Tracer, owner: DequeValue, value: Value, /) -> Value:
    owner.append(tracer, value)
    return _NONE


@method(DEQUE)
def deque_appendleft(tracer: Tracer, owner: DequeValue, value: Value, /) -> Value:
    owner.append_left(tracer, value)
    return _NONE


@method(DEQUE)
def deque_extend(tracer: Tracer, owner: DequeValue, values: Value, /) -> Value:
    for value in one_by_one(tracer, values):
        owner.append(tracer, tracer.realize(value))
    return _NONE


@method(DEQUE)
def deque_extendleft(tracer: Tracer, owner: DequeValue, values: Value, /) -> Value:
    for value in one_by_one(tracer, values):
        owner.append_left(tracer, tracer.realize(value))
    return _NONE


@method(DEQUE)
def deque_pop(tracer: Tracer, owner: DequeValue, /) -> Value:
    return _take(tracer, owner, -1)


@method(DEQUE)
def deque_popleft(tracer: Tracer, owner: DequeValue, /) -> Value:
    return _take(tracer, owner, 0)


def _take(tracer: Tracer, owner: DequeValue, where: int) -> Value:
    items = owner.contents(tracer)
    if not items:
        tracer.raise_exception(IndexError, "pop from an empty deque")
    owner.touch(tracer)
    return tracer.realize(items.pop(where))


@method(DEQUE)
def deque_clear(tracer: Tracer, owner: DequeValue, /) -> Value:
    items = owner.contents(tracer)
    owner.touch(tracer, is_seen=bool(items))
    items.clear()
    return _NONE


@method(DEQUE)
def deque_copy(tracer: Tracer, owner: DequeValue, /) -> Value:
    return owner.rebuild(owner.items(tracer))


@method(DEQUE)
def deque_reverse(tracer: Tracer, owner: DequeValue, /) -> Value:
    items = owner.contents(tracer)
    owner.touch(tracer, is_seen=False)
    items.reverse()
    return _NONE


@method(DEQUE)
def deque_rotate(tracer: Tracer, owner: DequeValue, n: Value | None = None, /) -> Value:
    items = owner.contents(tracer)
    places = 1 if n is None else tracer.integer_of(n, "how far a deque is rotated")
    owner.touch(tracer, is_seen=len(items) > 1)
    if items:
        places %= len(items)
        items[:] = items[-places:] + items[:-places] if places else items
    return _NONE


@method(DEQUE)
def deque_count(tracer: Tracer, owner: DequeValue, value: Value, /) -> Value:
    return occurrences(tracer, owner, value)


@method(DEQUE)
def deque_index(
    tracer: Tracer, owner: DequeValue, value: Value, start: Value | None = None, stop: Value | None = None, /
) -> Value:
    first = 0 if start is None else tracer.integer_of(start, "an index bound")
    last = None if stop is None else tracer.integer_of(stop, "an index bound")
    where = find(tracer, owner, value, first, last)
    if where is None:
        tracer.raise_like(collections.deque().index, tracer.constant_of(value, "what a deque lacks"))
    return ConstValue(where)


@method(DEQUE)
def deque_insert(tracer: Tracer, owner: DequeValue, index: Value, value: Value, /) -> Value:
    items = owner.contents(tracer)
    if owner.maxlen is not None and len(items) >= owner.maxlen:
        tracer.raise_exception(IndexError, "deque already at its maximum size")
    where = tracer.index_constant(index, "a deque index")
    owner.touch(tracer)
    items.insert(where, value)
    return _NONE


@method(DEQUE)
def deque_remove(tracer: Tracer, owner: DequeValue, value: Value, /) -> Value:
    items = owner.contents(tracer)
    where = find(tracer, owner, value)
    if where is None:
        tracer.raise_like(collections.deque().remove, tracer.constant_of(value, "what a deque lacks"))
    owner.touch(tracer)
    del items[where]
    return _NONE
