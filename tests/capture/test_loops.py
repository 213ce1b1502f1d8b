"""Loops: every loop of every program is replaced by a driver and a body function."""

from __future__ import annotations

import types

import pytest

from dyncomp.errors import Unsupported
from dyncomp.python_code.flow import Flow, predecessors, stack_depths
from dyncomp.python_code.loops import UNBOUND, find_loops, make_loop_body, make_loop_driver
from dyncomp.python_code.resume import ResumeTarget, make_break_tail
from dyncomp.python_code.versions import decode
from tests.capture.loop_programs import LOOPS, in_try_reads, return_through_finally
from tests.capture.resume_programs import Log, outcome
from tests.capture.test_resume import Bindable, run_cut


def fresh(args):
    """Copies of arguments that a program may change; a class stands for a new object of it."""
    return tuple(a() if a is Log else list(a) if type(a) is list else a for a in args)


def driven(function, loop):
    """For every way into ``loop``: ``function`` with that loop run by a driver, and what was called."""
    canonical = decode(function.__code__)
    flow = Flow.of(canonical)
    depths = stack_depths(canonical)
    bound = flow.members(flow.assigned()[loop.header])
    body = make_loop_body(canonical, loop, bound)
    call_body = Bindable(body.plain_code(), function.__globals__)
    unbound = [slot for slot, sure in flow.saved_slots()[loop.header].items() if not sure]
    driver = make_loop_driver(canonical, loop, body, call_body, bound=bound, unbound_slots=unbound)
    call_driver = Bindable(driver.code, function.__globals__)
    target = ResumeTarget.of(driver, call_driver)
    entry = [name for name in canonical.arg_names if name not in canonical.cellvars]
    for before in predecessors(canonical)[loop.header]:
        if before < loop.header and depths[before] >= 0:
            tail = make_break_tail(
                canonical, before, {loop.header: target}, stack_depth=0, bound=entry, start=0
            )
            yield canonical, tail, call_body, call_driver


REFUSED = {in_try_reads, return_through_finally}


@pytest.mark.parametrize("function, argument_tuples", LOOPS, ids=lambda v: getattr(v, "__name__", ""))
def test_driver_equals_original(function, argument_tuples):
    canonical = decode(function.__code__)
    loops = find_loops(canonical)
    drives = bodies = 0
    for loop in loops:
        try:
            ways = list(driven(function, loop))
        except Unsupported:
            assert function in REFUSED
            continue
        assert ways
        for canonical, tail, call_body, call_driver in ways:
            for args in argument_tuples:
                expected = outcome(function, *fresh(args))
                assert outcome(run_cut, function, tail, canonical, fresh(args)) == expected, (
                    loop.kind,
                    loop.header,
                )
            drives += call_driver.calls
            bodies += call_body.calls
    if loops and function not in REFUSED:
        assert drives >= len(loops)
        assert bodies > 0


def test_for_loop_facts():
    def program(n, a):
        total = 0
        for i in range(n):
            total = total + a * i
        return total

    canonical = decode(program.__code__)
    (loop,) = find_loops(canonical)
    assert loop.kind == "for"
    assert canonical.instructions[loop.header].op == "FOR_ITER"
    assert loop.depth == 1
    assert loop.stored == {"i", "total"}
    assert loop.read == {"i", "total", "a"}
    assert not loop.in_try
    body = make_loop_body(canonical, loop, ["n", "a", "total"])
    assert [(arg.kind, arg.key) for arg in body.args] == [("item", 0), ("local", "a"), ("local", "total")]
    assert body.returns == {0: ("total",)}
    assert body.exits == {}
    assert body.sentinels == frozenset()
    step = types.FunctionType(body.plain_code(), {})
    assert step(3, 10, 1) == (0, 31)


def test_break_return_and_fallthrough_codes():
    def program(values):
        best = None
        for value in values:
            if value < 0:
                return "negative", value
            if value > 9:
                best = value
                break
            best = value
        return best

    canonical = decode(program.__code__)
    (loop,) = find_loops(canonical)
    body = make_loop_body(canonical, loop, ["values", "best"])
    step = types.FunctionType(body.plain_code(), {})
    given = {"item": 0, "local": None}
    assert [arg.kind for arg in body.args] in (["item"], ["item", "local"])
    extra = [given[arg.kind] for arg in body.args[1:]]
    assert step(5, *extra) == (0, 5)
    assert step(-1, *extra) == (-1, ("negative", -1))
    k, value = step(11, *extra)
    assert k == 1 and value == 11
    assert list(body.exits) == [1]


def test_loop_variable_after_the_loop_is_a_sentinel():
    def program(n):
        for i in range(n):
            last = i
        return last

    canonical = decode(program.__code__)
    (loop,) = find_loops(canonical)
    body = make_loop_body(canonical, loop, ["n"])
    assert body.sentinels == {"last"}
    assert repr(UNBOUND) == "<unbound>"


def test_loops_of_generators_are_refused():
    def program(n):
        for i in range(n):
            yield i * i

    canonical = decode(program.__code__)
    (loop,) = find_loops(canonical)
    assert loop.suspends
    with pytest.raises(Unsupported):
        make_loop_body(canonical, loop, ["n"])


def test_nesting_levels():
    def program(n):
        while n:
            for i in range(n):
                for j in range(i):
                    print(j)
            n -= 1

    loops = find_loops(decode(program.__code__))
    assert [(loop.kind, loop.level) for loop in loops] == [("while", 0), ("for", 1), ("for", 2)]


def test_while_with_continue_is_one_loop():
    def program(n):
        while n > 0:
            n -= 1
            if n == 3:
                print()
                continue
            n -= 1
        return n

    canonical = decode(program.__code__)
    (loop,) = find_loops(canonical)
    body = make_loop_body(canonical, loop, ["n"])
    step = types.FunctionType(body.plain_code(), {"print": lambda: None})
    assert step(4) == (0, 3)
    assert step(8) == (0, 6)
    last = step(1)
    assert last[0] != 0
    assert last[-1] == -1


def test_nested_while_loops_stay_two():
    def program(n, m):
        while n > 0:
            n -= 1
            while m > n:
                m -= 1
                if m == 3:
                    continue
                if m == 2:
                    break
                n += 0
        return n, m

    loops = find_loops(decode(program.__code__))
    assert [loop.level for loop in loops] == [0, 1]
