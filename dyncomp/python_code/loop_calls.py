"""Functions in which every iteration of a loop is a call: what :mod:`loops` makes of continuations, of whole
functions."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType

from dyncomp.errors import Unsupported
from dyncomp.python_code.cells import unsure_cells
from dyncomp.python_code.edit import Assembly, places_and_catches
from dyncomp.python_code.flow import Flow
from dyncomp.python_code.instr import CanonicalCode
from dyncomp.python_code.loop_find import Loop, find_loops
from dyncomp.python_code.loop_region import BREAK_ID, find_region
from dyncomp.python_code.loops import (
    LoopBody,
    Variables,
    emit_around,
    emit_driver,
    emit_sentinels,
    make_loop_body,
)
from dyncomp.python_code.resume import canonical_of
from dyncomp.python_code.versions import encode


def with_loop_calls(code: CodeType, make: Callable[[LoopBody], object]) -> CodeType:
    """``code`` in which iterations of outermost loops are calls of ``make(body)``, with the arguments
    and results of ``body`` (see :func:`~.loops.make_loop_driver`). Loops that cannot be cut out stay."""
    canonical = canonical_of(code)
    if canonical.is_generator:
        return code
    done = 0
    made = canonical
    while True:
        loops = [loop for loop in find_loops(made) if loop.level == 0]
        if done == len(loops):
            return code if made is canonical else encode(made)
        loop = sorted(loops, key=lambda found: found.header)[done]
        done += 1
        try:
            made = _with_loop_call(made, loop, make)
        except Unsupported:
            continue


def _with_loop_call(code: CanonicalCode, loop: Loop, make: Callable[[LoopBody], object]) -> CanonicalCode:
    flow = Flow.of(code)
    sure = flow.assigned()[loop.header]
    bound = flow.members(sure)
    region = find_region(code, loop)
    before = {i.arg for i in code.instructions[: loop.header] if i.op == "STORE_FAST"}
    if (before & (loop.stored | loop.read)).difference(bound):
        raise Unsupported("locals that may be unbound before a loop", break_id=BREAK_ID)
    body = make_loop_body(code, loop, bound)
    variables = Variables(code, loop, region, bound, 0)
    assembly = Assembly(unsure_cells(code))
    places, catches = places_and_catches(code)
    temporaries: set[str] = set()
    for instr in code.instructions:
        if instr.index == loop.header:
            assembly.mark(places[loop.header])
            assembly.loc, assembly.catch = instr.loc, catches[loop.header]
            emit_sentinels(assembly, variables.sentinels.difference(bound))
            temporaries = emit_driver(assembly, code, loop, body, make(body), variables, places, catches, {})
        else:
            emit_around(assembly, instr, variables, places, catches)
    assembly.mark(places[-1])
    others = [name for name in sorted(temporaries) if name not in code.varnames]
    return assembly.finish(code, varnames=(*code.varnames, *others))
