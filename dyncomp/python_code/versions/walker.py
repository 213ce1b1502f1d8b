"""Real bytecode to canonical instructions: the walk (what each opcode means is in ``decode``).

The raw code is walked once along its control flow with an abstract stack that only knows the depth and
which slots hold the NULLs (or method/self pairs) of the calling convention: a bit mask. Those slots vanish
in canonical code, so every operand that counts stack positions is corrected by the number of such slots
above it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from dyncomp.errors import Unsupported
from dyncomp.python_code.instr import CanonicalCode, ExceptionRange, Loc, make_instr, pops_pushes
from dyncomp.python_code.versions.raw import RawException, RawInstr, disassemble
from dyncomp.python_code.versions.tables import BREAK_ID, TESTS_TRUTH


class State(NamedTuple):
    """The real stack before an instruction: its depth and a mask of the slots that canonical code lacks."""

    depth: int
    nulls: int


_make_state: Callable[[tuple[int, int]], State] = functools.partial(tuple.__new__, State)


class Decoder:
    """One run of :func:`decode`. Handlers in ``HANDLERS`` emit canonical ops and update the stack."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.raw, self.raw_exceptions = disassemble(code)
        cells = tuple(name for name in code.co_cellvars if name not in code.co_varnames)
        self.slots: tuple[str, ...] = code.co_varnames + cells + code.co_freevars
        self.boxed = frozenset(code.co_cellvars + code.co_freevars)
        if len(set(self.slots)) != len(self.slots):
            raise Unsupported("two local variables share one name", break_id=BREAK_ID)
        count = len(self.raw)
        self.emitted: list[list[tuple[str, Any]] | None] = [None] * count
        self.states: list[State | None] = [None] * count
        self.work: list[tuple[int, State]] = []
        self.send_targets: dict[int, Loc] = {}
        self.folded: set[int] = set()
        self.index = 0
        self.out: list[tuple[str, Any]] = []
        self.depth = 0
        self.nulls = 0

    # -- what handlers use

    def emit(self, op: str, arg: object = None) -> None:
        self.out.append((op, arg))

    def emit_plain(self, op: str, arg: object = None) -> None:
        """Emit ``op`` and apply its canonical effect to the real stack (no NULL among what it touches)."""
        self.out.append((op, arg))
        pops, pushes = pops_pushes(op, arg)
        self.pop(pops)
        self.depth += pushes

    def pop(self, count: int) -> None:
        self.depth -= count
        if self.depth < 0 or self.nulls >> self.depth:
            raise Unsupported("unexpected stack layout", break_id=BREAK_ID)

    def push(self, count: int = 1) -> None:
        self.depth += count

    def push_null(self) -> None:
        self.nulls |= 1 << self.depth
        self.depth += 1

    def insert_null(self, below: int) -> None:
        """Put a NULL under the ``below`` topmost values (none of them a NULL)."""
        if self.nulls >> (self.depth - below):
            raise Unsupported("unexpected stack layout", break_id=BREAK_ID)
        self.nulls |= 1 << (self.depth - below)
        self.depth += 1

    def swaps_from(self, offset: int) -> int:
        """k - 1 where ``SWAP k, SWAP k-1, … SWAP 2`` begin ``offset`` instructions away, else 0."""
        if self.raw_at(offset) != "SWAP":
            return 0
        top = self.raw[self.index + offset].arg
        for k in range(top, 1, -1):
            place = offset + top - k
            if self.raw_at(place) != "SWAP" or self.raw[self.index + place].arg != k:
                return 0
        return top - 1

    def take_null(self, position: int) -> bool:
        """Whether the slot ``position`` (1 = top) is a NULL; forgets the mark."""
        bit = 1 << (self.depth - position)
        found = bool(self.nulls & bit)
        self.nulls &= ~bit
        return found

    def position(self, n: int) -> int:
        """The canonical stack position of real position ``n`` (1 = top)."""
        slot = self.depth - n
        if slot < 0 or (self.nulls >> slot) & 1:
            raise Unsupported("unexpected stack layout", break_id=BREAK_ID)
        return n - (self.nulls >> slot).bit_count()

    def goto(self, target: int, pops: int = 0) -> None:
        """Record that control may reach raw instruction ``target`` with ``pops`` values fewer."""
        depth = self.depth - pops
        self.work.append((target, State(depth, self.nulls & ((1 << depth) - 1))))

    def raw_at(self, offset: int) -> str:
        """The opcode ``offset`` instructions away, or ""."""
        i = self.index + offset
        return self.raw[i].op if 0 <= i < len(self.raw) else ""

    # -- the walk

    def run(self) -> CanonicalCode:
        start = self.strip_prologue()
        self.work.append((start, State(0, 0)))
        handlers_of = self.handler_lookup()
        while self.work:
            index, state = self.work.pop()
            self.walk(index, state, handlers_of)
        return self.link(start)

    def strip_prologue(self) -> int:
        """Skip COPY_FREE_VARS and MAKE_CELL at the start; the canonical form implies them."""
        index = 0
        raw = self.raw
        if raw[0].op == "COPY_FREE_VARS":
            index = 1
        made = []
        while raw[index].op == "MAKE_CELL":
            made.append(self.slots[raw[index].arg])
            index += 1
        if sorted(made) != sorted(self.code.co_cellvars) or (index == len(made)) == bool(
            self.code.co_freevars
        ):
            raise Unsupported("unusual function prologue", break_id=BREAK_ID)
        return index

    def handler_lookup(self) -> list[RawException | None]:
        lookup: list[RawException | None] = [None] * len(self.raw)
        for entry in self.raw_exceptions:
            for i in range(entry.start, entry.end):
                lookup[i] = entry
        return lookup

    def walk(self, index: int, state: State, handlers_of: list[RawException | None]) -> None:
        """Decode from ``index`` along fallthrough until the path ends or was decoded before."""
        raw, states, emitted = self.raw, self.states, self.emitted
        handlers = HANDLERS
        while True:
            seen = states[index]
            if seen is not None:
                if seen != state:
                    raise Unsupported("stack layouts disagree where control flow joins", break_id=BREAK_ID)
                return
            states[index] = state
            self.index = index
            self.depth, self.nulls = state
            handler = handlers_of[index]
            if handler is not None and states[handler.target] is None:
                self.enter_handler(handler)
            item = raw[index]
            straight = STRAIGHT.get(item.op)
            if straight is not None:
                emitted[index] = [(item.op, self.operand(straight, item.arg))]
                self.pop(straight.pops)
                self.depth += straight.pushes
            else:
                self.out = []
                decode_one = handlers.get(item.op)
                if decode_one is None:
                    raise Unsupported(f"opcode {item.op}", break_id=BREAK_ID)
                falls_through = decode_one(self, item) is not False
                emitted[index] = self.out
                if not falls_through:
                    return
            index += 1
            state = _make_state((self.depth, self.nulls))

    def operand(self, straight: Straight, arg: int) -> str | None:
        if straight.names == "":
            return None
        return self.slots[arg] if straight.names == "slots" else self.code.co_names[arg]

    def enter_handler(self, entry: RawException) -> None:
        nulls = self.nulls & ((1 << entry.depth) - 1)
        self.work.append((entry.target, State(entry.depth + entry.lasti + 1, nulls)))

    # -- putting it together

    def link(self, start: int) -> CanonicalCode:
        raw = self.raw
        flat: list[tuple[str, Any, Loc]] = []
        begins = [0] * (len(raw) + 1)
        pads: dict[int, int] = {}
        for i, ops in enumerate(self.emitted):
            if i in self.send_targets:
                if flat and flat[-1][0] not in ("JUMP", "JUMP_NO_INTERRUPT"):
                    raise Unsupported("unusual layout around SEND", break_id=BREAK_ID)
                pads[i] = len(flat)
                flat.append(("END_SEND", None, self.send_targets[i]))
            begins[i] = len(flat)
            if ops is not None:
                for op, arg in ops:
                    flat.append((op, arg, raw[i].loc))
        begins[len(raw)] = len(flat)
        instructions = []
        for index, (op, arg, loc) in enumerate(flat):
            if type(arg) is Target:
                arg = pads[arg.raw] if op == "SEND" and pads else begins[arg.raw]
            instructions.append(make_instr((op, arg, loc, index)))
        exceptions = self.link_exceptions(begins)
        code = self.code
        return CanonicalCode(
            instructions=tuple(instructions),
            exceptions=exceptions,
            argcount=code.co_argcount,
            posonlyargcount=code.co_posonlyargcount,
            kwonlyargcount=code.co_kwonlyargcount,
            flags=code.co_flags,
            varnames=code.co_varnames,
            cellvars=code.co_cellvars,
            freevars=code.co_freevars,
            name=code.co_name,
            qualname=code.co_qualname,
            filename=code.co_filename,
            firstlineno=code.co_firstlineno,
            doc=code.co_consts[0] if code.co_consts else None,
        )

    def link_exceptions(self, begins: list[int]) -> tuple[ExceptionRange, ...]:
        out: list[ExceptionRange] = []
        for entry in self.protected_runs():
            start, end = begins[entry.start], begins[entry.end]
            if start == end:
                continue
            reached = [s for s in self.states[entry.start : entry.end] if s is not None]
            below = {s.nulls & ((1 << entry.depth) - 1) for s in reached}
            if len(below) != 1:
                raise Unsupported("stack layouts disagree inside a try range", break_id=BREAK_ID)
            depth = entry.depth - below.pop().bit_count()
            found = ExceptionRange(start, end, begins[entry.target], depth, entry.lasti)
            last = out[-1] if out else None
            if last is not None and last.end == start and last[2:] == found[2:]:
                out[-1] = last._replace(end=end)
            else:
                out.append(found)
        return tuple(out)

    def protected_runs(self) -> list[RawException]:
        """The raw exception table, widened to the jumps and negations that take over a truth test (3.13).

        There ``TO_BOOL`` may raise and the jump after it may not, so a range can end between the two.
        """
        widened = []
        for entry in self.raw_exceptions:
            end = entry.end
            follows = end < len(self.raw) and self.raw[end].op in TESTS_TRUTH
            if follows and self.raw[end - 1].op in ("TO_BOOL", "COMPARE_OP"):
                entry = entry._replace(end=end + 1)
            widened.append(entry)
        for entry, after in zip(widened, widened[1:]):
            if entry.end > after.start:
                raise Unsupported("a truth test under another handler than its jump", break_id=BREAK_ID)
        return widened


class Target(NamedTuple):
    """A jump target while decoding: an index into the raw instructions."""

    raw: int


class Straight(NamedTuple):
    """A raw opcode that is the canonical op of its name, whatever the stack holds: how many values it takes
    and gives, and which names its operand counts ("slots", "names", or "" for no operand)."""

    pops: int
    pushes: int
    names: str


STRAIGHT: dict[str, Straight] = {}
"""Opcodes that need no handler."""


def is_straight(names: str, *ops: str) -> None:
    """Register opcodes of a fixed stack effect."""
    for op in ops:
        STRAIGHT[op] = Straight(*pops_pushes(op, None), names)


Handler = Callable[[Decoder, RawInstr], bool | None]
HANDLERS: dict[str, Handler] = {}
"""Raw opcode to its handler; a handler returns False where control does not fall through."""


def on(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for raw opcodes."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register
