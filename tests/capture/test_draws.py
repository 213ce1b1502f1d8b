"""Random numbers within captured code: drawn before the graph, from the same streams, in the same order."""

import functools
import random

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import Difference, call


def simulated(rng, x):
    shocks = rng.normal(0.0, 0.2, size=(3, len(x)))
    path = x * np.exp(shocks).prod(axis=0)
    return path.mean(), path, shocks


def mixed(rng, x):
    a = rng.random()
    b = rng.standard_normal(4) * a
    c = rng.integers(0, 9, size=x.shape)
    rng.random(2)  # nobody looks at these
    return x * a + c, b, rng.uniform(-1, 1), rng.permutation(5) + 1, rng.choice(7, size=3, replace=False)


def written(rng, x):
    noise = rng.exponential(2.0, len(x))
    noise[1:] += x[1:]
    noise *= 2
    return noise, noise[::2]


def arguments(rng, x, scale=1.5):
    n = len(x) // 2
    k = rng.binomial(10, 0.25)
    steps = rng.gamma(2.0, scale, (n, 2)) + rng.beta(a=1.0, b=scale)
    return steps.sum(0) * k, rng.poisson(3.5, n) + rng.laplace(scale=scale), rng.choice([1.5, 2.5, 4.0], 2)


def branching(rng, x):
    total = x * 2
    if rng.random() < 0.5:
        total = total + rng.normal(size=x.shape)
    return total.sum(), rng.random()


def in_loop(rng, x):
    for k in range(40):
        x = x + rng.normal(size=x.shape) * k
    return x


def bounded(rng, x):
    step = rng.normal(size=len(x)) + 1
    return x[int(x[0])] + step  # raises where the index is out of bounds


def wrong(rng, x):
    y = x + rng.normal(size=3).sum()
    return y, rng.normal(0.0, -1.0, 2)


def caught(rng, x):
    try:
        found = rng.normal(0.0, x.shape[0] - 5.0, 2)
    except ValueError as error:
        return x * 2, str(error), rng.random()
    return x + found.sum()


def of_given_types(rng, x):
    return rng.random(3, dtype=np.float32) * 2, rng.integers(0, 4, 5, dtype=np.uint8) + np.uint8(1), x


PROGRAMS = [simulated, mixed, written, arguments, branching, in_loop, bounded, wrong, caught]
SOURCES = {
    "PCG64": np.random.default_rng,
    "Philox": lambda seed: np.random.Generator(np.random.Philox(seed)),
}


class Legacy:
    """The methods of a ``RandomState`` under the names that the programs use."""

    def __new__(cls, seed):
        return np.random.RandomState(seed)


def observed(function, make, seed, x):
    rng = make(seed)
    found = call(function, (rng, x.copy()))
    return found.kind, found.error, found.world[0][1:], found.world[1:], rng.random(3), rng.normal(size=2)


def compare(function, make, sizes=(6, 6, 8, 8, 6), backend="eager"):
    fast = dyncomp.compile(function, backend=backend)
    for seed, size in enumerate(sizes):
        x = np.linspace(0.0, 9.0 if seed % 2 else 2.0, size)
        difference = Difference(1e-12)
        difference.walk(observed(function, make, seed, x), observed(fast, make, seed, x), f"call {seed}")
        assert not difference.found, difference.found


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("function", [*PROGRAMS, of_given_types], ids=lambda f: f.__name__)
def test_programs(function, source):
    compare(function, SOURCES[source])


def test_out_of_bounds_draws_nothing_twice():
    compare(bounded, np.random.default_rng, sizes=(9, 3, 9, 3, 9, 2))


def of_legacy(rng, x):
    return rng.rand(2, 3) + rng.randn(), rng.randint(3, size=len(x)) * x, rng.normal(1, 2, 5), rng.rand()


def test_legacy_generators():
    compare(of_legacy, np.random.RandomState)
    compare(simulated, np.random.RandomState)


def test_functions_of_the_module():
    def program(x):
        return np.random.normal(size=len(x)) * x, np.random.rand(), np.random.uniform(0, 3, (2, 2)).sum()

    fast = dyncomp.compile(program, backend="eager", fullgraph=True)
    for seed in range(3):
        np.random.seed(seed)
        expected = (program(np.ones(4)), np.random.normal())
        np.random.seed(seed)
        found = (fast(np.ones(4)), np.random.normal())
        difference = Difference(0.0)
        difference.walk(expected, found, "result")
        assert not difference.found, difference.found


def test_without_breaks():
    for function in (simulated, mixed, written):
        fast = dyncomp.compile(function, backend="eager", fullgraph=True)
        fast(np.random.default_rng(0), np.linspace(0.0, 2.0, 6))


def test_the_inductor():
    for function in (simulated, mixed, written, in_loop):
        compare(function, np.random.default_rng, backend="inductor")


def test_a_failing_graph_puts_the_state_back():
    """A number that the graph is given turns out to be too large for it."""

    def program(rng, x, k):
        noise = rng.normal(size=3)
        return x + noise, (k * 2) // (k - 5)

    fast = dyncomp.compile(program, backend="eager", dynamic=True)
    for k in (1, 2, 3):
        assert fast(np.random.default_rng(1), np.ones(3), k)[1] == (k * 2) // (k - 5)
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    with pytest.raises(ZeroDivisionError):
        program(first, np.ones(3), 5)
    with pytest.raises(ZeroDivisionError):
        fast(second, np.ones(3), 5)
    assert first.random() == second.random()


def test_two_names_of_one_generator():
    def program(a, b, x):
        return a.normal(size=3) + x, b.normal(size=3) * x, x[int(x[1])]

    fast = dyncomp.compile(program, backend="eager")
    for last in (0.0, 1.0, 9.0, 2.0):
        x = np.array([1.0, last, 3.0])
        outcomes = []
        for function in (program, fast):
            rng = np.random.default_rng(3)
            outcome = call(function, (rng, rng, x))
            outcomes.append((outcome.kind, outcome.error, outcome.world[2:], rng.random()))
        difference = Difference(0.0)
        difference.walk(*outcomes, "result")
        assert not difference.found, difference.found


def test_methods_that_are_held():
    draw = np.random.default_rng(5).normal

    def program(x, draw):
        return x + draw(size=3)

    fast = dyncomp.compile(program, backend="eager")
    one, other = np.random.default_rng(5).normal, np.random.default_rng(5).normal
    for _ in range(3):
        assert np.array_equal(fast(np.ones(3), one), program(np.ones(3), other))
    assert np.array_equal(fast(np.ones(3), draw), 1 + np.random.default_rng(5).normal(size=3))
    partial = functools.partial(np.random.default_rng(2).uniform, 1.0)
    assert np.array_equal(fast(np.ones(3), partial), 1 + np.random.default_rng(2).uniform(1.0, size=3))


def test_a_bit_generator_of_the_programs_own():
    class Own(np.random.PCG64):
        pass

    compare(simulated, lambda seed: np.random.Generator(Own(seed)))


def test_refused_arguments_are_the_programs_errors():
    def program(rng, x, size):
        return x + rng.normal(size=size)

    fast = dyncomp.compile(program, backend="eager")
    for size in (3, -1, 2.5, "a", (3, -2), (1, 3)):
        outcomes = [call(f, (np.random.default_rng(0), np.ones(3), size)) for f in (program, fast)]
        assert outcomes[0].error == outcomes[1].error
        assert outcomes[0].kind == outcomes[1].kind


def test_generators_made_here():
    def program(x, seed):
        rng = np.random.default_rng(seed)
        legacy = np.random.RandomState(seed=seed)
        noise = rng.normal(size=x.shape) + legacy.rand(len(x)) + np.random.default_rng(rng).random()
        again = np.random.default_rng([seed, 3]).integers(0, 9, 2)
        return x * noise, rng, legacy.randint(5), again, x[int(x[0])]

    fast = dyncomp.compile(program, backend="eager")
    for seed, first in ((3, 0.0), (3, 1.0), (4, 2.0), (5, 9.0), (-1, 0.0), (6, 1.0)):
        x = np.array([first, 1.0, 2.0])
        outcomes = []
        for function in (program, fast):
            outcome = call(function, (x, seed))
            result = outcome.world[2]
            after = None if result is None else result[1].random(3)
            outcomes.append((outcome.error, result and (result[0], *result[2:]), after))
        difference = Difference(0.0)
        difference.walk(*outcomes, "result")
        assert not difference.found, difference.found


def test_a_generator_made_here_is_no_break():
    def program(x):
        return x + np.random.default_rng(7).normal(size=x.shape)

    fast = dyncomp.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        assert np.array_equal(fast(np.ones((2, 3))), program(np.ones((2, 3))))


def by_arrays(rng, x):
    noise = rng.normal(x, 1.0 + x) + rng.choice(x, 3).sum() + rng.permutation(x)
    x *= 2
    p = np.array([0.25, 0.75])
    return noise * x, rng.exponential(x), rng.choice(2, 4, p=p), rng.uniform(0, x + 1, (2, len(x)))


def test_arrays_as_arguments():
    """Those from outside; what the graph computes or has written breaks it."""
    compare(by_arrays, np.random.default_rng)
    compare(by_arrays, np.random.RandomState)


def test_lists_as_they_were():
    def program(rng, x):
        choices = [1.0, 2.0]
        first = rng.choice(choices, 5)
        choices.append(3.0)
        return first + rng.choice(choices) + rng.permutation(choices).sum() + x[:5]

    compare(program, np.random.default_rng)


def test_what_is_read_is_read_before_the_draws():
    """Where nothing behind the first draw can fail its state is not noted, and nothing more is guarded."""

    class Holder:
        pass

    def program(holder, rng, x):
        noise = rng.normal(size=3)
        return x + noise, [holder.seen, rng.random()], holder.first[2:]

    fast = dyncomp.compile(program, backend="eager")
    for step in range(6):
        holder = Holder()
        holder.first = [1, 2, object()][: 3 - step // 4]
        if step != 4:
            holder.seen = [step] * step
        outcomes = []
        for function in (program, fast):
            rng = np.random.default_rng(step)
            found = call(function, (holder, rng, np.ones(3)))
            outcomes.append((found.error, found.world[2], rng.random()))
        difference = Difference(0.0)
        difference.walk(*outcomes, f"step {step}")
        assert not difference.found, difference.found


def into(rng, x):
    y = x + 1
    rng.random(out=x)
    return y, rng.standard_normal(len(x), np.float64, x), rng.random(2, out=None)


def too_many(rng, x):
    x += 1
    drawn = rng.random(2)
    try:
        rng.choice(3, size=5, replace=False)
    except ValueError:
        drawn = drawn + 1
    x *= 2
    return drawn + x[:2], rng.normal()


def raises_later(rng, x):
    x += 1
    drawn = rng.random(2)
    x *= 2
    return drawn + rng.choice(3, size=5, replace=False).sum() + x[:2]


def seeded_wrongly(rng, x):
    x += 1
    return rng.random(2), np.random.default_rng(-1), x


def along_columns(rng, x):
    return rng.choice([[1, 2, 3], [4, 5, 6]], 5, axis=1) * x[0]


@pytest.mark.parametrize("function", [into, too_many, raises_later, seeded_wrongly, along_columns])
def test_what_is_left_to_the_program(function):
    """Arrays that are drawn into, draws that raise at run time only, and choices along other axes."""
    compare(function, np.random.default_rng, backend="inductor" if function is along_columns else "eager")


def test_what_is_drawn_before_an_error():
    """A ``RandomState`` has drawn by the time it finds that a covariance is none."""

    def program(rng, cov, x):
        return rng.multivariate_normal([0.0, 0.0], cov, 3, check_valid="raise") + x

    fast = dyncomp.compile(program, backend="eager")
    for cov in (np.eye(2), 2 * np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])):
        first, second = np.random.RandomState(3), np.random.RandomState(3)
        expected, found = (call(f, (rng, cov, np.ones(2))) for f, rng in ((program, first), (fast, second)))
        assert found.error == expected.error
        assert first.rand() == second.rand()


def test_what_cannot_fail_is_not_guarded():
    """No state is noted where nothing behind the first draw can raise."""

    def program(rng, x):
        return x + rng.normal(0.0, 2.0, 3), rng.random((2, 2)), rng.standard_normal()

    text = dyncomp.explain(program)(np.random.default_rng(0), np.ones(3)).details()
    assert "random" in text
    assert "kept" not in text


# -- Python's own generator ---------------------------------------------------------------------------------
def of_the_module(rng, x):
    y = x * random.uniform(0.5, 2) + random.gauss(0, 1) + random.normalvariate(1.0, 0.25)
    return y, random.random(), random.randint(3, len(x)) * x


def of_an_instance(rng, x):
    noise = rng.betavariate(2.0, 1.5) + rng.expovariate(0.5) * rng.lognormvariate(0.0, 0.5)
    return x * noise + rng.randrange(2, 9, 3), rng.vonmisesvariate(0.0, 4.0), rng.random()


def flipped(rng, x):
    if rng.random() < 0.5:
        x = x[::-1] + random.random()
    return x * rng.choice([2.0, 3.0]), rng.random()


def out_of_bounds(rng, x):
    step = rng.uniform(-1, 1) + random.random()
    return x[int(x[0])] + step


def never_ending(rng, x):
    return x + random.uniform(1, 2), rng.randint(5, 3)


@pytest.mark.parametrize("function", [of_the_module, of_an_instance, flipped, out_of_bounds, never_ending])
def test_python_generators(function):
    fast = dyncomp.compile(function, backend="eager")
    for seed, size in enumerate((6, 6, 8, 3, 6, 9)):
        outcomes = []
        for f in (function, fast):
            rng, x = random.Random(seed), np.linspace(0.0, 9.0 if seed % 2 else 2.0, size)
            random.seed(seed)
            found = call(f, (rng, x))
            outcomes.append((found.kind, found.error, found.world[1:], rng.random(), random.random()))
        difference = Difference(1e-12)
        difference.walk(*outcomes, f"call {seed}")
        assert not difference.found, difference.found


def test_python_generators_do_not_break():
    for function in (of_the_module, of_an_instance):
        fast = dyncomp.compile(function, backend="eager", fullgraph=True)
        fast(random.Random(0), np.ones(4))


class Loaded(random.Random):
    """Gives the same number always."""

    def random(self):
        return 0.25


def test_generators_of_the_programs_own():
    fast = dyncomp.compile(lambda rng, x: x * rng.random(), backend="eager")
    for make in (random.Random, Loaded, random.SystemRandom, Loaded):
        found = fast(make(3), np.ones(2))
        if make is not random.SystemRandom:
            assert np.array_equal(found, np.full(2, make(3).random()))


def dropped(x, p):
    """Leaves out nothing at 0 and everything at 1: no branch on what was drawn."""
    if random.random() < p:
        return x * 0
    if p >= np.random.rand() or np.random.random() <= p:
        return x * 2
    return x + random.random()


def test_fractions_below_a_bound():
    for p, factor in ((1, 0), (1.5, 0), (1 << 2000, 0)):
        fast = dyncomp.compile(functools.partial(dropped, p=p), backend="eager", fullgraph=True)
        assert np.array_equal(fast(np.ones(3)), np.full(3, factor))
    fast = dyncomp.compile(lambda x: dropped(x, -0.5), backend="eager", fullgraph=True)
    assert (fast(np.ones(3)) >= 1).all()
    fast = dyncomp.compile(dropped, backend="eager")
    for p in (0.0, 0.25, 0.75, 0.0, 1.0):
        for seed in range(4):
            outcomes = []
            for function in (dropped, fast):
                random.seed(seed)
                np.random.seed(seed)
                outcomes.append((function(np.ones(3), p), random.random(), np.random.rand()))
            difference = Difference(0.0)
            difference.walk(*outcomes, f"{p} {seed}")
            assert not difference.found, difference.found
