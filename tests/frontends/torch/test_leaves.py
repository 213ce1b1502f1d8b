"""Leaves that captured code makes (``requires_grad_()``), and blocks that turn grad mode on."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
nn, derivative = torch.nn, torch.autograd.grad

import dyncomp  # noqa: E402


def penalty(net, x):
    y = x.clone().requires_grad_(True)
    out = net(y)
    (g,) = derivative(out, y, torch.ones_like(out), create_graph=True)
    return out.mean() + ((g.norm(dim=1) - 1.0) ** 2).mean()


def by_detached(net, x):
    with torch.enable_grad():
        y = x.detach()
        y.requires_grad = True
        assert y.requires_grad and y.is_leaf and y.grad is None and not x.requires_grad
        (g,) = derivative(net(y).sum(), y, create_graph=True)
        (gg,) = derivative(g[:, 0].sum(), y, create_graph=True)
    return (gg @ gg.t()).sum(1) + x.sum()


def recorded_inside(net, x):
    """Results of the block have a history, whatever is around it."""
    with torch.set_grad_enabled(True):
        y = x.clone().requires_grad_()
        out = net(y)
        (g,) = derivative(out.sum(), y, create_graph=True)
        with torch.no_grad():
            h = net(y) * 2
    return out, g, h, net(x)


def not_recorded_again(net, x):
    """Without ``create_graph``; the leaf is a constant behind ``detach``."""
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        (g,) = derivative(net(y).sum(), y)
    return g, y.detach() + g.sign()


def of_a_view(net, x):
    with torch.enable_grad():
        y = x * 2
        z = y.view(y.shape).requires_grad_()
        (g,) = derivative((net(y) * z[:, :1]).sum(), z)
    return g + x


def recorded_parameters_only(net, x):
    with torch.enable_grad():
        out = net(x)
    return out, out.requires_grad, net(x).requires_grad


PROGRAMS = [penalty, by_detached, recorded_inside, not_recorded_again, of_a_view, recorded_parameters_only]


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))


def parts(found):
    return found if isinstance(found, tuple) else (found,)


def compare(program, grad, fullgraph=True):
    mine, theirs = net(), net()
    compiled = dyncomp.compile(lambda x: program(mine, x), fullgraph=fullgraph)
    for rows in (3, 3, 5, 4):
        x = torch.randn(rows, 2)
        with torch.set_grad_enabled(grad):
            found, expected = parts(compiled(x)), parts(program(theirs, x.clone()))
        torch.testing.assert_close(found, expected)
        for a, b in zip(found, expected):
            if not isinstance(a, torch.Tensor):
                assert a is b
                continue
            assert a.requires_grad == b.requires_grad
            if a.requires_grad:
                a.pow(2).sum().backward(retain_graph=True)
                b.pow(2).sum().backward(retain_graph=True)
        for p, q in zip(mine.parameters(), theirs.parameters()):
            assert (p.grad is None) == (q.grad is None)
            if p.grad is not None:
                torch.testing.assert_close(p.grad, q.grad)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("grad", [True, False])
def test_one_graph(program, grad):
    if program is penalty and not grad:
        with pytest.raises(RuntimeError, match="does not require grad"), torch.no_grad():
            penalty(net(), torch.ones(2, 2))
        return
    dyncomp.reset()
    compare(program, grad)


def returned(net, x):
    y = x.clone().requires_grad_()
    return net(y), y


def its_history_only(net, x):
    y = x.detach().clone().requires_grad_()
    return (y * 2).sum() + x.sum()


def written_behind(net, x):
    y = x.clone().requires_grad_()
    x[0] = y[1] * 2
    return x * 1


def reached_backward(net, x):
    with torch.enable_grad():
        y = x.clone().requires_grad_()
        net(y).sum().backward()
    return y.grad.sign()


def moved(net, x):
    """As an attack goes up the slope."""
    y = x.clone()
    for _ in range(2):
        y = y.detach().requires_grad_()
        with torch.enable_grad():
            loss = net(y).sum()
        g = torch.autograd.grad(loss, y)[0]
        y = y.detach() + 0.1 * g.sign()
    return y


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("program", [returned, its_history_only, written_behind, reached_backward, moved])
def test_what_leaves(program, grad):
    if program is not written_behind or not grad:
        dyncomp.reset()
        compare(program, grad, fullgraph=program is moved)


@pytest.mark.parametrize("grad", [True, False])
def test_parameters_that_are_frozen_meanwhile(grad):
    """Whether they require gradients is asked of them in blocks that record."""
    mine = net()
    compiled = dyncomp.compile(lambda x: recorded_parameters_only(mine, x), fullgraph=True)
    for on in (True, False, True):
        mine.requires_grad_(on)
        with torch.set_grad_enabled(grad):
            found = compiled(torch.ones(2, 2))
        assert found[0].requires_grad is found[1] is on
        assert found[2] is (on and grad)


def test_writes_to_a_leaf_raise():
    def program(x):
        y = x.clone().requires_grad_()
        y.add_(1)
        return y.detach()

    with pytest.raises(RuntimeError, match="leaf"):
        dyncomp.compile(program)(torch.ones(3))
