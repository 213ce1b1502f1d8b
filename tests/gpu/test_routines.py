"""On a GPU: functions of torch that have no ops of their own (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor.gpu_routines import CALLS, check  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]


@pytest.mark.parametrize("name", CALLS)
def test_routines(name: str) -> None:
    with torch.no_grad():
        check(CALLS[name], "cuda:0")
