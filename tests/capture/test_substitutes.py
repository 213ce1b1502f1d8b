"""``dyncomp.substitute``: Python replacements traced in place of C functions."""

from __future__ import annotations

import _struct
import bisect
import heapq
import operator
import zlib

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.calls.substitutes import check_signatures
from dyncomp.capture.polyfills import POLYFILLS
from tests.capture.comparing import break_ids


def test_the_replacement_is_traced():
    calls = []

    def program(x):
        return x * zlib.adler32(b"abc") + 1

    before = dyncomp.compile(program, backend="eager")
    plain = before(np.ones(3))
    assert break_ids(before.config.records) == ["unsupported-call"]

    @dyncomp.substitute(zlib.adler32)
    def adler32(data, value=1, /):
        calls.append(data)
        a, b = value & 0xFFFF, value >> 16
        for byte in data:
            a = (a + byte) % 65521
            b = (b + a) % 65521
        return (b << 16) | a

    after = dyncomp.compile(program, backend="eager")
    assert np.array_equal(after(np.ones(3)), plain)
    assert break_ids(after.config.records) == []
    assert calls == [b"abc"]
    # what was compiled before is captured anew, and reset() keeps substitutes
    assert np.array_equal(before(np.ones(3)), plain)
    assert break_ids(before.config.records)[1:] == []
    dyncomp.reset()
    after(np.ones(3))
    assert calls == [b"abc"] * 3


def test_a_break_inside_calls_the_real_function():
    @dyncomp.substitute(_struct.calcsize)
    def calcsize(format, /):
        print("never seen")
        return 0

    def program(x):
        y = x + 1
        size = _struct.calcsize("dd")
        return y * size

    compiled = dyncomp.compile(program, backend="eager")
    assert np.array_equal(compiled(np.zeros(2)), [16.0, 16.0])
    (record,) = [r for e in compiled.config.records.entries for r in e.breaks]
    assert record.loc.line == program.__code__.co_firstlineno + 2


def test_what_cannot_be_substituted():
    with pytest.raises(TypeError, match="Python function"):
        dyncomp.substitute(test_the_replacement_is_traced)
    with pytest.raises(TypeError, match="not callable"):
        dyncomp.substitute(3)
    with pytest.raises(TypeError, match="must be a Python function"):
        dyncomp.substitute(operator.add)(operator.add)
    with pytest.raises(TypeError, match="cannot stand for"):
        dyncomp.substitute(operator.add)(lambda a: a)


@pytest.mark.parametrize("target", POLYFILLS, ids=lambda f: f.__name__)
def test_polyfills_take_the_same_arguments(target):
    check_signatures(target, POLYFILLS[target])


@pytest.mark.parametrize("seed", range(5))
def test_heaps_and_bisection_equal_the_real_ones(seed):
    rng = np.random.default_rng(seed)
    items = rng.integers(0, 20, 30).tolist()
    mine, real = list(items), list(items)
    POLYFILLS[heapq.heapify](mine)
    heapq.heapify(real)
    assert mine == real
    for value in rng.integers(0, 20, 20).tolist():
        for function in (heapq.heappushpop, heapq.heapreplace, heapq.heappush):
            assert POLYFILLS[function](mine, value) == function(real, value)
            assert mine == real
    while real:
        assert POLYFILLS[heapq.heappop](mine) == heapq.heappop(real)
        assert mine == real
    ordered = sorted(items)
    for value in range(-1, 22):
        for search in (bisect.bisect_left, bisect.bisect_right):
            assert POLYFILLS[search](ordered, value) == search(ordered, value)
            assert POLYFILLS[search](ordered, value, 3, 9) == search(ordered, value, 3, 9)
            found = POLYFILLS[search](ordered, -value, key=operator.neg)
            assert found == search(ordered, -value, key=operator.neg)
