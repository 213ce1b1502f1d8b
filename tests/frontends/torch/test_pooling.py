"""Pooling: windows that reach over edges, memory formats, one to three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

F = torch.nn.functional

WINDOWS: tuple[dict[str, Any], ...] = (
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True},
)
ONLY_AVERAGES: tuple[dict[str, Any], ...] = (
    {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
)


def compare(function: Callable[[Any], Any], x: Any, tolerance: float = 2e-6) -> None:
    wanted, got = function(x), dyncomp.compile(function, fullgraph=True)(x)
    assert (got.dtype, got.shape, got.stride()) == (wanted.dtype, wanted.shape, wanted.stride())
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


def image(rank: int) -> Any:
    x = torch.randn(2, 5, *(11, 9, 8)[:rank])
    x[0, 0, 3] = float("nan")
    x[1, 2, 5] = float("-inf")
    return x


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("last", [False, True])
def test_windows(rank: int, last: bool) -> None:
    if last and rank != 2:
        return
    x = image(rank)
    x = x.to(memory_format=torch.channels_last) if last else x
    highest = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    average = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
    for options in WINDOWS:
        compare(lambda x, options=options: highest(x, **options) * 2, x)
        compare(lambda x, options=options: average(x, **options), x)
    for options in ONLY_AVERAGES:
        compare(lambda x, options=options: average(x, **options), x)
    compare(lambda x: highest(x, 2, dilation=2), x)
    compare(lambda x: highest(x, 3, 1, 1, 1), x)
    if rank > 1:
        compare(lambda x: average(x, 2, divisor_override=7), x[0])
    if rank < 3:  # torch has no such for halves
        compare(lambda x: average(x, 3, 2, 1, True, False), x.bfloat16(), 1e-2)
    compare(lambda x: average(x, 3, 2, 1, True), x.double())


def test_large_windows() -> None:
    x = image(2)
    compare(lambda x: F.max_pool2d(x, 9, 1, 4), x)
    compare(lambda x: F.max_pool2d(x, (11, 7), (1, 2), (5, 3)), x.to(memory_format=torch.channels_last))
    compare(lambda x: F.max_pool2d(x, (11, 9)), x)


def test_adaptive() -> None:
    x = torch.randn(2, 4, 6, 8, 4)
    compare(lambda x: F.adaptive_avg_pool3d(x, 1), x)
    compare(lambda x: F.adaptive_avg_pool3d(x, (3, None, 2)), x)
    compare(lambda x: F.adaptive_avg_pool3d(x, (4, 3, 3)), x)
    compare(lambda x: F.adaptive_avg_pool2d(x, (5, 3)), x[0])
    compare(lambda x: F.adaptive_max_pool2d(x, (5, 3)), x[0])


def test_halves_over_three_dimensions_raise_as_they_do() -> None:
    x = torch.randn(2, 4, 6, 8, 4).bfloat16()
    with pytest.raises(NotImplementedError):
        dyncomp.compile(lambda x: F.avg_pool3d(x, 2))(x)


def test_windows_of_one_element_are_copied() -> None:
    """Results share no memory with the input, in either memory format."""
    x = torch.randn(2, 3, 4, 4)
    last = x.to(memory_format=torch.channels_last)
    for form, image in (
        (lambda x: F.max_pool2d(x, 1), x),
        (lambda x: F.max_pool2d(x, 1), last),
        (lambda x: F.avg_pool2d(x, 1), x),
        (lambda x: F.max_pool1d(x, 1), x[0]),
        (lambda x: F.adaptive_avg_pool2d(x, 4), x),
    ):
        wanted, got = form(image), dyncomp.compile(form, fullgraph=True)(image)
        assert torch.equal(got, wanted)
        assert got.stride() == wanted.stride()
        assert got.data_ptr() != image.data_ptr()
