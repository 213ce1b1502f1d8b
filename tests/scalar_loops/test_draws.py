"""Random numbers in compiled loops: the streams of ``random``, ``np.random`` and NumPy's generators."""

import random
import threading

import numpy as np
import pytest

from tests.scalar_loops.runs import Run, shown

N = 700  # more than the words that the Mersenne Twister makes at a time


def numpy_legacy(it, low, high, s, k, left):
    for i in it:
        s += np.random.random() + np.random.rand() * np.random.random_sample()
        s += np.random.uniform(low, high) + np.random.uniform() + np.random.uniform(2, 3)
        left = i
        if i % 3:
            s += np.random.normal(low, 1.5) + np.random.randn() + np.random.standard_normal()
        k += np.random.randint(10) + np.random.randint(-5, 2**33) + np.random.randint(7, 8)
    return s, k, left


def python_random(it, low, high, s, k):
    for _ in it:
        s += random.random() + random.uniform(low, high)
        k += random.randint(1, 6) + random.randrange(100) + random.randrange(3, 2**40) + random.randint(4, 4)
    return s, k


def random_state(it, rng, s, k):
    for _ in it:
        s += rng.random_sample() + rng.normal() + rng.randn() + rng.uniform(1.0, 2.0)
        k += rng.randint(1, 60)
    return s, k


def generator(it, rng, s, k):
    for _ in it:
        s += rng.random() + rng.uniform(-1.0, 2.0)
        k += rng.integers(0, 7) + rng.integers(3, 2**31)
    return s, k


def seeded(function, args, seed):
    """Result, and the next numbers of all streams."""
    np.random.seed(seed)
    random.seed(seed)
    result = shown(function(*args))
    after = (np.random.normal(), np.random.random(), random.random())
    return result, after, [arg.uniform() for arg in args if hasattr(arg, "uniform")]


GENERATORS = [
    lambda: np.random.default_rng(7),
    lambda: np.random.Generator(np.random.MT19937(7)),
    lambda: np.random.Generator(np.random.SFC64(7)),
]


@pytest.mark.parametrize("function", [numpy_legacy, python_random])
def test_streams_of_modules(function):
    run = Run(function)
    for seed in (1, 2):
        args = (range(N), -1.5, 4.25, 0.0, 0, 0)[: function.__code__.co_argcount]
        assert seeded(run, args, seed) == seeded(function, args, seed)
        assert run.is_native, run.native.problem
    assert not run.record.bailed


@pytest.mark.parametrize("make", GENERATORS)
def test_generators(make):
    run = Run(generator)
    assert seeded(run, (range(N), make(), 0.0, 0), 3) == seeded(generator, (range(N), make(), 0.0, 0), 3)
    assert run.is_native and not run.record.bailed, dict(run.record.bailed)


def test_random_states():
    run = Run(random_state)
    made = [np.random.RandomState(5) for _ in range(2)]
    assert seeded(run, (range(N), made[0], 0.0, 0), 3) == seeded(random_state, (range(N), made[1], 0.0, 0), 3)
    assert run.is_native and not run.record.bailed


def late_leave(it, limit, k):
    for i in it:
        k = int(np.random.random() * 8) + (2**62 if i > limit else 1) * np.random.randint(1, 4)
    return k


def test_what_was_drawn_is_not_drawn_again():
    run = Run(late_leave)
    assert seeded(run, (range(50), 40, 0), 3) == seeded(late_leave, (range(50), 40, 0), 3)
    assert run.record.bailed


BAD = [
    "np.random.randint(0)",
    "np.random.randint(3, -3)",
    "np.random.normal(0.0, -1.0)",
    "np.random.uniform(-1e308, 1e308)",
    "random.randrange(0)",
    "random.randint(3, 2)",
    "np.random.normal(0.0, 0.0)",
    "random.uniform(1, 2)",
]


@pytest.mark.parametrize("text", BAD)
def test_bad_arguments(text):
    space = {"np": np, "random": random}
    exec(f"def f(it, s):\n    for i in it:\n        s += {text}\n    return s\n", space)
    random.seed(1)
    np.random.seed(1)
    expected = None
    for function in (space["f"], Run(space["f"])):
        random.seed(1)
        np.random.seed(1)
        try:
            found = function(range(5), 0.0)
        except Exception as error:
            found = (type(error), str(error))
        found = (found, np.random.random(), random.random())
        assert expected in (None, found)
        expected = found


def one_by_one(it, rng, s):
    for _ in it:
        s += rng.random()
    return s


def test_a_generator_that_another_thread_uses_is_left_alone():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    held, done = threading.Event(), threading.Event()

    def hold():
        with rng.bit_generator.lock:
            held.set()
            done.wait(20)

    run = Run(one_by_one)
    run(range(5), np.random.default_rng(1), 0.0)  # compiles it
    assert not run.record.bailed
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    threading.Timer(1.0, done.set).start()
    assert run(range(5), rng, 0.0) == one_by_one(range(5), twin, 0.0)
    assert run.record.bailed
    thread.join()


def with_keywords(it, rng, s):
    for _ in it:
        s += rng.uniform(high=5.0, low=4.0) + np.random.normal(scale=0.5, loc=7.0)
        s += np.random.uniform(high=5.0, low=4.0) + np.random.randint(high=9, low=7)
    return s


def test_keywords():
    run = Run(with_keywords)
    args = [(range(9), np.random.default_rng(2), 0.0) for _ in range(2)]
    assert seeded(run, args[0], 1) == seeded(with_keywords, args[1], 1)


class Mine(np.random.Generator):
    pass


def test_other_generators_are_plain():
    run = Run(one_by_one)
    found, expected = (f(range(5), Mine(np.random.PCG64(1)), 0.0) for f in (run, one_by_one))
    assert found == expected and "bits" not in run.record.source
