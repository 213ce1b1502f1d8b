"""``functools.update_wrapper`` (and so ``wraps``), look-up of ``singledispatch``, cells that are empty."""

from __future__ import annotations

import functools
from typing import Any

from .._hook import check_cell
from ..breaks import Break
from ..exceptions import raise_exception
from ..guards.guard import Kind, short
from ..guards.source import AttrSource, CellContentsSource, ItemSource
from ..objects import attributes
from ..values.base import Tracer, Value
from ..values.func import CellValue, FunctionValue, NestedFunctionValue
from ..values.number import ConstValue
from .registry import builtin

_ASSIGNED = ConstValue(functools.WRAPPER_ASSIGNMENTS)
_UPDATED = ConstValue(functools.WRAPPER_UPDATES)


@builtin(check_cell)
def _check_cell(tracer: Tracer, cell: Value, name: Value) -> Value:
    """Code that was cut out of a function reads a variable of the function (see ``bytecode.cells``)."""
    assert isinstance(cell, CellValue)
    if cell.contents is None:
        text = f"cannot access local variable {name.const!r} where it is not associated with a value"
        raise_exception(tracer, UnboundLocalError, text)
    return ConstValue(None)


@builtin(functools.update_wrapper)
def _update_wrapper(
    tracer: Tracer, wrapper: Value, wrapped: Value, assigned: Value = _ASSIGNED, updated: Value = _UPDATED
) -> Value:
    names = tracer.constant_of(assigned, "what update_wrapper assigns")
    if tracer.constant_of(updated, "what update_wrapper updates") != functools.WRAPPER_UPDATES:
        raise Break("unsupported-call", "update_wrapper of other dicts than __dict__")
    if not isinstance(wrapper, NestedFunctionValue):
        raise Break("unsupported-call", f"update_wrapper of {wrapper.describe()}")
    own = _own_attributes(tracer, wrapped)
    for name in names:
        value = attributes.maybe_attribute(tracer, wrapped, name)
        if value is not None:
            wrapper.setattr(tracer, name, tracer.realize(value))
    for name, value in own.items():
        wrapper.setattr(tracer, name, value)
    wrapper.setattr(tracer, "__wrapped__", wrapped)
    return wrapper


def _own_attributes(tracer: Tracer, function: Value) -> dict[str, Value]:
    """The contents of a function's ``__dict__``."""
    if isinstance(function, NestedFunctionValue):
        return {k: v for k, v in function.written.items() if not function.is_field(k)}
    if not isinstance(function, FunctionValue) or id(function.function) in tracer.states:
        raise Break("unsupported-call", f"the attributes of {function.describe()}")
    assert function.source is not None
    names = tuple(vars(function.function))
    tracer.guard(AttrSource(function.source, "__dict__"), Kind.DICT_KEYS, names)
    return {name: tracer.realize(function.getattr(tracer, name)) for name in names}


_DISPATCH: Any = functools.singledispatch(lambda x: x).dispatch.__code__  # type: ignore[attr-defined]


def dispatched(tracer: Tracer, function: FunctionValue, args: list[Value]) -> Value | None:
    """``f.dispatch(cls)`` of a ``singledispatch`` function; ``None`` for any other function."""
    code = function.function.__code__
    if code is not _DISPATCH or len(args) != 1 or function.function.__closure__ is None:
        return None
    cls = tracer.constant_of(args[0], "a class")
    index = code.co_freevars.index("registry")
    registry = function.function.__closure__[index].cell_contents
    assert function.source is not None
    place = CellContentsSource(ItemSource(AttrSource(function.source, "__closure__"), index))
    found = tracer.fold(function.function, cls)
    tracer.guard(place, Kind.LEN, (dict, len(registry)))
    for key, implementation in registry.items():
        if implementation is found:
            return tracer.realize(tracer.child(found, ItemSource(place, key)))
    raise Break("unsupported-call", f"a singledispatch function for {short(cls):.40}")
