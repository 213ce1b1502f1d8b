"""Loops over single numbers behind gates, with a stand-in for compiled code that stops anywhere."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences
from tests.scalar_loops.fake import FakeLoop


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def sieve(n):
    flags = np.ones(n, dtype=bool)
    count = 0
    for i in range(2, n):
        if flags[i]:
            count += 1
            for j in range(i * i, n, i):
                flags[j] = False
    return count, flags.sum() * 2


def unbound_behind(a, n):
    for i in range(n):
        v = a[i] * 2
        if v > 7:
            break
    return v, i


def assigned_in_some_step(a, n):
    for i in range(n):
        if a[i] > 3.0:
            best = a[i]
        if i > 5:
            best = max(best, a[i])  # an UnboundLocalError where no element was large
    return best


def rows(a, b):
    s = 0
    for i in range(a.shape[0]):
        t = 0
        for j in range(a.shape[1]):
            if a[i, j] > 3:
                continue
            t += a[i, j]
            b[i] = t
        s += t
    return s, b * 2.0


def beyond_the_end(a, n):
    s = 0.0
    try:
        for i in range(n):
            s += a[i]
            a[i] = 0
    except IndexError as e:
        s = str(e) + str(i)
    return s, a * 2


def uncaught(a, n):
    s = 0.0
    for i in range(n):
        s += a[i] + 1
        a[i] = s
    return s


def found(a):
    for i in range(len(a)):
        for j in range(len(a)):
            if a[i] + a[j] == 7.0:
                return i, j
    return None


def swaps(a, b, n):
    for k in range(n):
        a, b = b, a
        a[k] = b[k] + k
    return a, b, a.sum() - b.sum()


def retested(n):
    total = i = 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        total += i
        while total > 100 and i % 2:
            total -= 7
            if total % 5 == 0:
                break
        else:
            total += 1
    else:
        total *= 2
    return total, i


def half(x, n):
    x = x * 2.0
    total = 0.0
    for i in range(n):
        total += x[i] if i % 2 else -x[i]
    x = x + total
    for i in range(n):
        x[i] = x[i] / (i + 1)
    return x.sum(), total


def inlined(x, n):
    return half(x, n)[0] * 2.0 + half(x + 1.0, n)[1]


def divides(a, n):
    for i in range(n):
        a[i] = 10 // (i - 5)
    return a


def vector():
    return np.arange(20.0)


PROGRAMS = [
    (collatz, lambda: (27,), lambda: (97,), lambda: (1,)),
    (sieve, lambda: (50,), lambda: (100,)),
    (unbound_behind, lambda: (vector(), 20), lambda: (vector(), 0), lambda: (vector(), 2)),
    (assigned_in_some_step, lambda: (vector(), 20), lambda: (vector() * 0, 20), lambda: (vector(), 0)),
    (rows, lambda: (np.arange(40.0).reshape(4, 10) % 7, np.zeros(4))),
    (beyond_the_end, lambda: (vector(), 20), lambda: (vector(), 25)),
    (uncaught, lambda: (vector(), 20), lambda: (vector(), 25)),
    (found, lambda: (vector(),), lambda: (vector() * 10,)),
    (swaps, lambda: (vector(), vector() + 1.0, 13)),
    (retested, lambda: (60,), lambda: (0,)),
    (half, lambda: (vector(), 20), lambda: (vector(), 21)),
    (inlined, lambda: (vector(), 20)),
    (divides, lambda: (vector(), 20), lambda: (vector(), 3)),
]


def compiled_with_fakes(function, seed, chance, **options):
    compiled = dyncomp.compile(
        function, backend="eager", options={"debug_verify": True, "native_loop_us": 0, **options}
    )
    compiled.config.make_native = lambda *facts: FakeLoop(*facts, seed=seed, chance=chance)
    return compiled


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_programs_go_on_anywhere(program):
    function, *makers = program
    for seed, chance in enumerate((0.0, 0.02, 0.1, 0.4, 1.0)):
        compiled = compiled_with_fakes(function, seed, chance)
        for maker in [*makers, *makers]:
            expected, got = call(function, maker()), call(compiled, maker())
            assert not differences(expected, got, 0.0)
            assert expected.frames[1:] == got.frames[1:]
        records = compiled.config.records
        assert not records.counters["internal_errors"]
        assert sum(record.runs for record in records.native_loops)


def test_option_and_explanation():
    compiled = compiled_with_fakes(half, 0, 0.0, native_loops=False)
    compiled(vector(), 20)
    assert not compiled.config.records.native_loops
    compiled = compiled_with_fakes(half, 1, 0.0)
    compiled(vector(), 20)
    records = compiled.config.records
    first = records.native_loops[0]
    assert "entered" in first.describe()
    assert f"{half.__code__.co_firstlineno + 3}" in first.describe()
    reasons = [b.reason for entry in records.entries for b in entry.breaks]
    assert any("compiled as a whole" in reason for reason in reasons)


def test_loops_over_arrays_are_captured():
    def steps(u, n):
        for _ in range(n):
            u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u

    compiled = compiled_with_fakes(steps, 0, 0.0)
    compiled(vector(), 15)
    assert not any(record.runs for record in compiled.config.records.native_loops)


def test_refused_loops_are_captured_otherwise():
    def helper(x):
        return np.exp(x).sum()

    def outer(x, n):
        total = 0
        for i in range(n):
            total += i * len(x)
        return total + helper(x)

    class Refusing(FakeLoop):
        def prepare(self, *values):
            self.problem, self.is_hopeless = "no reason", True

    compiled = compiled_with_fakes(outer, 0, 0.0)
    compiled.config.make_native = Refusing
    for _ in range(4):
        assert compiled(vector(), 50) == pytest.approx(outer(vector(), 50))
    records = compiled.config.records
    assert "plain Python: no reason" in records.native_loops[0].describe()
    assert any(entry.graph is not None for entry in records.entries)


def test_short_loops_stay_plain():
    compiled = compiled_with_fakes(half, 0, 0.0, native_loop_us=20_000)
    for _ in range(3):
        compiled(vector(), 20)
    assert not any(record.runs for record in compiled.config.records.native_loops)


def test_long_loops_are_entered():
    compiled = compiled_with_fakes(collatz, 0, 0.0, native_loop_us=50)
    for n in (27, 97, 871):
        assert compiled(n) == collatz(n)
    assert compiled.config.records.native_loops[0].runs


def test_arguments_are_not_held():
    compiled = compiled_with_fakes(swaps, 3, 0.1)
    arguments = (vector(), vector(), 13)
    assert copy.deepcopy(arguments)[0] is not arguments[0]
    a, b, _ = compiled(*arguments)
    assert a is arguments[1]
    assert b is arguments[0]
