"""Control-flow and data-flow facts of canonical code.

Sets of fast locals are ints: bit ``k`` is local ``Flow.names[k]``. Cells are not fast locals: names in
``cellvars`` or ``freevars`` never appear in these sets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeVar

from dyncomp.dataclass import dataclass
from dyncomp.errors import VerifyError
from dyncomp.python_code.instr import (
    CONDITIONAL_JUMPS,
    FIXED_EFFECTS,
    JUMPS,
    NO_FALLTHROUGH,
    CanonicalCode,
    ExceptionRange,
    Instr,
    pops_pushes,
)

_LOADS_NAME = ("LOAD_GLOBAL", "LOAD_NAME")
_INTROSPECTING = frozenset({"locals", "vars", "dir", "eval", "exec", "sys", "inspect", "_getframe"})


Facts = TypeVar("Facts")


def remembered(analysis: Callable[..., Facts]) -> Callable[..., Facts]:
    """An analysis of a code object that is made once per code object and further arguments, and shared: what
    it gives is not to be changed."""

    @functools.wraps(analysis)
    def remembering(code: CanonicalCode, *args: object) -> Facts:
        key = (analysis, *args)
        found = code.known.get(key)
        if found is None:
            found = code.known[key] = analysis(code, *args)
        return found

    return remembering


def successors(instr: Instr) -> tuple[int, ...]:
    """Where control may go after ``instr`` without an exception: fallthrough, then target."""
    op = instr.op
    if op in CONDITIONAL_JUMPS:
        return (instr.index + 1, instr.arg)
    if op in NO_FALLTHROUGH:
        return (instr.arg,) if op in JUMPS else ()
    return (instr.index + 1,)


@remembered
def always_raises(code: CanonicalCode, start: int) -> bool:
    """Whether control that comes to ``start`` goes forward to a ``raise`` that no handler covers, whichever
    way it takes."""
    handlers = handlers_of(code)
    work, seen = [start], {start}
    while work:
        index = work.pop()
        instr = code.instructions[index]
        if instr.op == "RAISE_VARARGS":
            if program_handler(code, handlers, index) is not None:
                return False
            continue
        onward = successors(instr)
        if not onward or instr.op in _WAITS or any(after <= index for after in onward):
            return False
        work += [after for after in onward if after not in seen]
        seen.update(onward)
    return True


_WAITS = frozenset({"YIELD_VALUE", "SEND", "FOR_ITER", "BEFORE_WITH"})


@remembered
def handlers_of(code: CanonicalCode) -> list[ExceptionRange | None]:
    """For every instruction the range that handles its exceptions, or None."""
    lookup: list[ExceptionRange | None] = [None] * len(code.instructions)
    for entry in code.exceptions:
        for i in range(entry.start, entry.end):
            lookup[i] = entry
    return lookup


def program_handler(
    code: CanonicalCode, handlers: Sequence[ExceptionRange | None], index: int
) -> ExceptionRange | None:
    """The handler of the program's own that covers instruction ``index``: not those of 3.12 and later which
    pass exceptions on to ``yield from``, turn StopIteration into RuntimeError, and restore the variables that
    an inlined comprehension hides."""
    handler = handlers[index]
    while handler is not None:
        first = code.instructions[handler.target]
        if first.op == "CALL_INTRINSIC_1" and first.arg == "STOPITERATION_ERROR":
            return None
        passed_on = first.index if first.op == "CLEANUP_THROW" else _restores_variables(code, first.index)
        if passed_on is None:
            break
        handler = handlers[passed_on]
    return handler


def _restores_variables(code: CanonicalCode, target: int) -> int | None:
    """The RERAISE that ends a handler which only puts variables back, ``None`` for any other handler."""
    index = target
    while code.instructions[index].op in ("SWAP", "POP_TOP", "STORE_FAST", "NOP"):
        index += 1
    return index if index > target and code.instructions[index].op == "RERAISE" else None


@remembered
def stack_depths(code: CanonicalCode, depth: int = 0) -> list[int]:
    """Stack depth before every instruction; -1 where control cannot come.

    Raises VerifyError when two paths disagree, when the stack underflows, or when control runs off the end.
    """
    instructions = code.instructions
    depths = [-1] * len(instructions)
    handlers = handlers_of(code)
    work = [(0, depth)]
    while work:
        index, depth = work.pop()
        while True:
            if index >= len(instructions):
                raise VerifyError(f"{code.qualname}: control runs off the end of the code")
            if depths[index] >= 0:
                if depths[index] != depth:
                    raise VerifyError(f"{code.qualname}: stack depth {depths[index]} or {depth} at {index}")
                break
            depths[index] = depth
            op, arg, _, _ = instructions[index]
            handler = handlers[index]
            if handler is not None:
                if depth < handler.depth:
                    raise VerifyError(f"{code.qualname}: handler of {index} wants {handler.depth} values")
                work.append((handler.target, handler.depth + handler.lasti + 1))
            if op in CONDITIONAL_JUMPS:
                pops, pushes = pops_pushes(op, arg, True)
                work.append((arg, depth - pops + pushes))
            pops, pushes = FIXED_EFFECTS.get(op) or pops_pushes(op, arg)
            if depth < pops:
                raise VerifyError(f"{code.qualname}: {op} at {index} wants {pops} values, has {depth}")
            depth += pushes - pops
            if op in NO_FALLTHROUGH:
                if op in JUMPS:
                    work.append((arg, depth))
                break
            index += 1
    return depths


@remembered
def handling(code: CanonicalCode) -> list[bool]:
    """For every instruction whether the frame is handling an exception there, as ``sys.exc_info()`` tells."""
    instructions, handlers = code.instructions, handlers_of(code)
    count = [-1] * len(instructions)
    work = [(0, 0)]
    while work:
        index, now = work.pop()
        if count[index] >= 0:
            continue
        count[index] = now
        handler = handlers[index]
        if handler is not None:
            work.append((handler.target, now))
        op = instructions[index].op
        after = now + (op == "PUSH_EXC_INFO") - (op == "POP_EXCEPT")
        work.extend((target, after) for target in successors(instructions[index]))
    return [found > 0 for found in count]


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Names, bits and handlers of one code object, shared by the analyses below."""

    code: CanonicalCode
    names: tuple[str, ...]
    bit: dict[str, int]
    handlers: list[ExceptionRange | None]

    @staticmethod
    def of(code: CanonicalCode) -> Flow:
        return flow_of(code)

    @staticmethod
    def make(code: CanonicalCode) -> Flow:
        boxed = frozenset(code.cellvars + code.freevars)
        names = tuple(name for name in code.varnames if name not in boxed)
        bit = {name: 1 << k for k, name in enumerate(names)}
        return Flow(code, names, bit, handlers_of(code))

    def mask(self, names: Iterable[str]) -> int:
        """The set of ``names``; cells and unknown names are left out."""
        total = 0
        for name in names:
            total |= self.bit.get(name, 0)
        return total

    def members(self, mask: int) -> tuple[str, ...]:
        """The names in ``mask``, in ``varnames`` order."""
        return tuple(name for k, name in enumerate(self.names) if (mask >> k) & 1)

    def entry_mask(self) -> int:
        """The locals that are bound when the function starts: its arguments."""
        return self.mask(self.code.arg_names)

    def assigned(self, entry: int | None = None, start: int = 0) -> list[int]:
        """Locals surely bound before every instruction, given those bound at the start (default: arguments).

        Forward analysis from instruction ``start``, meet = intersection. Instructions that cannot be reached
        from there report every local.
        """
        return _forward(self.code, self.entry_mask() if entry is None else entry, start, False)

    def maybe_assigned(self, entry: int | None = None, start: int = 0) -> list[int]:
        """Locals that may be bound before every instruction (union over paths)."""
        return _forward(self.code, self.entry_mask() if entry is None else entry, start, True)

    def find_assigned(self, entry: int, start: int, union: bool) -> list[int]:
        instructions, handlers, bit = self.code.instructions, self.handlers, self.bit
        restored, shadow_of = self._shadows()
        everything = (1 << len(self.names)) - 1
        shadows = sum(shadow_of.values())
        state = [0 if union else everything | shadows] * len(instructions)
        seen = [False] * len(instructions)
        work = [(start, entry | shadows)]
        while work:
            index, value = work.pop()
            while True:
                old = state[index]
                value = old | value if union else old & value
                if seen[index] and value == old:
                    break
                seen[index] = True
                state[index] = value
                handler = handlers[index]
                if handler is not None:
                    work.append((handler.target, value))
                op, arg, _, _ = instructions[index]
                if op == "STORE_FAST":
                    value = _stored(value, bit.get(arg, 0), restored.get(index, 0), union)
                elif op == "DELETE_FAST":
                    value &= ~bit.get(arg, 0)
                elif op == "LOAD_FAST_AND_CLEAR":
                    value = _cleared(value, bit.get(arg, 0), shadow_of[index])
                elif op in JUMPS:
                    if op in CONDITIONAL_JUMPS:
                        work.append((arg, value))
                    else:
                        index = arg
                        continue
                elif op in NO_FALLTHROUGH:
                    break
                elif op == "LOAD_FAST" and not union:
                    value |= bit.get(arg, 0)  # it would have raised
                index += 1
        return [value & everything for value in state]

    def _shadows(self) -> tuple[dict[int, int], dict[int, int]]:
        """Extra bits for inlined comprehensions, which save a maybe unbound local on the stack.

        Returns (for each STORE_FAST that puts such a value back, the shadow bits it may come from; for each
        LOAD_FAST_AND_CLEAR its shadow bit, which remembers whether the local was bound).
        """
        clears = [i.index for i in self.code.instructions if i.op == "LOAD_FAST_AND_CLEAR"]
        if not clears:
            return {}, {}
        shadow_of = {index: 1 << (len(self.names) + k) for k, index in enumerate(clears)}
        states = saved_locals(self.code, self.handlers, shadow_of)
        depths = stack_depths(self.code)
        restored: dict[int, int] = {}
        for instr in self.code.instructions:
            saved = states[instr.index]
            if instr.op == "STORE_FAST" and saved:
                restored[instr.index] = saved.get(depths[instr.index] - 1, 0)
        return restored, shadow_of

    def saved_slots(self, entry: int | None = None) -> list[dict[int, bool]]:
        """For every instruction the stack slots that hold what LOAD_FAST_AND_CLEAR pushed (slot 0 = bottom).

        The flag says that the value is surely not the unbound mark.
        """
        shadow_of = self._shadows()[1]
        if not shadow_of:
            return [{} for _ in self.code.instructions]
        assigned = self.assigned(entry)
        bound = 0
        for index, shadow in shadow_of.items():
            name = self.code.instructions[index].arg
            if name not in self.bit or assigned[index] & self.bit[name]:
                bound |= shadow
        states = saved_locals(self.code, self.handlers, shadow_of)
        return [{slot: mark & ~bound == 0 for slot, mark in (state or {}).items()} for state in states]

    def live(self) -> list[int]:
        """Locals whose value may still be read at or after every instruction (backward analysis).

        What an inlined comprehension saves and puts back is live as far as it is live after that.
        """
        return _live(self.code)

    def find_live(self) -> list[int]:
        instructions, handlers, bit = self.code.instructions, self.handlers, self.bit
        restored, shadow_of = self._shadows()
        live = [0] * (len(instructions) + 1)
        changed = True
        goes_back = any(entry.target < entry.end for entry in self.code.exceptions)
        while changed:
            changed = False
            for index in range(len(instructions) - 1, -1, -1):
                op, arg, _, _ = instructions[index]
                if op in JUMPS:
                    goes_back = goes_back or arg <= index
                    value = live[arg]
                    if op in CONDITIONAL_JUMPS:
                        value |= live[index + 1]
                elif op in NO_FALLTHROUGH:
                    value = 0
                else:
                    value = live[index + 1]
                    if op == "LOAD_FAST" or op == "DELETE_FAST":
                        value |= bit.get(arg, 0)
                    elif op == "STORE_FAST" or op == "LOAD_FAST_AND_CLEAR":
                        local = bit.get(arg, 0)
                        wanted = restored.get(index, 0) if value & local else 0
                        saved = shadow_of.get(index, 0)
                        if value & saved:
                            wanted = local
                        value = (value & ~local & ~saved) | wanted
                handler = handlers[index]
                if handler is not None:
                    value |= live[handler.target]
                if value != live[index]:
                    live[index] = value
                    changed = goes_back
        live.pop()
        everything = (1 << len(self.names)) - 1
        return [value & everything for value in live]


@remembered
def flow_of(code: CanonicalCode) -> Flow:
    return Flow.make(code)


@remembered
def _forward(code: CanonicalCode, entry: int, start: int, union: bool) -> list[int]:
    return flow_of(code).find_assigned(entry, start, union)


@remembered
def _live(code: CanonicalCode) -> list[int]:
    return flow_of(code).find_live()


def _stored(value: int, local: int, sources: int, union: bool) -> int:
    """The set of bound locals after STORE_FAST; ``sources`` are the shadow bits of a value put back."""
    if not sources:
        return value | local
    bound = bool(value & sources) if union else value & sources == sources
    return value | local if bound else value & ~local


def _cleared(value: int, local: int, shadow: int) -> int:
    """The set after LOAD_FAST_AND_CLEAR: the shadow bit takes over what was known of the local."""
    value = value | shadow if value & local else value & ~shadow
    return value & ~local


def saved_locals(
    code: CanonicalCode, handlers: list[ExceptionRange | None], shadow_of: dict[int, int]
) -> list[dict[int, int] | None]:
    """For every instruction the slots that hold what a LOAD_FAST_AND_CLEAR pushed, with its shadow bits.

    Abstract stacks are dicts from slot (0 = bottom) to shadow bits; slots with plain values are left out.
    """
    instructions = code.instructions
    depths = stack_depths(code)
    states: list[dict[int, int] | None] = [None] * len(instructions)
    work: list[tuple[int, dict[int, int]]] = [(0, {})]
    while work:
        index, marks = work.pop()
        old = states[index]
        if old is not None:
            merged = {slot: old.get(slot, 0) | marks.get(slot, 0) for slot in old.keys() | marks.keys()}
            if merged == old:
                continue
            marks = merged
        states[index] = marks
        instr = instructions[index]
        handler = handlers[index]
        if handler is not None:
            work.append((handler.target, {k: v for k, v in marks.items() if k < handler.depth}))
        depth = depths[index]
        after = dict(marks)
        if instr.op == "LOAD_FAST_AND_CLEAR":
            after[depth] = shadow_of[index]
        elif instr.op == "SWAP":
            top, other = after.pop(depth - 1, 0), after.pop(depth - instr.arg, 0)
            after.update({k: v for k, v in ((depth - instr.arg, top), (depth - 1, other)) if v})
        else:
            pops = pops_pushes(instr.op, instr.arg)[0] if instr.op != "COPY" else 0
            after = {k: v for k, v in after.items() if k < depth - pops}
        for target in successors(instr):
            work.append((target, after))
    return states


@remembered
def reachable(code: CanonicalCode, start: int) -> list[int]:
    """The instructions that control may reach from ``start``, in order."""
    return sorted(reached(code, start))


def reached(
    code: CanonicalCode, start: int, ends: Container[int] = (), cut: Container[tuple[int, int]] = ()
) -> set[int]:
    """The instructions that control may reach from ``start``. It goes no further from those in ``ends``, nor
    along the edges in ``cut``; those of exceptions are no such edges."""
    instructions, handlers = code.instructions, handlers_of(code)
    seen: set[int] = set()
    work = [start]
    while work:
        index = work.pop()
        if index in seen:
            continue
        seen.add(index)
        if index in ends:
            continue
        handler = handlers[index]
        if handler is not None:
            work.append(handler.target)
        work += [after for after in successors(instructions[index]) if (index, after) not in cut]
    return seen


@remembered
def introspects_locals(code: CanonicalCode, start: int) -> bool:
    """True when the code from ``start`` on names something that can look at a frame's locals (``locals``,
    ``eval``, ``sys`` …). ``start`` is where the frame began: it may hold what it loaded since.

    A continuation of such code should be given every bound local, not only the live ones.
    """
    names = {i.index for i in code.instructions if i.op in _LOADS_NAME and i.arg in _INTROSPECTING}
    return bool(names) and not names.isdisjoint(reachable(code, start))


_OF_THE_FRAME = frozenset(
    {"locals", "eval", "exec", "_getframe", "currentframe", "walk_stack", "extract_stack"}
)
_MEMBERS_OF_FRAMES = frozenset({"_getframe", "currentframe", "walk_stack", "extract_stack"})


def looks_at_frame(code: CanonicalCode) -> bool:
    """True when the code surely looks at its own frame: replacements of it would be seen.

    ``locals``, ``eval``, ``exec``, ``vars()`` and ``dir()`` without arguments, ``sys._getframe``,
    ``inspect.currentframe``.
    """
    for instr, following in zip(code.instructions, code.instructions[1:]):
        if instr.op in ("LOAD_GLOBAL", "LOAD_NAME"):
            bare = instr.arg in ("vars", "dir") and following.op == "CALL" and following.arg[0] == 0
            if bare or instr.arg in _OF_THE_FRAME:
                return True
        elif instr.op in ("LOAD_ATTR", "LOAD_METHOD") and instr.arg in _MEMBERS_OF_FRAMES:
            return True
    return False


# Members of sys, threading and pdb, and a builtin, that set a debugger, profiler or monitoring tool on what
# follows them.
_TOOLS = frozenset({"breakpoint", "set_trace", "post_mortem", "monitoring", "settrace", "setprofile"})
_TOOLS |= {"settrace_all_threads", "setprofile_all_threads", "set_local_events", "use_tool_id", "set_events"}


def uses_tools(code: CanonicalCode) -> bool:
    """True when the code starts a tool that watches it: such a tool shall see it as it is."""
    loads = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD")
    return any(instr.op in loads and instr.arg in _TOOLS for instr in code.instructions)


@remembered
def predecessors(code: CanonicalCode) -> list[list[int]]:
    """For every instruction, which instructions may come right before it (exceptions not counted)."""
    found: list[list[int]] = [[] for _ in code.instructions]
    for op, arg, _, index in code.instructions:
        if op not in NO_FALLTHROUGH:
            found[index + 1].append(index)
        if op in JUMPS:
            found[arg].append(index)
    return found
