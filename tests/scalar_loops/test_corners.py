"""Corners of compiled loops: second names, arrays without axes, types that only look alike, the program's own
objects, errors of dyncomp's own."""

import gc
import random
import sys
import tracemalloc
import types

import numpy as np
import pytest

import dyncomp
from dyncomp.scalar_loops.entry import policy
from tests.scalar_loops.runs import Run, check

AT_ONCE = {"native_loop_us": 0, "unroll_limit": 0}


# -- who holds what was made --------------------------------------------------------------------------------
def second_name(it, m, t, row, prev):
    for _ in it:
        row = [0] * m
        prev = row
        t += prev[-1]
    return t, prev


def third_name(it, m, u, w, x):
    for i in it:
        u = [i] * m
        w = u
        x = w
        u = [1.5] * m
        w = u
    return u, w, x


def second_name_of_an_array(it, m, u, w, x):
    for i in it:
        u = np.zeros(m)
        w = u
        x = w
        w[0] = i
        u = np.ones(m)
    return u, w, x


@pytest.mark.parametrize("function", [second_name, third_name, second_name_of_an_array])
def test_second_names(function):
    run = check(function, range(20), 6, 0, None, None, left=False)
    args = (range(20), 6, 0, None, None)
    wanted = [sys.getrefcount(value) for value in function(*args)[1:]]
    for _ in range(20):
        assert [sys.getrefcount(value) for value in run(*args)[1:]] == wanted


def cannot_be_stored(it, v, w):
    for i in it:
        v = np.zeros(3)
        v[0] = i
        if i == 9:
            w, v = v, [i, 7, 8]
    return v, w


def test_what_no_local_gets_is_released():
    run = Run(cannot_be_stored)
    run(range(10), None, None)

    def lists():
        gc.collect()
        found = (x for x in gc.get_objects() if type(x) is list and len(x) == 3)
        return sum(all(type(x) is int for x in three) and three == [9, 7, 8] for three in found)

    before = lists()
    for _ in range(10):
        v, w = run(range(10), None, None)
        assert v == [9, 7, 8] and w.tolist() == [9.0, 0.0, 0.0]
    assert run.record.bailed
    del v
    assert lists() == before


def array_beside_a_tuple(it, a, t, w, u):
    for i in it:
        t = (i, 2)
        if i == 9:
            w, u = t, np.zeros(10000 + i)
    return t, w, u


def copy_beside_a_tuple(it, a, t, w, u):
    for i in it:
        t = (i, 2)
        if i == 9:
            w, u = t, a.copy()
    return t, w, u


@pytest.mark.parametrize("function", [array_beside_a_tuple, copy_beside_a_tuple])
def test_arrays_that_no_local_gets_are_released(function):
    run = Run(function)
    a = np.arange(10000.0)
    t, w, _ = run(range(11), a, None, None, None)
    assert run.record.bailed and t == (10, 2) and w == (9, 2)
    tracemalloc.start()
    try:
        for _ in range(5):
            run(range(11), a, None, None, None)
        assert tracemalloc.get_traced_memory()[0] < a.nbytes
    finally:
        tracemalloc.stop()


# -- arrays without axes ------------------------------------------------------------------------------------
@pytest.mark.parametrize("made", ["a.copy()", "np.zeros_like(a)", "np.ones_like(a)"])
def test_no_axes(made):
    space = {"np": np}
    exec(f"def f(it, a, s, c):\n for i in it:\n  c = {made}\n  s += i\n return s, c", space)
    function = space["f"]
    for a in (np.array(3.0), np.array(3, np.int16), np.array(1j)):
        for _ in range(3):
            check(function, range(20), a, 0, None, native=False)


# -- types --------------------------------------------------------------------------------------------------
def largest(it, t, x, y):
    for i in it:
        y = i + 5
        t += max(i, x, y, x)
    return t


def least(it, t, x, y):
    for i in it:
        y = i - 5
        t += min(x, y, i, x)
    return t


def largest_of_three(it, t, x, y):
    for i in it:
        y = 2.5
        t += max(y, i, y)
    return t


@pytest.mark.parametrize("function", [largest, least, largest_of_three])
@pytest.mark.parametrize("x", [2.0, 3, np.float64(4.5), True, np.int8(3)])
def test_one_local_twice(function, x):
    run = Run(function)
    assert run(range(9), 0.0, x, 0) == function(range(9), 0.0, x, 0)


ODD = ["'q'", "np.longlong", "np.dtype('q')", "'Q'", "np.ulonglong", "WITH_METADATA"]


@pytest.mark.parametrize("dtype", ODD)
def test_dtypes_that_only_look_alike(dtype):
    space = {"np": np, "WITH_METADATA": np.dtype("f8", metadata={"unit": "m"})}
    exec(f"def f(it, s, u):\n for i in it:\n  u = np.zeros(4 + i, {dtype})\n  s += i\n return s, u", space)
    run = Run(space["f"])
    for _ in range(2):
        _, found = run(range(5), 0, None)
        _, expected = space["f"](range(5), 0, None)
        assert found.dtype.char == expected.dtype.char and found.dtype.metadata == expected.dtype.metadata


# -- objects of the program ---------------------------------------------------------------------------------
class Asked:
    """It notes what it is asked for."""

    def __init__(self):
        object.__setattr__(self, "log", [])

    def __call__(self, x):
        return x + 1

    def __getattribute__(self, name):
        if name != "log":
            object.__getattribute__(self, "log").append(name)
        return object.__getattribute__(self, name)

    def __eq__(self, other):
        self.log.append("==")
        return self is other

    def __hash__(self):
        self.log.append("hash")
        return 1

    def __repr__(self):
        self.log.append("repr")
        return "Asked"


asked = Asked()
bound = types.MethodType(asked, 3)


def calls(n):
    s = 0
    for i in range(n):
        s += asked(i)
    return s


def in_a_tuple(n):
    s = 0
    for i in range(n):
        s += (asked, asked)[i % 2](i)
    return s


def as_a_number(n):
    s = 0
    for i in range(n):
        s += min(i, n) + (i if asked is None else 1)
    return s


@pytest.mark.parametrize("function", [calls, in_a_tuple, as_a_number])
def test_objects_are_not_asked(function):
    asked.log.clear()
    expected = function(40)
    wanted = list(asked.log)
    compiled = dyncomp.compile(function, options=AT_ONCE)
    for _ in range(3):
        asked.log.clear()
        assert compiled(40) == expected
        assert asked.log == wanted


def test_random_numbers_are_still_drawn():
    def function(n):
        s = 0.0
        for _ in range(n):
            s += random.random() + random.uniform(1.0, 2.0) + np.random.rand()
        return s

    def seeded(called):
        random.seed(3)
        np.random.seed(3)
        return called(30)

    compiled = dyncomp.compile(function, options=AT_ONCE)
    assert seeded(compiled) == seeded(function)
    assert any(record.runs for record in compiled.config.records.native_loops)


# -- errors of dyncomp's own --------------------------------------------------------------------------------
def test_an_error_in_making_a_plan_is_not_the_programs(monkeypatch, caplog):
    def fails(*args):
        raise RuntimeError("a bug")

    def function(n):
        s = 0
        for i in range(n):
            s += i * i
        return s

    monkeypatch.setattr(policy, "make_plan", fails)
    compiled = dyncomp.compile(function, options={**AT_ONCE, "strict": False})
    for _ in range(3):
        assert compiled(50) == function(50)
    assert "a bug" in caplog.text
    assert any("a bug" in text for text in compiled.config.records.internal_errors)
