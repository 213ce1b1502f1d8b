"""Instructions on the stack, locals, cells, globals and attributes."""

from __future__ import annotations

import builtins
import sys
import types
from typing import NoReturn

from ...hook import _hook
from ...python_code.loops import Unbound
from ..breaks import Break
from ..control import generators
from ..guards.guard import Kind
from ..guards.source import (
    AttrSource,
    BuiltinSource,
    GlobalSource,
    GlobalsSource,
    ItemSource,
    ModuleDictSource,
    Source,
)
from ..values.base import Frame, Tracer, UnboundValue, Value
from ..values.func import CellValue
from ..values.generator import GeneratorValue
from ..values.number import ConstValue
from .registry import handles

_LITERALS = frozenset(
    (
        *(int, float, complex, bool, str, bytes, tuple, frozenset, slice, range),
        *(types.NoneType, types.EllipsisType, types.CodeType, Unbound),
    )
)


@handles("NOP", "RESUME")
def nop(tracer: Tracer, frame: Frame, arg: object) -> None:
    pass


@handles("POP_TOP")
def pop_top(tracer: Tracer, frame: Frame, arg: object) -> None:
    value = frame.pop()
    if isinstance(value, GeneratorValue):
        generators.dropped(tracer, value)


@handles("COPY")
def copy(tracer: Tracer, frame: Frame, arg: int) -> None:
    frame.push(frame.stack[-arg])


@handles("SWAP")
def swap(tracer: Tracer, frame: Frame, arg: int) -> None:
    stack = frame.stack
    stack[-1], stack[-arg] = stack[-arg], stack[-1]


@handles("LOAD_CONST")
def load_const(tracer: Tracer, frame: Frame, arg: object) -> None:
    # tools that write code objects make any object a constant
    frame.push(ConstValue(arg) if type(arg) in _LITERALS else tracer.child_or_constant(arg, None))


@handles("LOAD_ASSERTION_ERROR")
def load_assertion_error(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(ConstValue(AssertionError))


# -- locals and cells -------------------------------------------------------------------------------
@handles("LOAD_FAST")
def load_fast(tracer: Tracer, frame: Frame, name: str) -> None:
    found = frame.locals.get(name)
    if found is None:
        if name in frame.cells:
            frame.push(frame.cells[name])
            return
        _unbound(tracer, name)
    frame.push(found)


def _unbound(tracer: Tracer, name: str) -> NoReturn:
    text = f"cannot access local variable {name!r} where it is not associated with a value"
    tracer.raise_exception(UnboundLocalError, text)


def _empty_cell(tracer: Tracer, frame: Frame, name: str) -> NoReturn:
    if name in frame.code.cellvars:
        _unbound(tracer, name)
    text = f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
    tracer.raise_exception(NameError, text)


@handles("STORE_FAST")
def store_fast(tracer: Tracer, frame: Frame, name: str) -> None:
    value = frame.pop()
    before = frame.locals.pop(name, None) if tracer.generators else None
    if name in frame.cells:
        # behind an inlined comprehension whose variable is a cell, what was there before it
        frame.cells[name] = value  # type: ignore[assignment]
    elif isinstance(value, UnboundValue):
        frame.locals.pop(name, None)
    else:
        frame.locals[name] = value
    if isinstance(before, GeneratorValue):
        generators.dropped(tracer, before)


@handles("DELETE_FAST")
def delete_fast(tracer: Tracer, frame: Frame, name: str) -> None:
    if name not in frame.locals:
        _unbound(tracer, name)
    before = frame.locals.pop(name)
    if isinstance(before, GeneratorValue):
        generators.dropped(tracer, before)


@handles("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(tracer: Tracer, frame: Frame, name: str) -> None:
    if name in frame.cells:
        frame.push(frame.cells[name])
        return
    found = frame.locals.pop(name, None)
    frame.push(found or UnboundValue())


@handles("MAKE_CELL")
def make_cell(tracer: Tracer, frame: Frame, name: str) -> None:
    frame.cells[name] = CellValue(name, None)


@handles("LOAD_CLOSURE")
def load_closure(tracer: Tracer, frame: Frame, name: str) -> None:
    frame.push(frame.cells[name])


@handles("LOAD_DEREF")
def load_deref(tracer: Tracer, frame: Frame, name: str) -> None:
    contents = frame.cells[name].contents
    if contents is None:
        _empty_cell(tracer, frame, name)
    frame.push(contents)


@handles("STORE_DEREF")
def store_deref(tracer: Tracer, frame: Frame, name: str) -> None:
    frame.cells[name].store(tracer, frame.pop())


@handles("DELETE_DEREF")
def delete_deref(tracer: Tracer, frame: Frame, name: str) -> None:
    if frame.cells[name].contents is None:
        _empty_cell(tracer, frame, name)
    frame.cells[name].store(tracer, None)


# -- globals ----------------------------------------------------------------------------------------
def globals_source(tracer: Tracer, frame: Frame) -> Source | None:
    """Where the frame's globals dict is found; ``None`` for the root function's own."""
    namespace, function = frame.globals
    if namespace is tracer.root_globals:
        return None
    module = sys.modules.get(namespace.get("__name__", ""))
    if module is not None and vars(module) is namespace:
        return ModuleDictSource(module.__name__)
    if function is None:
        raise Break("unsupported-opcode", "globals of a function without a module")
    return AttrSource(function, "__globals__")


@handles("LOAD_GLOBAL")
def load_global(tracer: Tracer, frame: Frame, name: str) -> None:
    frame.push(read_global(tracer, frame, name))


def read_global(tracer: Tracer, frame: Frame, name: str) -> Value:
    namespace, _ = frame.globals
    written = tracer.global_writes.get((id(namespace), name))
    if written is not None:
        if written[2] is None:
            tracer.raise_exception(NameError, f"name {name!r} is not defined")
        return written[2]
    if not _hook.has_plain_names(namespace):
        raise Break("opaque-object", "global variables whose keys run code")
    base = globals_source(tracer, frame)
    if name in namespace:
        source = GlobalSource(name) if base is None else ItemSource(base, name)
        if tracer.config.is_trusted(str(namespace.get("__name__", ""))):
            return tracer.child_or_constant(namespace[name], None if callable(namespace[name]) else source)
        return tracer.child(namespace[name], source)
    if base is None:
        tracer.guard(None, Kind.GLOBAL_MISSING, name)
    else:
        tracer.guard(base, Kind.DICT_LACKS, name)
    found = vars(builtins).get(name, _MISSING)
    if found is _MISSING:
        tracer.raise_exception(NameError, f"name {name!r} is not defined")
    if isinstance(found, (int, str)):  # as True, and __debug__
        return ConstValue(found)
    tracer.guard(BuiltinSource(name), Kind.IS, found)
    return ConstValue(found, BuiltinSource(name))


_MISSING = object()


@handles("STORE_GLOBAL")
def store_global(tracer: Tracer, frame: Frame, name: str) -> None:
    _write_global(tracer, frame, name, frame.pop())


def _write_global(tracer: Tracer, frame: Frame, name: str, value: Value | None) -> None:
    namespace, _ = frame.globals
    tracer.refuse_for_batch(f"a write of the global {name}")
    tracer.steps += 1
    tracer.global_writes[(id(namespace), name)] = (frame.globals, name, value)


@handles("DELETE_GLOBAL")
def delete_global(tracer: Tracer, frame: Frame, name: str) -> None:
    namespace, _ = frame.globals
    written = tracer.global_writes.get((id(namespace), name))
    if written is not None and written[2] is not None and name not in namespace:
        tracer.steps += 1
        del tracer.global_writes[(id(namespace), name)]
        return
    if name not in namespace or (written is not None and written[2] is None):
        raise Break("would-raise", f"name {name!r} is not defined")
    base = globals_source(tracer, frame)
    tracer.guard(base or GlobalsSource(), Kind.DICT_HAS, name)
    _write_global(tracer, frame, name, None)


# -- attributes and items ------------------------------------------------------------------------------
@handles("LOAD_ATTR", "LOAD_METHOD")
def load_attr(tracer: Tracer, frame: Frame, name: str) -> None:
    owner = frame.pop()
    frame.push(tracer.attribute(frame, owner, name))


@handles("LOAD_SUPER_ATTR")
def load_super_attr(tracer: Tracer, frame: Frame, arg: tuple[str, bool]) -> None:
    function, cls, first = frame.popn(3)
    owner = tracer.call_value(function, [cls, first], {})
    frame.push(tracer.attribute(frame, owner, arg[0]))


@handles("STORE_ATTR")
def store_attr(tracer: Tracer, frame: Frame, name: str) -> None:
    value, owner = frame.popn(2)
    owner.setattr(tracer, name, value)


@handles("DELETE_ATTR")
def delete_attr(tracer: Tracer, frame: Frame, name: str) -> None:
    frame.pop().delattr(tracer, name)


@handles("BINARY_SUBSCR")
def binary_subscr(tracer: Tracer, frame: Frame, arg: object) -> None:
    owner, key = frame.popn(2)
    frame.push(owner.getitem(tracer, key))


@handles("STORE_SUBSCR")
def store_subscr(tracer: Tracer, frame: Frame, arg: object) -> None:
    value, owner, key = frame.popn(3)
    owner.setitem(tracer, key, value)


@handles("DELETE_SUBSCR")
def delete_subscr(tracer: Tracer, frame: Frame, arg: object) -> None:
    owner, key = frame.popn(2)
    owner.delitem(tracer, key)
