"""One measurement in a process of its own: ``python -m bench.worker KIND NAME ENGINE`` prints one JSON line.

KIND is ``program``, ``micro``, ``first`` (import and first result) or ``compile`` (seconds to compile a
chain of NAME operations, or a loop of NAME steps).
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from demo.catalog import Program, select
from demo.check import Comparison
from demo.runner import MIN_REPEATS, timed

from .engines import MADE_HERE, NotApplicable, plain, prepare
from .micro import MICRO, two_arrays

BUDGET_S = 1.0
OVERHEAD_CALLS = 2_000
OVERHEAD_ROUNDS = 30


def _agrees(engine: str, expected: Any, found: Any, rtol: float, differing: float) -> str:
    """What is wrong with a result, or nothing. Peers may have other dtypes; JAX returns changed arguments
    besides."""
    want = plain(expected)
    got = plain(found)
    if engine not in ("numpy", "dyncomp"):
        got = _with_dtypes(got, want)
    if engine == "jax" and isinstance(got, tuple):
        want = want if isinstance(want, tuple) else (want,)
        got = got[: len(want)]
    comparison = Comparison(rtol, differing)
    comparison.same(want, got, "result")
    return "; ".join(comparison.problems)


def _with_dtypes(found: Any, like: Any) -> Any:
    """Arrays converted to the dtypes of ``like`` where one kind of number is as good as the other."""
    if isinstance(found, tuple) and isinstance(like, tuple):
        return (*(_with_dtypes(a, b) for a, b in zip(found, like)), *found[len(like) :])
    if isinstance(found, np.ndarray) and isinstance(like, np.ndarray):
        return found.astype(like.dtype) if np.can_cast(found.dtype, like.dtype, "same_kind") else found
    return found


def _repeat(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[float]:
    """Seconds of each call, three or more."""
    seconds: list[float] = []
    start = time.perf_counter()
    while len(seconds) < MIN_REPEATS or time.perf_counter() - start < BUDGET_S:
        seconds.append(timed(function, arguments)[0])
    return seconds


def measure_program(program: Program, engine: str) -> dict[str, Any]:
    """Best and median seconds of a call, first-call seconds, and what is wrong with the result."""
    function = program.load()
    arguments = program.make_inputs(False)
    _, expected, expected_arguments = timed(function, arguments)
    compiled = prepare(engine, function, program.name, arguments)
    first, found, found_arguments = timed(compiled, arguments)
    # peers sum in other orders, some results in single precision: a wider tolerance, values only
    rtol = program.rtol if engine in ("numpy", "dyncomp") else max(10 * program.rtol, 1e-6)
    wrong = _agrees(engine, expected, found, rtol, program.differing)
    if not wrong and engine in ("dyncomp", "torch"):
        comparison = Comparison(rtol, program.differing)
        comparison.same(expected_arguments, found_arguments, "arguments after the call")
        wrong = "; ".join(comparison.problems)
    seconds = _repeat(compiled, arguments)
    wrong = wrong or _left_to_plain_python(engine)
    return {"first": first, "best": min(seconds), "median": float(np.median(seconds)), "wrong": wrong}


def _left_to_plain_python(engine: str) -> str:
    """A complaint if dyncomp compiled nothing, so that NumPy's time is never taken for dyncomp's."""
    if engine != "dyncomp":
        return ""
    import dyncomp

    return "" if dyncomp.stats()["graphs"] else "nothing was compiled"


def measure_micro(name: str, engine: str) -> dict[str, Any]:
    """The same for a micro-kernel; for ``call_overhead``, seconds per call of many."""
    micro = next(m for m in MICRO if m.name == name)
    arguments = micro.arguments()
    expected = micro.function(*copy.deepcopy(arguments))
    compiled = prepare(engine, micro.function, name, arguments)
    start = time.perf_counter()
    found = compiled(*arguments)
    first = time.perf_counter() - start
    wrong = _agrees(engine, expected, found, 2e-5, 0.0)
    for _ in range(5):
        compiled(*arguments)
    seconds = _many_calls(compiled, arguments) if not micro.bytes_moved else _plain_calls(compiled, arguments)
    wrong = wrong or _left_to_plain_python(engine)
    return {"first": first, "best": min(seconds), "median": float(np.median(seconds)), "wrong": wrong}


def _plain_calls(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[float]:
    seconds: list[float] = []
    start = time.perf_counter()
    while len(seconds) < MIN_REPEATS or time.perf_counter() - start < BUDGET_S:
        begin = time.perf_counter()
        function(*arguments)
        seconds.append(time.perf_counter() - begin)
    return seconds


def _many_calls(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[float]:
    a, b = arguments
    seconds: list[float] = []
    for _ in range(OVERHEAD_ROUNDS):
        begin = time.perf_counter()
        for _ in range(OVERHEAD_CALLS):
            function(a, b)
        seconds.append((time.perf_counter() - begin) / OVERHEAD_CALLS)
    return seconds


def measure_first(engine: str) -> dict[str, Any]:
    """Seconds from before the engine's import (NumPy is loaded) to the first result of a small function."""
    arguments = (np.linspace(0.0, 1.0, 1000), np.linspace(1.0, 2.0, 1000))
    expected = two_arrays(*arguments)
    start = time.perf_counter()
    __import__(engine)
    imported = time.perf_counter() - start
    found = prepare(engine, two_arrays, "two_arrays", arguments)(*arguments)
    first = time.perf_counter() - start
    return {"import": imported, "first": first, "wrong": _agrees(engine, expected, found, 1e-12, 0.0)}


def measure_compile(name: str, engine: str) -> dict[str, Any]:
    """Seconds of the first call of a chain of operations (``ops-100``) or of a loop (``steps-1000``)."""
    kind, _, size = name.partition("-")
    function = _chain(int(size)) if kind == "ops" else _stepping(int(size))
    x = np.linspace(0.0, 1.0, 100)
    prepare(engine, two_arrays, "two_arrays", (x, x))(x, x)
    compiled = prepare(engine, function, name, (x,))
    seconds = timed(compiled, (x,))[0]
    return {"first": seconds, "best": min(_repeat(compiled, (x,))), "wrong": ""}


def _chain(operations: int) -> Callable[..., Any]:
    lines = [f"    x = {'np.sin(x) * 0.5' if i % 4 == 0 else f'x + {i}.25'}" for i in range(operations)]
    return _function("def chain(x):\n" + "\n".join(lines) + "\n    return x\n", "chain")


def _stepping(steps: int) -> Callable[..., Any]:
    source = (
        f"def stepping(x):\n    for i in range({steps}):\n"
        "        x = x + 1e-3 * np.sin(x) * i\n    return x\n"
    )
    return _function(source, "stepping")


def _function(source: str, name: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np, "__name__": MADE_HERE}
    exec(compile(source, f"<{name}>", "exec"), space)
    made: Callable[..., Any] = space[name]
    return made


def main(kind: str, name: str, engine: str) -> dict[str, Any]:
    if kind == "program":
        return measure_program(select([name])[0], engine)
    if kind == "micro":
        return measure_micro(name, engine)
    if kind == "first":
        return measure_first(engine)
    return measure_compile(name, engine)


if __name__ == "__main__":
    try:
        answer = main(*sys.argv[1:4])
    except NotApplicable as reason:
        answer = {"left_out": str(reason)}
    except Exception as error:
        answer = {"left_out": f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"}
    print("\n" + json.dumps(answer))
