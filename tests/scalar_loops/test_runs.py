"""Loops that run as compiled code, with all that may happen meanwhile."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.scalar_programs import make_program
from tests.scalar_loops.scalar_run import check

AT_ONCE = {"native_loop_us": 0, "debug_verify": True}


def spin(a, n, m):
    s = 0
    try:
        for i in range(n):  # noqa: B007
            for j in range(m):
                s += j
                a[j % 10] += 1
    except KeyboardInterrupt:
        return "interrupted", i, j, s, a.sum()
    return "done", i, j, s, a.sum()


class Alarm(Exception):
    pass


def raise_alarm(number, frame):
    raise Alarm(frame.f_code.co_name)


def native_runs(compiled):
    return sum(record.runs for record in compiled.config.records.native_loops)


def is_consistent(i, j, s, total, m):
    """Whether the locals are those between two steps, or within one of them."""
    done = i * m + j
    sums = [i * (m * (m - 1) // 2) + sum(range(stop)) for stop in (j, j + 1)]
    return s in sums and done <= total <= done + 1


def test_interrupts_leave_the_locals_as_they_are():
    compiled = dyncomp.compile(spin, options=AT_ONCE)
    assert compiled(np.zeros(10), 20, 1000) == spin(np.zeros(10), 20, 1000)
    assert native_runs(compiled)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in shells' background
    try:
        timer.start()
        how, i, j, s, total = compiled(np.zeros(10), 10**8, 1000)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert how == "interrupted"
    assert is_consistent(i, j, s, total, 1000)


def test_an_exception_of_a_handler():
    compiled = dyncomp.compile(spin, options=AT_ONCE)
    compiled(np.zeros(10), 20, 1000)
    before = signal.signal(signal.SIGALRM, raise_alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Alarm) as caught:
            compiled(np.zeros(10), 10**8, 1000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    names = [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert names == ["test_an_exception_of_a_handler", "spin", "raise_alarm"]


def test_other_threads_run_meanwhile():
    compiled = dyncomp.compile(spin, options=AT_ONCE)
    compiled(np.zeros(10), 20, 1000)
    seen = []
    stop = threading.Event()

    def watch():
        while not stop.wait(0.005):
            seen.append(1)

    thread = threading.Thread(target=watch)
    thread.start()
    compiled(np.zeros(10), 60_000, 1000)
    stop.set()
    thread.join()
    assert len(seen) > 3


def test_several_threads_in_one_loop():
    compiled = dyncomp.compile(spin, options=AT_ONCE)
    expected = spin(np.zeros(10), 40, 500)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(compiled(np.zeros(10), 40, 500))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_traced_calls_see_the_original():
    compiled = dyncomp.compile(spin, options=AT_ONCE)
    compiled(np.zeros(10), 5, 5)
    runs = native_runs(compiled)
    lines = []

    def trace(frame, event, arg):
        if frame.f_code.co_name == "spin" and event == "line":
            lines.append(frame.f_lineno)
        return trace

    sys.settrace(trace)
    try:
        found = compiled(np.zeros(10), 5, 5)
    finally:
        sys.settrace(None)
    assert found == spin(np.zeros(10), 5, 5)
    assert native_runs(compiled) == runs
    assert len(lines) > 5 * 5 * 2


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def test_functions_of_numbers_only():
    dyncomp.reset()  # other tests make errors
    compiled = dyncomp.compile(collatz, options=AT_ONCE)
    for n in (27, 97, 871, 6171, 2**70 + 1, 10**19):
        assert compiled(n) == collatz(n)
    records = compiled.config.records
    assert native_runs(compiled)
    assert not records.counters["internal_errors"], records.internal_errors


def test_pickled_and_forked():
    compiled = dyncomp.compile(collatz, options=AT_ONCE)
    expected = compiled(27)
    assert pickle.loads(pickle.dumps(compiled))(27) == expected
    child = os.fork()
    if not child:
        os._exit(0 if compiled(97) == collatz(97) and compiled(27) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


def tree(a, depth):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * depth
    if depth:
        for k in range(2):
            total += tree(a, depth - 1) * k
    return total


def test_recursion(monkeypatch):
    a = np.arange(30.0)
    expected = tree(a, 4)
    compiled = dyncomp.compile(tree, options=AT_ONCE)
    monkeypatch.setitem(globals(), "tree", compiled)
    assert compiled(a, 4) == expected
    assert compiled(a, 4) == expected


def test_globals_that_change(monkeypatch):
    compiled = dyncomp.compile(scaled, options=AT_ONCE)
    a = np.arange(20.0)
    for value in (2, 3.5, np.float32(0.1), 2):
        monkeypatch.setitem(globals(), "SCALE", value)
        found, expected = compiled(a, 20), scaled(a, 20)
        assert found == expected
        assert type(found) is type(expected)


SCALE = 1


def scaled(a, n):
    s = 0.0
    for i in range(n):
        s += a[i] * SCALE
    return s


def squares(a):
    s = np.float64(0)
    for i in range(len(a)):
        s = s + a[i] * a[i]
    return s


def squares_under_errstate(a):
    with np.errstate(over="raise"):
        for i in range(len(a)):
            a[i] = a[i] * a[i]


def test_floating_point_errors_that_raise():
    a = np.full(200, 1e160)
    compiled = dyncomp.compile(squares, options=AT_ONCE)
    with np.errstate(over="ignore"):
        assert compiled(a) == np.inf
    assert native_runs(compiled) > 0
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        compiled(a)
    with pytest.raises(FloatingPointError):
        dyncomp.compile(squares_under_errstate, options=AT_ONCE)(a)


@pytest.mark.parametrize("seed", [3, 17, 33, 1008, 1011, 1118])
def test_random_programs(seed):
    notes, _ = check(make_program(seed), 2)
    assert not notes, "\n".join(notes)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_many_random_programs(start):
    for seed in range(start, start + 50):
        notes, _ = check(make_program(seed))
        assert not notes, "\n".join([make_program(seed).text, *notes])
