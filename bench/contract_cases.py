"""What ``bench.contract`` measures: contractions as NumPy programs, as torch programs, or as both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A contraction. ``arguments`` makes NumPy arrays; dyncomp compiles ``numpy``, or else ``torch``."""

    name: str
    flops: float
    arguments: Callable[[], tuple[np.ndarray, ...]]
    numpy: Callable[..., Any] | None
    torch: Callable[..., Any] | None
    dtype: str = "float32"  # "bfloat16", "float16": that of the tensors (the arrays are float32)


def _random(*shapes: tuple[int, ...], dtype: str = "float32") -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


# -- products ---------------------------------------------------------------------------------
def product(a, b):
    return a @ b


def left_turned(a, b):
    return a.T @ b


def right_turned(a, b):
    return a @ b.T


def gram(a):
    return a @ a.T


def _product(m: int, n: int, k: int, dtype: str = "float32", batch: int = 0) -> Case:
    lead = (batch,) if batch else ()
    name = f"{f'{batch} x ' if batch else ''}{m}x{n}x{k}" + (" float64" if dtype == "float64" else "")
    shapes = ((*lead, m, k), (*lead, k, n))
    flops = 2.0 * m * n * k * max(batch, 1)
    return Case(name, flops, lambda: _random(*shapes, dtype=dtype), product, product)


def _half(m: int, n: int, k: int, dtype: str = "bfloat16") -> Case:
    """A linear layer with weights as modules have them."""
    shapes = ((m, k), (n, k))
    return Case(
        f"linear {m}x{n}x{k} {dtype}", 2.0 * m * n * k, lambda: _random(*shapes), None, right_turned, dtype
    )


def _vector(rows: int, cols: int, left: bool, dtype: str = "float32") -> Case:
    kind = " float64" if dtype == "float64" else ""
    name = f"vector {rows} @ matrix {cols}{kind}" if left else f"matrix {rows} @ vector {cols}{kind}"
    shapes = ((rows,), (rows, cols)) if left else ((rows, cols), (cols,))
    return Case(name, 2.0 * rows * cols, lambda: _random(*shapes, dtype=dtype), product, product)


def _turned(n: int, m: int, left: bool) -> Case:
    function = left_turned if left else right_turned
    shapes = ((n, m), (n, n)) if left else ((m, n), (n, n))
    name = f"{m}x{n}x{n} {'left' if left else 'right'} transposed"
    return Case(name, 2.0 * m * n * n, lambda: _random(*shapes), function, function)


# -- linear and gelu --------------------------------------------------------------------------
def linear_gelu_numpy(x, w, b):
    y = x @ w + b
    return 0.5 * y * (1.0 + np.tanh(0.7978845608028654 * (y + 0.044715 * y * y * y)))


def linear_gelu_torch(x, w, b):
    import torch

    return torch.nn.functional.gelu(x @ w + b, approximate="tanh")


def _linear_gelu(m: int, n: int, k: int) -> Case:
    shapes = ((m, k), (k, n), (n,))
    return Case(
        f"linear+gelu {m}x{n}x{k}",
        2.0 * m * n * k,
        lambda: _random(*shapes),
        linear_gelu_numpy,
        linear_gelu_torch,
    )


# -- convolutions -----------------------------------------------------------------------------
def _innermost(x: np.ndarray) -> np.ndarray:
    """With its channels innermost in memory."""
    return np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)


def _convolution(
    name: str,
    channels: tuple[int, int],
    size: int,
    kernel: int,
    stride: int,
    groups: int = 1,
    last: bool = False,
    dtype: str = "float32",
) -> Case:
    """A 2-d convolution of one image with "same" padding, then a bias and relu; channels last if asked."""
    came, went = channels
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1

    def run(x, w, b):
        import torch

        y = torch.nn.functional.conv2d(x, w, b, stride=stride, padding=pad, groups=groups)
        return torch.relu(y)

    def arguments() -> tuple[np.ndarray, ...]:
        x, w, b = _random(*shapes)
        return (_innermost(x), _innermost(w), b) if last else (x, w, b)

    shapes = ((1, came, size, size), (went, came // groups, kernel, kernel), (went,))
    flops = 2.0 * out * out * went * came // groups * kernel * kernel
    name = f"conv {name}" + (f" {dtype}" if dtype != "float32" else "")
    return Case(name, flops, arguments, None, run, dtype)


# -- attention --------------------------------------------------------------------------------
def attention_numpy(q, k, v):
    s = q @ k.swapaxes(-1, -2) * 0.125
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True) @ v


def attention_torch(q, k, v):
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def causal_torch(q, k, v):
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def backward_numpy(q, k, v, do):
    """Gradients of ``attention_numpy``; its weights are computed again."""
    s = q @ k.swapaxes(-1, -2) * 0.125
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    p = e / np.sum(e, axis=-1, keepdims=True)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - np.sum(dp * p, axis=-1, keepdims=True))
    return ds @ k * 0.125, ds.swapaxes(-1, -2) @ q * 0.125, p.swapaxes(-1, -2) @ do


def backward_torch(q, k, v, do):
    """Forward, too: torch's backward needs what that keeps."""
    import torch

    with torch.enable_grad():
        inputs = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(attention_torch(*inputs), inputs, do)


def _attention(
    name: str,
    numpy: Callable[..., Any] | None,
    torch: Callable[..., Any],
    length: int = 512,
    queries: int = 0,
) -> Case:
    heads, width, queries = 12, 64, queries or length
    shapes = ((1, heads, queries, width), (1, heads, length, width), (1, heads, length, width))
    return Case(name, 4.0 * heads * queries * length * width, lambda: _random(*shapes), numpy, torch)


def _attention_backward() -> Case:
    heads, length, width = 12, 512, 64
    shapes = ((1, heads, length, width),) * 4
    flops = 10.0 * heads * length * length * width
    return Case("attention, backward", flops, lambda: _random(*shapes), backward_numpy, backward_torch)


CASES: tuple[Case, ...] = (
    *(_product(n, n, n) for n in (32, 64, 128, 256, 512, 1024, 2048)),
    *(_product(n, n, n, "float64") for n in (64, 256, 512, 1024)),
    _product(128, 3072, 768),
    _product(128, 768, 3072),
    _product(8, 3072, 768),
    _product(8, 768, 3072),
    _product(1, 3072, 768),
    _product(20, 20, 1000, "float64"),
    _product(20, 1000, 20, "float64"),
    _product(4096, 16, 16),
    _product(16, 16, 4096),
    _product(2048, 2048, 8),
    _vector(1024, 1024, False),
    _vector(2048, 4096, False),
    _vector(2048, 4096, True),
    _vector(1000, 1000, False, "float64"),
    _vector(1000, 1000, True, "float64"),
    _turned(512, 512, True),
    _turned(512, 512, False),
    _turned(768, 8, False),
    Case("512x512x512, itself transposed", 2.0 * 512**3, lambda: _random((512, 512)), gram, gram),
    _product(512, 512, 64, batch=12),
    _product(512, 64, 512, batch=12),
    _product(32, 32, 32, batch=64),
    _product(4, 4, 4, batch=10000),
    _linear_gelu(128, 3072, 768),
    _linear_gelu(8, 3072, 768),
    _linear_gelu(1, 3072, 768),
    _linear_gelu(1024, 1024, 1024),
    *(_half(n, n, n) for n in (64, 256, 512, 1024)),
    *(_half(m, 3072, 768) for m in (128, 8, 1)),
    _half(128, 768, 3072),
    *(_half(m, 3072, 768, "float16") for m in (128, 8, 1)),
    _convolution("7x7/2 3-64 at 224", (3, 64), 224, 7, 2),
    _convolution("3x3 64-64 at 56", (64, 64), 56, 3, 1),
    _convolution("3x3/2 64-128 at 56", (64, 128), 56, 3, 2),
    _convolution("1x1/2 64-128 at 56", (64, 128), 56, 1, 2),
    _convolution("3x3 128-128 at 28", (128, 128), 28, 3, 1),
    _convolution("3x3/2 128-256 at 28", (128, 256), 28, 3, 2),
    _convolution("3x3 256-256 at 14", (256, 256), 14, 3, 1),
    _convolution("3x3/2 256-512 at 14", (256, 512), 14, 3, 2),
    _convolution("3x3 512-512 at 7", (512, 512), 7, 3, 1),
    _convolution("1x1 256-256 at 56", (256, 256), 56, 1, 1),
    _convolution("depthwise 3x3 144 at 56", (144, 144), 56, 3, 1, groups=144),
    _convolution("depthwise 3x3/2 144 at 56", (144, 144), 56, 3, 2, groups=144),
    _convolution("depthwise 5x5 672 at 14", (672, 672), 14, 5, 1, groups=672),
    _convolution("depthwise 7x7 96 at 56", (96, 96), 56, 7, 1, groups=96),
    _convolution("channels last 7x7/2 3-64 at 224", (3, 64), 224, 7, 2, last=True),
    _convolution("channels last 3x3 64-64 at 56", (64, 64), 56, 3, 1, last=True),
    _convolution("channels last 3x3 128-128 at 28", (128, 128), 28, 3, 1, last=True),
    _convolution("channels last 3x3 512-512 at 7", (512, 512), 7, 3, 1, last=True),
    _convolution("channels last 1x1 64-256 at 56", (64, 256), 56, 1, 1, last=True),
    _convolution("channels last depthwise 3x3 144 at 56", (144, 144), 56, 3, 1, groups=144, last=True),
    *(
        _convolution(f"{'channels last ' if last else ''}{name}", *sizes, last=last, dtype="bfloat16")
        for last in (False, True)
        for name, sizes in (
            ("7x7/2 3-64 at 224", ((3, 64), 224, 7, 2)),
            ("3x3 64-64 at 56", ((64, 64), 56, 3, 1)),
            ("1x1/2 64-128 at 56", ((64, 128), 56, 1, 2)),
            ("3x3/2 128-256 at 28", ((128, 256), 28, 3, 2)),
            ("3x3 512-512 at 7", ((512, 512), 7, 3, 1)),
        )
    ),
    _attention("attention, NumPy's form", attention_numpy, attention_torch),
    _attention("attention", None, attention_torch),
    _attention("attention, causal", None, causal_torch),
    _attention("attention of 128", None, attention_torch, 128),
    _attention("attention of 2048", None, attention_torch, 2048),
    _attention("attention, causal of 2048", None, causal_torch, 2048),
    _attention("attention, one query of 2048", None, attention_torch, 2048, 1),
    _attention_backward(),
)
