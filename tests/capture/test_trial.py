"""Functions captured in pieces run as they are where that is quicker: early calls are made both ways."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.policy.trial import trial_of
from dyncomp.hook import _hook

ENOUGH = 40  # calls after which it is settled


class Ways:
    """A function with a compiled and a plain form of given lengths, in seconds."""

    def __init__(self, compiled, plain):
        self.log = log = []
        self.lengths = lengths = {"compiled": compiled, "plain": plain}
        self.decisions = []

        def take(way):
            log.append(way)
            time.sleep(lengths[way])
            return way

        def function(x):
            if x is None:
                raise ValueError(take("plain"))
            return take("plain")

        def replacement(x):
            if x is None:
                raise ValueError(take("compiled"))
            return take("compiled")

        self.config = _hook.HookConfig(lambda *_: None)
        self.entry = _hook.Entry(None, replacement.__code__, trial=self)
        self.function = function
        self.compiled = _hook.Dispatcher(function, self.config, lambda *_: self.entry)

    def plain_entry(self, function):
        assert function is self.function
        return _hook.Entry(None, None, moves=True)

    def decided(self, compiled, plain):
        self.decisions.append((compiled, plain))

    def run(self, count=ENOUGH):
        del self.log[:]
        for _ in range(count):
            assert self.compiled(1) == self.log[-1]
        return self.log


def test_the_quicker_way_wins():
    ways = Ways(0.008, 0.001)
    log = ways.run()
    assert log[:5] == ["compiled"] * 5
    assert log[5:9] == ["plain", "compiled"] * 2
    assert log[9:] == ["plain"] * (ENOUGH - 9)
    assert ways.entry.plain_won
    ((compiled, plain),) = ways.decisions
    assert compiled > plain


def test_compiled_code_stays_where_it_is_quicker():
    ways = Ways(0.001, 0.008)
    log = ways.run()
    assert log.count("plain") <= 5
    assert log[-5:] == ["compiled"] * 5
    assert not ways.entry.plain_won and not ways.decisions


def test_long_calls_are_not_tried():
    ways = Ways(0.11, 0.0)
    assert ways.run(7).count("plain") == 0


def test_what_compiled_code_won_closely_is_tried_once_more():
    ways = Ways(0.004, 0.006)
    assert ways.run(30)[-10:] == ["compiled"] * 10
    ways.lengths["plain"] = 0.0005
    assert ways.run(60)[-1] == "plain"
    ways = Ways(0.002, 0.012)
    ways.run(30)
    ways.lengths["plain"] = 0.0
    assert ways.run(60).count("plain") == 0


def test_a_way_that_becomes_slow_is_tried_again():
    ways = Ways(0.005, 0.0005)
    assert ways.run()[-1] == "plain"
    ways.lengths["plain"] = 0.03
    assert ways.run()[-1] == "compiled"
    assert not ways.entry.plain_won


def test_no_trial_where_there_is_nothing_to_compare():
    ways = Ways(0.001, 0.0)
    ways.plain_entry = lambda function: None
    assert set(ways.run()) == {"compiled"}


def test_exceptions_pass():
    ways = Ways(0.005, 0.0005)
    for _ in range(ENOUGH):
        with pytest.raises(ValueError, match=r"plain|compiled"):
            ways.compiled(None)
    assert ways.run()[-1] == "plain"

    def broken(*_):
        raise LookupError("no")

    ways = Ways(0.001, 0.0)
    ways.plain_entry = broken
    with pytest.raises(LookupError):
        ways.run()


def test_threads():
    ways = Ways(0.005, 0.0005)
    workers = [threading.Thread(target=lambda: [ways.compiled(1) for _ in range(ENOUGH)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(ways.log) == {"compiled", "plain"}


def test_nothing_is_kept():
    ways = Ways(0.005, 0.0005)
    ways.run()
    gone = weakref.ref(ways)
    del ways
    gc.collect()
    assert gone() is None


def test_recursion():
    depth = []

    def plain(n):
        depth.append(n)
        return compiled(n - 1) + 1 if n else 0

    class Both:
        def plain_entry(self, function):
            return _hook.Entry(None, None, moves=True)

        def decided(self, compiled, plain):
            pass

    config = _hook.HookConfig(lambda *_: None)
    entry = _hook.Entry(None, plain.__code__, trial=Both())
    compiled = _hook.Dispatcher(plain, config, lambda *_: entry)
    assert [compiled(5) for _ in range(ENOUGH)] == [5] * ENOUGH
    assert len(depth) == 6 * ENOUGH


# -- programs -------------------------------------------------------------------------------------
class Number:
    def __init__(self, data, parts=()):
        self.data = data
        self.grad = 0.0
        self.back = lambda: None
        self.parts = set(parts)

    def __mul__(self, other):
        out = Number(self.data * other.data, (self, other))

        def back():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.back = back
        return out

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for part in node.parts:
                    visit(part)
                order.append(node)

        visit(self)
        self.grad = np.ones_like(self.data)
        for node in reversed(order):
            node.back()


def gradients(a, b):
    x, y = Number(a), Number(b)
    z = x * y * x
    z.backward()
    return z.data, x.grad, y.grad


def primes(n):
    good = np.ones(n, bool)
    good[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if good[i]:
            good[i * i :: i] = False
    return np.flatnonzero(good)


@pytest.mark.parametrize("measure", (True, False))
def test_programs(measure):
    compiled = dyncomp.compile(gradients, options={"measure": measure})
    found = dyncomp.compile(primes, options={"measure": measure})
    rng = np.random.default_rng(0)
    for n in range(ENOUGH):
        a, b = rng.random(3), rng.random(3)
        for mine, plain in zip(compiled(a, b), gradients(a, b), strict=True):
            np.testing.assert_array_equal(mine, plain)
        np.testing.assert_array_equal(found(1000 + n), primes(1000 + n))


def test_explain_tells():
    compiled = dyncomp.compile(primes)
    compiled(100)
    assert not any("measured" in reason for _, _, reason in dyncomp.explain(compiled)(100).skipped)
    records = compiled.config.records
    records.add_quicker("primes", records.entries[0].loc, "measured")
    assert any("measured" in reason for _, _, reason in dyncomp.explain(compiled)(100).skipped)


# -- bodies of loops ------------------------------------------------------------------------------
def runge_kutta(times, h):
    def slope(t, y):
        return -2 * y + float(np.sin(t))

    y = 1.0
    found = []
    for t in times:
        k1 = slope(t, y)
        k2 = slope(t + h / 2, y + h / 2 * k1)
        k3 = slope(t + h / 2, y + h / 2 * k2)
        k4 = slope(t + h, y + h * k3)
        y += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        found.append(y)
    return found


def counts(keys):
    found = {}
    for key in keys:
        if key in found:
            found[key] += 1
        else:
            found[key] = 1
    return found


def test_iterations_that_are_quicker_as_they_are():
    keys = [n * n % 23 for n in range(400)]
    compiled = dyncomp.compile(counts)
    for _ in range(4):
        assert list(compiled(keys).items()) == list(counts(keys).items())
    steps = np.linspace(0, 1, 200)
    compiled = dyncomp.compile(runge_kutta)
    for _ in range(4):
        np.testing.assert_allclose(compiled(steps, 0.01), runge_kutta(steps, 0.01), rtol=1e-14)


def bodies_of(compiled):
    return [
        made.code for made in compiled.config.stand_ins.values() if compiled.config.is_loop_body(made.code)
    ]


def test_a_loop_that_is_left_plain_is_captured_anew():
    compiled = dyncomp.compile(runge_kutta)
    steps = np.linspace(0, 1, 60)
    compiled(steps, 0.01)
    (body,) = bodies_of(compiled)
    trial_of(compiled.config, body, False, ()).decided(2000, 1000)
    np.testing.assert_allclose(compiled(steps, 0.01), runge_kutta(steps, 0.01), rtol=1e-14)
    reasons = [reason for _, _, reason in compiled.config.records.skipped]
    assert "no array operation in a loop nor after it" in reasons
    assert any("measured to be quicker as it is" in reason for reason in reasons)


def large(x, steps):
    total = np.zeros_like(x)
    for step in steps:
        total = total + x * step
    return total


@pytest.mark.parametrize(("size", "tried"), [(10, True), (100_000, False)])
def test_bodies_with_large_arrays_are_not_tried(size, tried):
    compiled = dyncomp.compile(large)
    compiled(np.ones(size), np.linspace(0, 1, 40))
    (body,) = bodies_of(compiled)
    nodes = [node for entry in compiled.config.records.entries if entry.graph for node in entry.graph.nodes]
    assert (trial_of(compiled.config, body, False, nodes) is not None) == tried


def running(x, seen):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * 2.0
        seen[i % 3] = total
    return total


def test_bodies_that_see_little_of_large_arrays_are_tried():
    compiled = dyncomp.compile(running, options={"native_loops": False})
    compiled(np.ones(100_000), {})
    (body,) = bodies_of(compiled)
    nodes = [node for entry in compiled.config.records.entries if entry.graph for node in entry.graph.nodes]
    assert nodes and trial_of(compiled.config, body, False, nodes)


# -- recursion over numbers -----------------------------------------------------------------------
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def halves(x, low, high):
    if high - low < 8:
        return np.sin(x[low:high]).sum()
    middle = (low + high) // 2
    return halves(x, low, middle) + halves(x, middle, high)


def test_recursion_over_numbers_is_left_alone():
    compiled = dyncomp.compile(fibonacci)
    assert [compiled(n) for n in (15, 15, 12, 9)] == [fibonacci(n) for n in (15, 15, 12, 9)]
    reasons = [reason for _, _, reason in compiled.config.records.skipped]
    assert "a recursive function, in two forms of which there was no array operation" in reasons
    assert not _hook.cache_entries(fibonacci.__code__, compiled.config)


def test_recursion_that_comes_upon_arrays_is_captured():
    compiled = dyncomp.compile(halves)
    x = np.linspace(0, 1, 100)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x, 0, 100), halves(x, 0, 100), rtol=1e-12)
    assert any(entry.graph is not None for entry in compiled.config.records.entries)


def _sorted(x):
    return np.sort(x)


def _sorted_and_more(x):
    return np.sort(x) + x * 2


def _sorted_at(x):
    return np.searchsorted(x, 0.5)


@pytest.mark.parametrize(
    ("function", "tried"), [(_sorted, True), (_sorted_at, True), (_sorted_and_more, False)]
)
def test_calls_of_routines_alone_are_compared(function, tried):
    compiled = dyncomp.compile(lambda x: function(x))
    x = np.linspace(0, 1, 12)
    for _ in range(ENOUGH + 10):
        np.testing.assert_array_equal(compiled(x), function(x))
    (record,) = compiled.config.records.entries
    code = compiled.__wrapped__.__code__
    assert (trial_of(compiled.config, code, False, record.graph.nodes) is not None) == tried


@pytest.mark.parametrize(("size", "tried"), [(10, True), (300, False)])
def test_calls_of_torch_on_small_tensors_are_tried(size, tried):
    torch = pytest.importorskip("torch")
    compiled = dyncomp.compile(lambda x: torch.sort(x)[0] + 1)
    compiled(torch.rand(size, size))
    (record,) = compiled.config.records.entries
    code = compiled.__wrapped__.__code__
    assert (trial_of(compiled.config, code, False, record.graph.nodes) is not None) == tried
