"""Objects go behind graph breaks when they go in plain Python, and calls in tail position take no stack."""

from __future__ import annotations

import functools
import gc
import sys
import types
import weakref

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook
from tests.capture.lifetime_programs import PROGRAMS, see


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def array():
    return np.arange(4.0)


def log_of(function):
    log = []
    result = function(array(), log)
    log.append(("result", np.asarray(result).tolist() if result is not None else None))
    return log


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_objects_go_as_in_plain_python(program, backend):
    if backend == "inductor" and PROGRAMS.index(program) % 6:
        pytest.skip("one in six")
    expected = log_of(program)
    compiled = dyncomp.compile(program, backend=backend)
    for _ in range(3):
        assert log_of(compiled) == expected


def around(program):
    def caller(x, log):
        y = program(x, log)
        see(log, "caller")
        return y

    return caller


@pytest.mark.parametrize("program", PROGRAMS)
def test_inside_of_a_caller(program):
    """Inlined where capture inlines it, else as a frame of its own under the hook."""
    expected = log_of(around(program))
    compiled = dyncomp.compile(around(program), backend="eager")
    for _ in range(3):
        assert log_of(compiled) == expected


# -- calls in tail position ------------------------------------------------------------------------------
def many_breaks(x, log):
    k = 0
    while k < 3000:
        dyncomp.graph_break()
        k += 1
    return x + k


def depth_of_stack():
    """The address of something on the C stack would be exact; the number of frames is what Python shows."""
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def grows_with_breaks(x, log):
    depths = [depth_of_stack()]
    y = x + 1
    depths.append(depth_of_stack())
    y = y * 2
    dyncomp.graph_break()
    depths.append(depth_of_stack())
    log.append(depths)
    return y


@pytest.mark.parametrize("program", [many_breaks, grows_with_breaks])
def test_breaks_take_no_stack(program):
    compiled = dyncomp.compile(program, backend="eager")
    expected = log_of(lambda x, log: program(x, log))
    for _ in range(2):
        assert log_of(lambda x, log: compiled(x, log)) == expected


def test_recursion_behind_breaks_reaches_the_python_limit():
    def f(n):
        dyncomp.graph_break()
        return 0 if n == 0 else 1 + compiled(n - 1)

    compiled = dyncomp.compile(f, backend="eager", options={"capture_plain": True})
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(9000)
    try:
        assert compiled(5) == 5
        assert compiled(2500) == 2500
    finally:
        sys.setrecursionlimit(limit)


def raises_late(x, log):
    y = x + 1
    see(log, 1)
    y = y * 2
    see(log, 2)
    raise ValueError(y.shape)


def test_tracebacks_show_each_frame_once():
    compiled = dyncomp.compile(raises_late, backend="eager")
    for function in (raises_late, compiled, compiled):
        with pytest.raises(ValueError) as raised:
            function(array(), [])
        names = [entry.frame.code.name for entry in raised.traceback]
        assert names == ["test_tracebacks_show_each_frame_once", "raises_late"]


def test_a_call_to_be_made_later():
    calls = []

    def function(*args):
        calls.append(args)
        return len(args)

    assert _hook.run(_hook.later(function)) == 0
    assert _hook.run(_hook.later(function, *range(40))) == 40
    assert _hook.run(_hook.later(max, 1, 2)) == 2
    chained = _hook.later(lambda n: _hook.later(function, n), 7)
    assert _hook.run(chained) == 1
    assert [len(args) for args in calls] == [0, 40, 1]
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        _hook.run(_hook.later(lambda a: a, 1, 2))
    with pytest.raises(TypeError, match="later"):
        _hook.run(3)
    with pytest.raises(TypeError):
        _hook.later()
    with pytest.raises(TypeError):
        type(chained)()
    with pytest.raises(ZeroDivisionError):
        _hook.run(_hook.later(lambda a: a / 0, 1))


def test_arguments_of_compiled_functions_are_moved():
    @dyncomp.compile(backend="eager")
    def function(x, y=None):
        r = weakref.ref(x)
        del x
        dyncomp.graph_break()
        return r() is None

    class Owner:
        method = function

    expected = [True, True, False, False]
    keep = array()
    for _ in range(2):
        found = [function(array(), None), Owner.method(array(), 1), function(keep), function(keep, keep)]
        assert found == expected
    assert keep.tolist() == array().tolist()


def test_arguments_that_others_hold_stay():
    @dyncomp.compile(backend="eager")
    def function(x, log):
        see(log, 1)
        del x
        see(log, 2)

    keep = array()
    args = (keep, [])
    before = sys.getrefcount(keep), sys.getrefcount(args[1])
    for _ in range(20):
        function(*args)
        function(keep, args[1])
        functools.partial(function, keep)(args[1])
        functools.partial(function)(keep, args[1])
        list(map(function, [keep], [args[1]]))
        types.MethodType(function, keep)(args[1])
        functools.partial(types.MethodType(function, keep))(args[1])
        function(x=keep, log=args[1])
        args[1].clear()
    assert (sys.getrefcount(keep), sys.getrefcount(args[1])) == before
