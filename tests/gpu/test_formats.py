"""On a GPU: channels last between convolutions of halves (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

from typing import Any

import pytest

from dyncomp.inductor.gpu import formats

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor.gpu_formats import CASES, check, h, pooled, residual, two, w  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]
LARGE = [
    (two, lambda: (h(8, 64, 56, 56), w(128, 64, 3, 3) * 0.1, w(64, 128, 3, 3) * 0.1)),
    (residual, lambda: (h(8, 64, 28, 28), w(256, 64, 3, 3) * 0.1, w(256, 256, 3, 3) * 0.1)),
    (pooled, lambda: (h(8, 3, 112, 112), w(96, 3, 3, 3), w(32, 96, 1, 1))),
]


@pytest.mark.parametrize("mode", ["default", "max-autotune", "reduce-overhead"])
@pytest.mark.parametrize("number", range(len(CASES + LARGE)))
def test_results(number: int, mode: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(formats, "FEW_CHANNELS", 0)
    with torch.no_grad():
        check(*(CASES + LARGE)[number], "cuda:0", mode)
