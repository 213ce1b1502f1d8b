"""Templates for sizes that are known at the call only, on a pretended GPU.

Run by ``test_gpu_sizes`` in a process of its own; on a GPU by ``tests/gpu/test_sizes.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.inductor.gpu import templates  # noqa: E402
from tests.inductor.gpu_simulator import InterpretedDriver, on_a_pretended_gpu  # noqa: E402

F = torch.nn.functional
HALF = torch.float16


@pytest.fixture(autouse=True)
def pretended(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    with on_a_pretended_gpu(monkeypatch, tmp_path):
        yield


def r(*shape: int, dtype: Any, seed: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


def causal(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def projected(q: Any, k: Any, v: Any) -> Any:
    """Heads side by side in memory."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) * 2


PROGRAMS = [attention, causal, projected]
# Numbers of images, queries and keys, a call each.
SIZES = [(2, 33, 50), (2, 40, 61), (1, 130, 64), (3, 20, 70)]


def operands(function: Any, sizes: tuple[int, int, int], dtype: Any) -> list[Any]:
    images, queries, keys = sizes
    shapes = ((images, 3, count, 16) for count in (queries, keys, keys))
    made = [r(*shape, dtype=dtype, seed=n) for n, shape in enumerate(shapes)]
    if function is projected:
        return [x.transpose(1, 2).contiguous() for x in made]
    return made


def check(function: Any, dtype: Any, device: str, mode: str = "default") -> None:
    compiled = dyncomp.compile(function, fullgraph=True, mode=mode)
    close = {torch.float32: 1e-4, HALF: 1e-2, torch.bfloat16: 5e-2}[dtype]
    for sizes in SIZES:
        arguments = [a.to(device) for a in operands(function, sizes, dtype)]
        got, want = compiled(*arguments), function(*(a.double() for a in arguments))
        assert got.dtype is dtype
        torch.testing.assert_close(got.double(), want, rtol=close, atol=close)


@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_attention(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "LARGE_SCORES", 0)
    check(function, torch.float32 if function is causal else HALF, "cpu")
    ran = [name for name in InterpretedDriver.launched if name.startswith("attention")]
    assert len(ran) >= len(SIZES)
    assert any("s" in name.split("_")[1] for name in ran), ran  # a symbol
