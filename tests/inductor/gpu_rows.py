"""Backward passes of attention on a pretended GPU: two kernels of a template, in Triton's interpreter.

Run by ``test_gpu_rows`` in a process of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.inductor.gpu import rows, templates  # noqa: E402
from tests.inductor.gpu_simulator import InterpretedDriver, pretended, r  # noqa: E402, F401

HALF, BRAIN = torch.float16, torch.bfloat16
CLOSE = {HALF: 2e-2, BRAIN: 2e-1, torch.float32: 2e-5}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "LARGE_SCORES", 0)
    small = ((rows.Block(16, 32, 4, 1), rows.Block(32, 16, 4, 1)),)
    for name in ("NARROW_BLOCKS", "WIDE_BLOCKS", "FLOAT_BLOCKS"):
        monkeypatch.setattr(rows, name, small)


def gradients(s: Any, q: Any, k: Any, v: Any, do: Any) -> Any:
    """Of attention with scores ``s``, to its operands."""
    p = torch.softmax(s, -1)
    dp = do @ v.transpose(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * 0.25
    return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do


def backward(q: Any, k: Any, v: Any, do: Any) -> Any:
    return gradients(q @ k.transpose(-1, -2) * 0.25, q, k, v, do)


def causal(q: Any, k: Any, v: Any, do: Any) -> Any:
    s = q @ k.transpose(-1, -2) * 0.25
    seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    return gradients(s.masked_fill(~seen, float("-inf")), q, k, v, do)


def positions(q: Any, k: Any, v: Any, do: Any) -> Any:
    """Causality by positions: blocks that it hides are left out."""
    i, j = torch.arange(q.shape[-2], device=q.device), torch.arange(k.shape[-2], device=q.device)
    s = torch.where(i[:, None] >= j, q @ k.transpose(-1, -2) * 0.25, float("-inf"))
    return gradients(s, q, k, v, do)


def masked(q: Any, k: Any, v: Any, do: Any, mask: Any) -> Any:
    return gradients(q @ k.transpose(-1, -2) * 0.25 + mask, q, k, v, do)


def saved(q: Any, k: Any, v: Any, do: Any, lse: Any, delta: Any) -> Any:
    """With the logarithms of sums of a forward pass, and ``sum(do * o)``."""
    p = torch.exp((q @ k.transpose(-1, -2)).float() * 0.25 - lse[..., None])
    ds = p * ((do @ v.transpose(-1, -2)).float() - delta[..., None]) * 0.25
    p, ds = p.to(q.dtype), ds.to(q.dtype)
    return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do


def operands(dtype: Any, *lead: int, queries: int, keys: int, width: int, values: int) -> tuple[Any, ...]:
    shapes = ((queries, width), (keys, width), (keys, values), (queries, values))
    return tuple(r(*lead, *shape, dtype=dtype, seed=n) for n, shape in enumerate(shapes))


def with_sums(dtype: Any) -> tuple[Any, ...]:
    q, k, v, do = operands(dtype, 3, queries=40, keys=50, width=16, values=16)
    s = (q.double() @ k.double().transpose(-1, -2)) * 0.25
    o = torch.softmax(s, -1) @ v.double()
    return q, k, v, do, torch.logsumexp(s, -1).float(), (do * o).sum(-1).float()


CASES: list[Any] = [
    (backward, lambda d: operands(d, 2, 3, queries=40, keys=70, width=16, values=16)),
    (backward, lambda d: operands(d, 2, queries=64, keys=64, width=20, values=33)),
    (causal, lambda d: operands(d, 2, 2, queries=70, keys=70, width=32, values=32)),
    (positions, lambda d: operands(d, 2, 2, queries=70, keys=70, width=32, values=32)),
    (positions, lambda d: operands(d, 2, queries=40, keys=90, width=16, values=16)),
    (positions, lambda d: operands(d, 2, queries=90, keys=40, width=16, values=16)),
    (masked, lambda d: (*operands(d, 2, queries=40, keys=50, width=16, values=16), r(40, 50, dtype=d))),
    (saved, with_sums),
]


# Each case in one type; slow tests take the other one.
DEFAULT = (0, 9, 2, 3, 12, 13, 6, 15)


@pytest.mark.parametrize(
    "number",
    [n if n in DEFAULT else pytest.param(n, marks=pytest.mark.slow) for n in range(2 * len(CASES))],
)
def test_gradients_are_two_kernels(number: int) -> None:
    dtype = torch.float32 if number < len(CASES) else (HALF, BRAIN)[number % 2]
    function, make = CASES[number % len(CASES)]
    arguments = make(dtype)
    got = dyncomp.compile(function, fullgraph=True)(*arguments)
    want = function(*[a.double() for a in arguments])
    for mine, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(mine.double(), theirs.double(), rtol=CLOSE[dtype], atol=CLOSE[dtype])
    assert [name.partition("_")[0] for name in InterpretedDriver.launched[-2:]] == ["rows", "columns"]
