"""Operators that a program registers (``torch.library.custom_op``): nodes of the graph, called as it runs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

CALLS: list[str] = []


@torch.library.custom_op("dyncomp_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    CALLS.append("scaled")
    return x.clone() * by


@scaled.register_fake
def _like(x, by=2.0):
    return torch.empty_like(x)


scaled.register_autograd(lambda ctx, g: (g * 5, None))  # not its derivative: to tell whose is taken


@torch.library.custom_op("dyncomp_tests::turned", mutates_args=())
def turned(x: torch.Tensor) -> torch.Tensor:
    return x.t().clone()


@turned.register_fake
def _of_its_sizes(x):
    return x.new_empty(x.shape[1], x.shape[0])


@torch.library.custom_op("dyncomp_tests::written", mutates_args=("x",))
def written(x: torch.Tensor) -> None:
    x.mul_(3)


@torch.library.custom_op("dyncomp_tests::positive", mutates_args=())
def positive(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]


@pytest.fixture(autouse=True)
def _fresh():
    dyncomp.reset()
    yield
    dyncomp.reset()


@pytest.mark.parametrize(
    "operator",
    [
        lambda x: torch.ops.dyncomp_tests.scaled(x, 3.0),
        lambda x: torch.ops.dyncomp_tests.scaled.default(x, by=3.0),
        lambda x: scaled(x, 3.0),
    ],
    ids=["by name", "overload", "as defined"],
)
def test_one_graph(operator):
    def f(x):
        return operator(x + 1) * 2

    x = torch.randn(3, 4, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    compiled = dyncomp.compile(f, fullgraph=True)
    CALLS.clear()
    result = compiled(x)
    assert CALLS == ["scaled"]
    torch.testing.assert_close(result, f(y))
    result.sum().backward()
    f(y).sum().backward()
    assert torch.equal(x.grad, y.grad) and float(x.grad[0, 0]) == 10
    torch.testing.assert_close(compiled(torch.ones(5, 4)), f(torch.ones(5, 4)))


def test_results_in_another_order_than_was_said():
    def f(x):
        return torch.ops.dyncomp_tests.turned(x * 2) + 1

    x = torch.randn(3, 4)
    found, expected = dyncomp.compile(f)(x), f(x)
    assert torch.equal(found, expected) and found.stride() == expected.stride()


def test_what_writes_or_has_sizes_of_data_stays_plain():
    def f(x):
        x = x * 2
        torch.ops.dyncomp_tests.written(x)
        return torch.ops.dyncomp_tests.positive(x) + 1

    x = torch.randn(9)
    assert torch.equal(dyncomp.compile(f)(x), f(x))
    assert dyncomp.stats()["breaks"]
