"""Methods of dicts, of their views, and of the dict classes of ``collections``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.derived import merged_part
from ..values.mapping import DictValue, DictViewValue
from ..values.number import ConstValue
from ..values.sets import SetValue
from .table import Method, method, one_by_one

DICT: dict[str, Method] = {}
ORDERED: dict[str, Method] = {}
VIEW: dict[str, Method] = {}
_NONE = ConstValue(None)


@method(DICT)
def dict_get(tracer: Tracer, owner: DictValue, key: Value, default: Value = _NONE, /) -> Value:
    found = owner.lookup(tracer, owner.key_of(tracer, key))
    return default if found is None else tracer.realize(found)


@method(DICT)
def dict_setdefault(tracer: Tracer, owner: DictValue, key: Value, default: Value = _NONE, /) -> Value:
    constant = owner.key_of(tracer, key)
    found = owner.lookup(tracer, constant)
    if found is None:
        owner.store(tracer, constant, default)
        return default
    return tracer.realize(found)


@method(DICT)
def dict_keys(tracer: Tracer, owner: DictValue) -> Value:
    return DictViewValue(owner, "keys")


@method(DICT)
def dict_values(tracer: Tracer, owner: DictValue) -> Value:
    return DictViewValue(owner, "values")


@method(DICT)
def dict_items(tracer: Tracer, owner: DictValue) -> Value:
    return DictViewValue(owner, "items")


@method(DICT)
def dict_copy(tracer: Tracer, owner: DictValue) -> Value:
    return owner.copied(tracer)


@method(DICT)
def dict_pop(tracer: Tracer, owner: DictValue, key: Value, default: Value | None = None, /) -> Value:
    entries = owner.contents(tracer)
    constant = owner.key_of(tracer, key)
    if constant not in entries:
        if default is None:
            raise tracer.raise_exception(KeyError, constant)
        return default
    return tracer.realize(owner.take(tracer, constant))


@method(DICT)
def dict_popitem(tracer: Tracer, owner: DictValue) -> Value:
    entries = owner.contents(tracer)
    if not entries:
        tracer.raise_exception(KeyError, "popitem(): dictionary is empty")
    return _item_taken(tracer, owner, next(reversed(entries)))


def _item_taken(tracer: Tracer, owner: DictValue, key: object) -> Value:
    value = tracer.realize(owner.take(tracer, key))
    return tracer.new_tuple([ConstValue(key), value])


@method(DICT)
def dict_clear(tracer: Tracer, owner: DictValue) -> Value:
    owner.clear(tracer)
    return _NONE


@method(DICT)
def dict_update(tracer: Tracer, owner: DictValue, other: Value | None = None, /, **given: Value) -> Value:
    if other is not None:
        merge(tracer, owner, other)
    for key, value in given.items():
        owner.store(tracer, key, value)
    return _NONE


DICT["__init__"] = dict_update


def merge(tracer: Tracer, owner: DictValue, other: Value) -> None:
    """``owner.update(other)``."""
    for key, value in pairs_of(tracer, owner, other):
        owner.store(tracer, key, value)


def pairs_of(tracer: Tracer, owner: DictValue, other: Value) -> Iterator[tuple[Any, Value]]:
    """The entries that a mapping or an iterable of pairs adds to ``owner``."""
    other = merged_part(tracer, other)
    if isinstance(other, DictValue):
        yield from list(other.contents(tracer).items())
        return
    if hasattr(other.pytype, "keys"):
        raise Break("unsupported-call", f"the entries of {other.describe()}")
    for number, item in enumerate(one_by_one(tracer, other)):
        pair = [tracer.realize(part) for part in tracer.realize(item).items(tracer)]
        if len(pair) != 2:
            text = f"dictionary update sequence element #{number} has length {len(pair)}; 2 is required"
            tracer.raise_exception(ValueError, text)
        yield owner.key_of(tracer, pair[0]), pair[1]


def new_dict(tracer: Tracer, cls: type, args: list[Value], kwargs: dict[str, Value]) -> DictValue:
    """``dict(...)`` or ``OrderedDict(...)``."""
    if len(args) > 1:
        tracer.raise_exception(TypeError, f"{cls.__name__} expected at most 1 argument, got {len(args)}")
    result = DictValue({}, cls=cls)
    dict_update(tracer, result, *args, **kwargs)
    return result


def from_keys(tracer: Tracer, keys: Value, value: Value = _NONE, /) -> Value:
    """``dict.fromkeys``."""
    result = DictValue({})
    for key in keys.items(tracer):
        result.store(tracer, result.key_of(tracer, key), value)
    return result


# -- OrderedDict ------------------------------------------------------------------------------------
@method(ORDERED)
def ordered_move_to_end(tracer: Tracer, owner: DictValue, key: Value, last: Value | None = None) -> Value:
    entries = owner.contents(tracer)
    constant = owner.key_of(tracer, key)
    if constant not in entries:
        tracer.raise_exception(KeyError, constant)
    at_end = last is None or last.truth(tracer)
    if constant == next(reversed(entries) if at_end else iter(entries)):
        return _NONE
    value = owner.take(tracer, constant)
    if at_end:
        entries[constant] = value
    else:
        others = dict(entries)
        entries.clear()
        entries[constant] = value
        entries.update(others)
    return _NONE


@method(ORDERED)
def ordered_popitem(tracer: Tracer, owner: DictValue, last: Value | None = None) -> Value:
    entries = owner.contents(tracer)
    if not entries:
        tracer.raise_exception(KeyError, "dictionary is empty")
    from_end = last is None or last.truth(tracer)
    return _item_taken(tracer, owner, next(reversed(entries) if from_end else iter(entries)))


# -- views ------------------------------------------------------------------------------------------
@method(VIEW)
def view_isdisjoint(tracer: Tracer, owner: DictViewValue, other: Value, /) -> Value:
    mine = view_constants(tracer, owner)
    return ConstValue(set(mine).isdisjoint(constants_of(tracer, other)))


def view_constants(tracer: Tracer, view: DictViewValue) -> list[Any]:
    """The keys, or the items where all values are constant."""
    return [tracer.constant_of(v, "an entry of a dict view") for v in view.items(tracer)]


def constants_of(tracer: Tracer, iterable: Value) -> list[Any]:
    if isinstance(iterable, SetValue):
        return list(iterable.elements(tracer))
    return [tracer.constant_of(v, "an item of a set operation") for v in iterable.items(tracer)]
