"""What calls and values are called in reports, warnings and generated code."""

from __future__ import annotations

import inspect
import re
import types
from typing import Any

from ...graph.ir import Loc
from .config import TRUSTED

# Names that continuations give to what lies on the stack where they begin.
_ON_STACK = re.compile(r"(?<![\w)\]'\"])\.stack\d+\b")
_ITEM = re.compile(r"(?<![\w)\]'\"])\.item\d*\b")


def name_of_call(function: types.FunctionType, args: tuple[Any, ...]) -> str:
    """The function's qualified name. A method of an array library is called after the class of its object, as
    all models run the same one: ``Encoder`` for a call of a module, else ``Encoder.method``."""
    code = function.__code__
    if not _is_of_a_library(function, args):
        return code.co_qualname
    cls = type.__getattribute__(type(args[0]), "__qualname__").rpartition("<locals>.")[2]
    return cls if code.co_name.startswith("_") else f"{cls}.{code.co_name}"


def place_of_call(function: types.FunctionType, args: tuple[Any, ...]) -> Loc:
    """The function's first line; for the call of a module, that of its ``forward``."""
    code = function.__code__
    if _is_of_a_library(function, args) and code.co_name.startswith("_"):
        forward = inspect.getattr_static(type(args[0]), "forward", None)
        if isinstance(forward, types.FunctionType):
            return location(forward.__code__)
    return location(code)


def _is_of_a_library(function: types.FunctionType, args: tuple[Any, ...]) -> bool:
    """Whether it is a method of an array library."""
    code = function.__code__
    module = function.__globals__.get("__name__")
    is_method = code.co_argcount > 0 and code.co_varnames[0] == "self" and bool(args)
    return is_method and isinstance(module, str) and module.partition(".")[0] in TRUSTED


def location(code: types.CodeType) -> Loc:
    return Loc(code.co_filename, code.co_firstlineno, code.co_qualname)


def in_words(text: str) -> str:
    """``text`` without the names of variables that only continuations have."""
    text = _ON_STACK.sub("<a value in use where the piece begins>", text)
    return _ITEM.sub("<the loop's item>", text)
