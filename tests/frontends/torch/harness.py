"""Runs expressions through dyncomp and torch, and compares all that a program can see of the results."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402  (torch may be missing)

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.uint8)

# relative to the largest value, in units of the dtype's epsilon
ULPS = {torch.float32: 64.0, torch.float64: 64.0, torch.bfloat16: 2.0, torch.float16: 2.0}


def inputs(dtype, seed: int = 0) -> dict[str, torch.Tensor]:
    """Tensors named as the expressions' arguments."""
    torch.manual_seed(seed)

    def make(*shape):
        if dtype.is_floating_point:
            return torch.randn(shape).to(dtype)
        if dtype is torch.bool:
            return torch.rand(shape) > 0.5
        return torch.randint(0, 9, shape).to(dtype)

    return {
        "x": make(5, 6),
        "y": make(5, 6),
        "p": make(5, 6).abs() + make(5, 6).abs() + 1 if dtype is not torch.bool else make(5, 6),
        "b": make(6),
        "t": make(6, 5).t(),
        "z": make(),
        "q": make(2, 3, 4),
        "r": make(2, 4, 3).transpose(1, 2),
        "m": torch.rand(5, 6) > 0.5,
        "i": torch.tensor([0, 3, 2, 3]),
        "w": make(7, 6),
    }


def same(found, expected, where: str) -> None:
    """Equal structure, type, dtype, shape and strides; values equal or close."""
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected), where
        assert len(found) == len(expected), where
        for k, (a, b) in enumerate(zip(found, expected)):
            same(a, b, f"{where}[{k}]")
        return
    assert type(found) is type(expected), f"{where}: {type(found)} is not {type(expected)}"
    if not isinstance(expected, torch.Tensor):
        assert found == expected, where
        return
    assert found.dtype == expected.dtype, f"{where}: {found.dtype}, torch gives {expected.dtype}"
    assert found.shape == expected.shape, f"{where}: {found.shape}, torch gives {expected.shape}"
    assert meaningful(found) == meaningful(expected), (
        f"{where}: strides {found.stride()}, {expected.stride()}"
    )
    assert found.requires_grad == expected.requires_grad, where
    close(found, expected, where)


def meaningful(x) -> tuple:
    """Strides where they say something."""
    if not x.numel():
        return ()
    return tuple(s for s, d in zip(x.stride(), x.shape) if d != 1)


def close(found, expected, where: str) -> None:
    if not expected.dtype.is_floating_point:
        assert torch.equal(found, expected), f"{where}: {found} is not {expected}"
        return
    a, b = found.double(), expected.double()
    finite = b[torch.isfinite(b)]
    scale = max(1.0, float(finite.abs().max())) if finite.numel() else 1.0
    limit = ULPS[expected.dtype] * torch.finfo(expected.dtype).eps * scale
    assert torch.allclose(a, b, rtol=0.0, atol=limit, equal_nan=True), f"{where}:\n{found}\n{expected}"


def arguments(f, values):
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    return [values[n] for n in names]


def check(f, *args, backend: str = "eager", where: str = "") -> None:
    """``f`` captured whole gives what torch gives."""
    compiled = dyncomp.compile(f, fullgraph=True, backend=backend)
    before = dyncomp.stats()["fallbacks"]
    found = compiled(*args)
    assert dyncomp.stats()["fallbacks"] == before, "the graph raised, the original ran"
    same(found, f(*args), where or f.__name__)
