"""What modules of public repositories use, found by ``python -m tests.models``: one graph each, eager's
results and gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
Categorical = torch.distributions.Categorical

import dyncomp  # noqa: E402


def masked(x, y):
    m = x > 0
    z = x * 2
    z[m] = y[m] * 3
    return z


def masked_rows(x, y):
    m = x[:, 0] > 0
    z = torch.zeros_like(y)
    z[m] = torch.tanh(y[m])
    return z


def diagonals(x, y):
    return torch.diag(x) + torch.diag(torch.diag(y[0]))


def splits(x, y):
    return x.split(split_size=2, dim=1)[0] * y.split([1, 3], 1)[0] + torch.split(x, 2)[0][:, :1].sum()


def instance_normalized(x, y):
    z = torch.stack([x, y])
    return F.instance_norm(z) + F.instance_norm(z, weight=x[0], bias=y[1], eps=1e-3)


def focal(x, y):
    logp = F.log_softmax(x, 1)
    return -((1 - logp.data.exp()) ** 2) * logp + y.data


def categorical(x, y):
    d = Categorical(logits=x)
    return d.log_prob(torch.tensor([0, 1, 3, 2])) + d.entropy() + (d.probs * y).sum(-1) + d.mode


PROGRAMS = [masked, masked_rows, diagonals, splits, instance_normalized, focal, categorical]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_graph(program, grad):
    torch.manual_seed(0)
    given = [torch.randn(4, 4), torch.randn(4, 4)]
    mine, theirs = ([x.clone().requires_grad_(grad) for x in given] for _ in range(2))
    dyncomp.reset()
    with torch.set_grad_enabled(grad):
        found, expected = dyncomp.compile(program, fullgraph=True)(*mine), program(*theirs)
    torch.testing.assert_close(found, expected)
    if grad:
        found.pow(2).sum().backward()
        expected.pow(2).sum().backward()
        for a, b in zip(mine, theirs):
            assert (a.grad is None) == (b.grad is None)
            torch.testing.assert_close(a.grad, b.grad)


def test_values_of_another_mask():
    def program(x, y):
        z = x * 2
        z[x > 0] = y[y > 0]
        return z

    x = torch.tensor([1.0, -1.0, 2.0])
    for y in (torch.tensor([3.0, 4.0, -1.0]), torch.tensor([3.0, 4.0, 5.0])):
        dyncomp.reset()
        outcomes = []
        for call in (dyncomp.compile(program), program):
            try:
                outcomes.append(call(x, y).tolist())
            except (IndexError, RuntimeError) as problem:
                outcomes.append(type(problem))
        assert outcomes[0] == outcomes[1]


def test_invalid_parameters_raise():
    program = dyncomp.compile(lambda p: Categorical(probs=p).entropy())
    program(torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="probs"):
        program(torch.tensor([-0.5, 1.5]))


@pytest.mark.parametrize("used", [False, True])
def test_writes_through_data(used):
    """Autograd does not hear of them: they happen in plain Python."""

    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)
            self.register_buffer("mean", torch.ones(4))

        def forward(self, x):
            y = self.lin(x) * self.mean if used else self.lin(x)
            self.mean.data.mul_(0.9).add_(y.sum(0).detach(), alpha=0.1)
            return y / self.mean

    torch.manual_seed(0)
    mine, theirs = Average(), Average()
    theirs.load_state_dict(mine.state_dict())
    compiled, x = dyncomp.compile(mine), torch.randn(4, 4)
    for _ in range(2):
        found, expected = compiled(x), theirs(x)
        torch.testing.assert_close(found, expected)
        found.sum().backward()
        expected.sum().backward()
    torch.testing.assert_close(mine.lin.weight.grad, theirs.lin.weight.grad)
    torch.testing.assert_close(mine.mean, theirs.mean)


def test_what_decides_has_no_gradient():
    """A parameter behind ``argmax`` alone gets ``None``, which optimizers tell from zeros."""
    scores, rows = nn.Linear(4, 3), nn.Parameter(torch.randn(3, 4))

    @dyncomp.compile
    def program(x):
        return (x * rows[scores(x).argmax(1)]).sum(1)

    program(torch.randn(5, 4)).sum().backward()
    assert scores.weight.grad is None
    assert rows.grad is not None


def test_sums_over_as_many_groups_as_the_data_says():
    """The size of the result is read from the data, in training too."""
    lin = nn.Linear(3, 2)

    def program(x, batch):
        size = int(batch.max()) + 1
        return lin(torch.zeros(size, x.size(1)).index_add_(0, batch, x))

    compiled = dyncomp.compile(program)
    for groups in ([0, 0, 1, 1], [0, 1, 2, 1]):
        x, batch = torch.randn(4, 3), torch.tensor(groups)
        found = compiled(x, batch)
        torch.testing.assert_close(found, program(x, batch))
        found.sum().backward()
