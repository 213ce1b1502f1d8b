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

from ..hook import _hook
from .instr import Loc

COLUMN: int = _hook.TRANSFER_COLUMN
_PASS_ON = "def pass_on(function, *args):\n    return function(*args)\n"


def transfer_loc(loc: Loc) -> Loc:
    """The location of a call that carries on the frame of ``loc``."""
    return Loc(loc.line, loc.line, COLUMN, COLUMN)


def line_loc(line: int) -> Loc:
    """A place on a line of which no columns are known."""
    return Loc(line, line, 0, 0)


def pass_on(cache: dict[Any, Any], frame: Any) -> Any:
    """A function that calls its first argument with the others, from a frame that looks like ``frame``."""
    loc = frame.code.instructions[frame.current].loc
    return pass_on_at(cache, frame.raw_code, frame.current, line_loc(frame.loc.line) if None in loc else loc)


def pass_on_at(cache: dict[Any, Any], raw: types.CodeType, index: int, loc: Loc) -> Any:
    """The same for a frame of ``raw`` at instruction ``index``, which is at ``loc``."""
    key = ("pass on", id(raw), index)
    found = cache.get(key)
    if found is None:
        found = cache[key] = (_make(raw, loc), raw, index, loc)
    return found[0]


def _make(like: types.CodeType, loc: Loc) -> Any:
    tree = ast.parse(_PASS_ON)
    node: Any
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno, node.end_lineno, node.col_offset, node.end_col_offset = loc
    module = compile(tree, like.co_filename, "exec", dont_inherit=True)
    code = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    named = code.replace(co_name=like.co_name, co_qualname=like.co_qualname)
    _hook.mark(named, "skip")
    return types.FunctionType(named, {})
