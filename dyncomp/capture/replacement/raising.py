"""Errors of capture that the program is to see, raised where the program stands.

A continuation's stack may hold what ``with`` and ``try`` blocks have yet to leave. When capturing it raises
(a graph break that is an error, a recompilation that is forbidden, ``KeyboardInterrupt``), the error has to
come out of the instruction at which it goes on, so that those blocks see it as they see any other.
"""

from __future__ import annotations

import types

from ...hook import _hook
from ...python_code.continuation import place_of
from ...python_code.edit import Assembly, Label, places_and_catches
from ...python_code.versions import decode, encode
from ..entries.config import CaptureConfig

TRANSIENT = -1  # rank of an entry that C runs once and does not keep


def raising_entry(
    function: types.FunctionType, error: BaseException, config: CaptureConfig
) -> _hook.Entry | None:
    """An entry that raises ``error`` at the instruction where a continuation goes on; ``None`` where there is
    no handler around it: then ``error`` may be raised as it is."""
    place = place_of(config, function.__code__)
    if place is None:
        return None
    code = _raising_code(place.plain_code(), error)
    if code is None:
        return None
    _hook.mark(code, "skip")
    return _hook.Entry(None, code, rank=TRANSIENT)


def _raising_code(code: types.CodeType, error: BaseException) -> types.CodeType | None:
    canonical = decode(code)
    jump = next((i for i in canonical.instructions if i.op == "JUMP"), None)  # the end of the prologue
    if jump is None:
        return None
    assembly = Assembly()
    places, catches = places_and_catches(canonical)
    if catches[jump.arg] is None:
        return None
    raising = Label()
    for instr in canonical.instructions:
        assembly.emit_copy(instr, places, catches)
        if instr is jump:
            assembly.retarget(raising)
    assembly.mark(places[-1])
    assembly.mark(raising)
    assembly.loc = canonical.instructions[jump.arg].loc
    assembly.catch = catches[jump.arg]
    assembly.emit("LOAD_CONST", error)
    assembly.emit("RAISE_VARARGS", 1)
    return encode(assembly.finish(canonical))
