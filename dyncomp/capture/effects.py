"""Calls that are made when the captured part ends: their results are not used, and nothing that the captured
part does in between can be told apart from the call having come first."""

from __future__ import annotations

from typing import Any

from ..dataclass import dataclass
from ..python_code.instr import Loc
from ..python_code.transfers import line_loc
from .values.base import Frame, Tracer, Value


@dataclass(eq=False)
class DeferredCall:
    """``function(*args, **kwargs)``; ``place``: that of the instruction that makes it."""

    function: Any
    args: list[Value]
    kwargs: dict[str, Value]
    place: Loc


def defer(tracer: Tracer, function: object, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Make the call when the captured part ends, after the calls that were put off before."""
    tracer.refuse_for_batch("output")
    tracer.steps += 1
    tracer.outside_changes += 1
    tracer.deferred.append(DeferredCall(function, args, kwargs, _place(tracer.frames[-1])))


def _place(frame: Frame) -> Loc:
    loc: Loc = frame.code.instructions[frame.current].loc
    return line_loc(frame.loc.line) if None in loc else loc
