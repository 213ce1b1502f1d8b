"""Layers of torch_geometric and einops, wrappers of peft, metrics of torchmetrics."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn

from . import vision_operators  # noqa: F401  (before peft imports transformers, and that torchvision)
from .case import Case

Built = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


AGGREGATORS = ["mean", "max", "std"]


def edges(n: int = 8, m: int = 20) -> torch.Tensor:
    return torch.stack((torch.randint(0, n, (m,)), torch.arange(m) % n))


CONVOLUTIONS: dict[str, tuple[Any, ...]] = {
    "GCNConv": (5, 6), "SAGEConv": (5, 6), "GATConv": (5, 6, 2), "GATv2Conv": (5, 6, 2), "GraphConv": (5, 6),
    "ChebConv": (5, 6, 3), "TAGConv": (5, 6), "SGConv": (5, 6), "ARMAConv": (5, 6), "TransformerConv": (5, 6),
    "ResGatedGraphConv": (5, 6), "LEConv": (5, 6), "ClusterGCNConv": (5, 6), "FeaStConv": (5, 6),
    "GatedGraphConv": (6, 2), "MFConv": (5, 6), "SuperGATConv": (5, 6), "AGNNConv": (), "LGConv": (),
    "FiLMConv": (5, 6), "EGConv": (5, 8), "GeneralConv": (5, 6), "AntiSymmetricConv": (5,),
    "APPNP": (2, 0.1), "SSGConv": (5, 6, 0.1),
}  # fmt: skip


def convolution(name: str, args: tuple[Any, ...]) -> Callable[[], Built]:
    def build() -> Built:
        layers = importlib.import_module("torch_geometric.nn")
        return getattr(layers, name)(*args), (torch.randn(8, 5), edges()), {}

    return build


def geometric(make: Callable[[Any], nn.Module], *inputs: Callable[[], Any]) -> Callable[[], Built]:
    def build() -> Built:
        return make(importlib.import_module("torch_geometric.nn")), tuple(i() for i in inputs), {}

    return build


class Einops(nn.Module):
    """einops' functions, as in repositories of vision transformers."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.qkv = kind, nn.Linear(12, 36)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from einops import einsum, pack, rearrange, reduce, repeat, unpack

        if self.kind == "rearrange":
            x = rearrange(x, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=2, p2=2)
            q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=3) for t in self.qkv(x).chunk(3, dim=-1))
            return rearrange((q @ k.transpose(-1, -2)).softmax(-1) @ v, "b h n d -> b n (h d)")
        if self.kind == "reduce":
            y = reduce(x, "b c (h 2) (w 2) -> b c h w", "max") + reduce(x, "b c h w -> b c 1 1", "mean")
            return reduce(y, "b c h w -> b c", "sum")
        if self.kind == "repeat":
            return repeat(x, "b c h w -> b c (h 2) (w k)", k=3) + repeat(
                x[0, 0, 0, 0], "-> b 1 1 1", b=len(x)
            )
        if self.kind == "einsum":
            return einsum(x, x, "b c h w, b d h w -> b c d")
        packed, shapes = pack([x.flatten(2), x.mean((2, 3))], "b c *")
        first, second = unpack(packed * 2, shapes, "b c *")
        return first.sum(-1) + second


class EinopsLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        from einops.layers.torch import EinMix, Rearrange, Reduce

        self.net = nn.Sequential(
            Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2),
            EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=12, d=8),
            nn.GELU(),
            Reduce("b t d -> b d", "mean"),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.q, self.v = nn.Embedding(20, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.out = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.emb(x)
        return self.out(torch.tanh(self.q(h)) * self.v(h))


PEFT = ("LoraConfig", "LoHaConfig", "LoKrConfig", "IA3Config", "OFTConfig", "BOFTConfig", "VeraConfig",
        "AdaLoraConfig", "FourierFTConfig", "VBLoRAConfig", "HRAConfig", "DoRA", "RsLora")  # fmt: skip


def adapted(name: str) -> Callable[[], Built]:
    def build() -> Built:
        import peft

        targets = ["q", "v"]
        options: dict[str, Any] = {"target_modules": targets}
        if name in ("DoRA", "RsLora", "LoraConfig"):
            options |= {
                "r": 4,
                "lora_dropout": 0.1,
                "use_dora": name == "DoRA",
                "use_rslora": name == "RsLora",
            }
        elif name == "IA3Config":
            options["feedforward_modules"] = []
        elif name == "AdaLoraConfig":
            options["total_step"] = 10
        elif name == "OFTConfig":
            options["oft_block_size"] = 4
        elif name == "FourierFTConfig":
            options["n_frequency"] = 20
        elif name == "VBLoRAConfig":
            options |= {"num_vectors": 16, "vector_length": 4}
        config = getattr(peft, "LoraConfig" if name in ("DoRA", "RsLora") else name)(**options)
        return peft.get_peft_model(Small(), config), (torch.randint(0, 20, (2, 5)),), {}

    return build


METRICS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "multiclass_accuracy": lambda: (torch.randn(8, 3), torch.arange(8) % 3, 3),
    "multiclass_f1_score": lambda: (torch.randn(8, 3), torch.arange(8) % 3, 3),
    "multiclass_confusion_matrix": lambda: (torch.randn(8, 3), torch.arange(8) % 3, 3),
    "mean_squared_error": lambda: (torch.randn(8), torch.randn(8)),
    "r2_score": lambda: (torch.randn(8), torch.randn(8)),
    "pearson_corrcoef": lambda: (torch.randn(8), torch.randn(8)),
    "cosine_similarity": lambda: (torch.randn(4, 8), torch.randn(4, 8)),
    "structural_similarity_index_measure": lambda: (torch.rand(2, 3, 16, 16), torch.rand(2, 3, 16, 16)),
    "peak_signal_noise_ratio": lambda: (torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8), 1.0),
    "scale_invariant_signal_distortion_ratio": lambda: (torch.randn(2, 50), torch.randn(2, 50)),
}


class Metric(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        functional = importlib.import_module("torchmetrics.functional")
        for part in ("classification", "regression", "image", "audio"):
            inner = importlib.import_module(f"torchmetrics.functional.{part}")
            if hasattr(inner, name):
                functional = inner
        self.function = getattr(functional, name)

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def metric(name: str) -> Callable[[], Built]:
    return lambda: (Metric(name), METRICS[name](), {})


def cases() -> list[Case]:
    found = [Case(f"geometric.{name}", convolution(name, args)) for name, args in CONVOLUTIONS.items()]
    mlp = lambda n: nn.Sequential(nn.Linear(n, 8), nn.ReLU(), nn.Linear(8, 6))  # noqa: E731
    x, batch = (lambda: torch.randn(8, 5)), (lambda: torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))
    more = {
        "GINConv": geometric(lambda g: g.GINConv(mlp(5)), x, edges),
        "GINEConv": geometric(lambda g: g.GINEConv(mlp(5), edge_dim=3), x, edges, lambda: torch.randn(20, 3)),
        "EdgeConv": geometric(lambda g: g.EdgeConv(mlp(10)), x, edges),
        "NNConv": geometric(lambda g: g.NNConv(5, 6, nn.Linear(3, 30)), x, edges, lambda: torch.randn(20, 3)),
        "RGCNConv": geometric(lambda g: g.RGCNConv(5, 6, 3), x, edges, lambda: torch.arange(20) % 3),
        "PNAConv": geometric(
            lambda g: g.PNAConv(5, 6, AGGREGATORS, ["identity", "amplification"], torch.tensor([0, 4, 4])),
            x, edges),
        "GCN": geometric(lambda g: g.GCN(5, 8, 2, 3), x, edges),
        "GAT": geometric(lambda g: g.GAT(5, 8, 2, 3, dropout=0.2), x, edges),
        "global_mean_pool": geometric(lambda g: g.MeanAggregation(), x, batch),
        "SoftmaxAggregation": geometric(lambda g: g.SoftmaxAggregation(learn=True), x, batch),
        "GraphNorm": geometric(lambda g: g.GraphNorm(5), x, batch),
        "BatchNorm": geometric(lambda g: g.BatchNorm(5), x),
        "DenseGCNConv": geometric(lambda g: g.DenseGCNConv(5, 6), lambda: torch.randn(2, 4, 5),
            lambda: torch.ones(2, 4, 4)),
        "Set2Set": geometric(lambda g: g.Set2Set(5, 2), x, batch),
    }  # fmt: skip
    found += [Case(f"geometric.{name}", build) for name, build in more.items()]
    image = lambda: torch.randn(2, 3, 8, 8)  # noqa: E731
    for kind in ("rearrange", "reduce", "repeat", "einsum", "pack"):
        found.append(Case(f"einops.{kind}", lambda kind=kind: (Einops(kind), (image(),), {})))
    found.append(Case("einops.layers", lambda: (EinopsLayers(), (image(),), {})))
    found += [Case(f"peft.{name}", adapted(name)) for name in PEFT]
    return found + [Case(f"torchmetrics.{name}", metric(name)) for name in METRICS]
