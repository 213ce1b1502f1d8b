"""The last part of a replacement function: return, break and resume, run a loop, or go on in plain Python."""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from ...hook._hook import later, run
from ...python_code.cells import in_place_of_cells
from ...python_code.continuation import PlaceToResume
from ...python_code.flow import Flow, stack_depths
from ...python_code.gates import exits_to_go_on_at, gated_continuation
from ...python_code.handler_exits import handler_exits
from ...python_code.instr import JUMPS, Instr, pops_pushes
from ...python_code.loops import Loop, LoopBody, make_loop_driver
from ...python_code.resume import Arg, ResumeTarget, make_break_tail, make_continuation
from ...python_code.transfers import pass_on
from ..breaks import Skip
from ..frames import Frame
from ..loops.scalar_loop_gates import can_have_gate, gates_of, is_enabled, note_owner
from ..sizes.dims import hand_on_sizes
from ..terminators import BreakEnd, End, LoopEnd, PlainEnd, ReturnEnd, leave_comprehension
from .codegen import UNBOUND_SLOT, Codegen
from .lifetimes import locals_needed, refuse_suspended
from .loop_driver import assigned_in, changed_by, closes_when_left, emit_loop, loop_body
from .pieces import place_at, resume_function_of
from .plain import plain_function


def emit_end(cg: Codegen, end: End) -> None:
    """Write what happens after the graph."""
    cg.frames = getattr(end, "frames", [])
    refuse_suspended(cg.frames)
    for frame in cg.frames:
        leave_comprehension(cg.tracer, frame)
    if isinstance(end, ReturnEnd):
        result = cg.value(end.value)
        cg.replay_effects()
        cg.line(f"return {result}")
    elif isinstance(end, BreakEnd):
        _emit_break(cg, end)
    elif isinstance(end, LoopEnd):
        _emit_loop_end(cg, end)
    else:
        assert isinstance(end, PlainEnd)
        _emit_plain(cg, end)


# -- continuations ---------------------------------------------------------------------------------
class Rest(NamedTuple):
    """What is left of a frame, as source: behind ``return``, and where its result is needed."""

    returned: str
    value: str


def resume_call(
    cg: Codegen,
    frame: Frame,
    at: int,
    stack: list[str],
    local: Callable[[str], str],
    bound: tuple[str, ...] | None = None,
) -> Rest:
    """What goes on in ``frame`` at instruction ``at`` with the given stack. ``bound``: the locals to pass
    (default: those the rest needs)."""
    direct = _trivial_rest(cg, frame, at, stack)
    if direct is not None:
        return Rest(direct, direct)
    if bound is None:
        bound = locals_needed(cg, frame, at, set(frame.locals))
    made = cached_continuation(cg, frame, at, len(stack), bound, unbound_slots(stack))
    hand_on_sizes(cg.tracer, made.code, frame.locals)
    return call_target(cg, frame, resume_function(cg, frame, made), made.args, made.freevars, stack, local)


def call_target(
    cg: Codegen,
    frame: Frame,
    function: types.FunctionType,
    args: tuple[Arg, ...],
    freevars: tuple[str, ...],
    stack: list[str],
    local: Callable[[str], str],
) -> Rest:
    """``function(*args)`` of a continuation, with its cells bound; where its result is needed, called from
    inside of the frames that were inlined between the root and ``frame``."""
    texts = []
    for arg in args:
        if arg.kind == "stack":
            texts.append(stack[arg.key])
        elif arg.kind == "cell":
            contents = frame.cells[arg.key].contents
            assert contents is not None
            texts.append(cg.value(contents))
        else:
            texts.append(local(arg.key))
    callee = cg.constant(function)
    if freevars:
        cells = ", ".join(cg.value(frame.cells[name]) for name in freevars)
        callee = f"{callee}.bind(({cells},))"
    call = f"{cg.constant(later)}({', '.join([callee, *texts])})"
    outer = [pass_on(cg.tracer.config.resume_functions, f) for f in cg.frames[1 : cg.frames.index(frame)]]
    first, *others = map(cg.constant, [*outer, run])
    return Rest(call, f"{first}({', '.join([*others, call])})")


def _trivial_rest(cg: Codegen, frame: Frame, at: int, stack: list[str]) -> str | None:
    """The frame's result where nothing but constants and a return is left."""
    rest = list(stack)
    index = at
    for _ in range(6):
        instr = frame.code.instructions[index]
        index += 1
        if instr.op == "RETURN_VALUE":
            return rest[-1]
        if instr.op == "POP_TOP" and rest:
            rest.pop()
        elif instr.op == "LOAD_CONST" and type(instr.arg) in (type(None), bool, int, str, float):
            rest.append(cg.constant(instr.arg))
        elif instr.op == "JUMP" and instr.arg > index:
            index = instr.arg
        elif instr.op != "NOP":
            return None
    return None


def unbound_slots(stack: list[str]) -> tuple[int, ...]:
    """Slots that hold no value (the saved variables of inlined comprehensions)."""
    return tuple(slot for slot, text in enumerate(stack) if text == UNBOUND_SLOT)


def cached_continuation(
    cg: Codegen, frame: Frame, at: int, depth: int, bound: tuple[str, ...], unbound: tuple[int, ...]
) -> PlaceToResume:
    return place_at(cg.tracer.config, frame.raw_code, frame.code, at, depth, bound, unbound)


def resume_function(cg: Codegen, frame: Frame, made: Any) -> Any:
    """The C callable that captures and runs a piece of what ``frame`` runs."""
    return resume_function_of(cg.tracer.config, made, frame.globals[0], frame.code)


# -- frames around a break ----------------------------------------------------------------------------
class Unwinding:
    """The values that all frames still need, put into names before anything else runs."""

    def __init__(self, cg: Codegen, frames: list[Frame]) -> None:
        self.cg = cg
        self.frames = frames
        self.stacks: list[list[str]] = []

    def prepare(
        self, places: list[int], also: list[str] | None = None, rebound: Collection[str] = ()
    ) -> None:
        """``places``: where the innermost frame may go on; ``also``: further locals of it that are needed;
        ``rebound``: those that what follows at once gives new values."""
        cg = self.cg
        for frame in self.frames:
            innermost = frame is self.frames[-1]
            self.stacks.append([cg.value(v) for v in frame.stack])
            for at in places if innermost else [frame.current + 1]:
                for name in locals_needed(cg, frame, at, set(frame.locals)):
                    cg.value(frame.locals[name])
            for name in also or [] if innermost else []:
                cg.value(frame.locals[name])
            for cell in frame.cells.values():
                if cell.source is None:
                    cg.value(cell)
            resumption = frame.resumption
            if resumption is not None and resumption.value is not None:
                cg.value(resumption.value)
        cg.replay_effects()
        root = self.frames[0]
        cg.release({name: v for name, v in root.locals.items() if name not in rebound}, root.cells)

    def local(self, frame: Frame) -> Callable[[str], str]:
        return lambda name: self.cg.value(frame.locals[name])

    def leave(self, rest: Rest) -> None:
        """Go on with the innermost frame and then with its callers, outwards."""
        cg = self.cg
        for position in range(len(self.frames) - 1, 0, -1):
            callee, caller = self.frames[position], self.frames[position - 1]
            assert callee.resumption is not None
            name = cg.fresh("r")
            cg.stand_at(self.frames[0])
            cg.line(f"{name} = {rest.value}")
            given = callee.resumption.value
            stack = [*self.stacks[position - 1], name if given is None else cg.value(given)]
            rest = resume_call(cg, caller, caller.current + 1, stack, self.local(caller))
        cg.line(f"return {rest.returned}")


def _emit_break(cg: Codegen, end: BreakEnd) -> None:
    frame = end.frames[-1]
    instr = end.instr
    form = _FORMS.get(instr.op)
    if form is None or frame.info.in_try[instr.index] or len(end.frames) > 1 or _is_bare_super(frame, instr):
        _emit_tail(cg, end)
        return
    cg.stand_at(frame)
    form(cg, end, Unwinding(cg, end.frames), instr)


def _after(instr: Instr) -> list[int]:
    places = [] if instr.op in ("JUMP", "RETURN_VALUE", "RAISE_VARARGS") else [instr.index + 1]
    return places + ([instr.arg] if instr.op in JUMPS else [])


def _emit_tail(cg: Codegen, end: BreakEnd) -> None:
    """Run the instruction in a copy of the original code, under its own exception handlers; the copy then
    calls the continuation. The frames outside go on with its result."""
    frame = end.frames[-1]
    instr = end.instr
    unwinding = Unwinding(cg, end.frames)
    unwinding.prepare([instr.index, *_after(instr)])
    bound = locals_needed(cg, frame, instr.index, set(frame.locals))
    stack = unwinding.stacks[-1]
    resumes = {}
    for at in _after(instr):
        resumes[at] = _resume_target(cg, frame, instr, at, bound, stack)
    tail = make_break_tail(
        frame.code,
        instr.index,
        resumes,
        stack_depth=len(stack),
        bound=bound,
        unbound_slots=unbound_slots(stack),
        exits=_after_handlers(cg, frame, instr.index, stack),
    )
    function = plain_function(cg, frame, tail)
    cg.stand_at(cg.frames[0])
    unwinding.leave(call_target(cg, frame, function, tail.args, tail.freevars, stack, unwinding.local(frame)))


def _resume_target(
    cg: Codegen, frame: Frame, instr: Instr, at: int, bound: tuple[str, ...], stack: list[str]
) -> ResumeTarget:
    jumped = at != instr.index + 1
    pops, pushes = pops_pushes(instr.op, instr.arg, jumped)
    still = set(bound)
    if instr.op == "DELETE_FAST":
        still.discard(instr.arg)
    if instr.op == "STORE_FAST":
        still.add(instr.arg)
    after = locals_needed(cg, frame, at, still)
    kept = len(stack) - pops
    unbound = unbound_slots(stack[:kept])
    made = cached_continuation(cg, frame, at, kept + pushes, after, unbound)
    return ResumeTarget.of(made, resume_function(cg, frame, made))


def _emit_plain(cg: Codegen, end: PlainEnd) -> None:
    frame = end.frames[-1]
    unwinding = Unwinding(cg, end.frames)
    at = frame.current
    unwinding.prepare([at])
    bound = locals_needed(cg, frame, at, set(frame.locals))
    stack = unwinding.stacks[-1]
    unbound = unbound_slots(stack)
    made = make_continuation(frame.code, at, stack_depth=len(stack), bound=bound, unbound_slots=unbound)
    function = plain_function(cg, frame, made)
    cg.stand_at(cg.frames[0])
    unwinding.leave(call_target(cg, frame, function, made.args, made.freevars, stack, unwinding.local(frame)))


def _emit_loop_end(cg: Codegen, end: LoopEnd) -> None:
    frame = end.frames[-1]
    if end.is_native:
        _emit_native_loop(cg, end)
        return
    if cg.tracer.config.is_plain_body(loop_body(cg, frame, end.loop).code):
        _emit_plain_loop(cg, end)
        return
    unwinding = Unwinding(cg, end.frames)
    cg.stand_at(cg.frames[0])
    if frame.info.in_try[end.loop.header] or len(end.frames) > 1:
        _emit_driver(cg, frame, end.loop, unwinding)
    else:
        emit_loop(cg, frame, end.loop, unwinding, resume_function, resume_call)


def _emit_driver(cg: Codegen, frame: Frame, loop: Loop, unwinding: Unwinding) -> None:
    """Run a loop inside ``try`` or ``with`` under its own exception handlers: in a copy of the original code
    that calls the captured body for each iteration. Where the loop is left, capture goes on."""
    body = loop_body(cg, frame, loop)
    if loop.kind == "for" and (body.exits or body.may_return) and closes_when_left(cg, frame.stack[-1]):
        raise Skip("a loop inside of try or with that closes a generator when it is left")
    bound = frozenset(frame.locals)
    unwinding.prepare([loop.header])
    stack = unwinding.stacks[-1]
    driver = make_loop_driver(
        frame.code,
        loop,
        body,
        resume_function(cg, frame, body),
        bound=bound,
        unbound_slots=unbound_slots(stack),
        resumes=_after_loop(cg, frame, loop, body, stack),
        keep=locals_needed(cg, frame, loop.header, bound),
        start=frame.start,
    )
    function = plain_function(cg, frame, driver)
    unwinding.leave(
        call_target(cg, frame, function, driver.args, driver.freevars, stack, unwinding.local(frame))
    )


def _after_loop(
    cg: Codegen, frame: Frame, loop: Loop, body: LoopBody, stack: list[str]
) -> dict[int, ResumeTarget]:
    """The continuations where a loop under handlers is left, and where those handlers are through. Where a
    local may be unbound there is none: the rest then runs as plain Python."""
    header = frame.code.instructions[loop.header]
    kept = {target: len(stack) - body.pops.get(k, 0) for k, target in body.exits.items()}
    if loop.kind == "for":
        kept[header.arg] = len(stack) - 1
    depths = stack_depths(frame.code)
    after_handlers = handler_exits(frame.code, loop.header)
    for place in after_handlers:
        kept.setdefault(place, depths[place])
    changed = {}
    for place in kept:
        exits = [k for k, target in body.exits.items() if target == place]
        exits += [0] if loop.kind == "for" and header.arg == place else []
        changed[place] = changed_by(frame, body, exits or body.returns, place in after_handlers)
    return _sure_targets(cg, frame, loop.header, kept, stack, changed)


def _after_handlers(cg: Codegen, frame: Frame, at: int, stack: list[str]) -> dict[int, ResumeTarget]:
    """The continuations where a plain copy is through with the handlers of instruction ``at``."""
    if frame.info.in_handler[at] or not frame.info.in_try[at]:
        return {}
    depths = stack_depths(frame.code)
    return _sure_targets(
        cg, frame, at, {place: depths[place] for place in handler_exits(frame.code, at)}, stack, {}
    )


def _sure_targets(
    cg: Codegen,
    frame: Frame,
    start: int,
    kept: dict[int, int],
    stack: list[str],
    changed: Mapping[int, Mapping[str, bool]],
) -> dict[int, ResumeTarget]:
    """Continuations at those of the places ``kept`` (with how much of the stack is left there) at which it is
    certain which locals are bound. ``start``: where the frame is now; ``changed``: see ``locals_needed``, by
    place."""
    if not kept:
        return {}
    flow = Flow.of(frame.code)
    bound_now = flow.mask(set(frame.locals))
    assigned = flow.assigned(bound_now, start)
    live = flow.live()
    possible = flow.maybe_assigned(bound_now, start)
    found = {}
    for target, depth in kept.items():
        if live[target] & possible[target] & ~assigned[target] or frame.info.in_handler[target]:
            continue
        if in_place_of_cells(frame.code)[target]:
            continue
        sure = set(flow.members(assigned[target] & possible[target]))
        bound = locals_needed(cg, frame, target, sure, changed.get(target))
        made = cached_continuation(cg, frame, target, depth, bound, unbound_slots(stack[:depth]))
        found[target] = ResumeTarget.of(made, resume_function(cg, frame, made))
    return found


def _emit_plain_loop(cg: Codegen, end: LoopEnd) -> None:
    """A loop without array work to speak of runs as the original code; where it is left, capture goes on."""
    frame = end.frames[-1]
    if is_enabled(cg.tracer.config) and can_have_gate(frame.code, end.loop):
        _emit_native_loop(cg, end)
        return
    header = frame.code.instructions[end.loop.header]
    body = loop_body(cg, frame, end.loop)
    unwinding = Unwinding(cg, end.frames)
    places = [*body.exits.values(), *([header.arg] if header.op == "FOR_ITER" else [])]
    unwinding.prepare([header.index, *places])
    bound = locals_needed(cg, frame, header.index, set(frame.locals))
    stack = unwinding.stacks[-1]
    targets = _after_loop(cg, frame, end.loop, body, stack)
    tail = make_break_tail(
        frame.code,
        header.index,
        {place: target for place, target in targets.items() if place in _after(header)},
        stack_depth=len(stack),
        bound=bound,
        unbound_slots=unbound_slots(stack),
        exits=targets,
    )
    function = plain_function(cg, frame, tail)
    cg.stand_at(cg.frames[0])
    unwinding.leave(call_target(cg, frame, function, tail.args, tail.freevars, stack, unwinding.local(frame)))


def _emit_native_loop(cg: Codegen, end: LoopEnd) -> None:
    """A loop that is compiled whole, if it runs for long: it stands in the original code, behind a gate."""
    frame = end.frames[-1]
    header = end.loop.header
    gates = gates_of(cg.tracer.config, frame.raw_code, frame.code, frame.globals[0])
    note_owner(gates, header, cg.tracer.code)
    kept = exits_to_go_on_at(frame.code, end.loop)
    depths = stack_depths(frame.code)
    kept.update({place: depths[place] for place in handler_exits(frame.code, header)})
    unwinding = Unwinding(cg, end.frames)
    unwinding.prepare([header, *kept])
    stack = unwinding.stacks[-1]
    bound = locals_needed(cg, frame, header, set(frame.locals))
    changed = {place: dict.fromkeys(assigned_in(frame, end.loop.body), True) for place in kept}
    made = gated_continuation(
        frame.code,
        header,
        gates,
        stack_depth=len(stack),
        bound=bound,
        unbound_slots=unbound_slots(stack),
        exits=_sure_targets(cg, frame, header, kept, stack, changed),
    )
    function = plain_function(cg, frame, made)
    cg.stand_at(cg.frames[0])
    unwinding.leave(call_target(cg, frame, function, made.args, made.freevars, stack, unwinding.local(frame)))


# -- breaking instructions as source ------------------------------------------------------------------
def _expression(template: Callable[[Any, list[str]], str]) -> Callable[..., None]:
    """An instruction that takes operands off the stack and pushes one result."""

    def form(cg: Codegen, end: BreakEnd, unwinding: Unwinding, instr: Instr) -> None:
        frame = end.frames[-1]
        unwinding.prepare([instr.index + 1])
        pops, _ = pops_pushes(instr.op, instr.arg, False)
        stack = unwinding.stacks[-1]
        operands = [_named(cg, text) for text in stack[len(stack) - pops :]]
        below = stack[: len(stack) - pops]
        name = cg.fresh("r")
        cg.line(f"{name} = {template(instr.arg, operands)}")
        unwinding.leave(resume_call(cg, frame, instr.index + 1, [*below, name], unwinding.local(frame)))

    return form


def _named(cg: Codegen, text: str) -> str:
    """An operand by name: ``0.real`` is no syntax, and Python warns of ``0[1]`` and ``x is 0``."""
    return text if text.isidentifier() else cg.temporary(text)


def _statement(template: Callable[[Any, list[str]], str]) -> Callable[..., None]:
    """An instruction that takes operands and pushes nothing."""

    def form(cg: Codegen, end: BreakEnd, unwinding: Unwinding, instr: Instr) -> None:
        frame = end.frames[-1]
        unwinding.prepare([instr.index + 1])
        pops, _ = pops_pushes(instr.op, instr.arg, False)
        stack = unwinding.stacks[-1]
        below = stack[: len(stack) - pops]
        operands = [_named(cg, text) for text in stack[len(stack) - pops :]]
        cg.line(template(instr.arg, operands))
        unwinding.leave(resume_call(cg, frame, instr.index + 1, below, unwinding.local(frame)))

    return form


def _branch(condition: str) -> Callable[..., None]:
    """A conditional jump: one continuation for each side."""

    def form(cg: Codegen, end: BreakEnd, unwinding: Unwinding, instr: Instr) -> None:
        frame = end.frames[-1]
        unwinding.prepare([instr.index + 1, instr.arg])
        *below, test = unwinding.stacks[-1]
        jumped = resume_call(cg, frame, instr.arg, below, unwinding.local(frame))
        fell = resume_call(cg, frame, instr.index + 1, below, unwinding.local(frame))
        cg.line(f"if {condition.format(test)}:")
        cg.line(f"    return {jumped.returned}")
        cg.line(f"return {fell.returned}")

    return form


def _raise(cg: Codegen, end: BreakEnd, unwinding: Unwinding, instr: Instr) -> None:
    unwinding.prepare([])
    stack = unwinding.stacks[-1]
    if instr.arg == 0:
        cg.line("raise")
    elif instr.arg == 1:
        cg.line(f"raise {stack[-1]}")
    else:
        cg.line(f"raise {stack[-2]} from {stack[-1]}")


def _call_text(arg: tuple[int, tuple[str, ...]], operands: list[str]) -> str:
    count, names = arg
    function, *args = operands
    split = count - len(names)
    parts = args[:split] + [f"{name}={value}" for name, value in zip(names, args[split:])]
    return f"{function}({', '.join(parts)})"


def _call_ex_text(has_kwargs: bool, operands: list[str]) -> str:
    stars = f", **{operands[2]}" if has_kwargs else ""
    return f"{operands[0]}(*{operands[1]}{stars})"


def _in_place(cg: Codegen, end: BreakEnd, unwinding: Unwinding, instr: Instr) -> None:
    frame = end.frames[-1]
    unwinding.prepare([instr.index + 1])
    *below, a, b = unwinding.stacks[-1]
    name = cg.fresh("r")
    if instr.arg.endswith("="):
        cg.line(f"{name} = {a}")
        cg.line(f"{name} {instr.arg} {b}")
    else:
        cg.line(f"{name} = {a} {instr.arg} {b}")
    unwinding.leave(resume_call(cg, frame, instr.index + 1, [*below, name], unwinding.local(frame)))


def _unpack(cg: Codegen, end: BreakEnd, unwinding: Unwinding, instr: Instr) -> None:
    frame = end.frames[-1]
    unwinding.prepare([instr.index + 1])
    *below, sequence = unwinding.stacks[-1]
    names = [cg.fresh("r") for _ in range(instr.arg)]
    cg.line(f"[{', '.join(names)}] = {sequence}")
    unwinding.leave(resume_call(cg, frame, instr.index + 1, below + names[::-1], unwinding.local(frame)))


def _is_bare_super(frame: Frame, instr: Instr) -> bool:
    """``super()`` looks at the frame that calls it: it runs in a copy of the original."""
    return (
        instr.op == "CALL"
        and instr.arg[0] == 0
        and frame.stack[-1].is_const
        and frame.stack[-1].const is super
    )


def _slice_text(arg: object, o: list[str]) -> str:
    return f"{o[0]}[{o[1]}]"


_FORMS: dict[str, Callable[..., None]] = {
    "CALL": _expression(_call_text),
    "CALL_FUNCTION_EX": _expression(_call_ex_text),
    "BINARY_OP": _in_place,
    "COMPARE_OP": _expression(lambda op, o: f"{o[0]} {op} {o[1]}"),
    "IS_OP": _expression(lambda invert, o: f"{o[0]} {'is not' if invert else 'is'} {o[1]}"),
    "CONTAINS_OP": _expression(lambda invert, o: f"{o[0]} {'not in' if invert else 'in'} {o[1]}"),
    "UNARY_NEGATIVE": _expression(lambda _, o: f"-{o[0]}"),
    "UNARY_POSITIVE": _expression(lambda _, o: f"+{o[0]}"),
    "UNARY_INVERT": _expression(lambda _, o: f"~{o[0]}"),
    "UNARY_NOT": _expression(lambda _, o: f"not {o[0]}"),
    "BINARY_SUBSCR": _expression(_slice_text),
    "LOAD_ATTR": _expression(lambda name, o: f"{o[0]}.{name}"),
    "LOAD_METHOD": _expression(lambda name, o: f"{o[0]}.{name}"),
    "STORE_ATTR": _statement(lambda name, o: f"{o[1]}.{name} = {o[0]}"),
    "DELETE_ATTR": _statement(lambda name, o: f"del {o[0]}.{name}"),
    "STORE_SUBSCR": _statement(lambda _, o: f"{o[1]}[{o[2]}] = {o[0]}"),
    "DELETE_SUBSCR": _statement(lambda _, o: f"del {o[0]}[{o[1]}]"),
    "UNPACK_SEQUENCE": _unpack,
    "POP_JUMP_IF_TRUE": _branch("{}"),
    "POP_JUMP_IF_FALSE": _branch("not {}"),
    "POP_JUMP_IF_NONE": _branch("{} is None"),
    "POP_JUMP_IF_NOT_NONE": _branch("{} is not None"),
    "RAISE_VARARGS": _raise,
}
