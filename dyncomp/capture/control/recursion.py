"""How far functions that call themselves are inlined.

To their end where that is known at capture (a walk over a tree, halves of an array) and not too long. A
graph break far inside would have to be resumed in each of the frames around it, and a depth that depends on a
number known at run time would be another one at each call: such recursion is inlined a few levels and then
called.
"""

from __future__ import annotations

import types
from collections import Counter
from typing import Any

from ..breaks import Break
from ..values.base import Frame, Tracer, Value
from ..values.func import CellValue
from ..values.number import NumberValue, SymIntValue

LEVELS = 3  # of recursion that does not come to an end
MOST_INSTRUCTIONS = 6000
MOST_NODES = 4  # times options.unroll_ops
MOST_CAPTURES = 2  # from then on where recursion ends is taken to differ from call to call


def identity(code: types.CodeType, closure: list[CellValue]) -> tuple[types.CodeType, tuple[int, ...]]:
    """A function, told from others of the same code: what a decorator makes of two functions are two."""
    return code, tuple(map(id, closure))


def identity_of(frame: Frame) -> tuple[types.CodeType, tuple[int, ...]]:
    return identity(frame.raw_code, [frame.cells[name] for name in frame.code.freevars])


def check(tracer: Tracer, code: types.CodeType, levels: int, args: list[Value], what: str) -> None:
    """``what`` calls itself while ``levels`` frames of it are there: break where it is not to be inlined."""
    if levels < LEVELS:
        return
    if not _may_go_on(tracer, code, args):
        raise Break("inline-refused", f"{what} is recursive")
    options = tracer.config.options
    too_long = (
        tracer.instructions > MOST_INSTRUCTIONS or len(tracer.builder.nodes) > MOST_NODES * options.unroll_ops
    )
    if too_long or levels >= options.inline_depth:
        _give_up(tracer, {code})


def _may_go_on(tracer: Tracer, code: types.CodeType, args: list[Value]) -> bool:
    if code in tracer.decisions.shallow or any(isinstance(arg, (SymIntValue, NumberValue)) for arg in args):
        return False
    state: Any = tracer.config.state_of(tracer.code)
    return state.captures <= MOST_CAPTURES


def refuse_ends_inside(tracer: Tracer) -> None:
    """Before the capture ends: begin again where that is too deep in a recursion."""
    counts = Counter(map(identity_of, tracer.frames))
    deep = {code for (code, _), levels in counts.items() if levels > LEVELS}
    deep -= tracer.decisions.shallow
    if deep:
        _give_up(tracer, deep)


def _give_up(tracer: Tracer, codes: set[types.CodeType]) -> None:
    tracer.decisions.shallow |= codes
    raise tracer.restart
