"""The walk over a loop's code: versions of blocks, the variables they use, and the places where they
leave."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...python_code.instr import CanonicalCode
from ...python_code.loop_find import Loop
from ..analysis.affine import Form
from ..analysis.blocks import CodeFacts, Known, facts_of
from ..analysis.ranges import GREATEST, LEAST, Below, Interval, Ranges
from ..entry.references import References, refer
from ..kinds.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE_VALUE,
    Access,
    Kind,
    Value,
    constant_kind,
    given_tuple_kind,
    held,
    moved,
)

MOST_VERSIONS = 8
_MOST_OF_FACTS = 2
MOST_BLOCKS = 600
TAG_GIVEN, TAG_UNBOUND, FIRST_TAG = 0, 1, 2


class Stop(Exception):
    """The instruction is not for generated code: it leaves before it."""


class HeldTooShort(Exception):
    """An array that the loop makes may go while it is read."""


class TooLarge(Exception):
    """A loop with too many blocks, or too much in it."""


@dataclass(eq=False)
class Scope:
    """The function of the loop, or one that is inlined into it. ``base``: where its stack begins;
    ``function``: the one that is inlined."""

    number: int
    code: CanonicalCode
    facts: CodeFacts
    namespace: dict[str, Any]
    parent: Scope | None = None
    return_at: int = -1
    base: int = 0
    function: types.FunctionType | None = None

    def slot(self, name: str) -> str:
        return name if self.parent is None else f"{name}@{self.number}"


@dataclass(eq=False)
class Version:
    """A block for one state of types. ``leave``: in an inlined function, where its caller's statement
    began."""

    number: int
    scope: Scope
    index: int
    stack: tuple[Value, ...]
    env: dict[str, Value]
    leave: tuple[int, tuple[Value, ...]] | None
    lines: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)
    """What comes before ``lines`` where control comes from outside of a loop."""
    tail: list[str] = field(default_factory=list)
    """What comes behind all of such a loop."""
    home: int = -1
    """The version of the innermost loop's header that led here first."""


@dataclass(frozen=True)
class Leave:
    """A way out. ``reason`` is empty for the loop's own ends."""

    place: int
    stack: tuple[Kind, ...]
    reason: str


@dataclass(eq=False)
class Subject:
    """What is compiled. ``constants`` grows. ``unrolls``: short inner loops are unrolled; ``makes_arrays``:
    calls that make arrays are compiled, too; ``makes_lists``: a local may let go of a
    list; the first of several walks says so of lists that calls make. ``mixes``: lists may hold NumPy's
    numbers beside Python's."""

    code: CanonicalCode
    loop: Loop
    namespace: dict[str, Any]
    constants: References = field(default_factory=References)
    decoded: dict[types.CodeType, CanonicalCode] = field(default_factory=dict)
    unrolls: bool = True
    makes_arrays: bool = True
    makes_lists: bool = False
    mixes: bool = False

    def constant(self, value: object) -> Kind:
        return constant_kind(self.number_of(value), value)

    def number_of(self, value: object) -> int:
        """Which of the constants an object is."""
        known = self.constants.number_of(value)
        return self.constants.append(value) if known is None else known


@dataclass(frozen=True)
class Assumption:
    """What was looked up when the loop was compiled and is looked up again before it runs. ``holder`` and
    ``found`` are references (see ``refer``)."""

    holder: Any
    """The namespace of a function, a module or a function."""
    name: str | int
    """That of a variable or an attribute, or the number of a cell of the function."""
    found: Any


class Walker:
    """Collects versions, variables and leaves. ``probing``: what is written is thrown away, only the accesses
    (``requests``) by numbers of the iterator at depth ``probing`` count. ``known``: see ``known_limits``."""

    def __init__(
        self, subject: Subject, probing: int | None = None, known: Known = (), ranges: Ranges | None = None
    ) -> None:
        self.subject = subject
        self.ranges = ranges
        self.probing = probing
        self.known = dict(known)
        loop = subject.loop
        numbers = tuple([(name, number) for name, number in known if number is not None])
        facts = facts_of(subject.code, loop.header, subject.unrolls, numbers)
        self.root = Scope(0, subject.code, facts, subject.namespace)
        self.scopes: dict[Any, Scope] = {}
        self.limit: tuple[Scope, frozenset[int]] | None = None
        self.versions: dict[Any, Version] = {}
        self.counts: dict[tuple[Any, ...], int] = {}
        self.merges: dict[Any, int] = {}
        """How many versions there are for a place and kinds."""
        self.work: list[Version] = []
        self.variables: dict[str, str] = {}
        self.tags: dict[str, list[Kind]] = {}
        self.leaves: list[Leave] = []
        self.leave_lines: list[list[str]] = []
        self.leave_keys: dict[Any, int] = {}
        self.assumptions: list[Assumption] = []
        self.inputs: dict[str, tuple[Any, Any]] = {}
        self.requests: set[Access] = set()
        self.goes_round = False
        self.names_items = self.removes_items = False
        """Whether locals hold tuples that are items of lists, or such are removed from lists: not both, as
        such a tuple is found by its place."""
        self.makes_arrays = self.holds_parts = False
        """Whether arrays or lists are made, and locals hold tuples or methods of such."""
        subject.makes_lists |= any(subject.code.instructions[k].op == "BUILD_LIST" for k in loop.body)
        self.array_slots: dict[str, None] = {}
        """The locals that are given arrays or lists."""
        self.fixed: dict[str, list[str]] = {}
        """Variables that keep their values (ints, sizes of arrays), and those that are no more than each."""
        self.has_spare = False
        """Whether numbers that were taken out of lists are kept for a while."""
        self.draws = self.makes_tuples = False
        """Whether random numbers are drawn, and objects made that may set off the garbage collector."""
        self.members: dict[str, tuple[str, str]] = {}
        """Variables with the addresses of members of modules."""
        self.takes_back = False
        """Whether inlined functions write to arrays: where they are left this is taken back."""
        self.temps = 0

    # -- variables --------------------------------------------------------------------------------------
    def variable(self, name: str, ctype: str) -> str:
        self.variables[name] = ctype
        return name

    def numpy_type(self, kind: Kind) -> str:
        """The variable with the address of a scalar type of NumPy."""
        return self.member(f"type_{kind.code}", "numpy", kind.detail.type.__name__)

    def member(self, variable: str, module: str, name: str) -> str:
        """The variable with the address of ``name`` in a module."""
        self.members[variable] = module, name
        return variable

    def temp(self, ctype: str) -> str:
        self.temps += 1
        return self.variable(f"t{self.temps}", ctype)

    def slot_value(self, slot: str, kind: Kind) -> Value:
        """The variables of a local for one kind."""
        return self._variables(f"{clean(slot)}_{kind.code}", kind)

    def stack_value(self, depth: int, value: Value) -> Value:
        """The variables of the stack's slot at ``depth``."""
        kind = value.kind
        if kind.family == "iter":
            found = self._variables(f"it{depth}", kind)
        else:
            found = self._variables(f"st{depth}_{kind.code}", kind)
        return held(kind, found.parts, value.fact)

    def kept_value(self, depth: int, kind: Kind) -> Value:
        """The variables that keep what was on the stack where a statement began."""
        return self._variables(f"kept{depth}_{kind.code}", kind)

    def _variables(self, prefix: str, kind: Kind) -> Value:
        parts = (self.variable(prefix + suffix, ctype) for suffix, ctype in kind.parts)
        return Value(kind, tuple(parts))

    def tag(self, slot: str, kind: Kind) -> int:
        kinds = self.tags.setdefault(slot, [])
        if kind not in kinds:
            kinds.append(kind)
        return FIRST_TAG + kinds.index(kind)

    # -- constants --------------------------------------------------------------------------------------
    def constant(self, value: object) -> Value:
        """A value known when the loop is compiled."""
        if value is None:
            return NONE_VALUE
        if type(value) is bool:
            return Value(BOOL, ("true" if value else "false",), None, int(value), int(value))
        if type(value) is int and -(2**63) <= value < 2**63:
            return Value(INT, (int_literal(value),), None, value, value)
        if type(value) is float:
            return Value(FLOAT, (float_literal(value),))
        if type(value) is complex:
            return Value(COMPLEX, (float_literal(value.real), float_literal(value.imag)))
        if type(value) is tuple:
            items = [self.constant(item) for item in value]
            number = self.subject.number_of(value)
            kind = given_tuple_kind([i.kind for i in items])
            return Value(kind, (*(p for i in items for p in i.parts), f"{~number}LL"))
        return Value(self.subject.constant(value), ())

    def assume(self, holder: object, name: str | int, found: object) -> None:
        self.assumptions.append(Assumption(refer(holder), name, refer(found)))

    # -- versions ---------------------------------------------------------------------------------------
    def version(
        self,
        scope: Scope,
        index: int,
        stack: Sequence[Value],
        env: dict[str, Value],
        leave: tuple[int, tuple[Value, ...]] | None,
    ) -> Version | None:
        """The version of the block at ``index`` for a state; None where there are too many of them. Where
        states differ in facts alone (of a variable that each step moves on), one is made without facts."""
        kept = {slot: env[slot] for slot in sorted(_live_slots(scope, index)) if slot in env}
        left = None if leave is None else (leave[0], tuple(v.kind for v in leave[1]))
        unchecked = any(value.kind.family == "iter" and value.kind.detail.facts for value in stack)
        steps = tuple(v.kind.detail.known for v in stack if v.kind.family == "iter" and v.kind.detail.known)
        place = (scope.number, index, unchecked, steps)
        kinds = (
            *place,
            tuple(value.kind for value in stack),
            tuple((slot, value.kind) for slot, value in kept.items()),
            left,
        )
        key = (kinds, *facts_in(stack, kept))
        found = self.versions.get(key)
        if found is None and self.merges.get(kinds, 0) >= _MOST_OF_FACTS:
            stack = [moved(value, value.parts, None) for value in stack]
            kept = {s: v if self.known.get(s) else moved(v, v.parts, None) for s, v in kept.items()}
            key = (kinds, *facts_in(stack, kept))
            found = self.versions.get(key)
        if found is None:
            self.merges[kinds] = self.merges.get(kinds, 0) + 1
            self.counts[place] = self.counts.get(place, 0) + 1
            if self.counts[place] > MOST_VERSIONS:
                return None
            if len(self.versions) >= MOST_BLOCKS:
                raise TooLarge
            own = {s: self.at_rest(s, value) for s, value in kept.items()}
            slots = tuple(self.stack_value(depth, value) for depth, value in enumerate(stack))
            found = Version(len(self.versions), scope, index, slots, own, leave)
            self.versions[key] = found
            self.work.append(found)
            if self.ranges is not None:
                _take_for_granted(found, self.ranges.begin(key, _known_of(stack, kept)))
        elif self.ranges is not None and self.ranges.grow(key, _known_of(stack, kept)):
            _take_for_granted(found, self.ranges.known(key))
            if found not in self.work:
                self.work.append(found)
        return found

    def at_rest(self, slot: str, value: Value) -> Value:
        """A local as it is found at the start of a block: in its variables."""
        return held(value.kind, self.slot_value(slot, value.kind).parts, value.fact)

    def leave(self, leave: Leave, stack: Sequence[Value]) -> str:
        """The label of a way out with these values on the stack."""
        key = (leave, tuple(v.parts for v in stack))
        number = self.leave_keys.get(key)
        if number is None:
            number = self.leave_keys[key] = len(self.leaves)
            self.leaves.append(leave)
            lines, at = [], 1
            for value in stack:
                for text, form in zip(value.parts, value.kind.formats):
                    lines.append(put(f"out[{at}]", text, form))
                    at += 1
            self.leave_lines.append(lines)
        return f"leave{number}"

    def is_beyond(self, scope: Scope, index: int) -> bool:
        """Whether a probe has come to the end of what it looks at."""
        if self.limit is None:
            return False
        inside, body = self.limit
        if scope is inside:
            return index not in body
        above: Scope | None = inside.parent
        while above is not None and above is not scope:
            above = above.parent
        return above is not None

    def new_scope(self, key: Any, make: Callable[..., Any]) -> Scope:
        found = self.scopes.get(key)
        if found is None:
            found = self.scopes[key] = make(len(self.scopes) + 1)
        return found


def interval(value: Value) -> Interval:
    """Between which numbers an int is."""
    low = LEAST if value.low is None else value.low
    return low, GREATEST if value.high is None else value.high


def _ints(stack: Sequence[Value], env: dict[str, Value]) -> list[Value]:
    """Ints of which no more is known than where they are between."""
    return [value for value in (*stack, *env.values()) if value.kind == INT]


def _known_of(stack: Sequence[Value], env: dict[str, Value]) -> list[tuple[Interval, Below]]:
    return [(interval(value), value.below) for value in _ints(stack, env)]


def _take_for_granted(version: Version, known: Sequence[tuple[Interval, Below]]) -> None:
    for value, ((low, high), below) in zip(_ints(version.stack, version.env), known):
        value.below = below
        if not isinstance(value.fact, Form) or value.fact.terms:  # else it is one number
            value.low, value.high = low, high


def facts_in(stack: Sequence[Value], env: dict[str, Value]) -> tuple[Any, Any]:
    """The facts of a state, which with its kinds make it out."""
    return tuple(value.fact for value in stack), tuple(value.fact for value in env.values())


def put(place: str, text: str, form: str) -> str:
    """Writes a part into the buffer between Python and generated code."""
    if form == "d":
        return f"{place}.d = {text};"
    return f"{place}.i = (i64){text};"


def _live_slots(scope: Scope, index: int) -> set[str]:
    found = {scope.slot(name) for name in scope.facts.live.get(index, ())}
    if scope.parent is not None:
        found |= _live_slots(scope.parent, scope.return_at)
    return found


def clean(slot: str) -> str:
    """A local's name as part of a C name."""
    return "v_" + "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"${ord(c):x}" for c in slot)


def int_literal(value: int) -> str:
    return f"{value}LL" if value > -(2**63) else "(-9223372036854775807LL - 1)"


def float_literal(value: float) -> str:
    if value != value:
        return '__builtin_nan("")'
    if value in (float("inf"), float("-inf")):
        return "__builtin_inf()" if value > 0 else "(-__builtin_inf())"
    return repr(value) if len(repr(value)) < 18 else value.hex()
