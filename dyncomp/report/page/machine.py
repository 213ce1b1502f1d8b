"""What this machine can do at best: memory bandwidth and floating-point operations, measured once per process
with dyncomp's own kernels on the threads that they use."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...graph.text import parse
from ...inductor.compile import compile_graph
from ...options import make_options
from ...prims.table import TABLE
from ...runtime import num_threads

_TRIAD = """\
def stream_triad(in0, in1):  # functional
    # in0: float64[{n}]  array  'a'
    # in1: float64[{n}]  array  'b'
    v0 = full(shape=(), value=2.0, dtype=float64, device=device('cpu'))  # float64[]
    v1 = broadcast_in_dim(v0, shape=({n},), dims=())  # float64[{n}]{{0}}
    v2 = multiply(v1, in1)  # float64[{n}]
    v3 = add(in0, v2)  # float64[{n}]
    return v3,
"""
_PRODUCT = """\
def product(in0, in1):  # functional
    # in0: {dtype}[{n}, {n}]  array  'a'
    # in1: {dtype}[{n}, {n}]  array  'b'
    v0 = dot_general(in0, in1, contract=((1,), (0,)), batch=((), ()))  # {dtype}[{n}, {n}]
    return v0,
"""
# Elements of each of the three arrays of the triad, far beyond caches; rows of the matrices.
_ELEMENTS, _ROWS = 6 << 20, 768
# Seconds of one turn of each, and turns: what else the machine does should not meet all of them.
_SECONDS, _TURNS = 0.08, 3


@dataclass(frozen=True)
class Machine:
    """``bandwidth``: bytes per second of ``a + 2 * b`` on large arrays; ``flops``: per second of matrix
    products, by dtype; ``threads``: on how many."""

    bandwidth: float
    flops: dict[str, float]
    threads: int


@functools.cache
def _measured(threads: int) -> Machine:
    ones = np.ones(_ELEMENTS)
    dtypes = ("float32", "float64")
    matrices = [np.full((_ROWS, _ROWS), 0.5, dtype) for dtype in dtypes]
    calls = [_call(_TRIAD.format(n=_ELEMENTS), (ones, ones.copy()))]
    calls += [
        _call(_PRODUCT.format(n=_ROWS, dtype=dtype), (matrix, matrix.copy()))
        for dtype, matrix in zip(dtypes, matrices)
    ]
    best = [float("inf")] * len(calls)
    for _ in range(_TURNS):
        best = [min(known, _best(call)) for known, call in zip(best, calls)]
    triad, *products = best
    flops = {dtype: 2.0 * _ROWS**3 / seconds for dtype, seconds in zip(dtypes, products)}
    return Machine(3 * ones.nbytes / triad, flops, threads)


def this_machine() -> Machine:
    """The peaks, measured within about a second at the first call in a process (and for each number of
    threads). Raises ``ToolchainError`` without a C++ compiler."""
    return _measured(num_threads())


def _call(text: str, arguments: Sequence[Any]) -> Callable[[], Any]:
    """A call of the graph ``text``, made once."""
    options = make_options(environ={})
    call: Callable[..., Any] = compile_graph(parse(text, TABLE), options).call
    call(*arguments)
    return functools.partial(call, *arguments)


def _best(call: Callable[[], Any]) -> float:
    """Seconds of the best call of some."""
    end = time.perf_counter() + _SECONDS
    best = float("inf")
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
