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
from demo.runner import WARM_UP_CALLS, timed

from .engines import MADE_HERE, NotApplicable, package, placed, plain, prepare
from .micro import MICRO, two_arrays

BUDGET_S = 1.0
MIN_CALLS = 7
OVERHEAD_CALLS = 2_000


def _agrees(engine: str, expected: Any, found: Any, rtol: float, differing: float) -> str:
    """What is wrong with a result, or nothing. Peers may have other dtypes; JAX returns changed arguments
    besides."""
    want = plain(expected)
    got = plain(found)
    if engine not in ("numpy", "dyncomp"):
        got = _with_dtypes(got, want)
    if package(engine) == "jax" and isinstance(got, tuple):
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


def _timed(engine: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, Any, Any]:
    """Seconds of one call on copies of the arguments, where the engine has its arrays; its result; the copies."""
    copies = placed(engine, copy.deepcopy(arguments))
    start = time.perf_counter()
    result = function(*copies)
    return time.perf_counter() - start, result, copies


def _repeat(call: Callable[[], float]) -> dict[str, Any]:
    """Median and quartiles of the seconds that calls tell, and how many there were."""
    seconds: list[float] = []
    start = time.perf_counter()
    while len(seconds) < MIN_CALLS or time.perf_counter() - start < BUDGET_S:
        seconds.append(call())
    low, median, high = (float(f"{part:.5g}") for part in np.percentile(seconds, (25, 50, 75)))
    return {"median": median, "quartiles": [low, high], "calls": len(seconds)}


def measure_program(program: Program, engine: str) -> dict[str, Any]:
    """Seconds of the first call and of later ones, and what is wrong with the result."""
    function = program.load()
    arguments = program.make_inputs(False)
    _, expected, expected_arguments = timed(function, arguments)
    compiled = prepare(engine, function, program.name, arguments)
    first, found, found_arguments = _timed(engine, compiled, arguments)
    # peers sum in other orders, some results in single precision: a wider tolerance, values only
    rtol = program.rtol if engine in ("numpy", "dyncomp") else max(10 * program.rtol, 1e-6)
    wrong = _agrees(engine, expected, found, rtol, program.differing)
    if not wrong and engine in ("dyncomp", "torch"):
        comparison = Comparison(rtol, program.differing)
        comparison.same(expected_arguments, found_arguments, "arguments after the call")
        wrong = "; ".join(comparison.problems)
    for _ in range(WARM_UP_CALLS):
        _timed(engine, compiled, arguments)
    later = _repeat(lambda: _timed(engine, compiled, arguments)[0])
    return {"first": first, **later, "wrong": wrong or _left_to_plain_python(engine)}


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
    arguments = placed(engine, arguments)
    start = time.perf_counter()
    found = compiled(*arguments)
    first = time.perf_counter() - start
    wrong = _agrees(engine, expected, found, 2e-5, 0.0)
    times = 1 if micro.bytes_moved else OVERHEAD_CALLS
    for _ in range(WARM_UP_CALLS):
        _calls(compiled, arguments, times)
    later = _repeat(lambda: _calls(compiled, arguments, times))
    return {"first": first, **later, "wrong": wrong or _left_to_plain_python(engine)}


def _calls(function: Callable[..., Any], arguments: tuple[Any, ...], times: int) -> float:
    """Seconds per call of many."""
    start = time.perf_counter()
    for _ in range(times):
        function(*arguments)
    return (time.perf_counter() - start) / times


def measure_first(engine: str) -> dict[str, Any]:
    """Seconds from before the engine's import (NumPy is loaded) to the first result of a small function."""
    arguments = (np.linspace(0.0, 1.0, 1000), np.linspace(1.0, 2.0, 1000))
    expected = two_arrays(*arguments)
    start = time.perf_counter()
    __import__(package(engine))
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
    return {"first": _timed(engine, compiled, (x,))[0], "wrong": ""}


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
