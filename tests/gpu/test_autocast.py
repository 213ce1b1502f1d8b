"""On a GPU: autocast around compiled code and in it (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

from typing import Any

import pytest

import dyncomp

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor.gpu_autocast import CALLS, leaves  # noqa: E402
from tests.inductor.gpu_simulator import r  # noqa: E402

F = torch.nn.functional
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]


def check(function: Any, *arguments: Any) -> None:
    want, got = leaves(function(*arguments)), leaves(dyncomp.compile(function)(*arguments))
    for mine, theirs in zip(got, want, strict=True):
        assert (mine.dtype, mine.stride()) == (theirs.dtype, theirs.stride())
        torch.testing.assert_close(mine.double(), theirs.double(), rtol=5e-2, atol=1e-1)


@pytest.mark.parametrize("lower", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_around(name: str, dtype: Any, lower: Any) -> None:
    x, y, v, z = (r(*shape, dtype=dtype).cuda() for shape in ((4, 8), (8, 8), (8,), (4, 8)))
    with torch.no_grad(), torch.autocast("cuda", dtype=lower):
        check(CALLS[name], x, y, v, z, torch.arange(4, device="cuda"))


def block(x: Any, w: Any, b: Any) -> Any:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = F.gelu(F.linear(x, w, b))
        with torch.autocast("cuda", enabled=False):
            z = F.linear(x, w, b)
        return y, z, F.softmax(y, -1), F.layer_norm(y, (y.shape[-1],))


@torch.autocast("cuda", dtype=torch.float16)
def decorated(x: Any, w: Any, b: Any) -> Any:
    return F.linear(x, w, b), F.conv2d(x.view(1, 4, 8, 8), w.view(4, 4, 16, 16)[:, :, :3, :3], padding=1)


@pytest.mark.parametrize("function", [block, decorated])
def test_blocks(function: Any) -> None:
    x, w, b = r(4, 64).cuda(), r(64, 64).cuda(), r(64).cuda()
    with torch.no_grad():
        check(function, x, w, b)
        assert not dyncomp.explain(function)(x, w, b).breaks
        with torch.autocast("cuda", dtype=torch.bfloat16):
            check(function, x, w, b)
