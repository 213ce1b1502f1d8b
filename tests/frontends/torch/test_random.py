"""torch's random numbers within captured code: the same streams, in the same order, however they are used."""

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.breaks import Break
from dyncomp.capture.sizes import unbacked
from dyncomp.errors import Unsupported

torch = pytest.importorskip("torch")
F = torch.nn.functional
random_rules = pytest.importorskip("dyncomp.frontends.torch.random")


def factories(x):
    a = torch.rand(3, 4) + x
    b = torch.randn(x.shape, dtype=torch.float64)
    return (
        a,
        b * 2,
        torch.randint(5, (2, 3)),
        torch.randint(2, 9, x.shape) + 1,
        torch.randperm(7),
        torch.rand(()),
    )


def like(x):
    return torch.rand_like(x) * x, torch.randn_like(x, dtype=torch.float64), torch.randn(x.shape[0], 20) + 1


def filled(x):
    y = torch.empty(3, 7).normal_(1.0, 2.0)
    x.uniform_(-1, 1)
    z = torch.zeros(5).exponential_(0.5) + torch.zeros(4, 4).bernoulli_(0.25).sum()
    return y + 1, x * 2, z, x.new_empty(4).cauchy_().log_normal_()


def by_numbers_of_numpy(x):
    bound = np.log(1.5)
    return x * torch.empty(3, 7).uniform_(-bound, bound).exp(), torch.empty(2).normal_(
        np.float32(1), std=np.sqrt(2.0)
    )


def normal(x):
    by_numbers = torch.normal(1.0, 2.0, (3, 20))
    return by_numbers * 2, torch.normal(x, x.abs()), torch.normal(x, 0.5), torch.normal(0.5, x.abs() + 1)


def multinomial(x):
    p = torch.softmax(x.double(), 1)
    drawn = (
        torch.multinomial(p, 1),
        torch.multinomial(p[0], 3),
        p.t().multinomial(2),
        p.float().multinomial(20),
    )
    return *drawn, torch.rand(2) + 1


def bernoulli(x):
    p = torch.sigmoid(x)
    return torch.bernoulli(p), torch.bernoulli(p.T.double()) + 1, p.bernoulli()


def dropped(x):
    return F.dropout(x * 2, 0.3, True) + 1, F.dropout(x, 0.5, False), torch.dropout(x.double(), 0.9, True)


def refused(x):
    """Negative standard deviations raise when all that comes before was drawn."""
    return torch.rand(3), torch.normal(x, x)


def unlikely(x):
    return torch.randn(4), torch.bernoulli(x * 3)


def of_integers(x):
    drawn = torch.rand(2)
    try:
        torch.rand(2, dtype=torch.int64)
    except RuntimeError:
        drawn = drawn + 1
    return drawn, x * 2


def empty_range(x):
    x.add_(1)
    drawn = torch.rand(2)
    try:
        torch.randint(5, 3, (2,))
    except RuntimeError:
        drawn = drawn + x.sum()
    return drawn, torch.rand(2) + 1


def negative(x):
    drawn = torch.rand(2)
    x.add_(1)
    return drawn, torch.normal(0.0, -1.0, (2,))


def negative_rate(x):
    drawn = torch.rand(2)
    x.add_(1)
    return drawn, torch.empty(3).exponential_(-1.0)


def refused_late(x):
    """A rule that is made to refuse when it has drawn."""
    return torch.rand(2), x[1:].clone().normal_() * 2, torch.rand(3)


PROGRAMS = [
    factories,
    like,
    filled,
    by_numbers_of_numpy,
    normal,
    multinomial,
    bernoulli,
    dropped,
    refused,
    unlikely,
]
RAISING = [of_integers, empty_range, negative, negative_rate]


def outcome(function, x, seed):
    torch.manual_seed(seed)
    try:
        found = function(x)
    except RuntimeError as error:
        found = (str(error),)
    return (*found, x, torch.rand(3))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function, backend):
    compare(function, backend)


@pytest.mark.parametrize("function", RAISING, ids=lambda f: f.__name__)
def test_calls_that_raise_behind_a_draw(function):
    compare(function, "eager")


def test_draws_of_a_rule_that_refuses_are_taken_back(monkeypatch):
    """Some calls are tried again with other arguments."""
    writers = [random_rules.write]

    def refuse_once(*args):
        if len(writers) == 1:
            writers.append(refuse_once)
            raise Unsupported("writing")
        return writers[0](*args)

    def twice(tracer, values, run):
        try:
            return run()
        except Break:
            return run()

    monkeypatch.setattr(random_rules, "write", refuse_once)
    monkeypatch.setattr(unbacked, "with_sizes", twice)
    compare(refused_late, "eager")
    assert len(writers) == 2


def compare(function, backend):
    fast = dyncomp.compile(function, backend=backend)
    for seed, rows in enumerate((3, 3, 3, 1)):
        x = torch.randn(rows, 4) if rows == 3 else torch.full((3, 4), 0.25)
        expected = outcome(function, x.clone(), seed)
        found = outcome(fast, x.clone(), seed)
        assert len(found) == len(expected)
        for a, b in zip(expected, found):
            if isinstance(a, str):
                assert a == b
                continue
            assert a.dtype == b.dtype
            assert a.stride() == b.stride()
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "function", [factories, like, filled, normal, dropped, bernoulli], ids=lambda f: f.__name__
)
def test_without_breaks(function):
    dyncomp.compile(function, backend="eager", fullgraph=True)(torch.rand(3, 4))


def test_a_generator_of_the_programs_own():
    def program(x, g):
        return x + torch.rand(3, generator=g), torch.rand(2)

    fast = dyncomp.compile(program, backend="eager")
    for seed in range(3):
        outcomes = []
        for function in (program, fast):
            torch.manual_seed(seed)
            outcomes.append((*function(torch.ones(3), torch.Generator().manual_seed(seed)), torch.rand(1)))
        assert all(torch.equal(a, b) for a, b in zip(*outcomes))


def test_layers_in_training():
    layer = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)).train()
    fast = dyncomp.compile(layer, backend="eager")
    with torch.no_grad():
        for seed in range(3):
            torch.manual_seed(seed)
            expected = layer(torch.ones(3, 4))
            torch.manual_seed(seed)
            torch.testing.assert_close(fast(torch.ones(3, 4)), expected)


def test_many_draws_and_checkpoints():
    """Forward and backward see the same numbers, which are the library's."""
    weights = torch.rand(6)

    def inner(x):
        return F.dropout(x, 0.5) * 2

    def program(x):
        dropped = F.dropout(x, 0.3)
        drawn = torch.multinomial(weights, 3), torch.bernoulli(torch.rand_like(x)), torch.randperm(5)
        again = torch.utils.checkpoint.checkpoint(inner, dropped, use_reentrant=False)
        return dropped, *drawn, torch.normal(x, 1.0), again

    x = torch.ones(4, 5, requires_grad=True)
    fast = dyncomp.compile(program)
    for seed in range(12):  # in pieces, some of which run as plain Python to compare
        results = []
        for function in (program, fast):
            torch.manual_seed(seed)
            found = function(x)
            gradients = torch.autograd.grad(found[0].sum() + (found[-1] * found[-2]).sum(), x)
            results.append((*found, *gradients, torch.rand(2)))
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


def test_checks_of_distributions():
    """``torch.distributions`` checks its arguments by functions of its own, and draws."""
    distributions = torch.distributions

    def program(mean, scale):
        normal = distributions.Normal(mean, scale)
        sample = normal.rsample((2,))
        return (
            sample,
            normal.log_prob(sample),
            normal.entropy(),
            normal.sample(),
            distributions.Uniform(0.0, scale).sample(),
        )

    fast = dyncomp.compile(program, backend="eager", fullgraph=True)
    mean = torch.randn(3, 4)
    for seed in range(3):
        scale = torch.rand(3, 4) + 0.1
        torch.manual_seed(seed)
        expected = program(mean, scale)
        torch.manual_seed(seed)
        for a, b in zip(fast(mean, scale), expected):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
    for function in (program, fast):
        torch.manual_seed(3)
        with pytest.raises(ValueError, match="to satisfy the constraint GreaterThan"):
            function(mean, -scale)
        drawn = torch.rand(2)
        torch.manual_seed(3)
        assert torch.equal(drawn, torch.rand(2))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_as_many_as_the_data_says(backend):
    """The numbers are drawn in plain Python, between two graphs."""

    def program(x):
        return F.dropout(x[x > 0] * 2, 0.5), torch.rand(int((x > 0).sum()))

    fast = dyncomp.compile(program, backend=backend)
    before = dyncomp.stats()["fallbacks"]
    for seed in range(3):
        x = torch.randn(5, 6)
        found, expected = outcome(fast, x, seed), outcome(program, x, seed)
        assert all(map(torch.equal, found, expected))
    assert dyncomp.stats()["fallbacks"] == before
    assert dyncomp.explain(program)(x).breaks[0].id == "data-dependent-shape"
