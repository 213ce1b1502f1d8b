"""The state within one version of a block, and what instructions do with it."""

from __future__ import annotations

from collections.abc import Callable

from ...python_code.instr import Instr
from ..analysis.affine import Bounds, Form, Symbol, is_linear, symbol
from ..analysis.blocks import inner_stores
from ..analysis.ranges import NEGATED, narrowed
from ..kinds.kinds import (
    BOOL,
    INT,
    UNBOUND_KIND,
    UNBOUND_VALUE,
    Access,
    Compared,
    Fact,
    IterDetail,
    Kind,
    Value,
    is_named_view,
    iter_kind,
    moved,
)
from .walk import Leave, Scope, Stop, Version, Walker, clean, interval

Handler = Callable[["Block", Instr], None]
HANDLERS: dict[str, Handler] = {}

SOFT_BUDGET = 1 << 20
HARD_BUDGET = 1 << 25
"""Steps back to a header between two looks at signals: at the loop's own header, and at loops inside, so
many more. The budget is what is left until the latter."""


MOST_CHANGES = 512
SETTLED = "SETTLED;"
"""What inlined functions wrote, in ``changes``, is there to stay."""


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
        self.age = 0
        """How many objects may have been let go of: see ``lists``."""
        self.done = False
        self.is_settled = version.leave is None
        """Whether nothing was changed, by inlined functions, that leaving would take back."""
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
        return moved(value, tuple(parts), value.fact)

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

    def _leave(self, reason: str) -> str:
        kinds = tuple(value.kind for value in self.leave_stack)
        where = self.walker.subject.code.instructions[self.leave_place]
        leave = Leave(self.leave_place, kinds, f"{reason}, line {where.loc.line}")
        return self.walker.leave(leave, self.leave_stack)

    def leave_label(self, reason: str) -> str:
        """Where to go to leave before the instruction."""
        return self._leave(reason)

    def effect(self) -> None:
        """The instruction has had an effect: from now on, leaving means going on behind it."""
        if self.scope.parent is None:
            self.leave_place, self.leave_stack = self.index + 1, tuple(self.stack)
            if not self.is_settled:
                self.line(SETTLED)
                self.is_settled = True

    def note_change(self, place: str, size: int) -> str:
        """Before an inlined function writes to ``place``, whose address this gives: leaving takes it back."""
        self.walker.takes_back = True
        self.check(f"changed < {MOST_CHANGES}", "much that a function changes")
        place = self.temp("char*", place)
        self.line(f"note_change(&changes[changed++], {place}, {size});")
        return place

    def check_made_here(self) -> None:
        """Arrays and lists are made where the next instruction (this one, of lists) gives them to a local of
        the loop's own function."""
        facts, code, walker = self.scope.facts, self.scope.code, self.walker
        after = self.index + (code.instructions[self.index].op != "STORE_FAST")
        if self.scope.parent is not None or not walker.subject.makes_arrays:
            raise Stop("an array or a list is made")
        plain = after == self.index or (after in facts.region and after not in facts.leaders)
        if not plain or code.instructions[after].op != "STORE_FAST":
            raise Stop("an array or a list is made in the midst of a statement")
        walker.makes_arrays = True

    # -- locals -----------------------------------------------------------------------------------------
    def load(self, slot: str) -> Value:
        value = self.env.get(slot, UNBOUND_VALUE)
        if value.kind == UNBOUND_KIND:
            raise Stop(f"{slot} has no value")
        if value.parts and self.changes(slot) and value.parts[0].startswith("v_"):
            value = self.env[slot] = self.copied(value)
        if value.kind.family in HAVE_BOUNDS:
            return Value(value.kind, value.parts, slot)
        return value

    def changes(self, slot: str) -> bool:
        """Whether the variables of a local may get other values than they have."""
        return self.scope.parent is not None or slot in self.scope.facts.stored

    def store(self, slot: str, value: Value) -> None:
        if value.kind.family in ("iter", "source", "generator", "pending"):
            raise Stop(f"{value.kind} as a variable")
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
            return f"{self._settled(scope)}goto {walker.leave(Leave(index, kinds, ''), stack)};"
        for depth, value in enumerate(stack):
            is_elsewhere = walker.stack_value(depth, value).parts != value.parts
            if value.kind.family == "iter" and is_elsewhere:
                raise Stop("an iterator that moves on the stack")
        if not _opens(scope, index, stack) or stack[-1].kind.detail.facts is not None:
            return self._go(scope, index, stack)
        value, facts = stack[-1], self._wanted(scope, index, stack)
        stack[-1] = Value(iter_kind(value.kind.detail._replace(facts=frozenset())), value.parts)
        if not facts:
            return self._go(scope, index, stack)
        fast = Value(iter_kind(value.kind.detail._replace(facts=facts)), value.parts)
        met = self._condition(stack, facts)
        return (
            f"if ({met}) {{ {self._go(scope, index, [*stack[:-1], fast])} }} {self._go(scope, index, stack)}"
        )

    def _go(self, scope: Scope, index: int, stack: list[Value]) -> str:
        walker = self.walker
        lines: list[str] = []
        if scope.parent is None and all(value.kind.family == "iter" for value in stack):
            lines.append(self._settled(scope))
        opens = _opens(scope, index, stack)
        inside = stack[:-1] if opens else stack
        stack = [moved(v, v.parts, _fact_on_stack(v, inside)) for v in stack]
        env = {slot: moved(v, v.parts, _valid(v.fact, inside)) for slot, v in self.env.items()}
        if opens and (stack[-1].kind.detail.facts or walker.probing == len(inside)):
            env = _held(scope, index, len(inside), env)
        leave = self._carried_leave(scope, stack, lines)
        version = walker.version(scope, index, stack, env, leave)
        if version is None:
            return f"{lines[0] if lines else ''}goto {self._too_many(scope, index, stack)};"
        for depth, value in enumerate(stack):
            for name, text in zip(walker.stack_value(depth, value).parts, value.parts):
                if name != text:
                    lines.append(f"{name} = {text};")
        unrolled = opens and stack[-1].kind.detail.known is not None
        back = scope is self.scope and index <= self.at and not unrolled
        leaf = opens and is_leaf(scope, index, stack[-1].kind)
        if back and not leaf:
            lines.append(self._paused(scope, index, stack))
        if back and scope.parent is None and index == walker.subject.loop.header:
            walker.goes_round = True
        if version.home < 0:
            version.home = version.number if leaf else self.version.home
        if leaf and back and self.at in scope.facts.loops[index].body:
            lines.append(self._next(version, stack))
        else:
            lines.append(f"goto {'enter' if leaf else 'block'}{version.number};")
        return " ".join(lines)

    def _settled(self, scope: Scope) -> str:
        """A statement of the loop's own function is through: nothing of it is taken back any more."""
        return "" if self.is_settled or scope.parent is not None else f"{SETTLED} "

    def _next(self, version: Version, stack: list[Value]) -> str:
        """From the body of an innermost loop back to its header."""
        if version.number == self.version.home:
            return f"goto next{version.number};"
        current, _, step = stack[-1].parts[:3]
        rest = f"({stop_of(len(stack) - 1)} - {current}) / {stack[-1].kind.detail.step or step}"
        return f"budget += {rest}; goto enter{version.number};"

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
        limit = HARD_BUDGET if own else 0
        return f"if (unlikely(--budget < {limit})) goto {self.pause_label(scope, index, stack)};"

    def pause_label(self, scope: Scope, index: int, stack: list[Value]) -> str:
        if scope.parent is not None:
            return self._leave("paused")
        return self.walker.leave(Leave(index, tuple(v.kind for v in stack), PAUSED), stack)

    # -- accesses within bounds -------------------------------------------------------------------------
    def _wanted(self, scope: Scope, header: int, stack: list[Value]) -> frozenset[Access]:
        """Which accesses in an innermost loop, whose iterator is on top, can be checked before it."""
        value = stack[-1]
        if self.walker.probing is not None or not is_leaf(scope, header, value.kind):
            return frozenset()
        depth = len(stack) - 1
        probe = Walker(self.walker.subject, depth, tuple(self.walker.known.items()))
        probe.root = self.walker.root
        probe.scopes = dict(self.walker.scopes)
        probed = Value(iter_kind(value.kind.detail._replace(facts=frozenset())), value.parts)
        body = scope.facts.loops[header].body
        probe.limit = (scope, body)
        env = {slot: Value(v.kind, v.parts, _valid(v.fact, stack[:-1])) for slot, v in self.env.items()}
        env = _held(scope, header, depth, env)
        leave = None if scope.parent is None else (self.leave_place, self.leave_stack)
        probe.version(scope, header, [*stack[:-1], probed], env, leave)
        walk_all(probe)
        stores = {scope.slot(name) for name in inner_stores(scope.code, body)}
        arrays = {slot for slot, value in self.env.items() if value.kind.family in HAVE_BOUNDS} - stores
        found = frozenset(access for access in probe.requests if not access[0] or access[0] in arrays)
        return found if any(access[0] for access in found) else frozenset()

    def _condition(self, stack: list[Value], facts: frozenset[Access]) -> str:
        """Whether the accesses are within bounds; the loop's iterator is on top."""
        value = stack[-1]
        detail: IterDetail = value.kind.detail
        current, end, step = value.parts[:3]
        item = ("item", len(stack) - 1)

        def text(found: Symbol) -> str:
            if found[0] == "held":
                return self.env[found[1]].text
            held = stack[found[1]]
            return f"({held.parts[0]} - {held.kind.detail.step or held.parts[2]})"

        def low(found: Symbol) -> int | None:
            if found[0] == "held":
                return self.env[found[1]].low
            return 0 if stack[found[1]].kind.detail.nonnegative else None

        met = Bounds(item, current, f"({end} - {detail.step or step})", detail.sign, text, low)
        for slot, axis, form in sorted(facts):
            if slot:
                met.within(form, self.env[slot].parts[1 + axis])
            else:
                met.fits(form)
        return " && ".join([f"{current} {'<' if detail.sign > 0 else '>'} {end}", *met.found])

    def within_bounds(self, array: Value, axis: int, index: Value) -> bool:
        """Whether the loop's start has checked this access; asks for it, if not."""
        if not isinstance(array.fact, str) or not isinstance(index.fact, Form):
            return False
        return self._is_known((array.fact, axis, index.fact))

    def bounds_of(self, form: Form) -> tuple[int, int]:
        """What a sum or product is within by what the loop's start has checked; asks for it, if not."""
        if self._is_known(("", 0, form)):
            return -(2**62), 2**62
        return -(2**63) - 1, 2**63

    def _is_known(self, access: Access) -> bool:
        depth = self.walker.probing
        if depth is not None:
            item = ("item", depth)
            form = access[2]
            if is_linear(form, item) and all(found[-1] <= depth for found in form.symbols):
                self.walker.requests.add(access)
        return any(v.kind.family == "iter" and access in (v.kind.detail.facts or ()) for v in self.stack)

    def goto_where(self, index: int, condition: Value, holds: bool) -> str:
        """``goto`` on one side of a branch: what is compared is between other numbers there."""
        if isinstance(condition, Compared):
            op, left, right = condition.op, condition.left, condition.right
        elif condition.kind == INT:
            op, left, right = "!=", condition, self.walker.constant(0)
        else:
            return self.goto(index)
        env, stack = self.env, self.stack
        found = narrowed(op, interval(left), interval(right), holds)
        self.env, self.stack = dict(env), list(stack)
        for value, (low, high) in zip((left, right), found):
            self._narrow(value, low, high)
        self._note_order(op, left, right, holds)
        text = self.goto(index)
        self.env, self.stack = env, stack
        return text

    def _note_order(self, op: str, left: Value, right: Value, holds: bool) -> None:
        if not holds:
            op = NEGATED[op]
        if op in (">", ">="):
            left, right = right, left
        if op not in ("==", "!="):
            self.note_below(left, right.text, int(op in ("<=", ">=")))

    def note_below(self, known: Value, text: str, more: int) -> None:
        """Wherever this int is, it is less than the variable ``text`` plus ``more``."""
        if text in self.walker.fixed and known.constant is None:
            for found in self._renewed(known):
                found.below = {**found.below, text: min(more, found.below.get(text, more))}

    def is_below(self, value: Value, text: str) -> bool:
        """Whether an int is known to be less than the variable ``text``."""
        least = [value.below.get(name, 1) for name in (text, *self.walker.fixed.get(text, ()))]
        return min(least) <= 0

    def _narrow(self, known: Value, low: int, high: int) -> None:
        """Wherever this int is, it is between these numbers."""
        if known.constant is None:
            for found in self._renewed(known):
                found.low, found.high = low, high

    def _renewed(self, known: Value) -> list[Value]:
        """This int in locals and on the stack, of which more is to be known from here on."""
        found = []
        for slot, value in self.env.items():
            if value.kind == INT and value.parts == known.parts:
                found.append(moved(value, value.parts, value.fact))
                self.env[slot] = found[-1]
        for depth, value in enumerate(self.stack):
            if value.kind == INT and value.parts == known.parts:
                found.append(moved(value, value.parts, value.fact))
                self.stack[depth] = found[-1]
        return found

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
        if kind.family == "list":
            return f"LIST({value.parts[0]})->size != 0"
        if kind.family == "complex":
            return f"({value.parts[0]} != 0 || {value.parts[1]} != 0)"
        if kind.family in ("text", "bytes"):
            return f"{value.parts[1]} != 0"
        if kind.family == "char":
            return "true"
        if kind.family == "tuple":
            return "true" if kind.detail else "false"
        raise Stop(f"the truth of {kind}")


def is_leaf(scope: Scope, index: int, kind: Kind) -> bool:
    """Whether a loop over numbers with no loop inside begins at ``index``: it counts its steps in advance."""
    return index in scope.facts.leaves and bool(kind.detail.sign)


def stop_of(depth: int) -> str:
    """The variable with the end of the steps that an innermost loop takes before it looks at the budget."""
    return f"it{depth}_stop"


def _opens(scope: Scope, index: int, stack: list[Value]) -> bool:
    """Whether the next number of the iterator on top is about to be taken."""
    return scope.code.instructions[index].op == "FOR_ITER" and stack[-1].kind.family == "iter"


def _held(scope: Scope, header: int, depth: int, env: dict[str, Value]) -> dict[str, Value]:
    """Ints in locals that the loop does not assign are symbols in it."""
    stores = {scope.slot(name) for name in inner_stores(scope.code, scope.facts.loops[header].body)}
    found = dict(env)
    for slot, value in env.items():
        if value.kind == INT and value.fact is None and slot not in stores:
            found[slot] = moved(value, value.parts, symbol(("held", slot, depth)))
    return found


PAUSED = "paused"
HAVE_BOUNDS = ("array", "text", "bytes")
"""Families whose parts are an address and then sizes."""


def _valid(fact: Fact | None, stack: list[Value]) -> Fact | None:
    """``fact``, unless an iterator that it is about is gone."""
    if not isinstance(fact, Form):
        return None
    depths = [found[-1] for found in fact.symbols]
    return fact if all(d < len(stack) and stack[d].kind.family == "iter" for d in depths) else None


def _fact_on_stack(value: Value, stack: list[Value]) -> Fact | None:
    return _SOME_NAME if is_named_view(value) else _valid(value.fact, stack)


_SOME_NAME = "(a local)"
"""The fact of a view on the stack that a local held in the block before: no local has that name."""


def walk_all(walker: Walker) -> None:
    """Follow every version that is waiting, and those that they lead to."""
    while walker.work:
        Block(walker, walker.work.pop()).walk()
