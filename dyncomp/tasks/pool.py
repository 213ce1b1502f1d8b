"""The threads that run tasks.

A task runs at most once: by a worker, or by the first thread that waits for it while it is still queued. So a
waiter blocks only for a task that some thread runs, and nested tasks cannot wait for each other's threads. A
worker that blocks does not count: another one goes on with the queue, which is also what ends a deep nest
that a single stack could not hold. Workers beyond the pool's size end when they find nothing to do.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ..runtime import _launch, num_threads
from .surroundings import Surroundings

T = TypeVar("T")

# A thread runs so many tasks inside of each other that it waits for; the stack is for the program.
MOST_INSIDE = 8
# Threads that wait hold their stacks; beyond so many tasks run inside of waiters, however deep.
MOST_WORKERS = 512
# At the interpreter's exit tasks that run have so long to end.
EXIT_SECONDS = 2.0


class Task(Generic[T]):
    """A function to be called once, and what came of it."""

    def __init__(
        self, function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object], pool: Pool
    ) -> None:
        self.call: tuple[Callable[..., T], tuple[object, ...], dict[str, object]] | None = (
            function,
            args,
            kwargs,
        )
        self.surroundings: Surroundings | None = Surroundings()
        self.runner: int | None = None  # the thread
        self.process = pool.process
        self.ended = False
        self.waiters: list[threading.Lock] = []
        self.value: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Only by the thread that has claimed it."""
        assert self.call is not None and self.surroundings is not None
        function, args, kwargs = self.call
        surroundings = self.surroundings
        self.call = self.surroundings = None
        try:
            self.value = surroundings.context.run(_call, surroundings, function, args, kwargs)
        except BaseException as error:
            self.error = error
            if error.__traceback__ is not None:
                # without this function; what `_call` and those below it say belongs to the program's story
                error.__traceback__ = error.__traceback__.tb_next


def _call(
    surroundings: Surroundings,
    function: Callable[..., T],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> T:
    with surroundings.entered():
        return function(*args, **kwargs)


class _Here(threading.local):
    """The tasks that this thread runs, each inside of the one before."""

    def __init__(self) -> None:
        self.tasks: list[Task[Any]] = []
        self.is_worker = False


class Pool:
    """Workers and the queue."""

    def __init__(self) -> None:
        self.here = _Here()
        self.process = 0
        self._begin()
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self._at_exit)

    def _begin(self) -> None:
        self.lock = threading.Lock()
        self.work = threading.Condition(self.lock)
        self.queue: deque[Task[Any]] = deque()
        self.workers = 0
        self.blocked = 0  # workers that wait for a task
        self.idle = 0
        self.running = 0
        self.closed = False

    def _after_fork(self) -> None:
        """The child has only the thread that forked. Queued tasks run where they are waited for."""
        self.process += 1
        self._begin()
        for task in self.here.tasks:
            task.process = self.process
        self.running = len(self.here.tasks)
        self.here.is_worker = False

    def _at_exit(self) -> None:
        """A thread that is inside of another library when the interpreter ends may take the process down."""
        with self.lock:
            self.closed = True
            self.queue.clear()
        end = time.monotonic() + EXIT_SECONDS
        while self.running > len(self.here.tasks) and time.monotonic() < end:
            time.sleep(0.002)

    # -- tasks ------------------------------------------------------------------------------------
    def submit(
        self, function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Task[T]:
        """A task, queued."""
        task = Task(function, args, kwargs, self)
        with self.lock:
            if not self.closed:
                self.queue.append(task)
                self._wake()
        return task

    def _wake(self) -> None:
        """Under the lock: see that a worker takes what is queued, if another one may run."""
        if self.idle:
            self.work.notify()
        elif self.queue and self.workers - self.blocked < num_threads() and self.workers < MOST_WORKERS:
            self.workers += 1
            try:
                threading.Thread(target=self._work, name="dyncomp-task", daemon=True).start()
            except RuntimeError:  # the system has no more threads, or the interpreter ends: waiters run it
                self.workers -= 1

    def wait(self, task: Task[Any]) -> None:
        """Until the task has ended."""
        if task.ended:
            return
        tasks = self.here.tasks
        with self.lock:
            may_grow = not self.closed and self.workers < MOST_WORKERS and self.queue
            is_queued = task.runner is None
            if is_queued and (len(tasks) < MOST_INSIDE or not may_grow):
                task.runner = threading.get_ident()
                self.running += 1
                runs_here = True
            else:
                runs_here = False
        if runs_here:
            self._run(task)
            return
        if any(task is each for each in tasks):
            raise RuntimeError("a task waits for its own result, which it cannot give before it ends")
        self._block(task)

    def _block(self, task: Task[Any]) -> None:
        """Sleep until another thread has run the task."""
        tasks = self.here.tasks
        with self.lock:
            if task.ended:
                return
            if task.process != self.process and task.runner is not None:
                raise RuntimeError(
                    "the task ran in a thread of the process that this one was forked from: "
                    "wait for it before os.fork"
                )
            signal = threading.Lock()
            signal.acquire()
            task.waiters.append(signal)
            if self.here.is_worker:
                self.blocked += 1
                self._wake()
        if tasks:
            _launch.leave_task()
        try:
            signal.acquire()  # an exception of a signal handler comes out of this
        finally:
            if tasks:
                _launch.enter_task()
            if self.here.is_worker:
                with self.lock:
                    self.blocked -= 1

    def _run(self, task: Task[Any]) -> None:
        """A task that this thread has claimed."""
        tasks = self.here.tasks
        tasks.append(task)
        if len(tasks) == 1:
            _launch.enter_task()
        try:
            task.run()
        finally:
            tasks.pop()
            if not tasks:
                _launch.leave_task()
            with self.lock:
                task.ended = True
                self.running -= 1
                waiters, task.waiters = task.waiters, []
            for signal in waiters:
                signal.release()

    def run_together(self, functions: Sequence[Callable[[], None]]) -> None:
        """Call all, the first in this thread; when all have ended raise what the first of those raised that
        did."""
        tasks = [Task(function, (), {}, self) for function in functions]
        with self.lock:
            for task in tasks[1:]:
                if not self.closed:
                    self.queue.append(task)
                    self._wake()
        stopped: BaseException | None = None  # by a signal's handler, here
        for task in tasks:
            while not task.ended:
                try:
                    self.wait(task)
                except BaseException as error:
                    stopped = error
        for raised in (stopped, *(task.error for task in tasks)):
            if raised is not None:
                raise raised

    # -- workers ----------------------------------------------------------------------------------
    def _work(self) -> None:
        """What a worker does."""
        self.here.is_worker = True
        process = self.process
        while True:
            task = self._next()
            if task is None:
                return
            self._run(task)
            if process != self.process:
                return  # this thread forked: here it is no worker
            task = None

    def _next(self) -> Task[Any] | None:
        """The next task, claimed; None: end."""
        with self.lock:
            while True:
                is_needed = self.workers - self.blocked <= num_threads() and not self.closed
                if is_needed:
                    while self.queue:
                        task = self.queue.popleft()
                        if task.runner is None:
                            task.runner = threading.get_ident()
                            self.running += 1
                            return task
                if not is_needed:
                    self.workers -= 1
                    return None
                self.idle += 1
                try:
                    self.work.wait()
                finally:
                    self.idle -= 1


POOL = Pool()
