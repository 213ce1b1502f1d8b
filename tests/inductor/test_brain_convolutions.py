"""Convolutions of bfloat16 in graphs: which are done on it, and that they are right."""

from __future__ import annotations

from typing import Any

import pytest

import dyncomp
from dyncomp.runtime import _launch
from tests.inductor.test_brain_products import close, r

torch = pytest.importorskip("torch")
F = torch.nn.functional
LAST = torch.channels_last


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def rectified(x, w, b):
    return F.relu(F.conv2d(x, w, b, padding=1))


def steps(x, w, b):
    return F.conv2d(x, w, b, stride=2, padding=1)


def residual(x, w, b):
    return F.relu(F.conv2d(x, w, b, padding=1) + x)


def grouped(x, w, b):
    return F.silu(F.conv2d(x, w, b, padding=1, groups=4))


def points(x, w, b):
    return F.gelu(F.conv2d(x, w, b))


def line(x, w, b):
    return F.gelu(F.conv1d(x, w, b, stride=2, padding=1))


def autocast(x, w, b):
    with torch.autocast("cpu", torch.bfloat16):
        return F.relu(F.conv2d(x, w, b, padding=1))


def patches(x, w, b):
    return F.conv2d(x, w, b, stride=8).flatten(2).transpose(1, 2)


def last(*tensors: Any) -> tuple[Any, ...]:
    """The first two with channels innermost."""
    return (*(t.to(memory_format=LAST) for t in tensors[:2]), *tensors[2:])


BIAS = r(40, seed=2)
IMAGE, KERNELS = r(2, 24, 14, 17), r(40, 24, 3, 3, seed=1) * 0.1
ODD, KERNELS_OF_ODD = r(2, 7, 14, 17), r(40, 7, 3, 3, seed=1)
POINTS = r(40, 24, 1, 1, seed=1)
GROUPS = r(40, 6, 3, 3, seed=1)
SQUARE = r(24, 24, 3, 3, seed=1), r(24, seed=2)
WIDE = r(96, 24, 3, 3, seed=1), r(96, seed=2)
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "rectified": (rectified, (IMAGE, KERNELS, BIAS)),
    "rectified, last": (rectified, last(IMAGE, KERNELS, BIAS)),
    "odd": (rectified, (ODD, KERNELS_OF_ODD, BIAS)),
    "odd, last": (rectified, last(ODD, KERNELS_OF_ODD, BIAS)),
    "steps": (steps, (IMAGE, KERNELS, BIAS)),
    "steps, last": (steps, last(IMAGE, KERNELS, BIAS)),
    "residual": (residual, (IMAGE, *SQUARE)),
    "residual, last": (residual, last(IMAGE, *SQUARE)),
    "grouped": (grouped, (IMAGE, GROUPS, BIAS)),
    "points": (points, (IMAGE, POINTS, BIAS)),
    "points, last": (points, last(IMAGE, POINTS, BIAS)),
    "line": (line, (r(2, 24, 90), r(40, 24, 3, seed=1), BIAS)),
    "patches": (patches, (r(2, 3, 32, 40), r(40, 3, 8, 8, seed=1) * 0.1, BIAS)),
    "wide": (rectified, (IMAGE, *WIDE)),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_convolutions(name: str) -> None:
    function, arguments = CASES[name]
    compiled = dyncomp.compile(function, fullgraph=True)
    exact = function(*(a.double() for a in arguments))
    for _ in range(5):  # with packed kernels that are kept, too
        close(compiled(*arguments), function(*arguments), exact)
    assert dyncomp.explain(function)(*arguments).details().count("bfloat16, summed in float32") == 1


def test_autocast() -> None:
    x, w, b = (t.float() + 1e-4 for t in (IMAGE, KERNELS, BIAS))
    exact = rectified(*(t.bfloat16().double() for t in (x, w, b)))
    close(dyncomp.compile(autocast, fullgraph=True)(x, w, b), autocast(x, w, b), exact)
    assert dyncomp.explain(autocast)(x, w, b).details().count("bfloat16, summed in float32") == 1


@pytest.mark.parametrize("name", ["rectified", "odd, last", "grouped"])
def test_on_a_processor_without_instructions_for_it(name: str) -> None:
    function, arguments = CASES[name]
    compiled = dyncomp.compile(function)
    best = compiled(*arguments).float()
    try:
        _launch.use_products("portable")
        for _ in range(3):
            torch.testing.assert_close(compiled(*arguments).float(), best, rtol=2**-7, atol=1e-2)
    finally:
        _launch.use_products(None)


def test_symbolic_sizes() -> None:
    compiled = dyncomp.compile(rectified, fullgraph=True)
    for batch, high, wide in ((1, 9, 14), (3, 12, 7), (2, 30, 31)):
        x = r(batch, 24, high, wide)
        exact = rectified(x.double(), KERNELS.double(), BIAS.double())
        close(compiled(x, KERNELS, BIAS), rectified(x, KERNELS, BIAS), exact)


@pytest.mark.parametrize("layout", [torch.contiguous_format, LAST])
def test_kernels_that_change_are_packed_again(layout: Any) -> None:
    compiled = dyncomp.compile(steps, fullgraph=True)
    x, w, b = r(1, 64, 14, 14), r(96, 64, 3, 3, seed=1), r(96, seed=2)
    x, w = x.to(memory_format=layout), w.to(memory_format=layout)
    for number in range(9):
        if number % 4 == 3:
            w[number] *= 2
        fresh = w.clone(memory_format=torch.preserve_format)
        assert torch.equal(compiled(x, w, b), dyncomp.compile(steps)(x, fresh, b))


def test_views_and_special_values() -> None:
    x, w, b = r(2, 30, 20, 21), r(24, 24, 3, 3, seed=1), r(24, seed=2)
    x[0, 3, 4, 5], x[1, 25, 6, 7], w[3, 4, 1, 1] = float("inf"), float("nan"), float("-inf")
    seen = x[:, 3:27, ::2, 1:]
    found, expected = dyncomp.compile(steps)(seen, w, b), steps(seen, w, b)
    assert torch.equal(found.isnan(), expected.isnan())
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=2e-2, atol=0.2)


def depthwise(x, w, b):
    return F.conv2d(x, w, b, padding=1, groups=24)


def test_single_channels_are_multiplied_one_by_one() -> None:
    arguments = IMAGE, r(24, 1, 3, 3), r(24)
    exact = depthwise(*(a.double() for a in arguments))
    close(dyncomp.compile(depthwise)(*arguments), depthwise(*arguments), exact)
    assert "bfloat16, summed" not in dyncomp.explain(depthwise)(*arguments).details()
