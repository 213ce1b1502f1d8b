"""Templates for sizes that are known at the call only, on a pretended GPU.

Run by ``test_gpu_sizes`` in a process of its own; on a GPU by ``tests/gpu/test_sizes.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.inductor.gpu import rows, templates  # noqa: E402
from tests.inductor.gpu_simulator import InterpretedDriver, pretended, r  # noqa: E402, F401

F = torch.nn.functional
HALF = torch.float16


def attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


def causal(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def projected(q: Any, k: Any, v: Any) -> Any:
    """Heads side by side in memory."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) * 2


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def backward(q: Any, k: Any, v: Any) -> Any:
    """Of attention; values have the number of keys by how they are made."""
    v, do = torch.sin(k), q * 0.5
    p = torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1)
    dp = do @ v.transpose(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * 0.25
    return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do


def finished(q: Any, k: Any, v: Any) -> Any:
    """Products by a matrix of known size, and of matrices one for each head."""
    x = q.flatten(0, 2)
    return F.gelu(x @ v[0, 0, :16] + v[0, 0, 0]), F.silu(q @ k.transpose(-1, -2))


PROGRAMS = [attention, causal, projected, masked, backward, finished]
# Numbers of images, queries and keys, a call each.
SIZES = [(2, 33, 50), (2, 40, 61), (1, 130, 64), (3, 20, 70)]


def operands(function: Any, sizes: tuple[int, int, int], dtype: Any) -> list[Any]:
    images, queries, keys = sizes
    shapes = ((images, 3, count, 16) for count in (queries, keys, keys))
    made = [r(*shape, dtype=dtype, seed=n) for n, shape in enumerate(shapes)]
    if function is projected:
        return [x.transpose(1, 2).contiguous() for x in made]
    return [*made, r(queries, keys, dtype=dtype, seed=3)] if function is masked else made


def leaves(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def check(function: Any, dtype: Any, device: str, mode: str = "default") -> None:
    compiled = dyncomp.compile(function, fullgraph=True, mode=mode)
    close = {torch.float32: 1e-4, HALF: 1e-2, torch.bfloat16: 5e-2}[dtype]
    for sizes in SIZES:
        arguments = [a.to(device) for a in operands(function, sizes, dtype)]
        got, want = compiled(*arguments), function(*(a.double() for a in arguments))
        for mine, theirs in zip(leaves(got), leaves(want), strict=True):
            assert mine.dtype is dtype
            torch.testing.assert_close(mine.double(), theirs, rtol=close, atol=2 * close)


@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_templates(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "LARGE_SCORES", 0)
    small = ((rows.Block(16, 32, 4, 1), rows.Block(32, 16, 4, 1)),)
    monkeypatch.setattr(rows, "NARROW_BLOCKS", small)
    check(function, torch.float32 if function is causal else HALF, "cpu")
    title = {backward: "rows", finished: "product"}.get(function, "attention")
    ran = [name for name in InterpretedDriver.launched if name.startswith(title)]
    assert len(ran) >= len(SIZES), InterpretedDriver.launched
    assert any("s" in name.split("_")[1] for name in ran), ran  # a symbol
