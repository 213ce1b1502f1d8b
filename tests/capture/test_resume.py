"""Continuations: every program is cut after every instruction, and goes on in a continuation."""

from __future__ import annotations

import types

import pytest

from dyncomp.hook._hook import later, run
from dyncomp.python_code.flow import Flow, stack_depths, successors
from dyncomp.python_code.resume import (
    ResumeTarget,
    make_break_tail,
    make_continuation,
    needed_locals,
)
from dyncomp.python_code.versions import decode
from tests.capture.resume_programs import PROGRAMS, calls_of, outcome


class Bindable:
    """What a tail calls: a function that still wants its cells."""

    def __init__(self, code, names):
        self.code = code
        self.names = names
        self.calls = 0

    def bind(self, cells):
        self.calls += 1
        return types.FunctionType(self.code, self.names, "resumed", None, cells)

    def __call__(self, *args):
        self.calls += 1
        return types.FunctionType(self.code, self.names, "resumed")(*args)


def function_of(code, like, closure):
    made = types.FunctionType(code, like.__globals__, like.__name__, like.__defaults__, closure)
    made.__kwdefaults__ = like.__kwdefaults__
    return made


def first_frame(function, args, kwargs=None):
    """Positional values for the canonical locals at entry, after argument binding by CPython itself."""
    code = function.__code__
    flags = code.co_flags
    given = list(args[: code.co_argcount])
    defaults = function.__defaults__ or ()
    missing = code.co_argcount - len(given)
    if missing:
        given += defaults[len(defaults) - missing :]
    keyword_only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    given += [(function.__kwdefaults__ or {})[name] for name in keyword_only]
    if flags & 4:
        given.append(tuple(args[code.co_argcount :]))
    if flags & 8:
        given.append(kwargs or {})
    return given


def cut(function, at):
    """``function`` cut after canonical instruction ``at``: (new function of the bound arguments, targets)."""
    canonical = decode(function.__code__)
    depths = stack_depths(canonical)
    flow = Flow.of(canonical)
    assigned = flow.assigned()
    instr = canonical.instructions[at]
    targets = {}
    for after in successors(instr):
        bound = needed_locals(canonical, after, flow.members(assigned[after]))
        unbound = [slot for slot, sure in flow.saved_slots()[after].items() if not sure]
        made = make_continuation(
            canonical, after, stack_depth=depths[after], bound=bound, unbound_slots=unbound
        )
        targets[after] = ResumeTarget.of(made, Bindable(made.code, function.__globals__))
    entry = canonical.arg_names
    plain = [name for name in entry if name not in canonical.cellvars]
    tail = make_break_tail(canonical, at, targets, stack_depth=0, bound=plain, start=0)
    return canonical, tail, targets


def run_cut(function, tail, canonical, args):
    values = dict(zip(canonical.arg_names, first_frame(function, args)))
    cells = dict(zip(canonical.freevars, function.__closure__ or ()))
    for name in canonical.cellvars:
        cells[name] = types.CellType(values[name]) if name in values else types.CellType()
    closure = tuple(cells[name] for name in tail.freevars)
    given = [values[arg.key] for arg in tail.args]
    made = types.FunctionType(tail.code, function.__globals__, "cut", None, closure)
    return run(later(made, *given))


def breakable(canonical):
    """Every reachable instruction but those of handlers that keep an address on the stack."""
    depths = stack_depths(canonical)
    for instr in canonical.instructions:
        at = instr.index
        in_handler = any(e.lasti and e.target <= at and depths[at] > e.depth for e in canonical.exceptions)
        no_cell = any(canonical.instructions[k].op == "MAKE_CELL" for k in successors(instr))
        if depths[at] >= 0 and not in_handler and not no_cell:
            yield at


@pytest.mark.parametrize("function, argument_tuples", PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_cut_after_every_instruction(function, argument_tuples):
    canonical = decode(function.__code__)
    resumed = 0
    for at in breakable(canonical):
        canonical, tail, targets = cut(function, at)
        for make in calls_of(function, argument_tuples):
            expected = outcome(function, *make())
            assert outcome(run_cut, function, tail, canonical, make()) == expected, at
        resumed += sum(target.function.calls for target in targets.values())
    assert resumed > len(canonical.instructions) / 4


def test_continuation_of_a_continuation():
    def program(a, b):
        out = []
        for i in range(a):
            try:
                out.append(b // (i - 1) + max(i, b))
            except ZeroDivisionError:
                out.append("zero")
        return out

    canonical = decode(program.__code__)
    depths = stack_depths(canonical)
    flow = Flow.of(canonical)
    assigned = flow.assigned()
    expected = program(4, 7)
    checked = 0
    for at in range(3, len(canonical.instructions), 3):
        if depths[at] < 0 or any(entry.target <= at for entry in canonical.exceptions):
            continue
        bound = needed_locals(canonical, at, flow.members(assigned[at]))
        first = make_continuation(canonical, at, stack_depth=depths[at], bound=bound)
        again = decode(first.code)
        inner_depths = stack_depths(again)
        inner_flow = Flow.of(again)
        inner_assigned = inner_flow.assigned()
        for inner in range(1, len(again.instructions) - 1, 2):
            if inner_depths[inner] < 0 or inner_depths[inner + 1] < 0:
                continue
            targets = {}
            for after in successors(again.instructions[inner]):
                names = needed_locals(again, after, inner_flow.members(inner_assigned[after]))
                made = make_continuation(again, after, stack_depth=inner_depths[after], bound=names)
                targets[after] = ResumeTarget.of(made, Bindable(made.code, globals()))
            second = make_break_tail(again, inner, targets, stack_depth=0, bound=again.arg_names, start=0)
            entry = Bindable(second.code, globals())
            order = ResumeTarget(entry, first.args, first.freevars)
            preceding = [
                k for k in range(at) if at in successors(canonical.instructions[k]) and depths[k] >= 0
            ]
            outer = make_break_tail(
                canonical, preceding[0], {at: order}, stack_depth=0, bound=["a", "b"], start=0
            )
            assert run(later(types.FunctionType(outer.code, globals()), 4, 7)) == expected
            checked += 1
    assert checked > 50


def test_unbound_slot_of_an_inlined_comprehension():
    def program(n):
        return [k + n for k in range(n)]

    canonical = decode(program.__code__)
    saves = [i for i in canonical.instructions if i.op == "LOAD_FAST_AND_CLEAR"]
    if not saves:
        pytest.skip("comprehensions are functions of their own before 3.12")
    depths = stack_depths(canonical)
    at = next(i.index for i in canonical.instructions if i.op == "FOR_ITER")
    # the stack here: saved k (unbound), list, iterator
    assert depths[at] == 3
    slot = depths[saves[0].index] - 1
    made = make_continuation(canonical, at, stack_depth=3, bound=["n"], unbound_slots=[slot])
    assert [arg.key for arg in made.args] == [1, 2, "n"]
    assert types.FunctionType(made.code, globals())([0], iter([5]), 2) == [0, 7]


def test_lasti_slot_points_at_the_instruction_that_raised():
    def program(x):
        try:
            y = 1 // x
        finally:
            y = x
        return y

    canonical = decode(program.__code__)
    depths = stack_depths(canonical)
    at = next(i.index for i in canonical.instructions if i.op == "RERAISE" and i.arg == 1)
    raising = next(i for i in canonical.instructions if i.op == "BINARY_OP")
    # the stack: previous exception, lasti, exception that is being raised again
    assert depths[at] == 3
    made = make_continuation(canonical, at, stack_depth=3, bound=["x"], lasti_slots={1: raising.index})
    address = next(c for c in made.code.co_consts if type(c) is int and c > 1)
    assert list(made.code.co_positions())[address] == raising.loc
    with pytest.raises(ZeroDivisionError):
        types.FunctionType(made.code, globals())(None, ZeroDivisionError("again"), 0)


def test_missing_live_local_raises_instead_of_crashing():
    def program(a):
        b = a + 1
        return a, b

    canonical = decode(program.__code__)
    at = next(i.index for i in canonical.instructions if i.op == "LOAD_FAST" and i.loc.line and i.index > 4)
    made = make_continuation(canonical, at, stack_depth=0, bound=["a"])
    with pytest.raises(UnboundLocalError):
        types.FunctionType(made.code, globals())(1)


def test_generators_are_refused():
    from dyncomp.errors import Unsupported

    def program(a):
        yield a

    with pytest.raises(Unsupported):
        make_continuation(program.__code__, 4, stack_depth=0, bound=["a"])
