"""Convolutions of groups on a pretended GPU; run by ``test_gpu_path`` in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from tests.inductor.gpu_simulator import InterpretedDriver, pretended, r  # noqa: E402, F401

F = torch.nn.functional
HALF = torch.float16


def depthwise(x: Any, w: Any, b: Any) -> Any:
    return F.relu6(F.conv2d(x, w, b, padding=1, groups=x.shape[1]))


def strided(x: Any, w: Any, b: Any) -> Any:
    groups = x.shape[1] // w.shape[1]
    return F.silu(F.conv2d(x, w, b, stride=2, padding=(2, 1), dilation=(1, 2), groups=groups))


def of_lines(x: Any, w: Any, b: Any) -> Any:
    return torch.tanh(F.conv1d(x, w, b, padding=2, groups=x.shape[1])) * 2


def added(x: Any, w: Any, b: Any) -> Any:
    return x + F.relu(F.conv2d(x, w, b, padding=3, groups=x.shape[1]))


CASES = [
    (depthwise, lambda d: (r(2, 5, 6, 7, dtype=d), r(5, 1, 3, 3, dtype=d), r(5, dtype=d))),
    (depthwise, lambda d: (r(1, 4, 9, 8, dtype=d), r(12, 1, 3, 3, dtype=d), r(12, dtype=d))),
    (strided, lambda d: (r(2, 6, 9, 12, dtype=d), r(9, 2, 5, 3, dtype=d), r(9, dtype=d))),
    (of_lines, lambda d: (r(2, 8, 40, dtype=d), r(8, 1, 5, dtype=d), r(8, dtype=d))),
    (added, lambda d: (r(2, 3, 8, 9, dtype=d), r(3, 1, 7, 7, dtype=d), r(3, dtype=d))),
]


@pytest.mark.parametrize("dtype", [HALF, torch.float32], ids=str)
@pytest.mark.parametrize("function, make", CASES, ids=[f.__name__ for f, _ in CASES])
def test_groups_are_finished(function: Any, make: Any, dtype: Any) -> None:
    arguments = make(dtype)
    got = dyncomp.compile(function, fullgraph=True, mode="max-autotune")(*arguments)
    close = 2e-2 if dtype is HALF else 1e-4
    torch.testing.assert_close(got, function(*arguments), rtol=close, atol=close)
    assert any("convolution_few" in name for name in InterpretedDriver.launched), InterpretedDriver.launched


def test_tiles_of_matrix_units_lie_within_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    from dyncomp.inductor.gpu import convolution

    monkeypatch.setattr(convolution, "FEW_KERNELS", 0)
    arguments = (r(2, 8, 6, 7, dtype=HALF), r(32, 4, 3, 3, dtype=HALF), r(32, dtype=HALF))
    got = dyncomp.compile(strided, fullgraph=True, mode="max-autotune")(*arguments)
    torch.testing.assert_close(got, strided(*arguments), rtol=2e-2, atol=2e-2)
    assert any("convolution_32" in name for name in InterpretedDriver.launched)
