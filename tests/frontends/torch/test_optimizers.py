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


def both(name, settings, steps=10, make_schedule=None, **kwargs):
    """A network and an optimizer after some steps, plainly and compiled: they are equal."""
    found = []
    dyncomp.reset()
    for wrap in (lambda step: step, dyncomp.compile):
        net, optimizer = make(name, settings, **kwargs)
        schedule = make_schedule(optimizer) if make_schedule is not None else None
        train(net, optimizer, wrap(optimizer.step), steps, schedule)
        found.append((net, optimizer))
    (net, optimizer), (other, compiled) = found
    equal(net.state_dict(), other.state_dict())
    equal(optimizer.state_dict(), compiled.state_dict())
    stats = dyncomp.stats()
    assert stats["internal_errors"] == 0 and stats["fallbacks"] == 0
    return stats, found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps(case):
    """Groups with other rates, frozen parameters and such without a gradient."""
    stats, _ = both(*CASES[case])
    assert stats["graphs"] == 1 and stats["breaks"] == {}


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_fused(name):
    """The library's kernels for all parameters. Adagrad's first step asks for more."""
    settings = {"lr": 0.01, "weight_decay": 0.1, "fused": True}
    stats, _ = both(name, settings | ({"momentum": 0.9, "nesterov": True} if name == "SGD" else {}))
    assert stats["graphs"] == 1 + (name == "Adagrad") and stats["breaks"] == {}


def test_what_is_not_compiled_runs():
    both("ASGD", {}, steps=4)


@pytest.mark.parametrize("case", ["sgd-momentum", "adam", "adamw"])
def test_schedules_do_not_recompile(case):
    """The rate is a number that is passed."""
    for make_schedule in (
        lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12),
        lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5),
    ):
        stats, _ = both(*CASES[case], steps=8, make_schedule=make_schedule, groups=False)
        assert stats["graphs"] == 1


def test_schedules_of_momentum():
    """The library branches on whether there is any."""
    found = []
    dyncomp.reset()
    for wrap in (lambda step: step, dyncomp.compile):
        net, optimizer = make(*CASES["sgd-nesterov"], groups=False)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
        train(net, optimizer, wrap(lambda optimizer=optimizer: optimizer.step()), 10, schedule)
        found.append(net.state_dict())
    equal(*found)
    assert dyncomp.stats()["graphs"] == 1 and dyncomp.stats()["breaks"] == {}


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_rates_in_tensors(name):
    dyncomp.reset()
    results = []
    for wrap in (lambda step: step, dyncomp.compile):
        rate = torch.tensor(0.1)
        net, optimizer = make(name, {"lr": rate}, groups=False)
        step = wrap(optimizer.step)
        for _ in range(4):
            train(net, optimizer, step, 1)
            rate.mul_(0.5)
        results.append(net.state_dict())
    equal(*results)
    assert dyncomp.stats()["graphs"] == 1


def test_state_is_written_in_place():
    net, optimizer = make("Adam", {})
    train(net, optimizer, optimizer.step, 1)
    step = dyncomp.compile(optimizer.step, fullgraph=True)
    parameters, versions = list(net.parameters()), [p._version for p in net.parameters()]
    state = {p: dict(values) for p, values in optimizer.state.items()}
    train(net, optimizer, step, 2)
    assert list(optimizer.state) == list(state)
    for p, values in state.items():
        assert all(optimizer.state[p][name] is tensor for name, tensor in values.items())
    assert all(p is q for p, q in zip(net.parameters(), parameters))
    changed = [p._version > before for p, before in zip(parameters, versions)]
    assert changed == [p in state for p in parameters]


def test_states_are_loaded():
    """Another state is found where it is; parameters that get a gradient later get their state then."""
    results = []
    for wrap in (lambda step: step, dyncomp.compile):
        net, optimizer = make("Adam", {"lr": 0.01})
        step = wrap(optimizer.step)
        train(net, optimizer, step, 3)
        kept = copy.deepcopy(optimizer.state_dict())
        train(net, optimizer, step, 2)
        optimizer.load_state_dict(kept)
        net.frozen.requires_grad_(True)
        train(net, optimizer, step, 3)
        results.append((net.state_dict(), optimizer.state_dict()))
    equal(*results)


def test_state_keys_in_another_order():
    """Entries are guarded by place and key."""
    results = []
    for wrap in (lambda step: step, dyncomp.compile):
        net, optimizer = make("SGD", {"lr": 0.1, "momentum": 0.9})
        step = wrap(optimizer.step)
        train(net, optimizer, step, 3)
        for key in reversed(list(optimizer.state)):
            optimizer.state[key] = optimizer.state.pop(key)
        train(net, optimizer, step, 2)
        results.append(net.state_dict())
    equal(*results)


def test_hooks_of_steps_run():
    seen = []
    net, optimizer = make("SGD", {"lr": 0.1})
    step = dyncomp.compile(optimizer.step)
    train(net, optimizer, step, 2)
    optimizer.register_step_post_hook(lambda *given: seen.append(len(given)))
    train(net, optimizer, step, 2)
    assert seen == [3, 3]


def test_many_parameters():
    """More than loops of the program are unrolled for: one graph."""
    results = []
    dyncomp.reset()
    for wrap in (lambda step: step, dyncomp.compile):
        torch.manual_seed(0)
        net = nn.Sequential(*[nn.Linear(3, 3) for _ in range(40)])
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
        step = wrap(optimizer.step)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(2, 3)).square().sum().backward()
            step()
        results.append(net.state_dict())
    equal(*results)
    assert dyncomp.stats()["graphs"] == 1


# -- the whole step as one function -----------------------------------------------------------------------
def whole_step(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    return loss, norm


def two_steps(net, optimizer, x, y):
    return whole_step(net, optimizer, x, y), whole_step(net, optimizer, x * 2.0, y)


def accumulated(net, optimizer, x, y):
    net.zero_grad(set_to_none=False)
    for part in (x[:2], x[2:]):
        (F.mse_loss(net(part), y[:2]) / 2).backward()
    nn.utils.clip_grad_value_(net.parameters(), 0.1)
    optimizer.step()
    return [p.grad for p in net.parameters()]


def closed(net, optimizer, x, y):
    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    return optimizer.step(closure)


@pytest.mark.parametrize("case", ["sgd", "sgd-nesterov", "adamw", "adafactor"])
@pytest.mark.parametrize("f", [whole_step, two_steps, accumulated, closed], ids=lambda f: f.__name__)
def test_whole_steps(f, case):
    name, settings = CASES[case]
    runs = []
    dyncomp.reset()
    for call in (f, dyncomp.compile(f)):
        torch.manual_seed(5)
        net, optimizer = make(name, settings)
        results = [call(net, optimizer, torch.randn(4, 5), torch.randn(4, 3)) for _ in range(5)]
        runs.append((results, net.state_dict(), [p.grad for p in net.parameters()]))
    for first, second in zip(*runs):
        equal(first, second, 1e-4)
    stats = dyncomp.stats()
    assert stats["internal_errors"] == 0 and stats["fallbacks"] == 0
    # the first call makes the state, in plain Python, or finds no gradients
    assert stats["graphs"] == 1 + (case == "sgd") and stats["breaks"] == {}


def test_whole_step_of_many_parameters():
    """Loops over parameters and the set that ``parameters()`` keeps of them: one graph, shared ones too."""
    runs = []
    dyncomp.reset()
    for call in (whole_step, dyncomp.compile(whole_step)):
        torch.manual_seed(5)
        net = nn.Sequential(*[nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(30)])
        net[7][0].weight = net[3][0].weight
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        x, y = torch.randn(4, 3), torch.randn(4, 3)
        results = [call(net, optimizer, x, y) for _ in range(4)]
        runs.append((results, net.state_dict(), [p.grad for p in net.parameters()]))
    for first, second in zip(*runs):
        equal(first, second, 1e-4)
    stats = dyncomp.stats()
    assert stats["internal_errors"] == 0 and stats["fallbacks"] == 0
    assert stats["graphs"] == 1 and stats["breaks"] == {}
    net[9][0].weight = net[3][0].weight  # those that were told apart are not any more
    before = [p.detach().clone() for p in net.parameters()]
    compiled = dyncomp.compile(lambda x: sum(p.sum() for p in net.parameters()) + x.sum())
    assert torch.allclose(compiled(x), sum(p.sum() for p in before) + x.sum(), 1e-5)


def averaged_and_named(net, average):
    with torch.no_grad():
        for mean, p in zip(average.parameters(), net.parameters()):
            mean.mul_(0.9).add_(p, alpha=0.1)
    loss = net(torch.ones(2, 3)).square().sum()
    gradients = torch.autograd.grad(loss, list(net.parameters()))
    with torch.no_grad():
        for p, gradient in zip(net.parameters(), gradients):
            p.sub_(gradient, alpha=0.01)
        return [p.sum() for name, p in net.named_parameters() if "bias" in name]


def test_loops_of_the_program_over_many_parameters():
    """Over two networks' parameters beside each other, and over parameters with their names: one graph."""
    runs = []
    dyncomp.reset()
    for call in (averaged_and_named, dyncomp.compile(averaged_and_named)):
        torch.manual_seed(5)
        net, average = (nn.Sequential(*[nn.Linear(3, 3) for _ in range(45)]) for _ in range(2))
        runs.append(([call(net, average) for _ in range(3)], average.state_dict()))
    equal(runs[0], runs[1], 1e-5)
    stats = dyncomp.stats()
    assert stats["graphs"] == 1 and stats["breaks"] == {} and stats["internal_errors"] == 0


def test_a_schedule_in_the_step():
    """Rates and counters of schedules are passed: what changes at each call is compiled once."""
    runs = []
    dyncomp.reset()

    def step(net, optimizer, schedule, x, y):
        results = whole_step(net, optimizer, x, y)
        schedule.step()
        return *results, schedule.get_last_lr()

    for call in (step, dyncomp.compile(step)):
        torch.manual_seed(5)
        net, optimizer = make(*CASES["adamw"])
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
        x, y = torch.randn(4, 5), torch.randn(4, 3)
        results = [call(net, optimizer, schedule, x, y) for _ in range(8)]
        runs.append((results, net.state_dict(), schedule.state_dict()["last_epoch"]))
    for first, second in zip(*runs):
        equal(first, second, 1e-4)
    stats = dyncomp.stats()
    assert stats["graphs"] <= 2 and stats["breaks"] == {} and stats["internal_errors"] == 0
