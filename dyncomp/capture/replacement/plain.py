"""Continuations that run as plain Python and are never captured."""

from __future__ import annotations

import types
from typing import Any

from ...hook import _hook
from ...python_code.resume import Continuation
from ..frames import Frame


def plain_function(frame: Frame, made: Continuation) -> Any:
    """A callable of a continuation that is never captured: a function, or an object with ``bind``."""
    _hook.mark(made.code, "skip")
    _hook.set_origin(made.code, frame.raw_code)
    if not made.freevars:
        return types.FunctionType(made.code, frame.globals[0])
    return PlainContinuation(made.code, frame.globals[0])


class PlainContinuation:
    """A continuation with free variables that runs as plain Python: ``bind(cells)(*args)``."""

    def __init__(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        self.code = code
        self.namespace = namespace
        self.__name__ = code.co_name

    def bind(self, cells: tuple[types.CellType, ...]) -> Any:
        return types.FunctionType(self.code, self.namespace, self.code.co_name, None, cells)
