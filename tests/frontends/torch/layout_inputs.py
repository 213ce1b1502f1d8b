"""torch's side of the sweep over memory layouts: inputs, layouts and what is seen of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..layout_sweep import Sweep

EXPRESSIONS = [
    line
    for name in ("layout_expressions.txt", "layout_idioms.txt")
    for line in Path(__file__).with_name(name).read_text().splitlines()
    if line and not line.startswith("#")
]


def make() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    x, y = torch.rand(2, 4, 6, 6) + 0.1, torch.rand(2, 4, 6, 6) + 0.1
    return {
        "x": x,
        "y": y,
        "m": torch.rand(2, 4, 6, 6) > 0.5,
        "q": torch.eye(6) * 7 + torch.rand(6, 6),
        "r": torch.rand(6, 6) + 0.1,
        "k": torch.randint(0, 4, (2, 4, 6, 6)),
        "i": torch.tensor([1, 0, 1]),
        "j": torch.randint(0, 4, (6, 6)),
        "v": torch.rand(6) + 0.1,
        "n": torch.rand(2, 6, 6) + 0.1,
        "w": torch.rand(4, 4, 3, 3),
        "z": torch.complex(torch.rand(2, 4, 6, 6), torch.rand(2, 4, 6, 6)),
        "b": torch.rand(4) + 0.1,
    }


def in_order(t: torch.Tensor, order: list[int]) -> torch.Tensor:
    """``t`` with its axes in this order in memory."""
    back = [order.index(axis) for axis in range(t.ndim)]
    return t.permute(order).contiguous().permute(back)


def swapped(t: torch.Tensor, a: int, b: int) -> torch.Tensor:
    order = list(range(t.ndim))
    if t.ndim > max(a, b):
        order[a], order[b] = order[b], order[a]
    return in_order(t, order)


def window(t: torch.Tensor, axis: int, start: int, step: int) -> torch.Tensor:
    shape = list(t.shape)
    shape[axis] = start + step * shape[axis]
    whole = torch.zeros(shape, dtype=t.dtype)
    part = whole[(slice(None),) * axis + (slice(start, None, step),)]
    part.copy_(t)
    return part


LAYOUTS: dict[str, Any] = {
    "contiguous": lambda t: t,
    "channels_last": lambda t: in_order(
        t, [0, *range(2, t.ndim), 1] if t.ndim > 2 else [*range(t.ndim)][::-1]
    ),
    "permuted": lambda t: in_order(t, [*range(1, t.ndim), 0]),
    "expanded": lambda t: t[:1].contiguous().expand_as(t),
    "transposed": lambda t: swapped(t, t.ndim - 1, max(t.ndim - 2, 0)),
    "heads": lambda t: swapped(t, 1, 2),
    "sliced": lambda t: window(t, t.ndim - 1, 0, 2),
    "rows": lambda t: window(t, 0, 0, 2),
    "offset": lambda t: window(t, t.ndim - 1, 3, 1)[..., : t.shape[-1]],
    "one": lambda t: t[:1] if t.ndim < 4 else t[:, :1],
    "none": lambda t: t[:0] if t.ndim < 4 else t[:, :, :0],
}


def facts(t: torch.Tensor) -> Any:
    strides = tuple(s for s, d in zip(t.stride(), t.shape) if d != 1) if t.numel() else ()
    return t.dtype, tuple(t.shape), strides, t.is_conj(), t.requires_grad


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    if not a.numel():
        return True
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        return torch.equal(a, b)
    scale = float(torch.nan_to_num(a.detach().abs().double(), 0, 0, 0).max())
    eps = 100 * torch.finfo(a.dtype).eps if a.element_size() > 2 else 4 * torch.finfo(a.dtype).eps
    return torch.allclose(a, b, rtol=eps, atol=eps * max(scale, 1e-3), equal_nan=True)


def memory(t: torch.Tensor) -> tuple[int, int, int]:
    """The first and the last address, and that of the first element."""
    steps = [s * (d - 1) for s, d in zip(t.stride(), t.shape)] if t.numel() else [0]
    start = t.data_ptr()
    return start, start + (sum(steps) + 1) * t.element_size(), start


def sweep(**settings: Any) -> Sweep:
    names = {"torch": torch, "F": torch.nn.functional}
    return Sweep(names, make, LAYOUTS, (torch.Tensor,), facts, memory, close, "{}.fill_(1)", **settings)
