"""Graphs of PyTorch modules as objects."""

from __future__ import annotations

import copy

import pytest

import dyncomp

torch = pytest.importorskip("torch")
F = torch.nn.functional


def cnn():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 10),
    ).eval()


def test_a_module_is_traced_with_named_weights():
    model, x = cnn(), torch.rand(2, 1, 8, 8)
    g = dyncomp.symbolic_trace(model, (x,))
    assert {"0.weight", "0.bias", "1.running_mean", "5.weight", "5.bias"} <= set(g.constants)
    other = torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(g(other), model(other))
    assert not g(other).requires_grad
    torch.testing.assert_close(g(other.to(memory_format=torch.channels_last)), model(other))
    with pytest.raises(TypeError, match=r"input: float32\[2, 1, 8, 8\], and got one float64"):
        g(other.double())


def test_weights_are_the_modules_own():
    model, x = torch.nn.Linear(3, 2), torch.rand(4, 3)
    g = dyncomp.symbolic_trace(model, (x,))
    with torch.no_grad():
        model.weight.mul_(2)
    torch.testing.assert_close(g(x), model(x))
    g.constants["bias"] = torch.zeros(2)
    torch.testing.assert_close(g(x), x @ model.weight.T)


def test_batch_norm_and_convolution_become_one():
    model, x = cnn(), torch.rand(2, 1, 8, 8)
    model[1].running_mean.uniform_(-1, 1)
    model[1].running_var.uniform_(1, 2)
    g = dyncomp.symbolic_trace(model, (x,))

    def conv_norm(x, w, b, mean, var, scale, shift):
        return F.batch_norm(F.conv2d(x, w, b, padding=1), mean, var, scale, shift)

    def folded(x, w, b, mean, var, scale, shift):
        factor = scale * torch.rsqrt(var + 1e-5)
        return F.conv2d(x, w * factor[:, None, None, None], (b - mean) * factor + shift, padding=1)

    examples = (x, model[0].weight, *[torch.ones(4)] * 5)
    assert g.replace_pattern(conv_norm, folded, examples=examples) == 1
    torch.testing.assert_close(g(x), model(x))
    assert len(g.nodes.find("convolution")) == 1


def test_linear_is_found_without_examples():
    model, x = cnn(), torch.rand(2, 1, 8, 8)
    g = dyncomp.symbolic_trace(model, (x,))
    assert (
        g.replace_pattern(
            F.linear, lambda x, w, b: x @ (w.T * 2) + b, examples=(x[0, 0], x[0, 0], x[0, 0, 0])
        )
        == 1
    )
    assert len(g.find_pattern(lambda x, w, b: F.linear(x, w, b))) == 0
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[5].weight.mul_(2)
    torch.testing.assert_close(g(x), other(x))


def test_buffers_that_training_writes_are_written():
    model = torch.nn.BatchNorm1d(4)
    same = copy.deepcopy(model)
    g = dyncomp.symbolic_trace(model, (torch.rand(6, 4),))
    x = torch.rand(6, 4)
    torch.testing.assert_close(g(x), same(x))
    torch.testing.assert_close(model.running_mean, same.running_mean)
    assert int(model.num_batches_tracked) == 1


def test_an_encoder_in_two_parts():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model, x = torch.nn.TransformerEncoder(layer, 2).eval(), torch.rand(2, 5, 16)
    g = dyncomp.symbolic_trace(model, (x,))
    cut = g.nodes.find("layer_norm")[1]
    first, second = g.split(cut)
    torch.testing.assert_close(second(*first(x)), model(x))
    assert any("layers.0" in name for name in first.constants)
    assert all("layers.1" in name for name in second.constants)


def test_a_backend_sees_weights_by_name():
    names = []

    def backend(graph, example_inputs):
        g = dyncomp.wrap_graph(graph)
        names.extend(value.label for value in g.inputs)
        return g

    model, x = torch.nn.Linear(3, 2).requires_grad_(False), torch.rand(4, 3)
    torch.testing.assert_close(dyncomp.compile(model, backend=backend)(x), model(x))
    assert names[1:] == ["weight", "bias"]


def test_what_draws_is_no_graph():
    with pytest.raises(dyncomp.ExportError, match="random"):
        dyncomp.symbolic_trace(torch.nn.Dropout(0.5), (torch.ones(3),))
