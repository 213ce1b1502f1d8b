"""Random reductions through the real compiler: ``python -m tests.inductor.reductions_run --count 20000``.

Every program is lowered, rendered, and read by g++ (its syntax only); ``--values N`` also builds and runs
every N-th of them (of few enough points) and compares with the graph interpreter. The status is 1 where one
fails.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from typing import Any

import numpy as np

from dyncomp.graph.interp import Interpreter
from dyncomp.inductor.compile import compile_graph
from dyncomp.options import Options
from dyncomp.prims.table import TABLE
from tests.inductor.reduction_graphs import Program, make_program, source_of, syntax_errors

BATCH = 50
POINTS = 60_000
TOLERANCE = {"float16": 4e-2, "bfloat16": 2e-1, "float32": 2e-3, "complex64": 2e-3}


def rejected(first: int, count: int) -> dict[int, str]:
    """What went wrong with each program of ``count`` seeds from ``first`` on that has no C++, or C++ that the
    compiler rejects."""
    failed: dict[int, str] = {}
    sources: dict[int, str] = {}
    for seed in range(first, first + count):
        try:
            sources[seed] = source_of(seed, make_program(seed))
        except Exception:
            failed[seed] = traceback.format_exc(limit=-3)
        if len(sources) == BATCH or seed == first + count - 1:
            failed.update(syntax_errors(sources) if sources else {})
            sources = {}
    return failed


def run_program(seed: int, program: Program, sizes: tuple[int, ...]) -> str:
    """How the compiled program differs from the interpreter; "" if it does not."""
    rng = np.random.default_rng(seed)
    arrays = [i.make(sizes, rng) for i in program.inputs]
    with np.errstate(all="ignore"):
        wanted = Interpreter(program.graph, TABLE).run(*arrays)
    found = compile_graph(program.graph, Options()).call(*arrays)
    found = [found] if len(wanted) == 1 else found
    return next((text for k, pair in enumerate(zip(found, wanted)) if (text := _difference(k, *pair))), "")


def _difference(number: int, found: Any, wanted: Any) -> str:
    x, y = np.asarray(found), np.asarray(wanted)
    if x.shape != y.shape or x.dtype != y.dtype:
        return f"output {number}: {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
    if x.dtype.kind in "biu":
        # a comparison of rounded numbers, or the place of the largest of them, may be another one
        return "" if x.size < 20 or (x == y).mean() > 0.9 else f"output {number}: other integers"
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    tolerance = TOLERANCE.get(x.dtype.name, 1e-6)
    with np.errstate(all="ignore"):
        x, y = x.astype(wide), y.astype(wide)
        good = np.isclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, _scale(y)), equal_nan=True)
    if good.size == 0 or good.mean() > 0.995 or good.sum() >= good.size - 1:
        return ""
    return f"output {number}: {x[~good][:4]}, not {y[~good][:4]}"


def _scale(y: Any) -> float:
    finite = np.abs(y[np.isfinite(y)])
    return float(finite.max()) if finite.size else 1.0


def main() -> int:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--values", type=int, default=0)
    arguments = parser.parse_args()
    end = arguments.first + arguments.count
    bad = 0
    for first in range(arguments.first, end, 1000):
        for seed, text in sorted(rejected(first, min(1000, end - first)).items()):
            bad += 1
            print(f"seed {seed}: {text}", flush=True)
        print(f"{min(first + 1000, end) - arguments.first} programs, {bad} failed", flush=True)
    ran = wrong = 0
    for seed in range(arguments.first, end, arguments.values) if arguments.values else ():
        program = make_program(seed, POINTS)
        text = run_program(seed, program, program.sizes)
        ran += 1
        if text:
            wrong += 1
            print(f"seed {seed}: {text}", flush=True)
    if arguments.values:
        print(f"{ran} programs run, {wrong} differ")
    return int(bad + wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
