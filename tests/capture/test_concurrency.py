"""Threads, processes, interrupts, tracers and profilers around compiled calls."""

from __future__ import annotations

import contextvars
import copy
import cProfile
import gc
import os
import pickle
import pstats
import signal
import subprocess
import sys
import threading
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import dyncomp
from tests.capture.programs import vec

ROOT = Path(__file__).parents[2]
THREADS = 4


def mixed(x, k):
    y = x * k
    for i in range(12):
        y = y + i
    print(end="")
    if y.sum() > 1e6:
        return y
    return y[: len(y) // 2] + 1


def nested(x):
    return inner(x) * 2 if x.size > 3 else inner(x)


def inner(x):
    return x + x.sum()


def in_threads(work, count=THREADS):
    """Run ``work(number)`` in threads that start at once; returns results, raises what they raised."""
    barrier = threading.Barrier(count)

    def start(number):
        barrier.wait(20)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count), timeout=120))


# -- threads ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_threads_with_different_shapes(backend):
    compiled = dyncomp.compile(mixed, backend=backend)

    def work(number):
        for n in (4 + number, 9, 5 + number, 4 + number):
            for k in (2.0, 3.0):
                assert np.allclose(compiled(vec(n), k), mixed(vec(n), k), rtol=1e-13)
        return True

    assert in_threads(work) == [True] * THREADS


def test_threads_with_functions_of_their_own():
    def work(number):
        f = dyncomp.compile(lambda x: inner(x) * number, backend="eager")
        return all(np.array_equal(f(vec(n)), inner(vec(n)) * number) for n in range(3, 20))

    assert in_threads(work) == [True] * THREADS


def test_exceptions_in_threads_stay_in_their_thread():
    def f(x, number):
        y = x + 1
        if number % 2:
            raise ValueError(f"from {number}")
        return y

    compiled = dyncomp.compile(f, backend="eager")

    def work(number):
        found = []
        for _ in range(20):
            try:
                found.append(compiled(vec(), number).shape)
            except ValueError as error:
                found.append(str(error))
        return set(found)

    assert in_threads(work) == [{(5,)}, {"from 1"}, {(5,)}, {"from 3"}]


def test_reset_while_other_threads_call():
    compiled = dyncomp.compile(mixed, backend="eager")

    def work(number):
        for _ in range(15):
            if number == 0:
                dyncomp.reset()
            else:
                assert np.array_equal(compiled(vec(6), 2.0), mixed(vec(6), 2.0))
        return True

    assert all(in_threads(work))


def test_arguments_mutated_by_each_thread():
    def f(x, log):
        x += 1
        log.append(float(len(log)))
        return x

    compiled = dyncomp.compile(f, backend="eager")

    def work(number):
        x, log = np.zeros(5 + number), []
        for _ in range(50):
            compiled(x, log)
        return x[0], len(log)

    assert in_threads(work) == [(50.0, 50)] * THREADS


def test_contextvars_are_the_callers():
    variable = contextvars.ContextVar("variable", default=0)

    def f(x):
        return x + variable.get()

    compiled = dyncomp.compile(f, backend="eager")
    for value in (1, 2, 3):
        found = contextvars.copy_context().run(lambda value=value: (variable.set(value), compiled(vec()))[1])
        assert np.array_equal(found, vec() + value)


# -- recursion, re-entrance ---------------------------------------------------------------------------
def test_a_compiled_function_that_calls_itself():
    @dyncomp.compile(backend="eager")
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * 2

    for n in (0, 1, 5, 30):
        assert np.array_equal(power(vec(), n), vec() * 2.0**n)


def test_two_compiled_functions_that_call_each_other():
    @dyncomp.compile(backend="eager")
    def even(x, n):
        return x if n == 0 else odd(x + 1, n - 1)

    @dyncomp.compile(backend="eager")
    def odd(x, n):
        return -x if n == 0 else even(x * 2, n - 1)

    def plain(x, n):
        for i in range(n):
            x = x + 1 if i % 2 == 0 else x * 2
        return x if n % 2 == 0 else -x

    for n in (0, 1, 2, 7):
        assert np.array_equal(even(vec(), n), plain(vec(), n))


def test_endless_recursion_raises_recursion_error():
    def forever(x):
        return forever(x + 1) + 1

    with pytest.raises(RecursionError):
        dyncomp.compile(forever, backend="eager")(vec())


def test_compiling_inside_a_compiled_function():
    def f(x):
        g = dyncomp.compile(lambda v: v * 2, backend="eager")
        return g(x + 1) + 1

    assert np.array_equal(dyncomp.compile(f, backend="eager")(vec()), (vec() + 1) * 2 + 1)


def test_generators_interleave():
    def numbers(x, n):
        for i in range(n):
            yield x + i

    compiled = dyncomp.compile(numbers, backend="eager")
    first, second = compiled(vec(), 3), compiled(vec(), 3)
    for i in range(3):
        assert np.array_equal(next(first), vec() + i)
        assert np.array_equal(next(second), vec() + i)
    assert next(first, None) is None
    closing = compiled(vec(), 3)
    next(closing)
    closing.close()
    assert list(closing) == []


# -- interrupts ---------------------------------------------------------------------------------------
def test_keyboard_interrupt_while_compiling():
    calls = []

    def backend(graph, examples):
        calls.append(graph)
        if len(calls) == 1:
            raise KeyboardInterrupt
        from dyncomp.graph.interp import as_callable
        from dyncomp.pipeline import op_table

        return as_callable(graph, op_table())

    def f(x, log):
        log.append(1)
        return x + 1

    compiled = dyncomp.compile(f, backend=backend)
    log = []
    with pytest.raises(KeyboardInterrupt):
        compiled(vec(), log)
    assert log == []
    assert np.array_equal(compiled(vec(), log), vec() + 1)
    assert log == [1]
    assert np.array_equal(compiled(vec(6), log), vec(6) + 1)


def test_keyboard_interrupt_by_signal_at_any_time():
    """Wherever the signal arrives, it comes through, and the next call works."""

    def f(x, n):
        for i in range(n):
            x = x * 0.5 + i
            print(end="")
        return x

    expected = f(vec(), 12)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    for delay in (0.0005, 0.002, 0.005, 0.01, 0.02, 0.04):
        compiled = dyncomp.compile(f, backend="eager")
        gc.collect()  # an interrupt within a WeakSet's own callback for the function before would be lost
        gc.disable()  # so would one in a callback of the collector: hypothesis has one
        try:
            assert is_interrupted(lambda compiled=compiled: compiled(vec(), 12), delay)
        finally:
            gc.enable()
        assert np.array_equal(compiled(vec(), 12), expected)


def is_interrupted(call, delay):
    """Whether a SIGINT ``delay`` seconds after the first call comes out of it, or of a later one."""
    timer = threading.Timer(delay, lambda: signal.raise_signal(signal.SIGINT))
    try:
        timer.start()
        while timer.is_alive():
            call()
        timer.join()
        for _ in range(1000):
            pass
    except KeyboardInterrupt:
        timer.join()
        return True
    return False


# -- tools --------------------------------------------------------------------------------------------
def test_settrace_sees_the_users_lines_and_results_hold():
    lines = set()

    def tracer(frame, event, arg):
        if frame.f_code.co_filename == __file__:
            lines.add((frame.f_code.co_name, event))
        return tracer

    compiled = dyncomp.compile(nested, backend="eager")
    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        traced = compiled(vec()), compiled(vec())
    finally:
        sys.settrace(old)
    assert np.array_equal(traced[0], nested(vec())) and np.array_equal(traced[1], nested(vec()))
    assert np.array_equal(compiled(vec()), nested(vec()))
    assert ("nested", "call") in lines


def test_profilers():
    compiled = dyncomp.compile(mixed, backend="eager")
    profile = cProfile.Profile()
    found = [profile.runcall(compiled, vec(n), 2.0) for n in (6, 6, 7)]
    assert np.array_equal(found[0], mixed(vec(6), 2.0)) and np.array_equal(found[2], mixed(vec(7), 2.0))
    assert pstats.Stats(profile).total_calls > 0
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(event))
    try:
        result = compiled(vec(6), 2.0)
    finally:
        sys.setprofile(None)
    assert np.array_equal(result, mixed(vec(6), 2.0)) and seen


def test_tracebacks_name_the_users_line():
    def fails(x):
        y = x + 1
        print(end="")
        return y.reshape(7)

    compiled = dyncomp.compile(fails, backend="eager")
    for _ in range(2):
        try:
            compiled(vec())
        except ValueError as error:
            frames = traceback.extract_tb(error.__traceback__)
            text = str(error)
        mine = [f for f in frames if f.filename == __file__ and f.name == "fails"]
        assert mine and mine[-1].lineno == fails.__code__.co_firstlineno + 3
        assert text == "cannot reshape array of size 5 into shape (7,)"


def test_garbage_is_not_kept():
    class Big:
        pass

    def f(x, big):
        big.seen = True
        y = x + 1
        print(end="")
        return y * 2

    compiled = dyncomp.compile(f, backend="eager")
    references = []
    for n in (5, 6, 7):
        big, x = Big(), vec(n)
        result = compiled(x, big)
        references += [weakref.ref(big), weakref.ref(x), weakref.ref(result)]
        del big, x, result
    gc.collect()
    assert [r() for r in references] == [None] * 9


def test_functions_are_let_go():
    def make():
        scale = np.ones(3)

        def f(x):
            return x * scale

        compiled = dyncomp.compile(f, backend="eager")
        compiled(vec(3))
        return weakref.ref(f), weakref.ref(scale)

    references = make()
    gc.collect()
    assert [r() for r in references] == [None, None]


# -- processes ----------------------------------------------------------------------------------------
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_fork(backend):
    compiled = dyncomp.compile(mixed, backend=backend)
    compiled(vec(2000), 2.0)
    expected = mixed(vec(2000), 2.0), mixed(vec(11), 3.0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        ok = np.allclose(compiled(vec(2000), 2.0), expected[0]) and np.allclose(
            compiled(vec(11), 3.0), expected[1]
        )
        os.write(writing, b"y" if ok else b"n")
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 1)
    os.close(reading)
    assert os.waitpid(child, 0)[1] == 0
    assert answer == b"y"
    assert np.allclose(compiled(vec(2000), 2.0), expected[0])


def test_pickling_and_copying_of_what_compiled_code_touches():
    class_of_results = dyncomp.compile(mixed, backend="eager")(vec(6), 2.0)
    again = pickle.loads(pickle.dumps(class_of_results))
    assert np.array_equal(again, class_of_results)
    assert pickle.loads(pickle.dumps(mixed)) is mixed
    assert copy.deepcopy(mixed) is mixed


def test_exit_while_a_compiled_call_runs_in_a_daemon_thread():
    script = """
import numpy as np, dyncomp, threading, time
def f(x, n):
    for i in range(n):
        x = x * 0.5 + i
    return x
g = dyncomp.compile(f)
g(np.ones(10), 20)
started = threading.Event()
def forever():
    while True:
        g(np.ones(10), 2000)
        started.set()
threading.Thread(target=forever, daemon=True).start()
assert started.wait(60)
print("leaving")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "leaving\n"
