"""Tasks, ``os.fork`` and the interpreter's end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

import dyncomp


def run(program: str, seconds: float = 60) -> tuple[subprocess.CompletedProcess[str], float]:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds, check=False
    )
    return done, time.monotonic() - start


def in_child(check: str) -> int:
    """The exit status of a child that runs ``check`` in this module."""
    child = os.fork()
    if child == 0:
        try:
            exec(check, globals())
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -9


BUSY = threading.Event()
RUNNING: list[object] = []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_have_a_pool_of_their_own() -> None:
    assert dyncomp.wait(dyncomp.fork(int)) == 0
    assert in_child("assert sum(map(dyncomp.wait, [dyncomp.fork(int, k) for k in range(50)])) == 1225") == 0
    assert dyncomp.wait(dyncomp.fork(int, 5)) == 5


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_task_of_the_parent_does_not_hang_the_child() -> None:
    started = threading.Event()
    RUNNING[:] = [dyncomp.fork(lambda: (started.set(), BUSY.wait(30)))]
    assert started.wait(20)
    check = "with pytest.raises(RuntimeError, match='forked from'): dyncomp.wait(RUNNING[0])"
    try:
        assert in_child(check) == 0
    finally:
        BUSY.set()
    assert dyncomp.wait(RUNNING.pop()) is not None  # type: ignore[arg-type]


def test_exit_with_pending_tasks() -> None:
    program = """
import dyncomp, time
futures = [dyncomp.fork(time.sleep, 100) for _ in range(20)]
time.sleep(0.2)
print("end", flush=True)
"""
    done, seconds = run(program)
    assert done.returncode == 0 and done.stdout == "end\n" and not done.stderr
    assert seconds < 50


def test_exit_lets_what_runs_end() -> None:
    program = """
import dyncomp, time, threading
started = threading.Event()
def work():
    started.set()
    time.sleep(0.3)
    print("ended", flush=True)
dyncomp.fork(work)
started.wait()
"""
    done, _ = run(program)
    assert done.returncode == 0 and done.stdout == "ended\n" and not done.stderr


def test_fork_at_exit() -> None:
    program = """
import atexit, dyncomp
atexit.register(lambda: print(dyncomp.wait(dyncomp.fork(int, 3)), flush=True))
dyncomp.wait(dyncomp.fork(int))
atexit.register(lambda: print(dyncomp.wait(dyncomp.fork(int, 4)), flush=True))
"""
    done, _ = run(program)
    assert done.returncode == 0 and done.stdout == "4\n3\n" and not done.stderr


def test_interrupts_reach_the_program() -> None:
    program = """
import dyncomp, os, signal, threading, time
future = dyncomp.fork(time.sleep, 1.0)
time.sleep(0.1)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    dyncomp.wait(future)
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    done, _ = run(program)
    assert done.returncode == 0 and done.stdout == "interrupted\n"
