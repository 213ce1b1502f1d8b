"""Pure C functions of constants and of Python numbers."""

from __future__ import annotations

import builtins
import functools
import math
from typing import Any

from .. import exceptions
from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.exception import ExceptionValue
from ..values.number import ConstValue, NumberValue, SymIntValue, hint_of, number_operand
from ..values.text import is_computed, printable, text_call

_FOLDED: frozenset[Any] = frozenset(
    [f for f in vars(math).values() if callable(f)]
    + [str, repr, bytes, round, ord, chr, hash, hex, bin, oct, format, ascii, float.fromhex]
) - {vars(builtins)["hash"]}


_TEXT = (str, repr, format, ascii, hex, bin, oct, chr)


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
        return exceptions.text_of(tracer, values[0], f"__{obj.__name__}__")
    if any(is_computed(v) for v in values) and not kwargs:
        if obj in _TEXT and all(printable(v) for v in args):
            return text_call(tracer, obj, *args)
        if all(number_operand(v) for v in args) and obj not in (*_TEXT, bytes):
            return python_call(tracer, obj, args)
        return None
    if not all(_foldable(v) for v in values):
        return None
    constants = [tracer.constant_of(v, "an argument") for v in args]
    keywords = {k: tracer.constant_of(v, "an argument") for k, v in kwargs.items()}
    return tracer.wrap_result(tracer.fold(lambda: obj(*constants, **keywords)))


def _cached_call(tracer: Tracer, obj: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A library's function under ``lru_cache`` gives the same object for the same constants: ask it at
    capture. A program's own is called when the program runs, as the program may look at its cache."""
    if not tracer.config.is_trusted(str(obj.__module__)):
        raise Break("unsupported-call", f"call of {obj.__name__}, whose results are cached")
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


def python_call(tracer: Tracer, function: Any, args: list[Value]) -> Value:
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
