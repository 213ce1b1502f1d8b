"""Calls that carry on a frame's own execution, and frames that stand in for those of inlined callees.

A function captured in pieces runs as several Python frames: a replacement calls a continuation, a loop
its body. Such a *transfer* is marked in the code's location table by its column; where an exception leaves
compiled code, C takes the entries of marked calls out of the traceback, so that each frame of the program is
seen once. Callees that were inlined between a replacement and what it calls get frames of their own again.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from . import _hook
from .instr import Loc

COLUMN: int = _hook.TRANSFER_COLUMN
_PASS_ON = "def pass_on(function, *args):\n    return function(*args)\n"


def transfer_loc(loc: Loc) -> Loc:
    """The location of a call that carries on the frame of ``loc``."""
    return Loc(loc.line, loc.line, COLUMN, COLUMN)


def pass_on(cache: dict[Any, Any], frame: Any) -> Any:
    """A function that calls its first argument with the others, from a frame that looks like ``frame``."""
    line = frame.loc.line
    key = ("pass on", id(frame.raw_code), line)
    found = cache.get(key)
    if found is None:
        found = cache[key] = (_make(frame.raw_code, line), frame.raw_code)
    return found[0]


def _make(like: types.CodeType, line: int) -> Any:
    tree = ast.parse(_PASS_ON)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
    module = compile(tree, like.co_filename, "exec", dont_inherit=True)
    code = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    named = code.replace(co_name=like.co_name, co_qualname=like.co_qualname)
    _hook.mark(named, "skip")
    return types.FunctionType(named, {})
