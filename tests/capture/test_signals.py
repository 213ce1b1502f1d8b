"""Interrupts and failures inside capture: they reach the user, and leave nothing behind."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.guards.fact_kinds import CustomCheck
from dyncomp.capture.guards.guard import Guard, GuardRefused, Kind, compile_guards
from dyncomp.capture.guards.source import LocalSource
from dyncomp.graph.interp import as_callable
from dyncomp.hook import _hook
from dyncomp.pipeline import op_table

ROOT = pathlib.Path(__file__).resolve().parents[2]


def vec(n=5):
    return np.arange(float(n))


def program(x, n):
    def scaled(v, by):
        return v * by

    for i in range(n):
        x = scaled(x, 0.5) + i
        if i == 3:
            print(end="")
    try:
        x = x.reshape(2, -1)
    except ValueError:
        x = -x
    return x


class TimerFired(BaseException):
    pass


class TimeIsUp(Exception):
    pass


def on_timer(signum, frame):
    raise TimerFired


def on_time_limit(signum, frame):
    raise TimeIsUp


@pytest.fixture
def no_collections():
    """What is raised in a callback of the collector, as hypothesis has one, is lost."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(("handler", "error"), [(on_timer, TimerFired), (on_time_limit, TimeIsUp)])
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a callback of a weak set
def test_interrupted_anywhere_in_capture(handler, error, no_collections):
    """A signal at any moment of the first call: the exception comes through, and the next call compiles."""
    expected = program(vec(6), 8)
    for _ in range(2):  # the second time nothing is imported
        start = time.perf_counter()
        dyncomp.compile(program, backend="eager")(vec(6), 8)
    whole = time.perf_counter() - start
    old = signal.signal(signal.SIGALRM, handler)
    interrupted = tries = 0
    try:
        while interrupted < 30 and tries < 300:
            compiled = dyncomp.compile(program, backend="eager")
            try:
                signal.setitimer(signal.ITIMER_REAL, max(whole * (tries % 40 + 1) / 40, 1e-5))
                try:
                    compiled(vec(6), 8)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                whole *= 0.9  # measured while the machine was busy, or this one came too late
            except error:
                interrupted += 1
            tries += 1
            assert _hook.get_active() is None and not _hook.hook_installed()
            for _ in range(2):
                assert np.array_equal(compiled(vec(6), 8), expected)
            records = compiled.config.records
            assert records.skipped == [] and any(e.graph is not None for e in records.entries)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert interrupted == 30


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimerFired, ValueError])
def test_interrupted_in_a_check_of_a_guard(error):
    """What a signal handler raises there is the program's; what else a check raises means that it fails."""

    def check(value, expected):
        raise error

    guard = Guard(LocalSource("x", 0), Kind.CUSTOM_ARRAY, CustomCheck(check, None, "a check that raises"))

    def make_program():
        compile_guards([guard], env=((vec(),), {}, {}, None))
        for _ in range(1000):
            pass

    with pytest.raises(GuardRefused if error is ValueError else error):
        make_program()


def test_time_limit_in_a_check_of_a_guard():
    """An ``Exception`` that the handler of a time limit raises in a check is the program's, too."""

    def check(value, expected):
        signal.raise_signal(signal.SIGALRM)
        return True

    guard = Guard(LocalSource("x", 0), Kind.CUSTOM_ARRAY, CustomCheck(check, None, "a check cut off"))
    old = signal.signal(signal.SIGALRM, on_time_limit)
    try:
        with pytest.raises(TimeIsUp):
            compile_guards([guard], env=((vec(),), {}, {}, None))
    finally:
        signal.signal(signal.SIGALRM, old)


def backend_that_raises(error):
    calls = []

    def backend(graph, examples):
        calls.append(graph)
        if len(calls) == 1:
            raise error
        return as_callable(graph, op_table())

    return backend


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr)
def test_exceptions_that_end_things_come_through(error):
    def f(x, log):
        log.append(1)
        return x + 1

    compiled = dyncomp.compile(f, backend=backend_that_raises(error))
    log = []
    with pytest.raises(type(error)) as caught:
        compiled(vec(), log)
    assert caught.value is error and log == []
    for _ in range(2):
        assert np.array_equal(compiled(vec(), log), vec() + 1)
    assert log == [1, 1]
    assert [entry.graph is None for entry in compiled.config.records.entries] == [False]
    assert compiled.config.records.skipped == []


def test_interrupts_do_not_count_as_captures():
    def f(x):
        return x + 1

    def backend(graph, examples):
        if len(attempts) < 30:
            attempts.append(graph)
            raise KeyboardInterrupt
        return as_callable(graph, op_table())

    attempts = []
    compiled = dyncomp.compile(f, backend=backend)
    for _ in range(30):
        with pytest.raises(KeyboardInterrupt):
            compiled(vec())
    compiled(vec())
    assert _hook.get_mark(f.__code__, compiled.config) is None
    assert len(compiled.config.records.entries) == 1


def test_memory_error_runs_the_original_this_once():
    def f(x, log):
        log.append(1)
        return x + 1

    compiled = dyncomp.compile(f, backend=backend_that_raises(MemoryError()))
    log = []
    for _ in range(3):
        assert np.array_equal(compiled(vec(), log), vec() + 1)
    assert log == [1, 1, 1]
    assert "memory" in compiled.config.records.skipped[0][2]
    assert len(compiled.config.records.entries) == 1


def test_recursion_error_inside_capture_runs_the_original():
    def f(x, log):
        log.append(1)
        return x + 1

    compiled = dyncomp.compile(
        f, backend=backend_that_raises(RecursionError("deep")), options={"debug_verify": False}
    )
    log = []
    for _ in range(3):
        assert np.array_equal(compiled(vec(), log), vec() + 1)
    assert log == [1, 1, 1]


def at_depth(levels, function, *args):
    if levels == 0:
        return function(*args)
    return at_depth(levels - 1, function, *args)


def depth_left():
    try:
        return 1 + depth_left()
    except RecursionError:
        return 1


@pytest.mark.parametrize("left", [1, 2, 3, 4, 6, 10])
def test_near_the_recursion_limit(left):
    """Where the plain function has room, so has the compiled one, its capture included (but for one call of a
    C function more or less, which CPython itself counts only until it specialises the call)."""

    def callee(x):
        return x * 2

    def f(x, n):
        y = callee(x)
        time.sleep(0)
        return y + n

    def outcome(function, levels):
        try:
            return at_depth(levels, function, vec(), 3).tolist()
        except RecursionError:
            return "RecursionError"

    levels = depth_left() - left - 2
    expected = outcome(f, levels + 1)
    compiled = dyncomp.compile(f)  # a graph in C++ needs no Python frames
    found = [outcome(compiled, levels) for _ in range(3)]
    assert compiled(vec(), 3).tolist() == f(vec(), 3).tolist()
    if expected != "RecursionError":
        assert found == [expected] * 3
    assert _hook.get_active() is None


def test_deep_recursion_of_a_compiled_function():
    script = """
    import sys
    import numpy as np
    import dyncomp
    sys.setrecursionlimit(10**5)

    def down(x, n):
        return x if n == 0 else down(x, n - 1) + 1.0

    down = dyncomp.compile(down, backend="eager")
    print(down(np.zeros(2), 3000))

    def forever(x):
        return forever(x + 1) + 1

    forever = dyncomp.compile(forever, backend="eager")
    try:
        forever(np.zeros(2))
    except RecursionError:
        print("RecursionError")
    print(down(np.zeros(2), 500))
    """
    assert run(script).splitlines() == ["[3000. 3000.]", "RecursionError", "[500. 500.]"]


# -- the compiler ---------------------------------------------------------------------------------------
def run(script, **environment):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


INTERRUPTED = """
import os, pathlib, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
import numpy as np
import dyncomp

cache = pathlib.Path(os.environ["DYNCOMP_CACHE_DIR"])
started = pathlib.Path(os.environ["STARTED"])

def f(x):
    return np.sqrt(x) * 3 + 1

def interrupt():
    while not started.exists():
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

BEFORE
g = dyncomp.compile(f)
x = np.arange(1000.0)
threading.Thread(target=interrupt).start()
begin = time.monotonic()
try:
    g(x)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
AFTER
assert time.monotonic() - begin < 20
print([path.name for path in cache.rglob(".build-*")])
os.environ["MODE"] = "work"
for _ in range(2):
    assert np.allclose(g(x), f(x))
print(len(g.config.records.entries), g.config.records.skipped)
print([path.name for path in cache.rglob(".build-*")])
"""
AS_IF_NOTHING_HAD_BEEN = ["interrupted", "[]", "1 []", "[]"]


def test_interrupt_while_the_compiler_runs(tmp_path):
    compiler = tmp_path / "compiler"
    started = tmp_path / "started"
    compiler.write_text(
        f'#!/bin/sh\n[ "$MODE" = work ] && exec g++ "$@"\ntouch {started}\nexec sleep 30\n', encoding="utf-8"
    )
    compiler.chmod(0o755)
    script = INTERRUPTED.replace("BEFORE", "").replace("AFTER", "")
    found = run(
        script, DYNCOMP_CACHE_DIR=str(tmp_path / "cache"), DYNCOMP_CXX=str(compiler), STARTED=str(started)
    )
    assert found.splitlines() == AS_IF_NOTHING_HAD_BEEN


def test_interrupt_while_another_process_builds(tmp_path):
    before = """
import dyncomp.build.kernel_cache as codecache, fcntl, contextlib
dyncomp.compile(lambda v: v + 1)(np.ones(3))
locks = [open(cache / "v1" / f"{i:02x}.lock", "w") for i in range(256)]
for lock in locks:
    fcntl.flock(lock, fcntl.LOCK_EX)
started.touch()
"""
    after = """
for lock in locks:
    lock.close()
"""
    script = INTERRUPTED.replace("BEFORE", before).replace("AFTER", after)
    found = run(script, DYNCOMP_CACHE_DIR=str(tmp_path / "cache"), STARTED=str(tmp_path / "started"))
    assert found.splitlines() == AS_IF_NOTHING_HAD_BEEN


# -- handlers -------------------------------------------------------------------------------------------
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_a_handler_may_call_compiled_functions():
    compiled = dyncomp.compile(program, backend="eager")
    other = dyncomp.compile(lambda x: x * 2 + 1, backend="eager")
    seen = []

    def handler(signum, frame):
        seen.append(other(vec()).tolist())

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    try:
        deadline = time.monotonic() + 20
        n = 4
        while len(seen) < 20 and time.monotonic() < deadline:
            n = 4 + (n + 1) % 7
            assert np.array_equal(compiled(vec(6), n), program(vec(6), n))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert len(seen) >= 20 and all(value == (vec() * 2 + 1).tolist() for value in seen)


def test_asynchronous_exceptions_in_other_threads():
    """What ``PyThreadState_SetAsyncExc`` raises comes out of a compiled call as out of any other."""
    import ctypes

    compiled = dyncomp.compile(program, backend="eager")
    ended = []

    def work():
        try:
            n = 4
            while True:
                n = 4 + (n + 1) % 7
                compiled(vec(6), n)
        except TimerFired:
            ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    assert raise_in(ctypes.c_ulong(thread.ident), ctypes.py_object(TimerFired)) == 1
    thread.join(60)
    assert ended == [True]
    assert np.array_equal(compiled(vec(6), 5), program(vec(6), 5))
