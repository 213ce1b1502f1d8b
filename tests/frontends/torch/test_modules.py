"""nn.Module through dyncomp.compile: one graph, guarded parameters, the program's own semantics."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

from .harness import same  # noqa: E402
from .models import Gated, Talkative, Transformer, mlp, nn  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh():
    dyncomp.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield
    dyncomp.reset()


def stats(name: str) -> int:
    return dyncomp.stats()[name]


def test_mlp_is_one_graph():
    model = mlp()
    fast = dyncomp.compile(model, fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(5, 8)
        same(fast(x), model(x), "mlp")
    assert (stats("graphs"), stats("cache_hits"), stats("fallbacks")) == (1, 2, 0)


def test_compiling_does_not_change_the_module():
    model = mlp()
    before = list(model._modules), list(model.state_dict())
    fast = dyncomp.compile(model)
    fast(torch.randn(2, 8))
    assert (list(model._modules), list(model.state_dict())) == before
    assert fast.training is False
    assert list(fast.parameters())[0] is model[0].weight


def test_transformer_is_one_graph():
    model = Transformer().eval()
    fast = dyncomp.compile(model, fullgraph=True)
    tokens = torch.randint(0, 50, (2, 12))
    same(fast(tokens), model(tokens), "transformer")
    assert (stats("graphs"), stats("breaks")) == (1, {})


def test_transformer_in_bfloat16():
    model = Transformer().eval().bfloat16()
    tokens = torch.randint(0, 50, (2, 12))
    found, expected = dyncomp.compile(model, fullgraph=True)(tokens), model(tokens)
    assert found.dtype is torch.bfloat16
    assert torch.allclose(found.float(), expected.float(), atol=0.1, rtol=0.05)


def test_another_length_makes_the_length_symbolic():
    model = Transformer().eval()
    fast = dyncomp.compile(model)
    for length in (12, 7, 5, 9):
        tokens = torch.randint(0, 50, (2, length))
        same(fast(tokens), model(tokens), f"length {length}")
    assert stats("fallbacks") == 0


def test_token_out_of_range_raises_as_in_torch():
    model = Transformer().eval()
    fast = dyncomp.compile(model)
    good = torch.randint(0, 50, (2, 12))
    fast(good)
    for bad in (50, -1):
        tokens = good.clone()
        tokens[1, 3] = bad
        with pytest.raises(IndexError, match="index out of range in self"):
            fast(tokens)


def test_parameters_updated_in_place_need_no_recompilation():
    model = mlp()
    fast = dyncomp.compile(model, fullgraph=True)
    x = torch.randn(5, 8)
    fast(x)
    for p in model.parameters():
        p.mul_(0.5).add_(0.25)
    same(fast(x), model(x), "updated")
    model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()})
    same(fast(x), model(x), "loaded")
    model[0].weight = nn.Parameter(torch.randn(16, 8))
    same(fast(x), model(x), "replaced")
    assert stats("recompiles") == 0


def test_changed_attributes_and_submodules_recompile():
    model = Gated().eval()
    fast = dyncomp.compile(model, fullgraph=True)
    x = torch.randn(3, 4)
    same(fast(x), model(x), "first")
    model.scale = 5.0
    same(fast(x), model(x), "attribute")
    model.named["act"] = nn.ReLU()
    same(fast(x), model(x), "submodule")
    model.parts[1] = nn.Linear(4, 4, bias=False)
    same(fast(x), model(x), "no bias")
    same(fast(x, flip=True), model(x, flip=True), "keyword")
    assert stats("recompiles") == 4


def test_graph_break_in_forward(capsys):
    model = Talkative().eval()
    fast = dyncomp.compile(model)
    x = torch.randn(3, 4)
    expected = model(x)
    for _ in range(3):
        same(fast(x), expected, "break")
    assert model.calls == [3] * 4
    assert capsys.readouterr().out == "half-way torch.Size([3, 8])\n" * 4
    assert stats("breaks") == {"print": 1}
    assert stats("graphs") == 2


def test_train_and_eval():
    model = Transformer().eval()
    fast = dyncomp.compile(model)
    tokens = torch.randint(0, 50, (2, 12))
    same(fast(tokens), model(tokens), "eval")
    model.train()
    for seed in range(2):
        torch.manual_seed(seed)
        found = fast(tokens)
        torch.manual_seed(seed)
        same(found, model(tokens), "train")
    model.eval()
    same(fast(tokens), model(tokens), "eval again")


def test_hooks_run():
    model = mlp()
    fast = dyncomp.compile(model)
    x = torch.randn(5, 8)
    same(fast(x), model(x), "no hook")
    seen = []
    handle = model[2].register_forward_hook(lambda module, args, out: seen.append(out.shape) or out * 2)
    same(fast(x), model(x), "hook")
    assert len(seen) == 2
    handle.remove()
    same(fast(x), model(x), "removed")
    assert len(seen) == 2


def test_method_and_function_of_a_module():
    model = mlp()
    x = torch.randn(5, 8)
    same(dyncomp.compile(model.forward, fullgraph=True)(x), model(x), "method")
    same(
        dyncomp.compile(lambda v: model(v).softmax(-1) + 1, fullgraph=True)(x),
        model(x).softmax(-1) + 1,
        "closure",
    )


def test_copies_are_independent():
    model = mlp()
    other = copy.deepcopy(model)
    other[0].weight.zero_()
    run = dyncomp.compile(lambda m, v: m(v), fullgraph=True)
    x = torch.randn(5, 8)
    same(run(model, x), model(x), "one")
    same(run(other, x), other(x), "other")
    assert stats("recompiles") == 0


def test_what_the_program_keeps_on_a_tensor_is_read():
    """An attribute in the tensor's own dict, as ``nn.Buffer`` has: guarded as any value."""

    class Moved(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.places = torch.nn.Buffer(torch.randn(3))

        def forward(self, x):
            self.places = self.places.to(x.dtype)
            return x * self.places * x.scale

    module, x = Moved(), torch.randn(3)
    compiled = dyncomp.compile(module, backend="eager", fullgraph=True)
    for scale in (2.0, 3.0, torch.ones(3)):
        x.scale = scale
        same(compiled(x), module(x), "scaled")
    assert list(dict(module.named_buffers())) == ["places"]
