"""The order of axes in memory of what is made like a tensor with holes, permuted or broadcast axes."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402  (torch may be missing)

from .harness import same  # noqa: E402


def made_like(x, y):
    return (
        x.clone(),
        torch.zeros_like(x),
        torch.ones_like(x, dtype=torch.int32),
        torch.full_like(x, 3.0),
        torch.empty_like(x).fill_(2),
        x.to(torch.float32),
        x.to(torch.float64, copy=True),
        x + 1,
        x * y,
        torch.where(x > 0, x, y),
        x.neg().clone(),
    )


def _strided(choose: random.Random) -> torch.Tensor:
    """A window of a dense tensor: sliced, permuted, with broadcast axes."""
    x = torch.randn(
        [choose.choice([1, 2, 3, 4, 6]) for _ in range(choose.randint(1, 4))], dtype=torch.float64
    )
    for _ in range(choose.randint(1, 4)):
        axis = choose.randrange(x.ndim)
        way = choose.random()
        if way < 0.4:
            x = x.permute(choose.sample(range(x.ndim), x.ndim))
        elif way < 0.8:
            x = x[(slice(None),) * axis + (slice(choose.choice([0, 0, 1]), None, choose.choice([1, 2])),)]
        elif x.shape[axis] == 1:
            x = x.expand([3 if k == axis else d for k, d in enumerate(x.shape)])
        else:
            x = x.unsqueeze(axis)
    return x if x.numel() else _strided(choose)


CASES = {
    "columns": lambda: torch.randn(6, 10, dtype=torch.float64)[:, ::2].t(),
    "planes": lambda: torch.randn(4, 6, 10, dtype=torch.float64)[:, :, ::2].permute(2, 0, 1),
    **{f"random-{k}": (lambda k=k: _strided(random.Random(k))) for k in range(10)},
}


@pytest.mark.parametrize("name", CASES)
def test_made_like(name):
    torch.manual_seed(0)
    x = CASES[name]()
    y = torch.randn(x.shape, dtype=torch.float64)
    same(dyncomp.compile(made_like, fullgraph=True)(x, y), made_like(x, y), f"{tuple(x.shape)} {x.stride()}")


def attends(x):
    """Heads are views of one projection; counts and sizes follow the batch."""
    batch, length, width = x.shape
    heads = x.view(batch, length, 2, width // 2).transpose(1, 2)
    mask = torch.ones(1, length, dtype=torch.bool).repeat(batch, 1)[:, None, None]
    attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask)
    return attended, heads.clone(), torch.zeros_like(heads[..., ::2]), x.mT.repeat(1, 1, batch)


def test_sizes_that_change():
    """What is strided keeps its order for any size of the batch, in one graph that serves all."""
    compiled = dyncomp.compile(attends, backend="eager", fullgraph=True)
    before = dyncomp.stats()["graphs"]
    for batch in (2, 3, 5, 4):
        x = torch.randn(batch, 6, 8, dtype=torch.float64)
        same(compiled(x), attends(x), f"batch of {batch}")
    assert dyncomp.stats()["graphs"] - before == 2


VOLUMES = {
    "C order": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last_3d),
    "turned": lambda x: x.transpose(2, 4).contiguous().transpose(2, 4),
    "part": lambda x: torch.cat([x, x], 4)[..., ::2],
}


@pytest.mark.parametrize("dim", range(5))
@pytest.mark.parametrize("first", VOLUMES)
@pytest.mark.parametrize("second", VOLUMES)
def test_joined_volumes(first, second, dim):
    """Channels last where all are."""
    x, y = (VOLUMES[name](torch.randn(2, 3, 4, 5, 6)) for name in (first, second))

    def join(x, y):
        return torch.cat([x, y], dim)

    same(dyncomp.compile(join, backend="eager", fullgraph=True)(x, y), join(x, y), f"{first}, {second}")


MEMORY = {
    "C order": lambda: torch.randn(2, 3, 4, 5),
    "channels last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "turned": lambda: torch.randn(3, 2, 4, 5).transpose(0, 1),
    "three axes": lambda: torch.randn(2, 3, 4).transpose(1, 2),
    "one row": lambda: torch.randn(2, 1, 3, 6).transpose(1, 2),
    "part": lambda: torch.randn(2, 3, 4, 10)[..., ::2],
}


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_converted_to_a_memory_format(memory, dtype):
    """Itself where the format is the one that torch suggests for it, in whatever order its axes lie."""
    x = MEMORY[memory]()

    def converted(x):
        kept = x.to(dtype, memory_format=torch.contiguous_format)
        copied = x.to(dtype=dtype, memory_format=torch.contiguous_format, copy=True)
        last = x.to(dtype, memory_format=torch.channels_last) if x.ndim == 4 else x
        return kept, kept is x, copied, last, last is x

    same(dyncomp.compile(converted, backend="eager", fullgraph=True)(x), converted(x), memory)


def test_the_memory_format_of_one_pixel_is_not_guarded():
    for make in (torch.Tensor.contiguous, lambda x: x.to(memory_format=torch.channels_last)):
        x = make(torch.randn(2, 3, 1, 1))
        again = dyncomp.compile(lambda x: x.to(memory_format=torch.contiguous_format) is x, backend="eager")
        assert again(x) == (x.to(memory_format=torch.contiguous_format) is x)
