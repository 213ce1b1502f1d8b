"""Continuations whose code is made only where they run as plain Python."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook
from dyncomp.python_code.continuation import stand_in
from dyncomp.python_code.versions import decode


def rest(a, b):
    return a - b


def compiled_rest(a, b):
    return ("compiled", a - b)


class Making:
    """Gives code, and counts how often it is asked."""

    def __init__(self, code):
        self.code = code
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.code


def make(function, making, config=None, freevars=()):
    config = _hook.HookConfig() if config is None else config
    code = stand_in(decode(function.__code__), function.__code__.co_varnames[:2], freevars)
    made = _hook.ResumeFunction(code, globals(), "rest", "rest", config, make_code=making)
    return made, config, code


def test_the_original_is_made_once_and_only_where_it_runs():
    making = Making(rest.__code__)
    resume, config, code = make(rest, making)
    config.on_miss = lambda function, args, config: _hook.Entry(None, compiled_rest.__code__)
    assert resume(5, 2) == ("compiled", 3)
    assert making.calls == 0
    config.on_miss = None
    _hook.clear(code)
    assert [resume(5, 2), resume(7, 1)] == [3, 6]
    assert making.calls == 1


def test_what_cannot_be_made_raises():
    def fails():
        raise ValueError("no code")

    resume, config, _ = make(rest, fails)
    with pytest.raises(ValueError, match="no code"):
        resume(1, 2)
    resume, config, _ = make(rest, lambda: 5)
    with pytest.raises(TypeError, match="make_code returned int"):
        resume(1, 2)


def test_a_trace_function_sees_the_original_and_not_how_it_is_made():
    making = Making(rest.__code__)
    resume, config, _ = make(rest, making)
    seen = []

    def trace(frame, event, arg):
        seen.append((frame.f_code.co_name, event))
        return

    sys.settrace(trace)
    try:
        answer = resume(3, 1)
    finally:
        sys.settrace(None)
    assert answer == 2
    assert making.calls == 1
    assert seen == [("rest", "call")]


def test_continuations_outlive_their_config_with_and_without_cells():
    def outer():
        count = 10

        def inner(a, b):
            return a + b + count

        return inner

    making = Making(rest.__code__)
    resume, config, _ = make(rest, making)
    inner = outer()
    closed, config, _ = make(inner, Making(inner.__code__), config, ("count",))
    assert closed.bind(inner.__closure__)(1, 2) == 13
    del config
    assert resume(5, 2) == 3
    function = closed.bind(inner.__closure__)
    assert type(function) is types.FunctionType
    assert function(1, 2) == 13


def breaks_twice(x, log):
    if x.sum() > 0:
        x = x + 1
    log.append(len(log))
    if x.max() > 5:
        raise ValueError(log)
    return x * 2


def test_what_a_graph_that_raises_leaves_runs_the_original_from_where_it_went_on():
    """The continuation behind the first branch is compiled, then meets inputs that its graph cannot take."""
    compiled = dyncomp.compile(breaks_twice, backend="eager")
    for values in ([1.0, 2.0], [-3.0, 1.0], [1.0, 9.0], [2.0, 2.0]):
        x, logs = np.array(values), ([], [])
        outcomes = []
        for function, log in zip((breaks_twice, compiled), logs):
            try:
                outcomes.append(("returned", function(x, log).tolist()))
            except ValueError as error:
                outcomes.append(("raised", str(error)))
        assert outcomes[0] == outcomes[1]
        assert logs[0] == logs[1]


def test_continuations_of_continuations_are_places_of_the_same_function():
    compiled = dyncomp.compile(breaks_twice, backend="eager")
    compiled(np.array([1.0, 2.0]), [])
    compiled(np.array([-1.0, 0.5]), [])
    places = list(compiled.config.stand_ins.values())
    assert len(places) >= 2
    assert {id(place.origin) for place in places} == {id(breaks_twice.__code__)}


def test_under_force_eager_continuations_run_as_plain_python():
    compiled = dyncomp.compile(breaks_twice, backend="eager")
    x = np.array([1.0, 2.0])
    expected = breaks_twice(x, [])

    class Log(list):
        def append(self, item):
            dyncomp.set_stance("force_eager")
            super().append(item)

    try:
        np.testing.assert_array_equal(compiled(x, Log()), expected)
    finally:
        dyncomp.set_stance("default")
