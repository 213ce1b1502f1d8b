"""Compiled modules with gradients on: results, gradients, what autograd sees of them."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional

import dyncomp  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    yield
    dyncomp.reset()


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return leaves(list(value.values())) if isinstance(value, dict) else []


def close(found, expected, what):
    assert (found is None) == (expected is None), what
    if expected is not None:
        assert found.dtype == expected.dtype and found.shape == expected.shape, what
        torch.testing.assert_close(
            found, expected, rtol=2e-5, atol=2e-6, equal_nan=True, msg=lambda m: f"{what}: {m}"
        )


def run(f, module, inputs, seed=1):
    """Results, gradients by parameters and inputs, and buffers afterwards."""
    inputs = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
    torch.manual_seed(seed)
    found = leaves(f(*inputs) if module is None else f(module, *inputs))
    total = sum(
        (r * torch.linspace(0.5, 1.5, r.numel()).view(r.shape)).sum() for r in found if r.requires_grad
    )
    if isinstance(total, torch.Tensor):
        total.backward()
    parameters = [] if module is None else list(module.named_parameters())
    buffers = [] if module is None else list(module.buffers())
    return (
        [r.detach() for r in found],
        [r.requires_grad for r in found],
        [(name, p.grad) for name, p in parameters] + [(f"input {k}", x.grad) for k, x in enumerate(inputs)],
        [b.clone() for b in buffers],
    )


def compare(f, module, *inputs, times=2, fullgraph=True, graphs=1):
    fast = dyncomp.compile(f, fullgraph=fullgraph)
    other = copy.deepcopy(module)
    for _ in range(times):
        for m in (module, other):
            if m is not None:
                m.zero_grad()
        expected, found = run(f, module, inputs), run(fast, other, inputs)
        for k, (a, b) in enumerate(zip(found[0], expected[0], strict=True)):
            close(a, b, f"result {k}")
        assert found[1] == expected[1]
        for (name, a), (_, b) in zip(found[2], expected[2], strict=True):
            close(a, b, f"gradient of {name}")
        for a, b in zip(found[3], expected[3], strict=True):
            close(a, b, "buffer")
    assert dyncomp.stats()["graphs"] >= graphs


def called(module, *args):
    return module(*args)


def grad(*shape):
    return torch.randn(*shape, requires_grad=True)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.heads = heads

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.second(x))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = (
            nn.Conv2d(3, 6, 3, padding=1, bias=False),
            nn.Conv2d(6, 6, 3, padding=1, bias=False),
        )
        self.norm, self.again = nn.BatchNorm2d(6), nn.BatchNorm2d(6)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = self.relu(self.norm(self.first(x)))
        y = self.again(self.second(x))
        y += x
        x = self.pool(self.relu(y))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.block = Block(8, 2)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        scores = self.head(self.block(x))
        return F.cross_entropy(scores.view(-1, 11), targets.view(-1)), scores


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 5)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 5)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return h, c


MODULES = {
    "mlp": lambda: (nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), grad(5, 4)),
    "block": lambda: (Block(8, 2), grad(2, 5, 8)),
    "residual": lambda: (Residual(), grad(3, 3, 8, 8)),
    "residual in eval": lambda: (Residual().eval(), grad(3, 3, 8, 8)),
    "tied": lambda: (Tied(), torch.randint(0, 11, (2, 6)), torch.randint(0, 11, (2, 6))),
    "cells": lambda: (Cells(), grad(3, 4, 4)),
    "norms": lambda: (nn.Sequential(nn.GroupNorm(2, 6), nn.BatchNorm1d(6), nn.SiLU()), grad(2, 6, 5)),
    "convolutions": lambda: (
        nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, groups=2),
            nn.ReLU6(),
            nn.ConvTranspose2d(4, 3, 2, stride=2),
            nn.ELU(),
        ),
        grad(2, 2, 9, 9),
    ),
    "pools": lambda: (nn.Sequential(nn.AvgPool2d(2), nn.MaxPool2d(2, 1), nn.Flatten()), grad(2, 2, 6, 6)),
    "frozen": lambda: (
        nn.Sequential(nn.Linear(4, 4).requires_grad_(False), nn.ReLU(), nn.Linear(4, 2)),
        torch.randn(3, 4),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    module, *inputs = MODULES[name]()
    compare(called, module, *inputs)


def test_dropout_is_drawn_once():
    module = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.4), nn.Linear(6, 2))
    compare(called, module, grad(7, 6), fullgraph=False)


# -- losses -----------------------------------------------------------------------------------
LOSSES = {
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t.argmax(1), label_smoothing=0.1)),
    "nll": (lambda x, t: F.nll_loss(F.log_softmax(x, 1), t.argmax(1))),
    "mse": (lambda x, t: F.mse_loss(x, t)),
    "l1": (lambda x, t: F.l1_loss(x, t)),
    "huber": (lambda x, t: F.smooth_l1_loss(x, t, beta=0.5)),
    "bce": (lambda x, t: F.binary_cross_entropy_with_logits(x, t.sigmoid())),
    "kl": (lambda x, t: F.kl_div(F.log_softmax(x, 1), F.softmax(t, 1), reduction="batchmean")),
    "cosine": (lambda x, t: (1 - F.cosine_similarity(x, t)).mean()),
    "normalised": (lambda x, t: (F.normalize(x, dim=1) * t).sum()),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    compare(LOSSES[name], None, grad(6, 5), torch.randn(6, 5))


# -- points where a derivative is chosen -----------------------------------------------------------
KINKS = [
    torch.relu, torch.abs, F.relu6, F.leaky_relu, F.elu, F.hardtanh, F.hardswish, F.hardsigmoid, F.softplus,
    F.gelu, F.silu, torch.sign, torch.floor, torch.round, torch.sqrt, torch.rsqrt, torch.reciprocal,
    torch.log, torch.square, torch.exp, torch.tanh, torch.sigmoid, torch.sin, torch.cos, torch.erf,
    lambda x: x.clamp(-1.0, 1.0), lambda x: x.clamp(min=0.0), lambda x: torch.maximum(x, torch.zeros(())),
    lambda x: torch.minimum(x, x.flip(0)), lambda x: x.amax(0), lambda x: x.max(), lambda x: x.max(0)[0],
    lambda x: x.min(0)[0], lambda x: x.norm(), lambda x: (x * 0).norm(), lambda x: x**2, lambda x: x**0.5,
    lambda x: x**3, lambda x: x.pow(0), lambda x: 2.0**x, lambda x: x.prod(), lambda x: x.cumprod(0),
    lambda x: x.cumsum(0), lambda x: x.sort()[0], lambda x: x.topk(2)[0], lambda x: x.median(),
    lambda x: x.std(), lambda x: x.var(unbiased=False), lambda x: x.logsumexp(0), lambda x: x.softmax(0),
    lambda x: x.log_softmax(0), lambda x: torch.where(x > 0, x, x * x), lambda x: x.masked_fill(x > 0, 2.0),
    lambda x: x.roll(1), lambda x: x.fmod(0.7), lambda x: x.remainder(0.7), lambda x: torch.atan2(x, x + 1),
    lambda x: x.mean(), lambda x: x.abs().sqrt(), lambda x: x[x.argsort()], lambda x: x.repeat(3),
    lambda x: x.expand(2, 6).sum(0), lambda x: torch.outer(x, x).tril(),
    lambda x: torch.stack([x, x * 2]).flatten(), lambda x: x.unfold(0, 3, 2),
    lambda x: torch.einsum("i,j->ij", x, x), lambda x: torch.cat([x, x[:2]]),
    lambda x: x.clamp_min(0.3).log(), lambda x: x.view(2, 3).t().contiguous(),
    lambda x: x.index_select(0, torch.tensor([0, 0, 2])), lambda x: x.gather(0, torch.tensor([1, 1, 3])),
    lambda x: x.scatter_add(0, torch.tensor([1, 1, 3]), x[:3]), lambda x: F.pad(x, (1, 2)),
    lambda x: x.diff(), lambda x: torch.linalg.vector_norm(x, 3),
]  # fmt: skip


BOUNDED = [KINKS.index(f) for f in (F.relu6, F.hardtanh, F.hardswish, F.hardsigmoid)]


@pytest.mark.parametrize("number", range(len(KINKS)))
def test_kinks_have_the_derivatives_of_torch(number):
    for values in (
        [0.0, -1.0, 1.0, 0.5, -2.0, 3.0],
        [0.0, 0.0, -0.0, 1.0, 1.0, -1.0],
        [0.3, 0.7, 0.1, 1.9, 2.2, 0.6],
        [-3.0, 3.0, 6.0, 7.0, -4.0, 0.0] if number in BOUNDED else [0.4, 0.5, 0.2, 1.8, 2.1, 0.9],
    ):
        x = torch.tensor(values, requires_grad=True)
        # called: of a function of the library itself the original would run
        compare(lambda x: KINKS[number](x), None, x, times=1, fullgraph=False, graphs=0)


# -- what autograd sees -----------------------------------------------------------------------
def test_partial_requires_grad():
    def f(a, b, c):
        return a * b + c, a + 1, b.detach() * 2, (a > 0).sum()

    for pattern in range(8):
        inputs = [torch.randn(4).requires_grad_(bool(pattern & 1 << k)) for k in range(3)]
        compare(f, None, *inputs)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_what_has_no_elements_has_a_gradient(backend):
    """Zeros of no elements, not None: class tokens that a configuration has none of, empty caches."""

    def f(x, none, vector):
        tokens = torch.cat([x, none.expand(3, -1, -1)], 1)
        return tokens * 2, torch.cat([vector, x], -1), torch.cat([vector, vector]), F.pad(none, (0, 0, 1, 0))

    inputs = grad(3, 2, 4), grad(1, 0, 4), grad(0)
    found = []
    for call in (f, dyncomp.compile(f, backend=backend, fullgraph=True)):
        results, _, gradients, _ = run(call, None, inputs)
        found.append([*results, *[gradient for _, gradient in gradients]])
    for expected, here in zip(*found, strict=True):
        close(here, expected, "of no elements")


def test_joining_with_nothing_costs_nothing():
    report = dyncomp.explain(lambda x, y: torch.cat([x, y], 1) * 2)(torch.ones(3, 2), torch.ones(3, 0))
    assert len(report.kernels) == 1


def test_views_and_aliases():
    x = grad(4, 6)

    def f(x):
        y = x * 2
        return x.view(6, 4), y, y[1:], y.t(), x

    fast = dyncomp.compile(f, fullgraph=True)
    a, y, part, turned, same = fast(x)
    assert same is x and a.data_ptr() == x.data_ptr()
    assert part.data_ptr() == y[1:].data_ptr() and turned.data_ptr() == y.data_ptr()
    (a.sum() * 2 + part.sum() * 3 + (turned * turned).sum() + y.sum()).backward()
    found, x.grad = x.grad, None
    a, y, part, turned, same = f(x)
    (a.sum() * 2 + part.sum() * 3 + (turned * turned).sum() + y.sum()).backward()
    close(found, x.grad, "views")


def test_writes_in_place():
    def f(x, w):
        y = x * w
        y[1:] += 1
        y.mul_(w)
        y[0].zero_()
        return y

    compare(f, None, grad(3, 4), grad(4))

    def into_argument(x, w):
        y = x * 1
        write(y, w)
        return y * w

    def write(y, w):
        y.mul_(w)
        y.add_(1)

    x, w = grad(4), grad(4)
    into_argument(x, w).sum().backward()
    expected = x.grad, w.grad
    x.grad = w.grad = None
    write = dyncomp.compile(write)
    into_argument(x, w).sum().backward()
    close(x.grad, expected[0], "x")
    close(w.grad, expected[1], "w")


def test_writes_to_leaves_raise_as_in_eager():
    def f(w):
        w.mul_(2)
        return w.sum()

    w = grad(3)
    before = w.detach().clone()
    for g in (f, dyncomp.compile(f)):
        with pytest.raises(RuntimeError, match="leaf"):
            g(w)
        close(w.detach(), before, "unchanged")


def test_no_grad_inside():
    def f(x, w):
        with torch.no_grad():
            scale = (x * w).abs().max()
            assert not torch.is_grad_enabled()
        with torch.set_grad_enabled(False):
            shift = x.mean()
        y = (x * w) / scale + shift.detach()
        with torch.no_grad(), torch.enable_grad():
            z = y * w
        return y + z, scale, scale.requires_grad, y.requires_grad

    compare(f, None, grad(5), grad(5))


def test_updates_behind_autograd():
    def f(p, g):
        with torch.no_grad():
            p.add_(g, alpha=-0.1)
        return (p * g).sum()

    p, g = grad(3), torch.randn(3)
    other = p.detach().clone().requires_grad_()
    fast = dyncomp.compile(f)
    for _ in range(3):
        f(p, g).backward()
        fast(other, g).backward()
        close(other.grad, p.grad, "gradient")
        close(other.detach(), p.detach(), "value")


def test_backward_twice_accumulation_hooks_and_autograd_grad():
    f = dyncomp.compile(lambda x, w: (x * w).tanh().sum(), fullgraph=True)
    x, w = torch.randn(4), grad(4)
    loss = f(x, w)
    loss.backward(retain_graph=True)
    once = w.grad.clone()
    loss.backward()
    close(w.grad, 2 * once, "accumulated")
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    seen = []
    w.grad = None
    w.register_hook(lambda g: seen.append(g.clone()) or g * 2)
    (found,) = torch.autograd.grad(f(x, w), w)
    close(found, 2 * once, "hooked")
    close(seen[0], once, "seen")
    assert w.grad is None


def test_a_saved_input_that_is_written_before_backward_raises():
    f = dyncomp.compile(lambda x, w: (x * w).sum(), fullgraph=True)
    x, w = torch.randn(4), grad(4)
    loss = f(x, w)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_unused_results_and_arguments():
    f = dyncomp.compile(lambda x, w, u: (x * w, w.exp(), x.sum()), fullgraph=True)
    x, w, u = grad(3), grad(3), grad(3)
    first, second, third = f(x, w, u)
    second.sum().backward()
    close(w.grad, w.detach().exp(), "w")
    assert u.grad is None


def test_grad_mode_decides_at_each_call():
    f = dyncomp.compile(lambda w: w * 2, fullgraph=True)
    w = grad(3)
    for _ in range(2):
        assert f(w).requires_grad
        with torch.no_grad():
            assert not f(w).requires_grad
        assert not f(w.detach()).requires_grad


def test_sizes_may_change():
    module = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    fast = dyncomp.compile(called)
    for n in (3, 5, 7, 2, 5, 1):
        x = grad(n, 4)
        expected, found = run(called, module, [x]), None
        grads = [(name, g.clone()) for name, g in expected[2]]
        module.zero_grad()
        found = run(fast, module, [x])
        for (name, a), (_, b) in zip(found[2], grads):
            close(a, b, f"{name} at {n}")
        module.zero_grad()


SECOND = {
    "cube": (lambda x, w: (x**3 * w).sum()),
    "network": (lambda x, w: torch.tanh(x @ w.t()).pow(2).sum(1)),
    "relu": (lambda x, w: F.relu(x * w).square()),
    "softmax": (lambda x, w: F.softmax(x * w, -1) * x),
    "norm": (lambda x, w: F.normalize(x * w, dim=1) * x.var(0)),
    "results of which one is used": (lambda x, w: ((x * w).sin(), (x + w).exp())),
    "linear": (lambda x, w: x * 2 + w),
    "detached": (lambda x, w: (x * w).detach() * x + w.sin()),
    "a routine": (lambda x, w: torch.logsumexp(torch.cummax(x * w, 0)[0], 0)),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_and_third_derivatives(name):
    function = SECOND[name]

    def derivatives(f):
        x, w = grad(3, 4), grad(3, 4)
        results = leaves(f(x, w))
        found = [torch.autograd.grad(results[0].sum(), [x, w], create_graph=True)]
        for _ in range(2):
            total = sum((g * g.cos()).sum() for g in found[-1] if g.requires_grad)
            if not isinstance(total, torch.Tensor):
                break
            more = torch.autograd.grad(total, [x, w], create_graph=True, allow_unused=True)
            found.append([g for g in more if g is not None])
        return [g for gradients in found for g in gradients]

    torch.manual_seed(1)
    expected = derivatives(function)
    torch.manual_seed(1)
    found = derivatives(dyncomp.compile(function, fullgraph=True))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_a_gradient_penalty_trains_the_parameters():
    module = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))
    other = copy.deepcopy(module)
    for f, m in ((called, module), (dyncomp.compile(called, fullgraph=True), other)):
        torch.manual_seed(2)
        x = grad(5, 4)
        (slope,) = torch.autograd.grad(f(m, x).sum(), x, create_graph=True)
        ((slope.norm(dim=1) - 1) ** 2).mean().backward()
    for (name, p), q in zip(module.named_parameters(), other.parameters()):
        close(q.grad, p.grad, name)


def test_second_derivatives():
    def f(x, w):
        return (torch.tanh(x * w) * x**3).sum()

    x, w = grad(3), grad(3)
    found = []
    for g in (f, dyncomp.compile(f, fullgraph=True)):
        first = torch.autograd.grad(g(x, w), (x, w), create_graph=True)
        found.append(torch.autograd.grad(sum((part * part).sum() for part in first), (x, w)))
    for a, b in zip(*found):
        close(b, a, "second derivative")


@pytest.mark.parametrize(
    "make", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, 0.01)]
)
def test_training(make):
    module = Residual()
    other = copy.deepcopy(module)
    x, t = torch.randn(8, 3, 8, 8), torch.randint(0, 4, (8,))

    def loss(module, x, t):
        return F.cross_entropy(module(x), t)

    fast = dyncomp.compile(loss, fullgraph=True)
    for f, m in ((loss, module), (fast, other)):
        optimizer = make(m.parameters())
        for _ in range(5):
            optimizer.zero_grad()
            f(m, x, t).backward()
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            optimizer.step()
    for (name, a), (_, b) in zip(other.state_dict().items(), module.state_dict().items()):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-4, msg=f"{name} differs")


@pytest.mark.parametrize("rows", [3, 4])
def test_arrays_of_twenty_numbers_on_the_stack(rows):
    """gcc 12 put such an array at an address that its own vector instructions do not take."""
    model = nn.Sequential(Block(16, 2), Block(16, 2))
    x = torch.randn(rows, 20, 16)
    with torch.no_grad():
        torch.testing.assert_close(dyncomp.compile(model)(x), model(x), rtol=1e-4, atol=1e-5)


_WAYS = {
    "topk": lambda s, v: v.gather(-1, s.topk(2, -1).indices),
    "argmax": lambda s, v: v.gather(-1, s.argmax(-1, keepdim=True)),
    "mask": lambda s, v: v.masked_fill(s > 0, 0.0),
    "scatter": lambda s, v: v * torch.zeros_like(v).scatter_(-1, s.topk(2, -1).indices, 1.0),
    "values": lambda s, v: v.gather(-1, s.topk(2, -1).indices) * s.topk(2, -1).values,
}


@pytest.mark.parametrize("name", _WAYS)
def test_what_only_chooses_has_no_gradient(name):
    """Not even zeros: the parameters of a router of which only the indices are used."""

    def f(x, w, v):
        return _WAYS[name](torch.relu(x @ w), v)

    x, w, v = torch.randn(4, 6), torch.randn(6, 6, requires_grad=True), torch.randn(4, 6, requires_grad=True)
    f(x, w, v).sum().backward()
    expected, w.grad, v.grad = (w.grad, v.grad), None, None
    dyncomp.compile(f, backend="eager", fullgraph=True)(x, w, v).sum().backward()
    assert (w.grad is None) == (expected[0] is None) == (name != "values")
    for found, wanted in zip((w.grad, v.grad), expected):
        if wanted is not None:
            torch.testing.assert_close(found, wanted)
