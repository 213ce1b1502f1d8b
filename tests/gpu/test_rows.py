"""On a GPU: the backward pass of attention by the template (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

from typing import Any

import pytest

import dyncomp

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor.gpu_rows import BRAIN, CASES, CLOSE, HALF, backward, causal, operands, positions  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]
LARGE: list[Any] = [
    (backward, lambda d: operands(d, 2, 4, queries=1024, keys=1024, width=64, values=64)),
    (causal, lambda d: operands(d, 2, 4, queries=1000, keys=1000, width=64, values=64)),
    (positions, lambda d: operands(d, 4, queries=512, keys=777, width=128, values=128)),
]


@pytest.mark.parametrize("mode", ["default", "max-autotune"])
@pytest.mark.parametrize("dtype", [HALF, BRAIN, torch.float32], ids=str)
@pytest.mark.parametrize("number", range(len(CASES + LARGE)))
def test_gradients(number: int, dtype: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dyncomp.inductor.gpu import choose, templates

    monkeypatch.setattr(templates, "LARGE_SCORES", 0)
    ran: list[str] = []
    launch = choose.Choice._launch

    def logged(self: Any, candidate: int, *rest: Any) -> None:
        launch(self, candidate, *rest)
        ran.append(self.names[candidate])

    monkeypatch.setattr(choose.Choice, "_launch", logged)
    function, make = (CASES + LARGE)[number]
    arguments = [a.cuda() for a in make(dtype)]
    with torch.no_grad():
        got = dyncomp.compile(function, fullgraph=True, mode=mode)(*arguments)
        want = function(*[a.double() for a in arguments])
    for mine, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=CLOSE[dtype], atol=2 * CLOSE[dtype])
    unmeasured = mode == "default" and dtype is torch.float32 and arguments[0].shape[-1] > 64
    assert unmeasured or any(name.startswith("rows") for name in ran)
