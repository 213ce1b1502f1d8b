"""Functions cut in two at a branch: a first part that gives what the branch works on, and a rest that goes on
there."""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple

from dyncomp.errors import Unsupported
from dyncomp.python_code.cells import unsure_cells
from dyncomp.python_code.edit import Assembly, places_and_catches
from dyncomp.python_code.flow import Flow, handlers_of, introspects_locals, stack_depths
from dyncomp.python_code.instr import JUMPS
from dyncomp.python_code.loop_find import find_loops
from dyncomp.python_code.resume import (
    Arg,
    canonical_of,
    finish_function,
    fresh_prefix,
    make_continuation,
    needed_locals,
)
from dyncomp.python_code.versions import encode

CUT = -3
"""What the tuple begins with that the first part returns where it comes to the branch; the rest takes the
others."""

_BRANCHES = ("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE")
_IDLE = frozenset(
    ("RESUME", "NOP", "POP_TOP", "COPY", "SWAP", "LOAD_CONST", "LOAD_FAST", "STORE_FAST", "DELETE_FAST")
    + ("BUILD_TUPLE", "RETURN_VALUE", *JUMPS)
)


class Cut(NamedTuple):
    """``tested``: which of the values that the first part gives (:data:`CUT` counts) the branch is on."""

    first: CodeType
    rest: CodeType
    tested: int


def cut_at_branch(code: CodeType, at: int) -> Cut:
    """The first part and the rest of a function without cells, cut before canonical instruction ``at``.

    Raises Unsupported for what is no branch, or one in a loop or under a handler, and where a local may be
    unbound.
    """
    canonical = canonical_of(code)
    if canonical.instructions[at].op not in _BRANCHES:
        raise Unsupported("no branch")
    if canonical.cellvars or canonical.freevars or introspects_locals(canonical, 0):
        raise Unsupported("a function whose locals others see")
    if handlers_of(canonical)[at] is not None or any(at in loop.body for loop in find_loops(canonical)):
        raise Unsupported("a branch under a handler or in a loop")
    flow = Flow.of(canonical)
    bound = flow.members(flow.assigned()[at])
    passed = needed_locals(canonical, at, flow.names)
    if not set(passed).issubset(bound):
        raise Unsupported("locals that may be unbound at a branch")
    depth = stack_depths(canonical)[at]
    rest = make_continuation(canonical, at, stack_depth=depth, bound=passed)
    assembly = Assembly(unsure_cells(canonical))
    places, catches = places_and_catches(canonical)
    prefix = fresh_prefix(canonical, ".stack")
    values = [f"{prefix}{slot}" for slot in range(depth)]
    for instr in canonical.instructions:
        if instr.index != at:
            assembly.emit_copy(instr, places, catches)
            continue
        assembly.mark(places[at])
        assembly.loc, assembly.catch = instr.loc, None
        for name in reversed(values):
            assembly.emit("STORE_FAST", name)
        assembly.emit("LOAD_CONST", CUT)
        for arg in rest.args:
            assembly.emit("LOAD_FAST", values[arg.key] if arg.kind == "stack" else arg.key)
        assembly.emit("BUILD_TUPLE", len(rest.args) + 1)
        assembly.emit("RETURN_VALUE")
    assembly.mark(places[-1])
    first = encode(finish_function(assembly, canonical, canonical.arg_names, values))
    if is_idle(first):
        raise Unsupported("a function that begins with a branch")
    return Cut(first, rest.code, rest.args.index(Arg("stack", depth - 1)) + 1)


def is_idle(code: CodeType) -> bool:
    """Whether a function only jumps and passes values on."""
    return all(instr.op in _IDLE for instr in canonical_of(code).instructions)
