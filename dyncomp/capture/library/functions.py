"""Look-up of ``singledispatch``, cells that are empty."""

from __future__ import annotations

import functools
from typing import Any

from ...hook._hook import check_cell
from ..breaks import Break
from ..control.exceptions import raise_exception
from ..guards.guard import Kind, short
from ..guards.source import AttrSource, CellContentsSource, ItemSource
from ..values.base import Tracer, Value
from ..values.func import CellValue, FunctionValue
from ..values.number import ConstValue
from .registry import builtin


@builtin(check_cell)
def _check_cell(tracer: Tracer, cell: Value, name: Value) -> Value:
    """Code that was cut out of a function reads a variable of the function (see ``bytecode.cells``)."""
    assert isinstance(cell, CellValue)
    if cell.contents is None:
        text = f"cannot access local variable {name.const!r} where it is not associated with a value"
        raise_exception(tracer, UnboundLocalError, text)
    return ConstValue(None)


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
