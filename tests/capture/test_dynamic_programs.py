"""Programs whose sizes change: right results, and few entries rather than one for each size."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences
from tests.capture.dynamic_programs import PROGRAMS

SIZES = (7, 100, 3, 2, 50, 8, 1, 0)
# Entries of the function itself, for sizes above one: one for the first size, one for all others. More where
# the program itself does something else for some sizes.
USUAL = 2
MORE = {
    "branch_on_parity": 3,
    "absolute": 3,  # a branch on the sign
    "inner": 3,  # size 2 gives nothing
    "smoothed": 3,
    "last_third": 3,  # size 2 takes nothing
    "helper_with_size": 3,
    "ordered_shapes": 3,
    "convolved": 3,
    "while_halving": 6,  # unrolled, one for each trip count
    "comprehension": 9,  # the sum of a list, one for each length
}
# a loop over a symbolic range stays a loop; its body is captured by itself
LOOPS = {
    "summed_range",
    "loop_over_items",
    "loop_over_rows",
    "loop_of_halves",
    "comprehension",
    "rows_iterated",
    "enumerated",
}
# warnings of empty reductions, left to NumPy
BREAKS_WHEN_EMPTY = {"deviation"}
FOR_KERNELS = (
    "half",
    "last_third",
    "ceil_division",
    "int_of_ratio",
    "reshape_by_factor",
    "differences",
    "gram",
)


def arguments(size: int) -> tuple[Any, ...]:
    random = np.random.default_rng(size)
    return random.standard_normal(size), random.standard_normal(size), random.standard_normal((size, 3))


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(name: str, backend: str) -> tuple[Any, int]:
    """The records, and how many entries the sizes above one made of the function."""
    function = PROGRAMS[name]
    compiled = dyncomp.compile(function, backend=backend, options={"debug_verify": True})
    records = compiled.config.records
    made = 0
    for size in SIZES:
        before = sum(entry.name == function.__qualname__ for entry in records.entries)
        expected = call(function, arguments(size))
        found = call(compiled, arguments(size))
        problems = differences(expected, found, 1e-9)
        assert not problems, (size, problems)
        if size > 1:
            made += sum(entry.name == function.__qualname__ for entry in records.entries) - before
    return records, made


@pytest.mark.parametrize("name", PROGRAMS)
def test_few_entries(name):
    records, made = run(name, "eager")
    assert made <= MORE.get(name, 6 if name in LOOPS else USUAL), [entry.missed for entry in records.entries]
    breaks = {b.id for entry in records.entries for b in entry.breaks}
    assert breaks <= ({"loop"} if name in LOOPS else set()), breaks
    if name not in LOOPS | BREAKS_WHEN_EMPTY:
        assert not records.skipped


@pytest.mark.parametrize("name", FOR_KERNELS)
def test_kernels(name):
    run(name, "inductor")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - set(FOR_KERNELS)))
def test_all_kernels(name):
    run(name, "inductor")
