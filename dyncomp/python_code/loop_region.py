"""What belongs to one iteration of a loop: its natural loop, and code that must run before one can leave it.

An iteration is walked with an abstract stack: slots below the loop hold their own number ("outer" slots), the
rest is -1. The loop can be left where the stack holds nothing but a prefix of the outer slots; until then
code outside the natural loop (handlers that raise again, a return that first drops the iterator) is absorbed.
"""

from __future__ import annotations

from dyncomp.errors import Unsupported
from dyncomp.python_code.flow import Flow, predecessors, successors
from dyncomp.python_code.instr import JUMPS, NEVER_RAISES, CanonicalCode, Instr, pops_pushes
from dyncomp.python_code.loop_find import Loop

BREAK_ID = "loop-body"
HEADER = 0
"""The code of going back to the header."""

_LONGEST_ABSORBED = 12
"""A straight line of at most this many instructions to a return or raise is part of the iteration."""

_REACHES_DOWN = frozenset(
    {"LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"}
)
_CANNOT_RAISE = NEVER_RAISES | {"JUMP"}
_VALUE = -1
Stack = tuple[int, ...]
Edge = tuple[int, int]


class Region:
    """The instructions of one iteration and the ways out of it.

    ``nodes`` are canonical indices, ``entry`` the first to run. ``exits`` maps k >= 1 to a target, ``pops`` k
    to how many outer values were taken off by then. ``read_slots``: outer stack slots whose values are used.
    """

    def __init__(self, code: CanonicalCode, loop: Loop) -> None:
        self.code = code
        self.loop = loop
        self.flow = Flow.of(code)
        self.entry = loop.header + 1 if loop.kind == "for" else loop.header
        self.nodes: dict[int, Stack] = {}
        self.exits: dict[int, int] = {}
        self.pops: dict[int, int] = {}
        self.read_slots: set[int] = set()
        self._edges: dict[Edge, int] = {}
        self._exit_stacks: dict[int, Stack] = {}
        self._outer_handlers = self._chain()
        self._before = predecessors(code)
        self._absorbable: dict[int, bool] = {}
        self._forgetting: set[int] = set()

    def code_of(self, edge: Edge) -> int | None:
        """0 for an edge to the header, k for one that leaves the loop, None inside."""
        return self._edges.get(edge)

    def is_outer(self, index: int) -> bool:
        """Whether exceptions of ``index`` go to a handler around the loop, or to none at all."""
        handler = self.flow.handlers[index]
        return handler is None or handler.target in self._outer_handlers

    def _chain(self) -> set[int]:
        """Targets of the handlers around the loop."""
        targets: set[int] = set()
        handler = self.flow.handlers[self.loop.header]
        while handler is not None and handler.target not in targets:
            targets.add(handler.target)
            handler = self.flow.handlers[handler.target]
        return targets

    def walk(self) -> None:
        outer = tuple(range(self.loop.depth))
        first = (*outer, _VALUE) if self.loop.kind == "for" else outer
        work: list[tuple[int, Stack]] = [(self.entry, first)]
        while work:
            index, stack = work.pop()
            seen = self.nodes.get(index)
            if seen is not None:
                if seen != stack:
                    raise Unsupported("the stack differs where a loop's paths join", break_id=BREAK_ID)
                continue
            self._check_handler(index)
            self.nodes[index] = stack
            self._follow(index, stack, work)
        self._number_exits()

    def _follow(self, index: int, stack: Stack, work: list[tuple[int, Stack]]) -> None:
        instr = self.code.instructions[index]
        if not self.is_outer(index):
            handler = self.flow.handlers[index]
            assert handler is not None
            kept = (*stack[: handler.depth], *([_VALUE] * (handler.lasti + 1)))
            work.append((handler.target, kept))
        for after in successors(instr):
            jump = instr.op in JUMPS and after == instr.arg
            left = self._apply(instr, stack, jump)
            if self._goes_on(index, after, left):
                work.append((after, left))

    def _goes_on(self, index: int, after: int, stack: Stack) -> bool:
        """Whether the edge stays in the iteration; records edges that do not."""
        outer = tuple(range(self.loop.depth))
        if after == self.loop.header:
            if stack != outer:
                raise Unsupported("a loop that changes the stack below it", break_id=BREAK_ID)
            self._edges[index, after] = HEADER
            return False
        if after in self.loop.body or after in self.nodes:
            return True
        if after in self._forgetting or self._forgets(index, after):
            return True
        if stack != outer[: len(stack)] or self._is_short_end(after):
            return True
        known = self._exit_stacks.setdefault(after, stack)
        if known != stack:
            raise Unsupported("the stack differs where a loop is left", break_id=BREAK_ID)
        self._edges[index, after] = after
        return False

    def _number_exits(self) -> None:
        targets = sorted(self._exit_stacks)
        if any(target in self.nodes for target in targets):
            raise Unsupported("code that is both in a loop and after it", break_id=BREAK_ID)
        number = {target: k for k, target in enumerate(targets, 1)}
        self._edges = {edge: number[k] if k else HEADER for edge, k in self._edges.items()}
        for target, k in number.items():
            self.exits[k], self.pops[k] = target, self.loop.depth - len(self._exit_stacks[target])
            if (
                self.loop.kind == "for"
                and not self.pops[k]
                and self.code.instructions[target].op == "POP_TOP"
            ):
                # the iterator, which goes as soon as the loop is left
                self.exits[k], self.pops[k] = target + 1, 1

    def _check_handler(self, index: int) -> None:
        """Absorbed code must have the loop's own handler or one inside the loop."""
        handler = self.flow.handlers[index]
        around = self.flow.handlers[self.loop.header]
        if not self._same_protection(index):
            what = "none" if handler is None else f"the one at {handler.target}"
            wanted = "none" if around is None else f"the one at {around.target}"
            raise Unsupported(
                f"leaving the loop runs code under another handler ({what}, not {wanted})", break_id=BREAK_ID
            )

    def _same_protection(self, index: int) -> bool:
        if not self.is_outer(index) or self.code.instructions[index].op in _CANNOT_RAISE:
            return True
        handler, around = self.flow.handlers[index], self.flow.handlers[self.loop.header]
        return (handler and handler.target) == (around and around.target)

    def _forgets(self, index: int, start: int) -> bool:
        """Whether ``start``, entered only from ``index``, begins the end of an ``except … as name``: the
        iteration's own frame, which the exception's traceback holds, lets go of the exception."""
        places = (start, start + 1, start + 2)
        instructions = self.code.instructions[start : start + 3]
        if tuple(i.op for i in instructions) != ("LOAD_CONST", "STORE_FAST", "DELETE_FAST"):
            return False
        load, store, delete = instructions
        if load.arg is not None or store.arg != delete.arg:
            return False
        origins = [self._before[place] for place in places]
        if origins != [[index], [start], [start + 1]] or not self._same_protection(start + 2):
            return False
        self._forgetting.update(places)
        return True

    def _is_short_end(self, start: int) -> bool:
        """Whether a short straight line from ``start``, entered only from the loop, ends the function."""
        if start not in self._absorbable:
            self._absorbable[start] = self._find_short_end(start)
        return self._absorbable[start]

    def _find_short_end(self, start: int) -> bool:
        inside = self.loop.body - {self.loop.header} if self.loop.kind == "for" else self.loop.body
        came_from = set(inside)
        for index in range(start, start + _LONGEST_ABSORBED):
            if not came_from.issuperset(self._before[index]) or not self._same_protection(index):
                return False
            op = self.code.instructions[index].op
            if op in ("RETURN_VALUE", "RAISE_VARARGS"):
                return True
            if op in JUMPS or op == "RERAISE":
                return False
            came_from = {index}
        return False

    def _apply(self, instr: Instr, stack: Stack, jump: bool) -> Stack:
        """The abstract stack after ``instr``; notes the outer slots it uses."""
        op, arg = instr.op, instr.arg
        if op == "SWAP":
            changed = list(stack)
            changed[-1], changed[-arg] = changed[-arg], changed[-1]
            return tuple(changed)
        if op == "COPY":
            self._read(stack[-arg])
            return (*stack, stack[-arg])
        if op == "POP_TOP":
            return stack[:-1]
        pops, pushes = pops_pushes(op, arg, jump)
        below = stack[: len(stack) - pops]
        for slot in stack[len(stack) - pops :]:
            self._read(slot)
        if op in _REACHES_DOWN:
            self._read(below[-arg])
        if op == "DICT_MERGE":
            self._read(below[-arg - 2])
        return (*below, *([_VALUE] * pushes))

    def _read(self, slot: int) -> None:
        if slot != _VALUE:
            self.read_slots.add(slot)


def find_region(code: CanonicalCode, loop: Loop) -> Region:
    """One iteration of ``loop``. Raises Unsupported when it cannot be separated from the code around it."""
    region = Region(code, loop)
    region.walk()
    return region
