"""Loops whose iterations leave something in a variable that runs code of the program when it goes.

A generator inside of ``try`` or ``with``, or an object with ``__del__``, that a variable holds goes in plain
Python when the variable is next assigned or the function returns. A loop body that was made a function of its
own would let go of it where an iteration ends: such a loop runs as plain Python.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Sequence
from typing import Any

from ...python_code.flow import Flow, predecessors, remembered
from ...python_code.instr import CO_GENERATOR, CanonicalCode, Instr
from ...python_code.loops import Loop
from ...python_code.nested import names_within
from ..frames import Frame, code_info
from ..objects.class_names import module_of
from ..values.base import Tracer, Value

_CALLS = frozenset({"CALL", "CALL_FUNCTION_EX"})
_BETWEEN = frozenset({"STORE_FAST", "COPY", "SWAP", "JUMP", "NOP", "UNPACK_SEQUENCE", "BUILD_TUPLE"})
_LOADS = frozenset({"LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


def kept_problem(tracer: Tracer, frame: Frame, loop: Loop) -> str | None:
    """Why an iteration of ``loop`` may not be a function of its own; ``None`` where it may."""
    if id(tracer.config.function_of(frame.raw_code)) in tracer.config.counted_frames:
        return "a loop in a function whose frame may be counted by a warning's stacklevel"
    names = _keeping(frame, loop)
    if not names:
        return None
    instructions = frame.code.instructions
    for index in loop.body:
        found = _loaded(frame, instructions, index)
        if _runs_code_when_dropped(tracer, found):
            return f"a loop that may leave in {min(names)} what runs code when it goes"
    return None


def _keeping(frame: Frame, loop: Loop) -> frozenset[str]:
    """The variables that may hold the result of a call where an iteration or the loop ends."""
    flow = Flow.of(frame.code)
    possible = flow.maybe_assigned(flow.mask(set(frame.locals)), frame.start)
    ends = 0
    for place in (loop.header, *loop.exits):
        ends |= possible[place]
    return _given_by_calls(frame.code, frozenset(loop.body)).intersection(flow.members(ends))


@remembered
def _given_by_calls(code: CanonicalCode, body: frozenset[int]) -> frozenset[str]:
    """The variables to which instructions of ``body`` assign results of calls."""
    origins = predecessors(code)
    stores = [code.instructions[index] for index in body]
    return frozenset(i.arg for i in stores if i.op == "STORE_FAST" and _is_result(code, i, origins))


def _is_result(code: CanonicalCode, store: Instr, origins: list[list[int]]) -> bool:
    """Whether what is stored may come straight from a call."""
    seen: set[int] = set()
    work = list(origins[store.index])
    while work:
        index = work.pop()
        op = code.instructions[index].op
        if op in _CALLS:
            return True
        if op in _BETWEEN and index not in seen:
            seen.add(index)
            work.extend(origins[index])
    return False


def _loaded(frame: Frame, instructions: Sequence[Instr], index: int) -> Any:
    """The object that an instruction loads, or what its type has, as far as it is known without looking."""
    instr = instructions[index]
    if instr.op in _ATTRIBUTES and index and instructions[index - 1].op in _LOADS:
        owner = _loaded(frame, instructions, index - 1)
        return None if owner is None else inspect.getattr_static(owner, instr.arg, None)
    if instr.op == "LOAD_CONST":
        return instr.arg
    if instr.op == "LOAD_GLOBAL":
        return frame.globals[0].get(instr.arg)
    if instr.op == "LOAD_FAST":
        return _object_of(frame.locals.get(instr.arg))
    if instr.op == "LOAD_DEREF" and instr.arg in frame.cells:
        return _object_of(frame.cells[instr.arg].contents)
    return None


def _object_of(value: Value | None) -> Any:
    for name in ("code", "function", "obj"):
        found = getattr(value, name, None)
        if found is not None:
            return found
    return None if value is None else value.pytype


def _runs_code_when_dropped(tracer: Tracer, found: object) -> bool:
    """Whether a call of ``found`` gives a generator that runs code when closed, or may give an object with
    ``__del__``."""
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    code = getattr(found, "__code__", None) if isinstance(found, types.FunctionType) else found
    if isinstance(code, types.CodeType) and code.co_flags & CO_GENERATOR:
        return any(code_info(tracer.config, code).in_try)
    return _leads_to_destructor(tracer, found)


_MOST_LOOKED_AT = 64


def _leads_to_destructor(tracer: Tracer, found: Any) -> bool:
    """Whether ``found`` is a class with ``__del__``, names one, or names what names one; array libraries' own
    are not asked."""
    work, seen = [found], set[int]()
    while work and len(seen) < _MOST_LOOKED_AT:
        found = work.pop()
        kind = type(found)
        if id(found) in seen:
            continue
        seen.add(id(found))
        if kind in (staticmethod, classmethod):
            work.append(found.__func__)
        elif issubclass(kind, type) and not tracer.config.is_trusted(module_of(found)):
            if inspect.getattr_static(found, "__del__", None) is not None:
                return True
            work += [inspect.getattr_static(found, name, None) for name in ("__init__", "__new__")]
        elif kind is types.FunctionType and not tracer.config.is_trusted(str(found.__module__)):
            work += _named_by(found)
    return False


def _named_by(function: types.FunctionType) -> list[Any]:
    """Functions and classes that a function's code, or code nested in it, names."""
    named = [function.__globals__.get(name) for name in names_within(function.__code__)]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):
            named.append(cell.cell_contents)
    return named
