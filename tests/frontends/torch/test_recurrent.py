"""Recurrent layers: one graph each, whatever their weights are replaced by."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

nn = torch.nn
LAYERS = {
    "lstm": lambda: nn.LSTM(6, 4, batch_first=True),
    "lstm-two-ways": lambda: nn.LSTM(6, 4, 2, bidirectional=True),
    "lstm-projected": lambda: nn.LSTM(6, 4, proj_size=2, bias=False),
    "gru": lambda: nn.GRU(6, 4, 2, batch_first=True),
    "rnn": lambda: nn.RNN(6, 4, nonlinearity="relu"),
}


def tensors(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for part in result for t in tensors(part)]


def assert_equal(found, expected):
    found, expected = tensors(found), tensors(expected)
    assert [(t.shape, t.stride(), t.dtype) for t in found] == [
        (t.shape, t.stride(), t.dtype) for t in expected
    ]
    for mine, their in zip(found, expected):
        torch.testing.assert_close(mine, their)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_one_graph(name):
    torch.manual_seed(0)
    layer = LAYERS[name]().eval()
    fast, x = dyncomp.compile(layer), torch.randn(3, 5, 6)
    with torch.no_grad():
        report = dyncomp.explain(layer)(x)
        assert not report.breaks and not report.skipped and len(report.graphs) == 1
        assert_equal(fast(x), layer(x))
        assert_equal(fast(x[0]), layer(x[0]))


def test_state_and_surroundings():
    torch.manual_seed(0)
    cell = nn.LSTM(6, 4).eval()

    def f(x, state):
        out, (h, c) = cell(torch.tanh(x) * 2, state)
        return torch.relu(out), h + 1, c

    x, state = torch.randn(5, 3, 6), (torch.randn(1, 3, 4), torch.randn(1, 3, 4))
    with torch.no_grad():
        report = dyncomp.explain(f)(x, state)
        assert not report.breaks and len(report.graphs) == 1
        assert_equal(report.result, f(x, state))


def test_replaced_and_changed_weights():
    torch.manual_seed(0)
    layer = nn.GRU(6, 4).eval()
    fast, x = dyncomp.compile(layer), torch.randn(5, 3, 6)
    with torch.no_grad():
        fast(x)
        layer.weight_hh_l0 = nn.Parameter(torch.randn(12, 4))
        assert_equal(fast(x), layer(x))
        layer.weight_ih_l0.mul_(3.0)
        assert_equal(fast(x), layer(x))
        layer.weight_ih_l0.data = torch.randn(12, 6)
        assert_equal(fast(x), layer(x))
        swapped = {"bias_ih_l0": torch.randn(12)}
        called = torch.func.functional_call
        assert_equal(dyncomp.compile(lambda y: called(layer, swapped, y))(x), called(layer, swapped, x))


def test_packed_sequences():
    torch.manual_seed(0)
    layer = nn.LSTM(6, 4, batch_first=True).eval()
    rnn = nn.utils.rnn

    def f(x, lengths):
        packed, state = layer(rnn.pack_padded_sequence(x * 2, lengths, batch_first=True))
        return rnn.pad_packed_sequence(packed, batch_first=True)[0] + 1, state

    x, lengths = torch.randn(3, 5, 6), torch.tensor([5, 3, 2])
    fast = dyncomp.compile(f)
    with torch.no_grad():
        for _ in range(3):
            assert_equal(fast(x, lengths), f(x, lengths))


def test_dropout_is_drawn_at_each_call():
    torch.manual_seed(0)
    layer = nn.LSTM(6, 4, 2, dropout=0.5)

    def f(x):
        return layer(x)[0] - layer(x)[0], torch.rand(2)

    fast, x = dyncomp.compile(f), torch.randn(5, 3, 6)
    with torch.no_grad():
        for seed in range(3):
            torch.manual_seed(seed)
            expected = f(x)
            torch.manual_seed(seed)
            found = fast(x)
            assert expected[0].abs().max() > 0
            assert_equal(found, expected)


def test_wrong_sizes_are_the_programs_error():
    layer = nn.GRU(6, 4).eval()
    with torch.no_grad(), pytest.raises(RuntimeError, match="input.size"):
        dyncomp.compile(layer)(torch.randn(5, 3, 7))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_state_of_changing_sizes(kind):
    """With memory torch checks no sizes: it writes beyond it where the state does not go with the input."""
    torch.manual_seed(0)
    layer = kind(4, 6).eval()
    fast = dyncomp.compile(layer)
    with torch.no_grad():
        for length, count in ((7, 3), (7, 5), (7, 8), (9, 2), (3, 3)):
            x, h = torch.randn(length, count, 4), torch.randn(1, count, 6)
            state = (h, h.neg()) if kind is nn.LSTM else h
            assert_equal(fast(x, state), layer(x, state))
        with pytest.raises(RuntimeError, match="Expected hidden"):
            fast(torch.randn(7, 4, 4), state)


# -- cells --------------------------------------------------------------------------------------------------
CELLS = {
    "lstm": lambda: nn.LSTMCell(6, 4),
    "lstm-without-bias": lambda: nn.LSTMCell(6, 4, bias=False),
    "gru": lambda: nn.GRUCell(6, 4),
    "tanh": lambda: nn.RNNCell(6, 4),
    "relu": lambda: nn.RNNCell(6, 4, nonlinearity="relu"),
}


class Steps(nn.Module):
    """A cell over the steps of a sequence."""

    def __init__(self, cell):
        super().__init__()
        self.cell, self.head = cell, nn.Linear(4, 2)

    def forward(self, x):
        state = None
        seen = []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            seen.append(state[0] if isinstance(state, tuple) else state)
        return self.head(torch.stack(seen, 1))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_cells(name, dtype):
    torch.manual_seed(0)
    model = Steps(CELLS[name]()).to(dtype)
    x = torch.randn(3, 5, 6, dtype=dtype, requires_grad=True)
    compiled = dyncomp.compile(model)
    expected = model(x)
    expected.pow(2).sum().backward()
    grads = [x.grad, *(p.grad for p in model.parameters())]
    x.grad = None
    model.zero_grad()
    found = compiled(x)
    found.pow(2).sum().backward()
    tight = {} if dtype is not torch.bfloat16 else {"rtol": 0.1, "atol": 0.05}
    torch.testing.assert_close(found, expected, **tight)
    for mine, their in zip([x.grad, *(p.grad for p in model.parameters())], grads):
        torch.testing.assert_close(mine, their, **tight)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x[:1, :2]), model(x[:1, :2]), **tight)


def test_steps_are_one_graph_where_they_are_short():
    torch.manual_seed(0)
    model = Steps(nn.LSTMCell(6, 4))
    with torch.no_grad():
        assert len(dyncomp.explain(model)(torch.randn(2, 20, 6)).graphs) == 1
        # 64 steps are too many operations, 100 too many steps
        for steps in (64, 100):
            x = torch.randn(2, steps, 6)
            report = dyncomp.explain(model)(x)
            assert {b.id for b in report.breaks} == {"loop"}
            torch.testing.assert_close(report.result, model(x))
