"""``dyncomp.fork`` and ``wait`` in plain Python."""

from __future__ import annotations

import contextvars
import threading
import time
import traceback
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.runtime import _launch
from dyncomp.tasks.pool import MOST_WORKERS, POOL

VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE", default=0)


def test_results_and_arguments() -> None:
    future = dyncomp.fork(lambda a, /, b=0, **more: (a, b, more), 1, b=2, fn=3)
    assert dyncomp.wait(future) == (1, 2, {"fn": 3})
    assert dyncomp.wait(future) == (1, 2, {"fn": 3})
    assert future.done() and isinstance(future, dyncomp.Future)
    assert repr(future) == "<Future: done>"


def test_it_runs_in_another_thread() -> None:
    started = threading.Event()
    names = dyncomp.fork(lambda: (started.set(), threading.current_thread().name)[1])
    assert started.wait(20)
    assert dyncomp.wait(names).startswith("dyncomp-task")


def test_exceptions_keep_their_traceback() -> None:
    def fails(x: int) -> int:
        return 1 // x

    future = dyncomp.fork(fails, 0)
    texts = []
    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as found:
            dyncomp.wait(future)
        texts.append("".join(traceback.format_exception(found.value)))
    assert "in fails" in texts[0] and "1 // x" in texts[0]
    assert len(texts[2].splitlines()) == len(texts[0].splitlines())  # it does not grow
    assert repr(future) == "<Future: raised ZeroDivisionError>"


def test_exceptions_that_are_no_errors() -> None:
    def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        dyncomp.wait(dyncomp.fork(leaves))
    assert dyncomp.wait(dyncomp.fork(int)) == 0  # the worker is still there


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="not callable"):
        dyncomp.fork(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"dyncomp\.fork returned"):
        dyncomp.wait(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        dyncomp.wait(dyncomp.fork(lambda: 0, 1))  # type: ignore[call-arg]


def nested(depth: int) -> int:
    return 0 if depth == 0 else dyncomp.wait(dyncomp.fork(nested, depth - 1)) + 1


def test_nested_forks() -> None:
    assert nested(200) == 200
    assert POOL.workers <= MOST_WORKERS
    assert _settles(lambda: _launch.running_tasks() == 0 and POOL.blocked == 0)


def test_trees_of_forks() -> None:
    def tree(depth: int) -> int:
        if depth == 0:
            return 1
        futures = [dyncomp.fork(tree, depth - 1) for _ in range(3)]
        return sum(map(dyncomp.wait, futures))

    assert tree(6) == 3**6


def test_many_futures_waited_in_any_order() -> None:
    futures = [dyncomp.fork(lambda k=k: k * k) for k in range(1000)]
    assert [dyncomp.wait(f) for f in reversed(futures)] == [k * k for k in reversed(range(1000))]


def test_futures_that_nobody_waits_for_run() -> None:
    seen: list[int] = []
    for k in range(50):
        dyncomp.fork(seen.append, k)
    assert _settles(lambda: len(seen) == 50)


def test_a_task_that_waits_for_itself() -> None:
    box: list[Any] = []
    ready = threading.Event()

    def waits() -> object:
        ready.wait(20)
        return dyncomp.wait(box[0])

    box.append(dyncomp.fork(waits))
    ready.set()
    with pytest.raises(RuntimeError, match="its own result"):
        dyncomp.wait(box[0])


def test_several_threads_wait_for_one_future() -> None:
    calls: list[int] = []
    future = dyncomp.fork(lambda: (time.sleep(0.05), calls.append(1), "x")[2])
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(dyncomp.wait(future))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == ["x"] * 8 and calls == [1]


def test_threads_fork_at_the_same_time() -> None:
    found: list[int] = []

    def forks(k: int) -> None:
        found.append(sum(dyncomp.wait(f) for f in [dyncomp.fork(pow, k, 2) for _ in range(100)]))

    threads = [threading.Thread(target=forks, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [100 * k * k for k in range(8)]


def test_surroundings() -> None:
    def looks() -> tuple[int, str, str]:
        seen = VARIABLE.get(), np.geterr()["divide"], dyncomp.current_stance()
        VARIABLE.set(99)
        np.seterr(divide="print")
        return seen

    token = VARIABLE.set(7)
    try:
        with np.errstate(divide="raise"), dyncomp.set_stance("force_eager"):
            future = dyncomp.fork(looks)
        assert dyncomp.wait(future) == (7, "raise", "force_eager")
        assert dyncomp.wait(dyncomp.fork(looks)) == (7, np.geterr()["divide"], "default")
        assert VARIABLE.get() == 7 and np.geterr()["divide"] != "print"
    finally:
        VARIABLE.reset(token)


def test_errors_of_floating_point() -> None:
    with np.errstate(divide="raise"):
        future = dyncomp.fork(lambda: np.ones(3) / np.zeros(3))
        with pytest.raises(FloatingPointError):
            dyncomp.wait(future)


def test_compiled_functions_in_tasks() -> None:
    def heavy(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = np.tanh(x @ w) / (1 + np.abs(x).sum(axis=1, keepdims=True))
        return x

    fast = dyncomp.compile(heavy)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((96, 96)), rng.standard_normal((96, 96))
    want = fast(x, w)
    for _ in range(5):
        futures = [dyncomp.fork(fast, x, w) for _ in range(8)]
        assert all(np.array_equal(dyncomp.wait(f), want) for f in futures)


def test_tasks_share_the_threads() -> None:
    both = threading.Barrier(2)

    def looks() -> int:
        both.wait(20)
        threads = _launch.threads_here()
        both.wait(20)
        return threads

    before = _launch.num_threads()
    _launch.set_num_threads(8)
    try:
        futures = [dyncomp.fork(looks) for _ in range(2)]
        assert [dyncomp.wait(f) for f in futures] == [4, 4]
        assert _settles(lambda: _launch.threads_here() == 8)
    finally:
        _launch.set_num_threads(before)


def test_what_a_task_used_goes() -> None:
    import weakref

    class Thing:
        pass

    thing = Thing()
    seen = weakref.ref(thing)
    future = dyncomp.fork(lambda x: type(x).__name__, thing)
    assert dyncomp.wait(future) == "Thing"
    del thing
    assert _settles(lambda: seen() is None)


def _settles(holds: Any) -> bool:
    """Whether it holds soon."""
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(holds())
