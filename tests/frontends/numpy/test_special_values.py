"""Ufuncs and reductions of special values: a seeded sample, or all of them (slow)."""

from __future__ import annotations

import random

import pytest

from . import special_values as sweep

UFUNCS, REDUCTIONS = sweep.all_ufunc_cases(), sweep.all_reduction_cases()
# what differed once
FORMER = [
    *(("bitwise_count", c) for c in "bhi"),
    *((name, 2 * c) for name in ("fmax", "fmin") for c in "edD"),
    *((name, c) for name in ("sin", "tanh", "reciprocal") for c in "FD"),
    *((name, c) for name in ("power", "float_power") for c in ("FF", "DD")),
    ("spacing", "d"),
]


@pytest.mark.parametrize(
    "name, codes", dict.fromkeys([*FORMER, *random.Random(15).sample(UFUNCS, 20)]), ids=str
)
def test_ufuncs(name: str, codes: str) -> None:
    assert not sweep.of_ufunc(name, codes)


@pytest.mark.parametrize("name, code, axis", random.Random(15).sample(REDUCTIONS, 16), ids=str)
def test_reductions(name: str, code: str, axis: str) -> None:
    assert not sweep.of_reduction(name, code, axis)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in UFUNCS}))
def test_all_ufuncs(name: str) -> None:
    cases = [codes for found, codes in UFUNCS if found == name]
    assert not {codes: lines for codes in cases if (lines := sweep.of_ufunc(name, codes))}


@pytest.mark.slow
@pytest.mark.parametrize("name", sweep.REDUCTIONS)
def test_all_reductions(name: str) -> None:
    cases = [case for case in REDUCTIONS if case[0] == name]
    assert not {case: lines for case in cases if (lines := sweep.of_reduction(*case))}
