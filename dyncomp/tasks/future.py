"""What users call: ``fork``, ``wait`` and the future between them.

Capture follows these as any Python code. ``is_compiling()`` is true there: ``fork`` calls the function at
once, and the future is an object of the trace that holds the result.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

from ..capture.environment.regions import (
    captured_whole,
    changes_begin,
    changes_end,
    disable,
    is_compiling,
)
from ..frontends.derivatives import PLAIN
from .pool import POOL, Task

T = TypeVar("T")
P = ParamSpec("P")


class Future(Generic[T]):
    """What a forked function will give. Made by :func:`fork`."""

    # of a task that is not known to have ended, `_task`; else its result or its error
    _task: Task[T] | None
    _value: T | None
    _error: BaseException | None
    _traceback: TracebackType | None

    def __init__(self) -> None:
        self._task = None
        self._value = None
        self._error = None
        self._traceback = None

    def done(self) -> bool:
        """Whether :meth:`result` returns or raises at once."""
        task = self._task
        return task is None or task.ended

    def result(self) -> T:
        """The function's result, when it has ended; raises what it raised, as often as it is asked.

        Raises ``RuntimeError`` where it can never end: the task waits for itself, or ran in a thread of the
        process that this one was forked from.
        """
        if self._task is not None:
            _finish(self)
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)
        return self._value  # type: ignore[return-value]

    def __repr__(self) -> str:
        if not self.done():
            return "<Future: runs>"
        error = self._error if self._task is None else self._task.error
        return "<Future: done>" if error is None else f"<Future: raised {type(error).__name__}>"


@disable
def _finish(future: Future[T]) -> None:
    """Wait for the task and take what it gave."""
    task = future._task
    if task is None:
        return  # another thread was here
    POOL.wait(task)
    future._value = task.value
    future._error = task.error
    future._traceback = None if task.error is None else task.error.__traceback__
    future._task = None  # last: other threads look at it first


@captured_whole
def fork(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Call ``fn(*args, **kwargs)`` beside the program and return a :class:`Future` of its result.

    It runs on a thread of dyncomp's, with the caller's context variables, NumPy error state, stance and, of
    PyTorch, gradient mode, inference mode, autocast and default device. Its effects come at some time between
    ``fork`` and ``wait``. In captured code it is called at once and becomes part of the graph, whose
    independent branches run at the same time where that pays; also while plain Python is recorded for a
    derivative.

    Raises ``TypeError`` where ``fn`` is not callable. What ``fn`` raises comes out of :func:`wait`.
    """
    if is_compiling():
        begun = changes_begin()
        future: Future[T] = _called(fn, args, kwargs)
        changes_end(begun)
        return future
    if PLAIN.recorder is not None:
        return contextvars.copy_context().run(_called, fn, args, kwargs)
    if not callable(fn):
        raise TypeError(f"fork takes a function and its arguments; {type(fn).__qualname__} is not callable")
    future = Future()
    future._task = POOL.submit(fn, args, kwargs)
    return future


@captured_whole
def _called(fn: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object]) -> Future[T]:
    """The future of what has been called here."""
    future: Future[T] = Future()
    try:
        future._value = fn(*args, **kwargs)
    except BaseException as error:
        future._error = error
        future._traceback = error.__traceback__
    return future


def wait(future: Future[T]) -> T:
    """The result of a forked function, when it has ended; raises what that raised.

    Meanwhile this thread may run the function itself, or other threads of dyncomp's go on with what is
    queued.

    Raises ``TypeError`` for anything but a :class:`Future`.
    """
    if not isinstance(future, Future):
        raise TypeError(f"wait takes what dyncomp.fork returned, not {type(future).__qualname__}")
    return future.result()
