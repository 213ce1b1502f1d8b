"""What ``bench.gpu`` measures: programs on CUDA tensors, with the bytes or operations that they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Make = Callable[[], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """``function(*make())``; ``bytes`` and ``flops`` that it takes at least. ``tuned``: the mode that it is
    measured with, too, if any. ``tolerance``: of the results, relative to the largest."""

    name: str
    function: Callable[..., Any]
    make: Make
    bytes: float = 0.0
    flops: float = 0.0
    tuned: str = ""
    tolerance: float = 1e-4


def _random(*shape: int, dtype: Any = torch.float32, seed: int = 0) -> Any:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, generator=generator, device="cuda", dtype=torch.float32).to(dtype)


def _places(count: int, below: int) -> Any:
    generator = torch.Generator("cuda").manual_seed(0)
    return torch.randint(0, below, (count,), generator=generator, device="cuda")


def chain(x: Any, y: Any) -> Any:
    return F.gelu(x * 1.5 + y) * torch.sigmoid(y) - x.clamp(-1, 1)


def softmax(x: Any) -> Any:
    return torch.softmax(x, -1)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def rms_silu(x: Any, w: Any, g: Any) -> Any:
    scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    return x * scale * w * F.silu(g)


def total(x: Any) -> Any:
    return (x * x).sum()


def columns(x: Any) -> Any:
    return x.sum(0)


def turned(x: Any, y: Any) -> Any:
    return x.t() + y


def running(x: Any) -> Any:
    return torch.cumsum(x, 1)


def rows_of(table: Any, index: Any) -> Any:
    return table[index] * 2


def log_likelihood(x: Any, target: Any) -> Any:
    picked = torch.gather(x, 1, target[:, None])[:, 0]
    return (torch.logsumexp(x, 1) - picked).mean()


def product(x: Any, w: Any) -> Any:
    return x @ w


def linear_gelu(x: Any, w: Any, b: Any) -> Any:
    return F.gelu(x @ w + b)


def attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


def causal(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_backward(q: Any, k: Any, v: Any, do: Any) -> Any:
    """By hand: gradients of attention, whose weights are computed again."""
    p = torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1)
    dp = do @ v.transpose(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * 0.125
    return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do


def convolution(x: Any, w: Any, y: Any) -> Any:
    return F.relu(F.conv2d(x, w, padding=1) + y)


def one(x: Any) -> Any:
    return x + 1


def many(x: Any) -> Any:
    for _ in range(4):
        x = torch.tanh(x) * 1.1 + 0.1
        x = x - x.mean(-1, keepdim=True)
    return x


N = 1 << 26
ROWS, WIDTH = 16384, 4096
BF16 = torch.bfloat16

CASES: tuple[Case, ...] = (
    Case("one element + 1", one, lambda: (_random(1),)),
    Case("four normalised steps, 64 x 256", many, lambda: (_random(64, 256),), tuned="reduce-overhead"),
    Case("gelu chain, 64M float32", chain, lambda: (_random(N), _random(N, seed=1)), 12.0 * N),
    Case(
        "gelu chain, 64M bfloat16",
        chain,
        lambda: (_random(N, dtype=BF16), _random(N, dtype=BF16, seed=1)),
        6.0 * N,
        tolerance=3e-2,
    ),
    Case("softmax, float32", softmax, lambda: (_random(ROWS, WIDTH),), 8.0 * ROWS * WIDTH),
    Case(
        "softmax, bfloat16",
        softmax,
        lambda: (_random(ROWS, WIDTH, dtype=BF16),),
        4.0 * ROWS * WIDTH,
        tolerance=3e-2,
    ),
    Case("softmax of 50,000", softmax, lambda: (_random(2048, 50_000),), 8.0 * 2048 * 50_000),
    Case(
        "layer norm, float32",
        layer_norm,
        lambda: (_random(ROWS, WIDTH), _random(WIDTH, seed=1), _random(WIDTH, seed=2)),
        8.0 * ROWS * WIDTH,
    ),
    Case(
        "RMS norm and SiLU gate, bfloat16",
        rms_silu,
        lambda: (
            _random(ROWS, WIDTH, dtype=BF16),
            _random(WIDTH, dtype=BF16, seed=1),
            _random(ROWS, WIDTH, dtype=BF16, seed=2),
        ),
        6.0 * ROWS * WIDTH,
        tolerance=5e-2,
    ),
    Case("sum of squares, 64M", total, lambda: (_random(N),), 4.0 * N),
    Case("column sums", columns, lambda: (_random(ROWS, WIDTH),), 4.0 * ROWS * WIDTH, tolerance=1e-3),
    Case(
        "transpose and add",
        turned,
        lambda: (_random(8192, 8192), _random(8192, 8192, seed=1)),
        12.0 * 8192**2,
    ),
    Case(
        "cumulative sums",
        running,
        lambda: (_random(ROWS, WIDTH),),
        8.0 * ROWS * WIDTH,
        tolerance=1e-3,
    ),
    Case(
        "rows of a table",
        rows_of,
        lambda: (_random(50_000, 1024), _places(32_768, 50_000)),
        8.0 * 32_768 * 1024,
    ),
    Case(
        "cross entropy, 8192 x 32,000",
        log_likelihood,
        lambda: (_random(8192, 32_000), _places(8192, 32_000)),
        4.0 * 8192 * 32_000,
    ),
    Case(
        "product 4096, bfloat16",
        product,
        lambda: (_random(4096, 4096, dtype=BF16), _random(4096, 4096, dtype=BF16, seed=1)),
        flops=2.0 * 4096**3,
        tuned="max-autotune",
        tolerance=2e-2,
    ),
    Case(
        "product 8192, bfloat16",
        product,
        lambda: (_random(8192, 8192, dtype=BF16), _random(8192, 8192, dtype=BF16, seed=1)),
        flops=2.0 * 8192**3,
        tolerance=2e-2,
    ),
    Case(
        "linear and gelu 4096, bfloat16",
        linear_gelu,
        lambda: (
            _random(4096, 4096, dtype=BF16),
            _random(4096, 4096, dtype=BF16, seed=1),
            _random(4096, dtype=BF16, seed=2),
        ),
        flops=2.0 * 4096**3,
        tuned="max-autotune",
        tolerance=2e-2,
    ),
    Case(
        "attention 8 x 16 x 2048 x 64, bfloat16",
        attention,
        lambda: tuple(_random(8, 16, 2048, 64, dtype=BF16, seed=k) for k in range(3)),
        flops=4.0 * 8 * 16 * 2048 * 2048 * 64,
        tuned="max-autotune",
        tolerance=3e-2,
    ),
    Case(
        "causal attention 4 x 16 x 4096 x 128, bfloat16",
        causal,
        lambda: tuple(_random(4, 16, 4096, 128, dtype=BF16, seed=k) for k in range(3)),
        flops=2.0 * 4 * 16 * 4096 * 4096 * 128,
        tuned="max-autotune",
        tolerance=3e-2,
    ),
    Case(
        "attention by hand, backward, 4 x 16 x 2048 x 64, bfloat16",
        attention_backward,
        lambda: tuple(_random(4, 16, 2048, 64, dtype=BF16, seed=k) for k in range(4)),
        flops=10.0 * 4 * 16 * 2048 * 2048 * 64,
        tuned="max-autotune",
        tolerance=3e-2,
    ),
    Case(
        "linear and gelu 8192 x 512 x 2048, bfloat16",
        linear_gelu,
        lambda: (
            _random(8192, 512, dtype=BF16),
            _random(512, 2048, dtype=BF16, seed=1),
            _random(2048, dtype=BF16, seed=2),
        ),
        flops=2.0 * 8192 * 512 * 2048,
        tuned="max-autotune",
        tolerance=2e-2,
    ),
    Case(
        "3x3 convolution of 256 channels, 64 x 28 x 28, bfloat16",
        convolution,
        lambda: (
            _random(64, 256, 28, 28, dtype=BF16).to(memory_format=torch.channels_last),
            _random(256, 256, 3, 3, dtype=BF16, seed=1).to(memory_format=torch.channels_last),
            _random(64, 256, 28, 28, dtype=BF16, seed=2).to(memory_format=torch.channels_last),
        ),
        flops=2.0 * 64 * 28 * 28 * 256 * 256 * 9,
        tuned="max-autotune",
        tolerance=2e-2,
    ),
)
