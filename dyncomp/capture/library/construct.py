"""Constructors of containers: ``list``, ``tuple``, ``dict``, ``set``, ``slice``…"""

from __future__ import annotations

from typing import Any

from ..values.base import Tracer, Value
from ..values.mapping import DictValue, SetValue
from ..values.seq import ListValue, SliceValue, TupleValue
from .registry import NONE, builtin, expand


@builtin(list)
def _list(tracer: Tracer, iterable: Value | None = None) -> Value:
    return ListValue([] if iterable is None else expand(tracer, iterable))


@builtin(tuple)
def _tuple(tracer: Tracer, iterable: Value | None = None) -> Value:
    if isinstance(iterable, TupleValue) and iterable.cls is tuple:
        return iterable
    return TupleValue([] if iterable is None else expand(tracer, iterable))


@builtin(dict)
def _dict(tracer: Tracer, source: Value | None = None, /, **given: Value) -> Value:
    result = DictValue({})
    entries: dict[Any, Value] = {}
    if isinstance(source, DictValue):
        entries.update(source.contents(tracer))
    elif source is not None:
        for pair in source.items(tracer):
            key, value = pair.items(tracer)
            entries[result.key_of(tracer, key)] = value
    entries.update(given)
    return DictValue(entries)


@builtin(set)
def _set(tracer: Tracer, iterable: Value | None = None) -> Value:
    return _filled_set(tracer, iterable, frozen=False)


@builtin(frozenset)
def _frozenset(tracer: Tracer, iterable: Value | None = None) -> Value:
    return _filled_set(tracer, iterable, frozen=True)


def _filled_set(tracer: Tracer, iterable: Value | None, frozen: bool) -> Value:
    result = SetValue({}, frozen)
    for item in [] if iterable is None else expand(tracer, iterable):
        result.add(tracer, item)
    return result


@builtin(slice)
def _slice(tracer: Tracer, *args: Value) -> Value:
    if len(args) == 1:
        return SliceValue(NONE, args[0], NONE)
    if len(args) == 2:
        return SliceValue(args[0], args[1], NONE)
    return SliceValue(*args)
