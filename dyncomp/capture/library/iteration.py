"""``len``, ``range``, ``iter``, ``next`` and the iterators of builtins."""

from __future__ import annotations

from inspect import getattr_static
from types import FunctionType
from typing import Any

from ..breaks import Break
from ..methods.lists import sorted_values
from ..objects.protocols import BackwardItemIterator
from ..sizes.unbacked import is_whole_number, item
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.deque import DequeValue
from ..values.iterator import CallIterator, FilterIterator, IteratorValue, ReverseIterator, ZipIterator
from ..values.mapping import DictValue, DictViewValue
from ..values.number import NumberValue, SymIntValue
from ..values.obj import InstanceValue
from ..values.seq import ListValue, RangeValue, TupleValue, spread
from .registry import builtin, expand


@builtin(len)
def _len(tracer: Tracer, obj: Value) -> Value:
    return obj.length(tracer)


@builtin(range)
def _range(tracer: Tracer, *args: Value) -> Value:
    if not 1 <= len(args) <= 3:
        raise Break("would-raise", "range expects 1 to 3 arguments")
    values = [integer_bound(tracer, a) for a in args]
    if len(values) == 1:
        values.insert(0, 0)
    if len(values) == 2:
        values.append(1)
    if values[2] == 0:
        raise tracer.raise_like(range, 0, 1, 0)
    return RangeValue(*values)


def integer_bound(tracer: Tracer, value: Value) -> Any:
    if isinstance(value, SymIntValue):
        return value.sym
    if isinstance(value, ArrayValue) and is_whole_number(value):
        value = item(tracer, value)
        return value.sym if isinstance(value, SymIntValue) else tracer.integer_of(value, "a range bound")
    if isinstance(value, NumberValue):
        symbol = value.as_integer(tracer)
        if symbol is not None:
            return symbol
    return tracer.integer_of(value, "a range bound")


@builtin(iter)
def _iter(tracer: Tracer, obj: Value, sentinel: Value | None = None, /) -> Value:
    return obj.iterate(tracer) if sentinel is None else CallIterator(obj, sentinel)


@builtin(next)
def _next(tracer: Tracer, iterator: Value, default: Value | None = None, /) -> Value:
    if isinstance(iterator, InstanceValue):
        return _next_of_instance(tracer, iterator, default)
    if not isinstance(iterator, IteratorValue) or iterator.source is not None:
        raise Break("unsupported-call", f"next() of {iterator.describe()}")
    item = iterator.next(tracer)
    if item is not None:
        return item
    if default is None:
        raise tracer.raise_stop_iteration(iterator)
    return default


def _next_of_instance(tracer: Tracer, iterator: InstanceValue, default: Value | None) -> Value:
    method = iterator.special(tracer, "__next__")
    if default is None and method is not None:
        return tracer.realize(tracer.call_value(method, [], {}))  # with its own StopIteration
    item = iterator.next(tracer)
    assert default is not None
    return default if item is None else item


@builtin(enumerate)
def _enumerate(tracer: Tracer, iterable: Value, start: Value | None = None) -> Value:
    first = 0 if start is None else integer_bound(tracer, start)
    return ZipIterator("enumerate", [iterable.iterate(tracer)], first)


@builtin(zip)
def _zip(tracer: Tracer, *iterables: Value, strict: Value | None = None) -> Value:
    checked = strict is not None and strict.truth(tracer)
    return ZipIterator("zip", [i.iterate(tracer) for i in iterables], strict=checked)


@builtin(map)
def _map(tracer: Tracer, function: Value, first: Value, /, *others: Value) -> Value:
    return ZipIterator("map", [i.iterate(tracer) for i in (first, *others)], 0, function)


@builtin(filter)
def _filter(tracer: Tracer, function: Value, iterable: Value, /) -> Value:
    return filtering(tracer, filter, function, iterable, wanted=True)


def filtering(tracer: Tracer, cls: type, function: Value, iterable: Value, wanted: bool) -> Value:
    """``filter`` or ``filterfalse``."""
    tested = None if function.is_const and function.const in (None, bool) else function
    return FilterIterator(cls, tested, iterable.iterate(tracer), wanted)


def _is_by_index(cls: type) -> bool:
    """Whether ``reversed`` goes through tuples of this class as through any."""
    members = [getattr_static(cls, name, None) for name in ("__reversed__", "__len__", "__getitem__")]
    return all(type(member) in (type(None), type(tuple.__len__)) for member in members)


def _is_counted_by_library(tracer: Tracer, sequence: InstanceValue) -> bool:
    """Whether the object has items and a ``__len__`` of an array library, which does nothing else."""
    count = getattr_static(sequence.cls, "__len__", None)
    known = type(count) is FunctionType and tracer.config.is_trusted(count.__module__)
    return known and sequence.special(tracer, "__getitem__") is not None


@builtin(reversed)
def _reversed(tracer: Tracer, sequence: Value, /) -> Value:
    sequence = spread(sequence)
    if isinstance(sequence, InstanceValue):
        method = sequence.special(tracer, "__reversed__")
        if method is not None:
            return tracer.realize(tracer.call_value(method, [], {}))
        if _is_counted_by_library(tracer, sequence):
            return BackwardItemIterator(sequence, tracer.integer_of(sequence.length(tracer), "a length"))
    if isinstance(sequence, RangeValue):
        return sequence.backwards().iterate(tracer)
    if isinstance(sequence, ListValue) or (isinstance(sequence, TupleValue) and _is_by_index(sequence.cls)):
        return ReverseIterator(sequence.contents(tracer), sequence)
    if sequence.is_const and isinstance(sequence.const, (str, bytes)):
        return ReverseIterator(sequence.items(tracer), sequence)
    if isinstance(sequence, (DictValue, DictViewValue, DequeValue)):
        return sequence.iterate_backwards(tracer)
    raise Break("unsupported-call", f"reversed() of {sequence.describe()}")


@builtin(sorted)
def _sorted(
    tracer: Tracer, iterable: Value, /, *, key: Value | None = None, reverse: Value | None = None
) -> Value:
    return ListValue(sorted_values(tracer, expand(tracer, iterable), key, reverse))
