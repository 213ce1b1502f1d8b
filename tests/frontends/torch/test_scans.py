"""``associative_scan`` against torch's own, which calls the function under ``vmap``."""

from __future__ import annotations

import pytest

import dyncomp

torch = pytest.importorskip("torch")
library = pytest.importorskip("torch._higher_order_ops.associative_scan")


def recurrence(left, right):
    return left[0] * right[0], right[0] * left[1] + right[1]


def states(a, b, dim=2, reverse=False):
    return library.associative_scan(recurrence, (a, b), dim=dim, reverse=reverse, combine_mode="generic")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 13])
def test_pairs_of_tensors(length, reverse):
    torch.manual_seed(length)
    a, b = torch.rand(2, 3, length, 4), torch.randn(2, 3, length, 4)
    found = dyncomp.compile(states, fullgraph=True)(a, b, reverse=reverse)
    torch.testing.assert_close(found, states(a, b, reverse=reverse))


def test_values_are_combined_in_the_order_that_torch_has():
    def differences(x):
        return library.associative_scan(lambda p, q: p - q, x, dim=-1, combine_mode="generic")

    x = torch.arange(1.0, 12.0).repeat(2, 1)
    found = dyncomp.compile(differences, fullgraph=True)(x)
    assert found.equal(differences(x))
    assert not found.equal(torch.stack([x[:, 0], *(x[:, 0] - x[:, 1:].cumsum(1).T)], 1))


def test_what_a_function_does_to_one_element_of_the_scan():
    def products(x):
        return library.associative_scan(lambda p, q: p @ q, x, dim=0, combine_mode="generic")

    torch.manual_seed(0)
    x = torch.randn(6, 3, 3)
    torch.testing.assert_close(dyncomp.compile(products, fullgraph=True)(x), products(x))


def test_gradients():
    def loss(a, b):
        return states(a, b)[1].square().sum()

    torch.manual_seed(0)
    start = [torch.rand(2, 3, 5, 4), torch.randn(2, 3, 5, 4)]
    mine, theirs = ([x.clone().requires_grad_() for x in start] for _ in range(2))
    dyncomp.compile(loss, fullgraph=True)(*mine).backward()
    loss(*theirs).backward()
    for x, y in zip(mine, theirs):
        torch.testing.assert_close(x.grad, y.grad)


def test_scans_of_many_elements_are_left_to_torch():
    compiled = dyncomp.compile(lambda a, b: states(a, b)[1] + 1)
    a, b = torch.rand(1, 1, 70, 2), torch.randn(1, 1, 70, 2)
    torch.testing.assert_close(compiled(a, b), states(a, b)[1] + 1)
    with pytest.raises(dyncomp.GraphBreakError, match="many elements"):
        dyncomp.compile(states, fullgraph=True)(a, b)


def test_a_function_that_counts_its_calls_is_called_by_torch():
    def program(x, seen):
        def add(p, q):
            seen.append(1)
            return p + q

        return library.associative_scan(add, x, dim=0, combine_mode="generic")

    x, mine, theirs = torch.arange(8.0), [], []
    assert dyncomp.compile(program)(x, mine).equal(program(x, theirs))
    assert mine == theirs


def test_arguments_that_torch_refuses_raise():
    def pointwise(x):
        return library.associative_scan(lambda p, q: p + q, x, dim=0)

    with pytest.raises(ValueError, match="CUDA"):
        dyncomp.compile(pointwise)(torch.ones(4))
