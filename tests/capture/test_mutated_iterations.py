"""Containers that are changed while they are iterated over: as in plain Python, errors and all."""

import collections
import functools
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


_CALLED_BACK = [
    "max({c}, key=lambda k: {change})",
    "min({c}, key=lambda k: {change})",
    "sorted({c}, key=lambda k: {change})",
    "functools.reduce(lambda a, b: {change}, {c})",
    "list(map(lambda k: {change}, {c}))",
    "list(filter(lambda k: {change}, {c}))",
    "any(not {change} for k in {c})",
    "sum({change} for k in {c})",
    "max(iter({c}), key=lambda k: {change})",
]
_CONTAINERS = [
    ("{1: 2, 3: 4}", ("c", "c.keys()", "c.values()", "c.items()"), "(c.setdefault(len(c) + 77, 1) and 1)"),
    ("{1, 3}", ("c",), "(c.add(len(c) + 77) or 1)"),
    ("[1, 3]", ("c",), "(c.append(5) if len(c) < 6 else None) or 1"),
    ("collections.deque([1, 3])", ("c",), "(c.append(5) or 1)"),
    ("collections.OrderedDict({1: 2, 3: 4})", ("c", "c.items()"), "(c.setdefault(len(c) + 77, 1) and 1)"),
]


@pytest.mark.parametrize("call", _CALLED_BACK)
@pytest.mark.parametrize(("made", "forms", "change"), _CONTAINERS, ids=lambda v: v if type(v) is str else "")
def test_what_a_builtin_calls_changes_the_container(made, forms, change, call):
    names = {"collections": collections, "functools": functools}
    for form in forms:
        text = call.format(c=form, change=change)
        function = eval(f"lambda x, c: ({text}, x + 1.0)", names)
        compiled = dyncomp.compile(function)
        for _ in range(2):
            outcomes = []
            for f in (function, compiled):
                given = eval(made, names)
                try:
                    outcomes.append((str(f(np.ones(3), given)), given))
                except RuntimeError as error:
                    outcomes.append((repr(error), given))
            assert outcomes[0] == outcomes[1], text
