"""Methods of lists and tuples."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..breaks import Break
from ..immutable.values import FrozenValue
from ..values.base import Tracer, Value
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from ..values.ordering import ComparedValue
from ..values.seq import ListValue
from ..values.steady import Steady
from .table import Method, is_stepped, items_for_list, method, one_by_one

LIST: dict[str, Method] = {}
TUPLE: dict[str, Method] = {}
_NONE = ConstValue(None)


@method(LIST)
def list_append(tracer: Tracer, owner: ListValue, value: Value, /) -> Value:
    owner.append(tracer, value)
    return _NONE


@method(LIST)
def list_extend(tracer: Tracer, owner: ListValue, values: Value, /) -> Value:
    items = one_by_one(tracer, values) if is_stepped(tracer, values) else items_for_list(tracer, values)
    for value in items:
        owner.append(tracer, value)
    return _NONE


@method(LIST)
def list_pop(tracer: Tracer, owner: ListValue, index: Value | None = None, /) -> Value:
    items = owner.contents(tracer)
    where = -1 if index is None else tracer.index_constant(index, "a list index")
    if not items:
        tracer.raise_exception(IndexError, "pop from empty list")
    if where < 0:
        where += len(items)
    if not 0 <= where < len(items):
        tracer.raise_exception(IndexError, "pop index out of range")
    owner.touch(tracer)
    return tracer.realize(items.pop(where))


@method(LIST)
def list_insert(tracer: Tracer, owner: ListValue, index: Value, value: Value, /) -> Value:
    items = owner.contents(tracer)
    where = tracer.index_constant(index, "a list index")
    owner.touch(tracer)
    items.insert(where, value)
    return _NONE


@method(LIST)
def list_clear(tracer: Tracer, owner: ListValue) -> Value:
    items = owner.contents(tracer)
    owner.touch(tracer)
    items.clear()
    return _NONE


@method(LIST)
def list_reverse(tracer: Tracer, owner: ListValue) -> Value:
    items = owner.contents(tracer)
    owner.touch(tracer)
    items.reverse()
    return _NONE


@method(LIST)
def list_copy(tracer: Tracer, owner: ListValue) -> Value:
    return ListValue(owner.items(tracer))


@method(LIST)
def list_remove(tracer: Tracer, owner: ListValue, value: Value, /) -> Value:
    items = owner.contents(tracer)
    where = find(tracer, owner, value)
    if where is None:
        tracer.raise_exception(ValueError, "list.remove(x): x not in list")
    owner.touch(tracer)
    del items[where]
    return _NONE


def find(tracer: Tracer, owner: Any, value: Value, start: int = 0, stop: int | None = None) -> Any:
    """The position of the first item that is or equals ``value``; ``None`` where there is none."""
    items = owner.contents(tracer)
    steady = Steady(tracer, owner)
    for index in range(*slice(start, stop).indices(len(items))):
        if steady.same_or_equal(tracer, items[index], value):
            return index
    return None


def occurrences(tracer: Tracer, owner: Any, value: Value) -> Value:
    """``owner.count(value)``."""
    steady = Steady(tracer, owner)
    return ConstValue(sum(steady.same_or_equal(tracer, item, value) for item in owner.items(tracer)))


def _bound(tracer: Tracer, value: Value | None, default: object) -> Any:
    return default if value is None else tracer.integer_of(value, "an index bound")


def _index(
    tracer: Tracer, owner: object, value: Value, start: Value | None = None, stop: Value | None = None, /
) -> Value:
    where = find(tracer, owner, value, _bound(tracer, start, 0), _bound(tracer, stop, None))
    if where is None:
        if isinstance(owner, ListValue):
            tracer.raise_like([].index, tracer.constant_of(value, "what a list lacks"))
        tracer.raise_exception(ValueError, "tuple.index(x): x not in tuple")
    return ConstValue(where)


def _count(tracer: Tracer, owner: object, value: Value, /) -> Value:
    return occurrences(tracer, owner, value)


LIST["index"] = TUPLE["index"] = _index
LIST["count"] = TUPLE["count"] = _count


@method(LIST)
def list_sort(
    tracer: Tracer, owner: ListValue, *, key: Value | None = None, reverse: Value | None = None
) -> Value:
    items = owner.contents(tracer)
    unsorted = items.copy()
    items.clear()  # which is what the key function sees of the list
    try:
        ordered = sorted_values(tracer, unsorted, key, reverse)
        if items:
            raise Break("would-raise", "list modified during sort")
    finally:
        items[:] = unsorted
    owner.touch(tracer)
    items[:] = ordered
    return _NONE


def sorted_values(
    tracer: Tracer, items: list[Value], key: Value | None, reverse: Value | None
) -> list[Value]:
    """The items in the order of their constant keys."""
    if key is not None and not (key.is_const and key.const is None):
        keyed = [tracer.realize(tracer.call_value(key, [tracer.realize(v)], {})) for v in list(items)]
    else:
        keyed = list(items)
    down = reverse is not None and reverse.truth(tracer)
    if any(isinstance(k, _COMPARED) for k in keyed):
        return [key.item for key in sorted(map(partial(_Key, tracer), items, keyed), reverse=down)]
    constants = [tracer.constant_of(k, "a sort key") for k in keyed]
    order = tracer.fold(lambda: sorted(range(len(items)), key=constants.__getitem__, reverse=down))
    return [items[i] for i in order]


# keys that are compared by methods, which may be the program's
_COMPARED = (InstanceValue, FrozenValue, ComparedValue)


class _Key:
    """An item and its key, which Python's own sort compares in its own order."""

    def __init__(self, tracer: Tracer, item: Value, key: Value) -> None:
        self.tracer = tracer
        self.item = item
        self.key = tracer.realize(key)

    def __lt__(self, other: _Key) -> bool:
        found: Value = self.tracer.realize(self.tracer.compare("<", self.key, other.key))
        return found.truth(self.tracer)
