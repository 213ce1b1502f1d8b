"""Loops with gates: plain code that may leave its loops to compiled code, and takes over from it anywhere.

A *gate* stands before the header of a loop. While its ticks last (see ``_hook.Ticks``) control goes on into
the loop; then the gate's ``entry`` is asked where to go on, with the loop's iterator (of a ``for`` loop) and
the values of the locals ``names``:

* ``(None, None, ())``: into the loop, nothing was done,
* ``(way, raised, payload)``: at ``places[way]``. The payload holds the locals ``changed`` and then what is on
  the stack there above what the loop found on it, the top first. ``raised``: what is to be raised there, if
  anything (by signal handlers).

It is asked by a subscript: behind a call CPython may run signal handlers, and the outcome would be lost.

A local that is not assigned, or whose value the loop does not read before it assigns it, is given as
:data:`UNBOUND`; one that comes back as :data:`UNBOUND` stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dyncomp.dataclass import dataclass
from dyncomp.errors import Unsupported
from dyncomp.python_code.cells import unsure_cells
from dyncomp.python_code.edit import Assembly, Catch, Label, places_and_catches
from dyncomp.python_code.flow import Flow, handling, reached, remembered, stack_depths, successors
from dyncomp.python_code.instr import CanonicalCode, Instr
from dyncomp.python_code.loop_find import Loop, find_loops
from dyncomp.python_code.loops import UNBOUND
from dyncomp.python_code.resume import (
    NO_VALUE,
    Continuation,
    ResumeTarget,
    argument_names,
    argument_order,
    check_plain,
    emit_exit,
    emit_prologue,
    finish_function,
    fresh_prefix,
)
from dyncomp.python_code.versions import encode

_NO_WORK = frozenset(
    {"LOAD_FAST", "LOAD_CONST", "SWAP", "COPY", "POP_TOP", "NOP", "BUILD_TUPLE", "LOAD_DEREF"}
)
_WAY = ".way"
_HELD = ".held"
_RAISED = ".raised"
# what other code may see at once; compiled code may have to stop right behind it
_EFFECTS = frozenset(
    {"STORE_SUBSCR", "STORE_ATTR", "STORE_GLOBAL", "CALL", "DELETE_SUBSCR", "STORE_FAST", "FOR_ITER"}
)
# with these in it a loop is not compiled whole
# fmt: off
_NEVER_COMPILED = frozenset((
    "DELETE_FAST", "LOAD_FAST_AND_CLEAR", "MAKE_CELL", "STORE_DEREF", "DELETE_DEREF",
    "LOAD_CLOSURE", "MAKE_FUNCTION", "LOAD_BUILD_CLASS", "IMPORT_NAME", "IMPORT_FROM",
    "BUILD_SET", "BUILD_STRING", "BUILD_CONST_KEY_MAP", "FORMAT_VALUE", "CONVERT_VALUE",
    "CALL_FUNCTION_EX", "BEFORE_WITH", "LIST_APPEND", "SET_ADD", "MAP_ADD", "STORE_ATTR", "DELETE_ATTR",
    "DELETE_SUBSCR", "DELETE_GLOBAL", "STORE_NAME", "LOAD_NAME", "UNPACK_EX", "GET_LEN",
    "MATCH_SEQUENCE", "MATCH_MAPPING", "MATCH_CLASS",
))
# fmt: on


@dataclass(frozen=True, eq=False)
class LoopFacts:
    """What a gate before ``loop`` needs to know.

    ``names`` are the locals that the loop touches and the ``cells`` that it reads (it assigns none of those;
    they may be empty), ``changed`` those that it assigns. ``read`` are
    those whose values it may read before it assigns any; of these, ``unsure`` may be unbound. ``places`` are
    the instructions at which control may come back, ``depths`` how many values are on the stack there above
    what the loop found (without its iterator).
    """

    loop: Loop
    names: tuple[str, ...]
    changed: tuple[str, ...]
    read: frozenset[str]
    unsure: frozenset[str]
    cells: frozenset[str]
    places: tuple[int, ...]
    depths: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Gate:
    """A gate before a loop: its ``facts``, the countdown and what is asked at its end."""

    facts: LoopFacts
    ticks: Any
    entry: Any


@remembered
def gateable_loops(code: CanonicalCode) -> tuple[LoopFacts, ...]:
    """The loops of ``code`` that can have gates, outer ones first."""
    if code.is_generator:
        return ()
    found = [_facts(code, loop) for loop in find_loops(code)]
    return tuple([facts for facts in found if facts is not None])


def _facts(code: CanonicalCode, loop: Loop) -> LoopFacts | None:
    instructions = code.instructions
    inside = [instructions[index] for index in sorted(loop.body)]
    if loop.suspends or handling(code)[loop.header] or any(i.op in _NEVER_COMPILED for i in inside):
        return None
    flow = Flow.of(code)
    touched = [i.arg for i in inside if i.op in ("LOAD_FAST", "STORE_FAST") and i.arg in flow.bit]
    cells = frozenset([i.arg for i in inside if i.op == "LOAD_DEREF"])
    names = (*flow.members(flow.mask(touched)), *sorted(cells))
    read = cells.union(_read_before_assigned(flow, loop))
    sure = set(flow.members(flow.assigned()[loop.header]))
    places = sorted(_places(code, loop), key=lambda at: (_depth(code, loop, at), at))
    return LoopFacts(
        loop=loop,
        names=names,
        changed=tuple(name for name in names if name in loop.stored),
        read=read,
        unsure=read.difference(sure),
        cells=cells,
        places=tuple(places),
        depths=tuple(_depth(code, loop, at) for at in places),
    )


def _read_before_assigned(flow: Flow, loop: Loop) -> tuple[str, ...]:
    """The locals that may be read in the loop before it assigns them."""
    live = dict.fromkeys(loop.body, 0)
    order = sorted(loop.body, reverse=True)
    changed = True
    while changed:
        changed = False
        for index in order:
            op, arg, _, _ = instr = flow.code.instructions[index]
            value = 0
            for after in successors(instr):
                value |= live.get(after, 0)
            if op == "LOAD_FAST":
                value |= flow.bit.get(arg, 0)
            elif op == "STORE_FAST":
                value &= ~flow.bit.get(arg, 0)
            handler = flow.handlers[index]
            if handler is not None:
                value |= live.get(handler.target, 0)
            if value != live[index]:
                live[index] = value
                changed = True
    return flow.members(live[loop.header])


def _depth(code: CanonicalCode, loop: Loop, at: int) -> int:
    return stack_depths(code)[at] - _below(loop)


def _below(loop: Loop) -> int:
    """How many values the loop found on the stack."""
    return loop.depth - (loop.kind == "for")


def _places(code: CanonicalCode, loop: Loop) -> set[int]:
    """Where compiled code may leave off: exits, between statements, and right behind effects."""
    inner = [other for other in find_loops(code) if other.kind == "for" and other.header in loop.body]
    busy, depths = handling(code), stack_depths(code)
    found = {at for at in loop.exits if depths[at] >= _below(loop) and not busy[at]}
    for index in loop.body:
        if depths[index] < 0 or busy[index]:
            continue
        iterators = sum(index in other.body for other in inner)
        if (
            depths[index] == _below(loop) + iterators
            or index > 0
            and code.instructions[index - 1].op in _EFFECTS
        ):
            found.add(index)
    return found


@remembered
def _ends_at_once(code: CanonicalCode, start: int) -> bool:
    """Whether nothing but a return of what there is follows."""
    index = start
    while code.instructions[index].op in _NO_WORK:
        index += 1
    return code.instructions[index].op == "RETURN_VALUE"


def exits_to_go_on_at(code: CanonicalCode, loop: Loop) -> dict[int, int]:
    """Where capture may go on when the loop is left, with the depth of the stack there: when its iterator is
    dropped. Where the function just returns it need not."""
    depths = stack_depths(code)
    found = {}
    for place in loop.exits:
        index = place
        for _ in code.instructions:
            instr = code.instructions[index]
            if instr.op not in ("POP_TOP", "NOP", "JUMP"):
                break
            index = instr.arg if instr.op == "JUMP" else index + 1
        is_new = index not in loop.body and depths[index] >= 0
        if is_new and not _ends_at_once(code, index):
            found[index] = depths[index]
    return found


# ---------------------------------------------------------------------------------------------------------


class _Writer:
    """Copies code with gates. ``exits``: places where a tail call goes on instead."""

    def __init__(self, code: CanonicalCode, gates: Sequence[Gate], exits: Mapping[int, ResumeTarget]) -> None:
        self.code = code
        self.gates = {gate.facts.loop.header: gate for gate in gates}
        self.exits = exits
        self.assembly = Assembly(unsure_cells(code))
        self.places, self.catches = places_and_catches(code)
        self.way = fresh_prefix(code, _WAY)
        self.held = fresh_prefix(code, _HELD)
        self.raised = fresh_prefix(code, _RAISED)
        self.temporaries = {self.way, self.raised}
        self._stubs: list[tuple[Gate, Label, Label]] = []

    def write(self, start: int) -> None:
        """Everything that can be reached from ``start``."""
        kept = reached(self.code, start, self.exits)
        depths, prefix = stack_depths(self.code), fresh_prefix(self.code, ".tail")
        for index in sorted(kept):
            instr = self.code.instructions[index]
            if index in self.exits:
                self.temporaries |= emit_exit(self.assembly, instr, self.exits, depths, prefix, self.places)
            elif index in self.gates:
                self._gate(self.gates[index], instr)
            else:
                self.assembly.emit_copy(instr, self.places, self.catches)
        for gate, stub, header in self._stubs:
            self._stub(gate, stub, header, kept)
        self.assembly.mark(self.places[-1])

    def _at(self, instr: Instr) -> Assembly:
        self.assembly.loc = instr.loc
        self.assembly.catch = self.catches[instr.index]
        return self.assembly

    def _gate(self, gate: Gate, instr: Instr) -> None:
        stub, header = Label(), Label()
        assembly = self._at(instr)
        gate_label = self.places[instr.index]
        assembly.mark(gate_label)
        assembly.emit("LOAD_CONST", gate.ticks)
        assembly.emit("FOR_ITER", stub)
        assembly.emit("POP_TOP")
        assembly.emit("POP_TOP")
        self.places[instr.index] = header
        assembly.emit_copy(instr, self.places, self.catches)
        self.places[instr.index] = gate_label
        self._stubs.append((gate, stub, header))

    def _stub(self, gate: Gate, stub: Label, header: Label, kept: Collection[int]) -> None:
        facts = gate.facts
        instr = self.code.instructions[facts.loop.header]
        is_for = facts.loop.kind == "for"
        self._hold_unsure(facts, stub, instr)
        assembly = self._at(instr)
        assembly.emit("LOAD_CONST", gate.entry)
        if is_for:
            assembly.emit("COPY", 2)
        for name in facts.names:
            self._emit_given(facts, name)
        assembly.emit("BUILD_TUPLE", is_for + len(facts.names))
        assembly.emit("BINARY_SUBSCR")
        assembly.emit("UNPACK_SEQUENCE", 3)
        assembly.emit("STORE_FAST", self.way)
        assembly.emit("STORE_FAST", self.raised)
        on_the_way = Label()
        assembly.emit("LOAD_FAST", self.way)
        assembly.emit("POP_JUMP_IF_NOT_NONE", on_the_way)
        assembly.emit("POP_TOP")
        assembly.emit("JUMP", header)
        assembly.mark(on_the_way)
        if is_for:
            assembly.emit("SWAP", 2)
            assembly.emit("POP_TOP")
        groups = [
            (way, depth)
            for way, depth in enumerate(facts.depths)
            if way == 0 or facts.depths[way - 1] != depth
        ]
        ends = [way for way, _ in groups[1:]] + [len(facts.places)]
        self._choose(
            [
                (way, lambda w=way, d=depth, e=end: self._group(facts, w, e, d, kept))  # type: ignore[misc]
                for (way, depth), end in zip(groups, ends)
            ]
        )

    def _hold_unsure(self, facts: LoopFacts, stub: Label, instr: Instr) -> None:
        """Put the locals that may be unbound, or the mark, into variables of their own."""
        assembly = self._at(instr)
        around = assembly.catch
        assembly.mark(stub)
        if facts.unsure:
            assembly.emit("NOP")
        for name in sorted(facts.unsure):
            missing, done = Label(), Label()
            assembly.catch = Catch(missing, facts.loop.depth, False)
            assembly.emit("LOAD_DEREF" if name in facts.cells else "LOAD_FAST", name)
            assembly.catch = around
            assembly.emit("JUMP", done)
            assembly.mark(missing)
            assembly.emit("POP_TOP")
            assembly.emit("LOAD_CONST", UNBOUND)
            assembly.mark(done)
            assembly.emit("STORE_FAST", self._held_name(name))

    def _held_name(self, name: str) -> str:
        held = f"{self.held}.{name}"
        self.temporaries.add(held)
        return held

    def _emit_given(self, facts: LoopFacts, name: str) -> None:
        if name not in facts.read:
            self.assembly.emit("LOAD_CONST", UNBOUND)
        elif name in facts.unsure:
            self.assembly.emit("LOAD_FAST", self._held_name(name))
            self.assembly.emit("DELETE_FAST", self._held_name(name))
        else:
            self.assembly.emit("LOAD_FAST", name)

    def _choose(self, cases: Sequence[tuple[int, Callable[[], None]]]) -> None:
        """Binary search for the case with the highest number that is not above the way."""
        assembly = self.assembly
        if len(cases) == 1:
            cases[0][1]()
            return
        middle = len(cases) // 2
        high = Label()
        assembly.emit("LOAD_FAST", self.way)
        assembly.emit("LOAD_CONST", cases[middle][0])
        assembly.emit("COMPARE_OP", ">=")
        assembly.emit("POP_JUMP_IF_TRUE", high)
        self._choose(cases[:middle])
        assembly.mark(high)
        self._choose(cases[middle:])

    def _group(self, facts: LoopFacts, start: int, end: int, depth: int, kept: Collection[int]) -> None:
        """Put back locals and stack for the ways from ``start`` on, and go there."""
        assembly = self.assembly
        count = len(facts.changed) + depth
        if count:
            assembly.emit("UNPACK_SEQUENCE", count)
        else:
            assembly.emit("POP_TOP")
        for name in facts.changed:
            if name in facts.read and name not in facts.unsure:
                assembly.emit("STORE_FAST", name)
                continue
            skip = Label()
            held = self._held_name(name)
            assembly.emit("STORE_FAST", held)
            assembly.emit("LOAD_FAST", held)
            assembly.emit("LOAD_CONST", UNBOUND)
            assembly.emit("IS_OP", False)
            assembly.emit("POP_JUMP_IF_TRUE", skip)
            assembly.emit("LOAD_FAST", held)
            assembly.emit("STORE_FAST", name)
            assembly.mark(skip)
            assembly.emit("DELETE_FAST", held)
        self._raise_if_wanted()
        ways = [way for way in range(start, end) if facts.places[way] in kept]
        self._choose([(way, lambda w=way: self._go(facts.places[w])) for way in ways])  # type: ignore[misc]

    def _raise_if_wanted(self) -> None:
        go_on = Label()
        self.assembly.emit("LOAD_FAST", self.raised)
        self.assembly.emit("POP_JUMP_IF_NONE", go_on)
        self.assembly.emit("LOAD_FAST", self.raised)
        self.assembly.emit("DELETE_FAST", self.raised)
        self.assembly.emit("RAISE_VARARGS", 1)
        self.assembly.mark(go_on)

    def _go(self, place: int) -> None:
        self.assembly.emit("JUMP", self.places[place])


def gated_continuation(
    code: CanonicalCode,
    at: int,
    gates: Sequence[Gate],
    *,
    stack_depth: int,
    bound: Collection[str],
    unbound_slots: Collection[int] = (),
    exits: Mapping[int, ResumeTarget] | None = None,
) -> Continuation:
    """As :func:`resume.make_continuation`, with gates; at a key of ``exits`` a tail call goes on."""
    check_plain(code)
    if code.instructions[at].op == "MAKE_CELL":
        raise Unsupported("a break where a comprehension's cell is missing", break_id="resume")
    given = argument_order(code, stack_depth, bound, unbound_slots, {})
    writer = _Writer(code, gates, exits or {})
    emit_prologue(writer.assembly, code, at, writer.places, stack_depth, given, {})
    writer.write(at)
    if unbound_slots:
        writer.temporaries.add(NO_VALUE)
    made = finish_function(writer.assembly, code, argument_names(code, given), writer.temporaries)
    return Continuation(encode(made), made, at, given, made.freevars, code.cellvars)


def gated_function(code: CanonicalCode, gates: Sequence[Gate]) -> CanonicalCode:
    """The whole of ``code``, with gates."""
    writer = _Writer(code, gates, {})
    writer.write(0)
    varnames = tuple(dict.fromkeys((*code.varnames, *sorted(writer.temporaries))))
    return writer.assembly.finish(code, varnames=varnames)
