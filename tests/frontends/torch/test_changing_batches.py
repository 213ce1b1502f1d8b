"""Routines of torch with a batch size that changes: one graph for all sizes but the first."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
F, D = torch.nn.functional, torch.distributions

import dyncomp  # noqa: E402


def categorical(x):
    d = D.Categorical(logits=x)
    action = d.sample()
    return d.log_prob(action), action


def rows_by_a_range(x):
    return x[range(x.shape[0]), x.argmax(1)] + x[range(2)].sum()


def written_by_a_range(x):
    y = torch.zeros_like(x)
    y[range(x.shape[0]), x.argmax(1)] = 1.0
    return x * y


def ramp(x):
    return x * torch.linspace(0, (len(x) - 1) * 2, len(x))[:, None]


def broadcast(x):
    shape = torch.broadcast_shapes(x.shape, (1, 3), (3,))
    return x.expand(shape) * shape.numel() * x.shape[:1].numel(), torch.broadcast_shapes((2, 1), len(x))


def weighted(x):
    return F.binary_cross_entropy(x.sigmoid(), torch.ones(len(x), 3), x.detach()[:, :1])


def multivariate(x):
    eye = torch.eye(3).expand(len(x), 3, 3)
    p, q = (D.MultivariateNormal(m, scale_tril=eye * 2) for m in (x, torch.zeros_like(x)))
    return D.kl_divergence(p, q), p.rsample()


def drawn(x):
    return torch.multinomial(x.softmax(1), 1) * x, torch.multinomial(x[0].exp(), 2)


def padded(x):
    return F.pad(x, (1, 2), value=3.0), F.pad(x * 2, (0, 1, 2, 0))


def lists_of_sizes(x):
    n = x.shape[0]
    return torch.tensor([n, 3, n + 1]), torch.as_tensor([n, 2], dtype=torch.float32) * x.sum()


def sizes_in_tensors(x):
    n = torch.tensor([x.shape[0], 2])[0]
    return torch.zeros(n, 2) + x[:, :2], x.new_ones((2, n)), x[:1].expand(n, 3) * 2


PROGRAMS = [
    *(lists_of_sizes, sizes_in_tensors),
    padded,
    categorical,
    rows_by_a_range,
    written_by_a_range,
    ramp,
    broadcast,
    weighted,
    multivariate,
    drawn,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_one_graph_for_all_sizes(program):
    dyncomp.reset()
    compiled = dyncomp.compile(program, fullgraph=True)
    for size in (4, 6, 5, 7):
        torch.manual_seed(size)
        mine = torch.randn(size, 3, requires_grad=True)
        theirs = mine.detach().clone().requires_grad_()
        before = dyncomp.stats()
        results = []
        for f, x in ((compiled, mine), (program, theirs)):
            torch.manual_seed(0)
            results.append(f(x))
        torch.testing.assert_close(*results)
        after = dyncomp.stats()
        assert after["fallbacks"] == before["fallbacks"]
        assert size in (4, 6) or after["graphs"] == before["graphs"]
        for found in results:
            parts = found if isinstance(found, tuple) else (found,)
            sum(p.pow(2).sum() for p in parts if isinstance(p, torch.Tensor) and p.requires_grad).backward()
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("bounds", [(0, 1), (1, 2), (2, -1)])
@pytest.mark.parametrize("step", [1, 3, -2])
def test_backwards_through_a_range(bounds, step):
    def program(x):
        start, stop = (b * x.shape[0] if k else b for k, b in enumerate(bounds))
        found = x[0]
        for t in reversed(range(start, stop, step)):
            found = found * 2 + x[t % 3]
        return found, next(reversed(range(len(x))))

    compiled = dyncomp.compile(program, fullgraph=True, backend="eager")
    for size in (4, 6, 5, 9):
        x = torch.randn(size, 3)
        torch.testing.assert_close(compiled(x), program(x))


@pytest.mark.parametrize(
    "p",
    [
        [[0.5, 0.5], [0.0, 0.0]],
        [[1.0, -0.1], [1.0, 1.0]],
        [[1.0, math.nan], [1.0, 1.0]],
        [[1.0, math.inf]],
    ],
)
def test_invalid_probabilities_raise(p):
    def program(x, p):
        y = x + torch.rand(2)
        return y + torch.multinomial(p, 1)

    compiled = dyncomp.compile(program, fullgraph=True)
    x = torch.ones(2)
    compiled(x, torch.tensor([[0.5, 0.5], [0.0, 1.0]]))
    with pytest.raises(RuntimeError, match="robabilit"):
        compiled(x, torch.tensor(p))


def test_padding_of_as_many_rows_as_the_data_says():
    def program(x):
        y = x[x[:, 0] > 0]
        return F.pad(y, (1, 1)).sum(), F.pad(y, (1, 1, 2, 0), value=1.0).sum(0)

    compiled = dyncomp.compile(program, fullgraph=True)
    for x in (torch.randn(5, 3), torch.randn(5, 3), -torch.ones(5, 3)):
        torch.testing.assert_close(compiled(x), program(x))
