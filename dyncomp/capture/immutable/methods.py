"""Builtin functions, operators and texts of the library's immutable objects (see ``immutable.values``)."""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..values.base import Tracer, Value
from .types import KNOWN, NUMPY_TIMES
from .values import FrozenValue, call_pure

# builtin functions that ask numbers by their methods, which depend on nothing else for these types
_OF_NUMBERS: frozenset[Any] = frozenset(
    [int, float, complex, abs, round, divmod, pow, hash, math.floor, math.ceil, math.trunc, math.sqrt]
    + [math.isfinite, math.isnan, math.isinf, math.exp, math.log, math.log10, math.sin, math.cos, math.atan2]
    + [getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos")]
)


def call(tracer: Tracer, obj: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A builtin function of numbers that are such objects; ``None`` where it is no such call."""
    if kwargs or not any(isinstance(arg, FrozenValue) for arg in args):
        return None
    try:
        known = obj in _OF_NUMBERS
    except TypeError:
        return None
    if not known or not all(_has_value(arg) for arg in args):
        return None
    if obj is hash and args[0].pytype in NUMPY_TIMES:
        return None  # "not a time" may be hashed by its identity
    tracer.take_direct()
    return call_pure(tracer, obj, [], args, kwargs)


def _has_value(value: Value) -> bool:
    if isinstance(value, FrozenValue):
        return KNOWN[type(value.obj)].operators
    return value.is_const and type(value.const) in (int, float, bool, complex, str, type(None))


# operators that never warn on two times of NumPy's
_SILENT: tuple[Any, ...] = (operator.add, operator.sub, operator.neg, operator.pos, operator.eq, operator.ne)
_SILENT += (operator.lt, operator.le, operator.gt, operator.ge)


def operation(tracer: Tracer, function: Callable[..., Any], values: list[Value]) -> Value | None:
    """An operator on such objects and constants; ``None`` where it is no such operator."""
    if not any(isinstance(value, FrozenValue) for value in values) or not all(map(_has_value, values)):
        return None
    times = [value.pytype in NUMPY_TIMES for value in values]
    if any(times) and not (all(times) and function in _SILENT):
        return None
    return call_pure(tracer, function, [], values, {})


# directives of strftime that the locale and the time zone have no say in
_NEUTRAL = frozenset("YmdHMSfjyuwVGU%")


def text(tracer: Tracer, function: Callable[..., str], value: FrozenValue, spec: str) -> Value:
    """``str``, ``repr``, ``ascii`` or ``format`` of such an object."""
    is_moment = isinstance(value.obj, (datetime.date, datetime.time))
    if is_moment and function is format and any(part[:1] not in _NEUTRAL for part in spec.split("%")[1:]):
        raise Break("unsupported-call", f"formatting of {value.describe()} by {spec!r}")
    if not KNOWN[type(value.obj)].operators or (spec[-1:] == "n" and not is_moment):
        raise Break("unsupported-call", f"formatting of {value.describe()}")
    args: list[Value] = [value]
    return call_pure(
        tracer, lambda obj: function(obj, spec) if function is format else function(obj), [], args, {}
    )
