"""Tensors: sizes that change, and sizes that depend on the data."""

from __future__ import annotations

import logging

import pytest

import dyncomp

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def count_as_slice(x, k):
    return x[: int((x > 0).sum())] * 2


def count_as_size(x, k):
    return torch.zeros((x > 0).sum().item()) + 1, isinstance(int(k.sum()), int)


def by_mask(x, k):
    return x[x > 0] * 2


def masked_select(x, k):
    return torch.masked_select(x, x > 0) + 1


def positions(x, k):
    (index,) = torch.nonzero(x > 0, as_tuple=True)
    return x[index] * 2, k[index]


def positions_in_rows(x, k):
    rows, columns = torch.where(x[:, None] * x[None, :] > 0)
    return rows - columns, x[rows].sum()


def rows_by_mask(x, k):
    return (x[:, None] * x[None, :])[x > 0].sum(1)


def size_arithmetic(x, k):
    half = x.shape[0] // 2
    return x[:half] * 2, x.new_zeros(half) + x.numel(), half


def reshaped(x, k):
    even = x[: len(x) // 2 * 2]
    return even.reshape(-1, 2).sum(1), torch.cat([x, even])


PROGRAMS = (
    count_as_slice,
    count_as_size,
    by_mask,
    masked_select,
    positions,
    positions_in_rows,
    rows_by_mask,
    size_arithmetic,
    reshaped,
)


def arguments(size: int, kind: int):
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(size, generator=generator, dtype=torch.float64)
    k = torch.randint(0, 5, (size,), generator=generator)
    return (x if not kind else -x.abs() if kind < 0 else x.abs()), k


def assert_same(expected, found):
    pairs = zip(expected, found) if isinstance(expected, tuple) else [(expected, found)]
    for a, b in pairs:
        assert type(a) is type(b)
        if isinstance(a, torch.Tensor):
            assert a.dtype == b.dtype and (a.numel() < 2 or a.stride() == b.stride())
            torch.testing.assert_close(a, b)
        else:
            assert a == b


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_same_as_torch(function, backend):
    compiled = dyncomp.compile(function, backend=backend, options={"debug_verify": True})
    for size, kind in ((6, 0), (6, -1), (6, 1), (9, 0), (20, -1), (3, 0)):
        assert_same(function(*arguments(size, kind)), compiled(*arguments(size, kind)))
    records = compiled.config.records
    assert not [b for entry in records.entries for b in entry.breaks]
    assert len(records.entries) <= 3


def of_repeats(x, k):
    return torch.repeat_interleave(x, k) * torch.repeat_interleave(x + 1, k)


def of_repeats_of_an_axis(x, k):
    return x[:, None].repeat_interleave(k, 0) * 2


def of_a_length(x, k):
    return x.repeat_interleave(k, 0, output_size=int(k.sum()))


def of_a_number(x, k):
    n = int(k.sum())
    return torch.vander(x, n), torch.tile(x, (n,)), torch.topk(x, n % 3)[0]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", (of_repeats, of_repeats_of_an_axis, of_a_length, of_a_number))
def test_sizes_that_integers_give(function, backend):
    """What torch's routines give for examples made of zeros is not taken for what they always give."""
    compiled = dyncomp.compile(function, backend=backend)
    dyncomp.reset()
    for size in (6, 6, 9, 20, 3, 6):
        assert_same(function(*arguments(size, 0)), compiled(*arguments(size, 0)))
    assert not dyncomp.stats()["fallbacks"] and not dyncomp.stats()["resting"]
