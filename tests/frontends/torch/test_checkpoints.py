"""``torch.utils.checkpoint`` in captured code: results, gradients, what is saved, what breaks the graph."""

from __future__ import annotations

import copy
import functools

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional

checkpoint, checkpoint_sequential = (
    torch.utils.checkpoint.checkpoint,
    torch.utils.checkpoint.checkpoint_sequential,
)

import dyncomp  # noqa: E402
from tests.frontends.torch.test_gradients import Block, called, close, compare, grad, seeded  # noqa: E402, F401

BOTH = pytest.mark.parametrize("reentrant", [False, True])


class Checkpointed(nn.Module):
    def __init__(self, reentrant, dropout=0.0, **keywords):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(Block(16, 2), nn.Dropout(dropout) if dropout else nn.Identity()) for _ in range(3)
        )
        self.head = nn.Linear(16, 4)
        self.reentrant = reentrant
        self.keywords = keywords

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant, **self.keywords)
        return self.head(x)


def saved_bytes(f, *args):
    """What the forward graph saves besides inputs and outputs."""
    report = dyncomp.explain(f)(*args)
    (pair,) = [e.compiled.gradients for e in report.entries if e.compiled is not None]
    return int(pair.describe().split("\n")[0].split()[1].replace(",", ""))


@BOTH
def test_blocks(reentrant):
    compare(called, Checkpointed(reentrant), grad(2, 5, 16))


@BOTH
def test_dropout_repeats(reentrant):
    """What is computed again sees the numbers that were drawn."""
    compare(called, Checkpointed(reentrant, 0.4), grad(2, 5, 16))


def test_less_is_saved():
    module = Checkpointed(False)
    plain = nn.Sequential(*module.blocks, module.head)
    x = grad(3, 8, 16)
    checkpointed, all_of_it = saved_bytes(module, x), saved_bytes(plain, x)
    assert 0 < checkpointed < all_of_it / 4
    # the inputs of the second and third block and of the head, and no more
    assert checkpointed <= 3 * x.numel() * 4


def test_sequential():
    module = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)])
    compare(lambda m, x: checkpoint_sequential(m, 2, x, use_reentrant=False), module, grad(3, 8))


def test_structures_keywords_and_closures():
    w = grad(4, 4)

    def inner(x, *, scale, pair):
        y = torch.sin(x @ w) * scale
        return {"a": y, "b": [y.t(), (pair[0] * 2.0, None)], "c": 3}

    def f(x, z):
        out = checkpoint(inner, x, scale=2.0, pair=(z, 1), use_reentrant=False)
        assert out["c"] == 3 and out["b"][1][1] is None
        return out["a"].exp(), out["b"][0] * 1.5, out["b"][1][0]

    compare(f, None, grad(4, 4), grad(3))
    assert w.grad is not None


def test_views_identity_and_writes():
    def f(x):
        same = checkpoint(lambda a: a, x * 1.0, use_reentrant=False)
        y = checkpoint(lambda a: (a * 2.0).t(), same, use_reentrant=False)
        y.mul_(3.0)

        def written(a):
            b = a.exp()
            b[0] = a[1] * 2.0
            return b

        z = checkpoint(written, y, use_reentrant=False)
        z += 1.0
        two = checkpoint(lambda a: (lambda b: (b, b[1:]))(a.sin()), z, use_reentrant=False)
        two[0].mul_(2.0)
        return y, z, two[1], two[0].is_contiguous()

    compare(lambda x: f(x)[:3], None, grad(3, 4))


def test_an_argument_comes_back_as_itself():
    def f(x):
        y = checkpoint(lambda a: a, x, use_reentrant=False)
        return y is x, y * 2.0

    x = grad(3)
    is_same, y = dyncomp.compile(f, fullgraph=True)(x)
    assert is_same is f(x)[0] is True
    y.sum().backward()
    close(x.grad, torch.full((3,), 2.0), "gradient")


@BOTH
def test_nested(reentrant):
    def inner(x):
        return torch.sin(x) * x

    def outer(x):
        y = checkpoint(inner, x.exp(), use_reentrant=reentrant)
        return checkpoint(inner, y, use_reentrant=reentrant) + x

    compare(lambda x: checkpoint(outer, x, use_reentrant=reentrant) * 2.0, None, grad(3, 4))


def test_second_derivatives():
    w = torch.randn(4, 4)

    def f(x):
        return (checkpoint(lambda a: torch.tanh(a @ w).exp() * a, x, use_reentrant=False) ** 2).sum()

    def twice(function, x):
        (first,) = torch.autograd.grad(function(x), x, create_graph=True)
        return first, torch.autograd.grad((first**2).sum(), x)[0]

    x = grad(3, 4)
    for found, expected in zip(twice(dyncomp.compile(f, fullgraph=True), x), twice(f, x)):
        close(found, expected, "derivative")


def test_sizes_may_change_and_autocast():
    """Called as libraries of models do, by a ``partial``."""
    again = functools.partial(checkpoint, use_reentrant=False)
    layer = nn.Linear(4, 5)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return again(lambda a: torch.tanh(layer.__call__(a)), x).float() * 2.0

    compiled = dyncomp.compile(f, fullgraph=True)
    for n in (3, 6, 7, 9, 3):
        x = grad(n, 4)
        y = x.detach().clone().requires_grad_()
        compiled(x).sum().backward()
        f(y).sum().backward()
        torch.testing.assert_close(x.grad, y.grad, rtol=2e-2, atol=2e-2)


def test_partial_requires_grad_and_no_grad():
    def f(x, y):
        z = checkpoint(lambda a, b: (a * b, b.sin()), x, y, use_reentrant=False)
        with torch.no_grad():
            t = checkpoint(lambda a: a.exp(), x, use_reentrant=False)
        return z[0], z[1], t

    compare(f, None, grad(3), torch.randn(3))
    compare(f, None, torch.randn(3), torch.randn(3), graphs=0)


def test_hooks_see_one_gradient_each():
    seen = []
    x = grad(3)
    w = grad(3)
    w.register_hook(lambda g: seen.append(g.clone()))
    out = dyncomp.compile(
        lambda a: checkpoint(lambda b: (b * w).sin(), a, use_reentrant=False), fullgraph=True
    )(x)
    out.register_hook(lambda g: g * 2.0)
    out.sum().backward()
    close(seen[0], 2.0 * x.detach() * (x * w).cos().detach(), "gradient")
    assert len(seen) == 1
    (x * w).sin().sum().mul(2.0).backward()
    close(seen[1], seen[0], "gradient")
    close(x.grad, 4.0 * w.detach() * (x * w).cos().detach(), "accumulated")


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.norm, self.other = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
        self.average = nn.BatchNorm1d(4, momentum=None)
        self.register_buffer("seen", torch.zeros(4))


def again(function, *args, **keywords):
    return checkpoint(function, *args, use_reentrant=False, **keywords)


def used_outside(m, x):
    y = again(lambda a: m.norm(m.first(a)), x)
    m.norm.num_batches_tracked.add_(5)
    return m.norm(y)


def written_before_a_product(m, x):
    def part(a):
        m.seen.lerp_(a.detach().mean(0), 0.3)
        return m.first(a + m.seen)

    return again(part, x).sin()


def of_several_results(m, x):
    one, two = again(lambda a: (m.norm(m.first(a)), m.other(m.second(a))), x)
    return one + two, again(lambda a: a.sin(), two)


WRITING = {
    "last": lambda m, x: again(lambda a: m.norm(m.first(a)), x) * 2.0,
    "first": lambda m, x: again(lambda a: m.second(m.norm(a)), x * 2.0),
    "in place": lambda m, x: again(lambda a: F.relu(m.norm(a), inplace=True), x * 2.0).t(),
    "residual": lambda m, x: again(lambda a: a + m.norm(m.first(m.other(a)).relu_()), x).sin(),
    "two": lambda m, x: again(lambda a: m.norm(m.first(a)), again(lambda a: m.other(a), x)),
    "early stop": lambda m, x: again(lambda a: m.norm(a).exp(), x, early_stop=False),
    "reentrant": lambda m, x: checkpoint(lambda a: m.norm(a).sum(1), x * 2.0, use_reentrant=True),
    "used outside": used_outside,
    "before a product": written_before_a_product,
    "running average": lambda m, x: again(lambda a: m.second(m.average(a)), x),
    "several results": of_several_results,
    "of what is detached": lambda m, x: again(lambda a: m.norm(a.detach()), x) + x,
    "not recorded": lambda m, x: again(lambda a: m.norm(m.first(a)).detach(), x) + x,
}


@pytest.mark.parametrize("name", WRITING)
def test_buffers_are_written_again(name):
    """Gradients, and what buffers hold after each step: also where the forward pass runs more than once."""
    compare(WRITING[name], Normed().double(), grad(6, 4).double().detach().requires_grad_(), times=3)


def of_both(step, f=WRITING["residual"]):
    """Buffers and gradients after ``step(function of x, x, module)``, compiled and not."""
    found = []
    module = Normed().double()
    for function in (f, dyncomp.compile(f, fullgraph=True)):
        m = copy.deepcopy(module)
        x = torch.linspace(-1.0, 9.0, 24, dtype=torch.float64).sin().view(6, 4).requires_grad_()
        given = step(lambda x, function=function, m=m: function(m, x), x, m)
        found.append([*m.buffers(), *(p.grad for p in m.parameters()), x.grad, *(given or ())])
    for expected, actual in zip(*found, strict=True):
        close(actual, expected, "buffer or gradient")
    return found[0]


def test_without_backward():
    def step(f, x, m):
        f(x)
        f(x)

    of_both(step)


def test_backward_writes_to_what_is_there_by_then():
    def step(f, x, m):
        first, second = f(x), f(x * 2.0)
        with torch.no_grad():
            m.norm.running_mean.fill_(7.0)
        second.sum().backward(retain_graph=True)
        first.square().sum().backward()
        second.sin().sum().backward()

    of_both(step)


@pytest.mark.parametrize("name", ["all", "weight", "bias", "input", "one result", "no result"])
def test_some_gradients(name):
    def two(m, x):
        return again(lambda a: m.norm(m.first(a)), x), again(lambda a: m.other(m.second(a)), x), x.sin()

    def step(f, x, m):
        one, other, plain = f(x)
        by = {"weight": m.first.weight, "bias": m.other.bias, "input": x}.get(name)
        if name == "no result":
            plain.sum().backward()
        elif name == "one result":
            (one.square().sum() + plain.sum()).backward()
        elif by is None:
            (one.sin().sum() + other.exp().sum()).backward()
        else:
            return torch.autograd.grad((one.sin().sum() + other.exp().sum()), by)
        return ()

    of_both(step, two)


def test_frozen_parameters_and_evaluation():
    def step(f, x, m):
        m.requires_grad_(False)
        f(x).sum().backward()
        f(x.detach())
        m.eval()
        f(x).sum().backward()

    of_both(step)


def test_sizes_may_change():
    f, modules = WRITING["residual"], [Normed().double() for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    compiled = dyncomp.compile(f, fullgraph=True)
    for n in (6, 7, 9, 6):
        x = torch.randn(n, 4, dtype=torch.float64)
        f(modules[0], x).exp().sum().backward()
        compiled(modules[1], x).exp().sum().backward()
    for one, other in zip(*(m.state_dict().values() for m in modules)):
        close(other, one, "buffer")


def test_no_second_derivative_beside_writes():
    module, x = Normed(), grad(6, 4)
    result = dyncomp.compile(WRITING["last"], fullgraph=True)(module, x)
    with pytest.raises(dyncomp.NotDifferentiableError, match="second derivative"):
        torch.autograd.grad(result.exp().sum(), x, create_graph=True)


def after_what_is_saved(m, x):
    def part(a):
        y = m.norm(m.first(a))
        m.seen.add_(1.0)
        return y

    return again(part, x)


def by_two_ways(m, x):
    return again(lambda a: (m.norm(m.first(a)), a * 2.0), x)[1]


def twice_over(m, x):
    return again(lambda a: m.norm(m.first(a)), again(lambda a: m.norm(a), x))


UNCERTAIN = {
    "after what is saved": after_what_is_saved,
    "two ways": by_two_ways,
    "the same one": twice_over,
    "nested": lambda m, x: again(lambda a: again(lambda b: m.norm(m.first(b)), a).sin(), x),
    "a bias of its own": lambda m, x: again(lambda a: m.first(m.norm(a)[None]), x),
    "nothing saved": lambda m, x: again(lambda a: (m.seen.add_(1.0), a + 1.0)[1], x),
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_uncertain_writes_break_the_graph(name):
    """The function may stop before them when it runs again, or not run again."""
    f = UNCERTAIN[name]
    compare(f, Normed().double(), grad(6, 4).double().detach().requires_grad_(), fullgraph=False, graphs=0)
    with pytest.raises(dyncomp.GraphBreakError, match="checkpoint"):
        dyncomp.compile(f, fullgraph=True)(Normed(), grad(6, 4))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(4), nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.linear(self.norm(x))


def test_what_is_changed_is_changed_twice():
    """As in eager torch, where the function runs again: the graph breaks there."""
    module = Counting()

    def f(m, x):
        return checkpoint(m, x * 2.0, use_reentrant=False).sin()

    compare(f, module, grad(6, 4), fullgraph=False)
    with pytest.raises(dyncomp.GraphBreakError, match="checkpoint"):
        dyncomp.compile(f, fullgraph=True)(module, grad(6, 4))
    other = Counting()
    dyncomp.compile(f)(other, grad(6, 4)).sum().backward()
    assert other.calls == 2 and other.norm.num_batches_tracked == 2


@pytest.mark.parametrize("name", ["draws", "debug", "contexts", "no_gradient"])
def test_other_arguments_break_the_graph(name):
    keywords = {
        "draws": {"use_reentrant": False, "preserve_rng_state": False},
        "debug": {"use_reentrant": False, "debug": True},
        "contexts": {"use_reentrant": False, "context_fn": lambda: (torch.no_grad(), torch.no_grad())},
        "no_gradient": {"use_reentrant": True},
    }[name]

    def f(x):
        return checkpoint(lambda a: F.dropout(a, 0.5), x * 2.0, **keywords)

    with pytest.raises(dyncomp.GraphBreakError, match="checkpoint"):
        dyncomp.compile(f, fullgraph=True)(torch.randn(3) if name == "no_gradient" else grad(3))
