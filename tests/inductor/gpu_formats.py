"""Networks of convolutions of halves on a pretended GPU: channels last between them, results as eager's.

Run by ``test_gpu_formats`` in a process of its own.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.inductor.gpu import formats  # noqa: E402
from tests.inductor.gpu_simulator import InterpretedDriver, pretended, r  # noqa: E402, F401

F = torch.nn.functional
HALF = torch.float16


@pytest.fixture(autouse=True)
def few_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "FEW_CHANNELS", 0)


h = functools.partial(r, dtype=HALF)
w = functools.partial(h, scale=0.3)


def two(x: Any, a: Any, b: Any) -> Any:
    return F.conv2d(F.relu(F.conv2d(x, a, padding=1)), b, padding=1)


def residual(x: Any, a: Any, b: Any) -> Any:
    y = F.relu(F.conv2d(x, a, padding=1))
    return F.relu(F.conv2d(y, b, padding=1) + y), y


def pooled(x: Any, a: Any, b: Any) -> Any:
    y = F.max_pool2d(F.relu(F.conv2d(x, a, padding=1)), 3, 2, 1)
    y = F.avg_pool2d(F.conv2d(y, b), 2)
    return F.adaptive_avg_pool2d(y, 1).flatten(1), y.flatten(1), y.sum((2, 3)), y.amax(1)


def normalised(x: Any, a: Any, mean: Any, var: Any, scale: Any) -> Any:
    y = F.batch_norm(F.conv2d(x, a), mean, var, scale, None)
    return F.conv2d(F.silu(y), a[:, : y.shape[1]].transpose(0, 1)[: a.shape[0]])


def excited(x: Any, a: Any, b: Any, c: Any) -> Any:
    y = F.conv2d(x, a, padding=1)
    gate = F.conv2d(F.relu(F.conv2d(y.mean((2, 3), keepdim=True), b)), c)
    return y * torch.sigmoid(gate)


def depthwise(x: Any, a: Any, b: Any) -> Any:
    y = F.conv2d(x, a, padding=1, groups=x.shape[1])
    z = F.layer_norm(y.permute(0, 2, 3, 1), (y.shape[1],)).permute(0, 3, 1, 2)
    return F.conv2d(z, b) + x[:, : b.shape[0]]


def joined(x: Any, a: Any, b: Any) -> Any:
    y = torch.cat([x, F.conv2d(x, a, padding=1)], 1)
    return F.conv2d(y, b), y[:, ::2]


def patches(x: Any, a: Any) -> Any:
    y = F.conv2d(x, a, stride=2).flatten(2).transpose(1, 2)
    return y @ y.transpose(1, 2), y, y.contiguous()


def viewed(x: Any, a: Any) -> Any:
    y = F.conv2d(x, a)
    return y, y[0], y.permute(0, 2, 3, 1), y.diagonal(0, 2, 3), y.view(-1)[::2]


def counted(x: Any, a: Any, seen: Any) -> Any:
    y = F.conv2d(x, a, padding=1)
    seen.mul_(0.5).add_(y.mean((0, 2, 3)))
    x.copy_(y[:, : x.shape[1]])
    return y.argmax(1)


def grouped(x: Any, a: Any, b: Any) -> Any:
    return F.relu(F.conv2d(F.conv2d(x, a, padding=1), b, groups=2))


def last(x: Any) -> Any:
    return x.to(memory_format=torch.channels_last)


CASES = [
    (two, lambda: (h(2, 6, 7, 5), w(8, 6, 3, 3), w(4, 8, 3, 3))),
    (two, lambda: (last(h(2, 6, 7, 5)), w(8, 6, 3, 3), w(4, 8, 3, 3))),
    (two, lambda: (h(1, 1, 7, 5), w(8, 1, 3, 3), w(4, 8, 3, 3))),
    (two, lambda: (h(2, 6, 1, 1), w(8, 6, 3, 3), w(4, 8, 3, 3))),
    (residual, lambda: (h(2, 6, 7, 5), w(8, 6, 3, 3), w(8, 8, 3, 3))),
    (pooled, lambda: (h(2, 6, 13, 14), w(8, 6, 3, 3), w(4, 8, 1, 1))),
    (normalised, lambda: (h(2, 6, 7, 5), w(6, 6, 1, 1), h(6), h(6).abs() + 1, h(6))),
    (excited, lambda: (h(2, 6, 7, 5), w(8, 6, 3, 3), w(2, 8, 1, 1), w(8, 2, 1, 1))),
    (depthwise, lambda: (h(2, 6, 7, 5), w(6, 1, 3, 3), w(4, 6, 1, 1))),
    (joined, lambda: (h(2, 6, 7, 5), w(8, 6, 3, 3), w(4, 14, 1, 1))),
    (patches, lambda: (h(2, 6, 8, 6), w(8, 6, 2, 2))),
    (viewed, lambda: (h(2, 6, 7, 5), w(8, 6, 1, 1))),
    (counted, lambda: (h(2, 6, 7, 5), w(8, 6, 3, 3), h(8))),
    (grouped, lambda: (h(2, 6, 7, 5), w(8, 6, 3, 3), w(6, 4, 1, 1))),
]


def same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, tuple):
        for a, b in zip(got, want, strict=True):
            same(a, b)
        return
    assert got.stride() == want.stride()
    if want.dtype.is_floating_point:
        # sums of many elements that were rounded otherwise may be small
        largest = float(want.abs().max()) if want.numel() else 0.0
        torch.testing.assert_close(got, want, rtol=2e-2, atol=3e-2 + 1e-3 * largest)


def check(function: Any, make: Any, device: str, mode: str = "default") -> None:
    compiled = dyncomp.compile(function, fullgraph=True, mode=mode)
    for _ in range(3):
        mine, theirs = ([a.to(device) for a in make()] for _ in range(2))
        same(compiled(*mine), function(*theirs))
        same(tuple(mine), tuple(theirs))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_results_are_laid_out_as_they_were(number: int) -> None:
    check(*CASES[number], "cpu")
    assert InterpretedDriver.launched


def convolutions_of(function: Any, make: Any) -> list[bool]:
    """Whether each convolution of the graph that is lowered has channels last."""
    seen: list[bool] = []
    original = formats.lay_out

    def noted(graph: Any, table: Any) -> Any:
        made = original(graph, table)
        seen.extend(n.kwargs["channels_last"] for n in made.nodes if n.op == "convolution")
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "lay_out", noted)
        dyncomp.compile(function, fullgraph=True)(*make())
    return seen


def test_convolutions_have_channels_last() -> None:
    assert convolutions_of(*CASES[0]) == [True, True]
    assert convolutions_of(*CASES[5]) == [True, True]
    # what has one place stays
    assert convolutions_of(*CASES[7]) == [True, False, False]
    # kernels of some channels in a group
    assert convolutions_of(*CASES[-1]) == [True, False]


def test_views_of_results_share_their_memory() -> None:
    function, make = CASES[11]
    y, first, turned, placed, line = dyncomp.compile(function, fullgraph=True)(*make())
    y.zero_()
    assert not any(view.any() for view in (first, turned, placed, line))


def test_other_graphs_stay() -> None:
    make = CASES[0][1]
    assert convolutions_of(two, lambda: tuple(a.float() for a in make())) == [False, False]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "FEW_CHANNELS", 64)
        assert convolutions_of(two, make) == [False, False]
