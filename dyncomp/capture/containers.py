"""Methods of lists, tuples, dicts, sets, strings and numbers on traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .breaks import Break
from .exceptions import Raised
from .number_methods import method_table
from .values.base import Tracer, Value
from .values.mapping import DictValue, DictViewValue, SetValue
from .values.number import ConstValue
from .values.seq import ListValue, TupleValue, index_of

Method = Callable[..., Value]
_NONE = ConstValue(None)
_LIST: dict[str, Method] = {}
_TUPLE: dict[str, Method] = {}
_DICT: dict[str, Method] = {}
_SET: dict[str, Method] = {}


def _method(table: dict[str, Method]) -> Callable[[Method], Method]:
    def register(function: Method) -> Method:
        table[function.__name__.partition("_")[2].strip("_")] = function
        return function

    return register


def _table(owner: Value) -> dict[str, Method]:
    if isinstance(owner, ListValue):
        return _LIST
    if isinstance(owner, DictValue):
        return _DICT
    if isinstance(owner, SetValue):
        return _SET
    return _TUPLE if isinstance(owner, TupleValue) else method_table(owner)


def has_method(owner: Value, name: str) -> bool:
    return name in _table(owner)


# methods that have changed something when what they call raises
_HALF_DONE = frozenset({"extend", "extendleft", "update", "sort"})


def call_method(
    tracer: Tracer, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``owner.name(*args, **kwargs)``."""
    if owner.is_const and not isinstance(owner, TupleValue):
        return _const_method(tracer, owner, name, args, kwargs)
    try:
        return _table(owner)[name](tracer, owner, *args, **kwargs)
    except TypeError as error:
        raise Break("would-raise", f"{owner.describe()}.{name}: {error}") from None
    except Raised as raised:
        if name not in _HALF_DONE:
            raise
        raise Break("would-raise", f"{raised.value.describe()} in {owner.describe()}.{name}") from None


def _const_method(
    tracer: Tracer, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Methods of strings and numbers, computed at capture."""
    values = []
    for arg in args:
        if isinstance(arg, ListValue):
            values.append([tracer.constant_of(v, "an argument") for v in arg.contents(tracer)])
        else:
            values.append(tracer.constant_of(arg, f"an argument of {name}"))
    keywords = {k: tracer.constant_of(v, f"argument {k} of {name}") for k, v in kwargs.items()}
    method = getattr(owner.const, name)
    return tracer.wrap_result(tracer.fold(lambda: method(*values, **keywords)))


# -- lists ----------------------------------------------------------------------------------------
@_method(_LIST)
def list_append(tracer: Tracer, owner: ListValue, value: Value) -> Value:
    owner.append(tracer, value)
    return _NONE


@_method(_LIST)
def list_extend(tracer: Tracer, owner: ListValue, values: Value) -> Value:
    for value in values.items(tracer):
        owner.append(tracer, value)
    return _NONE


@_method(_LIST)
def list_pop(tracer: Tracer, owner: ListValue, index: Value | None = None) -> Value:
    items = owner.contents(tracer)
    message = "pop index out of range" if items else "pop from empty list"
    where = index_of(tracer, index if index is not None else ConstValue(-1), len(items), message)
    owner.touch(tracer)
    return tracer.realize(items.pop(where))


@_method(_LIST)
def list_insert(tracer: Tracer, owner: ListValue, index: Value, value: Value) -> Value:
    items = owner.contents(tracer)
    where = tracer.integer_of(index, "a list index")
    owner.touch(tracer)
    items.insert(where, value)
    return _NONE


@_method(_LIST)
def list_clear(tracer: Tracer, owner: ListValue) -> Value:
    items = owner.contents(tracer)
    owner.touch(tracer)
    items.clear()
    return _NONE


@_method(_LIST)
def list_reverse(tracer: Tracer, owner: ListValue) -> Value:
    items = owner.contents(tracer)
    owner.touch(tracer)
    items.reverse()
    return _NONE


@_method(_LIST)
def list_copy(tracer: Tracer, owner: ListValue) -> Value:
    return ListValue(owner.items(tracer))


@_method(_LIST)
def list_remove(tracer: Tracer, owner: ListValue, value: Value) -> Value:
    items = owner.contents(tracer)
    where = _find(tracer, owner, value, "list.remove(x): x not in list")
    owner.touch(tracer)
    del items[where]
    return _NONE


def _find(tracer: Tracer, owner: Any, value: Value, message: str) -> int:
    for index, item in enumerate(owner.contents(tracer)):
        if tracer.same_or_equal(item, value):
            return index
    if message:
        tracer.raise_exception(ValueError, message)
    raise Break("would-raise", "value not in list")


def _index(tracer: Tracer, owner: Any, value: Value) -> Value:
    if isinstance(owner, TupleValue):
        return ConstValue(_find(tracer, owner, value, "tuple.index(x): x not in tuple"))
    shown = repr(value.const) if value.is_const and type(value.const) in (int, str, float, bool) else ""
    return ConstValue(_find(tracer, owner, value, f"{shown} is not in list" if shown else ""))


def _count(tracer: Tracer, owner: Any, value: Value) -> Value:
    items = owner.contents(tracer)
    return ConstValue(sum(tracer.same_or_equal(i, value) for i in items))


_LIST["index"] = _TUPLE["index"] = _index
_LIST["count"] = _TUPLE["count"] = _count


@_method(_LIST)
def list_sort(
    tracer: Tracer, owner: ListValue, *, key: Value | None = None, reverse: Value | None = None
) -> Value:
    items = owner.contents(tracer)
    ordered = sorted_values(tracer, items, key, reverse)
    owner.touch(tracer)
    items[:] = ordered
    return _NONE


def sorted_values(
    tracer: Tracer, items: list[Value], key: Value | None, reverse: Value | None
) -> list[Value]:
    """The items in the order of their constant keys."""
    if key is not None and not (key.is_const and key.const is None):
        keyed = [tracer.call_value(key, [item], {}) for item in items]
    else:
        keyed = list(items)
    constants = [tracer.constant_of(k, "a sort key") for k in keyed]
    down = reverse is not None and reverse.truth(tracer)
    order = tracer.fold(lambda: sorted(range(len(items)), key=constants.__getitem__, reverse=down))
    return [items[i] for i in order]


# -- dicts ----------------------------------------------------------------------------------------
@_method(_DICT)
def dict_get(tracer: Tracer, owner: DictValue, key: Value, default: Value = _NONE) -> Value:
    found = owner.lookup(tracer, owner.key_of(tracer, key))
    return default if found is None else tracer.realize(found)


@_method(_DICT)
def dict_setdefault(tracer: Tracer, owner: DictValue, key: Value, default: Value = _NONE) -> Value:
    constant = owner.key_of(tracer, key)
    found = owner.lookup(tracer, constant)
    if found is None:
        owner.store(tracer, constant, default)
        return default
    return tracer.realize(found)


@_method(_DICT)
def dict_keys(tracer: Tracer, owner: DictValue) -> Value:
    return DictViewValue(owner, "keys")


@_method(_DICT)
def dict_values(tracer: Tracer, owner: DictValue) -> Value:
    return DictViewValue(owner, "values")


@_method(_DICT)
def dict_items(tracer: Tracer, owner: DictValue) -> Value:
    return DictViewValue(owner, "items")


@_method(_DICT)
def dict_copy(tracer: Tracer, owner: DictValue) -> Value:
    return DictValue(dict(owner.contents(tracer)))


@_method(_DICT)
def dict_pop(tracer: Tracer, owner: DictValue, key: Value, default: Value | None = None) -> Value:
    entries = owner.contents(tracer)
    constant = owner.key_of(tracer, key)
    if constant not in entries:
        if default is None:
            raise tracer.raise_exception(KeyError, key)
        return default
    owner.touch(tracer)
    return tracer.realize(entries.pop(constant))


@_method(_DICT)
def dict_clear(tracer: Tracer, owner: DictValue) -> Value:
    entries = owner.contents(tracer)
    owner.touch(tracer)
    entries.clear()
    return _NONE


@_method(_DICT)
def dict_update(tracer: Tracer, owner: DictValue, *others: Value, **given: Value) -> Value:
    added: dict[Any, Value] = {}
    for other in others:
        if isinstance(other, DictValue):
            added.update(other.contents(tracer))
            continue
        for pair in other.items(tracer):
            key, value = pair.items(tracer)
            added[owner.key_of(tracer, key)] = value
    added.update(given)
    for key, value in added.items():
        owner.store(tracer, key, value)
    return _NONE


# -- sets -----------------------------------------------------------------------------------------
@_method(_SET)
def set_add(tracer: Tracer, owner: SetValue, value: Value) -> Value:
    if owner.frozen:
        raise Break("would-raise", "frozenset has no add")
    owner.add(tracer, value)
    return _NONE
