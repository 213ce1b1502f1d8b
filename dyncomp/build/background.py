"""Compilers that run while the program goes on: a thread that builds in the order asked and ends when there
is nothing left to build. One is for better builds of what runs already, at a low priority; another for what
the program will ask for soon (:class:`Ahead`).

Compilers run in process groups of their own. When the process ends they are ended too and what they had begun
is deleted; after a fork the child goes on with what its parent had not finished.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from .. import faults
from .toolchain import Runner

log = logging.getLogger("dyncomp.inductor")

T = TypeVar("T")
# Takes the runner of compilers; what it raises is logged.
Job = Callable[[Runner], None]
# A forked child may be about to run another program.
_CHILD_WAITS = 1.0
_EXIT_WAITS = 10.0


class Builder:
    """Runs jobs one by one in a thread of its own; compilers at a ``low`` priority."""

    def __init__(self, low: bool = True) -> None:
        self.low = low
        self.jobs: deque[Job] = deque()
        self.closed = False
        self._renew()

    def _renew(self) -> None:
        self.changed = threading.Condition()
        self.runner = Runner(background=True, low=self.low)
        self.thread: threading.Thread | None = None

    def submit(self, job: Job) -> None:
        with self.changed:
            self.jobs.append(job)
            self._start(0.0)

    def withdraw(self, job: Job) -> bool:
        """Take back a job that has not begun; whether that is so."""
        with self.changed:
            if job not in self.jobs or job == self.jobs[0]:
                return False
            self.jobs.remove(job)
            return True

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is left to build; whether that is so."""
        with self.changed:
            return self.changed.wait_for(lambda: self.thread is None, seconds)

    def close(self) -> None:
        """End compilers and start no others."""
        self.closed = True
        self.jobs.clear()
        self.runner.stop()
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_EXIT_WAITS)

    def after_fork(self) -> None:
        """In the child, where the thread is not: locks and compilers are the parent's."""
        self._renew()
        if self.jobs:
            self._start(_CHILD_WAITS)

    def _start(self, delay: float) -> None:
        if self.thread is not None or self.closed:
            return
        self.thread = threading.Thread(
            target=self._run, args=(delay, self.changed, self.runner), name="dyncomp builds", daemon=True
        )
        try:
            self.thread.start()
        except RuntimeError as error:  # no thread is to be had, or the interpreter ends
            self.thread = None
            self.jobs.clear()
            log.warning("nothing is built in the background: %s", error)

    def _run(self, delay: float, changed: threading.Condition, runner: Runner) -> None:
        if delay:
            time.sleep(delay)
        while True:
            with changed:
                if not self.jobs or self.closed:
                    self.thread = None
                    changed.notify_all()
                    return
                job = self.jobs[0]  # until it is done, for a fork meanwhile
            self._do(job, runner)
            with changed:
                if self.jobs:
                    self.jobs.popleft()
            del job

    def _do(self, job: Job, runner: Runner) -> None:
        try:
            job(runner)
        except Exception as error:
            if not self.closed:
                log.warning("a build in the background failed", exc_info=error)
                faults.note("a build in the background failed", error, False)


class Ahead(Generic[T]):
    """What ``make`` gives, made in the background before it is asked for."""

    def __init__(self, make: Callable[[Runner], T]) -> None:
        self.make = make
        self.done = threading.Event()
        self.made: T | None = None
        self.builder = builder(low=False)
        self.builder.submit(self._run)

    def _run(self, runner: Runner) -> None:
        try:
            self.made = self.make(runner)
        except Exception as error:
            # whoever asks for it makes it again, and hears of it
            log.debug("what was begun ahead failed", exc_info=error)
        finally:
            self.done.set()

    def take(self) -> T | None:
        """The result, which is waited for; ``None`` if it was not begun or failed."""
        if not self.builder.withdraw(self._run):
            while not self.done.wait(1.0) and not self.builder.wait(0.0):
                pass
        return self.made


@functools.cache
def builder(low: bool = True) -> Builder:
    """The process's."""
    made = Builder(low)
    atexit.register(made.close)
    os.register_at_fork(after_in_child=made.after_fork)
    return made
