"""Constructors of containers: ``list``, ``tuple``, ``dict``, ``set``, ``slice``, those of ``collections``."""

from __future__ import annotations

import collections

from ..breaks import Break
from ..methods.deques import new_deque
from ..methods.dicts import dict_update, from_keys, new_dict
from ..methods.sets import new_set
from ..methods.table import one_by_one
from ..values.base import Tracer, Value
from ..values.derived import DerivedValue
from ..values.mapping import DefaultDictValue, DictValue
from ..values.seq import ListValue, SliceValue, TupleValue
from .registry import NONE, builtin, expand


@builtin(list)
def _list(tracer: Tracer, iterable: Value | None = None, /) -> Value:
    return ListValue([] if iterable is None else expand(tracer, iterable))


@builtin(tuple)
def _tuple(tracer: Tracer, iterable: Value | None = None, /) -> Value:
    if isinstance(iterable, TupleValue) and iterable.cls is tuple:
        return iterable
    if iterable is not None and iterable.is_const and type(iterable.const) is tuple:
        return iterable
    return TupleValue([] if iterable is None else expand(tracer, iterable))


@builtin(dict)
def _dict(tracer: Tracer, *args: Value, **given: Value) -> Value:
    return new_dict(tracer, dict, list(args), given)


@builtin(collections.OrderedDict)
def _ordered_dict(tracer: Tracer, *args: Value, **given: Value) -> Value:
    return new_dict(tracer, collections.OrderedDict, list(args), given)


@builtin(collections.defaultdict)
def _default_dict(tracer: Tracer, factory: Value = NONE, /, *args: Value, **given: Value) -> Value:
    if factory.is_const and factory.const is not None and not callable(factory.const):
        tracer.raise_exception(TypeError, "first argument must be callable or None")
    result = DefaultDictValue({}, factory)
    dict_update(tracer, result, *args, **given)
    return result


@builtin(collections.Counter)
def _counter(tracer: Tracer, *args: Value, **given: Value) -> Value:
    result = DictValue({}, cls=collections.Counter)
    method = result.python_method(tracer, "__init__")
    assert method is not None
    tracer.call_value(method, list(args), given)
    return result


@builtin(collections._count_elements)  # type: ignore[attr-defined]
def _count_elements(tracer: Tracer, mapping: Value, iterable: Value, /) -> Value:
    if isinstance(mapping, DerivedValue) and all(
        mapping.is_native(tracer, n) for n in ("get", "__setitem__")
    ):
        mapping = mapping.part
    if not isinstance(mapping, DictValue):
        raise Break("unsupported-call", f"counting into {mapping.describe()}")
    for item in one_by_one(tracer, iterable):
        key = mapping.key_of(tracer, tracer.realize(item))
        count = mapping.lookup(tracer, key)
        before = tracer.wrap_result(0) if count is None else tracer.realize(count)
        mapping.store(tracer, key, tracer.binary("+", before, tracer.wrap_result(1)))
    return NONE


@builtin(dict.fromkeys)
def _fromkeys(tracer: Tracer, keys: Value, value: Value = NONE, /) -> Value:
    return from_keys(tracer, keys, value)


@builtin(collections.deque, keywords=("iterable", "maxlen"))
def _deque(tracer: Tracer, iterable: Value | None = None, maxlen: Value | None = None) -> Value:
    return new_deque(tracer, iterable, maxlen)


@builtin(set)
def _set(tracer: Tracer, iterable: Value | None = None, /) -> Value:
    return new_set(tracer, iterable, frozen=False)


@builtin(frozenset)
def _frozenset(tracer: Tracer, iterable: Value | None = None, /) -> Value:
    return new_set(tracer, iterable, frozen=True)


@builtin(slice)
def _slice(tracer: Tracer, *args: Value) -> Value:
    if len(args) == 1:
        return SliceValue(NONE, args[0], NONE)
    if len(args) == 2:
        return SliceValue(args[0], args[1], NONE)
    if len(args) != 3:
        raise Break("would-raise", f"slice expected 1 to 3 arguments, got {len(args)}")
    return SliceValue(*args)
