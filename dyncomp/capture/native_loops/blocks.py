"""What is known of a code object before its types are: where blocks begin, which locals a region still
reads."""

from __future__ import annotations

from ...dataclass import dataclass
from ..bytecode.flow import remembered, successors
from ..bytecode.instr import JUMPS, CanonicalCode
from ..bytecode.loop_find import Loop, find_loops


@dataclass(frozen=True, eq=False)
class CodeFacts:
    """``leaders``: targets of jumps. ``loops`` by header. ``leaves``: headers of loops over an iterator with
    no loop inside. ``live``: for every instruction of the region the locals that the region may still read
    (leaving it does not count). ``stored``: the locals it assigns."""

    code: CanonicalCode
    region: frozenset[int]
    leaders: frozenset[int]
    loops: dict[int, Loop]
    leaves: frozenset[int]
    live: dict[int, frozenset[str]]
    stored: frozenset[str]


@remembered
def facts_of(code: CanonicalCode, header: int = -1) -> CodeFacts:
    """Facts of the loop with ``header``; of the whole code for -1."""
    loops = {loop.header: loop for loop in find_loops(code)}
    region = loops[header].body if header >= 0 else frozenset(range(len(code.instructions)))
    inside = {key: loop for key, loop in loops.items() if key in region}
    leaves = {
        key
        for key, loop in inside.items()
        if loop.kind == "for" and not any(other in loop.body for other in inside if other != key)
    }
    leaders = frozenset(i.arg for i in code.instructions if i.op in JUMPS)
    stored = {
        code.instructions[index].arg
        for index in region
        if code.instructions[index].op in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR")
    }
    return CodeFacts(code, region, leaders, inside, frozenset(leaves), _live(code, region), frozenset(stored))


def _live(code: CanonicalCode, region: frozenset[int]) -> dict[int, frozenset[str]]:
    empty: frozenset[str] = frozenset()
    live = dict.fromkeys(region, empty)
    order = sorted(region, reverse=True)
    changed = True
    while changed:
        changed = False
        for index in order:
            instr = code.instructions[index]
            value = empty.union(*(live.get(after, empty) for after in successors(instr)))
            if instr.op in ("LOAD_FAST", "LOAD_DEREF", "DELETE_FAST"):
                value |= {instr.arg}
            elif instr.op == "STORE_FAST":
                value -= {instr.arg}
            if value != live[index]:
                live[index] = value
                changed = True
    return live


def inner_stores(code: CanonicalCode, body: frozenset[int]) -> frozenset[str]:
    """The locals that the instructions of ``body`` assign or delete."""
    found = (code.instructions[index] for index in body)
    return frozenset(i.arg for i in found if i.op in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"))
