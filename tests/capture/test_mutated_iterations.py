"""Containers that are changed while they are iterated over: as in plain Python, errors and all."""

import linecache
import random

import numpy as np
import pytest

import dyncomp
from tests.capture.mutated_iterations import KINDS, MOMENTS, SHAPES, SPACE, all_cases, text_of

CASES = list(all_cases())
OPTIONS = {"capture_plain": True, "measure": False, "patience_us": 0, "debug_verify": True}
LIMITS = [8, 2]
"""Loops are unrolled, or not."""


def outcome(function, kind):
    c = eval(KINDS[kind][0], dict(SPACE))
    seen = []
    try:
        x, seen, c = function(np.ones(2), c, seen)
        result = x.tolist()
    except Exception as error:
        result = type(error).__name__, str(error)
    return result, repr(seen), repr(c)


def check(case):
    kind, change, form, when, shape, outside = case
    text = text_of(*case)
    name = f"<mutated {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = dict(SPACE)
    exec(compile(text, name, "exec"), space)
    wanted = outcome(space["f"], kind)
    for limit in LIMITS:
        dyncomp.reset()
        compiled = dyncomp.compile(space["f"], backend="eager", options={**OPTIONS, "unroll_limit": limit})
        for _ in range(2):
            found = outcome(compiled, kind)
            if found != wanted or dyncomp.stats()["internal_errors"]:
                return f"{case}, unrolled {limit}:\n{text}\nplain:    {wanted}\ncompiled: {found}"
    return None


def failures(cases):
    return [found for found in map(check, cases) if found is not None]


def test_sample():
    found = failures(random.Random(0).sample(CASES, 120))
    assert not found, f"{len(found)} differ\n" + "\n\n".join(found[:5])


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", range(1, 9))
def test_sample_slow(seed):
    found = failures(random.Random(seed).sample(CASES, 1500))
    assert not found, f"{len(found)} differ\n" + "\n\n".join(found[:5])


def test_all_are_tried():
    assert len(CASES) > 50_000 and {case[3] for case in CASES} == set(MOMENTS)
    assert {case[4] for case in CASES} == set(SHAPES)
