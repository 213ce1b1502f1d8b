"""Objects that the program sees go: they have a destructor, a weak reference to them calls back, or they are
generators that close in code of their own.

Compiled code lets go of what it was given before its effects, or when it returns. Where an instruction lets
go of such an object, and nothing else of the captured part holds it, the graph breaks there, so that the
object goes in plain Python, in its place among what the program does.
"""

from __future__ import annotations

import gc
import io
import sys
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...hook import _hook
from ..breaks import Break
from ..frames import Frame, code_info
from ..guards.source import LocalSource, Source
from ..objects.class_names import qualname_of
from ..values.base import Tracer, Value
from ..values.obj import InstanceValue

_MOST_LOOKED_AT = 64
_OF_NO_INTEREST = frozenset(
    (
        *(int, float, complex, bool, str, bytes, type(None), range, slice, type, type(...)),
        *(io.BytesIO, io.StringIO),  # what their finalizers close is memory
        *(types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.FrameType),
    )
)


def watch(tracer: Tracer, frame: Frame) -> Watched | None:
    """What of the objects that ``frame`` was given is to be watched; ``None`` for nothing."""
    places: dict[Source, _Place] = {}
    for container, items in ((frame.locals, frame.locals.items()), (frame.stack, enumerate(frame.stack))):
        for key, value in items:
            obj = getattr(value, "obj", None)
            if obj is not None and value.source is not None and leads_to_destructor(tracer, obj):
                places[value.source] = _Place(container, key, qualname_of(type(obj)))
    return Watched(tracer, places) if places else None


class _Place(NamedTuple):
    """Where a frame holds an object of type ``kind`` at first: in its locals or on its stack, by ``key``."""

    container: Any
    key: Any
    kind: str

    def still_holds(self, source: Source) -> bool:
        """Whether what is found at ``source`` is still there."""
        if isinstance(self.container, dict):
            value = self.container.get(self.key)
        else:
            value = self.container[self.key] if self.key < len(self.container) else None
        return value is not None and value.source == source


class Watched:
    """Where arguments are found of which, or of parts of which, the program would notice that they go."""

    def __init__(self, tracer: Tracer, places: dict[Source, _Place]) -> None:
        self.tracer = tracer
        self.places = places

    def check_instruction(self, frame: Frame) -> None:
        """After an instruction of ``frame``: the capture begins again with a break at it if it let go of such
        an object."""
        for source, place in self.places.items():
            if not place.still_holds(source) and not self._is_held(source):
                reason = f"an object of type {place.kind} goes, and the program may notice"
                decisions = self.tracer.decisions
                decisions.breaks[(frame.raw_code, frame.current)] = Break("destructor", reason)
                raise self.tracer.restart

    def _is_held(self, source: Source) -> bool:
        """Whether variables of the captured part, or what it stored outside, hold what is found there."""
        tracer = self.tracer
        work = [value for value in tracer.mutated if type(value.source) is not LocalSource]
        for frame in tracer.frames:
            work += [*frame.stack, *frame.locals.values(), *frame.cells.values()]
            work += [frame.result] if frame.result is not None else []
        work += [value for _, _, value in tracer.global_writes.values() if value is not None]
        seen: set[int] = set()
        while work:
            value = work.pop()
            if value.source == source:
                return True
            if id(value) not in seen:
                seen.add(id(value))
                work.extend(value.children())
        return False

    def check_change(self, value: Value) -> None:
        """Before a container from outside changes: one that holds such objects changes in plain Python, so
        that what it lets go of goes in its place among other changes."""
        if isinstance(value, InstanceValue) or value.source is None:
            return
        if value.source.root() in self.places:
            for known, obj in self.tracer.by_id.values():
                if known is value:
                    self.check_replaced(obj)

    def check_replaced(self, obj: object) -> None:
        """The same of an attribute of an instance, which is ``obj`` as yet."""
        if leads_to_destructor(self.tracer, obj):
            raise Break("destructor", "what was stored here goes, and the program may notice")


# -- objects ------------------------------------------------------------------------------------------------
def leads_to_destructor(tracer: Tracer, obj: object) -> bool:
    """Whether the program would notice that ``obj``, or something that may go with it, goes."""
    work, seen = [obj], set[int]()
    holder = tracer.config.holder  # whose other parts are dyncomp's own
    while work and len(seen) < _MOST_LOOKED_AT:
        found = work.pop()
        if type(found) in _OF_NO_INTEREST or id(found) in seen or _is_namespace(found):
            continue
        if holder is not None and type(found) is holder[0]:
            continue
        seen.add(id(found))
        if _is_seen_to_go(tracer, found):
            return True
        work += _parts(found)
    return False


def _is_namespace(obj: object) -> bool:
    """Whether ``obj`` is what ``globals()`` gives: the module holds it."""
    if type(obj) is not dict or type(name := obj.get("__name__")) is not str:
        return False
    module = sys.modules.get(name)
    return type(module) is types.ModuleType and vars(module) is obj


def _parts(obj: object) -> Iterable[Any]:
    """What goes with an object if nothing else holds it."""
    if type(obj) is types.FunctionType:
        return obj.__closure__ or ()
    return () if issubclass(type(obj), type) else gc.get_referents(obj)


def _is_seen_to_go(tracer: Tracer, obj: object) -> bool:
    if type(obj) is types.GeneratorType:
        return obj.gi_frame is not None and any(code_info(tracer.config, obj.gi_code).in_try)
    return _hook.notices_end(obj)
