"""Functions without array work: after a few captures that found nothing to compile they are left as they are.

A program calls functions with numbers, texts and objects, too, and each kind of value that a function
branches on would be captured anew, to no end. What was captured stays; for other values of the same types the
original runs, and what it calls is captured where the hook was on in it before. A call that brings an array
is captured as ever.
"""

from __future__ import annotations

import cmath
import dis
import math
import types
from collections.abc import Iterator
from typing import Any

from ...frontends.base import Frontend
from ...hook import _hook
from ...python_code.nested import code_within
from ..entries.config import CaptureConfig
from ..environment.regions import breaks_are_errors
from ..guards.guard import Guard, GuardRefused, Kind, compile_guards
from ..guards.source import ItemSource, LocalSource, Source
from ..loops.scalar_loop_gates import gated_original
from .decision import RANK_ORIGINAL, Plain, Until

_ENOUGH = 3  # captures after a miss that gave no graph
_CLASS_DICT = type.__dict__["__dict__"]
_IMPORT = dis.opmap["IMPORT_NAME"]
_NUMBERS = (int, float, complex, str, bool, type(None))
_MODULES_OF_NUMBERS = ("builtins", "math", "cmath")
_MOST_ITEMS = 16  # of an argument that is a container, to look for arrays in


def note_outcome(config: CaptureConfig, code: types.CodeType, missed: bool, found: object) -> None:
    """Count a capture for the function: ``found`` is its entry's graph, ``missed`` whether it had others."""
    whole = config.state_of(config.function_of(code))
    if found is not None:
        whole.graphs += 1
    elif missed:
        whole.fruitless += 1


def left_alone(function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig) -> Plain | None:
    """For a miss: whether it is time that the original runs for all arguments of these types."""
    code = function.__code__
    whole = config.state_of(config.function_of(code))
    if _wants_graphs(config):
        return None
    if all(type(arg) in _NUMBERS for arg in args) and _names_no_arrays(function):
        text = "no arrays can be in it"
    elif whole.graphs or whole.fruitless < _ENOUGH or any(_brings_array(arg, config) for arg in args):
        return None
    else:
        text = f"no array operation in {whole.fruitless} forms of it"
    try:
        program = compile_guards([_region(config), *_types_of(code, args)])
    except GuardRefused:
        return None
    needs_hook = any(entry.needs_hook for entry in _hook.cache_entries(code, config))
    entry = _hook.Entry(program, gated_original(config, function), needs_hook=needs_hook, rank=RANK_ORIGINAL)
    return Plain(f"{text}: for other arguments of these types the original runs", Until.OTHER_TYPES, entry)


def works_on_numbers(function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig) -> bool:
    """Whether a function can come upon no array: it is given none, and calls itself and builtins only."""
    return _names_no_arrays(function, itself=True) and not any(_brings_array(arg, config) for arg in args)


def _names_no_arrays(function: types.FunctionType, itself: bool = False) -> bool:
    """Whether all that a function names is numbers, builtins and ``math``, or ``itself``; what it imports may
    be anything."""
    found = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    for code in code_within(function.__code__):
        if _IMPORT in code.co_code[::2]:
            return False
        found += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    return all(_is_plain(obj) or (itself and _is_form_of(obj, function)) for obj in found)


def _is_form_of(obj: object, function: types.FunctionType) -> bool:
    return type(obj) is types.FunctionType and obj.__code__ is function.__code__


def _is_plain(obj: object) -> bool:
    if type(obj) is types.BuiltinFunctionType:
        return obj.__module__ in _MODULES_OF_NUMBERS
    return type(obj) in _NUMBERS or obj is math or obj is cmath


def _wants_graphs(config: CaptureConfig) -> bool:
    """Whether code that is left as it is would be an error, or a surprise."""
    return config.options.capture_plain or config.options.fullgraph or bool(breaks_are_errors())


def _region(config: CaptureConfig) -> Guard:
    return Guard(None, Kind.REGION, (False, config.options.fullgraph))


def _brings_array(arg: object, config: CaptureConfig) -> bool:
    return any(True for _ in arrays_in(arg, config))


def arrays_in(arg: Any, config: CaptureConfig, depth: int = 2) -> Iterator[tuple[Frontend, Any]]:
    """The arrays that an argument is or holds, so far as one looks, with their libraries."""
    frontend = _library_of(arg, config)
    if frontend is not None:
        yield frontend, arg
        return
    if not depth:
        return
    if type(arg) in (list, tuple):
        items = arg[:_MOST_ITEMS]
    elif type(arg) is dict:
        items = list(arg.values())[:_MOST_ITEMS]
    else:
        items = _attributes(arg)
    for item in items:
        yield from arrays_in(item, config, depth - 1)


def _attributes(obj: object) -> list[Any]:
    """What is in the instance's own dict, read without the program's code."""
    for cls in type.__getattribute__(type(obj), "__mro__"):
        descriptor = _CLASS_DICT.__get__(cls).get("__dict__")
        if type(descriptor) is types.GetSetDescriptorType and cls is not type:
            return list(descriptor.__get__(obj).values())[:_MOST_ITEMS]
        if descriptor is not None:
            return []
    return []


def _library_of(obj: object, config: CaptureConfig) -> Frontend | None:
    kind = type(obj)
    for frontend in config.frontends:
        if kind in frontend.array_types or frontend.accepts(kind):
            return frontend
    return None


def _types_of(code: types.CodeType, args: tuple[Any, ...]) -> list[Guard]:
    """Guards on the types of the arguments, and of those in ``*args`` and ``**kwargs``."""
    found: list[Guard] = []
    for index, (name, arg) in enumerate(zip(code.co_varnames, args)):
        source = LocalSource(name, index)
        is_rest = index >= code.co_argcount + code.co_kwonlyargcount
        if is_rest and type(arg) is tuple:
            found.append(Guard(source, Kind.LEN, (tuple, len(arg))))
            found += [_type_of(ItemSource(source, at), item) for at, item in enumerate(arg)]
        elif is_rest and type(arg) is dict:
            found.append(Guard(source, Kind.DICT_KEYS, tuple(arg)))
            found += [_type_of(ItemSource(source, key), item) for key, item in arg.items()]
        else:
            found.append(_type_of(source, arg))
    return found


def _type_of(source: Source, obj: object) -> Guard:
    return Guard(source, Kind.TYPE_IS, type(obj))
