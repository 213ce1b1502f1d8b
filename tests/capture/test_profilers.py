"""Profilers see what runs: each call of a compiled function as one frame of the function as written."""

from __future__ import annotations

import contextlib
import cProfile
import gc
import profile
import pstats
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook

MONITORING = hasattr(sys, "monitoring")


@dyncomp.disable
def plain(x):
    return x + 1


def straight(x):
    return (x * 2 + 1).sum()


def breaks(x):
    y = x * 2
    y = plain(y)
    y = plain(y) * 3
    return plain(y).sum()


def loops(x):
    for i in range(4):
        x = plain(x) * 2
        if i == 2:
            x = x + i
    while x[0] < 1000:
        x = plain(x * 2)
    return x


def raises(x):
    y = x * 2
    plain(y)
    raise ValueError(str(y.shape))


def raises_at_once(x):
    return np.ones(3) + np.ones(len(x) + 7)


def catches(x):
    try:
        raises(x)
    except ValueError:
        x = plain(x)
    try:
        return x.reshape(7, -1)
    except ValueError:
        return plain(x) + 1


def numbers(x):
    for i in range(3):
        yield plain(x) + i


def generators(x):
    total = x * 0
    for y in numbers(x):
        total = total + y
    return sum(plain(z) for z in [total, x])


def inner(x):
    return plain(x * 2) - 1


def nested(x):
    return COMPILED_INNER(x) + inner(x)


def recurses(x, n=4):
    return x if n == 0 else COMPILED_RECURSES(plain(x), n - 1) * 2


def manages(x):
    with contextlib.suppress(ValueError):
        y = plain(x) * 2
        with np.errstate(all="ignore"):
            y = plain(y) / 0
        raises(y)
    return x


def deletes(x):
    class Noisy:
        def __del__(self):
            plain(x)

    noisy = Noisy()
    y = plain(x) + 1
    del noisy
    return y * 2


COMPILED_INNER = dyncomp.compile(inner)
COMPILED_RECURSES = dyncomp.compile(recurses)
PROGRAMS = [
    straight,
    breaks,
    loops,
    raises,
    raises_at_once,
    catches,
    generators,
    nested,
    recurses,
    manages,
    deletes,
]
OWN = {f.__name__ for f in PROGRAMS}


def call(function, *args):
    try:
        return function(*args)
    except ValueError as error:
        return str(error)


def same(a, b):
    return a == b if isinstance(a, str) else np.array_equal(a, b, equal_nan=True)


@contextlib.contextmanager
def set_profile(function, for_threads=False):
    gc.collect()
    gc.disable()
    if for_threads:
        threading.setprofile(function)
    sys.setprofile(function)
    try:
        yield
    finally:
        sys.setprofile(None)
        if for_threads:
            threading.setprofile(None)
        gc.enable()


def mine(code):
    return code.co_filename == __file__


class Events:
    """What a function of ``sys.setprofile`` hears, with the stack that it implies."""

    def __init__(self):
        self.heard = []
        self.problems = []
        self.stacks = {}

    def __call__(self, frame, event, arg):
        # a generator's frame is called and left many times; classes' bodies are made by builtins
        if "Tail" in type(arg).__name__ or "_hook" in str(getattr(arg, "__self__", "")):
            self.problems.append((event, arg))
        if not mine(frame.f_code) or frame.f_code.co_name in ("__exit__", "set_profile"):
            return
        stack = self.stacks.setdefault(threading.get_ident(), [])
        code = frame.f_code
        label = (code.co_name, code.co_firstlineno)
        if event == "call":
            stack.append((label, frame))
            self.heard.append(label)
        elif event == "return":
            if not stack:
                return  # what was begun before
            begun, other = stack.pop()
            if begun != label or other is not frame:
                self.problems.append((begun, label, other, frame))


def calls_of(events):
    return Counter(name for name, _ in events.heard)


@pytest.mark.parametrize("warm", [0, 1, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_events_are_balanced(program, warm):
    compiled = dyncomp.compile(program)
    x = np.arange(1.0, 5)
    for _ in range(warm):
        call(compiled, x)
    expected = call(program, x)
    plainly, events = Events(), Events()
    with set_profile(plainly):
        for _ in range(3):
            call(program, x)
    with set_profile(events):
        found = [call(compiled, x), call(compiled, x), call(compiled, x)]
    assert all(same(expected, y) for y in found)
    assert not events.problems
    assert not any(events.stacks.values())
    before, after = calls_of(plainly), calls_of(events)
    if program is not recurses:  # some levels are inlined
        assert after[program.__name__] == before[program.__name__]
    assert after["plain"] == before["plain"]
    for label in events.heard:
        assert label in plainly.heard, label


def test_compiled_code_runs_below_a_profiler():
    compiled = dyncomp.compile(breaks)
    x = np.arange(5.0)
    for _ in range(3):
        compiled(x)
    before = dyncomp.stats()["cache_hits"]
    with set_profile(Events()):
        for _ in range(10):
            compiled(x)
    assert dyncomp.stats()["cache_hits"] - before >= 20
    assert dyncomp.stats()["internal_errors"] == 0


def table(profiler):
    if isinstance(profiler, profile.Profile):
        profiler.create_stats()
    return pstats.Stats(profiler).stats


@pytest.mark.parametrize("kind", [cProfile.Profile, profile.Profile])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_profiles_count_calls(kind, program):
    """Several forms of each function are compiled, some before and some while the profiler is on."""
    compiled = dyncomp.compile(program)
    arrays = [np.arange(1.0, n + 1) for n in (4, 5, 4, 6)] + [np.ones(4, np.float32), np.ones((3, 4))]
    call(compiled, arrays[0])

    def run(function):
        for x in arrays * 2:
            if x.ndim == 1 or program is not loops:
                call(function, x)

    counted = []
    for function in (program, compiled):
        profiler = kind()
        gc.collect()
        gc.disable()
        try:
            profiler.runcall(run, function)
        finally:
            gc.enable()
        counted.append({key: value[1] for key, value in table(profiler).items() if key[0] == __file__})
    code = program.__code__
    key = (__file__, code.co_firstlineno, code.co_name)
    if program is not recurses:
        assert counted[1][key] == counted[0][key]
    assert counted[1][key] >= (10 if program is loops else 12)
    key = (__file__, plain.__code__.co_firstlineno, "plain")
    assert counted[1].get(key) == counted[0].get(key)
    assert set(counted[1]) <= set(counted[0])


def test_time_includes_kernels():
    x = np.linspace(0, 1, 300_000)

    def heavy(x):
        for _ in range(8):
            x = np.sin(x) * np.cos(x) + np.exp(-x)
        return x

    compiled = dyncomp.compile(heavy)
    compiled(x)
    profiler = cProfile.Profile()
    start = time.perf_counter()
    for _ in range(5):
        profiler.runcall(compiled, x)
    took = time.perf_counter() - start
    row = table(profiler)[__file__, heavy.__code__.co_firstlineno, "heavy"]
    assert row[1] == 5
    assert 0.5 * took < row[3] <= took


def test_captures_are_not_seen():
    compiled = dyncomp.compile(breaks)
    profiler = cProfile.Profile()
    profiler.runcall(compiled, np.arange(4.0))
    files = {key[0] for key in table(profiler) if "capture" in key[0] and "dyncomp" in key[0]}
    assert not {f for f in files if not f.endswith(__file__)}


def test_threads():
    compiled = [dyncomp.compile(f) for f in (breaks, loops, nested, catches)]
    x = np.arange(1.0, 5)

    def work():
        for _ in range(20):
            for function in compiled:
                call(function, x)

    events = Events()
    with set_profile(events, for_threads=True):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not events.problems
    assert calls_of(events)["breaks"] == calls_of(events)["catches"] == 60


@dyncomp.disable
def switch(function):
    sys.setprofile(function)


def test_started_and_stopped_inside():
    def starts(x, function):
        y = x + 1
        switch(function)
        y = plain(y) * 2
        y = plain(y)
        switch(None)
        return plain(y) + 1

    def left_on(x, function):
        y = plain(x + 1)
        sys.setprofile(function)
        y = plain(y) * 2
        return plain(y) + 1

    for program, number in ((starts, 2), (left_on, 2)):
        compiled = dyncomp.compile(program)
        for _ in range(4):
            events = Events()
            found = compiled(np.arange(4.0), events)
            sys.setprofile(None)
            assert not events.problems
            assert calls_of(events)["plain"] == number
            assert calls_of(events)[program.__name__] == 0
            assert np.array_equal(found, program(np.arange(4.0), None))


def test_the_profile_function_may_call_compiled_functions():
    compiled = dyncomp.compile(straight)
    seen = []

    def watch(frame, event, arg):
        seen.append(compiled(np.ones(3)))

    function = dyncomp.compile(breaks)
    for _ in range(3):
        with set_profile(watch):
            found = function(np.ones(3))
        assert found == breaks(np.ones(3))
    assert set(seen) == {9.0}


def test_a_profile_function_that_raises():
    compiled = dyncomp.compile(breaks)
    for k in range(12):
        count = iter(range(1000))

        def watch(frame, event, arg, count=count, k=k):
            if next(count) == k:
                raise KeyError(k)

        with pytest.raises(KeyError), set_profile(watch):
            compiled(np.ones(3))
        sys.setprofile(None)
        assert compiled(np.ones(3)) == breaks(np.ones(3))


def test_profilers_see_the_original_if_asked_to():
    compiled = dyncomp.compile(nested)
    compiled(np.ones(3))
    previous = _hook.set_profiled_as_written(True)
    try:
        plainly, events = Events(), Events()
        with set_profile(plainly):
            nested(np.ones(3))
        with set_profile(events):
            compiled(np.ones(3))
    finally:
        _hook.set_profiled_as_written(previous)
    assert events.heard == plainly.heard
    assert not previous


# -- sys.monitoring -------------------------------------------------------------------------------------
CALLS = ["PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "PY_THROW"]


class Monitored:
    """Calls and returns of this file's functions, by code object."""

    def __init__(self, tool=2, events=CALLS, disable=False):
        self.tool = tool
        self.events = events
        self.heard = Counter()
        self.problems = []
        self.stack = []
        self.answer = sys.monitoring.DISABLE if disable else None

    def begin(self, code, *args):
        if mine(code) and code.co_name not in ("__exit__", "set_profile", "__enter__"):
            self.stack.append(code)
            self.heard[code] += 1
        return self.answer

    def end(self, code, *args):
        if any("Tail" in type(arg).__name__ for arg in args):
            self.problems.append(args)
        if mine(code) and code.co_name not in ("__exit__", "set_profile", "__enter__") and self.stack:
            begun = self.stack.pop()
            if begun is not code:
                self.problems.append((begun, code))

    def __enter__(self):
        monitoring = sys.monitoring
        gc.disable()
        monitoring.use_tool_id(self.tool, "test")
        for name in self.events:
            event = getattr(monitoring.events, name)
            starts = name in ("PY_START", "PY_RESUME", "PY_THROW")
            monitoring.register_callback(self.tool, event, self.begin if starts else self.end)
        monitoring.set_events(self.tool, sum(getattr(monitoring.events, name) for name in self.events))
        return self

    def __exit__(self, *args):
        monitoring = sys.monitoring
        monitoring.set_events(self.tool, 0)
        for name in self.events:
            monitoring.register_callback(self.tool, getattr(monitoring.events, name), None)
        monitoring.free_tool_id(self.tool)
        monitoring.restart_events()
        gc.enable()


@pytest.mark.skipif(not MONITORING, reason="needs sys.monitoring")
@pytest.mark.parametrize("tool", [2, 4])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_monitoring_of_calls(program, tool):
    compiled = dyncomp.compile(program)
    x = np.arange(1.0, 5)
    expected = call(program, x)
    for _ in range(3):
        with Monitored(tool) as plainly:
            call(program, x)
        before = dyncomp.stats()["cache_hits"]
        with Monitored(tool) as monitored:
            found = call(compiled, x)
        assert same(found, expected)
        assert not monitored.problems
        assert not monitored.stack
        if program is not recurses:
            assert monitored.heard[program.__code__] == plainly.heard[program.__code__]
        assert monitored.heard[program.__code__] > 0
        assert monitored.heard[plain.__code__] == plainly.heard[plain.__code__]
        assert set(monitored.heard) <= set(plainly.heard) | {f.__code__ for f in PROGRAMS}
    assert dyncomp.stats()["cache_hits"] > before


@pytest.mark.skipif(not MONITORING, reason="needs sys.monitoring")
@pytest.mark.parametrize("tool", [0, 1])
def test_debuggers_and_coverage_see_the_original(tool):
    """They may ask for the lines of one function after another."""
    compiled = dyncomp.compile(nested)
    compiled(np.ones(3))
    with Monitored(tool) as plainly:
        nested(np.ones(3))
    with Monitored(tool) as monitored:
        compiled(np.ones(3))
    assert monitored.heard == plainly.heard


@pytest.mark.skipif(not MONITORING, reason="needs sys.monitoring")
def test_calls_of_python_functions_are_not_those_of_c():
    def run(function):
        heard = []
        monitoring, tool = sys.monitoring, 3
        monitoring.use_tool_id(tool, "test")
        note = lambda code, offset, callable, arg: heard.append(getattr(callable, "__name__", None))  # noqa: E731
        monitoring.register_callback(tool, monitoring.events.C_RETURN, note)
        monitoring.set_events(tool, monitoring.events.CALL)
        try:
            call(function, np.ones(3))
        finally:
            monitoring.set_events(tool, 0)
            monitoring.register_callback(tool, monitoring.events.C_RETURN, None)
            monitoring.free_tool_id(tool)
        return heard

    compiled = dyncomp.compile(breaks)
    for _ in range(3):
        assert "plain" not in run(compiled)
        assert "later" not in run(compiled)


@pytest.mark.skipif(not MONITORING, reason="needs sys.monitoring")
def test_callbacks_that_switch_themselves_off():
    compiled = dyncomp.compile(breaks)
    with Monitored(2, ["PY_START", "PY_RETURN"], disable=True) as monitored:
        for _ in range(4):
            assert compiled(np.ones(3)) == breaks(np.ones(3))
    assert not [p for p in monitored.problems if not hasattr(p[0], "co_name")]
    assert 1 <= monitored.heard[breaks.__code__] <= 2
