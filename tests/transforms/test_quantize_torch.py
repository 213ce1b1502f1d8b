"""Quantization of PyTorch modules, and training for it."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import GraphError
from dyncomp.transforms import convert, fake_quantize, prepare, quantize_static, quantize_weights

torch = pytest.importorskip("torch")


def cnn():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 10),
    )


def test_convolutions_are_quantized_by_channel():
    model, x = cnn().eval(), torch.rand(6, 1, 8, 8)
    g = dyncomp.symbolic_trace(model, (x,))
    for q in (quantize_weights(g), quantize_static(g, [x])):
        assert q.constants["0.weight.int8"].dtype is torch.int8
        assert q.constants["0.weight.scale"].shape == (4,)
        assert q.constants["4.weight.int8"].shape == (10, 64)
        assert len(q.nodes.find("convolution")) == 1
        expected = model(x)
        assert (q(x) - expected).abs().max() < 0.03 * expected.abs().max()


def test_gradients_go_straight_through_rounding():
    x = torch.tensor([-3.0, -0.26, 0.1, 0.74, 2.0], requires_grad=True)
    y = fake_quantize(x, torch.tensor(0.5), -2, 3)
    torch.testing.assert_close(y.detach(), torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.5]))
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0]))


def test_what_was_trained_is_what_runs():
    model, x = cnn(), torch.rand(16, 1, 8, 8)
    target = torch.randint(0, 10, (16,))
    assert prepare(model, leave_out=["nothing"]) is model
    assert [name for name, _ in model.named_parameters()] == [name for name, _ in cnn().named_parameters()]
    compiled = dyncomp.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(compiled(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    model.eval()
    g = convert(model, (x,))
    assert g.constants["0.weight.int8"].dtype is torch.int8
    torch.testing.assert_close(g(x), model(x).detach(), rtol=1e-3, atol=1e-4)
    assert type(model[0]) is not torch.nn.Conv2d  # the prepared module stays prepared


def test_layers_left_out_stay_in_floating_point():
    model, x = prepare(cnn(), leave_out=["0.*"]), torch.rand(3, 1, 8, 8)
    assert type(model[0]) is torch.nn.Conv2d
    with pytest.raises(GraphError, match="4 saw no activations"):
        convert(model, (x,))
    model(x)
    g = convert(model, (x,))
    assert "0.weight" in g.constants and "4.weight.int8" in g.constants


def test_modules_that_cannot_be_prepared():
    with pytest.raises(GraphError, match="ReLU has no Linear or Conv2d"):
        prepare(torch.nn.ReLU())
    with pytest.raises(GraphError, match="Sequential has no prepared layer"):
        convert(cnn(), (torch.rand(3, 1, 8, 8),))


def test_digits_keep_their_accuracy():
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(return_X_y=True)
    x = torch.from_numpy((images / 16).astype(np.float32)).reshape(-1, 1, 8, 8)
    y = torch.from_numpy(labels)
    model = cnn()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[:1400]), y[:1400]).backward()
        optimizer.step()
    model.eval()
    test = x[1400:]
    g = dyncomp.symbolic_trace(model, (test,), dynamic={"input": 0})

    def accuracy(f):
        return float((f(test).argmax(1) == y[1400:]).float().mean())

    plain = accuracy(g)
    assert plain > 0.85
    assert accuracy(quantize_weights(g)) > plain - 0.02
    assert accuracy(quantize_static(g, [x[:200], x[200:300]])) > plain - 0.02
