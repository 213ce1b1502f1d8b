"""Results of torch's own routines that compiled graphs take over instead of copying them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.frontends.torch.owner import OWNER  # noqa: E402

F = torch.nn.functional


def alone(tensor: Any) -> bool:
    assert OWNER.taken is not None
    return OWNER.taken(tensor, tensor.shape, tensor.stride(), 0, str(tensor.dtype)) is not None


def test_only_memory_that_nothing_else_sees_is_taken() -> None:
    assert alone(torch.relu(torch.randn(50, 40)))
    assert alone(torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last))
    whole = torch.randn(50, 40)
    view = whole.view(-1)
    assert not alone(view)
    assert not alone(whole)
    assert not alone(whole.detach())
    assert not alone(torch.randn(50, 40)[1:])
    assert not alone(torch.from_numpy(np.ones((50, 40))))
    assert not alone(torch.nn.Parameter(torch.randn(50, 40)))
    assert not alone(torch.randn(50, 40, requires_grad=True))


def resized(x: Any) -> Any:
    return F.interpolate(x, scale_factor=2, mode="bicubic")


def turned(x: Any) -> Any:
    return torch.linalg.qr(x)[0], torch.sort(x.mT, 3)[0]


def between(x: Any, b: Any) -> Any:
    return torch.relu(F.conv_transpose2d(x * 2, b, stride=2)) + 1


def both(x: Any) -> Any:
    values, places = F.adaptive_max_pool2d(x, 16, return_indices=True)
    return values, places, values + 1


def test_results_are_the_callers_alone() -> None:
    x, b = torch.randn(2, 8, 32, 32), torch.randn(8, 6, 2, 2)
    for function, arguments in ((resized, (x,)), (between, (x, b)), (both, (x,)), (turned, (x,))):
        compiled = dyncomp.compile(function, fullgraph=True)
        kept = []
        for _ in range(3):
            found, wanted = compiled(*arguments), function(*arguments)
            for a, w in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, wanted)), strict=True):
                assert a.stride() == w.stride()
                assert a._is_view() == w._is_view()
                assert a.untyped_storage().nbytes() == w.untyped_storage().nbytes()
                torch.testing.assert_close(a, w, rtol=1e-5, atol=1e-5)
                assert not any(a.data_ptr() == k.data_ptr() for k in kept)
                kept.append(a)
                a.zero_()
    assert float(x.abs().sum()) > 0


def test_formats_of_inputs_and_results() -> None:
    x = torch.randn(2, 8, 24, 24)
    for given in (x, x.to(memory_format=torch.channels_last), x.to(torch.float64), x.to(torch.bfloat16)):
        compiled = dyncomp.compile(resized, fullgraph=True)
        for _ in range(2):
            found, wanted = compiled(given), resized(given)
            assert found.dtype == wanted.dtype
            assert found.stride() == wanted.stride()
            torch.testing.assert_close(found, wanted)
