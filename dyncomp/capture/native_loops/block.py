"""The state within one version of a block, and what instructions do with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..bytecode.instr import Instr
from .blocks import inner_stores
from .kinds import (
    BOOL,
    INT,
    UNBOUND_KIND,
    UNBOUND_VALUE,
    Fact,
    IterDetail,
    Kind,
    Value,
    iter_kind,
)
from .walk import Leave, Scope, Stop, Version, Walker, clean

Handler = Callable[["Block", Instr], None]
HANDLERS: dict[str, Handler] = {}

SOFT_BUDGET = 1 << 20
HARD_BUDGET = 1 << 25
"""Steps back to a header between two looks at signals: at the loop's own header, and at loops inside."""


def handles(*ops: str) -> Callable[[Handler], Handler]:
    def register(function: Handler) -> Handler:
        for op in ops:
            HANDLERS[op] = function
        return function

    return register


class Block:
    """Follows one version from its first instruction to where control goes elsewhere.

    ``leave_place`` and ``leave_stack``: the last instruction since which nothing has had an effect, and the
    stack before it. Checks that fail leave there.
    """

    def __init__(self, walker: Walker, version: Version) -> None:
        self.walker = walker
        self.version = version
        self.scope: Scope = version.scope
        self.lines = version.lines
        self.index = version.index
        self.at = -1
        """The last instruction that was followed."""
        self.done = False
        self.env = dict(version.env)
        self.stack: list[Value] = []
        for value in version.stack:
            self.stack.append(value if value.kind.family == "iter" else self.copied(value))
        if version.leave is None:
            self.leave_place, self.leave_stack = version.index, tuple(self.stack)
        else:
            self.leave_place, self.leave_stack = version.leave

    # -- writing ----------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append(text)

    def temp(self, ctype: str, expression: str) -> str:
        name = self.walker.temp(ctype)
        self.lines.append(f"{name} = {expression};")
        return name

    def copied(self, value: Value) -> Value:
        parts = (self.temp(ctype, text) for text, (_, ctype) in zip(value.parts, value.kind.parts))
        return Value(value.kind, tuple(parts), value.fact, value.low, value.high)

    def new(self, kind: Kind, expression: str, low: int | None = None, high: int | None = None) -> Value:
        """A value of one part."""
        return Value(kind, (self.temp(kind.parts[0][1], expression),), None, low, high)

    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop(self) -> Value:
        return self.stack.pop()

    def check(self, condition: str, reason: str) -> None:
        """Leave where ``condition`` does not hold."""
        self.line(f"if (unlikely(!({condition}))) goto {self._leave(reason)};")

    def _leave(self, reason: str, retry: tuple[int, int] | None = None) -> str:
        kinds = tuple(value.kind for value in self.leave_stack)
        where = self.walker.subject.code.instructions[self.leave_place]
        leave = Leave(self.leave_place, kinds, f"{reason}, line {where.loc.line}", retry)
        return self.walker.leave(leave, self.leave_stack)

    def effect(self) -> None:
        """The instruction has had an effect: from now on, leaving means going on behind it."""
        if self.scope.parent is None:
            self.leave_place, self.leave_stack = self.index + 1, tuple(self.stack)

    # -- locals -----------------------------------------------------------------------------------------
    def load(self, slot: str) -> Value:
        value = self.env.get(slot, UNBOUND_VALUE)
        if value.kind == UNBOUND_KIND:
            raise Stop(f"{slot} has no value")
        if value.parts and self.changes(slot) and value.parts[0].startswith("v_"):
            value = self.env[slot] = self.copied(value)
        if value.kind.family == "array":
            return Value(value.kind, value.parts, ("local", slot, 0))
        return value

    def changes(self, slot: str) -> bool:
        """Whether the variables of a local may get other values than they have."""
        return self.scope.parent is not None or slot in self.scope.facts.stored

    def store(self, slot: str, value: Value) -> None:
        if value.kind.family in ("iter", "source"):
            raise Stop("an iterator as a variable")
        target = self.walker.slot_value(slot, value.kind)
        for name, text in zip(target.parts, value.parts):
            self.line(f"{name} = {text};")
        if self.scope.parent is None:
            self.line(f"tag_{clean(slot)} = {self.walker.tag(slot, value.kind)};")
        self.env[slot] = value

    # -- control ----------------------------------------------------------------------------------------
    def walk(self) -> None:
        code, facts = self.scope.code, self.scope.facts
        first = True
        while not self.done:
            outside = self.index not in facts.region
            if not first and (outside or self.index in facts.leaders):
                self.line(self.goto(self.index))
                return
            first = False
            self.at = self.index
            instr = code.instructions[self.index]
            handler = HANDLERS.get(instr.op)
            try:
                if handler is None:
                    raise Stop(f"{instr.op} is not for native loops")
                handler(self, instr)
            except Stop as stop:
                self.line(f"goto {self._leave(str(stop))};")
                return
            self.index += 1

    def goto(self, index: int, stack: list[Value] | None = None, scope: Scope | None = None) -> str:
        """Statements that go on at ``index`` with these values on the stack; the block goes on otherwise."""
        stack = list(self.stack if stack is None else stack)
        scope = self.scope if scope is None else scope
        walker = self.walker
        if walker.is_beyond(scope, index):
            return ";"
        if scope.parent is None and index not in scope.facts.region:
            kinds = tuple(value.kind for value in stack)
            return f"goto {walker.leave(Leave(index, kinds, ''), stack)};"
        for depth, value in enumerate(stack):
            moved = walker.stack_value(depth, value).parts != value.parts
            if value.kind.family == "iter" and moved:
                raise Stop("an iterator that moves on the stack")
        lines: list[str] = []
        opens = scope.code.instructions[index].op == "FOR_ITER" and stack[-1].kind.family == "iter"
        if opens and stack[-1].kind.detail.facts is None:
            lines += self._decide(scope, index, stack)
        inside = stack[:-1] if opens else stack
        stack = [Value(v.kind, v.parts, _valid(v.fact, inside)) for v in stack]
        env = {slot: Value(v.kind, v.parts, _valid(v.fact, inside)) for slot, v in self.env.items()}
        leave = self._carried_leave(scope, stack, lines)
        version = walker.version(scope, index, stack, env, leave)
        if version is None:
            return f"goto {self._too_many(scope, index, stack)};"
        for depth, value in enumerate(stack):
            for name, text in zip(walker.stack_value(depth, value).parts, value.parts):
                if name != text:
                    lines.append(f"{name} = {text};")
        back = scope is self.scope and index <= self.at
        leaf = opens and is_leaf(scope, index, stack[-1].kind)
        if back and not leaf:
            lines.append(self._paused(scope, index, stack))
        if back and scope.parent is None and index == walker.subject.loop.header:
            walker.goes_round = True
        into = leaf and not (back and self.at in scope.facts.loops[index].body)
        lines.append(f"goto {'enter' if into else 'block'}{version.number};")
        return " ".join(lines)

    def _carried_leave(
        self, scope: Scope, stack: list[Value], lines: list[str]
    ) -> tuple[int, tuple[Value, ...]] | None:
        """Where the next block leaves, if that is not where it begins: in the midst of a statement."""
        if scope.parent is None and all(value.kind.family == "iter" for value in stack):
            return None
        kept = []
        for depth, value in enumerate(self.leave_stack):
            if value.kind.family != "iter":
                held = self.walker.kept_value(depth, value.kind)
                lines += [f"{name} = {text};" for name, text in zip(held.parts, value.parts) if name != text]
                value = held
            kept.append(value)
        return self.leave_place, tuple(kept)

    def _too_many(self, scope: Scope, index: int, stack: list[Value]) -> str:
        if scope.parent is not None or any(value.kind.family != "iter" for value in stack):
            return self._leave("too many combinations of types")
        kinds = tuple(value.kind for value in stack)
        leave = Leave(index, kinds, f"too many combinations of types, {self._line(index)}")
        return self.walker.leave(leave, stack)

    def _line(self, index: int) -> str:
        return f"line {self.walker.subject.code.instructions[index].loc.line}"

    def _paused(self, scope: Scope, index: int, stack: list[Value]) -> str:
        own = scope.parent is None and index == self.walker.subject.loop.header
        limit = "0" if own else f"-{HARD_BUDGET}LL"
        return f"if (unlikely(--budget < {limit})) goto {self.pause_label(scope, index, stack)};"

    def pause_label(self, scope: Scope, index: int, stack: list[Value]) -> str:
        if scope.parent is not None:
            return self._leave("paused")
        return self.walker.leave(Leave(index, tuple(v.kind for v in stack), PAUSED), stack)

    # -- accesses within bounds -------------------------------------------------------------------------
    def _decide(self, scope: Scope, header: int, stack: list[Value]) -> list[str]:
        """Find out which accesses by the numbers of the iterator on top can be checked once, before the loop;
        the statements that check them."""
        value = stack[-1]
        detail: IterDetail = value.kind.detail
        facts: frozenset[tuple[str, int, int]] = frozenset()
        may = detail.sign != 0 and (id(scope.code), header) not in self.walker.subject.checked
        if may and self.walker.probing is None:
            facts = self._probe(scope, header, stack)
        stack[-1] = Value(iter_kind(detail._replace(facts=facts)), value.parts)
        if not facts:
            return []
        current, end, step = value.parts[:3]
        last = f"{end} - {detail.step or step}"
        low, high = (current, last) if detail.sign > 0 else (f"({last})", current)
        tests = []
        for slot, axis, offset in sorted(facts):
            size = self.env[slot].parts[1 + axis]
            if not (detail.nonnegative and offset >= 0):
                tests.append(f"{low} >= {-offset}")
            tests.append(f"{high} < {size} - {offset}" if offset else f"{high} < {size}")
        order = "<" if detail.sign > 0 else ">"
        kept = (self.leave_place, self.leave_stack)
        if scope.parent is None:
            self.leave_place, self.leave_stack = header, (*stack[:-1], value)
        label = self._leave("negative positions", (id(scope.code), header))
        self.leave_place, self.leave_stack = kept
        met = " && ".join(dict.fromkeys(tests))
        return [f"if ({current} {order} {end} && !({met})) goto {label};"]

    def _probe(self, scope: Scope, header: int, stack: list[Value]) -> frozenset[tuple[str, int, int]]:
        value = stack[-1]
        detail: IterDetail = value.kind.detail
        probe = Walker(self.walker.subject, len(stack) - 1)
        probe.root = self.walker.root
        probe.scopes = dict(self.walker.scopes)
        probed = Value(iter_kind(detail._replace(facts=frozenset())), value.parts)
        body = scope.facts.loops[header].body
        probe.limit = (scope, body)
        env = {slot: Value(v.kind, v.parts, v.fact) for slot, v in self.env.items()}
        leave = None if scope.parent is None else (self.leave_place, self.leave_stack)
        probe.version(scope, header, [*stack[:-1], probed], env, leave)
        walk_all(probe)
        stores = {scope.slot(name) for name in inner_stores(scope.code, body)}
        return frozenset(
            (slot, axis, offset)
            for slot, axis, offset in probe.requests
            if slot not in stores and slot in self.env and self.env[slot].kind.family == "array"
        )

    def within_bounds(self, array: Value, axis: int, index: Value) -> bool:
        """Whether the loop's start has checked this access; asks for it, if not."""
        if array.fact is None or array.fact[0] != "local" or index.fact is None or index.fact[0] != "item":
            return False
        _, depth, offset = index.fact
        wanted = (array.fact[1], axis, offset)
        if depth == self.walker.probing:
            self.walker.requests.add(wanted)
        facts = self.stack[depth].kind.detail.facts if depth < len(self.stack) else None
        return facts is not None and wanted in facts

    # -- truth ------------------------------------------------------------------------------------------
    def truth(self, value: Value) -> str:
        """A C condition for the truth of ``value``; "true" or "false" where it is known."""
        kind = value.kind
        if value.constant is not None:
            return "true" if value.constant else "false"
        if kind in (INT, BOOL) or kind.family in ("float", "numpy"):
            return value.text if kind.parts[0][1] == "bool" else f"{value.text} != 0"
        if kind.family == "none":
            return "false"
        if kind.family == "tuple":
            return "true" if kind.detail else "false"
        raise Stop(f"the truth of {kind}")


def is_leaf(scope: Scope, index: int, kind: Kind) -> bool:
    """Whether a loop over numbers with no loop inside begins at ``index``: it counts its steps in advance."""
    return index in scope.facts.leaves and bool(kind.detail.sign)


PAUSED = "paused"


def _valid(fact: Fact | None, stack: list[Value]) -> Fact | None:
    """``fact``, unless the iterator that it is about is gone."""
    if fact is None or fact[0] != "item":
        return None
    depth: Any = fact[1]
    return fact if depth < len(stack) and stack[depth].kind.family == "iter" else None


def walk_all(walker: Walker) -> None:
    """Follow every version that is waiting, and those that they lead to."""
    while walker.work:
        Block(walker, walker.work.pop()).walk()
