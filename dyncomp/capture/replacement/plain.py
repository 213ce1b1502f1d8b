"""Continuations that run as plain Python and are never captured."""

from __future__ import annotations

import types
from typing import Any

from ...hook import _hook
from ...python_code.resume import Continuation
from ..frames import Frame
from .codegen import Codegen


def plain_function(cg: Codegen, frame: Frame, made: Continuation) -> Any:
    """A callable of a continuation that is never captured: a function, or an object with ``bind``."""
    function = plain_piece(made.code, frame.raw_code, frame.globals[0])
    cg.plain.append((function, frame.raw_code))
    return function


def plain_piece(code: types.CodeType, origin: types.CodeType, namespace: dict[str, Any]) -> Any:
    """The same of its ``code``, which carries on calls of ``origin``."""
    _hook.mark(code, "skip")
    _hook.set_origin(code, origin)
    if not code.co_freevars:
        return types.FunctionType(code, namespace)
    return PlainContinuation(code, namespace)


class PlainContinuation:
    """A continuation with free variables that runs as plain Python: ``bind(cells)(*args)``."""

    def __init__(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        self.code = code
        self.namespace = namespace
        self.__name__ = code.co_name

    def bind(self, cells: tuple[types.CellType, ...]) -> Any:
        return types.FunctionType(self.code, self.namespace, self.code.co_name, None, cells)
