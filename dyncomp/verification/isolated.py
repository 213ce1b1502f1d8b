"""Work in a forked child: whatever it does to memory, and however it ends, this process goes on as it was.

The child sees every object as it is at the fork, on memory that is copied when it is written. It has one
thread, writes its output nowhere, and leaves by ``os._exit``: nothing of the program's runs at its end.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..dataclass import dataclass
from ..errors import DyncompError
from ..hook import _hook

RETURNED, RAISED, CRASHED, HANGS = "returned", "raised", "crashed", "hangs"
_POLL_SECONDS = 0.05
_state = {"is_child": False}


class CannotFork(DyncompError):
    """This process cannot be copied; the text says why."""


@dataclass
class Ending:
    """How the work of a child ended: ``kind`` is one of ``RETURNED`` (``value``: what it gave), ``RAISED``
    (``text``: the traceback of what its own code raised), ``CRASHED`` (``text``: the signal) and ``HANGS``.
    ``seconds``: how long it took."""

    kind: str
    value: Any = None
    text: str = ""
    seconds: float = 0.0


def is_child() -> bool:
    """Whether this process is such a child."""
    return _state["is_child"]


def check_fork() -> None:
    """Raise :class:`CannotFork` where a child could not go on: the process uses a GPU, or the system has no
    ``fork``."""
    if not hasattr(os, "fork"):
        raise CannotFork("this system cannot copy a process")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise CannotFork("a process that uses a GPU cannot be copied")


class Child:
    """A running child. Leave it by :meth:`result` or :meth:`kill`."""

    def __init__(self, work: Callable[[], object], waits: bool = False) -> None:
        """Fork. ``work`` runs in the child; what it returns is pickled for this process. Where it ``waits``,
        it begins at :meth:`go`, and what this process does in the meantime it does not see."""
        check_fork()
        self._gate = os.pipe() if waits else None
        self._file = tempfile.TemporaryFile(prefix="dyncomp-")  # noqa: SIM115 - closed by kill
        self._start = time.monotonic()
        state = random.getstate()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks while there are threads
            self.pid = os.fork()
        if self.pid == 0:
            random.setstate(state)  # Python seeds it anew in children
            _run(work, self._file.fileno(), self._gate)
        self._status: int | None = None

    def go(self) -> None:
        """Have a child that waits begin."""
        assert self._gate is not None
        self._start = time.monotonic()
        os.write(self._gate[1], b".")

    def wait(self, seconds: float) -> bool:
        """Wait for the end; ``False`` where it did not come in time."""
        end = time.monotonic() + seconds
        with _watched(self.pid) as watch:
            while self._status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self._status = status
                elif time.monotonic() >= end:
                    return False
                else:
                    watch(min(_POLL_SECONDS if watch is _sleep else 1.0, max(end - time.monotonic(), 0.0)))
        return True

    def kill(self) -> None:
        """End the child, if it still runs."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            _, self._status = os.waitpid(self.pid, 0)
        self._file.close()
        for end in self._gate or ():
            os.close(end)
        self._gate = None

    def result(self, seconds: float) -> Ending:
        """What became of the work within ``seconds``; the child is gone then."""
        try:
            ended = self.wait(seconds)
            spent = time.monotonic() - self._start
            if not ended:
                return Ending(HANGS, text=f"no end after {spent:.0f} s", seconds=spent)
            assert self._status is not None
            if os.WIFSIGNALED(self._status):
                number = os.WTERMSIG(self._status)
                return Ending(CRASHED, text=_signal_name(number), seconds=spent)
            self._file.seek(0)
            try:
                kind, value = pickle.load(self._file)
            except Exception:  # it left without an answer: os._exit, or an abort that is no signal
                code = os.waitstatus_to_exitcode(self._status)
                return Ending(CRASHED, text=f"exit status {code}", seconds=spent)
            text = value if kind == RAISED else ""
            return Ending(kind, None if kind == RAISED else value, text, spent)
        finally:
            self.kill()


def run_isolated(work: Callable[[], object], seconds: float) -> Ending:
    """Run ``work`` in a child and wait for it. Raises :class:`CannotFork`; an interrupt ends the child."""
    return Child(work).result(seconds)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def _watched(pid: int) -> Iterator[Callable[[float], None]]:
    """What waits for the end of a process, for so many seconds at most."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield _sleep
        return
    try:
        yield lambda seconds: (select.select([handle], [], [], seconds), None)[1]
    finally:
        os.close(handle)


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _run(work: Callable[[], object], file: int, gate: tuple[int, int] | None) -> None:
    """The life of a child."""
    status = 1
    try:
        if gate is not None:
            os.close(gate[1])
            if not os.read(gate[0], 1):
                return  # the parent is gone
        _state["is_child"] = True
        _hook.set_active(None)
        _silence()
        _one_thread()
        try:
            answer: tuple[str, object] = (RETURNED, work())
            data = pickle.dumps(answer, protocol=5)
        except BaseException:
            data = pickle.dumps((RAISED, traceback.format_exc()))
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        status = 0
    finally:
        os._exit(status)


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - others may stand in for the descriptors
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    import faulthandler

    faulthandler.disable()


def _one_thread() -> None:
    """OpenMP's threads are gone, and it waits for them."""
    from ..runtime import set_num_threads

    set_num_threads(1)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
