"""``backward()`` in captured code: gradients in the graph, ``grad`` as autograd leaves it."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional

import dyncomp  # noqa: E402
from tests.frontends.torch.test_autograd_functions import Scaled  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.frozen = nn.Linear(6, 6)
        self.last = nn.Linear(6, 2)
        self.unused = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.tensor(1.5))
        for p in self.frozen.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return self.last(torch.tanh(self.frozen(self.first(x)))) * self.scale


def make():
    torch.manual_seed(1)
    return Net()


def same(a, b):
    if isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor)
        assert (a.dtype, a.stride(), a.requires_grad) == (b.dtype, b.stride(), b.requires_grad)
        assert a.is_leaf == b.is_leaf
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for first, second in zip(a, b):
            same(first, second)
    else:
        assert a == b


def compare(f, *args, calls=3, graphs=None, breaks=0, model=make):
    """``f(net, *args)`` plainly and compiled, several times: results, gradients, and what holds them."""
    plain, other = model(), model()
    given = [copy.deepcopy(args), copy.deepcopy(args)]
    compiled = dyncomp.compile(f)
    dyncomp.reset()
    for _ in range(calls):
        before = [[p.grad for p in net.parameters()] for net in (plain, other)]
        results = f(plain, *given[0]), compiled(other, *given[1])
        same(*results)
        same(*[[x.grad for x in xs if isinstance(x, torch.Tensor) and x.is_leaf] for xs in given])
        for p, q, g, h in zip(plain.parameters(), other.parameters(), *before):
            same(p.grad, q.grad)
            same(p.detach(), q.detach())
            assert (p.grad is g) == (q.grad is h)
    found = dyncomp.stats()
    assert sum(found["breaks"].values()) == breaks, found["breaks"]
    assert found["internal_errors"] == 0 and found["fallbacks"] == 0
    if graphs is not None:
        assert found["graphs"] == graphs
    return other, results[1]


def x():
    torch.manual_seed(2)
    return torch.randn(3, 4)


def plain_step(net, x):
    loss = net(x).square().mean()
    loss.backward()
    return loss


def with_zeros(net, x):
    net.zero_grad(set_to_none=False)
    loss = net(x).square().mean()
    loss.backward()
    return loss.detach()


def with_none(net, x):
    for p in net.parameters():
        p.grad = None
    out = net(x)
    out.square().mean().backward()
    return out.shape[0], net.scale.grad * 2.0, net.last.weight.grad


def written_afterwards(net, x):
    net.zero_grad()
    net(x).sum().backward()
    with torch.no_grad():
        net.scale.grad.mul_(3.0)
        net.first.weight.grad = net.first.weight.grad + 1.0
    return net.scale.grad


def several(net, x):
    a = net(x)
    torch.autograd.backward([a.sum(), (a * a)], [None, torch.ones_like(a)])


def twice(net, x):
    loss = net(x).square().mean()
    loss.backward(retain_graph=True)
    (loss * 2.0).backward()
    return net.first.bias.grad.sum()


def two_losses(net, x):
    net(x).sum().backward()
    net(x * 2.0).square().sum().backward()


def of_a_function(net, x):
    y = Scaled.apply(net.first(x), 2.0)
    torch.Tensor.backward(y.sum())


def of_a_checkpoint(net, x):
    y = torch.utils.checkpoint.checkpoint(lambda v: net(v).sin(), x, use_reentrant=False)
    y.sum().backward()


def detached(net, x):
    y = net.first(x)
    (y.detach() * net.scale).sum().backward()
    return net.first.weight.grad is None


def in_place(net, x):
    y = torch.zeros(3, 6)
    y[1:] = net.first(x)[1:]
    y.sum().backward()


def tied(net, x):
    net.unused.weight = net.frozen.weight
    (x[:, :2] @ net.last.weight + net.scale).sum().backward()


def manual_descent(net, x):
    net.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            if p.grad is not None:
                p -= 0.1 * p.grad
    return loss


def test_written_between():
    """The loss was computed from what the leaf held before."""

    def f(a, c):
        loss = (a * c).sum()
        with torch.no_grad():
            a.mul_(2.0)
        loss.backward()
        return (a * a * c).sum()

    found = []
    for call in (f, dyncomp.compile(f)):
        a, c = torch.arange(3.0).requires_grad_(), torch.tensor([2.0, 3.0, 4.0])
        result = call(a, c)
        result.backward()
        found.append([result.detach(), a.grad, a.detach()])
    same(*found)


def written_and_read(net, x):
    """By what the leaf holds when the loss is computed."""
    with torch.no_grad():
        net.scale.mul_(2.0)
        net.first.weight[1:] += 1.0
    (net(x) * net.scale**2).sum().backward()
    with torch.no_grad():
        net.scale.add_(net.scale.grad, alpha=-0.1)
    return net.scale * 1.0


@pytest.mark.parametrize(
    "f",
    [
        written_and_read,
        plain_step,
        with_zeros,
        with_none,
        written_afterwards,
        several,
        twice,
        two_losses,
        of_a_function,
        of_a_checkpoint,
        detached,
        in_place,
        tied,
        manual_descent,
    ],
)
def test_gradients(f):
    compare(f, x())


def test_one_graph_each():
    """For gradients that are none, and for those that are there."""
    compare(plain_step, x(), graphs=2)
    compare(with_none, x(), graphs=1, calls=2)


def test_leaves_among_arguments():
    def f(net, x, y):
        (net(x) * y).sum().backward()
        return x.grad

    compare(f, x().requires_grad_(), torch.ones(3, 2))


def test_layout_of_gradients():
    """Gradients lie as their parameters do."""

    def model():
        torch.manual_seed(0)
        net = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        net.extra = nn.Parameter(torch.randn(4, 5).t())
        net.holes = nn.Parameter(torch.randn(6, 8)[:, ::2])
        return net

    def f(net, x):
        (net(x).sum() + (net.extra**2).sum() + (net.holes**3).sum()).backward()

    compare(f, torch.randn(2, 3, 8, 8), model=model)


@pytest.mark.parametrize("give", [lambda loss, out: loss, lambda loss, out: (loss, out, loss * 2.0, out[0])])
def test_what_was_freed_cannot_be_used_again(give):
    def f(net, x):
        out = net(x)
        loss = out.square().mean()
        loss.backward()
        return give(loss, out)

    _, results = compare(f, x())
    for found in results if isinstance(results, tuple) else (results,):
        assert found.requires_grad and not found.is_leaf and not found._is_view() or found.ndim
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            found.sum().backward()


def test_what_was_retained_can_be_used_again():
    def f(net, x):
        loss = net(x).square().mean()
        loss.backward(retain_graph=True)
        return loss

    plain, other = make(), make()
    for net, call in ((plain, f), (other, dyncomp.compile(f))):
        call(net, x()).backward()
    for p, q in zip(plain.parameters(), other.parameters()):
        same(p.grad, q.grad)


def test_a_second_backward_raises():
    def f(net, x):
        loss = net(x).square().mean()
        loss.backward()
        loss.backward()

    for call in (f, dyncomp.compile(f)):
        net = make()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            call(net, x())
        assert net.scale.grad is not None


def test_history_from_outside():
    """A tensor with a history is no leaf: torch follows it."""

    def f(net, h):
        (net.first(h) * 2.0).sum().backward()

    compiled = dyncomp.compile(f)
    for make_input in (lambda w: w.detach(), lambda w: w * 2.0, lambda w: w.detach()):
        grads = []
        for call in (f, compiled):
            net, w = make(), x().requires_grad_()
            call(net, make_input(w))
            grads.append([w.grad, net.first.weight.grad])
        same(*grads)


def test_hooks_run():
    seen = []
    net, other = make(), make()
    compiled = dyncomp.compile(plain_step)
    same(compiled(net, x()), plain_step(other, x()))
    for module in (net, other):
        module.scale.register_hook(lambda g: g * 10.0)
        module.first.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
    compiled(net, x()), plain_step(other, x())
    assert len(seen) == 2 and abs(seen[0] - seen[1]) < 1e-4
    for p, q in zip(net.parameters(), other.parameters()):
        same(p.grad, q.grad)


def test_what_watches_autograd_is_seen():
    packed = []
    compiled = dyncomp.compile(plain_step)
    compiled(make(), x())
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        compiled(make(), x())
    assert packed
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="nan values"):
        dyncomp.compile(lambda net, x: (net(x) * 0.0).sqrt().sum().backward())(make(), x())


def test_frozen_later():
    """``requires_grad`` is guarded, and so is which parameters are one."""
    net, other = make(), make()
    compiled = dyncomp.compile(plain_step)
    for change in (
        lambda m: None,
        lambda m: m.first.requires_grad_(False),
        lambda m: m.first.requires_grad_(True),
        lambda m: setattr(m.frozen, "bias", m.first.bias),
    ):
        for module in (net, other):
            change(module)
        same(compiled(net, x()), plain_step(other, x()))
        for p, q in zip(net.parameters(), other.parameters()):
            same(p.grad, q.grad)


def test_one_tensor_twice():
    def f(a, b):
        (a * a * b).sum().backward()

    compiled = dyncomp.compile(f)
    for alike in (False, True, False):
        found = []
        for call in (f, compiled):
            a = torch.arange(3.0).requires_grad_()
            b = a if alike else torch.ones(3).requires_grad_()
            call(a, b)
            found.append([a.grad, b.grad])
        same(*found)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda net, x: net(x).backward(), "implicitly created only for scalar"),
        (lambda net, x: net(x).sum().detach().backward(), "does not require grad"),
        (lambda net, x: net(x).backward(torch.ones(5)), "Mismatch in shape"),
    ],
)
def test_mistakes_raise_as_in_eager(f, message):
    for call in (f, dyncomp.compile(f)):
        with pytest.raises(RuntimeError, match=message):
            call(make(), x())


@pytest.mark.parametrize(
    "f",
    [
        lambda net, x: net(x).sum().backward(inputs=[net.scale]),
        lambda net, x: net(x).sum().backward(create_graph=True),
    ],
)
def test_other_arguments_break(f):
    with pytest.warns(UserWarning) if "create" in str(f.__code__.co_names) else _nothing():
        compare(f, x(), breaks=1, calls=1)


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_assigned_gradients():
    def f(net, g):
        net.scale.grad = g
        before = net.scale.grad
        return before * 2.0

    net = make()
    g = torch.tensor(4.0)
    assert dyncomp.compile(f, fullgraph=True)(net, g).item() == 8.0
    assert net.scale.grad is g


def test_gradients_of_other_shapes_are_refused():
    def f(net, g):
        net.scale.grad = g

    for call in (f, dyncomp.compile(f)):
        with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
            call(make(), torch.ones(2))


def test_step_inside_a_closure():
    def step(net, optimizer, x):
        def closure():
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure)

    plain, other = make(), make()
    found = []
    for net, call in ((plain, step), (other, dyncomp.compile(step))):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        found.append([call(net, optimizer, x()).detach() for _ in range(3)])
    same(*found)
    for p, q in zip(plain.parameters(), other.parameters()):
        same(p.detach(), q.detach())
