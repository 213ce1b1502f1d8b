"""Calls of a library from compiled graphs, as if from the program's own line."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from typing import Any

from ..graph.ir import Loc
from ..hook._hook import mark


class Caller:
    """The line of the program that calls a routine: its warnings are filtered, counted and shown there."""

    def __init__(self, loc: Loc, module: str) -> None:
        plain = (lambda function, args, kwargs: function(*args, **kwargs)).__code__
        self.code = plain.replace(co_filename=loc.file, co_name=loc.function, co_firstlineno=loc.line)
        mark(self.code, "skip")
        self.loc = loc
        self.module = module
        self.own: dict[str, Any] = {"__name__": module}

    def call(self, function: object, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        # looked up anew: a module's names would live as long as the graph
        module = sys.modules.get(self.module)
        names = self.own if module is None else module.__dict__
        return types.FunctionType(self.code, names)(function, args, kwargs)
