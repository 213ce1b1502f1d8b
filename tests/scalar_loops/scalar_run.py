"""Random programs of loops over single numbers, plain and compiled: ``python -m tests.scalar_loops.scalar_run
--from SEED --count N`` prints those that differ."""

from __future__ import annotations

import argparse
import traceback
import warnings
from typing import Any

import numpy as np

import dyncomp
from tests.capture.comparing import Difference
from tests.scalar_loops.scalar_programs import Program, arguments, make_program

VARIANTS = 4


def outcome(function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments afterwards and result; error; lines of its traceback; warnings."""
    result = error = None
    lines: list[Any] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as raised:
            error = (type(raised), str(raised))
            frames = list(traceback.walk_tb(raised.__traceback__))[1:]
            lines = [(frame.f_code.co_name, line) for frame, line in frames]
    warned = [(w.category, str(w.message), w.lineno) for w in caught]
    return (list(args), result), error, lines, warned


def differences(expected: tuple[Any, ...], found: tuple[Any, ...]) -> list[str]:
    walk = Difference(0.0)
    walk.walk(expected[0], found[0], "world")
    notes = walk.found
    for what, a, b in zip(("error", "lines", "warnings"), expected[1:], found[1:]):
        if a != b:
            notes.append(f"{what}: plain {a}, compiled {b}")
    return notes


def check(program: Program, variants: int = VARIANTS, **options: Any) -> tuple[list[str], Any]:
    """What differs, and the records of what was compiled."""
    function = program.function()
    settings = {"debug_verify": True, "native_loop_us": 0, "unroll_limit": 0, **options}
    compiled = dyncomp.compile(function, options=settings)
    notes: list[str] = []
    for variant in range(variants):
        expected = outcome(function, arguments(program, variant))
        found = outcome(compiled, arguments(program, variant))
        if any(entry.graph is not None for entry in compiled.config.records.entries):
            expected, found = expected[:3], found[:3]  # graphs do not warn
        notes += [f"variant {variant}: {note}" for note in differences(expected, found)]
    records = compiled.config.records
    notes += records.internal_errors
    return notes, records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="start", type=int, default=0)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--variants", type=int, default=VARIANTS)
    given = parser.parse_args()
    np.seterr(all="warn")
    differing = native = bailed = 0
    for seed in range(given.start, given.start + given.count):
        program = make_program(seed)
        try:
            notes, records = check(program, given.variants)
        except Exception:
            notes, records = [traceback.format_exc()], None
        if records is not None:
            native += any(record.runs for record in records.native_loops)
            bailed += any(record.bailed for record in records.native_loops)
        if notes:
            differing += 1
            print(f"=== {seed}\n{program.text}", *notes[:6], sep="\n", flush=True)
    print(
        f"{given.count} programs, {native} with compiled loops, {bailed} that left some, {differing} differ"
    )


if __name__ == "__main__":
    main()
