"""Optimizers of torch: each ``step`` is one graph, and does what plain Python does."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional

import dyncomp  # noqa: E402

CASES = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd-momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "dampening": 0.1}),
    "sgd-nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": False}),
    "sgd-foreach": ("SGD", {"lr": 0.1, "momentum": 0.9, "foreach": True}),
    "adam": ("Adam", {}),
    "adam-decay": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    "adam-foreach": ("Adam", {"lr": 0.01, "foreach": True}),
    "adamw": ("AdamW", {"lr": 0.01, "amsgrad": True}),
    "rmsprop": ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True}),
    "rmsprop-plain": ("RMSprop", {"lr": 0.01, "weight_decay": 0.1}),
    "adagrad": ("Adagrad", {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.1}),
    "adadelta": ("Adadelta", {"lr": 0.5}),
    "adamax": ("Adamax", {"lr": 0.01, "weight_decay": 0.1}),
    "nadam": ("NAdam", {"lr": 0.01, "weight_decay": 0.1}),
    "nadam-decoupled": ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": ("RAdam", {"lr": 0.01, "weight_decay": 0.1}),
    "radam-decoupled": (
        "RAdam",
        {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ),
    "adafactor": ("Adafactor", {"lr": 0.05, "weight_decay": 0.01}),
    "rprop": ("Rprop", {"lr": 0.01}),
}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 7)
        self.frozen = nn.Linear(7, 7)
        self.last = nn.Linear(7, 3)
        self.unused = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.tensor(1.5))
        for p in self.frozen.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return self.last(torch.tanh(self.frozen(self.first(x)))) * self.scale


def make(name, settings, groups=True):
    torch.manual_seed(3)
    net = Net()
    if not groups:
        return net, getattr(torch.optim, name)(net.parameters(), **settings)
    rest = [p for n, p in net.named_parameters() if not n.startswith("last")]
    given = [{"params": net.last.parameters(), "lr": settings.get("lr", 0.01) / 2}, {"params": rest}]
    return net, getattr(torch.optim, name)(given, **settings)


def train(net, optimizer, step, steps, schedule=None):
    torch.manual_seed(5)
    for _ in range(steps):
        x, y = torch.randn(4, 5), torch.randn(4, 3)
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        step()
        if schedule is not None:
            schedule.step()


def equal(a, b, tolerance=1e-5):
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            equal(a[key], b[key], tolerance)
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for first, second in zip(a, b):
            equal(first, second, tolerance)
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.stride() == b.stride()
        assert a.requires_grad == b.requires_grad and a.is_leaf == b.is_leaf
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance / 10)
    else:
        assert type(a) is type(b) and a == b


@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps(case):
    name, settings = CASES[case]
    plain, compiled = make(name, settings), make(name, settings)
    parameters = [*compiled[0].parameters()]
    train(*plain, plain[1].step, 10)
    train(*compiled, compiled[1].step, 1)  # makes the state
    state = {p: dict(values) for p, values in compiled[1].state.items()}
    dyncomp.reset()
    step = dyncomp.compile(compiled[1].step, fullgraph=True)
    compiled = make(name, settings)
    before = dyncomp.stats()["graphs"]
