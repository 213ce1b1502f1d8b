"""A compiled module is a module: what programs do with an ``nn.Module``, done with a compiled one."""

from __future__ import annotations

import copy
import gc
import inspect
import io
import pickle
import subprocess
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

from .harness import same  # noqa: E402
from .models import F, Talkative, Transformer, mlp, nn  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh():
    dyncomp.reset()
    torch.manual_seed(0)
    yield
    dyncomp.reset()


class Net(nn.Module):
    """With all kinds of members, and methods beside ``forward``."""

    registered: list[str] = []

    def __init_subclass__(cls) -> None:
        Net.registered.append(cls.__name__)

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.first = nn.Linear(width, 8)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, 3)
        self.scale = 2.0
        self.calls = 0

    def forward(self, x: torch.Tensor, bias: float = 0.0) -> torch.Tensor:
        self.calls += 1
        return self.last(torch.relu(self.norm(self.first(x)))) * self.scale + bias

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(self(x), y)

    def roll_out(self, x: torch.Tensor, steps: int) -> list[float]:
        """As ``generate``: a loop of the program around calls of the module itself."""
        seen = []
        for _ in range(steps):
            x = F.pad(self(x), (0, 1)).tanh()
            seen.append(x.sum().item())
        return seen


class Other(Net):
    pass


def shell(model: nn.Module, **options) -> nn.Module:
    return dyncomp.compile(model, **options)


def in_place(model: nn.Module, **options) -> nn.Module:
    return dyncomp.compile_(model, **options)


BOTH = pytest.mark.parametrize("compiled", [shell, in_place])


def graphs() -> int:
    return dyncomp.stats()["graphs"]


def check_compiled(model: nn.Module, reference: nn.Module, *args: object) -> None:
    """``model`` answers as ``reference``, and does so by compiled code."""
    before = dyncomp.stats()["cache_hits"]
    for _ in range(3):
        torch.manual_seed(1)
        found = model(*args)
        torch.manual_seed(1)
        same(found, reference(*args), "compiled")
    assert dyncomp.stats()["cache_hits"] > before and graphs() > 0
    assert dyncomp.stats()["fallbacks"] == 0


@BOTH
def test_it_is_a_module_of_its_class(compiled):
    registered = list(Net.registered)
    plain = Net()
    keys, text = list(plain.state_dict()), repr(plain)
    model = compiled(plain)
    assert isinstance(model, Net) and isinstance(model, nn.Module)
    assert (type(model).__name__, type(model).__module__) == ("Net", __name__)
    assert list(model.state_dict()) == keys and repr(model) == text
    assert [id(p) for p in model.parameters()] == [id(p) for p in plain.parameters()]
    assert inspect.signature(model.forward) == inspect.signature(Net().forward)
    assert Net.registered == registered
    assert model.first is plain.first and len(list(model.modules())) == len(list(plain.modules()))


def test_a_shell_and_its_module_share_everything():
    plain = Net()
    model = dyncomp.compile(plain)
    assert model is not plain and model.__wrapped__ is plain and model.__class__ is Net
    assert type(plain) is Net and vars(model) is vars(plain)
    model.scale = 5.0
    assert plain.scale == 5.0
    plain.extra = nn.Linear(3, 3)
    assert "extra.weight" in model.state_dict()
    del model.extra
    assert not hasattr(plain, "extra")
    model.register_buffer("steps", torch.zeros(3))
    assert plain.steps is model.steps
    model.eval()
    assert not plain.training and not plain.norm.training
    model.double()
    assert plain.first.weight.dtype is torch.float64
    model.load_state_dict({k: torch.ones_like(v) for k, v in plain.state_dict().items()})
    assert (plain.last.weight == 1).all()
    model.requires_grad_(False)
    assert not any(p.requires_grad for p in plain.parameters())


@BOTH
def test_results_and_gradients(compiled):
    reference = Net()
    model = compiled(copy.deepcopy(reference))
    x = torch.randn(6, 4)
    check_compiled(model, reference, x)
    assert model.calls == reference.calls
    for net in (model, reference):
        net.zero_grad()
        net(x, bias=1.0).square().sum().backward()
    for found, expected in zip(model.parameters(), reference.parameters()):
        same(found.grad, expected.grad, "gradient")
    same(model.norm.running_mean, reference.norm.running_mean, "buffer")


@BOTH
def test_train_eval_and_conversion(compiled):
    reference = Net()
    model = compiled(copy.deepcopy(reference))
    x = torch.randn(6, 4)
    check_compiled(model, reference, x)
    check_compiled(model.eval(), reference.eval(), x)
    reference.load_state_dict(model.state_dict())  # running statistics are float32's
    check_compiled(model.double(), reference.double(), x.double())
    check_compiled(model.to(torch.float32), reference.to(torch.float32), x)
    check_compiled(model.train(), reference.train(), x)
    assert model.requires_grad_(False) is model and model.apply(lambda m: None) is model


@BOTH
def test_other_methods_call_compiled_code(compiled):
    reference = Net().eval()
    model = compiled(copy.deepcopy(reference))
    x, y = torch.randn(6, 4), torch.randn(6, 3)
    with torch.no_grad():
        same(model.loss(x, y), reference.loss(x, y), "loss")
        assert graphs() == 1
        assert model.roll_out(x, 4) == pytest.approx(reference.roll_out(x, 4))
        assert dyncomp.stats()["cache_hits"] >= 3
        same(model.forward(x, 2.0), reference.forward(x, 2.0), "forward")
    assert model.calls == reference.calls == 6


def test_a_compiled_method_that_calls_the_module():
    reference = Net().eval()
    model = copy.deepcopy(reference)
    x = torch.randn(6, 4)
    with torch.no_grad():
        for _ in range(2):
            found = dyncomp.compile(model.roll_out)(x, 4)
            assert found == pytest.approx(reference.roll_out(x, 4))
    assert model.calls == reference.calls and graphs() > 0


@BOTH
def test_hooks(compiled):
    plain = Net().eval()
    model = compiled(plain)
    seen = []
    handle = model.register_forward_hook(lambda module, args, result: seen.append(module) or result + 1)
    before = model.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    x = torch.randn(5, 4)
    reference = copy.deepcopy(plain)
    assert type(reference) is type(plain)
    with torch.no_grad():
        expected = Net.forward(plain, x * 2) + 1
        for _ in range(2):
            same(model(x), expected, "hooked")
        assert seen == [plain, plain]
        handle.remove()
        before.remove()
        same(model(x), Net.forward(plain, x), "without")
    grads = []
    model.register_full_backward_hook(lambda module, gi, go: grads.append(go[0].shape))
    model(x).sum().backward()
    assert grads == [(5, 3)]


@BOTH
def test_copies(compiled):
    model = compiled(Net().eval())
    x = torch.randn(5, 4)
    with torch.no_grad():
        before = [model(x) for _ in range(3)][0]  # the count of calls becomes symbolic
        made = graphs()
        twin = copy.deepcopy(model)
        assert type(twin) is type(model) and twin.first.weight is not model.first.weight
        same(twin(x), before, "copy")
        assert graphs() == made  # the copy shares compiled code
        twin.last.bias.add_(1)
        same(model(x), before, "original")
        same(twin(x), before + 2, "changed copy")
        shallow = copy.copy(model)
        assert shallow.first is model.first and vars(shallow) is not vars(model)
        same(shallow(x), before, "shallow")


@BOTH
def test_a_copy_of_what_holds_it(compiled):
    holder = nn.ModuleDict({"a": compiled(Net().eval())})
    holder["a"].owner = [holder]  # a cycle
    twin = copy.deepcopy(holder)
    assert twin["a"].owner[0] is twin and isinstance(twin["a"], Net)
    with torch.no_grad():
        check_compiled(twin["a"], holder["a"], torch.randn(5, 4))


@BOTH
def test_pickled(compiled):
    model = compiled(Net().eval(), dynamic=True)
    x = torch.randn(5, 4)
    expected = model(x)
    stream = io.BytesIO()
    torch.save({"model": model, "again": model}, stream)
    stream.seek(0)
    dyncomp.reset()
    loaded = torch.load(stream, weights_only=False)
    arrived = loaded["model"]
    assert arrived is loaded["again"] and isinstance(arrived, Net)
    check_compiled(arrived, Net.forward.__get__(arrived), x)
    same(arrived(x), expected, "loaded")
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(arrived))))
    check_compiled(again, Net.forward.__get__(again), x)


@BOTH
def test_pickled_with_a_cycle(compiled):
    model = compiled(Net().eval())
    model.owner = [model]
    arrived = pickle.loads(pickle.dumps(model))
    assert arrived.owner[0] is arrived
    check_compiled(arrived, Net.forward.__get__(arrived), torch.randn(5, 4))


@BOTH
def test_pickled_to_another_process(compiled, tmp_path):
    model = compiled(mlp())
    x = torch.randn(5, 8)
    torch.save((model, x, model(x).detach()), tmp_path / "model.pt")
    program = (
        "import torch\n"
        f"model, x, expected = torch.load({str(tmp_path / 'model.pt')!r}, weights_only=False)\n"
        "import dyncomp\n"
        "assert torch.allclose(model(x), expected, atol=1e-5)\n"
        "assert dyncomp.stats()['graphs'] == 1 and isinstance(model, torch.nn.Sequential)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_containers():
    model = dyncomp.compile(mlp())
    assert len(model) == 5 and model[0].in_features == 8
    assert type(model[:2]) is nn.Sequential
    assert [type(m).__name__ for m in model][:2] == ["Linear", "ReLU"]
    outer = nn.Sequential(model, nn.Linear(3, 2)).eval()
    assert "0.0.weight" in outer.state_dict()
    x = torch.randn(5, 8)
    check_compiled(outer, outer[1].forward and (lambda v: outer[1](model.__wrapped__(v))), x)
    check_compiled(dyncomp.compile(outer, fullgraph=True), outer, x)


def test_compiled_again():
    plain = Talkative().eval()
    x = torch.randn(3, 4)
    loose = dyncomp.compile(plain)
    strict = dyncomp.compile(loose, fullgraph=True)
    assert strict.__wrapped__ is plain
    with torch.no_grad():
        loose(x)
        with pytest.raises(dyncomp.GraphBreakError):
            strict(x)
        assert dyncomp.compile_(plain, fullgraph=True) is plain
        with pytest.raises(dyncomp.GraphBreakError):
            plain(x)
        dyncomp.compile_(plain)
        plain(x)


def test_what_cannot_be_compiled_in_place():
    with pytest.raises(TypeError, match="object of type int in place"):
        dyncomp.compile_(3)
    with pytest.raises(TypeError, match="in place"):
        dyncomp.compile_(lambda x: x)


class Slotted(nn.Module):
    __slots__ = ("gain",)

    def __init__(self):
        super().__init__()
        self.gain = 3.0

    def forward(self, x):
        return x * self.gain


def test_a_class_that_cannot_be_derived_from():
    model = Slotted()
    compiled = dyncomp.compile(model)
    x = torch.randn(4)
    check_compiled(compiled, model, x)
    assert compiled.gain == 3.0


@BOTH
def test_attributes_written_in_captured_code(compiled):
    """The shell and its module in one captured function: what is written to one is read of the other."""
    plain = Net().eval()
    model = compiled(plain)

    def step(model, plain, x):
        model.scale = 3.0
        y = plain(x)
        plain.scale = 4.0
        z = model(x)
        return y, z, model.scale, model.calls - plain.calls

    x = torch.randn(5, 4)
    reference = copy.deepcopy(plain)
    with torch.no_grad():
        expected = step(reference, reference, x)
    fast = dyncomp.compile(step)
    with torch.no_grad():
        for _ in range(3):
            found = fast(model, plain, x)
            same(found[0], expected[0], "first")
            same(found[1], expected[1], "second")
            assert found[2:] == (4.0, 0)
        assert plain.calls == 6
        other = Net().eval()  # the same code with modules that share nothing
        other.scale = 7.0
        plain.scale = 2.0
        expected = step(copy.deepcopy(other), copy.deepcopy(plain), x)
        found = fast(dyncomp.compile(other), plain, x)
        assert found[2] == 3.0 == expected[2] and other.scale == 3.0 and plain.scale == 4.0
        same(found[0], expected[0], "apart, first")
        same(found[1], expected[1], "apart, second")


def test_modules_that_came_to_share():
    """Captured with a shell and an unrelated module, then called with a shell and its own."""
    first, second = Net().eval(), Net().eval()
    shell = dyncomp.compile(first)

    def step(a, b):
        a.scale = 3.0
        b.scale = 5.0
        return a.scale

    fast = dyncomp.compile(step, options={"capture_plain": True})
    for _ in range(2):
        assert fast(shell, second) == 3.0
        assert fast(shell, first) == 5.0


def test_lifetimes():
    plain = Net().eval()
    x = torch.randn(5, 4)
    with torch.no_grad():
        model = dyncomp.compile(plain)
        model(x)
    gone = weakref.ref(plain)
    gc.disable()
    try:
        del plain
        assert gone() is not None  # the compiled module holds it
        del model
        assert gone() is None
    finally:
        gc.enable()


class Closing(nn.Linear):
    closed = 0

    def __del__(self):
        Closing.closed += 1


def test_finalizers_run_once():
    model = dyncomp.compile(Closing(2, 2))
    model(torch.randn(1, 2))
    del model
    gc.collect()
    assert Closing.closed == 1


@BOTH
def test_clipping(compiled):
    reference = Net()
    model = compiled(copy.deepcopy(reference))
    x = torch.randn(6, 4)
    norms = []
    for net in (model, reference):
        net(x).square().sum().backward()
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1))
    same(norms[0], norms[1], "norm")
    for found, expected in zip(model.parameters(), reference.parameters()):
        same(found.grad, expected.grad, "clipped")
    vector = torch.nn.utils.parameters_to_vector(model.parameters())
    torch.nn.utils.vector_to_parameters(vector + 1, reference.parameters())
    same(model.last.bias.data + 1, reference.last.bias.data, "from a vector")


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


@BOTH
def test_parametrizations(compiled):
    from torch.nn.utils import parametrize

    reference = nn.Linear(4, 3)
    model = compiled(copy.deepcopy(reference))
    nested = compiled(Net().eval())
    x = torch.randn(5, 4)
    check_compiled(model, reference, x)
    for net in (model, reference, nested.first):
        parametrize.register_parametrization(net, "weight", Doubled())
    assert parametrize.is_parametrized(model) and isinstance(model, nn.Linear)
    check_compiled(model, reference, x)
    check_compiled(nested, Net.forward.__get__(nested), x)
    with parametrize.cached():
        check_compiled(model, reference, x)
    check_compiled(copy.deepcopy(model), reference, x)
    for net in (model, reference):
        parametrize.remove_parametrizations(net, "weight")
    check_compiled(model, reference, x)
    assert type(reference) is nn.Linear and not parametrize.is_parametrized(model)


@BOTH
def test_norms_by_parametrization(compiled):
    reference = torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    model = compiled(copy.deepcopy(reference))
    x = torch.randn(5, 4)
    check_compiled(model, reference, x)
    spectral = compiled(nn.Sequential(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))).eval())
    check_compiled(spectral, copy.deepcopy(spectral), x)


@BOTH
def test_pruning(compiled):
    from torch.nn.utils import prune

    reference = Net().eval()
    model = compiled(copy.deepcopy(reference))
    x = torch.randn(5, 4)
    check_compiled(model, reference, x)
    for net in (model, reference):
        prune.l1_unstructured(net.first, "weight", amount=0.5)
    check_compiled(model, reference, x)
    for net in (model, reference):
        prune.remove(net.first, "weight")
    check_compiled(model, reference, x)


@BOTH
def test_averaged_models(compiled):
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

    models = [compiled(Net()), Net()]
    models[1].load_state_dict(models[0].state_dict())
    averaged = [AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True) for m in models]
    batches = [torch.randn(6, 4) for _ in range(3)]
    for model, average in zip(models, averaged):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in batches:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            average.update_parameters(model)
        update_bn(batches, average)
        average.eval()
    assert list(averaged[0].state_dict()) == list(averaged[1].state_dict())
    assert isinstance(averaged[0].module, Net)
    check_compiled(averaged[0], averaged[1], batches[0])


@BOTH
def test_functional_calls(compiled):
    reference = Net().eval()
    model = compiled(copy.deepcopy(reference))
    x = torch.randn(5, 4)
    others = {name: p.detach() + 1 for name, p in reference.named_parameters()}
    found = torch.func.functional_call(model, others, (x,))
    same(found, torch.func.functional_call(reference, others, (x,)), "functional")
    check_compiled(model, reference, x)


@BOTH
def test_data_parallel_wrapper_and_replicas(compiled):
    model = compiled(Net().eval())
    x = torch.randn(5, 4)
    check_compiled(nn.DataParallel(model), copy.deepcopy(model), x)
    replica = model._replicate_for_data_parallel()
    assert vars(replica) is not vars(model)
    same(replica(x), model(x), "replica")


@BOTH
def test_optimizer_loop(compiled):
    """A training loop as tutorials write it."""
    reference = Transformer()
    model = compiled(copy.deepcopy(reference))
    tokens = torch.randint(0, 50, (4, 12))
    losses: list[list[float]] = [[], []]
    for net, seen in zip((model, reference), losses):
        torch.manual_seed(3)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        net.train()
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            seen.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
