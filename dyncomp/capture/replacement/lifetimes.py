"""Objects live as long as in plain Python: what goes on behind a graph break holds what the variables held.

A continuation is given the locals that may still be read, and those others whose objects are at hand, were
found outside, or hold what the captured part takes away from where it was found: that an object goes can be
seen (weak references, ``__del__``, memory). What exists only as a value of the graph, and a number or a
text, is not made for that. A generator that nobody reads any more is closed when the frame lets go of it, in
plain Python when its variable is assigned or the function returns: its variable is handed on too.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from typing import Any

from ...python_code.resume import needed_locals
from ..breaks import Skip
from ..frames import Frame, code_info
from ..values.base import OpaqueValue, Tracer, UnboundValue, Value
from ..values.generator import GeneratorValue
from ..values.iterator import IteratorValue
from ..values.leaving import WrittenPlaces, leaves_place, written_places
from .codegen import Codegen

_MAY_STEP_GENERATORS = (zip, map, filter, enumerate)
_DEFINITIONS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
_UNSEEN = frozenset({int, float, complex, bool, str, bytes, type(None), range, type(...)})


def locals_needed(
    cg: Codegen, frame: Frame, at: int, names: Collection[str], changed: Mapping[str, bool] | None = None
) -> tuple[str, ...]:
    """Which of the locals ``names`` a continuation at ``at`` is given. ``changed``: those that plain code has
    assigned since, and whether their objects are at hand though nothing reads them any more."""
    changed = changed or {}
    needed = needed_locals(frame.code, at, names, frame.start)
    written = written_places(cg.tracer)
    others = set(names).difference(needed)
    return (
        *needed,
        *sorted(n for n in others if changed.get(n, _is_kept(cg, frame.locals.get(n), written))),
    )


def _is_kept(cg: Codegen, value: Value | None, written: WrittenPlaces) -> bool:
    if value is None or isinstance(value, UnboundValue):
        return False
    if value.pytype not in _UNSEEN:
        if cg.exists(value) or _is_found_outside(value) or _holds_what_leaves(cg.tracer, value, written):
            return True
    return _is_closed_when_dropped(cg.tracer, value)


def _is_found_outside(value: Value) -> bool:
    """Whether ``value`` is an object that was there before, and more than a definition of the program. What
    holds it may let go of it in the code that runs at the break."""
    return value.source is not None and not issubclass(value.pytype, _DEFINITIONS)


def _holds_what_leaves(tracer: Tracer, value: Value, written: WrittenPlaces) -> bool:
    """Whether ``value``, or what was made around it, is an object from outside that nothing else may hold
    behind the effects of the captured part."""
    if not written.names and not written.sources:
        return False
    work, seen = [value], set[int]()
    while work:
        found = work.pop()
        if id(found) in seen or found.pytype in _UNSEEN:
            continue
        seen.add(id(found))
        if found.source is None:
            work.extend(found.children())
        elif leaves_place(tracer, found.source, written):
            return True
    return False


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
