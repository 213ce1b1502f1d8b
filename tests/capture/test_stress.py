"""Threads that call, compile, collect, reset, trace and interrupt one another, for a fixed time each.

Each world runs in a process of its own, so that a crash is seen: answers are compared with plain Python's in
the threads, and the process must end by itself with status 0.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRELUDE = """
import atexit, copy, gc, os, pickle, random, signal, sys, threading, time, types, warnings, weakref
import numpy as np
import dyncomp
from tests.capture.random_helpers import Quiet, noisy, opaque, tagged
warnings.simplefilter("ignore")
import logging; logging.getLogger("dyncomp").setLevel(logging.CRITICAL)

def work(x, k, log):
    y = x * k
    for i in range(k):
        y = y + i
    opaque(k)
    with Quiet():
        if k % 3 == 0:
            raise ValueError(k)
        y = y - 1
    try:
        log.append(k)
        y = y[: len(y) // 2] if k % 2 else steps(y, k)
    finally:
        opaque(y)
    return y * 2

def steps(y, k):
    return y + sum(values(k))

def values(k):
    for i in range(k % 5):
        got = yield i
        opaque(got)

def deep(x, k):
    if k == 0:
        opaque(k)
        return x
    return deep(x + 1, k - 1) * 1

def raises(x, k):
    opaque(x)
    return deep(x, 2)[k + 100]

NEW = "def made(x, k):\\n    y = x + {}\\n    opaque(y)\\n    return y * k\\n"

def fresh(number):
    space = {"opaque": opaque, "__name__": "fresh"}
    exec(NEW.format(number), space)
    return space["made"]

FUNCTIONS = [work, deep]
compiled = {f: dyncomp.compile(f, backend="eager") for f in (work, deep, raises)}
failures = []

def same(f, g, *args):
    expected, found = outcome(f, *copy.deepcopy(args)), outcome(g, *copy.deepcopy(args))
    if repr(expected) != repr(found):
        failures.append((f.__name__, args, expected, found))

def outcome(f, *args):
    try:
        return f(*args), args
    except Exception as error:
        return type(error), str(error), args

def calls(rng):
    x, k = np.arange(float(rng.randrange(1, 9))), rng.randrange(7)
    same(work, compiled[work], x, k, [])
    same(deep, compiled[deep], x, k)
    same(raises, compiled[raises], x, k)

def news(rng):
    f = fresh(rng.randrange(100))
    g = dyncomp.compile(f, backend="eager")
    ref = weakref.ref(g)
    same(f, g, np.ones(3), rng.randrange(4))
    assert copy.copy(g) is g and ref() is g

def generators(rng):
    made = values(3)
    next(made)
    shelf.append(made)
    if len(shelf) > 5:
        shelf.pop(rng.randrange(3)).close()

shelf = []
def collects(rng):
    rng.choice([gc.collect, gc.disable, gc.enable, gc.freeze, gc.unfreeze, dyncomp.reset])()

def profiles(rng):
    sys.setprofile(rng.choice([None, lambda *args: None]))
    compiled[deep](np.ones(2), 3)
    sys.setprofile(None)
    sys.settrace(rng.choice([None, lambda *args: None]))
    compiled[deep](np.ones(2), 3)
    sys.settrace(None)

def limits(rng):
    try:
        compiled[deep](np.ones(2), 10**6)
    except RecursionError:
        pass
    else:
        failures.append("no RecursionError")

def run(seconds, *kinds):
    end = time.monotonic() + seconds
    def loop(number):
        rng = random.Random(number)
        while time.monotonic() < end:
            try:
                kinds[number % len(kinds)](rng)
            except Exception as error:
                failures.append((kinds[number % len(kinds)].__name__, repr(error)))
                return
    threads = [threading.Thread(target=loop, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    gc.enable()
"""
WORLDS = {
    "calls": "run(SECONDS, calls, news)",
    "collections": "run(SECONDS, calls, collects, news, generators)",
    "tools": "run(SECONDS, calls, profiles, news, calls)",
    "recursion": "threading.stack_size(64 << 20); run(SECONDS, calls, limits, news, collects)",
    "signals": """
        hits = []
        signal.signal(signal.SIGALRM, lambda *args: hits.append(compiled[deep](np.ones(2), 2).sum()))
        signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
        run(SECONDS, calls, news, collects)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert hits and set(hits) == {6.0}
    """,
    "everything": """
        signal.signal(signal.SIGALRM, lambda *args: compiled[deep](np.ones(2), 2))
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        threading.stack_size(64 << 20)
        run(SECONDS, calls, news, collects, profiles, generators, calls, limits)
        signal.setitimer(signal.ITIMER_REAL, 0)
    """,
    "shutdown": """
        def forever(number):
            while True:
                calls(random.Random(number))
                news(random.Random(number))
        atexit.register(lambda: compiled[work](np.ones(4), 2, []))
        for n in range(6):
            threading.Thread(target=forever, args=(n,), daemon=True).start()
        time.sleep(SECONDS)
    """,
}


def stress(world, seconds):
    end = "assert not failures, failures[:3]\nprint('ended')\n"
    body = textwrap.dedent(WORLDS[world]).replace("SECONDS", str(seconds))
    program = f"{PRELUDE}\n{body}\n{end}"
    command = [sys.executable, "-X", "faulthandler", "-c", program]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + 150, check=False
    )
    assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, ["ended"]), ran.stderr[-3000:]


@pytest.mark.parametrize("world", ["everything", "shutdown"])
def test_stress_for_a_moment(world):
    stress(world, 1)


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_stress(world):
    stress(world, 8)
