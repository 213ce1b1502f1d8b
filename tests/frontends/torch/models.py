"""Small models written as people write them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 3)).eval()


class Block(nn.Module):
    """A pre-norm transformer block with attention by hand."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(0.1)

    def attend(self, x):
        batch, length, width = x.shape
        size = width // self.heads
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, size).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * size**-0.5
        future = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        return self.project((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.dropout(self.attend(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """A small decoder: token and position embeddings, blocks, head."""

    def __init__(self, words: int = 50, width: int = 16, heads: int = 2, layers: int = 2, length: int = 12):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.register_buffer("positions", torch.randn(length, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Gated(nn.Module):
    """Plain attributes, a list of modules by index, a dict of modules, keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 2.0
        self.parts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.named = nn.ModuleDict({"gate": nn.Linear(4, 4), "act": nn.SiLU()})
        self.shift = nn.Parameter(torch.randn(4))

    def forward(self, x, *, flip=False):
        a, b = self.parts[0](x), self.parts[1](x)
        if flip:
            a, b = b, a
        return self.named["act"](self.named["gate"](a)) * b * self.scale + self.shift


class Talkative(nn.Module):
    """Breaks the graph in the middle of ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2)
        self.calls: list[int] = []

    def forward(self, x):
        h = F.relu(self.first(x))
        self.calls.append(int(h.shape[0]))
        print("half-way", h.shape)
        return self.second(h)
