"""Methods of lists, tuples, dicts, sets, strings and numbers on traced values: which table they are in."""

from __future__ import annotations

import inspect
import types
from collections import OrderedDict
from contextvars import ContextVar

from .breaks import Break
from .calls.folding import computed_method, literal
from .control.exceptions import Raised
from .methods import ranges
from .methods.deques import DEQUE
from .methods.dicts import DICT, ORDERED, VIEW
from .methods.lists import LIST, TUPLE
from .methods.sets import FROZEN, SET
from .methods.table import Method
from .values.base import Tracer, Value
from .values.deque import DequeValue
from .values.iterator import IteratorValue
from .values.mapping import DictValue, DictViewValue
from .values.number import ComputedValue, SymIntValue
from .values.seq import ListValue, RangeValue, SliceValue, TupleValue
from .values.sets import SetValue

_TABLES: tuple[tuple[type[Value], dict[str, Method]], ...] = (
    (ListValue, LIST),
    (TupleValue, TUPLE),
    (DequeValue, DEQUE),
    (DictViewValue, VIEW),
    (RangeValue, ranges.RANGE),
    (SliceValue, ranges.SLICE),
)


def _table(owner: Value) -> dict[str, Method]:
    if isinstance(owner, SetValue):
        return FROZEN if owner.frozen else SET
    if isinstance(owner, DictValue):
        return {**DICT, **ORDERED} if owner.cls is OrderedDict else DICT
    for cls, table in _TABLES:
        if isinstance(owner, cls):
            return table
    return {}


# methods that have changed something when what they call raises
_HALF_DONE = frozenset({"extend", "extendleft", "update", "sort"})


def has_method(owner: Value, name: str) -> bool:
    if _is_plain(owner):
        member = inspect.getattr_static(owner.pytype, name, None)
        return owner.pytype is not ContextVar and isinstance(member, types.MethodDescriptorType)
    return name in _table(owner)


def _is_plain(owner: Value) -> bool:
    """Whether methods are Python's own on constants, or expressions of Python at run time."""
    if isinstance(owner, (TupleValue, RangeValue, SliceValue, SetValue)):
        return False
    return owner.is_const or isinstance(owner, (ComputedValue, SymIntValue))


def call_method(
    tracer: Tracer, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``owner.name(*args, **kwargs)``."""
    if _is_plain(owner):
        return _plain_method(tracer, owner, name, args, kwargs)
    function = _table(owner)[name]
    try:
        inspect.signature(function).bind(tracer, owner, *args, **kwargs)
    except TypeError as error:
        raise Break("would-raise", f"{owner.describe()}.{name}: {error}") from None
    try:
        return function(tracer, owner, *args, **kwargs)
    except Raised as raised:
        if name not in _HALF_DONE:
            raise
        raise Break("would-raise", f"{raised.value.describe()} in {owner.describe()}.{name}") from None


def _listed(tracer: Tracer, arg: Value) -> Value:
    """An iterator's items as a list: the methods of strings and numbers only read what they are given."""
    if isinstance(arg, (IteratorValue, DictViewValue)):
        return ListValue([tracer.realize(v) for v in arg.items(tracer)])
    return arg


def _plain_method(
    tracer: Tracer, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Methods of strings and numbers: computed at capture, or by compiled code in Python."""
    args = [_listed(tracer, arg) for arg in args]
    found = computed_method(tracer, owner, name, args, kwargs)
    if found is not None:
        return found
    values = [literal(tracer, arg, f"an argument of {name}") for arg in args]
    keywords = {k: literal(tracer, v, f"argument {k} of {name}") for k, v in kwargs.items()}
    method = getattr(owner.const, name)
    return tracer.wrap_result(tracer.fold(lambda: method(*values, **keywords)))
