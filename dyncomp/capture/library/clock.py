"""The clock: reading it is a graph break of its own."""

from __future__ import annotations

import time
from typing import Any

from ..breaks import Break
from ..values.base import Tracer, Value
from .registry import HANDLERS

_NAMES = ("time", "perf_counter", "monotonic", "process_time", "thread_time", "sleep", "localtime", "gmtime")
_FUNCTIONS = [*_NAMES, *(f"{name}_ns" for name in _NAMES)]


def _refuse(function: Any) -> Any:
    def handler(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Break("clock", f"a call of time.{function.__name__}")

    return handler


for _function in [getattr(time, name) for name in _FUNCTIONS if hasattr(time, name)]:
    HANDLERS[_function] = _refuse(_function)
