"""Paths through a function that meet share what is compiled behind: captures grow with its branches."""

from __future__ import annotations

import types

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call

BRANCHES = 8


def branching(x, n):
    total = 0.0
    a = x.copy()
    if a.sum() > 3:
        a = a + 1
    if a.sum() > 9:
        a = a * 0.5
    if a[0] > 1:
        total = a.sum()
    if a[1] > 1:
        total = total + a.sum()
    if a[2] > 1:
        total = total + a.max()
    if a[3] > 1:
        total = total - a.min()
    if total > 5:
        a = a - total
    if a[0] > 0:
        a = a + n
    return a, total


def branching_around_loops(x, n):
    a = x.copy()
    if a[0] > 1:
        a = a + 1
    if a[1] > 1:
        a = a * 2
    count = 0
    while a[0] < n:
        if a[1] > count:
            a = a + 1.5
        else:
            a = a + 0.5
        count += 1
    for k in range(20):
        if a[1] > k:
            count = count + k
    return a, count


def branching_in_try(x, n):
    made = []
    try:
        if x[0] > 0:
            made.append("a")
        if x[1] > 0:
            made.append("b")
        try:
            if x[2] > 0:
                made.append("c")
            if x[3] > n:
                raise ValueError(made)
        finally:
            made.append("inner")
    except ValueError as error:
        made.append(str(error))
    return made, x * len(made)


def branching_with_cells(x, n):
    scale = 1

    def scaled(y):
        return y * scale

    if x[0] > 0:
        scale = scale + 1
    if x[1] > 0:
        scale = scale + n
    a = scaled(x)
    if a[2] > 0:
        scale = 7
    return scaled(a), scale


class Model:
    def value(self, x):
        return x + 1


class Larger(Model):
    def value(self, x):
        if x[0] > 0:
            x = x * 2
        if x[1] > 0:
            x = x - 1
        return super().value(x)


def branching_in_method(x, n):
    y = Larger().value(x)
    if y[0] > n:
        y = y / 2
    return y


PROGRAMS = [
    branching,
    branching_around_loops,
    branching_in_try,
    branching_with_cells,
    branching_in_method,
]


def captures(session_before: dict, session_after: dict) -> int:
    return session_after["frames_captured"] - session_before["frames_captured"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_all_paths_are_right_and_captured_once(program):
    compiled = dyncomp.compile(program, backend="eager")
    before = dyncomp.stats()
    for pattern in range(1 << 4):
        x = np.array([2.0 if pattern >> bit & 1 else -2.0 for bit in range(4)])
        plain, found = call(program, (x.copy(), 5)), call(compiled, (x.copy(), 5))
        assert found.kind == plain.kind
        assert found.error == plain.error
        np.testing.assert_equal(found.world, plain.world)
    after = dyncomp.stats()
    assert after["limited"] == before["limited"]
    assert captures(before, after) < 4 * BRANCHES


def test_captures_grow_with_the_branches_not_with_the_paths():
    compiled = dyncomp.compile(branching, backend="eager")
    before = dyncomp.stats()
    rng = np.random.default_rng(0)
    for _ in range(100):
        x = rng.normal(size=4) * 3
        np.testing.assert_equal(compiled(x, 5), branching(x, 5))
    assert captures(before, dyncomp.stats()) <= 4 * BRANCHES


def with_constants(function, values):
    """The function with objects in place of strings among its constants, as by tools that write code."""
    code = function.__code__
    constants = tuple(values.get(c, c) if isinstance(c, str) else c for c in code.co_consts)
    return types.FunctionType(code.replace(co_consts=constants), function.__globals__)


def helper(x):
    return x * 2


def calls_a_constant(x):
    call = "FUNCTION"
    return call(x) + 1


def counts_a_constant(x):
    items = "ITEMS"
    return x + len(items)


def test_a_function_may_be_a_constant_of_the_code():
    for function in (helper, dyncomp.compile(helper, backend="eager")):
        program = with_constants(calls_a_constant, {"FUNCTION": function})
        compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
        np.testing.assert_array_equal(compiled(np.arange(3.0)), [1.0, 3.0, 5.0])


def test_a_list_may_be_a_constant_of_the_code():
    items = [1, 2]
    compiled = dyncomp.compile(with_constants(counts_a_constant, {"ITEMS": items}), backend="eager")
    np.testing.assert_array_equal(compiled(np.arange(3.0)), [2.0, 3.0, 4.0])
    items.append(3)
    np.testing.assert_array_equal(compiled(np.arange(3.0)), [3.0, 4.0, 5.0])
