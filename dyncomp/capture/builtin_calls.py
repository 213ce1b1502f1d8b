"""Builtin functions on traced values: ``len``, ``range``, ``isinstance``, ``zip``, ``sum``, ``min``…"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import inspect
import math
import operator
import types
import typing
from collections.abc import Callable
from typing import Any

from .. import dtypes
from . import operators, raising
from .breaks import Break
from .containers import sorted_values
from .guards import Kind
from .values.array import ArrayValue
from .values.base import OpaqueValue, Tracer, Value
from .values.exception import ExceptionValue
from .values.func import SuperValue
from .values.iterator import IteratorValue, SequenceIterator, ZipIterator
from .values.mapping import DictValue, SetValue
from .values.number import ConstValue, NumberValue, SymIntValue, hint_of, number_operand
from .values.obj import InstanceValue
from .values.seq import ListValue, RangeValue, SliceValue, TupleValue

Handler = Callable[[Tracer, list[Value], dict[str, Value]], Value]
_HANDLERS: dict[Any, Handler] = {}
_NONE = ConstValue(None)


def find(obj: Any) -> Handler | None:
    """The handler of a builtin, ``None`` where there is none."""
    try:
        return _HANDLERS.get(obj)
    except TypeError:
        return None


def ignore_arguments() -> None:
    """Stands for ``object.__init__`` reached through ``super()``."""


def _builtin(*objects: Any) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register ``function(tracer, *args, **kwargs)``; arguments that do not fit break the graph."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        signature = inspect.signature(function)

        def handle(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
            try:
                signature.bind(tracer, *args, **kwargs)
            except TypeError as error:
                raise Break("would-raise", f"{objects[0].__name__}: {error}") from None
            return function(tracer, *args, **kwargs)

        for obj in objects:
            _HANDLERS[obj] = handle
        return function

    return register


@_builtin(ignore_arguments)
def _ignore(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
    return _NONE


# -- sizes and iteration ----------------------------------------------------------------------------
@_builtin(len)
def _len(tracer: Tracer, obj: Value) -> Value:
    return obj.length(tracer)


@_builtin(range)
def _range(tracer: Tracer, *args: Value) -> Value:
    if not 1 <= len(args) <= 3:
        raise Break("would-raise", "range expects 1 to 3 arguments")
    values = [_integer(tracer, a) for a in args]
    if len(values) == 1:
        values.insert(0, 0)
    if len(values) == 2:
        values.append(1)
    if values[2] == 0:
        tracer.raise_like(range, 0, 1, 0)
    return RangeValue(*values)


def _integer(tracer: Tracer, value: Value) -> Any:
    if isinstance(value, SymIntValue):
        return value.sym
    return tracer.integer_of(value, "a range bound")


@_builtin(iter)
def _iter(tracer: Tracer, obj: Value) -> Value:
    return obj.iterate(tracer)


@_builtin(next)
def _next(tracer: Tracer, iterator: Value, default: Value | None = None) -> Value:
    if not isinstance(iterator, IteratorValue) or iterator.source is not None:
        raise Break("unsupported-call", f"next() of {iterator.describe()}")
    item = iterator.next(tracer)
    if item is not None:
        return item
    if default is None:
        raise tracer.raise_exception(StopIteration, *_returned_by(iterator))
    return default


def _returned_by(iterator: IteratorValue) -> list[Value]:
    """The value that a generator which has just ended gives to ``StopIteration``."""
    frame = getattr(iterator, "frame", None)
    if frame is None or frame.result is None:
        return []
    if frame.result.is_const and frame.result.const is None:
        return []
    raise Break("would-raise", "StopIteration with a value")


@_builtin(enumerate)
def _enumerate(tracer: Tracer, iterable: Value, start: Value | None = None) -> Value:
    first = 0 if start is None else _integer(tracer, start)
    return ZipIterator("enumerate", [iterable.iterate(tracer)], first)


@_builtin(zip)
def _zip(tracer: Tracer, *iterables: Value, strict: Value | None = None) -> Value:
    if strict is not None and strict.truth(tracer):
        raise Break("unsupported-call", "zip(strict=True)")
    return ZipIterator("zip", [i.iterate(tracer) for i in iterables])


@_builtin(map)
def _map(tracer: Tracer, function: Value, *iterables: Value) -> Value:
    return ZipIterator("map", [i.iterate(tracer) for i in iterables], 0, function)


@_builtin(reversed)
def _reversed(tracer: Tracer, sequence: Value) -> Value:
    if isinstance(sequence, RangeValue) and sequence.is_const:
        backwards = sequence.const[::-1]
        return RangeValue(backwards.start, backwards.stop, backwards.step).iterate(tracer)
    if not isinstance(sequence, (TupleValue, ListValue)):
        raise Break("unsupported-call", f"reversed() of {sequence.describe()}")
    items = sequence.items(tracer)[::-1]
    return SequenceIterator(items, TupleValue(items), reversed)


@_builtin(sorted)
def _sorted(
    tracer: Tracer, iterable: Value, *, key: Value | None = None, reverse: Value | None = None
) -> Value:
    return ListValue(sorted_values(tracer, _expand(tracer, iterable), key, reverse))


def _expand(tracer: Tracer, iterable: Value) -> list[Value]:
    return [tracer.realize(v) for v in iterable.items(tracer)]


# -- containers -------------------------------------------------------------------------------------
@_builtin(list)
def _list(tracer: Tracer, iterable: Value | None = None) -> Value:
    return ListValue([] if iterable is None else _expand(tracer, iterable))


@_builtin(tuple)
def _tuple(tracer: Tracer, iterable: Value | None = None) -> Value:
    if isinstance(iterable, TupleValue) and iterable.cls is tuple:
        return iterable
    return TupleValue([] if iterable is None else _expand(tracer, iterable))


@_builtin(dict)
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


@_builtin(set)
def _set(tracer: Tracer, iterable: Value | None = None) -> Value:
    return _filled_set(tracer, iterable, frozen=False)


@_builtin(frozenset)
def _frozenset(tracer: Tracer, iterable: Value | None = None) -> Value:
    return _filled_set(tracer, iterable, frozen=True)


def _filled_set(tracer: Tracer, iterable: Value | None, frozen: bool) -> Value:
    result = SetValue({}, frozen)
    for item in [] if iterable is None else _expand(tracer, iterable):
        result.add(tracer, item)
    return result


@_builtin(slice)
def _slice(tracer: Tracer, *args: Value) -> Value:
    if len(args) == 1:
        return SliceValue(_NONE, args[0], _NONE)
    if len(args) == 2:
        return SliceValue(args[0], args[1], _NONE)
    return SliceValue(*args)


# -- types and attributes -----------------------------------------------------------------------------
@_builtin(type)
def _type(tracer: Tracer, obj: Value, *rest: Value) -> Value:
    if rest:
        raise Break("unsupported-call", "a class is made by type()")
    if isinstance(obj, OpaqueValue):
        raise Break("opaque-object", f"type of {obj.describe()}")
    return ConstValue(obj.pytype)


@_builtin(isinstance)
def _isinstance(tracer: Tracer, obj: Value, classes: Value) -> Value:
    given = tracer.constant_of(classes, "a class")
    if isinstance(obj, OpaqueValue):
        raise Break("opaque-object", f"isinstance of {obj.describe()}")
    return ConstValue(_is_instance(tracer, obj.pytype, given))


def _is_instance(tracer: Tracer, cls: type, given: Any) -> bool:
    try:
        return _is_instance_type(cls, given)
    except TypeError:
        raise tracer.raise_like(isinstance, None, given) from None


def _is_instance_type(cls: type, given: Any) -> bool:
    if isinstance(given, tuple):
        return any(_is_instance_type(cls, g) for g in given)
    if isinstance(given, types.UnionType):
        return any(_is_instance_type(cls, g) for g in given.__args__)
    return issubclass(cls, given)


@_builtin(issubclass)
def _issubclass(tracer: Tracer, cls: Value, classes: Value) -> Value:
    return ConstValue(
        tracer.fold(issubclass, tracer.constant_of(cls, "a class"), tracer.constant_of(classes, "a class"))
    )


@_builtin(callable)
def _callable(tracer: Tracer, obj: Value) -> Value:
    if isinstance(obj, OpaqueValue):
        return ConstValue(callable(obj.obj))
    if isinstance(obj, InstanceValue):
        return ConstValue(hasattr(obj.cls, "__call__"))  # noqa: B004 - asks the class
    return ConstValue(callable(obj.const) if obj.is_const else hasattr(obj.pytype, "__call__"))  # noqa: B004


@_builtin(getattr)
def _getattr(tracer: Tracer, obj: Value, name: Value, default: Value | None = None) -> Value:
    attribute = tracer.constant_of(name, "an attribute name")
    if default is not None and not _has(tracer, obj, attribute):
        return default
    return tracer.realize(obj.getattr(tracer, attribute))


@_builtin(hasattr)
def _hasattr(tracer: Tracer, obj: Value, name: Value) -> Value:
    return ConstValue(_has(tracer, obj, tracer.constant_of(name, "an attribute name")))


def _has(tracer: Tracer, obj: Value, name: str) -> bool:
    if isinstance(obj, OpaqueValue):
        raise Break("opaque-object", f"attribute {name!r} of {obj.describe()}")
    if isinstance(obj, InstanceValue):
        return _instance_has(tracer, obj, name)
    if obj.is_const:
        return hasattr(obj.const, name)
    return hasattr(obj.pytype, name)


def _instance_has(tracer: Tracer, obj: InstanceValue, name: str) -> bool:
    if name in obj.written or hasattr(obj.cls, name):
        return True
    if hasattr(obj.cls, "__getattr__"):
        raise Break("opaque-object", f"attribute {name!r} of {obj.describe()}")
    if obj.source is None:
        return False
    present = hasattr(obj.obj, name)
    tracer.guard(obj.source, Kind.INSTANCE_HAS if present else Kind.INSTANCE_LACKS, name)
    return present


@_builtin(setattr)
def _setattr(tracer: Tracer, obj: Value, name: Value, value: Value) -> Value:
    obj.setattr(tracer, tracer.constant_of(name, "an attribute name"), value)
    return _NONE


@_builtin(super)
def _super(tracer: Tracer, *args: Value) -> Value:
    frame = tracer.frames[-1]
    if len(args) == 2:
        return SuperValue(tracer.constant_of(args[0], "a class"), args[1])
    cell = frame.cells.get("__class__")
    if args or cell is None or cell.contents is None:
        raise Break("unsupported-call", "super() outside of a method")
    first = frame.first_argument(tracer)
    return SuperValue(tracer.constant_of(tracer.realize(cell.contents), "a class"), first)


@_builtin(typing.cast)
def _cast(tracer: Tracer, kind: Value, obj: Value) -> Value:
    return obj


# -- numbers ------------------------------------------------------------------------------------------
@_builtin(bool)
def _bool(tracer: Tracer, obj: Value | None = None) -> Value:
    if obj is None:
        return ConstValue(False)
    if isinstance(obj, ArrayValue):
        return _convert(tracer, obj, bool)
    return ConstValue(obj.truth(tracer))


@_builtin(int)
def _int(tracer: Tracer, obj: Value | None = None, base: Value | None = None) -> Value:
    if isinstance(obj, SymIntValue):
        return obj
    return _number(tracer, int, obj, base)


@_builtin(float)
def _float(tracer: Tracer, obj: Value | None = None) -> Value:
    return _number(tracer, float, obj)


@_builtin(complex)
def _complex(tracer: Tracer, obj: Value | None = None, imag: Value | None = None) -> Value:
    return _number(tracer, complex, obj, imag)


def _number(tracer: Tracer, cls: type, obj: Value | None, extra: Value | None = None) -> Value:
    if obj is None:
        return ConstValue(cls())
    if extra is None and isinstance(obj, ArrayValue):
        return _convert(tracer, obj, cls)
    if extra is None and isinstance(obj, (NumberValue, SymIntValue)):
        return _python_call(tracer, cls, [obj])
    args = [obj] if extra is None else [obj, extra]
    return ConstValue(
        tracer.fold(cls, *(tracer.constant_of(a, f"an argument of {cls.__name__}") for a in args))
    )


def _convert(tracer: Tracer, obj: ArrayValue, cls: type) -> Value:
    """``float(x)`` of a one-element array: a Python number that the graph computes."""
    if obj.ref.kind == "python" and obj.pytype is cls:
        return obj
    target = _exact_conversion(obj, cls)
    if target is not None and obj.ref.ndim == 0:
        ops = tracer.tx.ops
        var = obj.ref.var if obj.ref.dtype == target else ops.convert(obj.ref.var, dtype=target)
        return tracer.wrap_result(dataclasses.replace(obj.ref, var=var, kind="python", readonly=False))
    raise Break("data-dependent-value", f"{cls.__name__}() of {obj.describe()}")


def _exact_conversion(obj: ArrayValue, cls: type) -> dtypes.DType | None:
    """The dtype whose Python number ``cls(obj)`` is, where the conversion cannot raise."""
    given = obj.ref.dtype
    if cls is float and not given.is_complex:
        return dtypes.float64
    if cls is int and (given.is_bool or (given.is_integer and given is not dtypes.uint64)):
        return dtypes.int64
    if cls is complex:
        return dtypes.complex128
    return dtypes.bool_ if cls is bool and given.is_bool else None


@_builtin(abs)
def _abs(tracer: Tracer, obj: Value) -> Value:
    if isinstance(obj, ArrayValue):
        return tracer.operator("abs", [obj])
    if isinstance(obj, SymIntValue):
        return tracer.wrap_result(abs(obj.sym))
    if isinstance(obj, NumberValue):
        return _python_call(tracer, abs, [obj])
    return ConstValue(tracer.fold(abs, tracer.constant_of(obj, "a number")))


@_builtin(divmod)
def _divmod(tracer: Tracer, a: Value, b: Value) -> Value:
    return TupleValue([tracer.binary("//", a, b), tracer.binary("%", a, b)])


@_builtin(pow)
def _pow(tracer: Tracer, base: Value, exponent: Value, mod: Value | None = None) -> Value:
    if mod is not None:
        values = [tracer.constant_of(v, "an argument of pow") for v in (base, exponent, mod)]
        return ConstValue(tracer.fold(pow, *values))
    return tracer.binary("**", base, exponent)


@_builtin(min)
def _min(tracer: Tracer, *args: Value, key: Value | None = None, default: Value | None = None) -> Value:
    return _extreme(tracer, "<", args, key, default)


@_builtin(max)
def _max(tracer: Tracer, *args: Value, key: Value | None = None, default: Value | None = None) -> Value:
    return _extreme(tracer, ">", args, key, default)


def _extreme(
    tracer: Tracer, relation: str, args: tuple[Value, ...], key: Value | None, default: Value | None
) -> Value:
    items = list(args) if len(args) > 1 else _expand(tracer, args[0])
    if not items:
        if default is None:
            raise tracer.raise_like(min if relation == "<" else max, [])
        return default
    if (
        key is None
        and all(number_operand(i) for i in items)
        and any(isinstance(i, NumberValue) for i in items)
    ):
        return _python_call(tracer, min if relation == "<" else max, items)
    keyed = items if key is None else [tracer.call_value(key, [i], {}) for i in items]
    best = 0
    for position in range(1, len(items)):
        if tracer.compare(relation, keyed[position], keyed[best]).truth(tracer):
            best = position
    return items[best]


@_builtin(sum)
def _sum(tracer: Tracer, iterable: Value, start: Value | None = None) -> Value:
    total = start if start is not None else ConstValue(0)
    items = _expand(tracer, iterable)
    if items and all(i.is_const for i in items) and total.is_const:
        return ConstValue(tracer.fold(sum, [i.const for i in items], total.const))
    if any(isinstance(i, (NumberValue,)) for i in items) and not any(
        isinstance(i, ArrayValue) for i in items
    ):
        raise Break("unsupported-call", "sum() of Python floats known only at run time (compensated in C)")
    for item in items:
        total = tracer.binary("+", total, item)
    return total


@_builtin(any)
def _any(tracer: Tracer, iterable: Value) -> Value:
    return ConstValue(any(i.truth(tracer) for i in _expand(tracer, iterable)))


@_builtin(all)
def _all(tracer: Tracer, iterable: Value) -> Value:
    return ConstValue(all(i.truth(tracer) for i in _expand(tracer, iterable)))


@_builtin(math.prod)
def _prod(tracer: Tracer, iterable: Value, *, start: Value | None = None) -> Value:
    total = start if start is not None else ConstValue(1)
    for item in _expand(tracer, iterable):
        total = tracer.binary("*", total, item)
    return total


@_builtin(functools.reduce)
def _reduce(tracer: Tracer, function: Value, iterable: Value, *initial: Value) -> Value:
    items = [*initial, *_expand(tracer, iterable)]
    if not items:
        tracer.raise_like(functools.reduce, max, [])
    total = items[0]
    for item in items[1:]:
        total = tracer.call_value(function, [total, item], {})
    return total


# -- the operator module --------------------------------------------------------------------------------
def _register_operators() -> None:
    for spelling, name in operators.BINARY_NAMES.items():
        _HANDLERS[getattr(operator, name)] = _binary_handler(spelling)
        in_place = getattr(operator, f"i{name.rstrip('_')}", None)
        if in_place is not None:
            _HANDLERS[in_place] = _binary_handler(f"{spelling}=")
    for spelling, name in operators.UNARY_NAMES.items():
        _HANDLERS[getattr(operator, name)] = _unary_handler(spelling)


def _binary_handler(spelling: str) -> Handler:
    def handle(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 2 or kwargs:
            raise Break("would-raise", f"operator {spelling} takes two arguments")
        return tracer.binary(spelling, *args)

    return handle


def _unary_handler(spelling: str) -> Handler:
    def handle(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs:
            raise Break("would-raise", f"operator {spelling} takes one argument")
        return tracer.unary(spelling, args[0])

    return handle


_register_operators()


@_builtin(operator.getitem)
def _getitem(tracer: Tracer, obj: Value, key: Value) -> Value:
    return tracer.realize(obj.getitem(tracer, key))


@_builtin(operator.index)
def _index(tracer: Tracer, obj: Value) -> Value:
    if isinstance(obj, SymIntValue):
        return obj
    if obj.is_const and isinstance(obj.const, int):
        return ConstValue(int(obj.const))
    raise Break("unsupported-call", f"operator.index of {obj.describe()}")


# -- pure functions of numbers and strings ----------------------------------------------------------------
_FOLDED: frozenset[Any] = frozenset(
    [f for f in vars(math).values() if callable(f)]
    + [str, repr, bytes, round, ord, chr, hash, hex, bin, oct, format, ascii, float.fromhex]
) - {vars(builtins)["hash"]}


def fold_call(tracer: Tracer, obj: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A pure C function of constants is computed at capture; of Python numbers, in Python at run time."""
    if isinstance(obj, functools._lru_cache_wrapper):
        return _cached_call(tracer, obj, args, kwargs)
    try:
        if obj not in _FOLDED:
            return None
    except TypeError:
        return None
    values = [*args, *kwargs.values()]
    if obj in (str, repr) and len(values) == 1 and isinstance(values[0], ExceptionValue):
        return raising.text_of(tracer, values[0], f"__{obj.__name__}__")
    if any(isinstance(v, NumberValue) for v in values) and not kwargs:
        if all(number_operand(v) for v in args) and obj not in (str, repr, format, ascii, bytes):
            return _python_call(tracer, obj, args)
        return None
    if not all(_foldable(v) for v in values):
        return None
    constants = [tracer.constant_of(v, "an argument") for v in args]
    keywords = {k: tracer.constant_of(v, "an argument") for k, v in kwargs.items()}
    return tracer.wrap_result(tracer.fold(lambda: obj(*constants, **keywords)))


def _cached_call(tracer: Tracer, obj: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function under ``lru_cache`` gives the same object for the same constants: ask it at capture."""
    if not all(v.is_const for v in (*args, *kwargs.values())):
        return None
    result = tracer.fold(lambda: obj(*(a.const for a in args), **{k: v.const for k, v in kwargs.items()}))
    if isinstance(result, (int, float, complex, str, bytes, type(None), type)):
        return tracer.wrap_result(result)
    return tracer.child_or_constant(result, None)


def _foldable(value: Value) -> bool:
    if isinstance(value, SymIntValue):
        return True
    return value.is_const and isinstance(value.const, (int, float, complex, str, bytes, tuple, type(None)))


def _python_call(tracer: Tracer, function: Any, args: list[Value]) -> Value:
    """A pure function of Python numbers, called by compiled code in Python."""
    try:
        hint = function(*(hint_of(a) for a in args))
    except Exception as error:
        raise Break("would-raise", f"{function.__name__}: {error}") from None
    if type(hint) not in (int, float, complex, bool):
        raise Break("unsupported-call", f"{function.__name__} of a Python number known only at run time")
    parts: list[Any] = [ConstValue(function), "("]
    for position, arg in enumerate(args):
        parts += [", ", arg] if position else [arg]
    parts.append(")")
    return NumberValue(hint, tuple(parts))
