"""Weak references from outside."""

from __future__ import annotations

import weakref
from typing import Any

from ..breaks import Break
from ..guards.guard import Kind
from ..guards.source import LocalSource, ReferentSource, Source
from .base import Codegen, Tracer, Value
from .leaving import leaves_place, written_places


class WeakReferenceValue(Value):
    """A ``weakref.ref`` from outside. What it refers to is known while something that the captured part
    leaves as it is holds that: whether it dies of what the program does is not followed."""

    def __init__(self, obj: weakref.ref[Any], source: Source) -> None:
        self.obj = obj
        self.source = source

    @staticmethod
    def outside(tracer: Tracer, obj: weakref.ref[Any], source: Source) -> Value:
        tracer.guard(source, Kind.TYPE_IS, weakref.ref)
        return WeakReferenceValue(obj, source)

    @property
    def pytype(self) -> type:
        return weakref.ref

    def truth(self, tracer: Tracer) -> bool:
        return True

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if args or kwargs:
            raise Break("unsupported-call", "a call of a weak reference with arguments")
        assert self.source is not None
        found = self.obj()
        if found is not None and not _is_held(tracer, found):
            raise Break("unsupported-call", "a call of a weak reference to what nothing is known to hold")
        return tracer.realize(tracer.child(found, ReferentSource(self.source)))

    def reconstruct(self, cg: Codegen) -> str:
        assert self.source is not None
        return cg.load(self.source)


def _is_held(tracer: Tracer, referent: object) -> bool:
    """Whether an object is met at a place, too, on the way to which the captured part changes nothing."""
    known = tracer.by_id.get(id(referent))
    source = None if known is None else known[0].source
    if source is None or leaves_place(tracer, source, written_places(tracer)):
        return False
    root = source.root()
    return not isinstance(root, LocalSource) or _is_bound(tracer, root)


def _is_bound(tracer: Tracer, root: Source) -> bool:
    """Whether a frame has a variable for what was found at ``root``."""
    return any(value.source == root for frame in tracer.frames for value in frame.locals.values())
