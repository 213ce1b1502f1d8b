"""Code whose calls of global functions go to stand-ins."""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

Chosen = Callable[[Any], Callable[..., Any] | None]


def with_stand_ins(
    code: types.CodeType, names: Mapping[str, Any], packages: Collection[str], choose: Chosen
) -> types.CodeType:
    """``code`` with calls of what it finds in its globals ``names`` and in modules of these packages going to
    ``choose(function)`` where that is not ``None``. What is only read stays as it is.

    Instructions are replaced in place, so that jumps and all tables stay as they are.
    """
    instructions = list(dis.get_instructions(code))
    raw = bytearray(code.co_code)
    constants = list(code.co_consts)
    imported = _imported(instructions, _arguments(code))
    for start, first in enumerate(instructions):
        if first.opname == "LOAD_FAST" and first.argval in imported:
            value, last, called = _loaded(instructions, start, imported, packages)
        elif first.opname == "LOAD_GLOBAL":
            value, last, called = _loaded(instructions, start, names, packages)
        else:
            continue
        chosen = choose(value) if called else None
        if chosen is None:
            continue
        while start and instructions[start - 1].opname == "EXTENDED_ARG":
            start -= 1
        begin, end = instructions[start].offset, instructions[last + 1].offset
        made = _call_of_constant(len(constants))
        if first.opname == "LOAD_FAST" and instructions[start - 1].opname == "PUSH_NULL":
            made = _load_constant(len(constants))  # a NULL is there
        if len(made) <= end - begin:
            nop = bytes((dis.opmap["NOP"], 0))
            raw[begin:end] = made + nop * ((end - begin - len(made)) // 2)
            constants.append(chosen)
    for k, constant in enumerate(code.co_consts):
        # frames of generators are made in their functions, and the hook does not see them
        if isinstance(constant, types.CodeType) and constant.co_flags & inspect.CO_GENERATOR:
            constants[k] = with_stand_ins(constant, names, packages, choose)
    if len(constants) == len(code.co_consts) and all(a is b for a, b in zip(constants, code.co_consts)):
        return code
    return code.replace(co_code=bytes(raw), co_consts=tuple(constants), co_stacksize=code.co_stacksize + 1)


def _loaded(
    instructions: list[dis.Instruction], start: int, names: Mapping[str, Any], packages: Collection[str]
) -> tuple[Any, int, bool]:
    """What instructions from ``start`` on load, the last of them, and whether it is to be called."""
    first, last = instructions[start], start
    name = str(first.argval)
    value = names.get(name, getattr(builtins, name, None))
    called = first.opname == "LOAD_GLOBAL" and bool((first.arg or 0) & 1)
    before = instructions[start - 1]
    if (
        first.opname == "LOAD_FAST"
        and before.opname == "PUSH_NULL"
        and not isinstance(value, types.ModuleType)
    ):
        return value, start, True
    as_method = False
    while isinstance(value, types.ModuleType) and not as_method:
        if value.__name__.partition(".")[0] not in packages:
            break
        step = instructions[last + 1]
        width = 1
        while step.opname == "EXTENDED_ARG" and not step.is_jump_target:
            width += 1
            step = instructions[last + width]
        if step.opname not in ("LOAD_ATTR", "LOAD_METHOD") or step.is_jump_target:
            break
        last += width
        as_method = step.opname == "LOAD_METHOD"
        if sys.version_info >= (3, 12):
            as_method = bool((step.arg or 0) & 1)
        value = vars(value).get(str(step.argval))
    called |= as_method
    called |= first.opname == "LOAD_FAST" and before.opname == "PUSH_NULL" and last > start
    following = instructions[last + 1]
    if not called and following.opname == "PUSH_NULL" and not following.is_jump_target:
        called, last = True, last + 1
    return value, last, called


def _arguments(code: types.CodeType) -> tuple[str, ...]:
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]


def _imported(instructions: list[dis.Instruction], arguments: Sequence[str]) -> dict[str, Any]:
    """What local variables hold to which only an ``import`` assigns."""
    stores = list(arguments)
    for step in instructions:
        if step.opname.startswith(("STORE_FAST", "DELETE_FAST")):
            stores += step.argval if isinstance(step.argval, tuple) else [step.argval]
    found = {}
    for k, step in enumerate(instructions[:-1]):
        if step.opname != "IMPORT_NAME" or step.argval not in sys.modules:
            continue
        module, following = sys.modules[str(step.argval)], instructions[k + 1]
        if following.opname == "STORE_FAST":
            top = str(step.argval).partition(".")[0]
            found[str(following.argval)] = sys.modules.get(top)
        while following.opname == "IMPORT_FROM" and instructions[k + 2].opname == "STORE_FAST":
            found[str(instructions[k + 2].argval)] = getattr(module, str(following.argval), None)
            k += 2
            following = instructions[k + 1]
    return {name: value for name, value in found.items() if stores.count(name) == 1}


def _load_constant(number: int) -> bytes:
    load = bytes((dis.opmap["LOAD_CONST"], number & 255))
    while number > 255:
        number >>= 8
        load = bytes((dis.opmap["EXTENDED_ARG"], number & 255)) + load
    return load


def _call_of_constant(number: int) -> bytes:
    """What loads a constant that is called."""
    load = _load_constant(number)
    null = bytes((dis.opmap["PUSH_NULL"], 0))
    return load + null if sys.version_info >= (3, 13) else null + load
