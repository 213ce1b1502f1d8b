"""Modules and steps of PyTorch under ``numerics="strict"`` have its bits."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402  (torch may be missing)

from .bits import bits, strictly  # noqa: E402

nn, F = torch.nn, torch.nn.functional


def functions(x: Any) -> Any:
    y = x.abs() + 0.5
    return (
        F.softmax(x * 2 + 1, -1),
        F.log_softmax(x, 0),
        F.gelu(x),
        F.silu(x),
        F.layer_norm(x, x.shape[-1:]),
        x.sum(),
        x.mean(0),
        x.var(1),
        x.norm(),
        y**1.7,
        torch.atan2(x, y),
        x.cumsum(1),
        x.sqrt(),
        torch.lerp(x, y, 0.3),
        torch.addcmul(x, y, y, value=0.3),
        x.add(y, alpha=0.7),
        torch.logsumexp(x, 1),
        torch.einsum("ij,kj->ik", x, y),
        F.relu(x * 0.0),
        x.clamp(-0.1, 0.1),
    )


def in_place(x: Any) -> Any:
    x = x.clone()
    x.exp_()
    x += 1
    x.mul_(0.3).add_(x, alpha=0.7)
    x.addcmul_(x, x, value=0.3)
    x **= 3
    x[1:] = x[:-1].sin()
    return x


def attention(x: Any) -> Any:
    heads = x[:, :16].reshape(x.shape[0], 2, 8).transpose(0, 1)
    weights = F.softmax(heads @ heads.transpose(-1, -2) / 8**0.5, -1)
    return weights @ heads, F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


def shapes(x: Any) -> Any:
    image = x[:16, :16].reshape(1, 4, 8, 8)
    return (
        F.avg_pool2d(image, 1, 2),
        F.avg_pool2d(image, 3, 2, 1),
        F.interpolate(image, scale_factor=2.0, mode="bilinear"),
        F.adaptive_avg_pool2d(image, 8),
        F.conv2d(image, image.reshape(4, 4, 4, 4)[:, :, :3, :3], padding=1),
        F.max_pool2d(image, 2),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("program", [functions, in_place, attention, shapes], ids=lambda f: f.__name__)
def test_torch_programs(program: Any, dtype: str) -> None:
    torch.manual_seed(0)
    if program is functions and dtype == "bfloat16":
        pytest.skip("some functions are not defined for it")
    whole = torch.randn(64, 21, dtype=torch.float64).to(getattr(torch, dtype))
    compiled = strictly(program, fullgraph=program is functions)
    for x in (whole[:33].contiguous(), whole[::2], whole.t().contiguous().t()):
        with torch.no_grad():
            assert not bits(program(x), compiled(x))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])

    def forward(self, x: Any) -> Any:
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(x + self.norms[1](self.second(y)))


MODULES: dict[str, Any] = {
    "residual": (Residual, (2, 8, 9, 9)),
    "encoder": (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (2, 7, 32)),
    "lstm": (lambda: nn.LSTM(8, 16, 2), (5, 3, 8)),
    "perceptron": (lambda: nn.Sequential(nn.Linear(9, 20), nn.Tanh(), nn.Linear(20, 3)), (7, 9)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    torch.manual_seed(0)
    make, shape = MODULES[name]
    module = make().eval()
    x = torch.randn(shape)
    with torch.no_grad():
        assert not bits(module(x), strictly(module, fullgraph=True)(x))
    # with gradients
    module.train()
    if name == "encoder":
        module.eval()  # no dropout
    other = copy.deepcopy(module)
    for m, call in ((module, module), (other, strictly(other))):
        found = call(x)
        (found[0] if isinstance(found, tuple) else found).square().sum().backward()
        m.found = found
    assert not bits([p.grad for p in module.parameters()], [p.grad for p in other.parameters()])
    assert not bits(dict(module.state_dict()), dict(other.state_dict()))


@pytest.mark.parametrize("form", [{}, {"foreach": True}, {"fused": True}], ids=str)
@pytest.mark.parametrize("optimizer", ["Adam", "SGD", "AdamW"])
def test_steps_of_optimizers(optimizer: str, form: dict[str, bool]) -> None:
    def trained(strict: bool) -> Any:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(9, 20), nn.Tanh(), nn.Linear(20, 3))
        chosen = getattr(torch.optim, optimizer)(module.parameters(), lr=0.03, weight_decay=0.1, **form)
        step = strictly(chosen.step) if strict else chosen.step
        x = torch.randn(7, 9)
        for _ in range(4):
            chosen.zero_grad()
            module(x).square().sum().backward()
            step()
        return dict(module.state_dict())

    assert not bits(trained(False), trained(True))


def test_a_training_step() -> None:
    def step(module: Any, optimizer: Any, x: Any) -> Any:
        optimizer.zero_grad()
        loss = F.dropout(module(x), 0.3).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def trained(run: Any) -> Any:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(9, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 3))
        optimizer = torch.optim.Adam(module.parameters(), lr=0.03)
        x = torch.randn(7, 9)
        return [run(module, optimizer, x) for _ in range(4)]

    assert not bits(trained(step), trained(strictly(step)))


def test_autocast_and_random_numbers() -> None:
    def mixed(x: Any, w: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ w
            return F.softmax(y, -1), F.dropout(y, 0.5) + torch.randn_like(y)

    x, w = torch.randn(7, 9), torch.randn(9, 5)
    found = []
    for call in (mixed, strictly(mixed)):
        torch.manual_seed(3)
        with torch.no_grad():
            found.append(call(x, w))
    assert not bits(*found)


def test_default_differs_somewhere() -> None:
    torch.manual_seed(0)
    x = torch.randn(33, 219)
    with torch.no_grad():
        assert bits(F.gelu(x).sum(1), dyncomp.compile(lambda x: F.gelu(x).sum(1))(x))
        assert not bits(F.gelu(x).sum(1), strictly(lambda x: F.gelu(x).sum(1), fullgraph=True)(x))


def test_a_vision_model() -> None:
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=5).eval()
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert not bits(model(x), strictly(model)(x))


def test_a_language_model() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=99, n_positions=32)
    model = transformers.GPT2Model(config).eval()
    tokens = torch.randint(0, 99, (2, 11))
    compiled = strictly(model)
    with torch.no_grad():
        assert not bits(model(tokens).last_hidden_state, compiled(tokens).last_hidden_state)


@pytest.mark.parametrize(
    "settings", [{"dynamic": True}, {"mode": "max-autotune"}, {"backend": "eager"}], ids=str
)
def test_other_ways_to_compile(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    compiled = strictly(attention, **settings)
    with torch.no_grad():
        for rows in (7, 12, 33):
            x = torch.randn(rows, 40)
            for given in (x, x[:, ::2], torch.randn(24, rows).t()):
                assert not bits(attention(given), compiled(given))
