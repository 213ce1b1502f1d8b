"""Objects whose going can be seen: generators with handlers or ``finally`` blocks of their own.

Continuations are given the locals that may still be read. A generator that nobody reads any more is closed
when the frame lets go of it, in plain Python when its variable is assigned or the function returns: its
variable is handed on too.
"""

from __future__ import annotations

import types
from collections.abc import Collection
from typing import Any

from ..breaks import Skip
from ..bytecode.resume import needed_locals
from ..frames import Frame, code_info
from ..values.base import OpaqueValue, Tracer, Value
from ..values.generator import GeneratorValue
from ..values.iterator import IteratorValue

_MAY_STEP_GENERATORS = (zip, map, filter, enumerate)


def locals_needed(tracer: Tracer, frame: Frame, at: int, names: Collection[str]) -> tuple[str, ...]:
    """Which of the locals ``names`` a continuation at ``at`` is given."""
    needed = needed_locals(frame.code, at, names, frame.start)
    kept = [n for n in names if n not in needed and _is_closed_when_dropped(tracer, frame.locals.get(n))]
    return (*needed, *sorted(kept))


def _is_closed_when_dropped(tracer: Tracer, value: Value | None) -> bool:
    if isinstance(value, GeneratorValue):
        return not value.is_finished and any(value.frame.info.in_try)
    if isinstance(value, IteratorValue):
        return any(_is_closed_when_dropped(tracer, inner) for inner in value.children())
    obj = value.obj if isinstance(value, OpaqueValue) else getattr(value, "obj", None)
    if type(obj) is types.GeneratorType:
        return any(code_info(tracer.config, obj.gi_code).in_try)
    return type(obj) in _MAY_STEP_GENERATORS


def refuse_suspended(frames: Collection[Any]) -> None:
    """Before a break: a generator that variables hold and that stands inside of ``try`` is left to plain
    Python, where it goes exactly when the variable does."""
    for frame in frames:
        for value in (*frame.locals.values(), *frame.stack):
            if isinstance(value, GeneratorValue) and value.is_protected:
                raise Skip(f"{value.describe()} stands inside of try or with at a graph break")
