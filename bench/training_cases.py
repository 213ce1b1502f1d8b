"""Modules that ``bench.training`` trains, each with its loss and inputs. Making one imports torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = tuple[Any, Callable[..., Any], tuple[Any, ...]]


def _cross_entropy(module: Any, x: Any, targets: Any) -> Any:
    from torch.nn import functional

    scores = module(x)
    return functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), targets.reshape(-1))


def mlp() -> Case:
    import torch
    from torch import nn

    hidden = [nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)]
    return nn.Sequential(*hidden), _cross_entropy, (torch.randn(64, 256), torch.randint(0, 10, (64,)))


def _blocks(width: int, heads: int, layers: int, causal: bool) -> Any:
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            q, k, v = self.qkv(self.first(x)).view(b, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            return x + self.down(functional.gelu(self.up(self.second(x))))

    return nn.Sequential(*[Block() for _ in range(layers)])


def gpt2() -> Case:
    """Four layers of GPT-2's form."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(512, 128), nn.Embedding(64, 128)
            self.blocks, self.norm = _blocks(128, 4, 4, True), nn.LayerNorm(128)

        def forward(self, tokens: Any) -> Any:
            x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
            return self.norm(self.blocks(x)) @ self.words.weight.t()

    return Model(), _cross_entropy, (torch.randint(0, 512, (2, 64)), torch.randint(0, 512, (2, 64)))


def vit() -> Case:
    """Patches of an image through four layers."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 192, 8, stride=8)
            self.places = nn.Parameter(torch.randn(1, 64, 192) * 0.02)
            self.blocks, self.head = _blocks(192, 3, 4, False), nn.Linear(192, 10)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2) + self.places
            return self.head(self.blocks(x).mean(1))

    return Model(), _cross_entropy, (torch.randn(2, 3, 64, 64), torch.randint(0, 10, (2,)))


def bert() -> Case:
    """Four layers of transformers' BERT, as a classifier, with a mask."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    dropped = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    module = BertForSequenceClassification(BertConfig(vocab_size=1000, **sizes, **dropped))
    mask = torch.ones(4, 64, dtype=torch.long)
    mask[1, 40:] = 0

    def loss(module: Any, tokens: Any, mask: Any, labels: Any) -> Any:
        return module(input_ids=tokens, attention_mask=mask, labels=labels).loss

    return module, loss, (torch.randint(0, 1000, (4, 64)), mask, torch.randint(0, 2, (4,)))


def resnet() -> Case:
    """ResNet-18's form with a quarter of its channels."""
    return _resnet(16, 64, 4)


def resnet18() -> Case:
    return _resnet(64, 128, 4)


def _resnet(width: int, size: int, batch: int) -> Case:
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.norm, self.again, self.relu = nn.BatchNorm2d(after), nn.BatchNorm2d(after), nn.ReLU(True)
            shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
            self.shortcut = shortcut if stride > 1 or before != after else nn.Identity()

        def forward(self, x: Any) -> Any:
            y = self.again(self.second(self.relu(self.norm(self.first(x)))))
            y += self.shortcut(x)
            return self.relu(y)

    first = nn.Conv2d(3, width, 7, 2, 3, bias=False)
    layers = [first, nn.BatchNorm2d(width), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    for after, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        layers += [Residual(width, after, stride), Residual(after, after, 1)]
        width = after
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))
    return model, _cross_entropy, (torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)))


def lstm() -> Case:
    """Twenty steps of an LSTM cell."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.LSTMCell(32, 64), nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            h = c = x.new_zeros(x.shape[0], 64)
            for t in range(x.shape[1]):
                h, c = self.cell(x[:, t], (h, c))
            return self.head(h)

    return Model(), _cross_entropy, (torch.randn(16, 20, 32), torch.randint(0, 10, (16,)))


CASES: dict[str, Callable[[], Case]] = {f.__name__: f for f in (mlp, gpt2, bert, vit, resnet, resnet18, lstm)}
