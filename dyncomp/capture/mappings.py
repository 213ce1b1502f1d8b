"""Operators on dicts, their views, and deques."""

from __future__ import annotations

import operator
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from .breaks import Break
from .methods.deques import deque_extend
from .methods.dicts import constants_of, merge, view_constants
from .methods.sets import set_operator
from .values.base import Tracer, Value
from .values.deque import DequeValue
from .values.mapping import DictValue, DictViewValue
from .values.number import ConstValue
from .values.sets import SetValue
from .values.steady import Steady


def container_operator(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value | None:
    """``a op b`` with a set, dict, view or deque; ``None`` where nothing is known of it."""
    if isinstance(a, (SetValue, DictViewValue)) or isinstance(b, (SetValue, DictViewValue)):
        found = set_operator(tracer, op, plain, a, b)
        return found if found is not None else _view_operator(tracer, plain, a, b)
    if isinstance(a, DictValue) or isinstance(b, DictValue):
        return _dict_operator(tracer, op, plain, a, b)
    if isinstance(a, DequeValue):
        return _deque_operator(tracer, op, plain, a, b)
    return None


# -- dicts ------------------------------------------------------------------------------------------
def _dict_operator(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value | None:
    written = _counter_operator(tracer, op, plain, a, b)
    if written is not None:
        return written
    if op == "|=" and isinstance(a, DictValue) and a.cls is not Counter:
        merge(tracer, a, b)
        return a
    if not (isinstance(a, DictValue) and isinstance(b, DictValue)):
        return None
    if plain == "|" and Counter not in (a.cls, b.cls):
        return _union(tracer, a, b)
    if plain in ("==", "!="):
        return ConstValue(dicts_equal(tracer, a, b) == (plain == "=="))
    if plain in ("<", "<=", ">", ">="):
        text = f"'{plain}' not supported between instances of '{a.cls.__name__}' and '{b.cls.__name__}'"
        tracer.raise_exception(TypeError, text)
    return None


def _counter_operator(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value | None:
    """By the methods of ``Counter``, which are written in Python."""
    if not (isinstance(a, DictValue) and a.cls is Counter):
        return None
    name = _SPECIAL.get(op)
    method = a.python_method(tracer, name) if name is not None else None
    if method is None:
        return None
    result: Value = tracer.realize(tracer.call_value(method, [b], {}))
    if result.is_const and result.const is NotImplemented:
        if plain in ("==", "!="):
            return None  # with another dict: as dicts
        raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")
    return result


_SPECIAL = {
    "+": "__add__",
    "-": "__sub__",
    "|": "__or__",
    "&": "__and__",
    "+=": "__iadd__",
    "-=": "__isub__",
    "|=": "__ior__",
    "&=": "__iand__",
    "==": "__eq__",
    "!=": "__ne__",
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
}


def _union(tracer: Tracer, a: DictValue, b: DictValue) -> Value:
    result = b.copied(tracer) if b.cls is not dict and a.cls is dict else a.copied(tracer)
    entries = result.contents(tracer)
    entries.clear()
    entries.update(a.contents(tracer))
    entries.update(b.contents(tracer))
    return result


def dicts_equal(tracer: Tracer, a: DictValue, b: DictValue) -> bool:
    """``a == b``; two ``OrderedDict`` compare their order as well."""
    first, second = a.contents(tracer), b.contents(tracer)
    if len(first) != len(second):
        return False
    steady = Steady(tracer, a, b)
    for key, value in list(first.items()):
        if key not in second or not steady.same_or_equal(tracer, value, second[key]):
            return False
    return not (a.cls is b.cls is OrderedDict) or list(first) == list(second)


# -- views ------------------------------------------------------------------------------------------
_VIEW_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "|": operator.or_,
    "&": operator.and_,
    "-": operator.sub,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _view_operator(tracer: Tracer, plain: str, a: Value, b: Value) -> Value | None:
    """Views of keys, and of items where all values are constant, behave as sets."""
    views = [v for v in (a, b) if isinstance(v, DictViewValue)]
    if not views or plain not in _VIEW_OPERATORS or any(v.kind == "values" for v in views):
        return None
    real_a, sure_a = _real_view(tracer, a)
    real_b, sure_b = _real_view(tracer, b)
    result = tracer.fold(_VIEW_OPERATORS[plain], real_a, real_b)
    if isinstance(result, set):
        return SetValue(tracer, result, certain=sure_a and sure_b)
    return ConstValue(result)


def _real_view(tracer: Tracer, value: Value) -> tuple[Any, bool]:
    if isinstance(value, DictViewValue) and value.kind == "keys":
        return dict.fromkeys(value.owner.contents(tracer)).keys(), True
    if isinstance(value, DictViewValue):
        return dict(view_constants(tracer, value)).items(), True
    if isinstance(value, SetValue):
        return value.elements(tracer), value.certain and value.source is None
    return constants_of(tracer, value), True


# -- deques -----------------------------------------------------------------------------------------
def _deque_operator(tracer: Tracer, op: str, plain: str, a: DequeValue, b: Value) -> Value | None:
    if op == "+=":
        deque_extend(tracer, a, b)
        return a
    if plain == "*" and b.pytype is int:
        count = max(0, tracer.integer_of(b, "a repeat count"))
        repeated = a.trimmed(a.items(tracer) * count)
        if op == plain:
            return DequeValue(repeated, a.maxlen)
        items = a.contents(tracer)
        a.touch(tracer)
        items[:] = repeated
        return a
    if not isinstance(b, DequeValue):
        return None
    if plain == "+":
        return a.rebuild(a.items(tracer) + b.items(tracer))
    if plain in ("==", "!="):
        first, second = a.contents(tracer), b.contents(tracer)
        equal = len(first) == len(second)
        steady = Steady(tracer, a, b)
        equal = equal and all(steady.same_or_equal(tracer, *pair) for pair in list(zip(first, second)))
        return ConstValue(equal == (plain == "=="))
    return None
