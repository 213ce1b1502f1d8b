"""Which function executes which canonical instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...python_code.instr import OPS
from ..frames import Frame
from ..values.base import Tracer

# handler(tracer, frame, arg)
Handler = Callable[[Tracer, Frame, Any], None]
HANDLERS: dict[str, Handler] = {}


def handles(*ops: str) -> Callable[[Handler], Handler]:
    """Register a handler; its stack effect is checked against ``instr.pops_pushes`` under
    ``options.debug_verify``."""

    def register(handler: Handler) -> Handler:
        for op in ops:
            if op not in OPS or op in HANDLERS:
                raise ValueError(f"instruction {op!r} is unknown or has a handler already")
            HANDLERS[op] = handler
        return handler

    return register
