"""On a GPU: templates for sizes that are known at the call only (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from dyncomp.inductor.gpu import templates  # noqa: E402
from tests.inductor.gpu_sizes import PROGRAMS, check  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]


@pytest.mark.parametrize("mode", ["default", "max-autotune", "reduce-overhead"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_templates(function: Any, dtype: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "LARGE_SCORES", 0)
    with torch.no_grad():
        check(function, dtype, "cuda:0", mode)
