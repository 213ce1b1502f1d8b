"""Continuations: functions that go on in the middle of another function.

A continuation is the original code behind a prologue. It takes the values of the stack and the bound
locals as positional arguments, puts the stack together and jumps to the instruction to resume at. Exception
table, lines, file and names stay, so try blocks, with blocks and loops simply go on: iterators and exit
functions are plain values on the stack and nothing is entered twice.

All cells of the original frame become free variables: a continuation's closure is the tuple of the very cells
of the frame, in the order of ``Continuation.freevars``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import CodeType
from typing import Any, NamedTuple

from dyncomp.dataclass import dataclass
from dyncomp.errors import Unsupported
from dyncomp.hook._hook import later
from dyncomp.python_code.cells import unsure_cells
from dyncomp.python_code.edit import Assembly, Catches, Label, Places, places_and_catches
from dyncomp.python_code.flow import Flow, introspects_locals, reached, remembered, stack_depths
from dyncomp.python_code.instr import CO_VARARGS, CO_VARKEYWORDS, JUMPS, NO_FALLTHROUGH, CanonicalCode, Instr
from dyncomp.python_code.versions import decode, encode

BREAK_ID = "resume"
_FIRST = ".first"
_STACK = ".stack"
_TAIL = ".tail"
NO_VALUE = ".unbound"


class Arg(NamedTuple):
    """One positional argument of a continuation.

    ``kind`` is "stack" (``key``: slot, 0 = bottom), "local" (``key``: name) or "cell" (``key``: name of a
    cell whose *contents* are passed; only for ``super()`` without arguments, which looks at the frame's first
    argument).
    """

    kind: str
    key: Any


@dataclass(frozen=True, slots=True, eq=False)
class Continuation:
    """A function body that resumes at canonical instruction ``at`` of the original.

    ``code`` takes ``len(args)`` positional arguments in the order of ``args``; a function of it needs a
    closure of cells for ``freevars`` in that order (those named in ``cellvars`` were cells made by the
    original frame, the others were its free variables).
    """

    code: CodeType
    canonical: CanonicalCode
    at: int
    args: tuple[Arg, ...]
    freevars: tuple[str, ...]
    cellvars: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ResumeTarget:
    """What a tail calls: ``function(*args)``, or ``function.bind(cells)(*args)`` if there are ``freevars``.

    ``function`` is any object; it becomes a constant of the code.
    """

    function: Any
    args: tuple[Arg, ...]
    freevars: tuple[str, ...] = ()

    @staticmethod
    def of(continuation: Any, function: Any) -> ResumeTarget:
        return ResumeTarget(function, continuation.args, continuation.freevars)


def canonical_of(code: CodeType | CanonicalCode) -> CanonicalCode:
    """``code`` decoded, if it is not already."""
    return decode(code) if isinstance(code, CodeType) else code


def needed_locals(
    code: CodeType | CanonicalCode, at: int, bound: Collection[str], start: int = 0
) -> tuple[str, ...]:
    """Which of the ``bound`` locals a continuation at ``at`` must be given: those that may still be read.

    All of them if the code can look at its own frame (``locals()``, ``eval`` …), and the first argument if it
    calls ``super()`` without arguments. ``start``: where the frame began. Order of ``varnames``;
    cells are never in it.
    """
    return tuple([name for name in _wanted_locals(canonical_of(code), at, start) if name in bound])


@remembered
def _wanted_locals(code: CanonicalCode, at: int, start: int) -> tuple[str, ...]:
    """The locals that a continuation must be given where they are bound."""
    flow = Flow.of(code)
    if introspects_locals(code, start):
        return flow.names
    wanted = flow.live()[at]
    if _uses_bare_super(code):
        wanted |= flow.mask(code.varnames[:1])
    return flow.members(wanted)


def make_continuation(
    code: CodeType | CanonicalCode,
    at: int,
    *,
    stack_depth: int,
    bound: Collection[str],
    unbound_slots: Collection[int] = (),
    lasti_slots: Mapping[int, int] | None = None,
) -> Continuation:
    """The continuation of ``code`` (itself perhaps a continuation's) at canonical instruction ``at``.

    ``bound`` names the locals to pass (see :func:`needed_locals`); names of cells are ignored. Slots of the
    stack in ``unbound_slots`` hold the unbound mark of an inlined comprehension and are not passed, nor are
    those in ``lasti_slots``, a map from slot to the canonical index of the instruction that had raised.
    Raises Unsupported for generators and coroutines.
    """
    canonical = canonical_of(code)
    check_plain(canonical)
    if canonical.instructions[at].op == "MAKE_CELL":
        raise Unsupported("a break where a comprehension's cell is missing", break_id=BREAK_ID)
    given = argument_order(canonical, stack_depth, bound, unbound_slots, lasti_slots or {})
    assembly = Assembly(unsure_cells(canonical))
    places, catches = places_and_catches(canonical)
    emit_prologue(assembly, canonical, at, places, stack_depth, given, lasti_slots or {})
    for instr in canonical.instructions:
        assembly.emit_copy(instr, places, catches)
    assembly.mark(places[-1])
    names = argument_names(canonical, given)
    made = finish_function(assembly, canonical, names, (NO_VALUE,) if unbound_slots else ())
    return Continuation(
        code=encode(made),
        canonical=made,
        at=at,
        args=given,
        freevars=made.freevars,
        cellvars=canonical.cellvars,
    )


def make_break_tail(
    code: CodeType | CanonicalCode,
    at: int,
    resumes: Mapping[int, ResumeTarget],
    *,
    stack_depth: int,
    bound: Collection[str],
    unbound_slots: Collection[int] = (),
    lasti_slots: Mapping[int, int] | None = None,
    start: int | None = None,
    exits: Mapping[int, ResumeTarget] | None = None,
) -> Continuation:
    """Like :func:`make_continuation`, but only until instruction ``at`` has run: then a tail call goes on.

    It begins at ``start`` (default: at ``at`` itself), where ``stack_depth`` and ``bound`` hold. ``resumes``
    maps each place where control may go after ``at`` (``at + 1``, and the target of a jump) to what to call
    from there with the stack and the locals as they are then; its result is returned. ``at`` runs under its
    original exception handlers, the tail call outside them. A place not in ``resumes``, and whatever a
    handler does after ``at`` raised, runs here as in the original up to a key of ``exits``, where a tail
    call goes on too.
    """
    canonical = canonical_of(code)
    check_plain(canonical)
    given = argument_order(canonical, stack_depth, bound, unbound_slots, lasti_slots or {})
    assembly = Assembly(unsure_cells(canonical))
    places, catches = places_and_catches(canonical)
    emit_prologue(
        assembly, canonical, at if start is None else start, places, stack_depth, given, lasti_slots or {}
    )
    temporaries: set[str] = set()
    depths = stack_depths(canonical)
    prefix = fresh_prefix(canonical, _TAIL)
    # what runs until a tail call goes on: behind ``at``, or at ``exits``
    ends = set(exits or ()) - {at}
    kept = reached(canonical, at if start is None else start, ends, {(at, after) for after in resumes})
    for index in sorted(kept):
        instr = canonical.instructions[index]
        if index == at:
            temporaries |= _breaking(assembly, instr, resumes, depths, prefix, places, catches)
        elif exits and index in exits:
            temporaries |= emit_exit(assembly, instr, exits, depths, prefix, places)
        else:
            assembly.emit_copy(instr, places, catches)
    assembly.mark(places[-1])
    if unbound_slots:
        temporaries.add(NO_VALUE)
    made = finish_function(assembly, canonical, argument_names(canonical, given), temporaries)
    return Continuation(encode(made), made, at, given, made.freevars, canonical.cellvars)


# ---------------------------------------------------------------------------------------------------------


def check_plain(code: CanonicalCode) -> None:
    if code.is_generator:
        raise Unsupported("a generator or coroutine cannot be resumed as a function", break_id=BREAK_ID)


@remembered
def _uses_bare_super(code: CanonicalCode) -> bool:
    if "__class__" not in code.freevars or not code.argcount:
        return False
    return any(instr.op == "LOAD_GLOBAL" and instr.arg == "super" for instr in code.instructions)


def argument_order(
    code: CanonicalCode,
    stack_depth: int,
    bound: Collection[str],
    unbound_slots: Collection[int],
    lasti_slots: Mapping[int, int],
) -> tuple[Arg, ...]:
    boxed = frozenset(code.cellvars + code.freevars)
    left_out = {*unbound_slots, *lasti_slots}
    stack = [Arg("stack", k) for k in range(stack_depth) if k not in left_out]
    local = [Arg("local", name) for name in code.varnames if name in bound and name not in boxed]
    if not _uses_bare_super(code):
        return tuple(stack + local)
    first = code.varnames[0]
    if first in boxed:
        return (Arg("cell", first), *stack, *local)
    if first not in bound:
        raise Unsupported("super() after its first argument was deleted", break_id=BREAK_ID)
    front = Arg("local", first)
    return (front, *stack, *(arg for arg in local if arg != front))


def fresh_prefix(code: CanonicalCode, prefix: str) -> str:
    """``prefix``, made longer until no variable of ``code`` starts with it."""
    while any(name.startswith(prefix) for name in code.varnames):
        prefix += "_"
    return prefix


def variable_of(arg: Arg, stack_prefix: str) -> str:
    """The name of the local that receives an argument."""
    if arg.kind == "stack":
        return f"{stack_prefix}{arg.key}"
    return arg.key if arg.kind == "local" else _FIRST


def emit_prologue(
    assembly: Assembly,
    code: CanonicalCode,
    at: int,
    places: Places,
    stack_depth: int,
    given: tuple[Arg, ...],
    lasti_slots: Mapping[int, int],
    begin: Label | None = None,
) -> None:
    """Rebuild the stack from the arguments and jump to ``at``, or to ``begin`` if given."""
    assembly.loc = code.instructions[at].loc
    assembly.emit("RESUME", 0)
    passed = {arg.key for arg in given if arg.kind == "stack"}
    prefix = fresh_prefix(code, _STACK)
    for slot in range(stack_depth):
        if slot in lasti_slots:
            # the raising instruction itself may be out of reach here: a NOP at its line stands for it
            anchor = Label()
            assembly.emit("LASTI", anchor)
            assembly.mark(anchor)
            assembly.loc = code.instructions[lasti_slots[slot]].loc
            assembly.emit("NOP")
            assembly.loc = code.instructions[at].loc
        elif slot in passed:
            assembly.emit("LOAD_FAST", f"{prefix}{slot}")
            assembly.emit("DELETE_FAST", f"{prefix}{slot}")
        else:
            assembly.emit("LOAD_FAST_AND_CLEAR", NO_VALUE)
    assembly.emit("JUMP", places[at] if begin is None else begin)


def argument_names(code: CanonicalCode, given: tuple[Arg, ...]) -> tuple[str, ...]:
    """The names of the locals that receive the arguments of a continuation of ``code``."""
    prefix = fresh_prefix(code, _STACK)
    return tuple(variable_of(arg, prefix) for arg in given)


def finish_function(
    assembly: Assembly, code: CanonicalCode, arguments: tuple[str, ...], extra: Collection[str] = ()
) -> CanonicalCode:
    """Close a function of the named ``arguments`` whose body may use all variables of ``code``."""
    boxed = frozenset(code.cellvars + code.freevars)
    others = [name for name in (*code.varnames, *sorted(extra)) if name not in boxed]
    varnames = dict.fromkeys((*arguments, *others))
    freevars = tuple(dict.fromkeys((*code.cellvars, *code.freevars)))
    flags = code.flags & ~(CO_VARARGS | CO_VARKEYWORDS)
    return assembly.finish(
        code,
        argcount=len(arguments),
        posonlyargcount=0,
        kwonlyargcount=0,
        flags=flags,
        varnames=tuple(varnames),
        cellvars=(),
        freevars=freevars,
    )


def _breaking(
    assembly: Assembly,
    instr: Instr,
    resumes: Mapping[int, ResumeTarget],
    depths: list[int],
    prefix: str,
    places: Places,
    catches: Catches,
) -> set[str]:
    """Emit ``instr`` and the tails for where it goes; returns the temporaries the tails use."""
    temporaries: set[str] = set()
    assembly.emit_copy(instr, places, catches)
    assembly.loc = instr.loc
    tail_at_target = instr.op in JUMPS and instr.arg in resumes
    tail = Label()
    if tail_at_target:
        assembly.retarget(tail)
    after = instr.index + 1
    if instr.op not in NO_FALLTHROUGH:
        if after in resumes:
            temporaries |= emit_tail(assembly, resumes[after], depths[after], prefix)
        else:
            assembly.emit("JUMP", places[after])
    if tail_at_target:
        assembly.mark(tail)
        temporaries |= emit_tail(assembly, resumes[instr.arg], depths[instr.arg], prefix)
    return temporaries


def emit_exit(
    assembly: Assembly,
    instr: Instr,
    exits: Mapping[int, ResumeTarget],
    depths: list[int],
    prefix: str,
    places: Places,
) -> set[str]:
    """Emit the tail call that goes on at ``instr`` in its place; returns the temporaries used."""
    assembly.mark(places[instr.index])
    assembly.loc = instr.loc
    assembly.catch = None
    return emit_tail(assembly, exits[instr.index], depths[instr.index], prefix)


def emit_tail(assembly: Assembly, target: ResumeTarget, depth: int, prefix: str) -> set[str]:
    """Return the call of ``target`` with the stack of ``depth`` values and the locals, made when the frame is
    gone. Returns the names of the temporaries used, which start with ``prefix``.
    """
    temporaries = [f"{prefix}{slot}" for slot in range(depth)]
    for name in reversed(temporaries):
        assembly.emit("STORE_FAST", name)
    assembly.emit("LOAD_CONST", later)
    emit_bound(assembly, target.function, target.freevars)
    for arg in target.args:
        if arg.kind == "cell":
            assembly.emit("LOAD_DEREF", arg.key)
            continue
        assembly.emit("LOAD_FAST", temporaries[arg.key] if arg.kind == "stack" else arg.key)
    assembly.emit("CALL", (len(target.args) + 1, ()))
    assembly.emit("RETURN_VALUE")
    return set(temporaries)


def emit_bound(assembly: Assembly, function: object, freevars: tuple[str, ...]) -> None:
    """Push ``function``, or ``function.bind(cells of this frame)`` when it needs cells."""
    assembly.emit("LOAD_CONST", function)
    if not freevars:
        return
    assembly.emit("LOAD_METHOD", "bind")
    for name in freevars:
        assembly.emit("LOAD_CLOSURE", name)
    assembly.emit("BUILD_TUPLE", len(freevars))
    assembly.emit("CALL", (1, ()))
