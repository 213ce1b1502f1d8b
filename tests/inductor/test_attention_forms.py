"""Attention as models write it: masks, biases and grouped heads are one chain, whatever the dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyncomp

torch = pytest.importorskip("torch")
BATCH, HEADS, ROWS, COLUMNS, WIDTH = 2, 8, 40, 56, 32


def attend(q, k, v, mask):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def added(q, k, v, mask):
    """As transformers' eager attention: the lowest number for what is hidden, softmax in float32."""
    scores = torch.matmul(q, k.transpose(2, 3)) * 0.125 + mask
    weights = torch.nn.functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(weights, v).transpose(1, 2).contiguous()


def filled(q, k, v, mask):
    scores = (q @ k.transpose(-1, -2) / 8).masked_fill(mask, float("-inf"))
    return torch.softmax(scores, -1) @ v


def biased(q, k, v, bias):
    return torch.softmax((q @ k.transpose(-1, -2) + bias).float(), -1) @ v


def sloped(q, k, v, slopes):
    """ALiBi (Press et al., 2022)."""
    ahead = torch.arange(k.shape[-2])[None, :] - torch.arange(q.shape[-2])[:, None]
    scores = q @ k.transpose(-1, -2) * 0.125 + slopes[:, None, None] * ahead
    return torch.softmax(scores.masked_fill(ahead > 0, float("-inf")), -1) @ v


def grouped(q, k, v):
    k, v = (x[:, :, None].expand(-1, -1, 4, -1, -1).reshape(BATCH, HEADS, COLUMNS, WIDTH) for x in (k, v))
    return torch.softmax(q @ k.transpose(2, 3) * 0.125, -1) @ v


def tensors(heads: int = HEADS) -> tuple[Any, ...]:
    torch.manual_seed(0)
    sizes = ((HEADS, ROWS), (heads, COLUMNS), (heads, COLUMNS))
    return tuple(torch.randn(BATCH, *size, WIDTH) for size in sizes)


def hidden() -> Any:
    return torch.triu(torch.ones(ROWS, COLUMNS, dtype=torch.bool), 1)


FORMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (attend, (*tensors(), torch.rand(BATCH, 1, ROWS, COLUMNS) > 0.3)),
    (attend, (*tensors(), torch.randn(1, 1, ROWS, COLUMNS))),
    (added, (*tensors(), torch.zeros(1, 1, ROWS, COLUMNS).masked_fill(hidden(), -3e38))),
    (added, tuple(x.half() for x in (*tensors(), torch.randn(BATCH, 1, ROWS, COLUMNS)))),
    (filled, (*tensors(), hidden())),
    (biased, (*tensors(), torch.randn(1, HEADS, ROWS, COLUMNS))),
    (sloped, (*tensors(), torch.rand(HEADS))),
    (grouped, tensors(2)),
]


@pytest.mark.parametrize(("program", "arguments"), FORMS)
def test_one_chain(artifacts: list, program: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with torch.no_grad():
        want, got = program(*arguments), dyncomp.compile(program)(*arguments)
    tolerance = 1e-5 if want.dtype == torch.float32 else 3e-2
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    (artifact,) = artifacts
    assert "rows between them by" in artifact.describe()
    # weights that are rounded to half precision are no softmax in float32
    assert (".softmax = " in artifact.source) == (want.dtype == torch.float32)
