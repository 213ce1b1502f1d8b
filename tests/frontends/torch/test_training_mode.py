"""Layers of ``nn`` as they are trained: one graph, eager's random numbers, results, gradients and buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

import dyncomp  # noqa: E402
from tests.models.case import Case  # noqa: E402
from tests.models.check import check  # noqa: E402

PADDED = torch.tensor([[False, False, False, True, True], [False] * 5])  # on the right
HOLED = torch.tensor([[False, True, False, True, True], [False] * 5])
CAUSAL = nn.Transformer.generate_square_subsequent_mask(5)


class Turned(nn.Module):
    """A layer of what is not in C order."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.linear, self.layer = nn.Linear(6, 6), layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.layer(self.linear(x).transpose(1, 2))
        return made


class Attention(nn.Module):
    def __init__(self, need_weights: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, dropout=0.2, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x: torch.Tensor) -> Any:
        return self.attention(x, x, x, need_weights=self.need_weights)


def _encoder(**settings: Any) -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **settings)
    return nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(16))


def _bag(**settings: Any) -> nn.Module:
    return nn.EmbeddingBag(20, 4, **settings)


def sequence() -> torch.Tensor:
    return torch.randn(2, 5, 16)


def image() -> torch.Tensor:
    return torch.randn(2, 3, 4, 6)


def numbers() -> torch.Tensor:
    return torch.randint(0, 20, (10,))


Made = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]
LAYERS: dict[str, Callable[[], Made]] = {
    "dropout": lambda: (nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3)), (image(),), {}),
    "dropout in place": lambda: (
        nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3, inplace=True)),
        (image(),),
        {},
    ),
    "dropout of everything": lambda: (nn.Sequential(nn.Linear(6, 6), nn.Dropout(1.0)), (image(),), {}),
    "dropout turned": lambda: (Turned(nn.Dropout(0.3)), (torch.randn(2, 5, 6),), {}),
    "dropout of channels": lambda: (nn.Sequential(nn.Linear(6, 6), nn.Dropout2d(0.5)), (image(),), {}),
    "dropout of rows": lambda: (Turned(nn.Dropout1d(0.5)), (torch.randn(2, 5, 6),), {}),
    "alpha dropout": lambda: (Turned(nn.AlphaDropout(0.3)), (torch.randn(2, 5, 6),), {}),
    "alpha dropout of channels": lambda: (
        nn.Sequential(nn.Linear(6, 6), nn.FeatureAlphaDropout(0.5)),
        (image(),),
        {},
    ),
    "attention": lambda: (Attention(False), (sequence(),), {}),
    "attention with weights": lambda: (Attention(True), (sequence(),), {}),
    "encoder": lambda: (_encoder(), (sequence(),), {}),
    "encoder with a mask": lambda: (_encoder(norm_first=True), (sequence(), CAUSAL), {}),
    "encoder, padded": lambda: (_encoder(), (sequence(),), {"src_key_padding_mask": PADDED}),
    "encoder, padded in between": lambda: (_encoder(), (sequence(),), {"src_key_padding_mask": HOLED}),
    "transformer": lambda: (
        nn.Transformer(16, 4, 1, 1, 32, batch_first=True),
        (sequence(), sequence()),
        {"tgt_mask": CAUSAL, "tgt_is_causal": True},
    ),
    "transformer with masks": lambda: (
        nn.Transformer(16, 4, 1, 2, 32, batch_first=True),
        (sequence(), sequence()),
        {"tgt_mask": CAUSAL, "memory_key_padding_mask": PADDED},
    ),
    "lstm with dropout": lambda: (
        nn.LSTM(16, 4, 3, dropout=0.3, bidirectional=True, batch_first=True),
        (sequence(),),
        {},
    ),
    "lstm with dropout and states": lambda: (
        nn.LSTM(16, 4, 2, dropout=0.3),
        (sequence(), (torch.randn(2, 5, 4), torch.randn(2, 5, 4))),
        {},
    ),
    "gru with dropout": lambda: (nn.GRU(16, 4, 2, dropout=0.3), (sequence(),), {}),
    "rnn with dropout": lambda: (nn.RNN(16, 4, 2, dropout=0.3, batch_first=True), (sequence(),), {}),
    "batch norm with an average": lambda: (nn.BatchNorm1d(5, momentum=None), (sequence(),), {}),
    "bags": lambda: (_bag(), (numbers().reshape(2, 5),), {}),
    "bags by offsets": lambda: (_bag(mode="sum"), (numbers(), torch.tensor([0, 3, 3, 7])), {}),
    "bags, the largest": lambda: (_bag(mode="max", padding_idx=3), (numbers().reshape(2, 5),), {}),
    "bags with weights": lambda: (
        _bag(mode="sum", include_last_offset=True),
        (numbers(), torch.tensor([0, 3, 10])),
        {"per_sample_weights": torch.rand(10)},
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    verdict = check(Case(name, LAYERS[name]))
    assert not verdict.wrong and not verdict.skipped, verdict
    assert verdict.trains_in_one_graph and verdict.graphs == 1, verdict


@pytest.mark.parametrize("mask", [PADDED, HOLED], ids=["on the right", "in between"])
def test_padding_of_an_encoder(mask: torch.Tensor) -> None:
    """The library gives zeros for it where it is all on the right, and else what it computes."""
    torch.manual_seed(0)
    encoder, x = _encoder().eval(), sequence()
    fast = dyncomp.compile(encoder, fullgraph=True)
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=mask)
        torch.testing.assert_close(fast(x, src_key_padding_mask=mask), expected)
    encoder.norm = None
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=mask)
        torch.testing.assert_close(fast(x, src_key_padding_mask=mask), expected)
    assert bool((expected[mask] == 0).all()) is (mask is PADDED)


ORDERS = {
    "turned": lambda: torch.ones(5, 30).T,
    "channels last": lambda: torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "permuted": lambda: torch.ones(4, 3, 2).permute(2, 0, 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("order", ORDERS)
def test_orders_in_memory(order: str, dtype: torch.dtype) -> None:
    """In which order numbers are drawn depends on strides."""

    def program(x):
        y = x.clone()
        y.normal_(1.0, 2.0)
        return (
            torch.rand_like(x),
            torch.randn_like(x) + 1,
            F.dropout(x, 0.3),
            F.alpha_dropout(x, 0.4, True),
            y.clone().bernoulli_(0.25) + y,
            torch.rand(2),
        )

    x = ORDERS[order]().to(dtype)
    found = []
    for function in (program, dyncomp.compile(program, fullgraph=True)):
        torch.manual_seed(4)
        found.append(function(x))
    for theirs, mine in zip(*found, strict=True):
        assert mine.dtype == theirs.dtype and mine.stride() == theirs.stride()
        close = 0.02 if dtype is torch.bfloat16 else 1e-6
        torch.testing.assert_close(mine, theirs, rtol=close, atol=close)
