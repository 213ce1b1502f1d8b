"""Views with a gradient whose sizes depend on the data leave the graph as views of what was computed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402


def split(x, sizes):
    return [part.reshape(-1, part.shape[-1]) for part in torch.tanh(x).split(sizes.tolist())]


def tail_of_an_argument(x, sizes):
    return x[sizes[0].item() :], x.sum()


def transposed(x, sizes):
    y = torch.exp(x)
    return y[: sizes[1].item()].t(), y


def rows_that_are_chosen(x, sizes):
    chosen = x[x[:, 0] > 0]
    return chosen.t(), chosen[1:].square()


def used_inside_as_well(x, sizes):
    part = (x * 2)[: sizes[0].item()]
    return part, (part @ part.t()).sum()


CASES = (split, tail_of_an_argument, transposed, rows_that_are_chosen, used_inside_as_well)


def tensors(found):
    return list(found) if isinstance(found, (tuple, list)) else [found]


def given():
    torch.manual_seed(0)
    return torch.randn(6, 4, requires_grad=True)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_one_graph_and_the_same_gradients(f, backend):
    fast = dyncomp.compile(f, backend=backend, fullgraph=True)
    for sizes in ((2, 4), (5, 1), (3, 3)):
        x, y = given(), given()
        expected, found = tensors(f(x, torch.tensor(sizes))), tensors(fast(y, torch.tensor(sizes)))
        for a, b in zip(expected, found, strict=True):
            assert a.shape == b.shape and a.stride() == b.stride() and a.requires_grad == b.requires_grad
            assert a._is_view() == b._is_view()
            torch.testing.assert_close(a, b)
        weights = [torch.randn_like(a) for a in expected]
        torch.autograd.backward(expected, weights)
        torch.autograd.backward(found, weights)
        torch.testing.assert_close(x.grad, y.grad)


def test_second_derivatives():
    fast = dyncomp.compile(split, backend="eager", fullgraph=True)
    found = []
    for f in (split, fast):
        x = given()
        (first,) = torch.autograd.grad(f(x, torch.tensor([2, 4]))[1].square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), x)[0])
    torch.testing.assert_close(*found)


def test_results_share_memory_as_in_eager():
    found = []
    for f in (transposed, dyncomp.compile(transposed, backend="eager", fullgraph=True)):
        part, whole = f(given(), torch.tensor([2, 4]))
        with torch.no_grad():
            part += 1
        found.append(whole.detach())
        assert part._base is whole
    torch.testing.assert_close(*found)
