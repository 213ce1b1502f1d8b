"""Variables shared with inner functions, in functions that were cut out of others.

There they are free variables, and unbound they would raise ``NameError``, where the function's own variables
raise ``UnboundLocalError``: reads of those that may be unbound are checked before.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType

from dyncomp.python_code.flow import handlers_of, remembered, saved_locals, successors
from dyncomp.python_code.instr import CanonicalCode
from dyncomp.python_code.nested import code_within

_DELETE = dis.opmap["DELETE_DEREF"]


@remembered
def unsure_cells(code: CanonicalCode) -> frozenset[int]:
    """The instructions that read a cell of the function's own which may be empty then."""
    own = frozenset(code.cellvars)
    reads = [i for i in code.instructions if i.op in ("LOAD_DEREF", "DELETE_DEREF") and i.arg in own]
    if not reads:
        return frozenset()
    if any(i.op == "DELETE_ATTR" and i.arg == "cell_contents" for i in code.instructions):
        return frozenset(i.index for i in reads)
    inner = [i.arg for i in code.instructions if i.op == "LOAD_CONST" and isinstance(i.arg, CodeType)]
    deleted = {name for function in inner for name in _deleted_in(function)}
    filled = _filled_cells(code, own)
    return frozenset(i.index for i in reads if i.arg in deleted or i.arg not in filled[i.index])


@remembered
def in_place_of_cells(code: CanonicalCode) -> list[str | None]:
    """For every instruction the name of a cell in whose place an inlined comprehension (3.12) keeps its own
    variable there, if any. Code cut out of the comprehension could not be bound to the cell."""
    shared = {*code.cellvars, *code.freevars}
    clears = [i for i in code.instructions if i.op == "LOAD_FAST_AND_CLEAR"]
    if not any(instr.arg in shared for instr in clears):
        return [None] * len(code.instructions)
    marks = {instr.index: 1 << bit for bit, instr in enumerate(clears)}
    names = [instr.arg if instr.arg in shared else None for instr in clears]
    inside: list[str | None] = []
    for state in saved_locals(code, handlers_of(code), marks):
        found = [
            names[bit] for mark in (state or {}).values() for bit in range(len(names)) if mark >> bit & 1
        ]
        inside.append(next(filter(None, found), None))
    return inside


def _deleted_in(function: CodeType) -> Iterator[str]:
    """The free variables that a function, or one inside of it, may delete."""
    for code in code_within(function):
        if _DELETE in code.co_code[::2]:
            yield from code.co_freevars


def _filled_cells(code: CanonicalCode, own: frozenset[str]) -> list[frozenset[str]]:
    """Those of the cells ``own`` that surely have contents before every instruction."""
    handlers = handlers_of(code)
    state = [own] * len(code.instructions)
    seen = [False] * len(code.instructions)
    work = [(0, own.intersection(code.arg_names))]
    while work:
        index, filled = work.pop()
        filled &= state[index]
        if seen[index] and filled == state[index]:
            continue
        seen[index] = True
        state[index] = filled
        handler = handlers[index]
        if handler is not None:
            work.append((handler.target, filled))
        instr = code.instructions[index]
        if instr.op == "STORE_DEREF":
            filled |= own.intersection([instr.arg])
        elif instr.op in ("DELETE_DEREF", "MAKE_CELL"):
            filled -= {instr.arg}
        work.extend((target, filled) for target in successors(instr))
    return state
