"""Replacement code lets go of what it does not need any more, before it runs code of the program.

Plain Python drops a temporary value when it has used it and a variable's object when the variable changes.
What compiled code has in its own variables would live until it returns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...python_code.edit import with_insertions
from ...python_code.instr import JUMPS, NO_FALLTHROUGH, CanonicalCode
from .codegen import RELEASE

# what comes between the last statement and the return: nothing of the program runs there
_ENDING = frozenset(
    {"CALL", "BUILD_TUPLE", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_CONST", "LOAD_METHOD", "LOAD_ATTR"}
)


def release_dead(made: CanonicalCode, held: Collection[str]) -> CanonicalCode:
    """``made`` with each variable not in ``held`` deleted where it is read last, arguments not before the
    statement ``RELEASE``. Code without such a statement stays as it is."""
    instructions = made.instructions
    mark = next((i.index for i in instructions if i.op == "LOAD_GLOBAL" and i.arg == RELEASE), None)
    if mark is None:
        return made
    bit = {name: 1 << k for k, name in enumerate(made.varnames)}
    arguments, keep = _mask(bit, made.arg_names), _mask(bit, held)
    live, last = _last_reads(made, bit, mark, keep, arguments)
    read = _mask(bit, [i.arg for i in instructions if i.op == "LOAD_FAST"])
    gone = _surely_assigned(made, bit, arguments, mark) & ~live[mark] & ~keep & (arguments | ~read)
    deleted = {index: [("DELETE_FAST", instructions[index].arg)] for index in last}
    deleted[mark + 1] = [("DELETE_FAST", name) for name in made.varnames if bit[name] & gone]
    return with_insertions(made, deleted, without=(mark, mark + 1))


def _mask(bit: Mapping[str, int], names: Iterable[str]) -> int:
    """The set of variables as an int."""
    total = 0
    for name in names:
        total |= bit.get(name, 0)
    return total


def _last_reads(
    made: CanonicalCode, bit: Mapping[str, int], mark: int, keep: int, arguments: int
) -> tuple[list[int], list[int]]:
    """The variables that are live before every instruction, and which loads are the last of their variable.
    One pass from the end where no jump goes back, as in most replacements."""
    jumps = [instr for instr in made.instructions if instr[0] in JUMPS]
    targets = {instr.arg for instr in jumps}
    handlers = _handlers(made)
    live = [0] * (len(made.instructions) + 1)
    goes_back = any(instr.arg <= instr.index for instr in jumps)
    while True:
        before = live.copy()
        last = []
        value, ending, kept = 0, False, keep
        for op, arg, _, index in reversed(made.instructions):
            # the instructions that only put together what is returned are its ending
            ending = ending and op in _ENDING and index + 1 not in targets
            handler = handlers.get(index)
            handled = 0 if handler is None else live[handler]
            if op == "LOAD_FAST":
                local = bit[arg]
                if not (ending or (value | handled | kept) & local):
                    last.append(index)
                value |= local
            elif op == "STORE_FAST":
                value &= ~bit[arg]
            elif op == "DELETE_FAST":
                value |= bit[arg]
            elif op == "LOAD_CONST":
                pass
            elif op in JUMPS:
                value = live[arg] | (0 if op in NO_FALLTHROUGH else value)
            elif op in NO_FALLTHROUGH:
                value = 0
                ending = op == "RETURN_VALUE"
            value |= handled
            live[index] = value
            if index == mark:
                kept = keep | arguments
        if not goes_back or live == before:
            return live, last


def _handlers(made: CanonicalCode) -> dict[int, int]:
    """Where the exceptions of instructions are handled."""
    found: dict[int, int] = {}
    for entry in made.exceptions:
        found.update(dict.fromkeys(range(entry.start, entry.end), entry.target))
    return found


def _surely_assigned(made: CanonicalCode, bit: Mapping[str, int], arguments: int, mark: int) -> int:
    """The variables that have a value when control comes to ``mark``."""
    assigned, sure_from = arguments, 0
    for op, arg, _, index in made.instructions[:mark]:
        if op in JUMPS:
            sure_from = max(sure_from, arg)
        elif op == "STORE_FAST" and index >= sure_from:
            assigned |= bit[arg]
        elif op == "DELETE_FAST":
            assigned &= ~bit[arg]
    return assigned
