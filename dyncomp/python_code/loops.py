"""Loop bodies as functions: one iteration of a loop, and the outer code that calls it per iteration.

``make_loop_body`` cuts one iteration out of a function. The *body function* takes the item (for loops), the
values of outer stack slots that the body reads, and locals; it returns ``(k, *locals)``:

* ``k == 0``: the iteration is over, go back to the header; then the locals of ``returns[0]``,
* ``k >= 1``: the loop is left towards instruction ``exits[k]``; then the locals of ``returns[k]``,
* ``k == -1``: ``(-1, value)``, the function returns ``value``,
* ``k == -2``: ``(-2, *locals, exception)``, where a handler is around the loop (``guarded``):
  the locals of ``on_error`` as they were when ``exception`` was raised.

``make_loop_driver`` makes the code around it: a continuation that starts at the loop's header and calls the
body function for every iteration, and then what goes on where the loop is left.

Locals that may be unbound where somebody may look (``LoopBody.sentinels``) travel as :data:`UNBOUND`: in the
body and in the driver such a local always holds a value, and every read of it that is not surely after an
assignment checks for the sentinel first and raises UnboundLocalError as the original would.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from types import CodeType

from dyncomp.dataclass import dataclass
from dyncomp.errors import Unsupported
from dyncomp.python_code.cells import unsure_cells
from dyncomp.python_code.continuation import stand_in
from dyncomp.python_code.edit import Assembly, Catch, Catches, Label, Places, places_and_catches
from dyncomp.python_code.flow import Flow, handlers_of, introspects_locals, program_handler, stack_depths
from dyncomp.python_code.instr import JUMPS, NO_FALLTHROUGH, NO_LOC, CanonicalCode, Instr
from dyncomp.python_code.loop_find import Loop, find_loops
from dyncomp.python_code.loop_region import BREAK_ID, HEADER, Region, find_region
from dyncomp.python_code.resume import (
    NO_VALUE,
    Arg,
    Continuation,
    ResumeTarget,
    argument_names,
    argument_order,
    canonical_of,
    emit_bound,
    emit_exit,
    emit_prologue,
    emit_tail,
    finish_function,
    fresh_prefix,
    needed_locals,
)
from dyncomp.python_code.transfers import transfer_loc
from dyncomp.python_code.versions import encode

__all__ = ["UNBOUND", "Loop", "LoopBody", "find_loops", "make_loop_body", "make_loop_driver"]


class Unbound:
    """The type of :data:`UNBOUND`, which stands for a local variable without a value."""

    def __repr__(self) -> str:
        return "<unbound>"

    def __reduce__(self) -> str:
        return "UNBOUND"


UNBOUND = Unbound()
RETURNED = -1
FAILED = -2


@dataclass(frozen=True, eq=False)
class LoopBody:
    """One iteration of ``loop`` as a function body (see the module's docstring).

    ``args`` have the kinds "item", "stack" (``key``: slot of the outer stack, 0 = bottom) and "local". A
    function of ``code`` needs a closure of cells for ``freevars`` in that order. ``pops[k]`` is how many
    values of the outer stack the body took off before exit k. ``bound`` and ``start`` are as given to
    :func:`make_loop_body`.
    """

    canonical: CanonicalCode
    loop: Loop
    args: tuple[Arg, ...]
    freevars: tuple[str, ...]
    exits: dict[int, int]
    pops: dict[int, int]
    returns: dict[int, tuple[str, ...]]
    sentinels: frozenset[str]
    region: frozenset[int]
    may_return: bool
    on_error: tuple[str, ...]
    guarded: bool
    bound: frozenset[str]
    start: int

    @cached_property
    def code(self) -> CodeType:
        """Stands in for :meth:`plain_code`."""
        return stand_in(self.canonical, self.canonical.arg_names, self.freevars)

    @cached_property
    def _encoded(self) -> CodeType:
        return encode(self.canonical)

    def plain_code(self) -> CodeType:
        """The body as plain Python runs it."""
        return self._encoded


class Variables:
    """Which locals an iteration takes, gives back, and keeps as sentinels."""

    def __init__(
        self, code: CanonicalCode, loop: Loop, region: Region, bound: Collection[str], start: int
    ) -> None:
        flow = Flow.of(code)
        self.flow = flow
        all_names = (1 << len(flow.names)) - 1
        looks = introspects_locals(code, start)
        self.assigned = flow.assigned(flow.mask(bound), loop.header)
        live = [all_names] * len(code.instructions) if looks else flow.live()
        written, used = self._touched(code, region)
        targets = {HEADER: loop.header, **region.exits}
        needed = {k: written & live[target] for k, target in targets.items()}
        handler = program_handler(code, handlers_of(code), loop.header)
        # what the loop assigns and a handler around it may read: it must see the locals as they were
        on_error = live[handler.target] & written if handler is not None else 0
        sentinels = 0
        for k, target in targets.items():
            sentinels |= needed[k] & ~self.assigned[target]
        for index in region.nodes:
            sentinels |= on_error & ~self.assigned[index]
        if looks and sentinels:
            raise Unsupported(
                "a loop with maybe unbound locals where locals can be looked at", break_id=BREAK_ID
            )
        at_header = self.assigned[loop.header]
        self.arguments = flow.members(used & live[loop.header] & (at_header | sentinels))
        self.returns = {k: flow.members(mask) for k, mask in needed.items()}
        self.sentinel_mask = sentinels
        self.sentinels = frozenset(flow.members(sentinels))
        self.on_error = flow.members(on_error)
        # a handler around the loop is to find the traceback of the body alone, as if it were in the frame
        self.guarded = handler is not None

    def _touched(self, code: CanonicalCode, region: Region) -> tuple[int, int]:
        written = used = 0
        for index in region.nodes:
            op, arg = code.instructions[index].op, code.instructions[index].arg
            if op in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
                written |= self.flow.bit.get(arg, 0)
            if op in ("LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
                used |= self.flow.bit.get(arg, 0)
        return written, used

    def is_unsure(self, instr: Instr) -> bool:
        """Whether ``instr`` touches a sentinel local that may be unbound there."""
        mask = self.flow.bit.get(instr.arg, 0)
        return bool(mask & self.sentinel_mask & ~self.assigned[instr.index])


def make_loop_body(
    code: CodeType | CanonicalCode, loop: Loop, bound: Collection[str], start: int = 0
) -> LoopBody:
    """One iteration of ``loop`` as a function; ``bound`` names the locals bound where the loop is entered,
    ``start`` is where the frame began.

    Raises Unsupported where an iteration cannot be cut out: yields, returns through a ``finally`` around the
    loop.
    """
    canonical = canonical_of(code)
    if loop.suspends or canonical.is_generator:
        raise Unsupported("a loop that yields or awaits", break_id=BREAK_ID)
    region = find_region(canonical, loop)
    _check_super(canonical, region)
    variables = Variables(canonical, loop, region, bound, start)
    args = _body_arguments(loop, region, variables)
    made, may_return = _assemble_body(canonical, loop, region, variables, args)
    return LoopBody(
        canonical=made,
        loop=loop,
        args=args,
        freevars=made.freevars,
        exits=dict(region.exits),
        pops=dict(region.pops),
        returns=variables.returns,
        sentinels=variables.sentinels,
        region=frozenset(region.nodes),
        may_return=may_return,
        on_error=variables.on_error,
        guarded=variables.guarded,
        bound=frozenset(bound),
        start=start,
    )


def _check_super(code: CanonicalCode, region: Region) -> None:
    """``super()`` without arguments looks at the frame's first argument, which the body function lacks."""
    if "__class__" not in code.freevars:
        return
    inside = (code.instructions[index] for index in region.nodes)
    if any(instr.op == "LOAD_GLOBAL" and instr.arg == "super" for instr in inside):
        raise Unsupported("super() in a loop body", break_id=BREAK_ID)


def _body_arguments(loop: Loop, region: Region, variables: Variables) -> tuple[Arg, ...]:
    item = [Arg("item", 0)] if loop.kind == "for" else []
    stack = [Arg("stack", slot) for slot in sorted(region.read_slots)]
    return (*item, *stack, *(Arg("local", name) for name in variables.arguments))


def _variable(arg: Arg, item: str, stack_prefix: str) -> str:
    if arg.kind == "item":
        return item
    return f"{stack_prefix}{arg.key}" if arg.kind == "stack" else arg.key


def _assemble_body(
    code: CanonicalCode, loop: Loop, region: Region, variables: Variables, args: tuple[Arg, ...]
) -> tuple[CanonicalCode, bool]:
    assembly = Assembly(unsure_cells(code))
    places, catches = places_and_catches(code)
    stubs = {k: Label() for k in variables.returns}
    item, stack_prefix = fresh_prefix(code, ".item"), fresh_prefix(code, ".stack")
    assembly.loc = code.instructions[loop.header].loc
    assembly.emit("RESUME", 0)
    names = [_variable(arg, item, stack_prefix) for arg in args]
    emit_sentinels(assembly, variables.sentinels.difference(names))
    for slot in range(loop.depth):
        if slot in region.read_slots:
            assembly.emit("LOAD_FAST", f"{stack_prefix}{slot}")
            assembly.emit("DELETE_FAST", f"{stack_prefix}{slot}")
        else:
            assembly.emit("LOAD_CONST", None)
    if loop.kind == "for":
        assembly.emit("LOAD_FAST", item)
        assembly.emit("DELETE_FAST", item)
    assembly.emit("JUMP", places[region.entry])
    failed = Catch(Label(), 0, False) if variables.guarded else None
    may_return = _emit_region(assembly, code, region, variables, places, catches, stubs, failed)
    _emit_stubs(assembly, stubs, variables)
    if failed is not None:
        _emit_failure(assembly, failed, variables)
    made = finish_function(assembly, code, tuple(names))
    return made, may_return


def emit_sentinels(assembly: Assembly, names: Collection[str]) -> None:
    for name in sorted(names):
        assembly.emit("LOAD_CONST", UNBOUND)
        assembly.emit("STORE_FAST", name)


def _emit_region(
    assembly: Assembly,
    code: CanonicalCode,
    region: Region,
    variables: Variables,
    places: Places,
    catches: Catches,
    stubs: dict[int, Label],
    failed: Catch | None,
) -> bool:
    """Copy the region; edges out of it go to stubs, exceptions that would leave the function to ``failed``.
    Returns whether the function may return from inside."""
    may_return = False
    order = sorted(region.nodes)
    for position, index in enumerate(order):
        instr = code.instructions[index]
        catch = failed if region.is_outer(index) else catches[index]
        assembly.mark(places[index])
        assembly.loc = instr.loc
        assembly.catch = catch
        if instr.op == "RETURN_VALUE":
            may_return = True
            assembly.emit("LOAD_CONST", RETURNED)
            assembly.emit("SWAP", 2)
            assembly.emit("BUILD_TUPLE", 2)
            assembly.emit("RETURN_VALUE")
            continue
        if instr.op in JUMPS:
            assembly.emit(instr.op, _resolve(region, instr.index, instr.arg, places, stubs))
        else:
            _emit_checked(assembly, instr, variables)
        if instr.op in NO_FALLTHROUGH:
            continue
        after = index + 1
        leaves = region.code_of((index, after)) is not None
        if leaves or position + 1 == len(order) or order[position + 1] != after:
            assembly.emit("JUMP", _resolve(region, index, after, places, stubs))
    assembly.catch = None
    return may_return


def _resolve(region: Region, source: int, target: int, places: Places, stubs: dict[int, Label]) -> Label:
    k = region.code_of((source, target))
    return places[target] if k is None else stubs[k]


def _emit_checked(assembly: Assembly, instr: Instr, variables: Variables) -> None:
    """Copy an instruction, looking for the sentinel before it reads a maybe unbound local."""
    op, name = instr.op, instr.arg
    assembly.emit_check(instr)
    if op not in ("LOAD_FAST", "DELETE_FAST") or name not in variables.sentinels:
        assembly.emit(op, name)
        return
    if variables.is_unsure(instr):
        _emit_check(assembly, name)
    if op == "LOAD_FAST":
        assembly.emit(op, name)
    else:
        assembly.emit("LOAD_CONST", UNBOUND)
        assembly.emit("STORE_FAST", name)


def emit_around(
    assembly: Assembly, instr: Instr, variables: Variables, places: Places, catches: Catches
) -> None:
    """Copy an instruction of the code around the loop."""
    assembly.mark(places[instr.index])
    assembly.loc = instr.loc
    assembly.catch = catches[instr.index]
    if instr.op in JUMPS:
        assembly.emit(instr.op, places[instr.arg])
    else:
        _emit_checked(assembly, instr, variables)


def _emit_check(assembly: Assembly, name: str) -> None:
    """Raise what CPython raises for an unbound local if ``name`` holds the sentinel."""
    bound = Label()
    assembly.emit("LOAD_FAST", name)
    assembly.emit("LOAD_CONST", UNBOUND)
    assembly.emit("IS_OP", False)
    assembly.emit("POP_JUMP_IF_FALSE", bound)
    assembly.emit("LOAD_CONST", UnboundLocalError)
    assembly.emit(
        "LOAD_CONST", f"cannot access local variable '{name}' where it is not associated with a value"
    )
    assembly.emit("CALL", (1, ()))
    assembly.emit("RAISE_VARARGS", 1)
    assembly.mark(bound)


def _emit_stubs(assembly: Assembly, stubs: dict[int, Label], variables: Variables) -> None:
    assembly.loc = NO_LOC
    for k, label in stubs.items():
        assembly.mark(label)
        assembly.emit("LOAD_CONST", k)
        for name in variables.returns[k]:
            assembly.emit("LOAD_FAST", name)
        assembly.emit("BUILD_TUPLE", len(variables.returns[k]) + 1)
        assembly.emit("RETURN_VALUE")


def _emit_failure(assembly: Assembly, failed: Catch, variables: Variables) -> None:
    """Give the exception (which the machine puts on the stack) back with the locals that a handler reads."""
    assembly.mark(failed.target)
    assembly.emit("LOAD_CONST", FAILED)
    assembly.emit("SWAP", 2)
    for name in variables.on_error:
        assembly.emit("LOAD_FAST", name)
        assembly.emit("SWAP", 2)
    assembly.emit("BUILD_TUPLE", len(variables.on_error) + 2)
    assembly.emit("RETURN_VALUE")


# ---------------------------------------------------------------------------------------------------------
# the driver


def make_loop_driver(
    code: CodeType | CanonicalCode,
    loop: Loop,
    body: LoopBody,
    body_callable: object,
    *,
    bound: Collection[str],
    unbound_slots: Collection[int] = (),
    resumes: Mapping[int, ResumeTarget] | None = None,
    keep: Collection[str] = (),
    start: int = 0,
) -> Continuation:
    """``code`` from the header of ``loop`` on, each iteration a call of ``body_callable``.

    ``body_callable`` becomes a constant; it is called with the arguments of ``body.args`` and returns what
    the body function would. When ``body.freevars`` is not empty, ``body_callable.bind(cells)`` is called
    where the loop is entered and its result per iteration. ``bound`` must be the set that ``body`` was made
    with. The stack that the driver takes is the one before the header (``loop.depth`` values, a for loop's
    iterator on top). Where the loop is left towards a key of ``resumes``, or a handler leads to one, that
    function is called outside of all handlers and its result returned; elsewhere the driver goes on as the
    original. ``keep``: locals to pass though nothing reads them any more. ``start``: where the
    frame began.
    """
    canonical = canonical_of(code)
    region = find_region(canonical, loop)
    variables = Variables(canonical, loop, region, bound, start)
    passed = (*needed_locals(canonical, loop.header, bound, start), *keep)
    given = argument_order(canonical, loop.depth, passed, unbound_slots, {})
    assembly = Assembly(unsure_cells(canonical))
    places, catches = places_and_catches(canonical)
    begin = Label()
    emit_prologue(assembly, canonical, loop.header, places, loop.depth, given, {}, begin)
    assembly.mark(begin)
    taken = {arg.key for arg in given if arg.kind == "local"}
    emit_sentinels(assembly, variables.sentinels - taken)
    assembly.mark(places[loop.header])
    temporaries = emit_driver(
        assembly, canonical, loop, body, body_callable, variables, places, catches, resumes or {}
    )
    if unbound_slots:
        temporaries.add(NO_VALUE)
    depths, prefix = stack_depths(canonical), fresh_prefix(canonical, ".tail")
    for instr in canonical.instructions:
        if instr.index == loop.header:
            continue
        if resumes and instr.index in resumes:
            temporaries |= emit_exit(assembly, instr, resumes, depths, prefix, places)
            continue
        emit_around(assembly, instr, variables, places, catches)
        if instr.index + 1 == loop.header and instr.op not in NO_FALLTHROUGH:
            assembly.emit("JUMP", places[loop.header])
    assembly.mark(places[-1])
    names = argument_names(canonical, given)
    made = finish_function(assembly, canonical, names, temporaries)
    return Continuation(encode(made), made, loop.header, given, made.freevars, canonical.cellvars)


def emit_driver(
    assembly: Assembly,
    code: CanonicalCode,
    loop: Loop,
    body: LoopBody,
    body_callable: object,
    variables: Variables,
    places: Places,
    catches: Catches,
    resumes: Mapping[int, ResumeTarget],
) -> set[str]:
    """The loop itself, entered here, left to the places of the original code or to what ``resumes`` says.
    Returns the names of the temporaries."""
    ways_out = {target: Label() for target in resumes}
    function, item = fresh_prefix(code, ".body"), fresh_prefix(code, ".item")
    header = code.instructions[loop.header]
    again = Label()
    assembly.loc = header.loc
    assembly.catch = catches[loop.header]
    emit_bound(assembly, body_callable, body.freevars)
    assembly.emit("STORE_FAST", function)
    assembly.mark(again)
    if loop.kind == "for":
        assembly.emit("FOR_ITER", ways_out.get(header.arg, places[header.arg]))
        assembly.emit("STORE_FAST", item)
    assembly.emit("LOAD_FAST", function)
    for position, arg in enumerate(body.args):
        if arg.kind == "stack":
            assembly.emit("COPY", loop.depth - arg.key + 1 + position)
            continue
        name = item if arg.kind == "item" else arg.key
        assembly.emit("LOAD_FAST", name)
        if arg.kind == "item" or arg.key in body.returns[HEADER]:
            assembly.emit("DELETE_FAST", name)  # nobody reads it before it is assigned anew
    assembly.loc = transfer_loc(header.loc)
    assembly.emit("CALL", (len(body.args), ()))
    assembly.loc = header.loc
    _emit_dispatch(assembly, body, variables, again, places, ways_out)
    assembly.catch = None
    temporaries = {function, item}
    depths = stack_depths(code)
    prefix = fresh_prefix(code, ".tail")
    for target, label in ways_out.items():
        assembly.mark(label)
        assembly.loc = code.instructions[target].loc
        temporaries |= emit_tail(assembly, resumes[target], depths[target], prefix)
    return temporaries


def _emit_dispatch(
    assembly: Assembly,
    body: LoopBody,
    variables: Variables,
    again: Label,
    places: Places,
    ways_out: dict[int, Label],
) -> None:
    """Go where the returned tuple says, its locals stored."""
    choices = [HEADER, *sorted(body.exits)]
    if body.may_return:
        choices.append(RETURNED)
    if body.guarded:
        choices.append(FAILED)
    for position, k in enumerate(choices):
        other = Label()
        if position + 1 < len(choices):
            assembly.emit("COPY", 1)
            assembly.emit("LOAD_CONST", 0)
            assembly.emit("BINARY_SUBSCR")
            assembly.emit("LOAD_CONST", k)
            assembly.emit("COMPARE_OP", "==")
            assembly.emit("POP_JUMP_IF_FALSE", other)
        if k == RETURNED:
            assembly.emit("LOAD_CONST", 1)
            assembly.emit("BINARY_SUBSCR")
            assembly.emit("RETURN_VALUE")
            assembly.mark(other)
            continue
        names = variables.on_error if k == FAILED else variables.returns[k]
        assembly.emit("UNPACK_SEQUENCE", len(names) + 1 + (k == FAILED))
        assembly.emit("POP_TOP")
        for name in names:
            assembly.emit("STORE_FAST", name)
        if k == FAILED:
            assembly.emit("RERAISE", 0)  # which leaves the traceback as the body's frame began it
            continue
        for _ in range(body.pops.get(k, 0)):
            assembly.emit("POP_TOP")
        target = body.exits.get(k, 0)
        assembly.emit("JUMP", again if k == HEADER else ways_out.get(target, places[target]))
        assembly.mark(other)
