"""What is known of a code object before its types are: where blocks begin, which locals a region still
reads."""

from __future__ import annotations

import builtins
from typing import Any

from ...dataclass import dataclass
from ...python_code.flow import remembered, successors
from ...python_code.instr import JUMPS, CanonicalCode, Instr, pops_pushes
from ...python_code.loop_find import Loop, find_loops


@dataclass(frozen=True, eq=False)
class CodeFacts:
    """``leaders``: targets of jumps. ``loops`` by header. ``unrolled``: headers of loops with few steps, told
    from their code. ``leaves``: headers of loops over an iterator with no loop inside but those. ``live``:
    for every instruction of the region the locals that it may still read (leaving it does not count).
    ``stored``: the locals it assigns."""

    code: CanonicalCode
    region: frozenset[int]
    leaders: frozenset[int]
    loops: dict[int, Loop]
    leaves: frozenset[int]
    unrolled: frozenset[int]
    live: dict[int, frozenset[str]]
    stored: frozenset[str]


Known = tuple[tuple[str, "int | None"], ...]
"""Locals that a loop does not assign and what they hold: small numbers that it is compiled for; None: some
number from 1 to ``MOST_OF_SMALL``."""
Order = tuple[tuple[str, str, int], ...]
"""Locals that a loop does not assign: an int, and an array that is at least as long along an axis."""
MOST_STEPS = 8
MOST_OF_SMALL = 2**31 - 1
_MOST_INSTRUCTIONS = 600


@remembered
def facts_of(code: CanonicalCode, header: int = -1, unrolls: bool = True, known: Known = ()) -> CodeFacts:
    """Facts of the loop with ``header``; of the whole code for -1. ``known``: see ``known_limits``."""
    loops = {loop.header: loop for loop in find_loops(code)}
    region = loops[header].body if header >= 0 else frozenset(range(len(code.instructions)))
    inside = {key: loop for key, loop in loops.items() if key in region}
    unrolled = (
        _unrolled(code, {key: loop for key, loop in inside.items() if key != header}, dict(known))
        if unrolls
        else {}
    )
    others = [key for key in inside if key not in unrolled]
    leaves = {
        key
        for key in others
        if inside[key].kind == "for" and not any(o in inside[key].body for o in others if o != key)
    }
    leaders = frozenset(i.arg for i in code.instructions if i.op in JUMPS)
    stored = {
        code.instructions[index].arg
        for index in region
        if code.instructions[index].op in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR")
    }
    return CodeFacts(
        code,
        region,
        leaders,
        inside,
        frozenset(leaves),
        frozenset(unrolled),
        _live(code, region),
        frozenset(stored),
    )


def _unrolled(code: CanonicalCode, loops: dict[int, Loop], known: dict[str, int | None]) -> dict[int, int]:
    """Loops over a few constants, with none inside but such, and the instructions of all of their steps."""
    found: dict[int, int] = {}
    for header, loop in sorted(loops.items(), key=lambda entry: len(entry[1].body)):
        inner = [key for key in loops if key in loop.body and key != header]
        steps = _constant_steps(code, header, known) if loop.kind == "for" else 0
        if not 0 < steps <= MOST_STEPS or any(key not in found for key in inner):
            continue
        nested = [key for key in inner if not any(key in loops[o].body for o in inner if o != key)]
        more = sum(found[key] - len(loops[key].body) for key in nested)
        size = steps * (len(loop.body) + more)
        if size <= _MOST_INSTRUCTIONS:
            found[header] = size
    return found


def _limits(code: CanonicalCode, header: int) -> list[Instr]:
    """What loads the arguments of the ``range`` that a loop goes over; nothing of other loops."""
    before = code.instructions[max(header - 6, 0) : header]
    if len(before) < 2 or before[-1].op != "GET_ITER":
        return []
    count, names = before[-2].arg if before[-2].op == "CALL" else (0, ())
    given = before[-2 - count : -2]
    if not count or names or len(given) != count or len(before) < 3 + count:
        return []
    called = before[-3 - count]
    return list(given) if called.op == "LOAD_GLOBAL" and called.arg == "range" else []


def _constant_steps(code: CanonicalCode, header: int, known: dict[str, int | None]) -> int:
    """How many items a loop goes over: constants, or a range of constants; 0 where that is not told."""
    before = code.instructions[max(header - 2, 0) : header]
    if len(before) == 2 and before[-1].op == "GET_ITER" and before[-2].op == "LOAD_CONST":
        return len(before[-2].arg) if type(before[-2].arg) is tuple else 0
    given = _limits(code, header)
    numbers = [i.arg for i in given if i.op == "LOAD_CONST" and type(i.arg) is int]
    if len(numbers) < len(given):
        found = [known.get(i.arg) if i.op == "LOAD_FAST" else i.arg for i in given]
        numbers = [number for number in found if type(number) is int]
    if not given or len(numbers) != len(given) or 0 in numbers[2:]:
        return 0
    return len(range(*numbers)) if all(abs(number) < 2**31 for number in numbers) else 0


@remembered
def limit_names(code: CanonicalCode, header: int) -> frozenset[str]:
    """The locals that say how often loops within the loop with ``header`` run, which does not assign them."""
    loops = {loop.header: loop for loop in find_loops(code)}
    body = loops[header].body
    inside = [key for key in loops if key in body and key != header]
    loads = [i.arg for key in inside for i in _limits(code, key) if i.op == "LOAD_FAST"]
    return frozenset(loads) - inner_stores(code, body)


@remembered
def known_limits(code: CanonicalCode, header: int, values: Known) -> Known:
    """Those of the locals with these small values for which inner loops are unrolled: numbers of axes, sizes
    of windows."""
    loops = {loop.header: loop for loop in find_loops(code)}
    inside = {key: loop for key, loop in loops.items() if key in loops[header].body and key != header}
    loads = {key: [i.arg for i in _limits(code, key) if i.op == "LOAD_FAST"] for key in inside}
    unrolled = _unrolled(code, inside, dict(values))
    return tuple([(k, v) for k, v in values if any(k in loads[key] for key in unrolled)])


def makes_iterator(code: CanonicalCode, header: int, namespace: dict[str, Any]) -> bool:
    """Whether the loop is over what a call of ``enumerate`` or ``zip`` just gave: no variable holds that."""
    if header < 2 or code.instructions[header - 1].op != "GET_ITER":
        return False
    called = code.instructions[header - 2]
    if called.op != "CALL" or called.arg[1]:
        return False
    wanted, index = called.arg[0], header - 2
    while wanted > 0:
        index -= 1
        instr = code.instructions[index]
        if index < 1 or instr.op in JUMPS or any(i.op in JUMPS and i.arg == index for i in code.instructions):
            return False
        pops, pushes = pops_pushes(instr.op, instr.arg, False)
        wanted += pops - pushes
    instr = code.instructions[index - 1]
    found = namespace.get(instr.arg, vars(builtins).get(instr.arg)) if instr.op == "LOAD_GLOBAL" else None
    return wanted == 0 and (found is enumerate or found is zip)


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
