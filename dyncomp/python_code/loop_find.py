"""Natural loops of canonical code.

Dominators: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), over basic blocks with
exception edges.
"""

from __future__ import annotations

from dyncomp.dataclass import dataclass
from dyncomp.python_code.flow import Flow, stack_depths, successors
from dyncomp.python_code.instr import JUMPS, NO_FALLTHROUGH, SUSPENDS, CanonicalCode, Instr


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A natural loop: every way into ``body`` goes through ``header``, and from all of it leads a way back.

    ``header`` is the FOR_ITER of a "for" loop; of a "while" loop the first instruction of what repeats.
    ``depth`` is the stack depth before the header (a for loop's iterator counted). ``exits`` are the places
    outside ``body`` that follow an instruction in it. ``stored`` and ``read`` name the fast locals that
    ``body`` assigns or deletes, and reads. ``in_try``: an exception handler of the same function covers the
    header. ``suspends``: the loop contains a yield or await. ``level`` is 0 for loops in no other loop.

    CPython has a while loop's condition at two places, so a ``while`` with ``continue`` is two natural
    loops: they are merged here. ``header`` is that of the inner one; ``body`` then also holds the other
    copy of the condition, through which the loop is entered.
    """

    header: int
    body: frozenset[int]
    exits: tuple[int, ...]
    depth: int
    kind: str
    stored: frozenset[str]
    read: frozenset[str]
    in_try: bool
    suspends: bool
    level: int


class _Blocks:
    """Basic blocks with successor lists, exception edges included."""

    def __init__(self, code: CanonicalCode, flow: Flow, depths: list[int]) -> None:
        self.code = code
        self.flow = flow
        leaders = {0}
        previous = None
        for instr in code.instructions:
            handler = flow.handlers[instr.index]
            if handler != previous:
                leaders.add(instr.index)
                previous = handler
            if handler is not None:
                leaders.add(handler.target)
            if instr.op in JUMPS:
                leaders.add(instr.arg)
            if instr.op in JUMPS or instr.op in NO_FALLTHROUGH:
                leaders.add(instr.index + 1)
        self.starts = sorted(k for k in leaders if k < len(code.instructions) and depths[k] >= 0)
        self.number = {start: n for n, start in enumerate(self.starts)}
        self.ends: list[int] = []
        self.successors: list[list[int]] = []
        self._connect(depths)

    def _connect(self, depths: list[int]) -> None:
        instructions = self.code.instructions
        for n, start in enumerate(self.starts):
            limit = self.starts[n + 1] if n + 1 < len(self.starts) else len(instructions)
            end = start
            while end + 1 < limit and depths[end + 1] >= 0 and instructions[end].op not in NO_FALLTHROUGH:
                end += 1
            self.ends.append(end)
            targets = [self.number[k] for k in successors(instructions[end])]
            handler = self.flow.handlers[start]
            if handler is not None:
                targets.append(self.number[handler.target])
            self.successors.append(targets)

    def _instructions(self, block: int) -> tuple[Instr, ...]:
        return self.code.instructions[self.starts[block] : self.ends[block] + 1]

    def first_real(self, block: int) -> Instr | None:
        return next((i for i in self._instructions(block) if i.op not in ("NOP", "JUMP")), None)

    def is_for(self, block: int) -> bool:
        return self.code.instructions[self.starts[block]].op == "FOR_ITER"

    def repeats(self, block: int, wanted: Instr) -> bool:
        """Whether ``block`` has a copy of ``wanted``: same op, argument and source position."""
        return any(
            instr.op == wanted.op and instr.loc == wanted.loc and instr.arg == wanted.arg
            for instr in self._instructions(block)
        )

    def reverse_postorder(self) -> list[int]:
        order: list[int] = []
        seen = [False] * len(self.starts)
        seen[0] = True
        stack = [(0, iter(self.successors[0]))]
        while stack:
            block, targets = stack[-1]
            for target in targets:
                if not seen[target]:
                    seen[target] = True
                    stack.append((target, iter(self.successors[target])))
                    break
            else:
                order.append(block)
                stack.pop()
        order.reverse()
        return order

    def predecessors(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.starts]
        for block, targets in enumerate(self.successors):
            for target in targets:
                found[target].append(block)
        return found


def _immediate_dominators(order: list[int], predecessors: list[list[int]]) -> dict[int, int]:
    position = {block: k for k, block in enumerate(order)}
    dominator = {order[0]: order[0]}

    def meet(a: int, b: int) -> int:
        while a != b:
            while position[a] > position[b]:
                a = dominator[a]
            while position[b] > position[a]:
                b = dominator[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [p for p in predecessors[block] if p in dominator]
            found = known[0]
            for other in known[1:]:
                found = meet(found, other)
            if dominator.get(block) != found:
                dominator[block] = found
                changed = True
    return dominator


def _dominates(dominator: dict[int, int], a: int, b: int) -> bool:
    while b != a:
        above = dominator[b]
        if above == b:
            return False
        b = above
    return True


def find_loops(code: CanonicalCode) -> list[Loop]:
    """The natural loops of ``code``, outer before inner ones. Loops that share a header are one."""
    if not any(i.op in JUMPS and i.arg <= i.index for i in code.instructions):
        return []
    flow = Flow.of(code)
    depths = stack_depths(code)
    blocks = _Blocks(code, flow, depths)
    order = blocks.reverse_postorder()
    predecessors = blocks.predecessors()
    dominator = _immediate_dominators(order, predecessors)
    bodies: dict[int, set[int]] = {}
    for block in order:
        for target in blocks.successors[block]:
            if _dominates(dominator, target, block):
                body = bodies.setdefault(target, {target})
                _add_backward(body, block, predecessors)
    _merge_retests(blocks, bodies)
    loops = []
    for header, body in bodies.items():
        level = sum(header in other for start, other in bodies.items() if start != header)
        loops.append(_loop(blocks, flow, depths, header, body, level))
    return sorted(loops, key=lambda loop: (loop.level, loop.header))


def _merge_retests(blocks: _Blocks, bodies: dict[int, set[int]]) -> None:
    for header in sorted(bodies, key=lambda start: len(bodies[start])):
        inner = _retested(blocks, header, bodies)
        if inner >= 0:
            bodies[inner] |= bodies.pop(header)


def _retested(blocks: _Blocks, header: int, bodies: dict[int, set[int]]) -> int:
    """The block of the inner while loop if ``header`` only starts another copy of its condition, else -1.

    The copies have the same source positions; of ``while True`` nothing is left but a NOP.
    """
    first = blocks.first_real(header)
    if first is not None and first.op == "FOR_ITER":
        return -1
    for inner, members in bodies.items():
        if inner == header or inner not in bodies[header] or header in members or blocks.is_for(inner):
            continue
        if first is None:
            if blocks.successors[header] == [inner]:
                return inner
        elif any(blocks.repeats(block, first) for block in members):
            return inner
    return -1


def _add_backward(body: set[int], block: int, predecessors: list[list[int]]) -> None:
    work = [block]
    while work:
        found = work.pop()
        if found not in body:
            body.add(found)
            work.extend(predecessors[found])


def _loop(blocks: _Blocks, flow: Flow, depths: list[int], header: int, members: set[int], level: int) -> Loop:
    instructions = flow.code.instructions
    body = {index for block in members for index in range(blocks.starts[block], blocks.ends[block] + 1)}
    exits = {after for index in body for after in successors(instructions[index]) if after not in body}
    inside = [instructions[index] for index in body]
    stored = {i.arg for i in inside if i.op in ("STORE_FAST", "DELETE_FAST") and i.arg in flow.bit}
    read = {i.arg for i in inside if i.op == "LOAD_FAST" and i.arg in flow.bit}
    start = blocks.starts[header]
    kind = "for" if instructions[start].op == "FOR_ITER" else "while"
    return Loop(
        header=start,
        body=frozenset(body),
        exits=tuple(sorted(exits)),
        depth=depths[start],
        kind=kind,
        stored=frozenset(stored),
        read=frozenset(read),
        in_try=flow.handlers[start] is not None,
        suspends=any(i.op in SUSPENDS for i in inside),
        level=level,
    )
