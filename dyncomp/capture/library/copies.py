"""``copy.copy`` and ``copy.deepcopy``."""

from __future__ import annotations

import copy
import copyreg
import types
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..objects import attributes
from ..objects.class_names import class_dict
from ..values.array import ArrayValue
from ..values.base import Codegen, Tracer, Value
from ..values.exception import ExceptionValue
from ..values.func import FunctionValue, NestedFunctionValue
from ..values.mapping import DictValue
from ..values.number import ConstValue, NumberValue, SymIntValue
from ..values.obj import InstanceValue
from ..values.seq import ListValue, TupleValue
from .registry import builtin

_ATOMIC: tuple[type, ...] = (
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    range,
)
_ATOMIC += (types.FunctionType, types.BuiltinFunctionType)
# what a class may define to be copied in another way than attribute by attribute
_HOOKS = (
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
)


class MemoValue(DictValue):
    """The memo of a ``deepcopy`` under way, as ``__deepcopy__`` gets it: it can only be passed on."""

    def __init__(self) -> None:
        super().__init__({})
        self.known: dict[int, tuple[Value, Value]] = {}

    def contents(self, tracer: Tracer) -> dict[Any, Value]:
        raise Break("unsupported-operation", "the memo of a deepcopy is looked at")

    def lookup(self, tracer: Tracer, key: object) -> Value | None:
        raise Break("unsupported-operation", "the memo of a deepcopy is looked at")

    def touch(self, tracer: Tracer) -> None:
        raise Break("unsupported-operation", "the memo of a deepcopy is changed")

    def reconstruct(self, cg: Codegen) -> str:
        raise Break("unsupported-operation", "the memo of a deepcopy is kept")


def _is_atomic(value: Value) -> bool:
    if isinstance(value, (FunctionValue, NestedFunctionValue, SymIntValue, NumberValue)):
        return True
    if isinstance(value, ArrayValue):
        return value.ref.kind == "python"
    return isinstance(value, ConstValue) and (type(value.const) in _ATOMIC or isinstance(value.const, type))


def _refusal(value: Value) -> Break:
    return Break("unsupported-call", f"a copy of {value.describe()}")


@builtin(copy.copy)
def _copy(tracer: Tracer, x: Value) -> Value:
    if _is_atomic(x) or (x.pytype is tuple and x.is_const) or (isinstance(x, TupleValue) and x.cls is tuple):
        return x
    if isinstance(x, TupleValue) and not x.cls.__dictoffset__ and _is_copied_by_parts(x.cls, x.cls.__new__):
        return TupleValue(x.items(tracer), None, x.cls)
    if x.pytype in (list, dict, set):
        return tracer.realize(x.getattr(tracer, "copy").call(tracer, [], {}))
    if isinstance(x, ArrayValue) and x.ref.kind == "array":
        return _copied_array(tracer, x)
    if not isinstance(x, InstanceValue) or isinstance(x, ExceptionValue):
        raise _refusal(x)
    hook = attributes.special_method(tracer, x, "__copy__")
    if hook is not None:
        return tracer.realize(tracer.call_value(hook, [], {}))
    return _copied_instance(tracer, x, lambda made, value: value)


def _copied_array(tracer: Tracer, x: Value) -> Value:
    method = x.getattr(tracer, "copy")
    return tracer.realize(method.call(tracer, [], {"order": ConstValue("K")}))


def _is_copied_by_parts(cls: type, new: object) -> bool:
    """Whether a class leaves it to ``object.__reduce_ex__`` how its instances are copied."""
    own = [base for base in cls.__mro__ if base not in (object, tuple)]
    hooks = any(name in class_dict(base) for base in own for name in _HOOKS if not _by_namedtuple(base, name))
    return not hooks and cls not in copyreg.dispatch_table and cls.__new__ is new


def _by_namedtuple(base: type, name: str) -> bool:
    return name == "__getnewargs__" and hasattr(base, "_fields")


def _copied_instance(
    tracer: Tracer, x: InstanceValue, part: Callable[[Value, Value], Value]
) -> InstanceValue:
    """A new object with the attributes of ``x``, each as ``part(new object, attribute)`` gives it."""
    slots = copyreg._slotnames(x.cls)  # type: ignore[attr-defined]
    if slots or not _is_copied_by_parts(x.cls, object.__new__) or hasattr(x.cls, "__copy__"):
        raise _refusal(x)
    if type(x.cls) is not type and "__del__" in dir(x.cls):
        raise _refusal(x)
    made = InstanceValue(x.cls)
    for name, value in list(x.namespace.contents(tracer).items()):
        made.namespace.store(tracer, name, part(made, tracer.realize(value)))
    return made


@builtin(copy.deepcopy)
def _deepcopy(tracer: Tracer, x: Value, memo: Value | None = None) -> Value:
    if memo is None or (memo.is_const and memo.const is None):
        memo = MemoValue()
    if not isinstance(memo, MemoValue):
        raise Break("unsupported-call", "deepcopy with a memo of the program's own")
    return _deep(tracer, x, memo)


def _deep(tracer: Tracer, x: Value, memo: MemoValue) -> Value:
    x = tracer.realize(x)
    if _is_atomic(x) or (isinstance(x, ConstValue) and _is_atomic_tuple(x.const)):
        return x
    known = memo.known.get(id(x))
    if known is not None:
        return known[1]
    made = _deep_copied(tracer, x, memo)
    if made is not x:
        memo.known[id(x)] = (x, made)
    return made


def _is_atomic_tuple(obj: object) -> bool:
    return type(obj) is tuple and all(type(i) in _ATOMIC or _is_atomic_tuple(i) for i in obj)


def _deep_copied(tracer: Tracer, x: Value, memo: MemoValue) -> Value:
    if isinstance(x, ListValue) and x.pytype is list:
        made = ListValue([])
        memo.known[id(x)] = (x, made)
        for item in x.items(tracer):
            made.append(tracer, _deep(tracer, item, memo))
        return made
    if isinstance(x, TupleValue):
        return _deep_tuple(tracer, x, memo)
    if isinstance(x, DictValue) and x.pytype is dict:
        copied = DictValue({})
        memo.known[id(x)] = (x, copied)
        for key, value in list(x.contents(tracer).items()):
            copied.store(tracer, key, _deep(tracer, value, memo))
        return copied
    if x.pytype in (set, frozenset):  # by way of a list, as their order tells
        elements = tracer.realize(tracer.call_value(ConstValue(list), [x], {}))
        items = ListValue([_deep(tracer, item, memo) for item in elements.items(tracer)])
        return tracer.realize(tracer.call_value(ConstValue(x.pytype), [items], {}))
    if isinstance(x, ArrayValue) and x.ref.kind == "array":
        return _copied_array(tracer, x)
    if not isinstance(x, InstanceValue) or isinstance(x, ExceptionValue):
        raise _refusal(x)
    hook = attributes.special_method(tracer, x, "__deepcopy__")
    if hook is not None:
        return tracer.realize(tracer.call_value(hook, [memo], {}))
    return _deep_instance(tracer, x, memo)


def _deep_tuple(tracer: Tracer, x: TupleValue, memo: MemoValue) -> Value:
    if x.cls is not tuple and (x.cls.__dictoffset__ or not _is_copied_by_parts(x.cls, x.cls.__new__)):
        raise _refusal(x)
    before = [tracer.realize(v) for v in x.items(tracer)]
    items = [_deep(tracer, v, memo) for v in before]
    known = memo.known.get(id(x))
    if known is not None:
        return known[1]  # it contains itself, by way of a list
    if x.cls is tuple and all(a is b for a, b in zip(before, items)):
        return x
    return TupleValue(items, None, x.cls)


def _deep_instance(tracer: Tracer, x: InstanceValue, memo: MemoValue) -> Value:
    def part(made: Value, value: Value) -> Value:
        memo.known[id(x)] = (x, made)
        return _deep(tracer, value, memo)

    return _copied_instance(tracer, x, part)
