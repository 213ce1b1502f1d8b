"""``python -m bench.hook``: what the frame hook and the guards cost, in nanoseconds. Prints a table."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dyncomp
from dyncomp.capture.guards.guard import ArrayFacts, Guard, Kind, compile_guards
from dyncomp.capture.guards.source import AttrSource, LocalSource
from dyncomp.hook import _hook

CALLS = 10_000  # a round must fit between two looks of the scheduler
CHECKS = 500
ROUNDS = 300
ATTRIBUTES = 50


def _plain(x: Any) -> Any:
    return x


def _skipped(x: Any) -> Any:
    return x


def _patched(x: Any) -> Any:
    return x


def _replacement(x: Any) -> Any:
    return x


def _callee(x: Any) -> Any:
    return x


def _repeat(function: Callable[[Any], Any], x: Any, times: range) -> None:
    for _ in times:
        function(x)


def _empty(times: range) -> None:
    for _ in times:
        pass


def per_call(run: Callable[[], Any], calls: int = CALLS) -> float:
    """The best of several rounds, in nanoseconds per call."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        run()
        best = min(best, (time.perf_counter_ns() - start) / calls)
    return best


def calling(function: Callable[[Any], Any], x: Any) -> float:
    """One call of ``function(x)`` from Python, the loop's own time taken away."""
    times = range(CALLS)
    loop = per_call(lambda: _empty(times))
    return per_call(lambda: _repeat(function, x, times)) - loop


def with_active(config: Any, measure: Callable[[], float]) -> float:
    previous = _hook.set_active(config)
    try:
        return measure()
    finally:
        _hook.set_active(previous)


def hook_of_another_thread(measure: Callable[[], float]) -> float:
    """``measure()`` while some other thread has the hook on."""
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        _hook.set_active(_hook.HookConfig())
        ready.set()
        done.wait()
        _hook.set_active(None)

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    try:
        return measure()
    finally:
        done.set()
        thread.join()


def array_guard(x: Any) -> Any:
    guard = Guard(LocalSource("x", 0), Kind.ARRAY, ArrayFacts.of(x))
    return compile_guards([guard], env=((x,), {}, {}, None))


class _Holder:
    """Carries many arrays."""


def attribute_guards(holder: Any) -> Any:
    source = LocalSource("holder", 0)
    guards = [
        Guard(AttrSource(source, name), Kind.ARRAY, ArrayFacts.of(value))
        for name, value in vars(holder).items()
    ]
    return compile_guards(guards, env=((holder,), {}, {}, None))


def checking(program: Any, value: Any) -> float:
    """One run of a guard program, without the cost of calling ``check`` from Python."""
    arguments = (value,), {}, {}
    nothing = compile_guards([], env=((value,), {}, {}, None))

    def repeat(check: Callable[..., bool]) -> None:
        for _ in range(CHECKS):
            check(*arguments)

    assert program.check(*arguments)
    own = per_call(lambda: repeat(nothing.check), CHECKS)
    return per_call(lambda: repeat(program.check), CHECKS) - own


def rows() -> list[tuple[str, float]]:
    x = np.ones(8)
    guards = array_guard(x)
    holder = _Holder()
    for i in range(ATTRIBUTES):
        setattr(holder, f"a{i}", np.ones(i + 1))
    config = _hook.HookConfig(None, lambda code: code is _patched.__code__)
    _hook.mark(_skipped.__code__, "skip")
    _hook.add_entry(_patched.__code__, config, _hook.Entry(guards, _replacement.__code__))
    direct = _hook.HookConfig(None)
    _hook.add_entry(_callee.__code__, direct, _hook.Entry(guards, _replacement.__code__))
    dispatcher: Any = _hook.Dispatcher(_callee, direct)
    compiled = dyncomp.compile(lambda a: a + 1.0, backend="eager")
    compiled(x)
    return [
        ("Python call, no hook", calling(_plain, x)),
        ("same, hook on in another thread", hook_of_another_thread(lambda: calling(_plain, x))),
        ("same, hook on, marked skip", with_active(config, lambda: calling(_skipped, x))),
        ("hook on, array guard holds, frame patched", with_active(config, lambda: calling(_patched, x))),
        ("dispatcher, array guard holds", calling(dispatcher, x)),
        ("guards: one array", checking(guards, x)),
        (f"guards: {ATTRIBUTES} array attributes", checking(attribute_guards(holder), holder)),
        ("Python call, no hook, afterwards", calling(_plain, x)),
    ]


def main() -> None:
    print(f"CPython {sys.version.split()[0]}, nanoseconds, best of {ROUNDS} rounds")
    for name, value in rows():
        print(f"  {name:44} {value:8.1f}")


if __name__ == "__main__":
    main()
