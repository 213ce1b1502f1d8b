"""Zeros around tensors, images whose places are repeated or made of channels: values and strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

F = torch.nn.functional

FORMS: dict[str, Callable[[Any], Any]] = {
    "pad": lambda x: F.pad(x, (1, 2, 0, 3)),
    "pad one axis": lambda x: F.pad(x, (0, 5), value=-1.5),
    "pad all axes": lambda x: F.pad(x, (1, 1, 2, 0, 0, 1, 1, 0)),
    "pad infinite": lambda x: F.pad(x, (1, 1), value=float("-inf")),
    "pad cuts": lambda x: F.pad(x, (-1, 2, 1, -2)),
    "pad nothing": lambda x: F.pad(x, (0, 0)),
    "pad reflect": lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"),
    "pad reflect one side": lambda x: F.pad(x, (0, 9, 0, 0), mode="reflect"),
    "pad replicate": lambda x: F.pad(x, (0, 14, 13, 1), mode="replicate"),
    "pad circular": lambda x: F.pad(x, (10, 3, 0, 12), mode="circular"),
    "pad circular nothing": lambda x: F.pad(x, (0, 0, 0, 0), mode="circular"),
    "shuffle": lambda x: F.pixel_shuffle(x, 2),
    "shuffle by one": lambda x: F.pixel_shuffle(x, 1),
    "unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "nearest twice": lambda x: F.interpolate(x, scale_factor=2),
    "nearest": lambda x: F.interpolate(x, scale_factor=(1.0, 4.0)),
    "nearest to a size": lambda x: F.interpolate(x, size=(24, 20)),
    "nearest to another size": lambda x: F.interpolate(x, size=(13, 10)),
    "nearest by three": lambda x: F.interpolate(x, scale_factor=3),
    "nearest by a half": lambda x: F.interpolate(x, scale_factor=0.5),
}
KINDS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x,
    "last": lambda x: x.to(memory_format=torch.channels_last),
    "turned": lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    "float64": lambda x: x.double(),
    "bfloat16": lambda x: x.bfloat16(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_forms(kind: str) -> None:
    x = KINDS[kind](torch.randn(2, 8, 12, 10))
    for name, form in FORMS.items():
        compiled = dyncomp.compile(form, fullgraph=True)
        wanted, got = form(x), compiled(x)
        assert got.dtype == wanted.dtype, name
        assert got.stride() == wanted.stride(), name
        assert torch.equal(got, wanted), name
        assert x.data_ptr() != got.data_ptr(), name
        assert got._is_view() == wanted._is_view(), name


def test_other_ranks() -> None:
    line, volume, plain = torch.randn(3, 4, 9), torch.randn(2, 3, 4, 5, 6), torch.randn(8, 6, 4)
    last = volume.to(memory_format=torch.channels_last_3d)
    for form, x in (
        (lambda x: F.interpolate(x, scale_factor=2), line),
        (lambda x: F.interpolate(x, scale_factor=2), volume),
        (lambda x: F.interpolate(x, scale_factor=2), last),
        (lambda x: F.pad(x, (1, 2)), last),
        (lambda x: F.group_norm(x, 3), last),
        (lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3), eps=1e-12), last),
        (lambda x: F.pixel_shuffle(x, 2), plain),
        (lambda x: F.pixel_unshuffle(x, 2), plain),
        (lambda x: F.pad(x, (1, 0)), torch.randn(7)),
        (lambda x: F.pad(x, (3, 2), mode="reflect"), line),
        (lambda x: F.pad(x[0], (3, 2), mode="circular"), line),
        (lambda x: F.pad(x, (1, 2, 0, 3, 2, 1), mode="reflect"), volume),
        (lambda x: F.pad(x, (1, 2, 0, 3, 2, 1), mode="replicate"), last),
    ):
        wanted, got = form(x), dyncomp.compile(form, fullgraph=True)(x)
        assert got.stride() == wanted.stride()
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: F.pixel_shuffle(x, 3),
        lambda x: F.pixel_unshuffle(x, 5),
        lambda x: F.pixel_shuffle(x, 0),
        lambda x: F.pixel_shuffle(x.view(2, 4, 2, 12, 10).to(memory_format=torch.channels_last_3d), 1),
        lambda x: F.pad(x, (1,)),
        lambda x: F.pad(x, (1, 1), value=1e300),
        lambda x: F.pad(x, (1, 1), value=-(10**40)),
        lambda x: F.pad(x.int(), (1, 1), value=2**40),
        lambda x: F.pad(x, (-20, 0)),
        lambda x: F.pad(x, (10, 0), mode="reflect"),
        lambda x: F.pad(x, (1, 1, 13, 0), mode="circular"),
        lambda x: F.pad(x, (1, 1), mode="reflect"),
        lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate", value=1.0),
        lambda x: F.interpolate(x, size=(0, 4)),
    ],
)
def test_bad_arguments(form: Callable[[Any], Any]) -> None:
    x = torch.randn(2, 8, 12, 10)
    with pytest.raises((RuntimeError, ValueError)) as expected:
        form(x)
    with pytest.raises(expected.type):
        dyncomp.compile(form)(x)
