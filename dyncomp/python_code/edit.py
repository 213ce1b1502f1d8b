"""Building canonical code: labels instead of indices, a handler per instruction instead of ranges."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any, NamedTuple

from dyncomp.hook._hook import check_cell, insert
from dyncomp.python_code.flow import handlers_of, successors
from dyncomp.python_code.instr import JUMPS, NO_LOC, CanonicalCode, ExceptionRange, Instr, Loc, make_instr


class Label:
    """A place in code that is being built."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index = -1


class Catch(NamedTuple):
    """What handles an instruction's exceptions."""

    target: Label
    depth: int
    lasti: bool


# may run a Python function in a frame of the same evaluation loop
_ENTERS_FRAMES = frozenset(
    {"CALL", "CALL_FUNCTION_EX", "FOR_ITER", "SEND", "LOAD_ATTR", "LOAD_METHOD", "BINARY_SUBSCR"}
)
_TO_PLACES = JUMPS | {"LASTI"}


class Assembly:
    """Instructions in order of emission. Arguments of jumps and of LASTI are labels."""

    def __init__(self, unsure: Collection[int] = ()) -> None:
        """``unsure``: the ``unsure_cells`` of the code whose instructions are copied."""
        self._unsure = unsure
        self._items: list[tuple[str, Any, Loc, Catch | None]] = []
        self.loc = NO_LOC
        self.catch: Catch | None = None

    def emit(self, op: str, arg: object = None) -> None:
        """Append an instruction at the current location, under the current handler."""
        self._items.append((op, arg, self.loc, self.catch))

    def mark(self, label: Label) -> None:
        """Put ``label`` before whatever is emitted next."""
        label.index = len(self._items)

    def emit_copy(self, instr: Instr, places: Places, catches: Catches) -> None:
        """Append ``instr`` of the code that ``places`` and ``catches`` belong to, and mark its place."""
        self.mark(places[instr.index])
        if instr.index in self._unsure:
            around = self.loc, self.catch
            self.loc, self.catch = instr.loc, catches[instr.index]
            self.emit_check(instr)
            self.loc, self.catch = around
        arg = instr.arg
        if instr.op in JUMPS or instr.op == "LASTI":
            arg = places[arg]
        self._items.append((instr.op, arg, instr.loc, catches[instr.index]))

    def emit_check(self, instr: Instr) -> None:
        """What comes before a copy of ``instr`` where it reads a cell that may be empty (see ``cells``)."""
        if instr.index in self._unsure:
            self.emit("LOAD_CONST", check_cell)
            self.emit("LOAD_CLOSURE", instr.arg)
            self.emit("LOAD_CONST", instr.arg)
            self.emit("CALL", (2, ()))
            self.emit("POP_TOP")

    def retarget(self, label: Label) -> None:
        """Make the jump that was emitted last go to ``label``."""
        op, _, loc, catch = self._items[-1]
        self._items[-1] = (op, label, loc, catch)

    def finish(self, like: CanonicalCode, **changes: Any) -> CanonicalCode:
        """The code without unreachable instructions; its other fields come from ``like`` and ``changes``."""
        linked = [
            make_instr((op, arg.index if type(arg) is Label else arg, loc, index))
            for index, (op, arg, loc, _) in enumerate(self._items)
        ]
        catches = [item[3] for item in self._items]
        kept = _reachable(linked, catches)
        led = _led_by_nop(linked, catches, kept)
        moved = [0] * (len(linked) + 1)
        count = 0
        for index, keep in enumerate(kept):
            count += led[index]
            moved[index] = count
            count += keep
        moved[len(linked)] = count
        instructions: list[Instr] = []
        made_catches: list[Catch | None] = []
        for instr, keep in zip(linked, kept):
            if not keep:
                continue
            if led[instr.index]:
                instructions.append(make_instr(("NOP", None, instr.loc, len(instructions))))
                made_catches.append(catches[instr.index])
            arg = moved[instr.arg] if instr.op in JUMPS or instr.op == "LASTI" else instr.arg
            instructions.append(make_instr((instr.op, arg, instr.loc, len(instructions))))
            made_catches.append(catches[instr.index])
        exceptions = _ranges(made_catches, moved)
        return dataclasses.replace(like, instructions=tuple(instructions), exceptions=exceptions, **changes)


def with_insertions(
    code: CanonicalCode, after: dict[int, list[tuple[str, Any]]], without: Collection[int] = ()
) -> CanonicalCode:
    """``code`` with further operations ``after`` some of its instructions, at their place and under their
    handler, and ``without`` others."""
    instructions, begins = insert(code.instructions, after, without, _TO_PLACES, Instr)
    exceptions = tuple(
        [
            ExceptionRange(begins[start], begins[end], begins[target], depth, lasti)
            for start, end, target, depth, lasti in code.exceptions
        ]
    )
    return dataclasses.replace(code, instructions=instructions, exceptions=exceptions)


class Places(dict[int, Label]):
    """Labels for the instructions of a code object and, last, for its end; made when they are asked for."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, index: int) -> Label:
        if index < 0:
            return self[self._count + 1 + index]
        label = self[index] = Label()
        return label


class Catches(dict[int, "Catch | None"]):
    """The handlers of a code object's instructions in terms of its ``places``."""

    def __init__(self, code: CanonicalCode, places: Places) -> None:
        super().__init__()
        self._handlers = handlers_of(code)
        self._places = places

    def __missing__(self, index: int) -> Catch | None:
        entry = self._handlers[index]
        made = None if entry is None else Catch(self._places[entry.target], entry.depth, entry.lasti)
        self[index] = made
        return made


def places_and_catches(code: CanonicalCode) -> tuple[Places, Catches]:
    """Fresh labels for every instruction of ``code`` (and its end), and its handlers in terms of them."""
    places = Places(len(code.instructions))
    return places, Catches(code, places)


def _led_by_nop(instructions: list[Instr], catches: list[Catch | None], kept: list[bool]) -> list[bool]:
    """Before which instructions a NOP under the same handler is to be put. CPython 3.13 looks for the handler
    of a failed call of a Python function at the instruction before the call (in compiled code there always is
    one, which loads the operands), 3.11 and 3.12 for that of a signal handler's exception before where a jump
    back leads."""
    led = [False] * len(instructions)
    jumps = [instr for instr in instructions if instr.op == "JUMP" and kept[instr.index]]
    back = {instr.arg for instr in jumps if instr.arg <= instr.index}
    before: Catch | None = None
    for instr, catch, keep in zip(instructions, catches, kept):
        if keep:
            looked_at = instr.op in _ENTERS_FRAMES or instr.index in back
            led[instr.index] = catch is not None and catch != before and looked_at
            before = catch
    return led


def _reachable(instructions: list[Instr], catches: list[Catch | None]) -> list[bool]:
    seen = [False] * len(instructions)
    work = [0]
    while work:
        index = work.pop()
        if seen[index]:
            continue
        seen[index] = True
        catch = catches[index]
        if catch is not None and not seen[catch.target.index]:
            work.append(catch.target.index)
        work.extend(successors(instructions[index]))
    return seen


def _ranges(catches: list[Catch | None], moved: list[int]) -> tuple[ExceptionRange, ...]:
    out: list[ExceptionRange] = []
    current: Catch | None = None
    for index, catch in enumerate(catches):
        if catch is not None and catch == current and out[-1].end == index:
            out[-1] = out[-1]._replace(end=index + 1)
        elif catch is not None:
            target = moved[catch.target.index]
            out.append(ExceptionRange(index, index + 1, target, catch.depth, catch.lasti))
        current = catch
    return tuple(out)
