"""``torch.autograd.grad`` in captured code."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional

import dyncomp  # noqa: E402
from tests.frontends.torch.test_autograd_functions import Scaled  # noqa: E402
from tests.frontends.torch.test_gradients import close, compare, grad, seeded  # noqa: E402, F401

derivative = torch.autograd.grad


def residual(net, x):
    """Of a differential equation: second derivatives by the input, trained."""
    u = net(x)
    (du,) = derivative(u.sum(), x, create_graph=True)
    (ddu,) = derivative(du[:, 0].sum(), x, create_graph=True)
    return ((ddu[:, 0] + du[:, 1] - u[:, 0]) ** 2).mean()


def penalty(net, x):
    y = net(x)
    (g,) = derivative(y, x, torch.ones_like(y), create_graph=True)
    return y.mean() + ((g.norm(dim=1) - 1.0) ** 2).mean()


@pytest.mark.parametrize("f", [residual, penalty])
def test_derivatives_by_the_input_are_trained(f):
    compare(f, nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), grad(5, 2))


def by_values_inside(x, w):
    h = (x * w).sin()
    y = (h**3).sum() + x.sum()
    (g,) = derivative(y, h, create_graph=True)
    return g * x, y


def several(x, w):
    y, z = x * w, x.exp() @ w.t()
    found = derivative([y, z], [x, w], [y.detach(), torch.ones_like(z)], create_graph=True)
    return found[0].sin(), found[1] + x


def not_recorded(x, w):
    """Without ``create_graph`` gradients are constants."""
    (g,) = derivative((x * x * w).sum(), x, retain_graph=True)
    return g, g * x


def unused(x, w):
    found = derivative((x * x).sum(), (x, w), allow_unused=True, create_graph=True)
    assert found[1] is None
    return found[0] * w


def under_other_ways(x, w):
    """Of a checkpoint, and of a function with a backward of its own."""
    y = torch.utils.checkpoint.checkpoint(lambda a: (a * w).sin(), x, use_reentrant=False)
    (g,) = derivative(Scaled.apply(y, 2.0).sum(), y, create_graph=True)
    return g * x


def written(x, w):
    y = x * w
    z = torch.zeros_like(y)
    z[0] = y[1]
    (g,) = derivative((z * y).sum(), w, create_graph=True)
    return g * 2.0


@pytest.mark.parametrize("f", [by_values_inside, several, not_recorded, unused, under_other_ways, written])
def test_values_and_gradients(f):
    compare(f, None, grad(3, 3), grad(3, 3))


def test_results_without_history_need_no_pair():
    def f(x):
        return derivative(x.sin().sum(), x)[0] * 2.0

    x = grad(4)
    found = dyncomp.compile(f, fullgraph=True)(x)
    close(found, 2.0 * x.detach().cos(), "derivative")
    assert not found.requires_grad


def test_history_outside_is_followed_by_torch():
    """``h`` depends on ``x`` in a way that captured code does not see."""

    def f(x, h):
        return derivative((x * h).sum(), x, retain_graph=True)[0]

    compiled = dyncomp.compile(f)
    for make in (lambda x: grad(3), lambda x: x.exp(), lambda x: grad(3)):
        x = grad(3)
        h = make(x)
        close(compiled(x, h), f(x, h), "derivative")


def test_hooks_run():
    def f(x):
        return derivative((x * x).sum(), x)[0]

    compiled = dyncomp.compile(f)
    x = grad(3)
    close(compiled(x), f(x), "derivative")
    x.register_hook(lambda g: g * 10.0)
    close(compiled(x), f(x), "derivative")
    close(compiled(x), 20.0 * x.detach(), "derivative")


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: derivative(x.sin(), x), "implicitly created only for scalar"),
        (lambda x: derivative(x.detach().sum(), x), "does not require grad"),
        (lambda x: derivative(x.sum(), x.detach()), "does not require grad|not have been used"),
        (lambda x: derivative((x * 2).sum(), x * 3), "not have been used"),
        (lambda x: derivative(x.sum(), x, torch.ones(3)), "Mismatch in shape"),
    ],
)
def test_mistakes_raise_as_in_eager(f, message):
    with pytest.raises(RuntimeError, match=message):
        f(grad(3))
    with pytest.raises(RuntimeError, match=message):
        dyncomp.compile(f)(grad(3))
