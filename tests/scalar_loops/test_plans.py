"""Compiled loops that are entered again: C takes the values of each kind, and gives them back."""

import sys

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import outcome

AT_ONCE = {"native_loop_us": 0, "unroll_limit": 0, "debug_verify": True}
R = np.random.default_rng(0)


def entry_of(compiled):
    """The gate of the outermost loop."""
    (record, *_) = compiled.config.records.native_loops
    return record.gate


def again(function, *calls, planned=True):
    """Each of the calls three times, as plain Python does them; C enters the loop from the second on."""
    compiled = dyncomp.compile(function, options=AT_ONCE)
    for args in [*calls, *calls]:
        expected = outcome(function, args)
        for _ in range(3):
            assert outcome(compiled, args) == expected, args
    gate = entry_of(compiled)
    assert bool(gate.plans) == planned
    return gate


def mixed(n, x):
    last = y = z = None
    for i in range(n):
        y = x * 2 + i
        z = y > 3
        last = y - x
    return last, y, z, x


SCALARS = [
    *(3, -(2**40), 0.5, True, np.float64(1.5), np.float32(0.25), np.int64(7), np.int32(-3), np.uint8(9)),
    *(np.int16(5), np.bool_(True), np.int8(-5), np.uint16(8), np.uint32(2**30)),
]


@pytest.mark.parametrize("x", SCALARS, ids=lambda x: f"{type(x).__name__}-{x}")
def test_numbers(x):
    again(mixed, (4, x), (0, x), (2, x))


def test_types_that_change():
    gate = again(mixed, *[(3, x) for x in SCALARS])
    assert len(gate.plans) > 2


def test_large_ints():
    again(mixed, (4, 2**62), (4, 3), (4, 2**63), (4, -(2**63)), (3, 2**70))


def arrays(a, b, n):
    s = 0
    for i in range(n):
        a[i] += b[i, 1]
        s += a[i]
        a, b = a, b
    return s, a, b, a is b


def test_arrays():
    wide = R.random((9, 6))
    again(
        arrays,
        (np.zeros(4), R.random((4, 2)), 4),
        (np.zeros(4, np.float32), R.random((4, 2)), 4),
        (np.zeros(8)[::2], wide[::2, ::3], 4),
        (np.zeros(4), R.random((2, 4)).T, 4),
        (np.zeros(4), R.random((4, 2)), 5),
        (np.zeros((4, 1)), R.random((4, 2)), 4),
        (np.zeros(4), np.broadcast_to(R.random(2), (4, 2)), 4),
        (np.broadcast_to(np.float64(1.0), 4), R.random((4, 2)), 4),
        (np.zeros(4, ">f8"), R.random((4, 2)), 4),
        (np.zeros(4, np.int64), R.integers(0, 5, (4, 2)), 4),
    )


def lists(a, rows, n):
    s = 0
    for i in range(n):
        s += a[i] * rows[i % 2][i]
        a[i] = s
    return s, a, rows


def test_lists():
    ints, floats = [[1, 2, 3], [4, 5, 6]], [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]
    again(lists, ([1, 2, 3], ints, 3), ([1.5, 2.0, 3.0], floats, 3), ([True, False, True], ints, 3))
    again(lists, ([1, 2, 3], ints, 3), ([1, 2.5, 3], ints, 3), ([], ints, 0), ([1, 2], [[], []], 0))


def unbound(n, flag):
    for i in range(n):
        if i == 2:
            found = i * flag
    try:
        return found
    except UnboundLocalError as error:
        return str(error)


def test_locals_that_are_not_assigned():
    again(unbound, (1, 1), (5, 2), (2, 1), (3, 0.5))


def searched(a, wanted):
    steps = iter(range(len(a)))
    for i in steps:
        if a[i] == wanted:
            break
    return i, list(steps)


def test_iterators_of_the_program_are_where_the_loop_left_them():
    again(searched, (R.permutation(9), 4), (np.arange(9), 8), (np.arange(9), 10), (np.arange(3), 0))


def stepped(a, start, stop, step):
    s = 0
    for i in range(start, stop, step):
        s += a[i] * i
    return s


def test_ranges():
    a = R.random(20)
    again(
        stepped, (a, 0, 20, 1), (a, 19, -1, -1), (a, -20, 20, 3), (a, 5, 5, 1), (a, 2, 19, 5), (a, 0, 40, 1)
    )


def carried(n, what):
    s = 0
    for i in range(n):
        s += i
        other = what
    return s, other is what


def test_objects_that_are_only_carried():
    again(carried, (3, "text"), (3, [1, "a"]), (3, object), (3, {1: 2}), (3, (1, 2)), planned=True)


def doubled(x):
    return 2 * x


factor = 3


def called(n):
    s = 0
    for i in range(n):
        s += doubled(i) * factor
    return s


def test_functions_and_globals_that_change():
    global factor
    again(called, (5,), (6,))
    compiled = dyncomp.compile(called, options=AT_ONCE)
    code = doubled.__code__
    try:
        for _ in range(3):
            assert compiled(5) == 60
        doubled.__code__ = (lambda x: 3 * x).__code__
        assert compiled(5) == 90
        factor = 2.5
        assert compiled(5) == 75.0
    finally:
        doubled.__code__ = code
        factor = 3
    assert compiled(5) == 60


def test_error_modes_and_tools_are_heeded():
    compiled = dyncomp.compile(stepped, options=AT_ONCE)
    a = R.random(9)
    for _ in range(3):
        compiled(a, 0, 9, 1)
    gate = entry_of(compiled)
    runs = gate.runs
    previous = sys.gettrace()
    sys.settrace(lambda *args: None)
    try:
        compiled(a, 0, 9, 1)
    finally:
        sys.settrace(previous)
    assert gate.runs == runs
    sys.setprofile(lambda *args: None)
    try:
        compiled(a, 0, 9, 1)
    finally:
        sys.setprofile(None)
    assert gate.runs == runs + 1
    with np.errstate(over="raise"):
        assert compiled(a, 0, 9, 1) == stepped(a, 0, 9, 1)
    assert gate.runs == runs + 1


def test_short_ranges_run_as_plain_python():
    compiled = dyncomp.compile(stepped, options={"native_loop_us": 200, "unroll_limit": 0})
    a = R.random(2000)
    for _ in range(4):
        assert compiled(a, 0, 2000, 1) == stepped(a, 0, 2000, 1)
    gate = entry_of(compiled)
    assert gate.runs and gate.plans and gate.fewest > 1
    runs = gate.runs
    assert compiled(a, 0, 1, 1) == stepped(a, 0, 1, 1)
    assert gate.runs == runs


def test_references_are_kept():
    compiled = dyncomp.compile(arrays, options=AT_ONCE)
    a, b = np.zeros(4), R.random((4, 2))
    for _ in range(3):
        compiled(a, b, 4)
    before = [sys.getrefcount(x) for x in (a, b, None)][:2]
    for _ in range(200):
        compiled(a, b, 4)
    assert [sys.getrefcount(x) for x in (a, b, None)][:2] == before
