"""What the frame wrote to the attributes of a class or a function from outside."""

from __future__ import annotations

from typing import Any

from ..guards.source import Source
from .base import Codegen, Tracer, Value


class AttributeState(Value):
    """The attributes of ``obj`` that were written (``None``: deleted), whichever values stand for it."""

    def __init__(self, obj: Any, source: Source) -> None:
        self.obj = obj
        self.source = source
        self.written: dict[str, Value | None] = {}
        self.mutated = True

    @property
    def pytype(self) -> type:
        return type(self.obj)

    def children(self) -> tuple[Value, ...]:
        return tuple(v for v in self.written.values() if v is not None)

    def reconstruct(self, cg: Codegen) -> str:
        assert self.source is not None
        return cg.load(self.source)

    def replay(self, cg: Codegen) -> list[str]:
        """Statements that bring the attributes up to date."""
        target = cg.value(self)
        owner = type if isinstance(self.obj, type) else object
        lines = []
        for name, value in self.written.items():
            if value is not None:
                lines.append(f"{cg.constant(owner.__setattr__)}({target}, {name!r}, {cg.value(value)})")
            else:
                lines.append(f"{cg.constant(owner.__delattr__)}({target}, {name!r})")
        return lines


def state_of(tracer: Tracer, obj: object, source: Source) -> AttributeState:
    """What the frame wrote to a class or function from outside."""
    known: AttributeState | None = tracer.states.get(id(obj))
    if known is None:
        known = tracer.states[id(obj)] = AttributeState(obj, source)
    return known


def write_state(tracer: Tracer, state: AttributeState, name: str, value: Value | None) -> None:
    tracer.note_mutation(state)
    state.written[name] = value
