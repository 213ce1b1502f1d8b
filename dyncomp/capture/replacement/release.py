"""Replacement code lets go of what it does not need any more, before it runs code of the program.

Plain Python drops a temporary value when it has used it and a variable's object when the variable changes.
What compiled code has in its own variables would live until it returns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..bytecode.edit import with_insertions
from ..bytecode.flow import Flow, predecessors
from ..bytecode.instr import CanonicalCode, Instr
from .codegen import RELEASE

# what comes between the last statement and the return: nothing of the program runs there
_ENDING = frozenset(
    {"CALL", "BUILD_TUPLE", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_CONST", "LOAD_METHOD", "LOAD_ATTR"}
)


def release_dead(made: CanonicalCode, held: Collection[str]) -> CanonicalCode:
    """``made`` with each variable not in ``held`` deleted where it is read last, arguments not before the
    statement ``RELEASE``. Code without such a statement stays as it is."""
    mark = next((i.index for i in made.instructions if i.op == "LOAD_GLOBAL" and i.arg == RELEASE), None)
    if mark is None:
        return made
    flow = Flow.of(made)
    live = flow.live()
    keep = flow.mask(held)
    until_mark = flow.entry_mask()
    origins = predecessors(made)
    read = flow.mask(i.arg for i in made.instructions if i.op == "LOAD_FAST")
    gone = flow.assigned()[mark] & ~live[mark] & ~keep & (until_mark | ~read)
    deleted = {
        instr.index: [("DELETE_FAST", instr.arg)]
        for instr in _last_reads(made, flow, live, keep, until_mark, _reaching(origins, mark), origins)
    }
    deleted[mark + 1] = [("DELETE_FAST", name) for name in flow.members(gone)]
    return with_insertions(made, deleted, without=(mark, mark + 1))


def _last_reads(
    made: CanonicalCode,
    flow: Flow,
    live: list[int],
    keep: int,
    until_mark: int,
    before: set[int],
    origins: list[list[int]],
) -> Iterator[Instr]:
    ending = set(_endings(made, origins))
    for instr in made.instructions:
        if instr.op != "LOAD_FAST" or instr.index in ending:
            continue
        bit = flow.bit.get(instr.arg, 0)
        if bit & keep or (bit & until_mark and instr.index in before):
            continue
        if bit and not live[instr.index + 1] & bit and not _handled_live(flow, live, instr, bit):
            yield instr


def _handled_live(flow: Flow, live: list[int], instr: Instr, bit: int) -> bool:
    """Whether the handler of ``instr`` reads the variable."""
    handler = flow.handlers[instr.index]
    return handler is not None and bool(live[handler.target] & bit)


def _endings(made: CanonicalCode, origins: list[list[int]]) -> Iterator[int]:
    """The instructions that only put together what is returned."""
    for instr in made.instructions:
        if instr.op != "RETURN_VALUE":
            continue
        index = instr.index
        while origins[index] == [index - 1] and made.instructions[index - 1].op in _ENDING:
            index -= 1
            yield index


def _reaching(origins: list[list[int]], mark: int) -> set[int]:
    """The instructions from which control may come to ``mark``."""
    found: set[int] = set()
    work = [mark]
    while work:
        index = work.pop()
        if index not in found:
            found.add(index)
            work.extend(origins[index])
    return found
