"""``torch.distributions`` in captured code: arguments are checked, one graph each."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
D, nn = torch.distributions, torch.nn

import dyncomp  # noqa: E402


def definite(x):
    return x @ x.mT + torch.eye(3)


def by_covariance(x):
    return D.MultivariateNormal(x[:, 0], definite(x)).log_prob(x[:, 1])


def by_precision(x):
    return D.MultivariateNormal(x[:, 0], precision_matrix=definite(x)).entropy()


def standard(x):
    d = D.MultivariateNormal(torch.zeros(3), torch.eye(3))
    return d.log_prob(x), d.sample((2,))


def of_parameters(x):
    return D.Normal(rows, rows.abs() + 1).log_prob(x), D.Normal(rows, 1.0).log_prob(x[0])


rows = nn.Parameter(torch.randn(3))


@pytest.mark.parametrize("program", [by_covariance, by_precision, standard, of_parameters])
@pytest.mark.parametrize("grad", [False, True])
def test_one_graph(program, grad):
    torch.manual_seed(0)
    given = torch.randn(4, 3, 3)
    mine, theirs = (given.clone().requires_grad_(grad) for _ in range(2))
    dyncomp.reset()
    results = []
    with torch.set_grad_enabled(grad):
        for f, x in ((dyncomp.compile(program, fullgraph=True), mine), (program, theirs)):
            torch.manual_seed(1)
            results.append(f(x))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    if grad:
        for found in results:
            (found[0] if isinstance(found, tuple) else found).sum().backward()
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "matrix",
    [
        torch.tensor([[1.0, 2.0], [2.0, 1.0]]),
        torch.tensor([[1.0, 0.5], [0.0, 1.0]]),
        torch.tensor([[1.0, torch.nan], [torch.nan, 1.0]]),
        torch.ones(3, 2),
    ],
)
def test_matrices_that_are_not_definite_raise(matrix):
    def program(x, covariance):
        return D.MultivariateNormal(x, covariance).log_prob(x + 1)

    compiled = dyncomp.compile(program)
    torch.testing.assert_close(*(f(torch.ones(2), 2 * torch.eye(2)) for f in (compiled, program)))
    for f in (compiled, program):
        with pytest.raises((ValueError, RuntimeError)):
            f(torch.ones(2), matrix)
