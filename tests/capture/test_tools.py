"""Debuggers, coverage and monitoring tools that ask for lines see compiled functions as they were written.

Profilers see what runs: ``test_profilers``.
"""

from __future__ import annotations

import cProfile
import faulthandler
import inspect
import os
import pathlib
import pstats
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import tracemalloc

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = hasattr(sys, "monitoring")


def vec(n=5):
    return np.arange(float(n))


def helper(x):
    y = x * 2
    return y + 1


def program(x, n):
    total = helper(x)
    for i in range(n):
        total = total + i
        if i == 2:
            print(end="")
    try:
        total = total.reshape(n, -1)
    except ValueError:
        total = -total
    return total


def traced(function, *args):
    """Every event of ``sys.settrace`` in this file's functions while ``function`` runs."""
    events = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename != __file__ or frame.f_code is traced.__code__:
            return None
        events.append((frame.f_code.co_name, event, frame.f_lineno))
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        result = function(*args)
    finally:
        sys.settrace(old)
    return result, events


def profiled(function, *args):
    events = []

    def profile(frame, event, arg):
        if frame.f_code.co_filename == __file__ and frame.f_code is not profiled.__code__:
            name = getattr(arg, "__name__", None) if event.startswith("c_") else None
            events.append((frame.f_code.co_name, event, name))

    sys.setprofile(profile)
    try:
        result = function(*args)
    finally:
        sys.setprofile(None)
    return result, events


def monitored(function, *args, local=()):
    """Line events, of all code or (``local``) of some code objects only."""
    monitoring, tool = sys.monitoring, 3
    events = []

    def line(code, number):
        if code.co_filename == __file__ and code is not monitored.__code__:
            events.append((code.co_name, number))

    monitoring.use_tool_id(tool, "test")
    monitoring.register_callback(tool, monitoring.events.LINE, line)
    for code in local:
        monitoring.set_local_events(tool, code, monitoring.events.LINE)
    if not local:
        monitoring.set_events(tool, monitoring.events.LINE)
    try:
        result = function(*args)
    finally:
        for code in local:
            monitoring.set_local_events(tool, code, 0)
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(tool)
    return result, events


def profiled_as_written(function, *args):
    previous = _hook.set_profiled_as_written(True)
    try:
        return profiled(function, *args)
    finally:
        _hook.set_profiled_as_written(previous)


WATCHERS = [traced, profiled_as_written] + [monitored] * MONITORING


@pytest.mark.parametrize("watch", WATCHERS)
@pytest.mark.parametrize("warm", [False, True])
def test_tools_see_the_original(watch, warm):
    compiled = dyncomp.compile(program, backend="eager")
    if warm:
        compiled(vec(6), 3)
        compiled(vec(5), 4)
    for args in ((vec(6), 3), (vec(5), 4), (vec(6), 3)):
        plain, expected = watch(program, *args)
        found, events = watch(compiled, *args)
        assert np.array_equal(plain, found)
        assert events == expected and len(events) > 3
        assert np.array_equal(compiled(*args), plain)


def test_captured_again_when_the_tool_has_gone():
    compiled = dyncomp.compile(helper, backend="eager")
    traced(compiled, vec())
    assert compiled.config.records.entries == []
    compiled(vec())
    assert [record.graph is None for record in compiled.config.records.entries] == [False]


@pytest.mark.skipif(not MONITORING, reason="needs sys.monitoring")
def test_local_events_of_a_compiled_function():
    compiled = dyncomp.compile(program, backend="eager")
    compiled(vec(6), 3)
    codes = (program.__code__,)
    _, expected = monitored(program, vec(6), 3, local=codes)
    _, events = monitored(compiled, vec(6), 3, local=codes)
    assert events == expected and len(events) > 3


@pytest.mark.skipif(not MONITORING, reason="needs sys.monitoring")
def test_no_hook_below_code_that_starts_a_tool():
    """With a hook CPython would report calls of Python functions as calls of C functions."""
    monitoring, tool = sys.monitoring, 3

    def watch():
        events = []
        monitoring.use_tool_id(tool, "test")
        monitoring.register_callback(tool, monitoring.events.C_RETURN, lambda *args: events.append("C"))
        monitoring.set_events(tool, monitoring.events.CALL)
        vec()
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.C_RETURN, None)
        monitoring.free_tool_id(tool)
        return events

    def breaks(x):
        y = x + 1
        return watch(), y

    expected = watch()
    compiled = dyncomp.compile(breaks, backend="eager")
    config = dyncomp.compile(breaks, backend="eager").config
    for _ in range(2):
        assert compiled(vec())[0] == expected
    previous = _hook.set_active(config)
    try:
        for _ in range(2):
            assert watch() == expected
        assert _hook.get_mark(watch.__code__) == "alone"
    finally:
        _hook.set_active(previous)


def test_traces_of_other_threads_change_nothing_here():
    compiled = dyncomp.compile(helper, backend="eager")
    started, done = threading.Event(), threading.Event()

    def other():
        sys.settrace(lambda frame, event, arg: None)
        started.set()
        done.wait(30)
        sys.settrace(None)

    thread = threading.Thread(target=other)
    thread.start()
    started.wait(30)
    try:
        before = dyncomp.stats()["cache_hits"]
        for _ in range(3):
            compiled(vec())
        assert dyncomp.stats()["cache_hits"] - before >= 2
    finally:
        done.set()
        thread.join()


def switch(on):
    sys.settrace(on)


def test_tracing_switched_on_and_off_inside_a_compiled_call():
    lines = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename == __file__:
            lines.append((frame.f_code.co_name, event))
        return trace

    def f(x, trace):
        y = x + 1
        switch(trace)
        y = helper(y)
        switch(None)
        return y * 2

    compiled = dyncomp.compile(f, backend="eager")
    old = sys.gettrace()
    for _ in range(3):
        lines.clear()
        try:
            result = compiled(vec(), trace)
        finally:
            sys.settrace(old)
        assert np.array_equal(result, f(vec(), None))
        assert lines.count(("helper", "call")) == 1
        assert lines.count(("helper", "line")) == 2


def test_cprofile_counts_calls_of_the_original():
    def outer(x):
        for _ in range(3):
            x = helper(x)
        return x

    def counts(function):
        profile = cProfile.Profile()
        for _ in range(2):
            profile.runcall(function, vec())
        found = pstats.Stats(profile).stats
        return {key[2]: value[0] for key, value in found.items() if key[0] == __file__}

    compiled = dyncomp.compile(outer, backend="eager")
    previous = _hook.set_profiled_as_written(True)
    try:
        assert counts(compiled) == counts(outer) == {"outer": 2, "helper": 6}
        compiled(vec())
        assert counts(compiled) == {"outer": 2, "helper": 6}
    finally:
        _hook.set_profiled_as_written(previous)
    assert counts(compiled) == {"outer": 2}  # what is inlined is no call


def test_tracemalloc():
    compiled = dyncomp.compile(program, backend="eager")
    expected = program(vec(6), 3)
    tracemalloc.start(5)
    try:
        for _ in range(3):
            assert np.array_equal(compiled(vec(6), 3), expected)
        assert tracemalloc.take_snapshot().statistics("lineno")
    finally:
        tracemalloc.stop()


# -- looking at the stack -----------------------------------------------------------------------------
def stack_of(look):
    """What ``look`` reports from inside a callback of a compiled and of a plain function."""

    def outer(x, callback):
        y = x + 1
        callback()
        return y * 2

    def run(function):
        found = []
        function(vec(), dyncomp.disable(lambda: found.append(look())))
        return found[-1]

    compiled = dyncomp.compile(outer, backend="eager")
    return [run(outer), run(compiled), run(compiled)]


def mine(entries):
    return [(name, line) for file, name, line in entries if file == __file__ and name == "outer"]


def test_extract_stack():
    found = [
        mine((f.filename, f.name, f.lineno) for f in stack)
        for stack in stack_of(lambda: list(traceback.extract_stack()))
    ]
    assert found[0] == found[1] == found[2] and len(found[0]) == 1


def test_inspect_stack():
    found = [
        mine((f.filename, f.function, f.lineno) for f in stack)
        for stack in stack_of(lambda: list(inspect.stack()))
    ]
    assert found[0] == found[1] == found[2] and len(found[0]) == 1


def test_faulthandler():
    def look():
        with tempfile.TemporaryFile("w+") as file:
            faulthandler.dump_traceback(file)
            file.seek(0)
            lines = file.read().splitlines()
        return [line.strip() for line in lines if line.endswith(" in outer")]

    found = stack_of(look)
    assert found[0] == found[1] == found[2] and len(found[0]) == 1


def test_current_frames():
    ready, looked = threading.Event(), threading.Event()

    def waits(x):
        y = x + 1
        ready.set()
        looked.wait(30)
        return y * 2

    compiled = dyncomp.compile(waits, backend="eager")
    for _ in range(2):
        ready.clear()
        looked.clear()
        thread = threading.Thread(target=compiled, args=(vec(),))
        thread.start()
        assert ready.wait(30)
        lines = []
        until = time.monotonic() + 30
        while not lines and time.monotonic() < until:  # what follows the break may still be captured
            stack = traceback.extract_stack(sys._current_frames()[thread.ident])
            lines = [f.lineno for f in stack if f.name == "waits"]
        looked.set()
        thread.join()
        assert lines and lines[-1] == waits.__code__.co_firstlineno + 3


# -- programs of their own ----------------------------------------------------------------------------
SCRIPT = """
import sys
import numpy as np
import dyncomp

def helper(x):
    if x.sum() > 100:
        return x * 3
    return x * 2

def f(x, n):
    y = helper(x)
    for i in range(n):
        y = y + i
        if i == 100:
            y = -y
    here = float(y[0])
    return y.sum() + here

g = dyncomp.compile(f, backend="eager") if COMPILED else f
print(g(np.ones(4), 3))
print(g(np.ones(4), 3))
print(g(np.ones(5), 4))
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def write(folder, compiled, text=SCRIPT):
    path = folder / ("compiled.py" if compiled else "plain.py")
    path.write_text(text.replace("COMPILED", str(compiled)))
    return path


def run(command, **options):
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False, **options
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("core", ["ctrace"] + ["sysmon"] * MONITORING)
def test_coverage(tmp_path, core):
    pytest.importorskip("coverage")
    measured = []
    for compiled in (False, True):
        path = write(tmp_path, compiled)
        collect = f"""
            import coverage, runpy, warnings
            warnings.simplefilter("error")
            cov = coverage.Coverage(data_file=None, config_file=False, branch={core != "sysmon"})
            cov.set_option("run:core", {core!r})
            cov.start()
            runpy.run_path({str(path)!r}, run_name="__main__")
            cov.stop()
            print(cov.analysis2({str(path)!r})[3])
        """
        measured.append(run([sys.executable, "-c", textwrap.dedent(collect)]))
    assert measured[0] == measured[1]
    assert measured[0].splitlines()[-1] == "[8, 16]"


def test_pdb_breakpoint_by_line(tmp_path):
    answers = []
    for compiled in (False, True):
        path = write(tmp_path, compiled)
        commands = f"b {path}:15\nc\np 'i is', i\nc\np 'i is', i\ncl 1\nc\nq\n"
        answers.append(run([sys.executable, "-m", "pdb", str(path)], input=commands))
    assert answers[1].replace("compiled.py", "plain.py") == answers[0]
    assert "('i is', 1)" in answers[1]


STOPS = """
import pdb
import numpy as np
import dyncomp

def inner(x):
    z = x * 2
    STOP
    return z + 1

def f(x):
    y = x + 1
    w = inner(y)
    return w * 2

g = dyncomp.compile(f, backend="eager") if COMPILED else f
print(g(np.ones(2)))
print(g(np.ones(2)))
"""


@pytest.mark.parametrize("stop", ["pdb.set_trace()", "breakpoint()"])
def test_stopping_inside(tmp_path, stop):
    answers = []
    for compiled in (False, True):
        path = write(tmp_path, compiled, STOPS.replace("STOP", stop))
        commands = "p z\nup\np 'line', y\nn\nc\np z\nc\n"
        answers.append(run([sys.executable, str(path)], input=commands))
    assert answers[1].replace("compiled.py", "plain.py") == answers[0]
    assert answers[0].count("('line', array([2., 2.]))") == 1
